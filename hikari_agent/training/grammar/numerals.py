"""Whole numbers from 2 to 999 in words: what each English word of a number has made known in the other languages."""

from __future__ import annotations

import functools

EN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
DE = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
).split()
DE_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
JA = "〇 一 二 三 四 五 六 七 八 九".split()
RU = (
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"
).split()
RU_TENS = "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто".split()
RU_HUNDREDS = "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот".split()


@functools.cache
def parts(number: int) -> tuple[int, ...]:
    """The hundreds, tens and ones that have a word of their own: 215 is 200 and 15, 43 is 40 and 3."""
    hundreds, rest = number // 100 * 100, number % 100
    pieces = (hundreds, rest) if rest < 20 else (hundreds, rest // 10 * 10, rest % 10)
    return tuple(piece for piece in pieces if piece)


def english(part: int) -> tuple[str, ...]:
    if part >= 100:
        return EN[part // 100], "hundred"
    return (EN[part] if part < 20 else EN_TENS[part // 10 - 2],)


@functools.cache
def german(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    head = f"{DE[hundreds]}hundert" if hundreds else ""
    if rest == 1:
        return head + "eins"
    if rest < 20:
        return head + (DE[rest] if rest else "")
    tens, ones = divmod(rest, 10)
    return head + (f"{DE[ones]}und" if ones else "") + DE_TENS[tens - 2]


def japanese(part: int) -> str:
    if part >= 100:
        return (JA[part // 100] if part >= 200 else "") + "百"
    tens, ones = divmod(part, 10)
    return (JA[tens] if tens > 1 else "") + ("十" if tens else "") + (JA[ones] if ones else "")


def russian(part: int, gender: str, form: str) -> str:
    """`form` is nom, acc (a thing, or the feminine of one) or gen (the accusative of a person)."""
    if part == 1:
        if gender == "f":
            return "одна" if form == "nom" else "одну"
        return "одного" if form == "gen" else {"m": "один", "n": "одно"}[gender]
    if form == "gen" and part in (2, 3, 4):
        return {2: "двух", 3: "трёх", 4: "четырёх"}[part]
    if part == 2:
        return "две" if gender == "f" else "два"
    if part >= 100:
        return RU_HUNDREDS[part // 100 - 1]
    return RU[part] if part < 20 else RU_TENS[part // 10 - 2]
