"""Words as a recogniser hears them, cut into sentences, and their times carried over to a text that is known better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LONGEST_S = 30.0  # a "sentence" beyond this is cut at its longest pause: Whisper's window
# A full stop behind these ends no sentence.
_ENGLISH = "mr mrs ms dr prof st sr jr vs etc e.g i.e cf fig vol approx dept gen sen rep"
ABBREVIATIONS = frozenset(f"{_ENGLISH} hr fr z.b d.h bzw ca nr".split())
_FINAL = re.compile(r"[.!?…。！？]+[\"'”’»)\]]*$")


@dataclass(frozen=True)
class TimedText:
    """A word as it is written, and when it is heard, in s from the recording's start."""

    text: str
    start_s: float
    end_s: float


def joined_pieces(pieces: Sequence[TimedText]) -> list[TimedText]:
    """Whole blank-separated words out of pieces of which those that begin one have a blank before them.

    >>> [w.text for w in joined_pieces([TimedText(" ill", 0, 1), TimedText("-disposed.", 1, 2), TimedText(" He", 2, 3)])]
    ['ill-disposed.', 'He']
    """
    words: list[TimedText] = []
    for piece in pieces:
        text = piece.text.strip()
        if not text:
            continue
        if words and not piece.text[0].isspace():
            words[-1] = TimedText(words[-1].text + text, words[-1].start_s, piece.end_s)
        else:
            words += [TimedText(part, piece.start_s, piece.end_s) for part in text.split()]
    return words


def in_order(words: Sequence[TimedText], duration_s: float) -> list[TimedText]:
    """The words with times that never fall and lie within the recording."""
    ordered, start, end = [], 0.0, 0.0
    for word in words:
        start = min(max(start, word.start_s), duration_s)
        end = min(max(end, word.end_s, start), duration_s)
        ordered.append(TimedText(word.text, start, end))
    return ordered


def split(words: Sequence[TimedText], pause_s: float | None = None) -> list[list[TimedText]]:
    """Sentences: up to each word with final punctuation, and up to each pause of `pause_s` or more if that is given."""
    sentences: list[list[TimedText]] = [[]]
    for i, word in enumerate(words):
        sentences[-1].append(word)
        follower = words[i + 1] if i + 1 < len(words) else None
        if follower and (
            ends_sentence(word.text, follower.text)
            or (pause_s is not None and follower.start_s - word.end_s >= pause_s)
        ):
            sentences.append([])
    return [part for sentence in sentences if sentence for part in _within(sentence)]


def ends_sentence(word: str, follower: str) -> bool:
    """Whether a sentence ends with `word`, before `follower`.

    >>> ends_sentence("them.", "He"), ends_sentence("Mr.", "John"), ends_sentence("J.", "Smith"), ends_sentence("well…", "he")
    (True, False, False, False)
    """
    final = _FINAL.search(word)
    if not final:
        return False
    stem = word[: final.start()].lstrip("\"'“‘«([").casefold()
    if final[0].startswith(".") and (stem in ABBREVIATIONS or (len(stem) == 1 and stem.isalpha() and stem != "i")):
        return False
    first = next((c for c in follower if c.isalnum()), "")
    return not first.islower()


def times_for(words: Sequence[str], heard: Sequence[TimedText], duration_s: float) -> tuple[list[TimedText], int]:
    """When each of `words` is heard, and how many of them were recognised.

    Recognised words have the times of the word heard; those between two of them share the time there, each by its length.
    """
    from rapidfuzz.distance import Levenshtein

    text, known = [_plain(word) for word in words], [_plain(word.text) for word in heard]
    timed: list[TimedText] = []
    n_matched = 0
    for is_match, (i0, i1), (j0, j1) in _blocks(Levenshtein.opcodes(text, known)):
        if is_match:
            n_matched += i1 - i0
            timed += [TimedText(words[i], heard[j].start_s, heard[j].end_s)
                      for i, j in zip(range(i0, i1), range(j0, j1), strict=True)]  # fmt: skip
        elif i1 > i0:
            before = timed[-1].end_s if timed else 0.0
            after = heard[j1].start_s if j1 < len(heard) else duration_s
            start, end = (heard[j0].start_s, heard[j1 - 1].end_s) if j1 > j0 else (before, after)
            timed += _shared(words[i0:i1], start, max(start, end))
    return in_order(timed, duration_s), n_matched


def _within(sentence: list[TimedText]) -> Iterator[list[TimedText]]:
    """The sentence, or its parts if it is longer than `LONGEST_S`."""
    if len(sentence) < 2 or sentence[-1].end_s - sentence[0].start_s <= LONGEST_S:
        yield sentence
        return
    pauses = [after.start_s - before.end_s for before, after in pairwise(sentence)]
    # Of equal pauses the one in the middle, so that the parts get short soon.
    cut = 1 + max(range(len(pauses)), key=lambda i: (round(pauses[i], 2), -abs(i - len(pauses) // 2)))
    yield from _within(sentence[:cut])
    yield from _within(sentence[cut:])


def _plain(word: str) -> str:
    return "".join(c for c in word.casefold() if c.isalnum()) or word


def _blocks(
    operations: Iterable[Any],
) -> Iterator[tuple[bool, tuple[int, int], tuple[int, int]]]:
    """Stretches that match or not, with neighbours that do not made one: (is_match, source span, heard span)."""
    block: list[int] | None = None
    for tag, i0, i1, j0, j1 in operations:
        if tag == "equal":
            if block:
                yield False, (block[0], block[1]), (block[2], block[3])
            yield True, (i0, i1), (j0, j1)
            block = None
        else:
            block = [block[0], i1, block[2], j1] if block else [i0, i1, j0, j1]
    if block:
        yield False, (block[0], block[1]), (block[2], block[3])


def _shared(words: Sequence[str], start_s: float, end_s: float) -> list[TimedText]:
    total = sum(map(len, words))
    times, at = [], 0
    for word in words:
        before, at = at, at + len(word)
        times.append(TimedText(word, *(start_s + (end_s - start_s) * n / total for n in (before, at))))
    return times
