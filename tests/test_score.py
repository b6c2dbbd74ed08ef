"""All scores of a run, and how they are kept."""

import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from reports.runs import Run, RunRecord, read_instances
from reports.score import Score, read_scores, score_run, write_scores
from testsets.manifest import Recording, Segment, TestSet

GOLDENS = Path(__file__).parent / "goldens" / "metrics"


def golden(name, language):
    """A golden case as a run and a test set, and the reference program's numbers."""
    folder = GOLDENS / name
    expected = json.loads((folder / "expected.json").read_text())
    lines = (folder / "ref.txt").read_text().splitlines()
    by_stem = {}
    for line, span in zip(lines, yaml.safe_load((folder / "audio.yaml").read_text()), strict=True):
        segment = Segment(span["offset"] * 1000, span["duration"] * 1000, "x", {language: line})
        by_stem.setdefault(Path(span["wav"]).stem, []).append(segment)
    recordings = [Recording(f"id-{k}", f"audio/{k}.flac", "", 1e5, tuple(v)) for k, v in by_stem.items()]
    test_set = TestSet(name, "en", "", "", tuple(recordings), folder)
    records = read_instances(folder / "instances.log", expected["unit"])
    # The other way round: the log need not be in the test set's order.
    run = Run(folder, {"unit": expected["unit"], "language": language}, tuple(reversed(records)))
    return run, test_set, expected["fbk_stream_laal"]


def record(recording_id, text, delay_ms=1500.0):
    units = tuple(text.split())
    return RunRecord(recording_id, units, (delay_ms,) * len(units), (delay_ms + 100,) * len(units), 2000.0, text)


def transcription(texts, references, **spec):
    """A run that transcribes English recordings of one segment each, and their test set."""
    recordings = [
        Recording(f"r{i}", f"r{i}.flac", "", 2000.0, (Segment(0.0, 2000.0, line),)) for i, line in enumerate(references)
    ]
    run = Run(
        Path("somewhere"),
        {"unit": "word", "language": "en", **spec},
        tuple(record(f"r{i}", text) for i, text in enumerate(texts)),
    )
    return run, TestSet("mine", "en", "", "", tuple(recordings), Path("somewhere"))


def by_metric(scores):
    return {score.metric: score for score in scores}


@pytest.mark.parametrize(
    ("name", "language", "bleu"),
    [("en-de", "de", "BLEU"), ("edge", "de", "BLEU"), ("en-ja", "ja", "BLEU_ja-mecab")],
)
def test_scores_of_a_run_are_those_of_the_reference_program(name, language, bleu):
    run, test_set, expected = golden(name, language)
    scores = by_metric(score_run(run, test_set))
    assert list(scores) == ["BLEU", "chrF2", "StreamLAAL", "StreamLAAL_CA", "SilentSegments"]
    for ours, theirs in (("StreamLAAL", "StreamLAAL"), ("StreamLAAL_CA", "StreamLAAL_CA"), ("BLEU", bleu)):
        assert scores[ours].value == pytest.approx(expected[theirs], rel=1e-9)
    n_silent = expected["StreamLAAL_segments"].count(None)
    assert scores["SilentSegments"].value == n_silent
    assert scores["StreamLAAL"].n == len(expected["StreamLAAL_segments"]) - n_silent
    assert scores["BLEU"].n == len(expected["StreamLAAL_segments"])


def test_a_transcription_has_a_word_error_rate_beside_the_rest():
    run, test_set = transcription(["Hello there!", "good cat"], ["hello there", "good dog"])
    scores = by_metric(score_run(run, test_set))
    assert scores["WER"].value == 25.0
    assert scores["StreamLAAL"].value == 1000.0  # (1500 + 1500 - 2000 / 2) / 2
    assert scores["StreamLAAL_CA"].value == 1100.0
    assert scores["chrF2"].value > 50


def test_computing_times_of_runs_that_shared_the_processor_are_not_scored():
    run, test_set = transcription(["it rains"], ["it rains"], jobs=2)
    scores = by_metric(score_run(run, test_set))
    assert scores["StreamLAAL_CA"].value is None
    assert "2 recordings were run at a time" in scores["StreamLAAL_CA"].reason
    alone, _ = transcription(["it rains"], ["it rains"], jobs=1)
    assert scores["StreamLAAL"] == by_metric(score_run(alone, test_set))["StreamLAAL"]
    assert by_metric(score_run(alone, test_set))["StreamLAAL_CA"].value is not None


def test_signatures_say_how_segments_were_cut():
    run, test_set = transcription(["a b", "c"], ["a b", "c"])
    scores = by_metric(score_run(run, test_set))
    assert all("segments:mweralign-" in scores[name].signature for name in ("BLEU", "chrF2", "StreamLAAL"))
    assert scores["StreamLAAL"].signature.startswith("variant:fbk-v2|")


