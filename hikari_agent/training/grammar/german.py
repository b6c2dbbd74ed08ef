"""The meaning in German: the verb second, first or last, the perfect for the past, cases and adjective endings.

The words of a clause stand in fields: what comes before the finite verb, the middle, the closing verb, and what follows
it (relative clauses of an object, that-clauses, purposes).
"""

from __future__ import annotations

from . import numerals
from .lexicon import SPOTS, Noun, Sky
from .meaning import Clause, Meaning, Nominal, Place, Quality
from .words import Words, attach, finish

HAVE = {"haben": ("habe", "hat", "haben"), "sein": ("bin", "ist", "sind")}
FINITE = {
    "future": ("werde", "wird", "werden"),
    "must": ("muss", "muss", "müssen"),
    "can": ("kann", "kann", "können"),
    "want": ("möchte", "möchte", "möchten"),
    "may": ("darf", "darf", "dürfen"),
    "be": ("bin", "ist", "sind"),
    "was": ("war", "war", "waren"),
}
PRONOUNS = {
    "I": ("ich", "mich", "mir"),
    "you": ("Sie", "Sie", "Ihnen"),
    "he": ("er", "ihn", "ihm"),
    "she": ("sie", "sie", "ihr"),
    "we": ("wir", "uns", "uns"),
    "they": ("sie", "sie", "ihnen"),
}
STEMS = {
    "a": "ein", "no": "kein", "my": "mein", "your": "Ihr", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr",
}  # fmt: skip
CASES = {"nom": 0, "acc": 1, "dat": 2}
ARTICLES = {
    "m": ("der", "den", "dem"),
    "f": ("die", "die", "der"),
    "n": ("das", "das", "dem"),
    "p": ("die", "die", "den"),
}
STRONG = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em"), "p": ("e", "e", "en")}
WEAK = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en"), "p": ("en", "en", "en")}
CONTRACTIONS = {
    ("in", "dem"): "im", ("an", "dem"): "am", ("von", "dem"): "vom", ("zu", "dem"): "zum", ("zu", "der"): "zur",
    ("in", "das"): "ins",
}  # fmt: skip
LINKS = {"because": "weil", "if": "wenn", "although": "obwohl", "when": "als", "but": "aber"}
QUESTIONS = {"who": "wer", "what": "was", "where": "wo", "when": "wann", "why": "warum"}
RELATIONS = {"on": "auf", "under": "unter", "behind": "hinter", "beside": "neben", "in": "in"}


def render(meaning: Meaning) -> Words:
    main, other = meaning.main, meaning.other
    first: Words = []
    if meaning.opener:
        first = [(word, meaning.at_opener) for word in meaning.opener.de.split()]
    if other and meaning.other_first:
        out = attach([(LINKS[meaning.link], meaning.at_link), *clause(other, "last")], ",") + clause(main, "first")
    elif meaning.mood == "please":
        out = first + clause(main, "please")
    elif meaning.mood == "question":
        out = clause(main, "first")
    elif meaning.mood != "statement":
        out = [(QUESTIONS[meaning.mood], main.at_link), *clause(main, "first")]
    else:
        out = first + clause(main, "first") if first else clause(main, "second")
    if other and not meaning.other_first:
        order = "second" if meaning.link == "but" else "last"
        out = [*attach(out, ","), (LINKS[meaning.link], meaning.at_link), *clause(other, order)]
    return finish(out, "." if meaning.mood in ("statement", "please") else "?")


def clause(node: Clause, order: str) -> Words:
    """`order` is second, first, last (of the finite verb), please or zu."""
    subject = [] if node.gap == "subject" or order == "zu" else subject_words(node)
    time = [(word, node.at_time) for word in node.time.de.split()] if node.time else []
    finite, closing = verbs(node, order)
    middle, after = middle_field(node, [] if node.time_first and order == "second" else time)
    if order == "second":
        front, back = (time, subject) if node.time_first else (subject, [])
        out = [*front, finite, *back, *middle, *closing]
    elif order in ("first", "please"):
        out = [finite, *subject, *middle, *closing]
    else:
        out = [*subject, *middle, *closing, *([finite] if order == "last" else [])]
    for words in after:
        out = attach(out, ",") + words
    return out


