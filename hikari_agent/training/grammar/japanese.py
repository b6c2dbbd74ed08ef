"""The meaning in Japanese: the verb last and polite, plain inside a sentence, what describes a noun before it.

The units are like morphemes: noun, particle, stem and ending of a verb.
"""

from __future__ import annotations

from . import numerals
from .lexicon import Sky
from .meaning import POSSESSIVES, PRONOUNS, Clause, Meaning, Nominal, Place, Quality
from .words import Words, attach

PEOPLE = {"I": "私", "you": "あなた", "he": "彼", "she": "彼女", "we": "私たち", "they": "彼ら"}
OWNERS = {pronoun.possessive: PEOPLE[pronoun.en] for pronoun in PRONOUNS}
RELATIONS = {"on": "上", "under": "下", "behind": "後ろ", "beside": "隣", "in": "中"}
PLACES = {"to": "に", "from": "から"}
POLITE = {(False, False): "ます", (False, True): "ません", (True, False): "ました", (True, True): "ませんでした"}
I_ENDINGS = {(False, False): "い", (False, True): "くない", (True, False): "かった", (True, True): "くなかった"}
NOUN_POLITE = {
    (False, False): "です",
    (False, True): "ではありません",
    (True, False): "でした",
    (True, True): "ではありませんでした",
}
NOUN_PLAIN = {(False, False): "だ", (False, True): "ではない", (True, False): "だった", (True, True): "ではなかった"}

LASTING = ("sleep", "wait", "swim", "laugh", "work")


def render(meaning: Meaning) -> Words:
    main, other = meaning.main, meaning.other
    out: Words = []
    if meaning.opener and meaning.mood != "please":
        out.append((meaning.opener.ja + "、", meaning.at_opener))
    if meaning.mood == "please":
        out += clause(main, "please", "")
    elif other is None:
        if meaning.mood == "why":
            words = clause(main, "plain", "は", meaning.mood)
            out += [*([*words[:-1], ("な", words[-1][1])] if words[-1][0] == "だ" else words), ("のです", -1)]
        elif meaning.opener and meaning.opener.en == "maybe":
            words = clause(main, "plain", "は", meaning.mood)
            out += [*(words[:-1] if words[-1][0] == "だ" else words), ("でしょう", -1)]
        else:
            out += clause(main, "polite", "は", meaning.mood)
    elif meaning.link == "but":
        out += [*attach([*clause(main, "polite", "は"), ("が", meaning.at_link)], "、"), *clause(other, "polite", "は")]
    elif not meaning.other_first:
        out += attach(clause(main, "polite", "は"), "。")
        out += [("なぜなら、", meaning.at_link), *clause(other, "plain", "は"), ("からです", -1)]
    else:
        form = "if" if meaning.link == "if" else "plain"
        words = clause(other, form, "が")
        if meaning.link == "because":
            if words[-1][0] == "だ":
                words[-1] = ("な", words[-1][1])
            words.append(("ので", -1))
        elif meaning.link == "although":
            words.append(("けれども", -1))
        elif meaning.link == "when":
            words.append(("とき", -1))
        out += [*attach(words, "、"), *clause(main, "polite", "は")]
    if meaning.mood not in ("statement", "please"):
        out.append(("か", -1))
    return attach(out, "。")


def clause(node: Clause, form: str, topic: str, mood: str = "") -> Words:
    """`form` is polite, plain, if, hope, please or purpose; `topic` is the particle of the subject, は or が."""
    out: Words = []
    time: Words = [(node.time.ja, node.at_time)] if node.time else []
    if mood == "why":
        out.append(("なぜ", node.at_link))
    early = node.time_first or (isinstance(node.predicate, Sky) and node.place is not None)
    if early and time:
        out += attach(time, "、")
    out += subject(node, form, topic, mood)
    if not early:
        out += time
    if mood == "when":
        out.append(("いつ", node.at_link))
    elif mood == "where":
        out.append(("どこで", node.at_link))
    if node.frequency:
        out.append((node.frequency.ja, node.at_frequency))
    if node.content:
        hope = node.verb is not None and node.verb.en == "hope"
        done = hope and node.content.verb is not None and node.content.tense == "past"
        words = clause(node.content, "hope" if done else "plain", "が")
        if hope:
            if words[-1][0] == "だ":
                words[-1] = ("である", words[-1][1])
            return [*out, *words, ("こと", -1), ("を", -1), *verb(node, form, mood)]
        return [*out, *words, ("と", -1), *verb(node, form, mood)]
    if node.purpose:
        out += [*clause(node.purpose, "purpose", ""), ("ために", node.purpose.at_link)]
    if node.place and not isinstance(node.predicate, Sky):
        out += place(node.place, place_particle(node))
    if node.recipient:
        out += [*nominal(node.recipient), ("に", node.recipient.at_noun)]
    if mood == "what":
        out += [("何", node.at_link), ("を", node.at_link)]
    if node.object:
        words = nominal(node.object)
        assert node.verb is not None
        particle = node.verb.ja_particle
        out += [*words, (particle, words[-1][1])] if particle else words
    if node.manner:
        out.append((node.manner.ja, node.at_manner))
    return out + (verb(node, form, mood) if node.verb else copula(node, form))


