"""Endless English sentences with German, Japanese and Russian translations and exact word alignments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from . import english, german, japanese, russian
from .drawing import draw

LANGUAGES = ("de", "ja", "ru")
SHORTEST, SHORT, LONGEST = 4, 6, 16  # English words; half of the sentences that are SHORT or below are dropped


@dataclass(frozen=True)
class AlignedWord:
    """A target word with its punctuation; in Japanese a unit like a morpheme.

    `source` is the index of the last English word that must be heard before the word is known; None: it has no
    counterpart and follows the word before it.
    """

    text: str
    source: int | None


@dataclass(frozen=True)
class ParallelSentence:
    """An English sentence and its translations by language."""

    source: tuple[str, ...]
    targets: dict[str, tuple[AlignedWord, ...]]

    def text(self, language: str) -> str:
        """The sentence as it is written, of "en" or of a target language."""
        if language == "en":
            return " ".join(self.source)
        return ("" if language == "ja" else " ").join(word.text for word in self.targets[language])


def sentence(rng: random.Random) -> ParallelSentence:
    """Draw one sentence."""
    while True:
        meaning = draw(rng)
        source = english.render(meaning)
        if SHORTEST <= len(source) <= LONGEST and (len(source) > SHORT or rng.random() < 0.5):
            break
    targets = {
        language: tuple(
            AlignedWord(text, None if at is None or at < 0 else at) for text, at in renderer.render(meaning)
        )
        for language, renderer in zip(LANGUAGES, (german, japanese, russian), strict=True)
    }
    return ParallelSentence(source, targets)


def sentences(seed: int) -> Iterator[ParallelSentence]:
    """Endless sentences, the same for a seed on every machine."""
    rng = random.Random(seed)
    while True:
        yield sentence(rng)


def talk(rng: random.Random, n_sentences: int) -> list[ParallelSentence]:
    """So many sentences in a row, no two the same."""
    found: dict[tuple[str, ...], ParallelSentence] = {}
    while len(found) < n_sentences:
        one = sentence(rng)
        found.setdefault(one.source, one)
    return list(found.values())
