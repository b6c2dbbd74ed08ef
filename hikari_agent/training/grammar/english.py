"""The meaning in English, and where in the sentence each node is said: `render` sets every `at_…` of the tree."""

from __future__ import annotations

from . import numerals
from .lexicon import SPOTS, Sky
from .meaning import Clause, Meaning, Nominal, Place, Quality

MODALS = ("must", "can")


def render(meaning: Meaning) -> tuple[str, ...]:
    """The words, with a capital at the start and punctuation attached."""
    out: list[str] = []
    other = meaning.other
    if meaning.opener:
        out += meaning.opener.en.split()
        meaning.at_opener = len(out) - 1
        if meaning.opener.kind == "opener" and meaning.opener.en != "maybe":
            out[-1] += ","
    if other and meaning.other_first:
        link(meaning, out)
        clause(out, other)
        out[-1] += ","
    if meaning.mood == "please":
        predicate(out, meaning.main, "imperative")
    elif meaning.mood == "who":
        question_word(out, meaning)
        predicate(out, meaning.main, "")
    elif meaning.mood != "statement":
        if meaning.mood != "question":
            question_word(out, meaning)
        question(out, meaning.main)
    else:
        clause(out, meaning.main)
    if other and not meaning.other_first:
        if meaning.link == "but":
            out[-1] += ","
        link(meaning, out)
        clause(out, other)
    out[0] = out[0][0].upper() + out[0][1:]
    out[-1] += "." if meaning.mood in ("statement", "please") else "?"
    return tuple(out)


def link(meaning: Meaning, out: list[str]) -> None:
    out.append(meaning.link)
    meaning.at_link = len(out) - 1


def question_word(out: list[str], meaning: Meaning) -> None:
    out.append(meaning.mood)
    meaning.main.at_link = len(out) - 1


def time(out: list[str], node: Clause) -> None:
    if node.time:
        out += node.time.en.split()
        node.at_time = len(out) - 1


def clause(out: list[str], node: Clause) -> None:
    if node.time_first:
        time(out, node)
    subject(out, node)
    predicate(out, node, "")


def subject(out: list[str], node: Clause) -> None:
    if node.weather:
        out.append("it")
        node.at_subject = len(out) - 1
    elif node.subject and node.gap != "subject":
        nominal(out, node.subject)


def agreement(node: Clause) -> str:
    """The form of to be: am, is or are."""
    if node.subject is None or node.weather:
        return "is"
    pronoun = node.subject.pronoun
    if pronoun and pronoun.en == "I":
        return "am"
    return "are" if (pronoun.plural if pronoun else node.subject.many) else "is"


def auxiliary(node: Clause) -> str:
    """What stands before the subject in a question, and before not."""
    be = agreement(node)
    if node.tense in MODALS or node.tense == "future":
        return "will" if node.tense == "future" else node.tense
    if node.verb is None:
        return {"are": "were"}.get(be, "was") if node.tense == "past" else be
    if node.tense == "past":
        return "did"
    return "does" if be == "is" else "do"


def question(out: list[str], node: Clause) -> None:
    out.append(auxiliary(node))
    node.at_auxiliary = len(out) - 1
    if node.verb is None:
        node.at_verb = node.at_auxiliary
    subject(out, node)
    predicate(out, node, "question")


def predicate(out: list[str], node: Clause, mood: str) -> None:
    verb_group(out, node, mood)
    if node.recipient:
        nominal(out, node.recipient, True)
    if node.object:
        nominal(out, node.object, True)
    if isinstance(node.predicate, Quality):
        if node.predicate.very:
            out.append("very")
            node.predicate.at_very = len(out) - 1
        out.append(node.predicate.adjective.en)
        node.predicate.at_adjective = len(out) - 1
    elif isinstance(node.predicate, Nominal):
        nominal(out, node.predicate)
    elif isinstance(node.predicate, Place):
        place(out, node.predicate)
    elif isinstance(node.predicate, Sky):
        out.append(node.predicate.en)
        node.at_predicate = len(out) - 1
    if node.manner and node.at_manner < 0:
        out.append(node.manner.en)
        node.at_manner = len(out) - 1
    if node.place:
        place(out, node.place)
    if not node.time_first:
        time(out, node)
    if node.content:
        out.append("that")
        node.content.at_link = len(out) - 1
        clause(out, node.content)
    if node.purpose:
        out.append("to")
        node.purpose.at_link = len(out) - 1
        predicate(out, node.purpose, "imperative")


