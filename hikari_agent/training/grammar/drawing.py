"""Drawing a meaning: which clauses make a sentence. Chance decides here, in `clauses` and in `phrases`, nowhere else."""

from __future__ import annotations

import random

from .clauses import PEOPLE, PLAIN_VERBS, draw_action, draw_clause, draw_state, draw_tense
from .lexicon import NOUN, VERBS, adverbs
from .meaning import PRONOUNS, Clause, Meaning, Nominal, Quality
from .phrases import chance, draw_subject, draw_time, pick

THAT_VERBS = tuple(verb for verb in VERBS if "that" in verb.traits)
ASKED_VERBS = tuple(verb for verb in PLAIN_VERBS if verb.objects and verb.en_past and not verb.traits & {"nofreq"})
PLEASING = tuple(
    verb
    for verb in PLAIN_VERBS
    if verb.objects and not verb.traits & {"state", "nofreq", "nowant"} and verb.en != "find"
)


def draw(rng: random.Random) -> Meaning:
    """One sentence."""
    meaning = draw_meaning(rng)
    for node in (meaning.main, meaning.other, meaning.main.content):
        if node and not node.time:
            node.time_first = False
    return meaning


def draw_meaning(rng: random.Random) -> Meaning:
    """A statement of one clause, of two, or about what someone thinks; a question or a request."""
    kind = rng.random()
    if kind < 0.38:
        meaning = Meaning(draw_clause(rng))
        main, kind = meaning.main, rng.random()
        if not main.time_first and kind < 0.12 and main.tense in ("past", "future", "present"):
            meaning.opener = pick(rng, adverbs("opener"))
        elif not main.time and not main.negative and not main.frequency and main.tense == "past" and kind > 0.85:
            meaning.opener = pick(rng, adverbs("opener_past"))
        return meaning
    if kind < 0.45:
        return Meaning(draw_state(rng))
    if kind < 0.58:
        return draw_thought(rng)
    if kind < 0.82:
        return draw_linked(rng)
    if kind < 0.93:
        return draw_question(rng)
    you = Nominal(pronoun=PRONOUNS[1], plural=True)
    main = draw_action(rng, pick(rng, PLEASING), you, "imperative")
    main.time = draw_time(rng, "future", None) if chance(rng, 0.5) else None
    return Meaning(main, mood="please", opener=adverbs("please")[0])


def draw_thought(rng: random.Random) -> Meaning:
    """She hopes that …"""
    tense = "past" if chance(rng, 0.4) else "present"
    subject = draw_subject(rng, PEOPLE, 0.7)
    subject.second = None
    main = Clause(tense=tense, verb=pick(rng, THAT_VERBS), subject=subject)
    main.content = draw_state(rng) if chance(rng, 0.25) else draw_clause(rng, main, 0.6)
    hoping = main.verb is not None and main.verb.en == "hope"
    while (tense == "past" and main.content.tense != "past") or (hoping and main.content.tense in ("must", "want")):
        main.content = draw_clause(rng, main, 0.6)
    main.content.time_first = False
    return Meaning(main)


def draw_linked(rng: random.Random) -> Meaning:
    """Two clauses with because, if, although, when or but."""
    link = pick(rng, ("because", "because", "because", "if", "although", "when", "but"))
    if link == "if":
        other = draw_clause(rng, None, 0.3, "if")
        main = draw_clause(rng, other, 0.5, pick(rng, ("future", "future", "must", "can")))
    elif link == "when":
        other = draw_clause(rng, None, 0.4, "past")
        main = draw_clause(rng, other, 0.5, "past")
        main.negative = other.negative = False
    else:
        tense = pick(rng, ("past", "past", "present"))
        main = draw_clause(rng, None, 0.4, tense)
        state = chance(rng, 0.35)
        other = draw_state(rng) if state else draw_clause(rng, main, 0.4, tense)
        while state and (isinstance(other.predicate, Nominal) or other.tense != tense):
            other = draw_state(rng)
    first = link in ("if", "when", "although") or (link == "because" and chance(rng, 0.25))
    main.time_first = main.time_first and not first
    other.time_first = False
    if other.time:
        main.time = None
    return Meaning(main, link=link, other=other, other_first=first)


def draw_question(rng: random.Random) -> Meaning:
    """Yes or no, or with a question word."""
    kind = rng.random()
    if kind < 0.12:
        main = draw_state(rng)
        while not isinstance(main.predicate, Quality) or main.negative or (main.subject and main.subject.pronoun):
            main = draw_state(rng)
        return Meaning(main, mood="question")
    if kind < 0.35:
        verb = pick(rng, tuple(verb for verb in PLAIN_VERBS if "nofreq" not in verb.traits))
        tense = draw_tense(rng, verb)
        main = draw_action(rng, verb, draw_subject(rng, verb.subjects, 0.6), tense, 0.6)
        main.frequency = None
        main.time = draw_time(rng, tense, verb) if chance(rng, 0.4) else None
        return Meaning(main, mood="question")
    return ask(rng, pick(rng, ("who", "what", "where", "when", "why")))


def ask(rng: random.Random, mood: str) -> Meaning:
    """A question with the word `mood`."""
    verbs = ASKED_VERBS
    if mood == "where":
        verbs = tuple(verb for verb in verbs if verb.traits & {"loc", "shop", "desk"})
    elif mood == "what":
        verbs = tuple(
            verb
            for verb in verbs
            if not verb.objects & {"person", "money"} and "recipient" not in verb.traits
            if " " not in verb.de_frame + verb.ru_frame and verb.ja_particle == "を"
        )
    verb = pick(rng, verbs)
    tense = "past" if chance(rng, 0.6) else "future"
    subject = Nominal(noun=NOUN["friend"]) if mood == "who" else draw_subject(rng, verb.subjects, 0.6)
    main = draw_action(rng, verb, subject, tense, 0.5)
    main.manner = main.frequency = None
    if mood == "who":
        main.gap = "subject"
    elif mood == "what":
        main.object, main.gap = None, "object"
    if mood == "where":
        main.place = None
    elif mood != "when" and chance(rng, 0.4):
        main.time = draw_time(rng, tense, verb)
    return Meaning(main, mood=mood)
