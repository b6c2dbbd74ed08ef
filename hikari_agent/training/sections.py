"""One training sample: a section of a recording and, for a task, what every decoder row of it should say.

A recording is flattened once (`Timeline`); sections of it are cheap after that, and jitter is drawn anew for each.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .alignment import released
from .interleave import N_PROMPT, interleave
from .recovery import recovery_sample

EDGE_S = 0.02  # a word that begins so little before a section is still heard whole
IGNORED = -100  # torch's cross entropy leaves such labels out


@dataclass(frozen=True)
class Target:
    """What is to be written of a recording in one language: token ids and base time (s) of each word."""

    words: list[list[int]]
    base_s: list[float | None]
    order_s: list[float]  # the base time, an unaligned word's being that of the word before it


@dataclass(frozen=True)
class Timeline:
    """A recording without its samples; every time is in seconds from its start."""

    duration_s: float
    language: str
    word_starts_s: list[float]
    word_ends_s: list[float]
    sentence_starts_s: list[float]
    targets: dict[str, Target]
    phoneme_starts_s: list[float]
    phonemes: list[int]

    @classmethod
    def of(cls, duration_s: float, supervisions: Sequence[Any]) -> Timeline:
        """Flatten a lhotse cut's supervisions after the `interleave` stage (see `hikari_agent.training.corpus`).

        Raises ValueError if one has no targets, or if their languages differ.
        """
        supervisions = sorted(supervisions, key=lambda s: s.start)
        languages = {s.language for s in supervisions}
        if len(languages) > 1:
            raise ValueError(f"a recording in {len(languages)} languages ({', '.join(sorted(languages))}): split it")
        merged: dict[str, tuple[list[list[int]], list[float | None]]] = {}
        starts, ends, phonemes = [], [], []
        for supervision in supervisions:
            custom = supervision.custom or {}
            if "targets" not in custom:
                raise ValueError(
                    f"sentence {supervision.id} has no targets: run `python -m scripts.prepare interleave`"
                )
            for item in supervision.alignment["word"]:
                starts.append(item.start)
                ends.append(item.end)
            for language, target in custom["targets"].items():
                words, base = merged.setdefault(language, ([], []))
                words += target["ids"]
                base += target["ends"]
            phonemes += [(start, label) for label, start in custom.get("phonemes", ())]
        return cls(
            duration_s=duration_s,
            language=languages.pop() if languages else "",
            word_starts_s=starts,
            word_ends_s=ends,
            sentence_starts_s=[s.start for s in supervisions],
            targets={language: Target(words, base, _filled(base)) for language, (words, base) in merged.items()},
            phoneme_starts_s=[start for start, _ in phonemes],
            phonemes=[label for _, label in phonemes],
        )

    def first_whole_word_s(self, start_s: float) -> float:
        """The start of the first source word that is heard from its beginning in a section that starts there."""
        i = bisect_left(self.word_starts_s, start_s - EDGE_S)
        return self.word_starts_s[i] if i < len(self.word_starts_s) else self.duration_s

    def n_words(self, start_s: float, end_s: float) -> int:
        """How many source words end within a section that they also begin in."""
        first = bisect_left(self.word_starts_s, start_s - EDGE_S)
        return max(0, bisect_right(self.word_ends_s, end_s) - first)


@dataclass(frozen=True)
class Sample:
    """One target of a section: the decoder's input (n_rows,) and what each row is to say; IGNORED is not learnt."""

    inputs: list[int]
    labels: list[int]


def draw_start(timeline: Timeline, section_s: float, rng: random.Random, at_sentence: float, min_words: int) -> float:
    """Where a section begins: anywhere, or with the share `at_sentence` just before a sentence.

    One with fewer than `min_words` words in it is drawn again, twenty times at most.
    """
    latest = max(0.0, timeline.duration_s - section_s)
    start = 0.0
    for _ in range(20):
        if at_sentence and rng.random() < at_sentence and timeline.sentence_starts_s:
            start = min(latest, max(0.0, rng.choice(timeline.sentence_starts_s) - rng.uniform(0.0, 0.4)))
        else:
            start = rng.uniform(0.0, latest)
        if timeline.n_words(start, start + section_s) >= min_words:
            break
    return start


def sample(
    timeline: Timeline,
    language: str,
    start_s: float,
    n_rows: int,
    prompt: Sequence[int],
    wait: int,
    rng: random.Random,
    *,
    speed: float = 1.0,
    jitter_s: float = 0.2,
    recovery_share: float = 0.0,
    max_shift: int | None = None,
    dilation: int = 4,
) -> Sample:
    """What a section of `n_rows` rows is to say in `language`, beginning `start_s` into the recording.

    Words whose source began before the section are left out, as are those that would be said after it. `speed` is how
    much faster the section is played. With the share `recovery_share` it is a sample of delay recovery.
    """
    target = timeline.targets[language]
    heard_from = timeline.first_whole_word_s(start_s)
    heard_to = start_s + n_rows * 0.02 * dilation * speed
    # Corpora round: the end of the word before may lie a hair behind the start of the first whole one.
    chosen = [i for i, time in enumerate(target.order_s) if heard_from + EDGE_S < time <= heard_to]
    words = [target.words[i] for i in chosen]
    base = [target.base_s[i] for i in chosen]
    base = [None if time is None else (time - start_s) / speed for time in base]
    releases = released(base, lambda: rng.uniform(0.0, jitter_s)) if base else []
    n_slots = n_rows - N_PROMPT + 1
    slots = interleave(words, releases, n_slots, wait, dilation).tokens
    labels = slots
    if recovery_share and rng.random() < recovery_share:
        delayed = recovery_sample(slots, rng, wait, max_shift)
        if delayed is not None:
            slots = delayed.tokens
            labels = [token if learn else IGNORED for token, learn in zip(slots, delayed.learn, strict=True)]
    return Sample([*prompt, *slots[:-1]], [IGNORED] * (N_PROMPT - 1) + labels)


def phoneme_labels(
    timeline: Timeline, start_s: float, n_frames: int, speed: float = 1.0, delay_s: float = 0.04
) -> list[int]:
    """The phoneme class each encoder frame (20 ms) is to name: what sounded `delay_s` before the frame's end.

    All IGNORED for a recording without phonemes.
    """
    if not timeline.phonemes:
        return [IGNORED] * n_frames
    labels = []
    i = bisect_right(timeline.phoneme_starts_s, start_s + (0.02 - delay_s) * speed) - 1
    last = len(timeline.phonemes) - 1
    for frame in range(n_frames):
        time = start_s + ((frame + 1) * 0.02 - delay_s) * speed
        while i < last and timeline.phoneme_starts_s[i + 1] <= time:
            i += 1
        labels.append(timeline.phonemes[i] if i >= 0 else 0)
    return labels


def _filled(base: Sequence[float | None]) -> list[float]:
    filled: list[float] = []
    known = next((time for time in base if time is not None), 0.0)
    for time in base:
        known = known if time is None else time
        filled.append(known)
    return filled
