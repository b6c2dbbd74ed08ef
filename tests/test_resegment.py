"""Cutting a long hypothesis along reference segments."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.extras import MissingExtra
from reports.resegment import resegment
from reports.runs import RunRecord
from testsets.manifest import Segment

ROOT = Path(__file__).parents[1]


def cut(prediction, references, unit="word"):
    units = prediction.split() if unit == "word" else "".join(prediction.split())
    times = tuple(10.0 * (i + 1) for i in range(len(units)))
    record = RunRecord("talk", tuple(units), times, times, 10.0 * len(units), prediction)
    segments = [Segment(100.0 * i, 90.0, "") for i in range(len(references))]
    return resegment(record, segments, references, unit)


def texts(*arguments, **keywords):
    return [segment.text for segment in cut(*arguments, **keywords)]


def test_words_go_to_the_segment_they_match_with_their_times():
    first, second = cut("a b x c d", ["a b", "c d"])
    assert (first.text, second.text) in {("a b x", "c d"), ("a b", "x c d")}
    assert second.units[-2:] == ("c", "d")
    assert second.delays_ms[-2:] == second.elapsed_ms[-2:] == (40.0, 50.0)
    assert (second.recording_id, second.index, second.offset_ms, second.duration_ms) == ("talk", 1, 100.0, 90.0)
    assert second.reference == "c d"


def test_matching_ignores_case_and_keeps_it():
    assert texts("THE CAT the dog", ["the cat", "The Dog"]) == ["THE CAT", "the dog"]


def test_a_hash_separator_in_a_reference_is_no_alternative():
    # Unescaped, "a b c d" and "x" would be two ways to say the first line.
    assert texts("x a b c d e f", ["x", "a b ### c d ### e", "f"]) == ["x", "a b c d e", "f"]
    assert texts("a ### b c", ["a ### b", "c"]) == ["a ### b", "c"]
    assert texts("### b", ["###", "b"]) == ["###", "b"]


def test_characters_are_matched_one_by_one_and_blanks_inside_a_segment_stay():
    assert texts("私は Ann Leeです。次。", ["私はAnn Leeです。", "次。"], unit="char") == ["私は Ann Leeです。", "次。"]


def test_segments_with_nothing_to_match_get_nothing():
    assert texts("a b c d", ["a b", "", "c d", ""]) == ["a b", "", "c d", ""]


def test_a_silent_system_gets_an_empty_piece_a_segment():
    pieces = cut("", ["a b", "c"])
    assert [(p.text, p.units, p.delays_ms) for p in pieces] == [("", (), ())] * 2


# Blanks that Python and C++ disagree about, the separator of mweralign, and nothing at all.
awkward = st.text(alphabet="ab#A \t\n\u00a0\u2028\u3000\x1c\x85é字", max_size=12)


@given(prediction=awkward, references=st.lists(awkward, min_size=1, max_size=5), unit=st.sampled_from(["word", "char"]))
def test_no_unit_is_lost_doubled_or_moved(prediction, references, unit):
    pieces = cut(prediction, references, unit)
    assert len(pieces) == len(references)
    units = [u for piece in pieces for u in piece.units]
    assert units == list(prediction.split() if unit == "word" else "".join(prediction.split()))
    assert [d for piece in pieces for d in piece.delays_ms] == [10.0 * (i + 1) for i in range(len(units))]
    assert all("".join(piece.text.split()) == "".join(piece.units) for piece in pieces)


@pytest.mark.parametrize("references", [[], ["a", "b"]])
def test_as_many_references_as_segments_are_needed(references):
    record = RunRecord("talk", (), (), (), 1000.0, "")
    with pytest.raises(ValueError, match=r"recording 'talk' has .* segments and .* references"):
        resegment(record, [Segment(0, 1, "")] * (len(references) - 1 if references else 0), references, "word")


def test_the_aligner_neither_prints_nor_touches_the_root_logger():
    # In a fresh process: it is the first import that configures logging, and C++ that prints.
    program = """
import logging, os
from reports.resegment import resegment
from reports.runs import RunRecord
from testsets.manifest import Segment
root = logging.getLogger()
before = (list(root.handlers), root.level)
times = (1.0, 2.0, 3.0)
record = RunRecord("talk", ("a", "b", "c"), times, times, 3.0, "a b c")
assert resegment(record, [Segment(0, 1, ""), Segment(1, 2, "")], ["a", "b c"], "word")[1].text == "b c"
assert (list(root.handlers), root.level) == before
os.write(2, b"stderr is back")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "stderr is back")


def test_without_the_aligner_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mweralign", None)
    with pytest.raises(MissingExtra, match=r"mweralign is not installed: pip install -e \.\[score\]"):
        cut("a", ["a"])
