"""The grammar that makes the text of synthetic speech: enough words, one translation each, alignments that hold."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from itertools import islice, pairwise

import pytest

from hikari_agent.training.grammar import (
    LANGUAGES,
    ParallelSentence,
    english,
    german,
    japanese,
    numerals,
    russian,
    sentences,
    talk,
)
from hikari_agent.training.grammar.lexicon import ADVERBS, CITIES, NOUN, TIMES, VERBS
from hikari_agent.training.grammar.meaning import PRONOUNS, Clause, Meaning, Nominal, Place

WORD_S = 0.37  # how long an English word lasts
LAG_S = {"de": 1.25, "ja": 1.6, "ru": 1.0}
GOLDEN = "d513bc2a676c0277333aa4fdd79b509aaa237554e51650e1a89cf6fdee4e5151"
VERB = {verb.en: verb for verb in VERBS}


@pytest.fixture(scope="module")
def sample() -> list[ParallelSentence]:
    return list(islice(sentences(7), 6_000))


def forms(sample: list[ParallelSentence]) -> Counter[str]:
    return Counter(word.strip(".,?").lower() for one in sample for word in one.source)


def fields(text: str) -> set[str]:
    return {word.lower() for word in text.split()}


def test_there_are_enough_words_and_not_too_many(sample):
    assert 620 <= len(forms(sample)) <= 720


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5])
def test_every_form_is_frequent_enough_to_be_learned(seed):
    counts = forms(list(islice(sentences(seed), 20_000)))
    assert {form: n for form, n in counts.items() if n < 8} == {}


def test_every_word_of_the_lexicon_is_used(sample):
    used = set(forms(sample))
    listed = {form for noun in NOUN.values() for form in (noun.en, noun.plural) if form} - {"euro"}
    listed |= {verb.en for verb in VERBS} | {verb.en_past for verb in VERBS if verb.en_past}
    listed |= {entry.en for entries in (TIMES, ADVERBS, CITIES) for entry in entries}
    assert {word for text in listed for word in fields(text)} - used == set()


def test_sentences_are_neither_too_short_nor_too_long(sample):
    lengths = [len(one.source) for one in sample]
    assert min(lengths) >= 4
    assert max(lengths) <= 16
    assert 9 <= sum(lengths) / len(lengths) <= 10


def test_text_is_plain_words_in_every_language(sample):
    for one in sample:
        english_text = one.text("en")
        assert english_text[0].isupper()
        assert english_text[-1] in ".?"
        assert english_text.replace(",", "").replace(" ", "")[:-1].isalpha(), english_text
        for language in LANGUAGES:
            text = one.text(language)
            assert not any(character.isdigit() for character in text), text
            assert text[-1] in ".?。"
            assert ",," not in text
            assert "  " not in text
            assert all(word.text for word in one.targets[language])


def test_one_english_text_has_one_translation(sample):
    known: dict[tuple[str, ...], dict] = {}
    for one in [*sample, *islice(sentences(8), 6_000)]:
        assert known.setdefault(one.source, one.targets) == one.targets, one.text("en")


def test_alignments_stay_inside_the_sentence(sample):
    for one in sample:
        for words in one.targets.values():
            assert words[0].source is not None
            assert all(word.source is None or 0 <= word.source < len(one.source) for word in words)


def test_nearly_every_word_is_aligned(sample):
    for language in LANGUAGES:
        words = [word for one in sample for word in one.targets[language]]
        assert sum(word.source is None for word in words) < 0.05 * len(words)


def units(one: ParallelSentence, language: str) -> list[int | None]:
    """The source of every word, or of every character where words are not written apart."""
    words = one.targets[language]
    return [word.source for word in words for _ in (word.text if language == "ja" else " ")]


def oracle_lag_s(one: ParallelSentence, language: str) -> float:
    """How far behind an even pace a translator is that writes each unit once it is known."""
    sources, released, lag = units(one, language), 0.0, 0.0
    for index, source in enumerate(sources):
        released = max(released, WORD_S * (source + 1) if source is not None else 0)
        lag += released - index * WORD_S * len(one.source) / len(sources)
    return lag / len(sources)


@pytest.mark.parametrize("language", LANGUAGES)
def test_waiting_for_what_must_be_heard_is_no_long_wait(sample, language):
    assert sum(oracle_lag_s(one, language) for one in sample) / len(sample) <= LAG_S[language]


def test_words_move_far_in_more_than_half_of_the_sentences(sample):
    def far(one: ParallelSentence) -> bool:
        for language in ("de", "ja"):
            heard = -1
            for word in one.targets[language]:
                if word.source is not None:
                    if heard - word.source >= 4:
                        return True
                    heard = max(heard, word.source)
        return False

    assert 0.5 <= sum(map(far, sample)) / len(sample) <= 0.7


def test_a_seed_means_the_same_sentences_everywhere():
    text = "\n".join(
        "\t".join([one.text("en"), *(one.text(language) for language in LANGUAGES)])
        + "\t".join(str(word.source) for language in LANGUAGES for word in one.targets[language])
        for one in islice(sentences(7), 1_000)
    )
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN


def test_a_talk_repeats_nothing():
    spoken = talk(random.Random(3), 200)
    assert len(spoken) == len({one.source for one in spoken}) == 200
    assert spoken == talk(random.Random(3), 200)


@pytest.mark.parametrize(
    ("number", "de", "ja"),
    [
        (2, "zwei", "二"),
        (16, "sechzehn", "十六"),
        (25, "fünfundzwanzig", "二十五"),
        (70, "siebzig", "七十"),
        (121, "einhunderteinundzwanzig", "百二十一"),
        (999, "neunhundertneunundneunzig", "九百九十九"),
    ],
)
def test_numbers_in_words(number, de, ja):
    assert numerals.german(number) == de
    assert "".join(map(numerals.japanese, numerals.parts(number))) == ja


def said(meaning: Meaning) -> list[str]:
    words = [" ".join(english.render(meaning))]
    for renderer, between in ((german, " "), (japanese, ""), (russian, " ")):
        words.append(between.join(text for text, _ in renderer.render(meaning)))
    return words


def he(plural: bool = False) -> Nominal:
    pronoun = PRONOUNS[5] if plural else PRONOUNS[2]
    return Nominal(pronoun=pronoun, plural=plural)


def test_a_number_decides_case_counter_and_word_order():
    books = Nominal(noun=NOUN["book"], number=23, plural=True)
    assert said(Meaning(Clause("past", VERB["buy"], subject=he(), object=books))) == [
        "He bought twenty three books.",
        "Er hat dreiundzwanzig Bücher gekauft.",
        "彼は二十三冊の本を買いました。",
        "Он купил двадцать три книги.",
    ]


def test_a_relative_clause_stands_before_its_noun_in_japanese_and_after_the_verb_in_german():
    relative = Clause("past", VERB["write"], subject=he(plural=True), gap="object")
    letter = Nominal(noun=NOUN["letter"], determiner="the", relative=relative)
    doctor = Nominal(noun=NOUN["nurse"], determiner="a")
    assert said(Meaning(Clause("future", VERB["check"], subject=doctor, object=letter))) == [
        "A nurse will check the letter that they wrote.",
        "Eine Krankenschwester wird den Brief prüfen, den sie geschrieben haben.",
        "看護師は彼らが書いた手紙を確認します。",
        "Медсестра проверит письмо, которое они написали.",
    ]


def test_a_subordinate_clause_ends_in_its_verb():
    tea = Nominal(noun=NOUN["tea"])
    lamp = Nominal(noun=NOUN["lamp"], determiner="the")
    home = Place("in", nominal=Nominal(noun=NOUN["garden"], determiner="the"))
    main = Clause("must", VERB["turn on"], subject=he(), object=lamp)
    other = Clause("past", VERB["drink"], subject=he(plural=True), object=tea, place=home)
    assert said(Meaning(main, link="because", other=other)) == [
        "He must turn on the lamp because they drank tea in the garden.",
        "Er muss die Lampe einschalten, weil sie Tee im Garten getrunken haben.",
        "彼はランプをつけなければなりません。なぜなら、彼らは庭でお茶を飲んだからです。",
        "Он должен включить лампу, потому что они выпили чай в саду.",
    ]


def test_a_compound_number_waits_for_its_last_word():
    books = Nominal(noun=NOUN["book"], number=25, plural=True)
    meaning = Meaning(Clause("past", VERB["buy"], subject=he(), object=books))
    source = english.render(meaning)
    last = source.index("five")
    assert ("fünfundzwanzig", last) in german.render(meaning)
    assert [at for text, at in russian.render(meaning) if text in ("двадцать", "пять")] == [last - 1, last]
    assert all(one <= other for one, other in pairwise(at for _, at in russian.render(meaning)))
