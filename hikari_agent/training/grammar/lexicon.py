"""The words there are, read from the tables in `lexicon/`: one entry per meaning, with its forms in four languages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

Entry = TypeVar("Entry")
CASES = ("nom", "gen", "dat", "acc", "ins", "prep")  # the order of the Russian columns


@dataclass(frozen=True, eq=False)
class Noun:
    """A thing or a person. `tags` say what can be done with it; `plural` is empty for what is not counted."""

    en: str
    plural: str
    tags: frozenset[str]
    de_gender: str
    de: str
    de_oblique: str
    de_plural: str
    ja: str
    ja_counter: str
    ru_gender: str
    ru_animate: bool
    ru_singular: tuple[str, ...]
    ru_plural: tuple[str, ...]

    @property
    def person(self) -> bool:
        return "person" in self.tags


@dataclass(frozen=True, eq=False)
class Spot:
    """How to be in a place and to go there, beyond its noun: the prepositions of each language."""

    en: str
    en_in: str
    de_in: str
    de_to: str
    ru_in: str
    ru_from: str
    ru_location: str


@dataclass(frozen=True, eq=False)
class City:
    """A city or a country, always without an article."""

    en: str
    de: str
    ja: str
    ru: str
    ru_gen: str
    ru_acc: str
    ru_prep: str


@dataclass(frozen=True, eq=False)
class Verb:
    """What happens. `subjects` and `objects` are tags of nouns, `traits` what else it takes.

    Russian forms: infinitive, past (m, f, n, plural), present or simple future (I, he, we, you, they) and, of the
    perfective, the imperative.
    """

    en: str
    en_s: str
    en_past: str
    de: str
    de_1sg: str
    de_3sg: str
    de_participle: str
    de_aux: str
    de_prefix: str
    de_frame: str
    ja: str
    ja_masu: str
    ja_te: str
    ja_nai: str
    ja_particle: str
    ru_frame: str
    subjects: frozenset[str]
    objects: frozenset[str]
    traits: frozenset[str]
    ru_imperfective: tuple[str, ...]
    ru_perfective: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Adjective:
    """A quality. `ja` is the stem of an i-adjective; `nouns` are the tags of what can have it."""

    en: str
    de: str
    de_stem: str
    ja: str
    ja_kind: str
    nouns: frozenset[str]
    ru: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Time:
    """A whole time phrase. `tenses` are those it goes with; habit is the present of what happens again and again."""

    en: str
    de: str
    ja: str
    ru: str
    tenses: frozenset[str]


@dataclass(frozen=True, eq=False)
class Adverb:
    """A word about how or how often, or one that opens a sentence."""

    en: str
    de: str
    ja: str
    ru: str
    kind: str


@dataclass(frozen=True, eq=False)
class Sky:
    """How the weather is: it is sunny."""

    en: str
    de: str
    ja: str
    ja_kind: str
    ru: str


@dataclass(frozen=True, eq=False)
class Unit:
    """What time is counted in. `ru_few` goes with two to four, `ru_many` with five and more."""

    en: str
    en_plural: str
    de: str
    ja: str
    ru_few: str
    ru_many: str
    ru_one: str


@dataclass(frozen=True, eq=False)
class Numeral:
    """A part of a number that has a word of its own."""

    value: str
    en: str
    de: str
    ja: str
    ru: str


@dataclass(frozen=True, eq=False)
class Determiner:
    """What Russian declines like an adjective. `self` is the possessive that means the subject."""

    en: str
    ru: tuple[str, ...]


def table(name: str, entry: Callable[..., Entry]) -> tuple[Entry, ...]:
    """The entries of a table, whose columns are their fields: "-" stands for nothing, blanks part what is several."""
    columns = fields(entry)  # type: ignore[arg-type]
    read = [CELLS[str(column.type).partition("[")[0]] for column in columns]
    lines = (Path(__file__).parent / "lexicon" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    if lines[0].split("\t") != [column.name for column in columns]:
        raise ValueError(f"lexicon/{name}.tsv: the heading is not {[column.name for column in columns]}")
    return tuple(entry(*(make(cell) for make, cell in zip(read, line.split("\t"), strict=True))) for line in lines[1:])


CELLS: dict[str, Callable[[str], object]] = {
    "str": lambda cell: "" if cell == "-" else cell,
    "bool": lambda cell: cell != "-",
    "frozenset": lambda cell: frozenset(cell.replace("-", "").split()),
    "tuple": lambda cell: tuple(cell.replace("-", "").split()),
}
NOUNS = table("nouns", Noun)
VERBS = table("verbs", Verb)
ADJECTIVES = table("adjectives", Adjective)
CITIES = table("cities", City)
TIMES = table("times", Time)
ADVERBS = table("adverbs", Adverb)
SKIES = table("skies", Sky)
UNITS = table("units", Unit)
SPOTS = {spot.en: spot for spot in table("places", Spot)}
NOUN = {noun.en: noun for noun in NOUNS}
NUMERALS = {int(numeral.value): numeral for numeral in table("numerals", Numeral)}
DETERMINERS = {determiner.en: determiner.ru for determiner in table("determiners", Determiner)}


@functools.cache
def nouns_with(tags: frozenset[str]) -> tuple[Noun, ...]:
    """The nouns that have one of the tags, in the order of the table."""
    return tuple(noun for noun in NOUNS if noun.tags & tags)


@functools.cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in ADJECTIVES if adjective.nouns & noun.tags)


@functools.cache
def verbs_with_subject(noun: Noun) -> tuple[Verb, ...]:
    return tuple(verb for verb in VERBS if verb.subjects & noun.tags)


@functools.cache
def verbs_with_object(noun: Noun) -> tuple[Verb, ...]:
    """The verbs that take the noun as a plain object, without a preposition in any language."""
    return tuple(verb for verb in VERBS if verb.objects & noun.tags and " " not in verb.de_frame + verb.ru_frame)


@functools.cache
def adverbs(kind: str) -> tuple[Adverb, ...]:
    return tuple(adverb for adverb in ADVERBS if adverb.kind == kind)
