"""When to write: pure functions from what a model proposes to how much of it may be said now.

Each takes the proposal for the audio so far, on top of what was already said, and returns how many of its tokens or
words to commit. Nothing here knows a model.
"""

from __future__ import annotations

from collections.abc import Sequence


def at_end(n_proposed: int, is_final: bool) -> int:
    """Offline: say nothing until the audio is over, then everything.

    >>> at_end(7, is_final=False), at_end(7, is_final=True)
    (0, 7)
    """
    return n_proposed if is_final else 0


def next_window(attended_frames: Sequence[int], n_kept: int, n_frames: int) -> float:
    """Offline, where in a window of `n_frames` the next one begins, given how many of its tokens stay.

    Before the first token that goes, halfway from the last that stays; if all stay, where the last ones looked.

    >>> next_window([10, 30, 50], n_kept=2, n_frames=60), next_window([10, 30, 50], n_kept=3, n_frames=60)
    (40.0, 50)
    """
    if 0 < n_kept < len(attended_frames):
        return (attended_frames[n_kept - 1] + attended_frames[n_kept]) / 2
    return max(attended_frames[-5:], default=n_frames)


def alignatt(attended_frames: Sequence[int], n_frames: int, frame_threshold: int, is_final: bool) -> int:
    """AlignAtt: how many tokens come before the first that looks at the newest audio (Papi et al. 2023, 2305.11408).

    `attended_frames[i]` is the encoder frame that token i attends to most, of `n_frames` heard so far. A token whose
    frame lies within `frame_threshold` of the end may still change, and so may all after it; at the end all stand.

    >>> alignatt([3, 20, 46, 47], n_frames=50, frame_threshold=4, is_final=False)
    2
    """
    if frame_threshold < 0:
        raise ValueError(f"frame threshold {frame_threshold}: expected 0 or more encoder frames")
    if is_final:
        return len(attended_frames)
    limit = n_frames - frame_threshold
    return next((i for i, frame in enumerate(attended_frames) if frame >= limit), len(attended_frames))


def local_agreement(proposals: Sequence[Sequence[str]], n: int, is_final: bool) -> int:
    """LocalAgreement-n: how many words the last `n` proposals have in common at their beginning (Liu et al. 2020).

    `proposals` are the word lists of successive chunks, oldest first, each on top of what is already said.

    >>> local_agreement([["the", "cat", "sat"], ["the", "cat", "is", "on"]], n=2, is_final=False)
    2
    """
    if n < 1:
        raise ValueError(f"LocalAgreement-{n}: at least one proposal has to agree")
    if is_final:
        return len(proposals[-1]) if proposals else 0
    if len(proposals) < n:
        return 0
    columns = zip(*proposals[-n:], strict=False)
    return next((i for i, words in enumerate(columns) if len(set(words)) > 1), min(map(len, proposals[-n:])))


def wait_k(n_proposed: int, n_units: int, k: int, n_written: int, is_final: bool) -> int:
    """wait-k: after `k` units of source one word may be written for each (Ma et al. 2019); how many more now.

    `n_units` source units were heard, `n_written` words were written before.

    >>> wait_k(n_proposed=5, n_units=4, k=3, n_written=1, is_final=False)
    1
    """
    if k < 1:
        raise ValueError(f"wait-{k}: k is a number of source units, at least 1")
    if is_final:
        return n_proposed
    return min(n_proposed, max(0, n_units - k + 1 - n_written))