def subject_words(node: Clause) -> Words:
    if node.weather:
        return [("es", node.at_subject)]
    return nominal(node.subject, "nom") if node.subject else []


def agree(node: Clause, forms: tuple[str, str, str]) -> str:
    """The form for I, for one and for many."""
    if node.weather or node.subject is None:
        return forms[1]
    pronoun = node.subject.pronoun
    if pronoun and node.gap != "subject":
        return forms[2] if pronoun.plural else forms[0] if pronoun.en == "I" else forms[1]
    return forms[2] if node.subject.many else forms[1]


def number_heard(node: Nominal) -> int:
    """Where English says whether the subject is one or many."""
    if node.second:
        return node.at_and
    if node.number:
        return node.at_numbers[0]
    return node.at_determiner if node.determiner in ("a", "this", "these", "every", "several") else node.at_noun


def verbs(node: Clause, order: str) -> tuple[tuple[str, int], Words]:
    """The finite verb (empty in a purpose) and the words that close the clause."""
    at, verb = node.at_verb, node.verb
    helper = max(node.at_auxiliary, node.at_not) if node.tense == "must" else node.at_auxiliary
    if node.subject and node.gap != "subject":
        helper = max(helper, number_heard(node.subject))
    modal = "may" if node.tense == "must" and node.negative else node.tense
    if verb is None:
        if node.tense == "future":
            return (agree(node, FINITE["future"]), helper), [("sein", node.at_verb)]
        return (agree(node, FINITE["was" if node.tense == "past" else "be"]), at), []
    prefix = verb.de_prefix
    if order == "please":
        return (verb.de, at), [(prefix, at)] if prefix else []
    if order == "zu":
        return ("", at), [(f"{prefix}zu{verb.de}", at)] if prefix else [("zu", at), (verb.de, at)]
    if node.tense == "past":
        return (agree(node, HAVE[verb.de_aux]), at), [(verb.de_participle, at)]
    if modal in FINITE:
        return (agree(node, FINITE[modal]), helper), [(prefix + verb.de, at)]
    finite = agree(node, (verb.de_1sg, verb.de_3sg, verb.de))
    if order == "last":
        return (prefix + finite, at), []
    return (finite, at), [(prefix, at)] if prefix else []


def middle_field(node: Clause, time: Words) -> tuple[Words, list[Words]]:
    """What stands between the verbs, and the clauses that come after them."""
    out: Words = []
    after: list[Words] = []
    negated: Words = [("nicht", node.at_not)] if node.negative else []
    frame = node.verb.de_frame if node.verb else ""
    parts: list[tuple[Nominal, str]] = []
    if node.recipient:
        parts.append((node.recipient, "dat"))
    if node.object and " " not in frame:
        parts.append((node.object, frame))
    parts.sort(key=lambda part: part[0].pronoun is None)
    frequency: Words = [(node.frequency.de, node.at_frequency)] if node.frequency else []
    early = node.object is not None and indefinite(node.object)
    said = False
    for part, case in parts:
        if part.pronoun is None and not said:
            out += frequency
            if early:
                out += time
            said = True
        none = node.negative and part is node.object and indefinite(part) and not part.number
        words = nominal(part, case, at_not=node.at_not if none else -1, whole=False)
        out += words
        if none:
            negated = []
        if part.relative:
            after.append(relative(part))
    if not said:
        out += frequency
    if not (said and early):
        out += time
    out += negated
    if node.manner:
        out.append((node.manner.de, node.at_manner))
    if node.object and " " in frame:
        preposition, case = frame.split()
        words = nominal(node.object, case, whole=False)
        out += [(preposition, node.at_verb), *words]
        if node.object.relative:
            after.append(relative(node.object))
    if node.place:
        out += place(node.place, node)
    out += predicate_words(node)
    if node.content:
        after.append([("dass", node.content.at_link), *clause(node.content, "last")])
    if node.purpose:
        after.append([("um", node.purpose.at_link), *clause(node.purpose, "zu")])
    return out, after


def indefinite(node: Nominal) -> bool:
    return node.pronoun is None and node.determiner in ("", "a", "several")


