"""Whole numbers from 2 to 999 in words: what each part of an English number makes known in the other languages."""

from __future__ import annotations

import functools

from .lexicon import NUMERALS


@functools.cache
def parts(number: int) -> tuple[int, ...]:
    """The hundreds, tens and ones that have a word of their own.

    >>> parts(215), parts(43)
    ((200, 15), (40, 3))
    """
    hundreds, rest = number // 100 * 100, number % 100
    pieces = (hundreds, rest) if rest < 20 else (hundreds, rest // 10 * 10, rest % 10)
    return tuple(piece for piece in pieces if piece)


def english(part: int) -> list[str]:
    return NUMERALS[part].en.split()


@functools.cache
def german(number: int) -> str:
    """One word: 125 is einhundertfünfundzwanzig. Not for numbers that end in 01, which agree with what they count."""
    hundreds, rest = number // 100 * 100, number % 100
    tens, ones = (0, rest) if rest < 20 else (rest // 10 * 10, rest % 10)
    words = [NUMERALS[part].de for part in (hundreds, ones, tens) if part]
    if tens and ones:
        words.insert(-1, "und")
    return "".join(words)


def japanese(part: int) -> str:
    return NUMERALS[part].ja


def russian(part: int, gender: str, form: str) -> str:
    """`form` is nom, acc (a thing, or the feminine of one) or gen (the accusative of a person)."""
    if part == 1:
        if gender == "f":
            return "одна" if form == "nom" else "одну"
        return "одного" if form == "gen" else {"m": "один", "n": "одно"}[gender]
    if form == "gen" and part in (2, 3, 4):
        return {2: "двух", 3: "трёх", 4: "четырёх"}[part]
    return "две" if part == 2 and gender == "f" else NUMERALS[part].ru
