"""LAAL and StreamLAAL, against the reference program's numbers (tests/goldens/metrics/README.md says how made)."""

import doctest
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import reports.latency
from reports.latency import laal, reference_length, segment_times, stream_laal
from reports.resegment import ResegmentedSegment, resegment
from reports.runs import read_instances
from testsets.manifest import Segment

GOLDENS = Path(__file__).parent / "goldens" / "metrics"


@pytest.fixture(params=["en-de", "en-ja", "edge"])
def golden(request):
    """Our segments of a golden case, its unit, and what stream_laal.py 2.0 makes of it."""
    folder = GOLDENS / request.param
    expected = json.loads((folder / "expected.json").read_text())
    lines = (folder / "ref.txt").read_text().splitlines()
    spans = yaml.safe_load((folder / "audio.yaml").read_text())
    segments = []
    for record in read_instances(folder / "instances.log", expected["unit"]):
        mine = [i for i, span in enumerate(spans) if Path(span["wav"]).stem == record.recording_id]
        places = [Segment(spans[i]["offset"] * 1000, spans[i]["duration"] * 1000, "") for i in mine]
        segments += resegment(record, places, [lines[i] for i in mine], expected["unit"])
    return segments, expected["unit"], expected["fbk_stream_laal"]


def close(value):
    return pytest.approx(value, rel=1e-9)


def test_stream_laal_is_that_of_the_reference_program(golden):
    segments, unit, expected = golden
    found = stream_laal(segments, unit)
    assert found.value_ms == close(expected["StreamLAAL"])
    assert found.ca_value_ms == close(expected["StreamLAAL_CA"])
    for ours, theirs in (
        (found.segments_ms, expected["StreamLAAL_segments"]),
        (found.ca_segments_ms, expected["StreamLAAL_CA_segments"]),
    ):
        assert [value is None for value in ours] == [value is None for value in theirs]
        assert [v for v in ours if v is not None] == close([v for v in theirs if v is not None])
    assert found.n_silent == expected["StreamLAAL_segments"].count(None)


def test_segments_and_their_times_are_those_of_the_reference_program(golden):
    segments, _, expected = golden
    assert len(segments) == len(expected["segments"])
    for (segment, delays, elapsed), theirs in zip(segment_times(segments), expected["segments"], strict=True):
        assert (segment.text, segment.reference) == (theirs["prediction"], theirs["reference"])
        assert segment.duration_ms == close(theirs["source_length"])
        assert delays == close(theirs["delays"])
        assert elapsed == close(theirs["elapsed"])


def slow_laal(delays, source_ms, n):
    """The definition in goldens/metrics/README.md, word for word."""
    if delays[0] > source_ms:
        return delays[0]
    late = [i for i in range(len(delays)) if delays[i] >= source_ms]
    tau = late[0] + 1 if late else len(delays)
    return sum(delays[i] - i * source_ms / max(len(delays), n) for i in range(tau)) / tau


@given(
    delays=st.lists(st.integers(0, 5000), min_size=1, max_size=12).map(sorted),
    source_ms=st.integers(0, 4000),
    n=st.integers(0, 20),
)
def test_laal_is_its_definition(delays, source_ms, n):
    assert laal(delays, source_ms, n) == pytest.approx(slow_laal(delays, source_ms, n), rel=1e-12, abs=1e-9)


def test_laal_of_nothing_is_an_error_not_zero():
    with pytest.raises(ValueError, match="a silent system has no lag"):
        laal([], 1000, 3)


@pytest.mark.parametrize(
    ("reference", "unit", "n"),
    [("a b c", "word", 3), ("a  b", "word", 3), ("", "word", 1), (" ab c\n", "char", 4), ("", "char", 0)],
)
def test_reference_length_is_counted_as_the_reference_program_counts(reference, unit, n):
    assert reference_length(reference, unit) == n


def piece(recording_id, delays, elapsed, offset_ms=0.0, duration_ms=1000.0, reference="a b"):
    units = tuple("u" for _ in delays)
    return ResegmentedSegment(
        recording_id, 0, " ".join(units), units, tuple(delays), tuple(elapsed), offset_ms, duration_ms, reference
    )


def test_a_silent_segment_is_counted_and_not_averaged():
    found = stream_laal([piece("a", [500.0], [600.0]), piece("a", [], [], offset_ms=1000.0)], "word")
    assert (found.value_ms, found.ca_value_ms) == (500.0, 600.0)
    assert (found.segments_ms, found.n_silent) == ((500.0, None), 1)


def test_stream_laal_of_a_silent_run_is_an_error_not_zero():
    with pytest.raises(ValueError, match="2 segments without units"):
        stream_laal([piece("a", [], []), piece("b", [], [])], "word")


def test_computing_does_not_add_up_over_a_recording_and_starts_anew_in_the_next():
    # Every unit costs 100 ms; `elapsed` accumulates that.
    times = list(
        segment_times(
            [
                piece("a", [500.0, 900.0], [600.0, 1100.0]),
                piece("a", [1500.0], [1800.0], offset_ms=1000.0),
                piece("b", [500.0], [600.0]),
            ]
        )
    )
    assert [elapsed for _, _, elapsed in times] == [[600.0, 1000.0], [600.0], [600.0]]


def test_units_written_together_share_their_computing():
    ((_, delays, elapsed),) = segment_times([piece("a", [500.0, 500.0], [650.0, 650.0])])
    assert (delays, elapsed) == ([500.0, 500.0], [650.0, 650.0])


def test_what_is_written_before_a_segment_starts_counts_as_its_start():
    ((_, delays, elapsed),) = segment_times([piece("a", [500.0], [600.0], offset_ms=800.0)])
    assert (delays, elapsed) == ([0.0], [0.0])


def test_the_examples_in_docstrings_hold():
    found = doctest.testmod(reports.latency)
    assert (found.failed, found.attempted > 0) == (0, True)
