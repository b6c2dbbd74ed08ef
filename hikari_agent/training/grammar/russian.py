"""The meaning in Russian: the order of English, with cases, aspect and agreement."""

from __future__ import annotations

from . import numerals
from .lexicon import CASES, DETERMINERS, SPOTS, Noun, Sky, Verb
from .meaning import Clause, Meaning, Nominal, Place, Quality
from .words import Words, attach, finish

PEOPLE = {
    "I": ("я", "меня", "мне", "меня", "мной", "мне"),
    "you": ("вы", "вас", "вам", "вас", "вами", "вас"),
    "he": ("он", "его", "ему", "его", "ним", "нём"),
    "she": ("она", "её", "ей", "её", "ней", "ней"),
    "we": ("мы", "нас", "нам", "нас", "нами", "нас"),
    "they": ("они", "их", "им", "их", "ними", "них"),
}
OWNERS = {"his": "его", "her": "её", "their": "их"}
LINKS = {"because": ("потому", "что"), "if": ("если",), "although": ("хотя",), "when": ("когда",), "but": ("но",)}
QUESTIONS = {"who": "кто", "what": "что", "where": "где", "when": "когда", "why": "почему"}
MUST = {"m": "должен", "f": "должна", "n": "должно", "p": "должны"}
WAS = {"m": "был", "f": "была", "n": "было", "p": "были"}
WILL = ("буду", "будет", "будем", "будете", "будут")
CAN = ("могу", "может", "можем", "можете", "могут")
ABLE = {can: "с" + can for can in CAN}  # will be able to
WANT = ("хочу", "хочет", "хотим", "хотите", "хотят")
RELATIONS = {
    "on": ("на", "prep"),
    "under": ("под", "ins"),
    "behind": ("за", "ins"),
    "beside": ("с", "ins"),
    "in": ("в", "prep"),
}
FRAMES = {"accs": "acc", "loct": "prep", "ablt": "ins"}
VOWELS = "аэиоу"


def render(meaning: Meaning) -> Words:
    main, other = meaning.main, meaning.other
    out: Words = []
    if meaning.opener:
        out += [(word, meaning.at_opener) for word in meaning.opener.ru.split()]
        if meaning.opener.kind in ("opener", "please"):
            out = attach(out, ",")
    if other and meaning.other_first:
        link = ("так", "как") if meaning.link == "because" else LINKS[meaning.link]
        out += [*[(word, meaning.at_link) for word in link], *clause(other)]
        out = attach(out, ",")
    if meaning.mood == "please":
        out += clause(main, "please")
    else:
        if meaning.mood in QUESTIONS:
            out.append((QUESTIONS[meaning.mood], main.at_link))
        words = clause(main)
        if meaning.link == "if":
            words = [(ABLE.get(word, word) if at == main.at_auxiliary else word, at) for word, at in words]
        out += words
    if other and not meaning.other_first:
        out = attach(out, ",")
        out += [(word, meaning.at_link) for word in LINKS[meaning.link]]
        out += clause(other)
    return finish(out, "." if meaning.mood in ("statement", "please") else "?")


def clause(node: Clause, form: str = "") -> Words:
    """`form` is please or purpose where the verb is no finite one."""
    out: Words = []
    time: Words = [(word, node.at_time) for word in node.time.ru.split()] if node.time else []
    if node.time_first:
        out += time
    if node.weather:
        where = place(node.place) if node.place else []
        return [*out, *where, *([] if node.time_first else time), *weather(node)]
    subject: Words = []
    if node.subject and node.gap != "subject" and not form:
        subject = nominal(node.subject, "nom")
    if node.verb is None:
        return out + subject + state(node) + ([] if node.time_first else time)
    often: Words = [(node.frequency.ru, node.at_frequency)] if node.frequency else []
    manner: Words = [(node.manner.ru, node.at_manner)] if node.manner else []
    said = verb(node, form)
    early = node.manner is not None and node.object is not None and node.manner.kind == "manner"
    if early:
        said = [*said[:-1], *manner, said[-1]] if said[0][0] != "не" or len(said) > 2 else [*manner, *said]
    turned = node.gap == "object" and node.subject is not None and node.subject.noun is not None
    out += [*often, *said, *subject] if turned else [*subject, *often, *said]
    if node.recipient:
        out += nominal(node.recipient, "dat", node.negative)
    if node.object:
        out += governed(node)
    if not early:
        out += manner
    if node.place:
        out += place(node.place, node.verb)
    if not node.time_first:
        out += time
    if node.content:
        out = [*attach(out, ","), ("что", node.content.at_link), *clause(node.content)]
    if node.purpose:
        out = [*attach(out, ","), ("чтобы", node.purpose.at_link), *clause(node.purpose, "purpose")]
    return out