def test_a_run_that_wrote_nothing_has_reasons_and_no_zeros():
    run, test_set = transcription(["", ""], ["a", "b"])
    scores = by_metric(score_run(run, test_set))
    for name in ("WER", "BLEU", "chrF2", "StreamLAAL", "StreamLAAL_CA"):
        assert (scores[name].value, scores[name].reason) == (None, "every prediction is empty")
    assert (scores["SilentSegments"].value, scores["SilentSegments"].n) == (2.0, 2)


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("jiwer", {"WER"}),
        ("sacrebleu", {"BLEU", "chrF2"}),
        ("mweralign", {"BLEU", "chrF2", "StreamLAAL", "StreamLAAL_CA", "SilentSegments"}),
    ],
)
def test_a_metric_whose_package_is_missing_says_so_and_the_others_are_there(monkeypatch, module, missing):
    run, test_set = transcription(["a b", "c"], ["a b", "c"])
    monkeypatch.setitem(sys.modules, module, None)
    scores = score_run(run, test_set)
    assert {s.metric for s in scores if s.value is None} == missing
    assert all("pip install -e .[score]" in s.reason for s in scores if s.value is None)


def test_other_failures_are_not_turned_into_missing_scores(monkeypatch):
    run, test_set = transcription(["a b", "c"], ["a b", "c"])

    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr("reports.quality.bleu", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        score_run(run, test_set)


def test_a_run_of_other_recordings_is_refused_with_both_lists():
    run, test_set = transcription(["a", "b"], ["a", "b"])
    run = Run(run.folder, run.spec, (run.records[0], record("stranger", "x")))
    with pytest.raises(ValueError, match=r"Only in the run \(1\): stranger\. Only in the test set \(1\): r1\."):
        score_run(run, test_set)


def test_two_recordings_of_one_file_name_are_refused():
    run, _ = transcription(["a"], ["a"])
    twice = (Recording("x", "one/r0.flac", "", 1.0, ()), Recording("y", "two/r0.flac", "", 1.0, ()))
    with pytest.raises(ValueError, match="two audio files of one name"):
        score_run(run, TestSet("mine", "en", "", "", twice, Path("somewhere")))


def test_the_language_must_be_known_and_have_references():
    run, test_set = transcription(["a"], ["a"], language=None)
    with pytest.raises(ValueError, match="pass --language"):
        score_run(run, test_set)
    with pytest.raises(KeyError, match="has no 'de'"):
        score_run(run, test_set, language="de")
    assert by_metric(score_run(run, test_set, language="en"))["WER"].value == 0.0


def test_scoring_against_another_version_of_the_test_set_is_reported(caplog):
    run, test_set = transcription(["a"], ["a"], test_set_sha256="0" * 64)
    with caplog.at_level(logging.WARNING):
        score_run(run, test_set)
    assert "was made on test set 000000000000…" in caplog.text
    caplog.clear()
    run, test_set = transcription(["a"], ["a"], test_set_sha256=test_set.sha256)
    score_run(run, test_set)
    assert caplog.text == ""


def test_intervals_are_repeatable_with_a_seed():
    run, test_set, _ = golden("en-de", "de")
    first = by_metric(score_run(run, test_set, rng=np.random.default_rng(1)))
    again = by_metric(score_run(run, test_set, rng=np.random.default_rng(1)))
    other = by_metric(score_run(run, test_set, rng=np.random.default_rng(2)))
    for name in ("BLEU", "chrF2", "StreamLAAL", "StreamLAAL_CA"):
        low, high = first[name].interval
        assert low < first[name].value < high
        assert again[name].interval == first[name].interval != other[name].interval


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": None}, "missing without a reason"),
        ({"value": 1.0, "reason": "broken"}, "has a reason to be missing"),
        ({"value": float("nan")}, "None with a reason"),
        ({"origin": "guessed"}, "expected one of: measured, published"),
        ({"origin": "published"}, "without a source"),
    ],
)
def test_a_score_that_does_not_know_where_it_comes_from_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Score(**{"metric": "BLEU", "value": 1.0, "signature": "", "n": 1, **changes})


def test_scores_are_read_back_as_they_were_written(tmp_path):
    scores = [
        Score("BLEU", 12.25, "tok:13a", 9, interval=(10.0, 14.5)),
        Score("WER", None, "", 3, reason="every prediction is\u2028empty\nreally"),
        Score("StreamLAAL", 2000.0, "é", 9, origin="published", source="somewhere, Table 1"),
    ]
    write_scores(tmp_path, scores)
    assert read_scores(tmp_path) == scores
    assert [p.name for p in tmp_path.iterdir()] == ["scores.jsonl"]
    write_scores(tmp_path, scores[:1])
    assert read_scores(tmp_path) == scores[:1]


def test_scores_that_are_missing_or_broken_say_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m scripts\.score"):
        read_scores(tmp_path)
    path = write_scores(tmp_path, [Score("BLEU", 1.0, "", 1)])
    path.write_text(path.read_text() + '{"metric": "BLEU"}\n')
    with pytest.raises(ValueError, match=r"scores\.jsonl:2: not a score"):
        read_scores(tmp_path)
