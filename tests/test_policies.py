"""Policies are pure: strings and numbers in, how much may be said out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.agent import group_words
from baselines.backends.whisper import loop_length
from baselines.policies import alignatt, at_end, local_agreement, wait_k

WORDS = st.lists(st.sampled_from("abc"), max_size=6)


def test_alignatt_stops_at_the_first_token_that_looks_at_the_newest_audio():
    assert alignatt([3, 20, 46, 10], n_frames=50, frame_threshold=4, is_final=False) == 2
    assert alignatt([3, 20, 45, 10], n_frames=50, frame_threshold=4, is_final=False) == 4
    assert alignatt([49], n_frames=50, frame_threshold=0, is_final=False) == 1


def test_alignatt_cuts_nothing_on_the_final_chunk():
    assert alignatt([3, 49, 49], n_frames=50, frame_threshold=25, is_final=True) == 3


@given(st.lists(st.integers(0, 49), max_size=20), st.integers(0, 60), st.integers(0, 60))
def test_a_larger_frame_threshold_never_says_more(frames, small, large):
    small, large = sorted((small, large))
    assert alignatt(frames, 50, large, False) <= alignatt(frames, 50, small, False)


def test_local_agreement_says_what_two_proposals_share():
    assert local_agreement([["a", "b", "c"], ["a", "b", "d"]], n=2, is_final=False) == 2
    assert local_agreement([["a", "b"], ["a", "b", "c"]], n=2, is_final=False) == 2
    assert local_agreement([["x"], ["a", "b"], ["a", "c"]], n=2, is_final=False) == 1
    assert local_agreement([["x"], ["a", "b"], ["a", "c"]], n=3, is_final=False) == 0


def test_local_agreement_waits_for_enough_proposals_and_says_all_at_the_end():
    assert local_agreement([["a", "b"]], n=2, is_final=False) == 0
    assert local_agreement([["a", "b"]], n=2, is_final=True) == 2


@given(st.lists(WORDS, min_size=2, max_size=4))
def test_local_agreement_equals_the_slow_obvious_prefix(proposals):
    n = local_agreement(proposals, len(proposals), is_final=False)
    prefixes = [p[:n] for p in proposals]
    assert all(p == prefixes[0] for p in prefixes)
    assert any(len(p) == n for p in proposals) or len({p[n] for p in proposals}) > 1


def test_wait_k_writes_one_word_a_unit_after_k_units():
    written = [wait_k(100, n_units, k=3, n_written=0, is_final=False) for n_units in range(1, 6)]
    assert written == [0, 0, 1, 2, 3]
    assert wait_k(1, n_units=9, k=3, n_written=2, is_final=False) == 1
    assert wait_k(5, n_units=3, k=9, n_written=0, is_final=True) == 5


def test_at_end_is_silent_until_the_end():
    assert at_end(7, is_final=False) == 0
    assert at_end(7, is_final=True) == 7


@pytest.mark.parametrize(
    "call",
    [
        lambda: alignatt([1], 5, -1, False),
        lambda: local_agreement([["a"]], 0, False),
        lambda: wait_k(1, 1, 0, 0, False),
    ],
)
def test_impossible_settings_are_refused(call):
    with pytest.raises(ValueError, match=r"-?[01]"):
        call()


def test_a_decoder_that_goes_round_in_circles_is_caught():
    sentence = list(range(100, 119))
    assert loop_length([1, 2, *sentence, *sentence]) == 19
    assert loop_length([1, 2, *sentence, *sentence[:-1]]) == 0
    assert loop_length([5, 5, 5]) == 0
    assert loop_length([5, 5, 5, 5]) == 3


def test_words_begin_with_a_blank_and_characters_end_whole():
    assert group_words([b" in", b"ter", b"est", b" is"], by_characters=False) == [[0, 1, 2], [3]]
    kanji = "訳".encode()
    assert group_words([kanji[:1], kanji[1:2], kanji[2:], "す".encode()], by_characters=True) == [[0, 1, 2], [3]]