def weather(node: Clause) -> Words:
    if isinstance(node.predicate, Sky):
        be: Words = [] if node.tense == "present" else [("было" if node.tense == "past" else "будет", node.at_verb)]
        return [*be, (node.predicate.ru, node.at_predicate)]
    assert node.verb is not None
    return [*verb(node, ""), ("дождь" if node.verb.en == "rain" else "снег", node.at_verb)]


def gender_of(node: Clause) -> tuple[str, int]:
    """Gender (p: plural) for the past, and which of the five present forms."""
    subject = node.subject
    if node.weather or subject is None:
        return "m", 1
    if subject.pronoun:
        if node.gap == "subject":
            return "m", 1
        pronoun = subject.pronoun
        index = {"I": 0, "we": 2, "you": 3, "they": 4}.get(pronoun.en, 1)
        return "p" if pronoun.plural else pronoun.gender, index
    assert subject.noun is not None
    if subject.number and subject.number % 10 == 1 and subject.number % 100 != 11:
        return subject.noun.ru_gender, 1
    return ("p", 4) if subject.many else (subject.noun.ru_gender, 1)


def verb(node: Clause, form: str) -> Words:
    entry = node.verb
    assert entry is not None
    at = node.at_verb
    negative = node.negative or node.never
    no: Words = [("не", node.at_not if node.negative else node.at_frequency)] if negative else []
    gender, person = gender_of(node)
    past_index = 1 + "mfnp".index(gender)
    lasting = "ipf" in entry.traits or (node.weather and node.tense == "past") or node.frequency is not None
    lasting = lasting or (negative and node.tense in ("past", "future") and entry.en in ("speak with", "think about"))
    perfective = entry.ru_perfective if not lasting else entry.ru_imperfective
    if form == "please":
        imperative = entry.ru_perfective[10]
        return [(imperative, at)]
    if form == "purpose":
        return [(perfective[0], at)]
    if node.tense == "past":
        return [*no, (perfective[past_index], at)]
    if node.tense in ("future", "if"):
        if lasting:
            return [*no, (WILL[person], at), (entry.ru_imperfective[0], at)]
        return [*no, (perfective[5 + person], at)]
    helper = {"must": MUST[gender], "can": CAN[person], "want": WANT[person]}.get(node.tense)
    if helper:
        aspect = entry.ru_imperfective if negative and node.tense != "can" else perfective
        return [*no, (helper, node.at_auxiliary), (aspect[0], at)]
    return [*no, (entry.ru_imperfective[5 + person], at)]


def state(node: Clause) -> Words:
    """To be: nothing in the present (a dash between two nouns), the instrumental otherwise."""
    gender, person = gender_of(node)
    at = node.at_verb
    no: Words = [("не", node.at_not)] if node.negative else []
    be: Words = []
    if node.tense == "past":
        be = [(WAS[gender], at)]
    elif node.tense == "future":
        be = [(WILL[person], at)]
    predicate = node.predicate
    case = "ins" if be else "nom"
    subject = node.subject
    assert subject is not None
    if isinstance(predicate, Quality):
        very: Words = [("очень", predicate.at_very)] if predicate.very else []
        word = agree(predicate.adjective.ru, gender, False, case)
        return [*no, *be, *very, (word, predicate.at_adjective)]
    if isinstance(predicate, Nominal):
        dash: Words = [("—", at)] if not be and subject.noun else []
        return [*dash, *no, *be, *nominal(predicate, case)]
    assert isinstance(predicate, Place)
    return [*no, *be, *place(predicate)]


def agree(forms: tuple[str, ...], gender: str, animate: bool, case: str) -> str:
    """The form of an adjective or determiner; `gender` is m, f, n or p.

    The forms are: masculine nom gen dat ins prep, feminine nom gen acc, neuter nom, plural nom gen dat ins.
    """
    if case == "acc":
        if gender == "f":
            return forms[7]
        case = "gen" if animate and gender in "mp" else "nom"
    if gender == "p":
        return forms[{"nom": 9, "gen": 10, "dat": 11, "ins": 12, "prep": 10}[case]]
    if gender == "f":
        return forms[5 if case == "nom" else 6]
    if case == "nom":
        return forms[8 if gender == "n" else 0]
    return forms[{"gen": 1, "dat": 2, "ins": 3, "prep": 4}[case]]


def form_of(noun: Noun, plural: bool, case: str) -> str:
    return (noun.ru_plural if plural else noun.ru_singular)[CASES.index(case)]