def predicate_words(node: Clause) -> Words:
    predicate = node.predicate
    if isinstance(predicate, Quality):
        words: Words = [("sehr", predicate.at_very)] if predicate.very else []
        return [*words, (predicate.adjective.de, predicate.at_adjective)]
    if isinstance(predicate, Nominal):
        return nominal(predicate, "nom")
    if isinstance(predicate, Place):
        return place(predicate, node)
    if isinstance(predicate, Sky):
        return [(predicate.de, node.at_predicate)]
    return []


def form(noun: Noun, plural: bool, case: str) -> str:
    if not plural:
        return noun.de if case == "nom" else noun.de_oblique
    return noun.de_plural + ("n" if case == "dat" and noun.de_plural[-1] not in "ns" else "")


def nominal(node: Nominal, case: str, at_not: int = -1, whole: bool = True) -> Words:
    """Determiner, number, adjective, noun and, if `whole`, its relative clause; `at_not` makes the determiner kein."""
    if node.pronoun:
        return [(PRONOUNS[node.pronoun.en][CASES[case]], node.at_noun)]
    noun = node.noun
    assert noun is not None
    at, index = node.at_noun, CASES[case]
    gender = "p" if node.plural else noun.de_gender
    word, endings = determiner(node, "no" if at_not >= 0 else node.determiner, gender, index)
    out: Words = [(word, max(at, at_not))] if word else []
    if node.number:
        out.append((numerals.german(node.number), node.at_numbers[-1]))
    if node.adjective:
        stem = node.adjective.de_stem
        ending = endings[gender][index]
        out.append((stem + ending, at))
    out.append((form(noun, node.plural, case), at))
    if node.relative and whole:
        out = attach(attach(out, ",") + relative(node), ",")
    if node.second:
        out += [("und", node.at_and), *nominal(node.second, case)]
    return out


def determiner(node: Nominal, en: str, gender: str, index: int) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """The word, and the endings of an adjective after it."""
    if en == "the":
        return ARTICLES[gender][index], WEAK
    if en in ("this", "these", "every"):
        return ("jed" if en == "every" else "dies") + STRONG[gender][index], WEAK
    if en == "several":
        return "einig" + STRONG["p"][index], STRONG
    if en in STEMS:
        bare = (gender in "mn" and index == 0) or (gender == "n" and index == 1)
        return STEMS[en] + ("" if bare else STRONG[gender][index]), STRONG if bare else WEAK
    return "", STRONG


def relative(node: Nominal) -> Words:
    """The relative clause of a nominal, its pronoun first."""
    clause_node = node.relative
    assert clause_node is not None
    assert node.noun is not None
    gender = "p" if node.plural else node.noun.de_gender
    case, at = "nom", clause_node.at_link
    if clause_node.gap == "object":
        assert clause_node.verb is not None
        case, at = clause_node.verb.de_frame, max(at, clause_node.at_verb)
    pronoun = ARTICLES[gender][CASES[case]]
    if case == "dat" and gender == "p":
        pronoun = "denen"
    return [(pronoun, at), *clause(clause_node, "last")]


def place(node: Place, clause_node: Clause) -> Words:
    verb = clause_node.verb
    if node.city:
        word = {"in": "in", "to": "nach", "from": "von" if verb and verb.en == "depart" else "aus"}[node.relation]
        return [(word, node.at_city), (node.city.de, node.at_city)]
    assert node.nominal is not None
    assert node.nominal.noun is not None
    spot = SPOTS.get(node.nominal.noun.en)
    if node.relation == "to" and spot:
        word = spot.de_to
        case = "dat" if word == "zu" else "acc"
    elif node.relation == "from" and spot:
        word, case = "aus" if spot.de_in == "in" else "von", "dat"
    elif node.relation == "in" and spot:
        word, case = spot.de_in, "dat"
    else:
        word, case = RELATIONS[node.relation], "dat"
    words = nominal(node.nominal, case)
    if node.nominal.determiner == "the" and (word, words[0][0]) in CONTRACTIONS:
        return [(CONTRACTIONS[word, words[0][0]], words[0][1]), *words[1:]]
    return [(word, node.nominal.at_noun), *words]
