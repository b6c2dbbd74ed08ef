"""Drawing the parts of a clause: who and what, where and when. The lexicon's tags keep it within reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from . import numerals
from .lexicon import CITIES, NOUN, NUMERALS, SPOTS, TIMES, UNITS, Noun, Time, Unit, Verb, adjectives_of, nouns_with
from .meaning import POSSESSIVES, PRONOUNS, Clause, Nominal, Place, Pronoun

Item = TypeVar("Item")
NATIONS = ("German", "Japanese", "Russian")
RESIDENCES = tuple(NOUN[name] for name in ("village", "house", "hotel", "room"))
SPOT_NOUNS = tuple(NOUN[name] for name in SPOTS)
COOKING = tuple(NOUN[name] for name in ("kitchen", "restaurant", "hotel", "house", "garden"))
SHOPS = tuple(NOUN[name] for name in ("shop", "market", "station", "airport"))
DESKS = tuple(NOUN[name] for name in ("office", "laboratory", "university", "factory", "school", "library", "hotel"))
ARRIVALS = tuple(NOUN[name] for name in ("station", "village", "airport", "hotel", "school"))
TOWNS = CITIES[:6]  # the rest are countries
SPANS = ((5, 60), (2, 20), (2, 12), (2, 11), (2, 40))  # how many of each unit of time


def chance(rng: random.Random, probability: float) -> bool:
    return rng.random() < probability


def pick(rng: random.Random, items: Sequence[Item]) -> Item:
    """As uniform as a float allows, and the same on every version of Python."""
    return items[int(rng.random() * len(items))]


def clock(hour: int) -> Time:
    """at seven"""
    ru = f"в {NUMERALS[hour].ru} {'часа' if hour < 5 else 'часов'}"
    ja = f"{numerals.japanese(hour)}時に"
    return Time(
        f"at {NUMERALS[hour].en}", f"um {NUMERALS[hour].de} Uhr", ja, ru, frozenset(("past", "future", "habit"))
    )


def span(unit: Unit, number: int) -> tuple[Time, Time]:
    """three weeks ago, and in three weeks"""
    last = number % 10 if not 11 <= number <= 14 else 0
    pieces = numerals.parts(number)
    en = " ".join(word for part in pieces for word in numerals.english(part)) + f" {unit.en_plural}"
    de = f"{numerals.german(number)} {unit.de}"
    ja = "".join(numerals.japanese(part) for part in pieces) + unit.ja
    gender = "f" if unit.ru_one.endswith(("у", "ю")) else "m"
    ru = " ".join(numerals.russian(part, gender, "acc") for part in pieces)
    ru += " " + (unit.ru_one if last == 1 else unit.ru_few if 2 <= last <= 4 else unit.ru_many)
    return (
        Time(f"{en} ago", f"vor {de}", f"{ja}前に", f"{ru} назад", frozenset(("past",))),
        Time(f"in {en}", f"in {de}", f"{ja}後に", f"через {ru}", frozenset(("future",))),
    )


def spans(unit: Unit, low: int, high: int) -> tuple[tuple[Time, Time], ...]:
    """German says einundzwanzig before a plural: numbers that end in one are left out."""
    return tuple(span(unit, number) for number in range(low, high + 1) if number == 11 or number % 10 != 1)


CLOCKS = tuple(clock(hour) for hour in range(2, 13))
COUNTED_TIMES = tuple(spans(unit, low, high) for unit, (low, high) in zip(UNITS, SPANS, strict=True))
FIXED_TIMES = {tense: tuple(time for time in TIMES if tense in time.tenses) for tense in ("past", "future", "habit")}
NOW = next(time for time in TIMES if "present" in time.tenses)


def draw_time(rng: random.Random, tense: str, verb: Verb | None) -> Time | None:
    """A time that goes with the tense; None where the present is no habit."""
    if verb and "clock" in verb.traits and chance(rng, 0.5):
        return pick(rng, CLOCKS)
    key = {"past": "past", "present": "habit"}.get(tense, "future")
    if key == "habit" and verb and verb.traits & {"nofreq", "state", "stateja"}:
        return NOW if chance(rng, 0.4) else None
    if key == "habit" and verb is None:
        return None
    if key != "habit" and chance(rng, 0.25):
        return pick(rng, pick(rng, COUNTED_TIMES))[0 if key == "past" else 1]
    return pick(rng, FIXED_TIMES[key])


def draw_number(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.5:
        return 2 + int(rng.random() * 11)
    if kind < 0.65:
        return 13 + int(rng.random() * 7)
    if kind < 0.93:
        return 20 + int(rng.random() * 80)
    number = 100 + int(rng.random() * 900)
    return number + 1 if number % 100 == 1 else number


def describe(rng: random.Random, noun: Noun, likelihood: float = 0.35) -> Nominal:
    """A nominal of the noun, with an adjective or without, still without a determiner."""
    choices = adjectives_of(noun)
    return Nominal(noun=noun, adjective=pick(rng, choices) if choices and chance(rng, likelihood) else None)


def determine(rng: random.Random, node: Nominal, subject: Pronoun | None, role: str, numbers: bool = True) -> None:
    """Draw number and determiner. `subject` is who a possessive in an object may refer back to."""
    noun = node.noun
    assert noun is not None
    kind = rng.random()
    if not noun.plural:
        bare = noun.tags & {"field", "loved"} or (kind >= 0.6 and role == "object" and "daymeal" not in noun.tags)
        node.determiner = "" if bare else "the"
    elif kind < 0.32:
        node.determiner = "the"
    elif kind < 0.5:
        node.determiner = "a"
    elif kind < 0.55:
        node.determiner = "this"
    elif kind < 0.58 and role == "subject" and noun.person:
        node.determiner = "every"
    elif kind < 0.68:
        node.determiner, node.plural = "the", True
    elif kind < 0.72:
        node.determiner, node.plural = "these", True
    elif kind < 0.83 and numbers and noun.ja_counter:
        node.number = draw_number(rng) if role == "object" else 2 + int(rng.random() * 11)
        if noun.person and node.number > 99:
            node.number //= 10
        node.plural = True
    elif kind < 0.87 and numbers:
        node.determiner, node.plural = "several", True
    elif "owned" in noun.tags:
        owners = POSSESSIVES if role == "subject" or subject else ("my", "your", "our")
        node.determiner = pick(rng, owners)
        node.reflexive = role == "object" and subject is not None and subject.possessive == node.determiner
        node.plural = chance(rng, 0.25)
    else:
        node.determiner, node.plural = "the", chance(rng, 0.3)


def draw_subject(rng: random.Random, tags: frozenset[str], pronouns: float, taken: Clause | None = None) -> Nominal:
    """Who does it; never the same pronoun or noun as in the clause `taken`."""
    used = taken.subject if taken else None
    if tags & {"person", "adult"} and chance(rng, pronouns):
        choices: Sequence[Pronoun] = PRONOUNS
        if used:
            known = used.pronoun
            choices = tuple(p for p in PRONOUNS if p is not known and (p.person < 3 or (known and known.person < 3)))
        pronoun = pick(rng, choices)
        return Nominal(pronoun=pronoun, plural=pronoun.plural)
    nouns = nouns_with(tags)
    noun = pick(rng, nouns)
    while used and used.noun is noun:
        noun = pick(rng, nouns)
    node = describe(rng, noun, 0.25)
    determine(rng, node, None, "subject")
    if noun.person and node.determiner == "the" and not node.plural and chance(rng, 0.1):
        node.second = Nominal(noun=pick(rng, tuple(n for n in nouns if n is not noun and n.person)), determiner="the")
    return node


def draw_object(rng: random.Random, tags: frozenset[str], subject: Nominal | None, numbers: bool = True) -> Nominal:
    """What or whom it is done to; never the subject."""
    who = subject.pronoun if subject else None
    if tags & {"person", "adult"} and chance(rng, 0.25):
        pronoun = pick(rng, tuple(p for p in PRONOUNS if p.en_object and not (who and overlap(p, who))))
        return Nominal(pronoun=pronoun, plural=pronoun.plural)
    nouns = nouns_with(tags)
    noun = pick(rng, nouns)
    while subject and subject.noun is noun:
        noun = pick(rng, nouns)
    node = describe(rng, noun, 0.0 if "field" in noun.tags else 0.4)
    determine(rng, node, who, "object", numbers)
    if node.determiner in ("the", "") and not node.plural and chance(rng, 0.14):
        like = tuple(n for n in nouns if n is not noun and bool(n.plural) == bool(noun.plural))
        if like and not (subject and subject.noun in like):
            node.second = describe(rng, pick(rng, like), 0.0 if "field" in noun.tags else 0.2)
            node.second.determiner = node.determiner
    return node


def overlap(one: Pronoun, other: Pronoun) -> bool:
    """I and we cannot do something to one another, nor he to him."""
    return one is other or one.person == other.person != 2


def place_of(rng: random.Random, verb: Verb, subject: Nominal | None) -> Place | None:
    """Where the verb happens or leads, if its traits have a place."""
    traits = verb.traits
    if "citygoal" in traits:
        return Place("to", city=pick(rng, CITIES))
    if "goal" in traits and ("origin" not in traits or chance(rng, 0.6)):
        return Place("to", nominal=spot(rng, SPOT_NOUNS))
    if "origin" in traits:
        afloat = subject is not None and subject.noun is NOUN["ship"]
        if afloat or chance(rng, 0.4):
            return Place("from", city=pick(rng, TOWNS if verb.en == "depart" else CITIES))
        return Place("from", nominal=spot(rng, (NOUN["station"],) if verb.en == "depart" else SPOT_NOUNS))
    if "residence" in traits:
        if chance(rng, 0.6):
            return Place("in", city=pick(rng, CITIES))
        return Place("in", nominal=spot(rng, RESIDENCES))
    if "arrival" in traits:
        return Place("in", city=pick(rng, CITIES)) if chance(rng, 0.5) else Place("in", nominal=spot(rng, ARRIVALS))
    if traits & {"loc", "shop", "desk"}:
        if chance(rng, 0.2):
            return Place("in", city=pick(rng, CITIES))
        nouns = DESKS if "desk" in traits else SHOPS if "shop" in traits else SPOT_NOUNS
        if verb.en == "cook":
            nouns = COOKING
        return Place("in", nominal=spot(rng, nouns))
    return None


def spot(rng: random.Random, nouns: Sequence[Noun]) -> Nominal:
    node = describe(rng, pick(rng, nouns), 0.18)
    assert node.noun is not None
    node.determiner = "the"
    if "owned" in node.noun.tags and chance(rng, 0.15):
        node.determiner = pick(rng, ("my", "your", "our"))
    node.plural = chance(rng, 0.14)
    return node
