"""When each target word may be said: release times out of source word times and a word alignment (arXiv:2603.11578).

A preparation stage stores `base_times`, which are exact; training draws `released` from them anew for every sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence


def source_of_each_target(links: Iterable[tuple[int, int]], n_source: int, n_target: int) -> list[int | None]:
    """The last source word aligned to each target word, None where there is none: all it is made from has been heard.

    `links` are (source, target) word indices, many to many, in any order.

    >>> source_of_each_target([(0, 1), (3, 1), (2, 2)], n_source=4, n_target=3)
    [None, 3, 2]

    Raises ValueError for a link beyond the words there are.
    """
    sources: list[int | None] = [None] * n_target
    for source, target in links:
        if not (0 <= source < n_source and 0 <= target < n_target):
            raise ValueError(
                f"link ({source}, {target}) is beyond the words there are, {n_source} source and {n_target} target words "
                "counted from 0: align the same split into words that is given here, and put the source first"
            )
        known = sources[target]
        sources[target] = source if known is None else max(known, source)
    return sources


def base_times(source_ends_s: Sequence[float], sources: Sequence[int | None]) -> list[float | None]:
    """The end in seconds of each target word's source word: no jitter, order not yet kept, None where unaligned.

    `source_ends_s` are the ends of the source words, `sources` is made by `source_of_each_target`; to transcribe, it
    is `range(len(source_ends_s))`. If no target word is aligned at all, the first waits for the last source word.

    >>> base_times([0.5, 0.9, 1.2], [None, 2, 0, None])
    [None, 1.2, 0.5, None]
    >>> base_times([0.5, 0.9, 1.2], [None, None])
    [1.2, None]

    Raises ValueError if the ends run backwards or are no times, if a source is not among them, or if there is target
    text without any source word.
    """
    before = 0.0
    for i, end in enumerate(source_ends_s):
        if not before <= end < math.inf:  # NaN too
            earlier = f"before word {i - 1} at {before} s" if i else "which is no time of a recording"
            raise ValueError(
                f"source word {i} ends at {end} s, {earlier}: word times must not run backwards. Sort the words by "
                "their ends and align them again, or leave this segment out"
            )
        before = end
    base: list[float | None] = []
    for target, source in enumerate(sources):
        if source is not None and not 0 <= source < len(source_ends_s):
            raise ValueError(
                f"target word {target} is aligned to source word {source}, but {len(source_ends_s)} words have times: "
                "align the words that were timed"
            )
        base.append(None if source is None else source_ends_s[source])
    if base and all(time is None for time in base):
        if not source_ends_s:
            raise ValueError(
                f"{len(base)} target words but no source word with a time, so nothing says when they may be written: "
                "leave this segment out"
            )
        base[0] = source_ends_s[-1]
    return base


def released(base_s: Sequence[float | None], jitter_s: Callable[[], float]) -> list[float]:
    """Release times in seconds, never falling: base time + jitter, drawn once for each aligned word, in order.

    The paper's jitter is `lambda: rng.uniform(0.0, 0.2)`. A word without a base time is released with the word before
    it; one at the beginning with the first aligned word, as nothing has been heard that it could stand for. Neither
    draws a jitter of its own.

    >>> released([None, 1.2, 0.5, None, 1.5], lambda: 0.1)
    [1.3, 1.3, 1.3, 1.3, 1.6]

    Raises ValueError for a jitter below 0 or if there are words but no base time.
    """
    releases: list[float] = []
    latest = -math.inf
    n_leading = 0
    for base in base_s:
        if base is not None:
            jitter = jitter_s()
            if not jitter >= 0.0:
                raise ValueError(f"jitter of {jitter} s: a word said before it was heard. Draw it from 0 or above")
            latest = max(latest, base + jitter)
        elif latest == -math.inf:
            n_leading += 1
            continue
        releases.append(latest)
    if n_leading:
        if not releases:
            raise ValueError(
                f"none of {n_leading} words has a base time: make them with base_times, which gives the first word the "
                "end of the source"
            )
        releases = releases[:1] * n_leading + releases
    return releases


def release_times(
    source_ends_s: Sequence[float], sources: Sequence[int | None], jitter_s: Callable[[], float]
) -> list[float]:
    """`released` of `base_times`: when each target word may be said, in seconds, never falling.

    >>> release_times([0.5, 0.9], [1, None, 0], lambda: 0.0)
    [0.9, 0.9, 0.9]
    """
    return released(base_times(source_ends_s, sources), jitter_s)