def nominal(node: Nominal, case: str, negative: bool = False) -> Words:
    if node.pronoun:
        return [(PEOPLE[node.pronoun.en][CASES.index(case)], node.at_noun)]
    noun = node.noun
    assert noun is not None
    if node.number or node.determiner == "several":
        out = counted(node, noun, case)
    else:
        out = []
        at = node.at_noun
        gender = "p" if node.plural else noun.ru_gender
        determiner = "self" if node.reflexive else node.determiner
        if determiner in DETERMINERS:
            out.append((agree(DETERMINERS[determiner], gender, noun.ru_animate, case), at))
        elif determiner in OWNERS:
            out.append((OWNERS[determiner], node.at_determiner))
        if node.adjective:
            out.append((agree(node.adjective.ru, gender, noun.ru_animate, case), at))
        out.append((form_of(noun, node.plural, case), at))
    if node.relative:
        relative = node.relative
        which, heard = "nom", relative.at_link
        if relative.gap == "object":
            assert relative.verb is not None
            which, heard = relative.verb.ru_frame, max(heard, relative.at_verb)
        gender = "p" if node.plural else noun.ru_gender
        word = agree(DETERMINERS["who"], gender, noun.ru_animate, which)
        out = [*attach(out, ","), (word, heard), *clause(relative)]
        out = attach(out, ",")
    if node.second:
        out += [("и", node.at_and), *nominal(node.second, case)]
    return out


def counted(node: Nominal, noun: Noun, case: str) -> Words:
    """A number or several with what it counts; only as a subject or a plain object."""
    at = node.at_noun
    out: Words = []
    last = node.number % 10 if not 11 <= node.number % 100 <= 14 else 0
    parts = numerals.parts(node.number)
    person = noun.ru_animate and case == "acc"
    for part, heard in zip(parts, node.at_numbers, strict=True):
        small = part < 5
        how = case
        if person and small and (part == 1 or len(parts) == 1):
            how = "gen" if part > 1 or noun.ru_gender == "m" else "acc"
        late = part < 3 or (case == "acc" and small and len(parts) == 1)
        out.append((numerals.russian(part, noun.ru_gender, how), at if late else heard))
    if not parts:
        out.append(("нескольких" if person else "несколько", at if case == "acc" else node.at_determiner))
    quality = node.adjective.ru if node.adjective else None
    if last == 1 and node.number:
        adjective = agree(quality, noun.ru_gender, noun.ru_animate, case) if quality else ""
        form = form_of(noun, False, case)
    elif 2 <= last <= 4 and not (person and len(parts) == 1):
        adjective = agree(quality, "p", False, "nom" if noun.ru_gender == "f" else "gen") if quality else ""
        form = form_of(noun, False, "gen")
    else:
        adjective = agree(quality, "p", False, "gen") if quality else ""
        form = form_of(noun, True, "gen")
    if adjective:
        out.append((adjective, at))
    return [*out, (form, at)]


def governed(node: Clause) -> Words:
    """The object in the case, and after the preposition, of its verb."""
    assert node.verb is not None
    assert node.object is not None
    frame = node.verb.ru_frame
    if " " not in frame:
        return nominal(node.object, frame)
    preposition, case = frame.split()
    words = nominal(node.object, FRAMES[case])
    at = max(node.at_verb, words[0][1]) if preposition in ("с", "о") else node.at_verb
    return [(before(preposition, words[0][0]), at), *words]


def before(preposition: str, word: str) -> str:
    """с, о and в as they sound before the word."""
    if preposition == "о":
        return "обо" if word == "мне" else "об" if word[0].lower() in VOWELS else "о"
    if preposition == "с" and (word == "мной" or (word[0] in "сзшж" and word[1] not in "аеёиоуыэюяь")):
        return "со"
    return preposition


def place(node: Place, verb: Verb | None = None) -> Words:
    arriving = verb is not None and "arrival" in verb.traits
    if node.city:
        city = node.city
        if node.relation == "from":
            return [("из", node.at_city), (city.ru_gen, node.at_city)]
        return [
            ("в", node.at_city),
            (city.ru_acc if arriving or node.relation == "to" else city.ru_prep, node.at_city),
        ]
    assert node.nominal is not None
    noun = node.nominal.noun
    assert noun is not None
    spot = SPOTS.get(noun.en)
    at = node.nominal.at_noun
    if spot and node.relation in ("in", "to", "from"):
        if node.relation == "from":
            words = nominal(node.nominal, "gen")
            return [(before(spot.ru_from, words[0][0]), at), *words]
        going = node.relation == "to" or arriving
        words = nominal(node.nominal, "acc" if going else "prep")
        if not going and not node.nominal.plural:
            words[-1] = (spot.ru_location, at)
        return [(spot.ru_in, at), *words]
    preposition, case = RELATIONS[node.relation]
    words = nominal(node.nominal, case)
    out: Words = [("рядом", node.at_relation)] if node.relation == "beside" else []
    at = max(node.at_relation, words[0][1]) if preposition == "с" else node.at_relation
    return [*out, (before(preposition, words[0][0]), at), *words]
