"""Drawing a meaning: the only place where chance decides. The lexicon's tags keep what is said within reason."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from .lexicon import (
    CITIES,
    NOUN,
    NOUNS,
    SKIES,
    SPOTS,
    TIMES,
    UNITS,
    VERBS,
    Noun,
    Time,
    Verb,
    adjectives_of,
    adverbs,
    nouns_with,
    verbs_with_object,
    verbs_with_subject,
)
from .meaning import POSSESSIVES, PRONOUNS, Clause, Meaning, Nominal, Place, Pronoun, Quality
from .numerals import EN, parts
from .numerals import english as english_number

Item = TypeVar("Item")
PEOPLE = frozenset(("person",))
NATIONS = ("German", "Japanese", "Russian")
ORIGINS = ("return", "depart")
RESIDENCES = tuple(NOUN[name] for name in ("village", "house", "hotel", "room"))
SPOT_NOUNS = tuple(NOUN[name] for name in SPOTS)
COOKING = tuple(NOUN[name] for name in ("kitchen", "restaurant", "hotel", "house", "garden"))
SHOPS = tuple(NOUN[name] for name in ("shop", "market", "station", "airport", "museum"))
BESIDE = tuple(NOUN[name] for name in ("house", "school", "hotel", "station", "museum", "theater", "shop", "hospital"))
SURFACES, CONTAINERS, SMALL = (nouns_with(frozenset((tag,))) for tag in ("surface", "container", "small"))
FURNITURE = nouns_with(frozenset(("furniture",)))
EVENT_VERBS = tuple(verb for verb in VERBS if "event" in verb.subjects)
PLAIN_VERBS = tuple(
    verb for verb in VERBS if "person" in verb.subjects or "adult" in verb.subjects if "that" not in verb.traits
)
THAT_VERBS = tuple(verb for verb in VERBS if "that" in verb.traits)
OTHER_VERBS = tuple(verb for verb in VERBS if verb not in PLAIN_VERBS and verb not in THAT_VERBS)


def chance(rng: random.Random, probability: float) -> bool:
    return rng.random() < probability


def pick(rng: random.Random, items: Sequence[Item]) -> Item:
    """As uniform as a float allows, and the same on every version of Python."""
    return items[int(rng.random() * len(items))]


def clocks() -> tuple[Time, ...]:
    tenses = frozenset(("past", "future", "habit"))
    return tuple(
        Time(f"at {EN[hour]}", f"um {de} Uhr", f"{ja}時に", f"в {ru} {'часа' if hour < 5 else 'часов'}", tenses)
        for hour, de, ja, ru in zip(
            range(2, 13),
            "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split(),
            "二 三 四 五 六 七 八 九 十 十一 十二".split(),
            "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать".split(),
            strict=True,
        )
    )


def spans() -> tuple[tuple[Time, ...], ...]:
    """three weeks ago and in three weeks, of every unit."""
    from . import numerals

    ranges = ((5, 60), (2, 20), (2, 12), (2, 11), (2, 40))
    groups = []
    for unit, (low, high) in zip(UNITS, ranges, strict=True):
        times = []
        for number in range(low, high + 1):
            last = number % 10 if not 11 <= number <= 14 else 0
            if last == 1:
                continue
            pieces = parts(number)
            en = " ".join(word for part in pieces for word in english_number(part)) + f" {unit.en_plural}"
            de = f"{numerals.german(number)} {unit.de}"
            ja = "".join(numerals.japanese(part) for part in pieces) + unit.ja
            ru = " ".join(
                numerals.russian(part, "f" if unit.ru_one.endswith(("у", "ю")) else "m", "acc") for part in pieces
            )
            ru += " " + (unit.ru_few if 2 <= last <= 4 else unit.ru_many)
            times.append(Time(f"{en} ago", f"vor {de}", f"{ja}前に", f"{ru} назад", frozenset(("past",))))
            times.append(Time(f"in {en}", f"in {de}", f"{ja}後に", f"через {ru}", frozenset(("future",))))
        groups.append(tuple(times))
    return tuple(groups)


CLOCKS = clocks()
SPANS = spans()
FIXED = {
    tense: tuple(time for time in TIMES if tense in time.tenses) for tense in ("past", "future", "habit", "present")
}


def draw_time(rng: random.Random, tense: str, verb: Verb | None) -> Time | None:
    """A time that goes with the tense; None where the present is no habit."""
    if verb and "clock" in verb.traits and chance(rng, 0.6):
        return pick(rng, CLOCKS)
    key = {"past": "past", "present": "habit"}.get(tense, "future")
    if key == "habit" and (verb is None or verb.traits & {"nofreq", "state"}):
        return None
    if key != "habit" and chance(rng, 0.25):
        times = pick(rng, SPANS)
        start = 0 if key == "past" else 1
        return pick(rng, times[start::2])
    return pick(rng, FIXED[key])


def draw_number(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.5:
        return 2 + int(rng.random() * 11)
    if kind < 0.65:
        return 13 + int(rng.random() * 7)
    if kind < 0.95:
        return 20 + int(rng.random() * 80)
    return 100 * (1 + int(rng.random() * 9)) + 10 * int(rng.random() * 10)


def describe(rng: random.Random, noun: Noun, likelihood: float = 0.35) -> Nominal:
    """A nominal of the noun with an adjective or without, still without a determiner."""
    node = Nominal(noun=noun)
    choices = adjectives_of(noun)
    if choices and chance(rng, likelihood):
        node.adjective = pick(rng, choices)
    return node


def determine(rng: random.Random, node: Nominal, subject: Pronoun | None, role: str, numbers: bool = True) -> None:
    """Draw number and determiner. `subject` is who a possessive in an object may refer back to."""
    noun = node.noun
    assert noun is not None
    kind = rng.random()
    if not noun.plural:
        node.determiner = "the" if kind < 0.6 or role == "subject" or "field" in noun.tags else ""
        if noun.tags & {"field", "loved"}:
            node.determiner = ""
    elif kind < 0.34:
        node.determiner = "the"
    elif kind < 0.52:
        node.determiner = "a"
    elif kind < 0.57:
        node.determiner = "this"
    elif kind < 0.6 and role == "subject" and noun.person:
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
        node.determiner = "the"
    if node.number == 1:
        node.number, node.determiner = 0, "a"
    if node.adjective and node.adjective.en in NATIONS and node.determiner in POSSESSIVES and noun.person:
        node.adjective = None


def draw_subject(rng: random.Random, tags: frozenset[str], pronouns: float, taken: Clause | None = None) -> Nominal:
    """Who does it; never the same pronoun or noun as in the clause `taken`."""
    if tags & {"person", "adult"} and chance(rng, pronouns):
        choices = PRONOUNS
        if taken and taken.subject:
            used = taken.subject.pronoun
            choices = tuple(p for p in PRONOUNS if p is not used and (p.person < 3 or (used and used.person < 3)))
        pronoun = pick(rng, choices)
        return Nominal(pronoun=pronoun, plural=pronoun.plural)
    nouns = nouns_with(tags)
    noun = pick(rng, nouns)
    while taken and taken.subject and taken.subject.noun is noun:
        noun = pick(rng, nouns)
    node = describe(rng, noun, 0.22)
    determine(rng, node, None, "subject")
    if noun.person and not node.number and node.determiner == "the" and not node.plural and chance(rng, 0.1):
        node.second = Nominal(noun=pick(rng, tuple(n for n in nouns if n is not noun)), determiner="the")
    return node


def draw_object(rng: random.Random, tags: frozenset[str], subject: Nominal | None, numbers: bool = True) -> Nominal:
    who = subject.pronoun if subject else None
    if tags & {"person", "adult"} and chance(rng, 0.25):
        choices = tuple(p for p in PRONOUNS if p.en_object and not (who and overlap(p, who)))
        pronoun = pick(rng, choices)
        return Nominal(pronoun=pronoun, plural=pronoun.plural)
    nouns = nouns_with(tags)
    noun = pick(rng, nouns)
    while subject and subject.noun is noun:
        noun = pick(rng, nouns)
    node = describe(rng, noun)
    determine(rng, node, who, "object", numbers)
    if "loved" in noun.tags or ("money" in noun.tags):
        node.adjective = None
    if node.determiner in ("the", "") and not node.plural and len(nouns) > 3 and chance(rng, 0.12):
        node.second = describe(rng, pick(rng, tuple(n for n in nouns if n is not noun and bool(n.plural) == bool(noun.plural))), 0.2) if sum(bool(n.plural) == bool(noun.plural) for n in nouns) > 1 else None
        if node.second:
            node.second.determiner = node.determiner
    return node


def overlap(one: Pronoun, other: Pronoun) -> bool:
    """I and we cannot do something to one another, nor he to him."""
    return one is other or (one.person == 1 and other.person == 1) or one.person == other.person == 3


def place_of(rng: random.Random, verb: Verb) -> Place | None:
    """Where the verb happens or leads, if its traits have a place."""
    traits = verb.traits
    if "citygoal" in traits:
        return Place("to", city=pick(rng, CITIES))
    if "goal" in traits and ("origin" not in traits or chance(rng, 0.6)):
        return Place("to", nominal=spot(rng, SPOT_NOUNS))
    if "origin" in traits:
        if chance(rng, 0.4):
            return Place("from", city=pick(rng, CITIES))
        return Place("from", nominal=spot(rng, (NOUN["station"],) if verb.en == "depart" else SPOT_NOUNS))
    if "residence" in traits:
        return Place("in", city=pick(rng, CITIES)) if chance(rng, 0.6) else Place("in", nominal=spot(rng, RESIDENCES))
    if "arrival" in traits:
        if chance(rng, 0.6):
            return Place("in", city=pick(rng, CITIES))
        return Place("in", nominal=spot(rng, (NOUN["station"], NOUN["village"], NOUN["airport"])))
    if "loc" in traits or "shop" in traits:
        if chance(rng, 0.2):
            return Place("in", city=pick(rng, CITIES))
        return Place("in", nominal=spot(rng, COOKING if verb.en == "cook" else SHOPS if "shop" in traits else SPOT_NOUNS))
    return None


def spot(rng: random.Random, nouns: Sequence[Noun]) -> Nominal:
    node = describe(rng, pick(rng, nouns), 0.15)
    node.determiner = "the"
    assert node.noun is not None
    if "owned" in node.noun.tags and chance(rng, 0.12):
        node.determiner = pick(rng, ("my", "your", "our"))
    return node


def draw_tense(rng: random.Random, verb: Verb | None) -> str:
    if verb and "present" in verb.traits:
        return "present"
    modal = verb is not None and bool(verb.subjects & {"person", "adult"})
    kind = rng.random()
    if kind < 0.42 and (verb is None or verb.en_past):
        return "past"
    if kind < 0.62 or not modal:
        return "present" if kind < 0.55 or kind > 0.75 else "future"
    if kind < 0.76:
        return "future"
    tense = ("must", "can", "want")[min(2, int((kind - 0.76) / 0.08))]
    return "must" if tense == "want" and verb and "nowant" in verb.traits else tense


def draw_action(
    rng: random.Random, verb: Verb, subject: Nominal | None, tense: str, tails: float = 1.0, numbers: bool = True
) -> Clause:
    """A clause of the verb with what it needs and some of what it may have; `tails` scales the latter."""
    node = Clause(tense=tense, verb=verb, subject=subject)
    if "money" in verb.objects:
        node.object = Nominal(noun=NOUN["euro"], plural=True, number=draw_number(rng))
    elif verb.objects:
        node.object = draw_object(rng, verb.objects, subject, numbers)
    if "recipient" in verb.traits:
        node.recipient = draw_object(rng, PEOPLE, subject, False)
        node.recipient.second = None
        if node.recipient.determiner == "a":
            node.recipient.determiner = "the"
    traits = verb.traits
    needed = traits & {"goal", "citygoal", "residence", "arrival", "must_place", "origin"}
    if needed or chance(rng, 0.25 * tails):
        node.place = place_of(rng, verb)
    if "manner" in traits and chance(rng, 0.22 * tails):
        node.manner = pick(rng, adverbs("manner"))
    elif tense == "present" and not traits & {"nofreq", "state", "money"} and chance(rng, 0.45 * tails):
        node.frequency = pick(rng, adverbs("frequency"))
    elif subject and subject.many and verb.objects and "person" not in verb.objects and chance(rng, 0.08 * tails):
        node.manner = pick(rng, adverbs("plural"))
    return node


def add_relative(rng: random.Random, node: Nominal, gap: str) -> None:
    """who repaired the car, or that the teacher bought: one short clause about the nominal."""
    noun = node.noun
    assert noun is not None
    tense = "past" if chance(rng, 0.75) else "present"
    verbs = verbs_with_subject(noun) if gap == "subject" else verbs_with_object(noun)
    verbs = tuple(
        verb for verb in verbs
        if "that" not in verb.traits and "money" not in verb.objects and "recipient" not in verb.traits
        if (tense == "present" or (verb.en_past and "present" not in verb.traits))
    )  # fmt: skip
    if not verbs:
        return
    verb = pick(rng, verbs)
    if gap == "subject":
        clause = draw_action(rng, verb, None, tense, 0.0, False)
        clause.subject = Nominal(noun=noun, plural=node.plural)
        if clause.object and clause.object.noun is noun:
            return
        if clause.object:
            clause.object.second = None
    else:
        doers = frozenset(verb.subjects)
        clause = Clause(tense=tense, verb=verb, subject=draw_subject(rng, doers, 0.5))
        subject = clause.subject
        assert subject is not None
        subject.second = None
        if subject.noun is noun or subject.number or subject.adjective:
            return
    clause.gap = gap
    node.relative = clause


def draw_state(rng: random.Random, taken: Clause | None = None) -> Clause:
    """What something is like, what someone is, where a thing is, or the sky."""
    kind = rng.random()
    tense = pick(rng, ("present", "past"))
    node = Clause(tense=tense)
    if kind < 0.12:
        node.predicate = pick(rng, SKIES)
        node.place = Place("in", city=pick(rng, CITIES))
        if tense == "past" or chance(rng, 0.5):
            node.tense = "future" if tense == "present" else tense
            node.time = draw_time(rng, node.tense, None)
        return node
    if kind < 0.26:
        he = pick(rng, (PRONOUNS[0], PRONOUNS[2], PRONOUNS[3]))
        jobs = tuple(noun for noun in NOUNS if "job" in noun.tags and (noun.de_gender == "f") == (he.en == "she"))
        if chance(rng, 0.5):
            node.subject = Nominal(pronoun=he)
        else:
            owned = NOUN[pick(rng, ("friend", "neighbor", "colleague", "guest"))]
            jobs = tuple(noun for noun in NOUNS if "job" in noun.tags and noun.de_gender == "m")
            node.subject = Nominal(noun=owned, determiner=pick(rng, POSSESSIVES))
        job = pick(rng, jobs)
        choices = tuple(adjective for adjective in adjectives_of(job))
        node.predicate = Nominal(noun=job, determiner="a", adjective=pick(rng, choices))
        return node
    if kind < 0.42:
        relation = pick(rng, ("on", "under", "in", "behind", "beside"))
        where = {"on": SURFACES, "under": FURNITURE, "in": CONTAINERS}.get(relation, BESIDE)
        things = SMALL if relation in ("on", "under", "in") else nouns_with(frozenset(("road", "pet")))
        target = Nominal(noun=pick(rng, where), determiner="the")
        noun = pick(rng, tuple(thing for thing in things if thing is not target.noun and "container" not in thing.tags))
        node.subject = describe(rng, noun, 0.2)
        determine(rng, node.subject, None, "subject", False)
        if node.subject.determiner == "a":
            node.subject.determiner = "the"
        node.predicate = Place(relation, nominal=target)
        return node
    if chance(rng, 0.15):
        pronoun = pick(rng, tuple(p for p in PRONOUNS if p.en != "you"))
        node.subject = Nominal(pronoun=pronoun, plural=pronoun.plural)
        choices = adjectives_of(NOUN["friend"])
    else:
        nouns = tuple(noun for noun in NOUNS if adjectives_of(noun))
        node.subject = Nominal(noun=pick(rng, nouns))
        determine(rng, node.subject, None, "subject", False)
        if node.subject.determiner in ("a", "every"):
            node.subject.determiner = "the"
        assert node.subject.noun is not None
        choices = adjectives_of(node.subject.noun)
    choices = tuple(a for a in choices if a.en not in NATIONS)
    node.negative = chance(rng, 0.15)
    node.predicate = Quality(pick(rng, choices), very=not node.negative and chance(rng, 0.35))
    if tense == "present" and chance(rng, 0.15):
        node.tense = "future"
    return node


def draw_clause(rng: random.Random, taken: Clause | None = None, tails: float = 1.0, tense: str = "") -> Clause:
    """A main or subordinate clause about an action; relative clauses and purposes where `tails` is full."""
    verb = pick(rng, PLAIN_VERBS) if chance(rng, 0.92) else pick(rng, OTHER_VERBS)
    while tense and ("present" in verb.traits or (tense == "past" and not verb.en_past)):
        verb = pick(rng, PLAIN_VERBS)
    tense = tense or draw_tense(rng, verb)
    if "weather" in verb.traits:
        tense = "future" if tense == "present" else tense
        node = Clause(tense=tense, verb=verb, place=Place("in", city=pick(rng, CITIES)))
        node.time = draw_time(rng, tense, None)
        return node
    negative = tense not in ("if",) and chance(rng, 0.14)
    subject = draw_subject(rng, verb.subjects, 0.45, taken)
    if subject.determiner == "every" or subject.number or subject.determiner == "several":
        negative = False
    node = draw_action(rng, verb, subject, tense, tails, not negative)
    node.negative = negative and not node.frequency and not node.manner and "money" not in verb.objects
    if node.negative and node.object:
        node.object.second = None
    if tense == "must" and node.negative and "must_place" in verb.traits:
        node.negative = False
    if "purpose" in verb.traits and node.place and node.place.relation == "to" and chance(rng, 0.5):
        aims = tuple(v for v in PLAIN_VERBS if v.objects and not v.traits & {"recipient", "state", "nofreq"})
        node.purpose = draw_action(rng, pick(rng, aims), subject, "purpose", 0.0, not negative)
        return node
    relative = False
    if tails >= 1 and not node.frequency and not node.negative:
        candidate = subject if chance(rng, 0.3) else node.object
        if candidate and candidate.noun and not candidate.second and candidate.noun.plural and chance(rng, 0.3):
            if candidate.determiner in ("the", "a", "these") and "money" not in candidate.noun.tags:
                gap = "subject" if candidate.noun.person and chance(rng, 0.5) else "object"
                candidate.adjective = None
                add_relative(rng, candidate, gap)
                relative = candidate.relative is not None
    if relative and node.object and node.object.relative:
        node.place = None if "must_place" not in verb.traits else node.place
        node.manner = None
    if not relative and not node.frequency and tense not in ("if",) and chance(rng, 0.45 * tails):
        node.time = draw_time(rng, tense, verb)
        indefinite = node.object is not None and (node.object.determiner in ("a", "", "several"))
        node.time_first = chance(rng, 0.8 if indefinite else 0.4)
    return node


def draw(rng: random.Random) -> Meaning:
    """One sentence."""
    kind = rng.random()
    if kind < 0.4:
        meaning = Meaning(draw_clause(rng))
        kind = rng.random()
        tense = meaning.main.tense
        if not meaning.main.time_first and kind < 0.12 and tense in ("past", "future", "present"):
            meaning.opener = pick(rng, adverbs("opener"))
        elif not meaning.main.time and not meaning.main.negative and not meaning.main.frequency and tense == "past" and kind > 0.85:
            meaning.opener = pick(rng, adverbs("opener_past"))
        return meaning
    if kind < 0.5:
        return Meaning(draw_state(rng))
    if kind < 0.58:
        verb = pick(rng, THAT_VERBS)
        tense = "past" if chance(rng, 0.4) else "present"
        subject = draw_subject(rng, PEOPLE, 0.7)
        subject.second = None
        main = Clause(tense=tense, verb=verb, subject=subject)
        content = draw_state(rng) if chance(rng, 0.35) else draw_clause(rng, main, 0.4)
        while tense == "past" and content.tense not in ("past", "can", "must"):
            content = draw_clause(rng, main, 0.4)
        main.content = content
        return Meaning(main)
    if kind < 0.78:
        return draw_linked(rng)
    if kind < 0.92:
        return draw_question(rng)
    verbs = tuple(v for v in PLAIN_VERBS if v.objects and not v.traits & {"state", "nofreq", "nowant"})
    verb = pick(rng, verbs)
    you = Nominal(pronoun=PRONOUNS[1], plural=True)
    main = draw_action(rng, verb, you, "imperative", 0.7)
    main.subject, main.manner = you, main.manner if main.manner and main.manner.kind == "manner" else None
    if chance(rng, 0.4):
        main.time = draw_time(rng, "future", None)
    return Meaning(main, mood="please", opener=adverbs("please")[0])


def draw_linked(rng: random.Random) -> Meaning:
    """Two clauses with because, if, although, when or but."""
    link = pick(rng, ("because", "because", "if", "although", "when", "but"))
    if link == "if":
        other = draw_clause(rng, None, 0.3, "if")
        main = draw_clause(rng, other, 0.3, pick(rng, ("future", "future", "must", "can")))
        first = True
    elif link == "when":
        other = draw_clause(rng, None, 0.3, "past")
        main = draw_clause(rng, other, 0.3, "past")
        main.negative = other.negative = False
        first = True
    else:
        state = chance(rng, 0.4)
        first = link == "although" or (link == "because" and chance(rng, 0.25))
        tense = pick(rng, ("past", "past", "present"))
        main = draw_clause(rng, None, 0.3, tense)
        other = draw_state(rng) if state else draw_clause(rng, main, 0.3, tense)
        while state and (isinstance(other.predicate, Nominal) or other.tense != tense):
            other = draw_state(rng)
        main.time = None if first else main.time
    other.time_first = False
    main.time_first = main.time_first and not first
    if other.time:
        main.time = None
    return Meaning(main, link=link, other=other, other_first=first)


def draw_question(rng: random.Random) -> Meaning:
    """Yes or no, or with a question word."""
    kind = rng.random()
    if kind < 0.3:
        verbs = tuple(v for v in PLAIN_VERBS if "nofreq" not in v.traits)
        verb = pick(rng, verbs)
        subject = draw_subject(rng, verb.subjects, 0.6)
        tense = draw_tense(rng, verb)
        main = draw_action(rng, verb, subject, tense, 0.4, True)
        main.frequency = None
        if chance(rng, 0.3):
            main.time = draw_time(rng, tense, verb)
        return Meaning(main, mood="question")
    if kind < 0.4:
        main = draw_state(rng)
        while not isinstance(main.predicate, Quality) or main.negative or (main.subject and main.subject.pronoun):
            main = draw_state(rng)
        return Meaning(main, mood="question")
    mood = pick(rng, ("who", "what", "where", "when", "why"))
    verbs = tuple(v for v in PLAIN_VERBS if v.objects and "nofreq" not in v.traits and v.en_past)
    if mood == "where":
        verbs = tuple(v for v in verbs if v.traits & {"loc", "shop"})
    if mood == "what":
        verbs = tuple(
            v for v in verbs if "person" not in v.objects and "recipient" not in v.traits
            if " " not in v.de_frame + v.ru_frame and v.ja_particle == "を" and "money" not in v.objects
        )  # fmt: skip
    verb = pick(rng, verbs)
    tense = "past" if chance(rng, 0.6) else "future"
    if mood == "who":
        main = draw_action(rng, verb, Nominal(pronoun=PRONOUNS[2]), tense, 0.4)
        main.subject, main.gap = Nominal(pronoun=PRONOUNS[2]), "subject"
        if main.object and main.object.determiner in POSSESSIVES:
            main.object.determiner, main.object.reflexive = "my", False
        if main.recipient and main.recipient.determiner in POSSESSIVES:
            main.recipient.determiner, main.recipient.reflexive = "my", False
    else:
        main = draw_action(rng, verb, draw_subject(rng, verb.subjects, 0.6), tense, 0.3)
        if mood == "what":
            main.object, main.gap = None, "object"
    main.manner = main.frequency = None
    if mood == "where":
        main.place = None
    return Meaning(main, mood=mood)
