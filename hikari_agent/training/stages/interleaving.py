"""Stage `interleave`: the token ids of every written word and its base release time, for each language."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...tokens import WAIT, WAIT_TEXT, Vocabulary
from ..alignment import base_times, released, source_of_each_target
from ..corpus import WordTargets, custom_with, links, stored, targets, units, words
from ..interleave import Statistics, interleave, slot_time_s
from ..vocabulary import unit_text
from .resumable import Result, run_stage, spread

if TYPE_CHECKING:
    from lhotse import MonoCut, SupervisionSegment

WINDOW_S = 30.0  # words said later than this behind their sentence are counted


class WordIds:
    """Words to token ids, each word once: `ids(word, language)`."""

    def __init__(self, folder: Path) -> None:
        """Raises FileNotFoundError or ValueError if the folder has no multilingual Whisper tokenizer."""
        from tokenizers import Tokenizer

        self.vocabulary = Vocabulary.from_folder(folder)
        self.languages = self.vocabulary.languages()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._known: dict[str, list[int]] = {}

    def __call__(self, word: str, language: str) -> list[int]:
        """None are WAIT or special; an empty list if nothing is left of the word."""
        text = unit_text(word, language)
        if text not in self._known:
            ids = self._tokenizer.encode(text.replace(WAIT_TEXT, ""), add_special_tokens=False).ids
            self._known[text] = (
                [i for i in ids if i != WAIT and self.vocabulary.token_bytes(i)] if text.strip(" ~") else []
            )
        return self._known[text]


def interleave_corpus(source: Path, target: Path, tokenizer: Path, dilation: int = 4, jobs: int = 1) -> dict[str, Any]:
    """Corpus `source` with `custom["targets"]` as `target`; returns the report.

    `tokenizer` is a folder with Whisper's tokenizer.json. Raises ValueError for a language that it has no token for,
    for a sentence without links, or for links beyond its words.
    """
    _word_ids(tokenizer)
    checksum = sha256((tokenizer / "tokenizer.json").read_bytes()).hexdigest()
    work = functools.partial(interleaved, tokenizer=tokenizer, dilation=dilation)
    settings = {"tokenizer": checksum, "dilation": dilation}
    return run_stage("interleave", source, target, settings, lambda cuts: spread(work, cuts, jobs), needs=("words",))


def interleaved(cut: MonoCut, tokenizer: Path, dilation: int = 4) -> Result:
    """One recording with its targets, and what they are made of at zero jitter."""
    ids = _word_ids(tokenizer)
    languages = {language for sentence in cut.supervisions for language in (sentence.language, *units(sentence))}
    if unknown := sorted(languages - set(ids.languages)):
        raise ValueError(
            f"recording {cut.id}: unknown language '{unknown[0]}', {tokenizer} has no token for it. Known: "
            f"{', '.join(ids.languages)}"
        )
    for sentence in cut.supervisions:
        missing = sorted(languages - {sentence.language, *units(sentence)})
        if missing:
            raise ValueError(
                f"recording {cut.id}, sentence {sentence.id} has no {missing[0]}, others have: align it again"
            )
        sentence.custom = custom_with(sentence, targets=sentence_targets(sentence, ids))
    figures = (
        {language: _figures(cut, language, dilation) for language in sorted(languages)} if cut.supervisions else {}
    )
    return Result(cut.id, stored(cut), figures=figures)


def sentence_targets(sentence: SupervisionSegment, ids: WordIds) -> dict[str, WordTargets]:
    """What is to be written for one sentence: its own words, and each translation's units at their source words' ends."""
    items = words(sentence)
    ends = [round(item.end, 4) for item in items]
    for i in range(1, len(ends)):
        ends[i] = max(ends[i], ends[i - 1])  # corpora may store a millisecond backwards
    made = {sentence.language: _encoded([item.symbol for item in items], ends, sentence.language, ids)}
    for language, pieces in units(sentence).items():
        if language not in links(sentence):
            raise ValueError(
                f"sentence {sentence.id} has no links into {language}: run `python -m scripts.prepare align` first"
            )
        sources = source_of_each_target(links(sentence)[language], len(items), len(pieces))
        made[language] = _encoded(pieces, base_times(ends, sources), language, ids)
    return made


def figure_lines(report: Mapping[str, Any]) -> list[str]:
    """What the targets are made of, for a person, by language."""
    lines = []
    for language, figure in sorted(report["figures"].items()):
        statistics = Statistics(**figure["statistics"])
        n_tokens = statistics.n_slots - statistics.n_waits + statistics.n_dropped_tokens
        lag = "no aligned words" if statistics.mean_lag_s is None else f"lag floor {statistics.mean_lag_s:.2f} s"
        lines.append(
            f"{language}: WAIT {statistics.wait_share or 0:.1%} of {statistics.n_slots} slots, {lag}, {n_tokens} tokens, "
            f"of which {statistics.n_dropped_tokens} beyond the end of their recording and {figure['n_late_tokens']} later "
            f"than {WINDOW_S:.0f} s behind their sentence; {figure['n_unaligned_words']} of {statistics.n_words} words unaligned"
        )
    return lines


def _encoded(pieces: list[str], ends: list[float | None] | list[float], language: str, ids: WordIds) -> WordTargets:
    """The words that have tokens; a word without any (a lone "~") leaves its time behind."""
    kept = [(tokens, end) for piece, end in zip(pieces, ends, strict=True) if (tokens := ids(piece, language))]
    encoded: WordTargets = {"ids": [tokens for tokens, _ in kept], "ends": [end for _, end in kept]}
    if kept and all(end is None for end in encoded["ends"]):
        encoded["ends"][0] = max(end for end in ends if end is not None)
    return encoded


def _figures(cut: MonoCut, language: str, dilation: int) -> dict[str, Any]:
    """The whole recording as one stretch of slots, which show what clock and order cost."""
    own = [targets(sentence)[language] for sentence in cut.supervisions]
    tokens = [word for target in own for word in target["ids"]]
    base = [end for target in own for end in target["ends"]]
    sentence_ends = [words(sentence)[-1].end for sentence, target in zip(cut.supervisions, own, strict=True)
                     for _ in target["ids"]]  # fmt: skip
    releases = released(base, lambda: 0.0) if base else []
    slot_s = slot_time_s(1, dilation) - slot_time_s(0, dilation)
    n_slots = max(0, math.floor((cut.duration - slot_time_s(0, dilation)) / slot_s) + 1)
    slots = interleave(tokens, releases, n_slots, WAIT, dilation)
    longer = interleave(tokens, releases, n_slots + math.ceil(WINDOW_S / slot_s), WAIT, dilation)
    late = longer.n_dropped_tokens + sum(
        len(word)
        for word, start, end in zip(tokens, longer.starts, sentence_ends, strict=False)
        if slot_time_s(start, dilation) > end + WINDOW_S
    )
    return {
        "statistics": asdict(Statistics.of(slots, base, WAIT)),
        "n_late_tokens": late,
        "n_unaligned_words": base.count(None),
    }


@functools.lru_cache(maxsize=1)
def _word_ids(tokenizer: Path) -> WordIds:
    return WordIds(tokenizer)
