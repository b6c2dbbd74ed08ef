"""Stage `align`: links between the words of each sentence and those of its translations."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus import custom_with, language_name, links, read_corpus, stored, translations, units
from .aligners import ALIGNERS, Link, Words, learnt, plain, units_of
from .resumable import Result, run_stage

if TYPE_CHECKING:
    from lhotse import MonoCut

logger = logging.getLogger(__name__)


def align(
    source: Path,
    target: Path,
    aligner: str = "systran",
    languages: Sequence[str] | None = None,
    parallel: Mapping[str, Path] | None = None,
) -> dict[str, Any]:
    """Corpus `source` with units and links as `target`; returns the report.

    `languages` are those to align (None: all translations); `parallel` names more text to learn from by language, lines
    `source TAB translation`, gzipped or not. `gold` keeps the links there are. A language in which a recording lacks a
    sentence is left out of it. Raises KeyError for an unknown aligner, ValueError for an unknown language or a corpus that
    lacks translations (or, for gold, links).
    """
    if aligner not in ALIGNERS:
        raise KeyError(f"no aligner '{aligner}'. Known: {', '.join(ALIGNERS)}")
    for language in {*(languages or ()), *(parallel or {})}:
        language_name(language)
    more = dict(parallel or {})
    for path in more.values():
        if not path.is_file():
            raise FileNotFoundError(f"no file {path}: --parallel LANGUAGE=FILE, lines 'source TAB translation'")
    settings = {
        "aligner": aligner,
        "languages": sorted(languages) if languages else None,
        "parallel": {language: sha256(path.read_bytes()).hexdigest() for language, path in sorted(more.items())},
    }

    def work(cuts: Iterable[MonoCut]) -> Iterator[Result]:
        linkers: dict[str, Link] | None = None
        for cut in cuts:
            if linkers is None:  # nothing is learnt when nothing is left to do
                linkers = {} if aligner == "gold" else _learn(source, aligner, languages, more)
            yield aligned(cut, linkers, languages)

    return run_stage("align", source, target, settings, work, needs=("translations",))


def aligned(cut: MonoCut, linkers: Mapping[str, Link], languages: Sequence[str] | None = None) -> Result:
    """One recording with units and links; a language without a linker keeps the links it has.

    Raises ValueError if it has none.
    """
    dropped: list[tuple[str, str]] = []
    figures: dict[str, Any] = {}
    wanted = set(languages or {language for sentence in cut.supervisions for language in translations(sentence)})
    for language in sorted(wanted):
        if missing := [sentence.id for sentence in cut.supervisions if language not in translations(sentence)]:
            dropped.append((f"{language} of a recording that lacks it in a sentence", missing[0]))
            wanted.remove(language)
    for sentence in cut.supervisions:
        source = sentence.text.split()
        own_units, own_links = {}, {}
        for language in sorted(wanted):
            if language in linkers:
                pieces = units_of(translations(sentence)[language], language)
                pairs = linkers[language](plain(source), plain(pieces))
            else:
                if language not in links(sentence) or language not in units(sentence):
                    raise ValueError(
                        f"recording {cut.id}, sentence {sentence.id} has no links into {language} to keep: take another "
                        "--aligner than gold"
                    )
                pieces, pairs = units(sentence)[language], links(sentence)[language]
            own_units[language], own_links[language] = pieces, [list(pair) for pair in sorted(pairs)]
            figure = figures.setdefault(
                language, {"n_sentences": 0, "n_units": 0, "n_linked_units": 0, "n_unlinked_sentences": 0}
            )
            figure["n_sentences"] += 1
            figure["n_units"] += len(pieces)
            figure["n_linked_units"] += len({j for _, j in pairs})
            figure["n_unlinked_sentences"] += not pairs
        kept = {language: text for language, text in translations(sentence).items() if language in wanted}
        sentence.custom = custom_with(sentence, translations=kept, units=own_units, links=own_links, targets=None)
    return Result(cut.id, stored(cut), dropped, figures)


def link_lines(report: Mapping[str, Any]) -> list[str]:
    """How much is linked, for a person."""
    return [
        f"{language}: {figure['n_linked_units'] / max(1, figure['n_units']):.1%} of {figure['n_units']} units linked, "
        f"{figure['n_unlinked_sentences']} of {figure['n_sentences']} sentences without a link"
        for language, figure in sorted(report["figures"].items())
    ]


def _learn(source: Path, aligner: str, languages: Sequence[str] | None, more: Mapping[str, Path]) -> dict[str, Link]:
    """A linker for each language, learnt from the whole corpus, whatever of it is done already."""
    pairs: dict[str, list[tuple[Words, Words]]] = {}
    for cut in read_corpus(source):
        for sentence in cut.supervisions:
            for language, text in translations(sentence).items():
                if languages is None or language in languages:
                    pairs.setdefault(language, []).append(
                        (plain(sentence.text.split()), plain(units_of(text, language)))
                    )
    if not pairs:
        raise ValueError(
            f"{source} has no translations into {', '.join(languages or ['any language'])}: translate it first"
        )
    linkers = {}
    for language, own in sorted(pairs.items()):
        extra = _parallel(more[language], language) if language in more else ()
        logger.info("learning to align %s from %d sentences%s", language, len(own), " and more text" if extra else "")
        linkers[language] = learnt(aligner, own, extra)
    return linkers


def _parallel(path: Path, language: str) -> list[tuple[Words, Words]]:
    pairs = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                source, tab, target = line.rstrip("\n").partition("\t")
                if not tab:
                    raise ValueError(f"line {number} has no tab, expected 'source TAB translation'")
                pairs.append((plain(source.split()), plain(units_of(target, language))))
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path} cannot be used as parallel text: {error}") from error
    return pairs
