"""Drawing a clause: what somebody does, or what something is like."""

from __future__ import annotations

import random

from .lexicon import (
    CITIES,
    NOUN,
    NOUNS,
    SKIES,
    VERBS,
    Noun,
    Verb,
    adjectives_of,
    adverbs,
    nouns_with,
    verbs_with_object,
    verbs_with_subject,
)
from .meaning import POSSESSIVES, PRONOUNS, Clause, Nominal, Place, Quality
from .phrases import (
    NATIONS,
    chance,
    describe,
    determine,
    draw_number,
    draw_object,
    draw_subject,
    draw_time,
    pick,
    place_of,
)

PEOPLE = frozenset(("person",))
SURFACES, CONTAINERS, SMALL, FURNITURE = (
    nouns_with(frozenset((tag,))) for tag in ("surface", "container", "small", "furniture")
)
STANDING = nouns_with(frozenset(("road", "animal")))
BESIDE = tuple(NOUN[name] for name in ("house", "school", "hotel", "station", "museum", "theater", "shop", "hospital"))
JOBS = {
    gender: tuple(n for n in NOUNS if "job" in n.tags and (n.de_gender == "f") == (gender == "f")) for gender in "mf"
}
ACQUAINTANCES = tuple(NOUN[name] for name in ("friend", "neighbor", "colleague", "guest"))
DESCRIBED = tuple(noun for noun in NOUNS if any(a.en not in NATIONS for a in adjectives_of(noun)))
PLAIN_VERBS = tuple(verb for verb in VERBS if verb.subjects & {"person", "adult"} and "that" not in verb.traits)
OTHER_VERBS = tuple(verb for verb in VERBS if not verb.subjects & {"person", "adult"})
AIMS = tuple(
    verb for verb in PLAIN_VERBS if verb.objects and not verb.traits & {"recipient", "state", "nofreq", "nowant"}
)
NEEDS_PLACE = frozenset(("goal", "citygoal", "residence", "arrival", "must_place", "origin"))


def draw_tense(rng: random.Random, verb: Verb) -> str:
    if "present" in verb.traits:
        return "present"
    modal = bool(verb.subjects & {"person", "adult"}) and "nowant" not in verb.traits
    kind = rng.random()
    if kind < 0.4 and verb.en_past:
        return "past"
    if kind < 0.56:
        return "present"
    if kind < 0.74 or not modal:
        return "future"
    return ("must", "can", "want")[min(2, int((kind - 0.74) / 0.087))]


def draw_action(
    rng: random.Random, verb: Verb, subject: Nominal | None, tense: str, tails: float = 1.0, numbers: bool = True
) -> Clause:
    """A clause of the verb with what it needs and some of what it may have; `tails` scales the latter."""
    node = Clause(tense=tense, verb=verb, subject=subject)
    traits = verb.traits
    if "money" in verb.objects:
        node.object = Nominal(noun=NOUN["euro"], plural=True, number=draw_number(rng))
    elif verb.objects:
        node.object = draw_object(rng, verb.objects, subject, numbers and verb.ru_frame == "acc")
    if "recipient" in traits:
        node.recipient = draw_object(rng, PEOPLE, subject, False)
        node.recipient.second = None
        if node.recipient.determiner == "a":
            node.recipient.determiner = "the"
    if traits & NEEDS_PLACE or chance(rng, 0.4 * tails):
        node.place = place_of(rng, verb, subject)
    if "manner" in traits and chance(rng, 0.22 * tails):
        node.manner = pick(rng, adverbs("manner"))
    elif tense == "present" and not traits & {"nofreq", "state", "stateja"} and chance(rng, 0.45 * tails):
        node.frequency = pick(rng, adverbs("frequency"))
    elif together(verb, subject) and chance(rng, 0.1 * tails):
        node.manner = pick(rng, adverbs("plural"))
    return node


def together(verb: Verb, subject: Nominal | None) -> bool:
    """Whether several can be said to do it together."""
    several = subject is not None and subject.many and subject.pronoun is not PRONOUNS[1]
    return several and bool(verb.objects) and not verb.objects & {"person", "money"}


def add_relative(rng: random.Random, node: Nominal, gap: str, main: Verb) -> None:
    """who repaired the car, or that the teacher bought: one short clause about the nominal, if one comes to mind."""
    noun = node.noun
    assert noun is not None
    tense = "past" if chance(rng, 0.75) else "present"
    verbs = tuple(
        verb
        for verb in (verbs_with_subject(noun) if gap == "subject" else verbs_with_object(noun))
        if verb is not main and "that" not in verb.traits and "money" not in verb.objects
        if "recipient" not in verb.traits and (tense == "present" or (verb.en_past and "present" not in verb.traits))
    )
    if not verbs:
        return
    verb = pick(rng, verbs)
    if gap == "subject":
        clause = draw_action(rng, verb, Nominal(noun=noun, plural=node.plural), tense, 0.0, False)
        if clause.object:
            clause.object.second = None
    else:
        doer = draw_subject(rng, verb.subjects, 0.5)
        if doer.noun is noun or doer.number or doer.adjective or doer.determiner == "several":
            return
        doer.second = None
        clause = Clause(tense=tense, verb=verb, subject=doer)
    clause.gap = gap
    node.relative = clause


def relate(rng: random.Random, node: Clause) -> bool:
    """Give the subject or the object of the clause a relative clause, where that reads well."""
    candidate = node.subject if chance(rng, 0.3) else node.object
    if candidate is None or candidate.noun is None or candidate.second or not candidate.noun.plural:
        return False
    if candidate.determiner not in ("the", "a", "these") or "money" in candidate.noun.tags:
        return False
    candidate.adjective = None
    assert node.verb is not None
    add_relative(rng, candidate, "subject" if candidate.noun.person and chance(rng, 0.5) else "object", node.verb)
    return candidate.relative is not None


