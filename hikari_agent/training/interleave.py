"""What each decoder row is to say: tokens in the earliest slots that have heard enough, WAIT in all others.

Slot k is the decoder position k + 4, behind the prompt (arXiv:2603.11578). The row that predicts it, k + 3, has heard
`dilation` encoder frames of 20 ms for each row before it: the rule of `hikari_agent.layers.visible_frames`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

N_PROMPT = 4  # positions before slot 0: hikari_agent.tokens.Vocabulary.prompt
FRAME_MS = 20  # one encoder frame


@dataclass(frozen=True)
class Slots:
    """A target of one section: a token for every slot, and how its words fared.

    `starts[i]` is the slot of word i's first token and `lags_s[i]` how long after its release that slot is, in
    seconds, both for the words that fit.
    """

    tokens: list[int]
    starts: list[int]
    lags_s: list[float]
    n_dropped_words: int
    n_dropped_tokens: int
    dilation: int


def slot_time_s(slot: int, dilation: int = 4) -> float:
    """The audio in seconds that the row predicting `slot` has heard.

    >>> slot_time_s(0), slot_time_s(1)
    (0.24, 0.32)
    """
    row = slot + N_PROMPT - 1
    # With dilation 1 the released mask shows a row one frame more.
    return FRAME_MS * (dilation * row if dilation > 1 else row + 1) / 1000


@lru_cache(maxsize=512)  # sections of every length up to 30 s
def _slot_times_s(n_slots: int, dilation: int) -> tuple[float, ...]:
    return tuple(slot_time_s(slot, dilation) for slot in range(n_slots))


def interleave(
    words: Sequence[Sequence[int]], releases_s: Sequence[float], n_slots: int, wait: int, dilation: int = 4
) -> Slots:
    """Every word at the earliest slot that is causal and behind the word before it, its tokens in consecutive slots.

    `words` are the tokens of each word in order, `releases_s` their release times. The first word that does not fit
    whole into `n_slots` is dropped, with all after it.

    >>> interleave([[5, 6], [7]], [0.3, 0.3], n_slots=5, wait=93).tokens
    [93, 5, 6, 7, 93]

    Raises ValueError if words and times differ in number, if a word is empty or has the WAIT token in it, or
    if a time is NaN.
    """
    if len(words) != len(releases_s):
        raise ValueError(f"{len(words)} words but {len(releases_s)} release times: give one time for each word")
    if any(map(math.isnan, releases_s)):
        raise ValueError("a release time is NaN, so nothing says when its word was heard: leave this target out")
    times_s = _slot_times_s(n_slots, dilation)
    tokens = [wait] * n_slots
    starts: list[int] = []
    lags_s: list[float] = []
    free = 0
    for word, release in zip(words, releases_s, strict=True):
        if not word or wait in word:
            raise ValueError(
                f"word {len(starts)} is {list(word)}: a word has at least one token and none that means WAIT ({wait}). "
                "Leave out the empty ones, and '~' of the text"
            )
        start = bisect_left(times_s, release, free)
        end = start + len(word)
        if end > n_slots:
            break
        tokens[start:end] = word
        starts.append(start)
        lags_s.append(times_s[start] - release)
        free = end
    dropped = words[len(starts) :]
    return Slots(tokens, starts, lags_s, len(dropped), sum(map(len, dropped)), dilation)


def read_back(tokens: Sequence[int], wait: int) -> list[int]:
    """The text tokens of a target: all but the WAITs.

    >>> read_back([93, 5, 6, 93, 7], wait=93)
    [5, 6, 7]
    """
    return [token for token in tokens if token != wait]


@dataclass(frozen=True)
class Statistics:
    """What the targets of a corpus are made of. Sums, so those of its parts add up: `sum(parts, Statistics())`."""

    n_slots: int = 0
    n_waits: int = 0
    n_words: int = 0
    n_dropped_words: int = 0
    n_dropped_tokens: int = 0
    n_lags: int = 0
    lag_sum_s: float = 0.0

    @classmethod
    def of(cls, slots: Slots, base_s: Sequence[float | None], wait: int) -> Statistics:
        """Those of one target. For `mean_lag_s` to be the floor, make it at zero jitter.

        `base_s[i]` is the end of word i's source word in seconds (`alignment.base_times`); a word with None has no
        lag. Raises ValueError if they are not as many as the words were.
        """
        n_words = len(slots.starts) + slots.n_dropped_words
        if len(base_s) != n_words:
            raise ValueError(f"{len(base_s)} base times but {n_words} words: give those that the target was made from")
        placed = zip(slots.starts, base_s[: len(slots.starts)], strict=True)
        lags_s = [slot_time_s(start, slots.dilation) - base for start, base in placed if base is not None]
        return cls(
            n_slots=len(slots.tokens),
            n_waits=slots.tokens.count(wait),
            n_words=n_words,
            n_dropped_words=slots.n_dropped_words,
            n_dropped_tokens=slots.n_dropped_tokens,
            n_lags=len(lags_s),
            lag_sum_s=sum(lags_s),
        )

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    @property
    def wait_share(self) -> float | None:
        """The share of slots that say WAIT; None without slots."""
        return self.n_waits / self.n_slots if self.n_slots else None

    @property
    def dropped_share(self) -> float | None:
        """The share of text tokens that did not fit into the slots; None without text."""
        n_tokens = self.n_slots - self.n_waits + self.n_dropped_tokens
        return self.n_dropped_tokens / n_tokens if n_tokens else None

    @property
    def mean_lag_s(self) -> float | None:
        """Seconds from the end of a word's source word to the slot of its first token; None without aligned words.

        At zero jitter this is the lag floor: what clock, order and length of the target cost a perfect model.
        """
        return self.lag_sum_s / self.n_lags if self.n_lags else None