def verb_group(out: list[str], node: Clause, mood: str) -> None:
    """Auxiliary, not, adverbs and the verb; in a question the auxiliary has been said."""
    helped = mood == "question" or (mood == "" and (node.negative or node.tense in (*MODALS, "future", "want")))
    if helped and mood != "question":
        if node.tense == "want":
            if node.negative:
                out.append(auxiliary(node))
            else:
                out.append("wants" if agreement(node) == "is" else "want")
        elif node.tense == "can" and node.negative:
            out.append("cannot")
            node.at_not = len(out) - 1
        else:
            out.append(auxiliary(node))
        node.at_auxiliary = len(out) - 1
    if node.negative and node.at_not < 0:
        out.append("not")
        node.at_not = len(out) - 1
    if node.tense == "want":
        if node.negative or mood == "question":
            out.append("want")
            node.at_auxiliary = len(out) - 1
        out.append("to")
    if node.verb is None:
        be_group(out, node, mood, helped)
        adverb(out, node)
        return
    adverb(out, node)
    if helped or mood == "imperative":
        form = node.verb.en
    elif node.tense == "past":
        form = node.verb.en_past
    else:
        form = node.verb.en_s if agreement(node) == "is" else node.verb.en
    out += form.split()
    node.at_verb = len(out) - 1


def be_group(out: list[str], node: Clause, mood: str, helped: bool) -> None:
    if node.tense in (*MODALS, "future", "want"):
        out.append("be")
    elif not helped:
        out.append(auxiliary(node))
    else:
        node.at_verb = node.at_auxiliary
        return
    node.at_verb = len(out) - 1


def adverb(out: list[str], node: Clause) -> None:
    """How often, and how where there is an object to come: both stand before the verb."""
    if node.frequency:
        out.append(node.frequency.en)
        node.at_frequency = len(out) - 1
    if node.manner and node.object and node.manner.kind == "manner":
        out.append(node.manner.en)
        node.at_manner = len(out) - 1


def nominal(out: list[str], node: Nominal, objective: bool = False) -> None:
    if node.pronoun:
        out.append(node.pronoun.en_object if objective else node.pronoun.en)
        node.at_noun = len(out) - 1
        return
    noun = node.noun
    assert noun is not None
    start = len(out)
    if node.determiner:
        out.append(node.determiner)
        node.at_determiner = start
    at_numbers = []
    for part in numerals.parts(node.number):
        out += numerals.english(part)
        at_numbers.append(len(out) - 1)
    node.at_numbers = tuple(at_numbers)
    if node.adjective:
        out.append(node.adjective.en)
        node.at_adjective = len(out) - 1
    out.append(noun.plural if node.plural else noun.en)
    node.at_noun = len(out) - 1
    if node.determiner == "a" and _takes_an(out[start + 1]):
        out[start] = "an"
    if node.relative:
        out.append("who" if noun.person else "that")
        node.relative.at_link = len(out) - 1
        clause(out, node.relative)
    if node.second:
        out.append("and")
        node.at_and = len(out) - 1
        nominal(out, node.second)


def place(out: list[str], node: Place) -> None:
    relation = node.relation
    if node.city:
        out.append(relation)
        node.at_relation = len(out) - 1
        out.append(node.city.en)
        node.at_city = len(out) - 1
        return
    assert node.nominal is not None
    assert node.nominal.noun is not None
    if relation == "in" and node.nominal.noun.en in SPOTS:
        relation = SPOTS[node.nominal.noun.en].en_in
    out.append(relation)
    node.at_relation = len(out) - 1
    nominal(out, node.nominal)


def _takes_an(word: str) -> bool:
    """Whether it begins with a vowel as it is said: an honest, a useful."""
    return (word[0] in "aeiou" or word.startswith("hon")) and not word.startswith(("uni", "use"))
