"""Delayed targets: silent from the pivot, then back on schedule, and only the way back is learnt."""

import doctest
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hikari_agent.training.recovery
from hikari_agent.training.interleave import read_back
from hikari_agent.training.recovery import delay, recovery_sample

WAIT = 93
TARGETS = st.lists(st.sampled_from([WAIT, 1, 2, 3]), max_size=40)


@st.composite
def delays(draw):
    """A target, a pivot with WAITs behind it, and a shift that leaves room for all text."""
    tokens = draw(TARGETS.filter(lambda tokens: WAIT in tokens))
    last_wait = len(tokens) - 1 - tokens[::-1].index(WAIT)
    pivot = draw(st.integers(0, last_wait))
    return tokens, pivot, draw(st.integers(1, tokens[pivot:].count(WAIT)))


def text_slots(tokens):
    return [slot for slot, token in enumerate(tokens) if token != WAIT]


def slowly(tokens, pivot, shift):
    """Slot by slot: what is due queues up, and one token of the queue is said in every slot but the inserted WAITs."""
    said, queue = list(tokens[:pivot]), []
    for slot in range(pivot, len(tokens)):
        if tokens[slot] != WAIT:
            queue.append(tokens[slot])
        silent = slot < pivot + shift or not queue
        said.append(WAIT if silent else queue.pop(0))
    assert not queue
    return said


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(hikari_agent.training.recovery).failed == 0


@given(delays())
def test_a_delayed_target_has_the_length_and_the_text_it_had(case):
    tokens, pivot, shift = case
    delayed = delay(tokens, pivot, shift, WAIT).tokens
    assert len(delayed) == len(tokens)
    assert read_back(delayed, WAIT) == read_back(tokens, WAIT)


@given(delays())
def test_no_token_comes_before_its_own_slot_so_causality_stays(case):
    tokens, pivot, shift = case
    delayed = delay(tokens, pivot, shift, WAIT).tokens
    assert all(new >= old for new, old in zip(text_slots(delayed), text_slots(tokens), strict=True))


@given(delays())
def test_the_backlog_is_said_without_waits_until_it_has_caught_up(case):
    tokens, pivot, shift = case
    assert delay(tokens, pivot, shift, WAIT).tokens == slowly(tokens, pivot, shift)


@given(delays())
def test_only_what_follows_the_inserted_waits_is_learnt(case):
    tokens, pivot, shift = case
    sample = delay(tokens, pivot, shift, WAIT)
    assert sample.tokens[:pivot] == tokens[:pivot]
    assert sample.tokens[pivot : pivot + shift] == [WAIT] * shift
    assert sample.learn == [slot >= pivot + shift for slot in range(len(tokens))]


@given(delays())
def test_tokens_that_were_together_stay_together_but_at_the_pivot(case):
    tokens, pivot, shift = case
    old, new = text_slots(tokens), text_slots(delay(tokens, pivot, shift, WAIT).tokens)
    for i in range(1, len(old)):
        if old[i] == old[i - 1] + 1 and old[i] != pivot:
            assert new[i] == new[i - 1] + 1


def test_a_delay_at_the_first_slot_moves_all_text():
    sample = delay([1, 2, WAIT, 3, WAIT], pivot=0, shift=2, wait=WAIT)
    assert sample.tokens == [WAIT, WAIT, 1, 2, 3]
    assert sample.learn == [False, False, True, True, True]


@given(TARGETS, st.integers(0, 2**32), st.none() | st.integers(1, 5))
def test_a_random_sample_is_a_delay_within_its_bounds_that_leaves_text_to_learn(tokens, seed, max_shift):
    sample = recovery_sample(tokens, random.Random(seed), WAIT, max_shift)
    assert sample == recovery_sample(tokens, random.Random(seed), WAIT, max_shift)
    if sample is not None:
        assert sample == delay(tokens, sample.pivot, sample.shift, WAIT)
        n_waits = tokens[sample.pivot :].count(WAIT)
        assert 1 <= sample.shift <= min(n_waits - 1, max_shift or n_waits)
        assert any(learn and token != WAIT for token, learn in zip(sample.tokens, sample.learn, strict=True))


def test_every_pivot_and_every_shift_up_to_all_waits_but_one_is_drawn():
    tokens = [1, WAIT, 2, WAIT, WAIT, 3]
    samples = [recovery_sample(tokens, random.Random(seed), WAIT) for seed in range(300)]
    drawn = {(sample.pivot, sample.shift) for sample in samples if sample is not None}
    assert drawn == {(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (3, 1)}


@pytest.mark.parametrize("tokens", [[], [WAIT] * 5, [1, 2, 3], [1, 2, WAIT]])
def test_without_text_or_without_room_there_is_no_sample(tokens):
    assert all(recovery_sample(tokens, random.Random(seed), WAIT) is None for seed in range(20))


@pytest.mark.parametrize("pivot", [-1, 3])
def test_a_pivot_beyond_the_target_is_refused(pivot):
    with pytest.raises(ValueError, match=f"pivot {pivot} is no slot of a target of 3"):
        delay([1, WAIT, WAIT], pivot, 1, WAIT)


@pytest.mark.parametrize("shift", [0, 3])
def test_a_shift_without_room_is_refused(shift):
    with pytest.raises(ValueError, match=f"shift {shift} with 2 WAITs from slot 0 on"):
        delay([1, WAIT, WAIT], 0, shift, WAIT)


def test_a_bound_on_the_shift_below_one_slot_is_refused():
    with pytest.raises(ValueError, match="max_shift 0"):
        recovery_sample([1, WAIT, WAIT], random.Random(0), WAIT, max_shift=0)
