"""What a speech synthesiser gives here: samples, when each word sounds, and which phoneme sounds when.

Every engine's phonemes are mapped to one closed inventory, so that a frame classifier can be trained on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...audio import SAMPLE_RATE

SILENCE = "_"
OTHER = "other"
PEAK = 0.99  # louder speech is scaled down to this

# Index = class id, so the order is part of every checkpoint with a phoneme head: append only. ARPAbet, in lower case, with
# the classes that British English adds: oh (lot), ii (happy), ear, air, ure, ar (start), or (north), fire, axr (letter).
PHONEMES: tuple[str, ...] = (
    SILENCE,
    *("p", "b", "t", "d", "k", "g", "dx", "q", "ch", "jh", "f", "v", "th", "dh", "s", "z", "sh", "zh", "hh", "x"),
    *("m", "n", "ng", "l", "r", "w", "y", "el", "en"),
    *("iy", "ii", "ih", "ix", "eh", "ae", "aa", "oh", "ao", "ah", "uh", "uw", "er", "axr", "ax"),
    *("ey", "ay", "oy", "aw", "ow", "ear", "air", "ure", "ar", "or", "fire"),
    OTHER,
)


@dataclass(frozen=True)
class Speech:
    """A sentence that was spoken. Times are in seconds from the first sample."""

    samples: np.ndarray  # float32 (n,), 16 kHz, in [-1, 1]
    words: tuple[tuple[float, float], ...]  # start, end of each input word; neither ever decreases
    phonemes: tuple[tuple[str, float], ...]  # label (one of PHONEMES), start; in time order; empty: the engine has none

    @property
    def seconds(self) -> float:
        """The length of the audio."""
        return len(self.samples) / SAMPLE_RATE


class Voice(Protocol):
    """One speaker. The same voice and words give the same samples, whatever was spoken in between."""

    @property
    def name(self) -> str:
        """The speaker with all parameters, in one stable string."""

    @property
    def engine(self) -> str:
        """The synthesiser: "espeak", "flite" or "piper"."""

    def speak(self, words: Sequence[str]) -> Speech:
        """Speak one sentence; words as written, punctuation attached: "Yes," "I" "can."

        Raises ValueError if the words are not speakable one by one, or their times are not certain: drop that sentence.
        """


def checked_words(words: Sequence[str]) -> list[str]:
    """The words as a list. Raises ValueError if there are none, or one is empty, holds a blank, or cannot be spoken."""
    if isinstance(words, str):
        raise ValueError(f"words is the string {words!r}; expected a sequence of words: pass {words!r}.split()")
    if not words:
        raise ValueError("no words to speak: leave empty sentences out")
    for word in words:
        if not word or any(c.isspace() for c in word):
            raise ValueError(f"{word!r} is not one word in {' '.join(words)!r}: split the sentence at white space")
        if not any(c.isalnum() for c in word):
            raise ValueError(
                f"{word!r} has nothing to speak in {' '.join(words)!r}: attach punctuation to the word before it"
            )
    return list(words)


def to_16_khz(samples: np.ndarray, sample_rate: float) -> np.ndarray:
    """float32 (n,) at `sample_rate` Hz -> float32 (m,) at 16 kHz, peak at most 0.99."""
    import soxr

    samples = np.ascontiguousarray(samples, dtype=np.float32)
    if sample_rate != SAMPLE_RATE and samples.size:
        samples = soxr.resample(samples, sample_rate, SAMPLE_RATE, quality="HQ")
    peak = float(np.abs(samples).max(initial=0.0))
    return samples * np.float32(PEAK / peak) if peak > PEAK else samples


def checked_speech(
    samples: np.ndarray, words: Sequence[tuple[float, float]], phonemes: Sequence[tuple[str, float]], sentence: str
) -> Speech:
    """A Speech whose times are in order and within the audio. Raises ValueError naming `sentence` if they are not."""
    seconds = len(samples) / SAMPLE_RATE
    starts, ends = [start for start, _ in words], [end for _, end in words]
    if any(a > b for a, b in zip(starts, ends, strict=True)) or starts != sorted(starts) or ends != sorted(ends):
        raise ValueError(f"the word times of {sentence!r} are not in order: {list(words)}; drop the sentence")
    if words and (starts[0] < 0 or starts[-1] >= seconds):
        raise ValueError(f"a word of {sentence!r} lies outside its {seconds:.2f} s of audio; drop the sentence")
    ordered = tuple((start, min(end, seconds)) for start, end in words)
    return Speech(samples, ordered, tuple(phonemes))