def subject(node: Clause, form: str, topic: str, mood: str) -> Words:
    if form in ("please", "purpose"):
        return []
    if mood == "who":
        return [("誰", node.at_link), ("が", node.at_link)]
    if node.gap == "subject":
        return []
    if isinstance(node.predicate, Sky):
        if node.place:
            return place(node.place, topic if topic == "は" or node.predicate.ja_kind == "no" else "で")
        return []
    if node.weather:
        return []
    assert node.subject is not None
    words = nominal(node.subject)
    return [*words, (topic, words[-1][1])]


def place_particle(node: Clause) -> str:
    assert node.place is not None
    if node.place.relation in PLACES:
        return PLACES[node.place.relation]
    traits = node.verb.traits if node.verb else frozenset()
    return "に" if traits & {"residence", "arrival"} else "で"


def place(node: Place, particle: str) -> Words:
    words: Words = [(node.city.ja, node.at_city)] if node.city else nominal(node.nominal) if node.nominal else []
    at = words[-1][1]
    if node.relation in RELATIONS and node.relation != "in":
        words += [("の", at), (RELATIONS[node.relation], at)]
    return [*words, (particle, at)] if particle else words


def nominal(node: Nominal) -> Words:
    """Relative clause, determiner, number with its counter, adjective, noun."""
    if node.pronoun:
        return [(PEOPLE[node.pronoun.en], node.at_noun)]
    noun = node.noun
    assert noun is not None
    out: Words = clause(node.relative, "plain", "が") if node.relative else []
    determiner = node.determiner
    if determiner in POSSESSIVES:
        own = "自分たち" if determiner in ("our", "their") else "自分"
        out += [(own if node.reflexive else OWNERS[determiner], node.at_determiner), ("の", node.at_determiner)]
    elif determiner in ("this", "these"):
        out.append(("この" if determiner == "this" else "これらの", node.at_determiner))
    elif determiner == "every":
        out += [("すべて", node.at_determiner), ("の", node.at_determiner)]
    elif determiner == "several":
        living = noun.person or "animal" in noun.tags
        counter = f"何{noun.ja_counter}か" if living else "いくつか"
        out += [(counter, node.at_noun if living else node.at_determiner), ("の", node.at_noun)]
    if node.number:
        for part, at in zip(numerals.parts(node.number), node.at_numbers, strict=True):
            out.append((numerals.japanese(part), at))
        counter = noun.ja_counter
        if counter == "つ" and node.number > 9:
            counter = "個" if "small" in noun.tags or "piece" in noun.tags or "goods" in noun.tags else ""
        if counter != "=":
            out += [(counter, node.at_noun)] if counter else []
            out.append(("の", node.at_noun))
    if node.adjective:
        ending = {"i": "い", "na": "な", "no": "の"}[node.adjective.ja_kind]
        out.append((node.adjective.ja + ending, node.at_adjective))
    out.append((noun.ja, node.at_noun))
    if node.second:
        out += [("と", node.at_and), *nominal(node.second)]
    return out


def verb(node: Clause, form: str, mood: str) -> Words:
    """The verb with its ending."""
    entry = node.verb
    assert entry is not None
    at = node.at_verb
    negative = node.negative or node.never
    past = node.tense == "past"
    head: Words = []
    if node.weather:
        head = [("雨" if entry.en == "rain" else "雪", at), ("が", at)]
    if form == "please":
        return [(entry.ja_te, at), ("ください", at)]
    if form == "purpose":
        return [(entry.ja, at)]
    if form == "hope":
        return [*head, (entry.ja_te, at), ("いない" if negative else "いる", at)]
    polite = form == "polite"
    stem, te = entry.ja_masu, entry.ja_te
    if form == "if":
        if negative:
            return [*head, (entry.ja_nai, at), ("なかったら", at)]
        return [*head, (perfective(te) + "ら", at)]
    if node.tense == "must":
        if negative:
            return [(te, at), ("は", at), ("いけません" if polite else "いけない", at)]
        return [(entry.ja_nai, at), ("なければ", at), ("なりません" if polite else "ならない", at)]
    if node.tense == "can":
        ending = ("できません" if negative else "できます") if polite else "できない" if negative else "できる"
        return [(entry.ja, at), ("こと", at), ("が", at), (ending, at)]
    if node.tense == "want":
        return want(node, polite, negative, mood)
    if state(node) or (form == "plain" and lasting(node)):
        ending = ending_of_state(polite, past, negative)
        return [*head, (te, at), (ending, at)]
    if polite:
        return [*head, (stem, at), (POLITE[past, negative], at)]
    if negative:
        return [*head, (entry.ja_nai, at), ("なかった" if past else "ない", at)]
    return [*head, (perfective(te) if past else entry.ja, at)]


