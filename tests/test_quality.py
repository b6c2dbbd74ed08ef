"""BLEU, chrF2 and error rates with their signatures and intervals."""

import doctest
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reports.quality
from reports.bootstrap import bootstrap_interval
from reports.extras import MissingExtra
from reports.quality import bleu, chrf, error_rate

SAID = ["the cat sat on a mat", "a dog barked at the door", "it rains"]
WANTED = ["the cat sat on the mat", "a dog barked at my door", "it is raining"]


def rng():
    return np.random.default_rng(7)


def test_bleu_and_chrf_are_those_of_sacrebleu():
    import sacrebleu

    found, theirs = bleu(SAID, WANTED, "de", rng()), sacrebleu.BLEU()
    assert found.value == theirs.corpus_score(SAID, [WANTED]).score
    assert found.signature == str(theirs.get_signature())
    found, theirs = chrf(SAID, WANTED, rng()), sacrebleu.CHRF()
    assert found.value == theirs.corpus_score(SAID, [WANTED]).score
    assert found.signature == str(theirs.get_signature())


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("de", "13a"), ("en-US", "13a"), ("ja", "ja-mecab"), ("zh", "zh"), ("zh_CN", "zh")]
)
def test_the_signature_names_the_tokenizer_of_the_language(language, tokenizer):
    signature = bleu(["猫がいる。"], ["犬がいる。"], language, rng()).signature
    assert f"|tok:{tokenizer}" in signature
    assert "|version:" in signature


def test_japanese_bleu_counts_mecab_words_not_blanks():
    assert bleu(["私は猫が好きです。"], ["私は犬が好きです。"], "ja", rng()).value > 20
    assert bleu(["私は猫が好きです。"], ["私は犬が好きです。"], "de", rng()).value < 20


def test_word_errors_are_pooled_over_recordings_not_averaged():
    # 1 error in 1 word, 0 in 3: pooled 25 %, averaged 50 %.
    found = error_rate(["b", "a b c"], ["a", "a b c"], "de", rng())
    assert (found.metric, found.value, found.n) == ("WER", 25.0, 2)


def test_english_is_normalised_as_whisper_does():
    said, wanted = ["Mister Smith's colour isn't gray: it's 21!"], ["mr. smith's color is not gray it is twenty one"]
    found = error_rate(said, wanted, "en", rng())
    assert (found.value, found.signature.split("-0.")[0]) == (0.0, "norm:whisper-english")
    assert error_rate(["colour"], ["color"], "de", rng()).value == 100.0


def test_other_languages_lose_case_and_punctuation_but_not_their_accents():
    assert error_rate(["Das Öl, bitte!"], ["das öl bitte"], "de", rng()).value == 0.0
    assert error_rate(["das ol"], ["das öl"], "de", rng()).value == 50.0


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_languages_without_blanks_are_counted_in_characters(language):
    found = error_rate(["猫 が いる。"], ["犬がいる"], language, rng())
    assert (found.metric, found.value) == ("CER", 25.0)


def distance(a, b):
    """Edit distance by the plain recursion."""
    if not a or not b:
        return len(a) + len(b)
    return min(
        distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0])
    )  # fmt: skip


words = st.lists(st.sampled_from(["ba", "be", "bi"]), max_size=4)


@given(pairs=st.lists(st.tuples(words, words), min_size=1, max_size=3))
def test_word_error_rate_is_edit_distance_over_reference_words(pairs):
    said, wanted = zip(*pairs, strict=True)
    hypotheses, references = [" ".join(w) for w in said], [" ".join(w) for w in wanted]
    if not any(said) or not any(wanted):
        with pytest.raises(ValueError, match="WER"):
            error_rate(hypotheses, references, "de", rng())
    else:
        errors = sum(distance(tuple(a), tuple(b)) for a, b in pairs)
        assert error_rate(hypotheses, references, "de", rng()).value == pytest.approx(
            100 * errors / sum(map(len, wanted))
        )


@pytest.mark.parametrize(
    "compute",
    [
        lambda said, wanted: bleu(said, wanted, "de", rng()),
        lambda said, wanted: chrf(said, wanted, rng()),
        lambda said, wanted: error_rate(said, wanted, "de", rng()),
    ],
)
def test_nothing_written_or_unequal_lengths_is_an_error_not_zero(compute):
    with pytest.raises(ValueError, match="nothing is written in any of 2 hypotheses"):
        compute(["", " "], ["a", "b"])
    with pytest.raises(ValueError, match="1 hypotheses for 2 references"):
        compute(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("module", "compute"),
    [
        ("sacrebleu", lambda: chrf(["a"], ["a"], rng())),
        ("MeCab", lambda: bleu(["a"], ["a"], "ja", rng())),
        ("jiwer", lambda: error_rate(["a"], ["a"], "de", rng())),
        ("whisper_normalizer.english", lambda: error_rate(["a"], ["a"], "en", rng())),
    ],
)
def test_a_missing_package_names_the_extra(monkeypatch, module, compute):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{module.split('.')[0]} is not installed: pip install -e \.\[score\]"):
        compute()


@pytest.mark.parametrize(
    "compute",
    [
        lambda seed: bleu(SAID * 5, WANTED * 5, "en", seed),
        lambda seed: chrf(SAID * 5, WANTED * 5, seed),
        lambda seed: error_rate(SAID * 5, WANTED * 5, "en", seed),
    ],
)
def test_an_interval_is_repeatable_and_holds_the_value(compute):
    found = compute(rng())
    low, high = found.interval
    assert low < found.value < high
    assert compute(rng()).interval == found.interval


def test_one_item_has_no_interval():
    assert error_rate(["a b"], ["a c"], "de", rng()).interval is None


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide():
    values = np.random.default_rng(0).normal(10, 2, size=400)
    low, high = bootstrap_interval(lambda drawn: float(values[drawn].mean()), 400, rng())
    assert high - low == pytest.approx(2 * 1.96 * 2 / math.sqrt(400), rel=0.15)


def test_draws_on_which_a_number_is_undefined_are_left_out():
    nan = float("nan")
    assert bootstrap_interval(lambda drawn: nan, 3, rng()) is None
    assert bootstrap_interval(lambda drawn: nan if drawn[0] else 5.0, 3, rng()) == (5.0, 5.0)


def test_the_examples_in_docstrings_hold():
    found = doctest.testmod(reports.quality)
    assert (found.failed, found.attempted > 0) == (0, True)
