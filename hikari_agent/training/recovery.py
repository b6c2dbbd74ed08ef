"""Delay recovery: targets in which the model has fallen silent for a while and is to come back on schedule.

From some slot on the text is late, then follows without WAITs until it has caught up (arXiv:2603.11578). Only what
comes after the silence is learnt: neither the past, nor to be silent.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RecoverySample:
    """A delayed target: `learn[i]` says whether slot i counts in the loss: from slot `pivot + shift` on."""

    tokens: list[int]
    learn: list[bool]
    pivot: int
    shift: int


def delay(tokens: Sequence[int], pivot: int, shift: int, wait: int) -> RecoverySample:
    """WAITs in slots `pivot` .. `pivot + shift` - 1, then every token at the earliest slot that is not before its own.

    `tokens` are slots without the prompt, so the paper's index s is slot s - 4. The length stays: later WAITs are
    consumed. All text fits if `shift` is at most the number of WAITs from the pivot on, since the text then fits even
    if no WAIT is left. No token comes earlier than it was, so causality stays; tokens in consecutive slots stay so,
    but for a word that the pivot cuts. A target that waits anyway at the pivot, for `shift` slots or more, is unchanged.

    >>> delay([5, 93, 6, 93, 93, 7], pivot=1, shift=2, wait=93).tokens
    [5, 93, 93, 6, 93, 7]
    >>> delay([5, 93, 6, 7, 93, 93, 8], pivot=2, shift=2, wait=93).tokens
    [5, 93, 93, 93, 6, 7, 8]

    Raises ValueError if the pivot is no slot, or the shift not between 1 and the WAITs there are.
    """
    n_slots = len(tokens)
    if not 0 <= pivot < n_slots:
        raise ValueError(f"pivot {pivot} is no slot of a target of {n_slots}: draw it from 0 .. {n_slots - 1}")
    late = list(tokens[pivot:])
    n_waits = late.count(wait)
    if not 1 <= shift <= n_waits:
        raise ValueError(
            f"shift {shift} with {n_waits} WAITs from slot {pivot} on: it must be at least 1 and leave room for all text"
        )
    delayed = [*tokens[:pivot], *[wait] * (n_slots - pivot)]
    resumes = free = pivot + shift
    for slot, token in enumerate(late, pivot):
        if token != wait:
            free = max(free, slot)
            delayed[free] = token
            free += 1
    return RecoverySample(delayed, [False] * resumes + [True] * (n_slots - resumes), pivot, shift)


def recovery_sample(
    tokens: Sequence[int], rng: random.Random, wait: int, max_shift: int | None = None
) -> RecoverySample | None:
    """A random `delay`: pivot ~ U(0, N - 1), shift ~ U(1, W - 1), both ends included, W the WAITs from the pivot on.

    `max_shift` bounds the shift, in slots. None if no text or fewer than two WAITs follow the pivot that was drawn:
    nothing to recover, or no room to.

    Raises ValueError for a `max_shift` below 1.
    """
    if max_shift is not None and max_shift < 1:
        raise ValueError(f"max_shift {max_shift}: the text is delayed by at least one slot, or leave it at None")
    if not tokens:
        return None
    pivot = rng.randrange(len(tokens))
    n_left = len(tokens) - pivot
    n_waits = tokens[pivot:].count(wait)
    if n_waits < 2 or n_waits == n_left:
        return None
    most = n_waits - 1 if max_shift is None else min(n_waits - 1, max_shift)
    return delay(tokens, pivot, rng.randint(1, most), wait)
