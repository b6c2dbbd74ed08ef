"""Targets for every decoder row: never before the audio was heard, and never later than that asks for."""

import doctest
import math
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hikari_agent.training.interleave
from hikari_agent.layers import visible_frames
from hikari_agent.training.alignment import base_times, released
from hikari_agent.training.interleave import Statistics, interleave, read_back, slot_time_s

WAIT = 93
DILATIONS = st.sampled_from([1, 2, 4, 8])


@st.composite
def targets(draw):
    """Words, their release times (many on the very edge of a slot), the number of slots and the dilation."""
    lengths = draw(st.lists(st.integers(1, 4), max_size=8))
    words = [[100 + 10 * i + j for j in range(length)] for i, length in enumerate(lengths)]
    n, dilation = len(words), draw(DILATIONS)
    edges = st.builds(slot_time_s, st.integers(0, 40), st.just(dilation))
    times = edges | st.floats(0, 4) | st.builds(math.nextafter, edges, st.sampled_from([0.0, math.inf]))
    releases = sorted(draw(st.lists(times, min_size=n, max_size=n)))
    return words, releases, draw(st.integers(0, 60)), dilation


def slowly(words, releases, n_slots, dilation):
    """Slot by slot: WAIT until the next word may be said, then all of it."""
    tokens, starts = [], []
    for word, release in zip(words, releases, strict=True):
        until = list(tokens)
        while 20 * visible_frames(len(until) + 3, dilation) / 1000 < release:
            until.append(WAIT)
        if len(until) + len(word) > n_slots:
            break
        starts.append(len(until))
        tokens = until + word
    return tokens + [WAIT] * (n_slots - len(tokens)), starts


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(hikari_agent.training.interleave).failed == 0


@pytest.mark.parametrize("dilation", [1, 2, 4, 8])
def test_a_slot_has_heard_the_frames_its_row_may_attend_to(dilation):
    for slot in range(400):
        assert slot_time_s(slot, dilation) == 20 * visible_frames(slot + 3, dilation) / 1000


@pytest.mark.parametrize("dilation", [1, 2, 4, 8])
def test_a_word_released_at_the_time_of_a_slot_gets_it_and_one_a_hair_later_the_next(dilation):
    for slot in range(375):
        time_s = slot_time_s(slot, dilation)
        assert interleave([[1]], [time_s], 376, WAIT, dilation).starts == [slot]
        assert interleave([[1]], [math.nextafter(time_s, math.inf)], 376, WAIT, dilation).starts == [slot + 1]


@given(targets())
def test_no_word_is_said_before_it_was_heard(target):
    words, releases, n_slots, dilation = target
    slots = interleave(words, releases, n_slots, WAIT, dilation)
    for start, release, lag in zip(slots.starts, releases, slots.lags_s, strict=False):
        assert slot_time_s(start, dilation) >= release
        assert lag == slot_time_s(start, dilation) - release


@given(targets())
def test_words_come_in_order_each_in_consecutive_slots(target):
    words, releases, n_slots, dilation = target
    slots = interleave(words, releases, n_slots, WAIT, dilation)
    free = 0
    for start, word in zip(slots.starts, words, strict=False):
        assert start >= free
        free = start + len(word)
        assert slots.tokens[start:free] == word


@given(targets())
def test_the_text_read_back_is_the_text_put_in_up_to_the_dropped_words(target):
    words, releases, n_slots, dilation = target
    slots = interleave(words, releases, n_slots, WAIT, dilation)
    assert len(slots.tokens) == n_slots
    kept = words[: len(words) - slots.n_dropped_words]
    assert read_back(slots.tokens, WAIT) == [token for word in kept for token in word]
    assert slots.n_dropped_tokens == sum(len(word) for word in words[len(kept) :])


@given(targets())
def test_the_waits_before_each_word_are_the_fewest_that_keep_causality(target):
    words, releases, n_slots, dilation = target
    slots = interleave(words, releases, n_slots, WAIT, dilation)
    tokens, starts = slowly(words, releases, n_slots, dilation)
    assert (slots.tokens, slots.starts) == (tokens, starts)


def test_a_word_that_does_not_fit_takes_all_after_it_along():
    slots = interleave([[1], [2, 3, 4], [5]], [0.0, 0.0, 0.0], n_slots=3, wait=WAIT)
    assert slots.tokens == [1, WAIT, WAIT]
    assert (slots.n_dropped_words, slots.n_dropped_tokens) == (2, 4)


def test_words_and_times_that_differ_in_number_are_refused():
    with pytest.raises(ValueError, match="2 words but 1 release times"):
        interleave([[1], [2]], [0.0], 5, WAIT)


@pytest.mark.parametrize("word", [[], [2, WAIT]])
def test_a_word_that_could_not_be_read_back_is_refused(word):
    with pytest.raises(ValueError, match=r"word 1 is \["):
        interleave([[1], word], [0.0, 0.0], 5, WAIT)


def test_a_release_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="a release time is NaN"):
        interleave([[1], [2]], [0.0, math.nan], 5, WAIT)


def test_a_corpus_is_told_its_waits_its_losses_and_its_lag_floor():
    base = base_times([0.25, 0.5, 0.75], [0, None, 1, 2])
    slots = interleave([[1], [2, 3], [4], [5, 6]], released(base, lambda: 0.0), n_slots=8, wait=WAIT)
    assert slots.tokens == [WAIT, 1, 2, 3, 4, WAIT, WAIT, WAIT]
    statistics = Statistics.of(slots, base, WAIT)
    assert statistics.wait_share == 4 / 8
    assert statistics.dropped_share == 2 / 6
    assert statistics.mean_lag_s == pytest.approx(((0.32 - 0.25) + (0.56 - 0.5)) / 2)


@given(st.lists(targets(), max_size=2))
def test_the_statistics_of_a_corpus_are_those_of_its_parts_added(corpus):
    parts = [Statistics.of(interleave(w, r, n, WAIT, d), r, WAIT) for w, r, n, d in corpus]
    total = sum(parts, Statistics())
    for values, summed in zip(zip(*map(astuple, parts), strict=True), astuple(total), strict=False):
        assert summed == pytest.approx(sum(values))
    assert total.n_slots == sum(n for _, _, n, _ in corpus)
    assert total.n_words == sum(len(words) for words, *_ in corpus)


def test_statistics_of_nothing_are_missing():
    nothing = Statistics()
    assert nothing.wait_share is nothing.dropped_share is nothing.mean_lag_s is None


def test_statistics_of_another_target_are_refused():
    with pytest.raises(ValueError, match="2 base times but 1 words"):
        Statistics.of(interleave([[1]], [0.0], 5, WAIT), [0.0, 1.0], WAIT)