def draw_clause(rng: random.Random, taken: Clause | None = None, tails: float = 1.0, tense: str = "") -> Clause:
    """A clause about an action, another subject's than that of `taken`; relative clauses where `tails` is full."""
    verb = pick(rng, PLAIN_VERBS) if chance(rng, 0.92) else pick(rng, OTHER_VERBS)
    while tense and ("present" in verb.traits or (tense == "past" and not verb.en_past)):
        verb = pick(rng, PLAIN_VERBS)
    if "weather" in verb.traits:
        if tense in ("", "must", "can"):
            tense = pick(rng, ("past", "present", "future"))
        node = Clause(tense=tense, verb=verb, place=Place("in", city=pick(rng, CITIES)))
        node.time = draw_time(rng, tense, verb)
        node.time_first = chance(rng, 0.4)
        return node
    if tense in ("must", "can") and (verb in OTHER_VERBS or "nowant" in verb.traits):
        tense = "future"
    tense = tense or draw_tense(rng, verb)
    negative = tense != "if" and chance(rng, 0.14)
    subject = draw_subject(rng, verb.subjects, 0.42, taken)
    if subject.determiner in ("every", "several") or subject.number or subject.second:
        negative = False
    node = draw_action(rng, verb, subject, tense, tails, not negative)
    node.negative = negative and not node.frequency and not node.manner and "money" not in verb.objects
    if node.negative and node.object:
        node.object.second = None
    if node.negative and tense == "must" and "must_place" in verb.traits:
        node.negative = False
    if "purpose" in verb.traits and node.place and node.place.relation == "to" and chance(rng, 0.5):
        node.purpose = draw_action(rng, pick(rng, AIMS), subject, "purpose", 0.0, not negative)
        return node
    if tails >= 0.7 and not node.frequency and not node.negative and chance(rng, 0.6) and relate(rng, node):
        if node.object and node.object.relative:
            node.place, node.manner = node.place if "must_place" in verb.traits else None, None
        return node
    if not node.frequency and tense != "if" and chance(rng, 0.55 * tails):
        node.time = draw_time(rng, tense, verb)
        node.negative = node.negative and tense != "present"
        indefinite = node.object is not None and node.object.determiner in ("a", "", "several")
        node.time_first = chance(rng, 0.6 if indefinite else 0.35)
    return node


def draw_state(rng: random.Random) -> Clause:
    """What something is like, what someone is, where a thing is, or the sky."""
    kind = rng.random()
    node = Clause(tense=pick(rng, ("present", "past")))
    if kind < 0.12:
        return draw_sky(rng, node)
    if kind < 0.3:
        who = pick(rng, (PRONOUNS[0], PRONOUNS[2], PRONOUNS[3]))
        node.subject = Nominal(pronoun=who)
        if chance(rng, 0.5):
            node.subject = Nominal(noun=pick(rng, ACQUAINTANCES), determiner=pick(rng, POSSESSIVES))
        job = pick(rng, JOBS["f" if node.subject.pronoun is PRONOUNS[3] else "m"])
        node.predicate = Nominal(noun=job, determiner="a", adjective=pick(rng, adjectives_of(job)))
        return node
    if kind < 0.48:
        return draw_location(rng, node)
    if chance(rng, 0.15):
        pronoun = pick(rng, tuple(p for p in PRONOUNS if p.en != "you"))
        node.subject = Nominal(pronoun=pronoun, plural=pronoun.plural)
        qualities = adjectives_of(NOUN["friend"])
    else:
        node.subject = stated(rng, NOUN["weather"] if chance(rng, 0.06) else pick(rng, DESCRIBED))
        assert node.subject.noun is not None
        qualities = adjectives_of(node.subject.noun)
    node.negative = chance(rng, 0.15)
    quality = pick(rng, tuple(a for a in qualities if a.en not in NATIONS))
    node.predicate = Quality(quality, very=not node.negative and quality.ja_kind != "no" and chance(rng, 0.35))
    if node.tense == "present" and chance(rng, 0.2):
        node.tense = "future"
    return node


def stated(rng: random.Random, noun: Noun) -> Nominal:
    """The known subject of a statement about it."""
    node = Nominal(noun=noun)
    determine(rng, node, None, "subject", False)
    if node.determiner in ("a", "every"):
        node.determiner = "the"
    return node


def draw_sky(rng: random.Random, node: Clause) -> Clause:
    node.predicate = pick(rng, SKIES)
    node.place = Place("in", city=pick(rng, CITIES))
    if node.tense == "past" or chance(rng, 0.5):
        node.tense = "future" if node.tense == "present" else node.tense
        node.time = draw_time(rng, node.tense, None)
    return node


def draw_location(rng: random.Random, node: Clause) -> Clause:
    """The key is under the table."""
    relation = pick(rng, ("on", "under", "in", "behind", "beside"))
    where = {"on": SURFACES, "under": FURNITURE, "in": CONTAINERS}.get(relation, BESIDE)
    things = SMALL if relation in ("on", "under", "in") else STANDING
    noun = pick(rng, tuple(thing for thing in things if "container" not in thing.tags))
    node.subject = stated(rng, noun)
    if chance(rng, 0.25) and adjectives_of(noun):
        node.subject.adjective = pick(rng, adjectives_of(noun))
    target = describe(rng, pick(rng, where), 0.2)
    target.determiner = "the"
    node.predicate = Place(relation, nominal=target)
    return node
