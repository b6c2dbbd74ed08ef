"""Stage `translate`: every sentence in other languages, by a model behind an endpoint or from a file."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..corpus import custom_with, language_name, read_corpus, stored, translations
from .resumable import Result, run_stage, spread
from .translation_service import N_CONTEXT, PROMPT_VERSION, Cache, Service, Translator

if TYPE_CHECKING:
    from lhotse import MonoCut

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prices:
    """Of a million tokens, in any currency."""

    prompt: float = 0.0
    completion: float = 0.0


def translate(
    source: Path, target: Path, service: Service, languages: Sequence[str], cache: Path, concurrency: int = 8
) -> dict[str, Any]:
    """Corpus `source` with translations as `target`, `concurrency` recordings at a time; returns the report.

    The cache makes a sentence that was translated before free. Raises ValueError for an unknown language, or if the
    endpoint refuses or stays silent: started again, it goes on where it was.
    """
    for language in languages:
        language_name(language)
    settings = {
        "model": service.model,
        "temperature": service.temperature,
        "prompt": PROMPT_VERSION,
        "languages": list(languages),
    }
    answers = Cache(cache)
    try:
        translator = Translator(service, answers)
        work = functools.partial(translated, translator=translator, languages=tuple(languages))
        return run_stage(
            "translate", source, target, settings, lambda cuts: spread(work, cuts, concurrency, threads=True)
        )
    finally:
        answers.close()


def translated(cut: MonoCut, translator: Translator, languages: Sequence[str]) -> Result:
    """One recording with its translations, each sentence after the four before it; dropped if one has none."""
    figures = {"n_requests": 0, "n_cached": 0, "prompt_tokens": 0, "completion_tokens": 0}
    made: list[dict[str, str]] = [{} for _ in cut.supervisions]
    for language in languages:
        if any(sentence.language == language for sentence in cut.supervisions):
            raise ValueError(
                f"recording {cut.id} is in {language} already: take it out of the languages to translate into"
            )
        context: list[tuple[str, str]] = []
        for sentence, translation in zip(cut.supervisions, made, strict=True):
            answer = translator(sentence.text, context[-N_CONTEXT:], sentence.language, language)
            figures["n_cached" if answer.cached else "n_requests"] += 1
            figures["prompt_tokens"] += answer.prompt_tokens
            figures["completion_tokens"] += answer.completion_tokens
            if not answer.text:
                return Result(
                    cut.id, None, [(f"a sentence without a translation into {language}", sentence.id)], figures
                )
            translation[language] = answer.text
            context.append((sentence.text, answer.text))
    return _with(cut, made, figures)


def translate_from_file(source: Path, target: Path, path: Path) -> dict[str, Any]:
    """Corpus `source` with the translations of a .tsv or .jsonl file as `target`; returns the report.

    A row for each sentence of the corpus, in its order: `source` and a column (key) for each language; a .tsv begins with
    the names of its columns. Raises ValueError naming the first row that differs from the corpus.
    """
    rows = _rows(path)
    firsts = _first_rows(rows, source, path)

    def work(cuts: Iterable[MonoCut]) -> Iterator[Result]:
        for cut in cuts:
            own = rows[firsts[cut.id] : firsts[cut.id] + len(cut.supervisions)]
            yield _with(
                cut, [{name: text for name, text in row.items() if name != "source" and text} for row in own], {}
            )

    settings = {"translations": sha256(path.read_bytes()).hexdigest()}
    return run_stage("translate", source, target, settings, work)


def cost_lines(report: dict[str, Any], prices: Prices | None = None) -> list[str]:
    """What the translations cost, for a person; tokens are those paid by this output, not those of cached answers."""
    figures = report["figures"]
    if not figures:
        return []
    prompt, completion = figures["prompt_tokens"], figures["completion_tokens"]
    lines = [
        f"{figures['n_requests']} sentences asked, {figures['n_cached']} from the cache; {prompt} prompt tokens, "
        f"{completion} completion tokens"
    ]
    if prices:
        lines.append(f"cost {(prompt * prices.prompt + completion * prices.completion) / 1e6:.4f}")
    return lines


def _with(cut: MonoCut, made: Sequence[dict[str, str]], figures: dict[str, int]) -> Result:
    """The recording with more translations; units and links of those replaced are gone."""
    for sentence, more in zip(cut.supervisions, made, strict=True):
        custom = sentence.custom or {}
        kept = {
            name: {k: v for k, v in custom[name].items() if k not in more}
            for name in ("units", "links")
            if name in custom
        }
        sentence.custom = custom_with(sentence, translations={**translations(sentence), **more}, **kept, targets=None)
    return Result(cut.id, stored(cut), figures=figures)


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of a translation file, texts with single blanks."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: give a .tsv or .jsonl with a row for each sentence")
    rows: list[dict[str, str]] = []
    lines = path.read_text(encoding="utf-8").split("\n")
    names = [] if path.suffix == ".jsonl" else lines[0].rstrip("\r").split("\t")
    for number, line in enumerate(lines[bool(names) :], 1 + bool(names)):
        if not line.strip():
            continue
        try:
            row = dict(zip(names, line.rstrip("\r").split("\t"), strict=True)) if names else dict(json.loads(line))
            rows.append({str(name): " ".join(text.split()) for name, text in row.items()})
        except (ValueError, TypeError, AttributeError) as error:
            expected = f"{len(names)} columns ({', '.join(names)})" if names else '{"source": "…", "de": "…"}'
            raise ValueError(f"{path}, line {number}: expected {expected} ({error})") from error
        if "source" not in rows[-1] or len(rows[-1]) < 2:
            raise ValueError(
                f"{path}, line {number if names == [] else 1}: expected 'source' and languages, got {', '.join(rows[-1])}"
            )
        for language in rows[-1].keys() - {"source"}:
            language_name(language)
    return rows


def _first_rows(rows: Sequence[dict[str, str]], source: Path, path: Path) -> dict[str, int]:
    """The first row of each recording. Raises ValueError unless the rows are the corpus's sentences, one for one."""
    sentences: list[tuple[str, str]] = []
    firsts = {}
    for cut in read_corpus(source):
        firsts[cut.id] = len(sentences)
        sentences += [(sentence.id, " ".join(sentence.text.split())) for sentence in cut.supervisions]
    for number, ((name, text), row) in enumerate(zip(sentences, rows, strict=False), 1):
        if text != row["source"]:
            count = (
                ""
                if len(rows) == len(sentences)
                else f" has {len(rows)} translations, {source} {len(sentences)} sentences; it"
            )
            raise ValueError(
                f"{path}{count} differs first at row {number}: source '{row['source']}', sentence {name} of the corpus is "
                f"'{text}'. Make one row for each sentence, in the corpus's order"
            )
    if len(rows) != len(sentences):
        at = min(len(rows), len(sentences))
        first = f"sentence {sentences[at][0]} has none" if at < len(sentences) else f"row {at + 1} is too many"
        raise ValueError(f"{path} has {len(rows)} translations, {source} has {len(sentences)} sentences: {first}")
    return firsts