def state(node: Clause) -> bool:
    """Whether the verb says that something goes on: 住んでいます."""
    assert node.verb is not None
    if "state" in node.verb.traits and node.tense in ("past", "present"):
        return True
    first = node.subject is not None and node.subject.pronoun is not None and node.subject.pronoun.en == "I"
    if "state3" in node.verb.traits and not first and node.tense in ("past", "present"):
        return True
    return "stateja" in node.verb.traits and node.tense == "present"


def lasting(node: Clause) -> bool:
    """Whether a relative clause says what its noun is doing: 待っている女優."""
    assert node.verb is not None
    return node.gap == "subject" and node.tense == "present" and not node.frequency and node.verb.en in LASTING


def ending_of_state(polite: bool, past: bool, negative: bool) -> str:
    if polite:
        return "い" + POLITE[past, negative]
    return {(False, False): "いる", (False, True): "いない", (True, False): "いた", (True, True): "いなかった"}[
        past, negative
    ]


def perfective(te: str) -> str:
    """買って to 買った, 読んで to 読んだ."""
    return te[:-1] + ("だ" if te[-1] == "で" else "た")


def want(node: Clause, polite: bool, negative: bool, mood: str) -> Words:
    """たい is for oneself (and, in a question, for you) where one speaks for oneself; others たがる."""
    entry, at = node.verb, node.at_verb
    assert entry is not None
    pronoun = node.subject.pronoun if node.subject else None
    asked = mood not in ("", "statement")
    own = pronoun is not None and (pronoun.person == 1 or (pronoun.person == 2 and asked))
    if own and (polite or mood) and node.gap != "subject":
        ending = "たくない" if negative else "たい"
        return [(entry.ja_masu, at), (ending, at), *([("です", at)] if polite else [])]
    return [(entry.ja_masu, at), ("たがって", at), (ending_of_state(polite, False, negative), at)]


def copula(node: Clause, form: str) -> Words:
    """What says that something is so: an adjective, です, or あります."""
    predicate, past, negative = node.predicate, node.tense == "past", node.negative
    polite = form == "polite"
    if isinstance(predicate, Place):
        assert node.subject is not None
        living = node.subject.pronoun is not None or (
            node.subject.noun is not None and bool(node.subject.noun.tags & {"person", "animal"})
        )
        assert predicate.nominal is not None
        at = predicate.nominal.at_noun
        words = nominal(predicate.nominal)
        words += [("の", at), (RELATIONS[predicate.relation], at), ("に", at)]
        if polite:
            return [*words, ("い" if living else "あり", at), (POLITE[past, negative], at)]
        return [*words, (("いた" if past else "いる") if living else ("あった" if past else "ある"), at)]
    if isinstance(predicate, Nominal):
        words = nominal(predicate)
        return [*words, ((NOUN_POLITE if polite else NOUN_PLAIN)[past, negative], words[-1][1])]
    if isinstance(predicate, Sky):
        stem, kind, at = predicate.ja, predicate.ja_kind, node.at_predicate
        out: Words = []
    else:
        assert isinstance(predicate, Quality)
        stem, kind, at = predicate.adjective.ja, predicate.adjective.ja_kind, predicate.at_adjective
        out = [("とても", predicate.at_very)] if predicate.very else []
    if node.tense == "future" and polite:
        ending = I_ENDINGS[False, negative] if kind == "i" else "ではない" if negative else ""
        return [*out, (stem + ending, at), ("でしょう", at)]
    if kind == "i":
        return [*out, (stem + I_ENDINGS[past, negative], at), *([("です", at)] if polite else [])]
    return [*out, (stem, at), ((NOUN_POLITE if polite else NOUN_PLAIN)[past, negative], at)]
