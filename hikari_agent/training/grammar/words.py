"""What the renderers write: words with the index of the English word each waits for, and punctuation attached."""

from __future__ import annotations

Words = list[tuple[str, int]]  # -1: the word has no English counterpart


def attach(words: Words, mark: str) -> Words:
    """The words with the mark at the end of the last, once."""
    text, at = words[-1]
    if not text.endswith(mark):
        words[-1] = (text + mark, at)
    return words


def finish(words: Words, mark: str) -> Words:
    """A whole sentence: a capital at its start, the mark at its end in place of a comma."""
    text, at = words[-1]
    words[-1] = (text.removesuffix(",") + mark, at)
    text, at = words[0]
    words[0] = (text[0].upper() + text[1:], at)
    return words
