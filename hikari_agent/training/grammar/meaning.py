"""What a sentence means: a tree of nodes that every language renders, and that remembers where English said it.

The `at_…` fields are indices of English words, set by `english.render`; the other renderers read them to say which
English word each of theirs waited for. -1: English says nothing, or has not been rendered.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lexicon import Adjective, Adverb, City, Noun, Sky, Time, Verb


@dataclass(frozen=True, eq=False)
class Pronoun:
    """A person that is not named: `en_object` is empty where English would be ambiguous."""

    en: str
    en_object: str
    person: int
    plural: bool
    gender: str
    possessive: str


PRONOUNS = (
    Pronoun("I", "me", 1, False, "m", "my"),
    Pronoun("you", "you", 2, True, "m", "your"),
    Pronoun("he", "him", 3, False, "m", "his"),
    Pronoun("she", "", 3, False, "f", "her"),
    Pronoun("we", "us", 1, True, "m", "our"),
    Pronoun("they", "them", 3, True, "m", "their"),
)
POSSESSIVES = tuple(pronoun.possessive for pronoun in PRONOUNS)


@dataclass(eq=False, slots=True)
class Nominal:
    """Who or what: a noun with its determiner, number, adjective and relative clause, or a pronoun."""

    noun: Noun | None = None
    pronoun: Pronoun | None = None
    plural: bool = False
    determiner: str = ""  # an English word
    reflexive: bool = False  # its possessive means the subject of the clause
    number: int = 0
    adjective: Adjective | None = None
    relative: Clause | None = None
    second: Nominal | None = None  # and …
    at_determiner: int = -1
    at_numbers: tuple[int, ...] = ()  # the last word of each part of the number
    at_adjective: int = -1
    at_noun: int = -1
    at_and: int = -1

    @property
    def many(self) -> bool:
        """Whether the verb is in the plural, twenty one people included."""
        return self.plural or self.second is not None


@dataclass(eq=False, slots=True)
class Place:
    """Where: `relation` is in, to, from, on, under, behind or beside."""

    relation: str
    nominal: Nominal | None = None
    city: City | None = None
    at_relation: int = -1
    at_city: int = -1


@dataclass(eq=False, slots=True)
class Quality:
    """What something is said to be like."""

    adjective: Adjective
    very: bool = False
    at_very: int = -1
    at_adjective: int = -1


@dataclass(eq=False, slots=True)
class Clause:
    """One verb and what belongs to it. Without a verb it says what the subject is: its `predicate`."""

    tense: str = "present"  # past, future, must, can, want, or if: a present that speaks of the future
    verb: Verb | None = None
    predicate: Quality | Nominal | Place | Sky | None = None
    subject: Nominal | None = None
    gap: str = ""  # subject or object: said by the relative pronoun or the question word instead
    object: Nominal | None = None
    recipient: Nominal | None = None
    negative: bool = False
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Place | None = None
    time: Time | None = None
    time_first: bool = False
    content: Clause | None = None  # that …
    purpose: Clause | None = None  # to …
    at_link: int = -1  # the conjunction, relative pronoun, question word or "to" that opens it
    at_subject: int = -1  # "it" of the weather
    at_auxiliary: int = -1
    at_not: int = -1
    at_frequency: int = -1
    at_manner: int = -1
    at_verb: int = -1
    at_predicate: int = -1  # how the sky is
    at_time: int = -1

    @property
    def never(self) -> bool:
        return self.frequency is not None and self.frequency.en == "never"

    @property
    def weather(self) -> bool:
        return isinstance(self.predicate, Sky) or (self.verb is not None and "weather" in self.verb.traits)


@dataclass(eq=False, slots=True)
class Meaning:
    """A sentence: a main clause, perhaps a second one with the `link` between them, and its mood."""

    main: Clause
    mood: str = "statement"  # question, who, what, where, when, why, please
    opener: Adverb | None = None
    link: str = ""  # because, if, although, when, but
    other: Clause | None = None
    other_first: bool = False
    at_opener: int = -1
    at_link: int = -1
