"""Release times: when a target word may be said, and what is refused."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hikari_agent.training.alignment
from hikari_agent.training.alignment import base_times, release_times, released, source_of_each_target


@st.composite
def alignments(draw):
    """Ends of the source words, never falling, and the source of each target word."""
    ends = sorted(draw(st.lists(st.floats(0, 30), min_size=1, max_size=12)))
    sources = draw(st.lists(st.none() | st.integers(0, len(ends) - 1), max_size=12))
    return ends, sources


def draws(data, given_out):
    """Jitters of 0 to 200 ms, kept in `given_out`."""

    def jitter():
        given_out.append(data.draw(st.floats(0, 0.2)))
        return given_out[-1]

    return jitter


def test_examples_in_the_docstrings_are_true():
    assert doctest.testmod(hikari_agent.training.alignment).failed == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=20))
def test_a_target_word_waits_for_the_last_of_its_source_words(links):
    sources = source_of_each_target(links, n_source=6, n_target=5)
    assert sources == [max((s for s, t in links if t == target), default=None) for target in range(5)]


@pytest.mark.parametrize("link", [(3, 0), (0, 2), (-1, 0), (0, -1)])
def test_a_link_beyond_the_words_is_refused(link):
    with pytest.raises(ValueError, match=r"beyond the words there are, 3 source and 2 target words"):
        source_of_each_target([(0, 0), link], n_source=3, n_target=2)


@given(alignments(), st.data())
def test_no_word_is_released_before_its_source_word_and_its_jitter(alignment, data):
    ends, sources = alignment
    jitters = []
    releases = release_times(ends, sources, draws(data, jitters))
    assert len(releases) == len(sources)
    base = base_times(ends, sources)
    own = [(release, b) for release, b in zip(releases, base, strict=True) if b is not None]
    assert len(own) == len(jitters)
    assert all(release >= b + jitter for (release, b), jitter in zip(own, jitters, strict=True))
    assert all(b == ends[s] for b, s in zip(base, sources, strict=True) if s is not None)


@given(alignments(), st.data())
def test_release_times_never_fall(alignment, data):
    releases = release_times(*alignment, draws(data, []))
    assert releases == sorted(releases)


@given(alignments(), st.data())
def test_a_release_is_no_later_than_some_word_up_to_it_needs(alignment, data):
    ends, sources = alignment
    base = base_times(ends, sources)
    jitters = []
    releases = released(base, draws(data, jitters))
    left = iter(jitters)
    needed = [None if b is None else b + next(left) for b in base]
    first = next((time for time in needed if time is not None), None)
    for i, release in enumerate(releases):
        assert release == max((time for time in needed[: i + 1] if time is not None), default=first)


@given(alignments(), st.data())
def test_an_unaligned_word_is_released_with_the_one_before_it(alignment, data):
    ends, sources = alignment
    releases = release_times(ends, [0, *sources], draws(data, []))
    for i, source in enumerate(sources, 1):
        if source is None:
            assert releases[i] == releases[i - 1]


def test_unaligned_words_at_the_beginning_go_with_the_first_aligned_word():
    assert release_times([0.5, 2.0, 3.0], [None, None, 1, 2], lambda: 0.1) == [2.1, 2.1, 2.1, 3.1]


def test_text_without_any_alignment_waits_for_the_end_of_the_source():
    assert release_times([0.5, 2.0], [None, None], lambda: 0.1) == [2.1, 2.1]


def test_a_transcript_is_released_at_its_own_words_ends():
    ends = [0.4, 0.4, 1.3]
    assert release_times(ends, range(3), lambda: 0.0) == ends


def test_no_target_words_have_no_release_times():
    assert release_times([], [], lambda: 0.0) == release_times([1.0], [], lambda: 0.0) == []


def test_word_times_that_run_backwards_are_refused():
    with pytest.raises(ValueError, match=r"word 2 ends at 0\.7 s, before word 1 at 0\.9 s.*Sort the words"):
        base_times([0.5, 0.9, 0.7], [0, 1, 2])


@pytest.mark.parametrize("end", [-0.1, float("nan"), float("inf")])
def test_an_end_that_is_no_time_is_refused(end):
    with pytest.raises(ValueError, match="source word 0 ends at"):
        base_times([end], [0])


@pytest.mark.parametrize("source", [-1, 2])
def test_an_alignment_to_a_word_without_time_is_refused(source):
    with pytest.raises(ValueError, match=rf"target word 1 is aligned to source word {source}, but 2 words have times"):
        base_times([0.5, 0.9], [0, source])


def test_text_without_source_words_is_refused():
    with pytest.raises(ValueError, match="2 target words but no source word"):
        base_times([], [None, None])
    with pytest.raises(ValueError, match="none of 2 words has a base time"):
        released([None, None], lambda: 0.0)


@pytest.mark.parametrize("jitter", [-0.1, float("nan")])
def test_a_jitter_that_would_break_causality_is_refused(jitter):
    with pytest.raises(ValueError, match="before it was heard"):
        released([1.0], lambda: jitter)
