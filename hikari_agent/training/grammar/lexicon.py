"""The words there are, read from the tables in `lexicon/`: one entry per meaning, with its forms in four languages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
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


def rows(name: str) -> Iterator[list[str]]:
    """The rows of a table without its heading; "-" stands for nothing."""
    text = (Path(__file__).parent / "lexicon" / f"{name}.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        yield ["" if cell == "-" else cell for cell in line.split("\t")]


def simple(name: str, entry: Callable[..., Entry]) -> tuple[Entry, ...]:
    """A table whose columns are the fields; a field typed frozenset holds words apart by blanks."""
    sets = {i for i, field in enumerate(fields(entry)) if field.type.startswith("frozenset")}  # type: ignore[arg-type]
    return tuple(
        entry(*(frozenset(cell.split()) if i in sets else cell for i, cell in enumerate(row))) for row in rows(name)
    )


def read_nouns() -> tuple[Noun, ...]:
    return tuple(
        Noun(
            *row[:2], frozenset(row[2].split()), *row[3:10], row[10] == "a", tuple(row[11:17]), tuple(row[17:23])
        )  # type: ignore[call-arg, arg-type]
        for row in rows("nouns")
    )


def read_verbs() -> tuple[Verb, ...]:
    return tuple(
        Verb(*row[:16], *(frozenset(cell.split()) for cell in row[16:19]), *(tuple(cell.split()) for cell in row[19:]))  # type: ignore[call-arg, arg-type]
        for row in rows("verbs")
    )


def read_adjectives() -> tuple[Adjective, ...]:
    return tuple(Adjective(*row[:5], frozenset(row[5].split()), tuple(row[6:])) for row in rows("adjectives"))  # type: ignore[call-arg, arg-type]


NOUNS = read_nouns()
VERBS = read_verbs()
ADJECTIVES = read_adjectives()
CITIES = simple("cities", City)
TIMES = simple("times", Time)
ADVERBS = simple("adverbs", Adverb)
SKIES = simple("skies", Sky)
UNITS = simple("units", Unit)
SPOTS = {spot.en: spot for spot in simple("places", Spot)}
NOUN = {noun.en: noun for noun in NOUNS}
VERB = {verb.en: verb for verb in VERBS}


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
