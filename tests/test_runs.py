"""Reading and writing run folders."""

import json
import logging
import os

import pytest

from reports.runs import RunRecord, find_run_folders, read_instances, read_run, read_run_spec, write_run_spec


def instance(name="talk", prediction="one two", delays=(100.0, 200.0), elapsed=(110.0, 230.0), length=1000.0):
    return {
        "index": 0, "prediction": prediction, "delays": list(delays), "elapsed": list(elapsed),
        "prediction_length": len(delays), "reference": "", "source": [f"/data/{name}.wav", "samplerate: 16000 Hz"],
        "source_length": length,
    }  # fmt: skip


def write_log(folder, *lines):
    path = folder / "instances.log"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def record(**changes):
    usual = {
        "recording_id": "talk", "units": ("one", "two"), "delays_ms": (100.0, 200.0), "elapsed_ms": (110.0, 230.0),
        "source_ms": 1000.0, "prediction": "one two",
    }  # fmt: skip
    return RunRecord(**{**usual, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delays_ms": (100.0,)}, "2 units, 1 delays and 2 elapsed"),
        ({"delays_ms": (100.0, 90.0)}, "unit 1 'two': its delay is 90.0 ms, before 100.0 ms"),
        ({"delays_ms": (-5.0, 90.0)}, "unit 0 'one': its delay is -5.0 ms, before 0.0 ms"),
        ({"elapsed_ms": (110.0, 199.0)}, "unit 1 'two': it was written at 199.0 ms, before the 200.0 ms"),
        ({"source_ms": 198.0}, "unit 1 'two': its delay is 200.0 ms, past the end of the audio at 198.0 ms"),
        ({"delays_ms": (100.0, float("nan"))}, "unit 1 'two': delay nan ms"),
        ({"elapsed_ms": (float("inf"), 230.0)}, "unit 0 'one': delay 100.0 ms, elapsed inf ms"),
        ({"source_ms": float("nan")}, "its length is nan ms"),
        ({"units": ("one", "three")}, "are not the prediction"),
        ({"units": ("one two", ""), "prediction": "one two"}, "are not the prediction"),
    ],
)
def test_a_broken_record_is_refused_by_recording_and_unit(changes, message):
    with pytest.raises(ValueError, match="recording 'talk'") as error:
        record(**changes)
    assert message in str(error.value)


def test_rounding_of_clock_and_length_is_no_error():
    assert record(delays_ms=(100.0, 1000.4), elapsed_ms=(99.9999, 1001.0)).source_ms == 1000.0


def test_a_silent_system_is_legal(tmp_path):
    (silent,) = read_instances(write_log(tmp_path, instance(prediction="", delays=(), elapsed=())), "word")
    assert (silent.recording_id, silent.units, silent.delays_ms) == ("talk", (), ())


def test_words_and_characters_get_a_delay_each_and_blanks_get_none(tmp_path):
    path = write_log(tmp_path, instance(prediction="ab c", delays=(1, 2, 3), elapsed=(1, 2, 3)))
    (characters,) = read_instances(path, "char")
    assert characters.units == ("a", "b", "c")
    assert characters.prediction == "ab c"
    with pytest.raises(ValueError, match=r"instances.log:1: recording 'talk' has 2 units, 3 delays"):
        read_instances(path, "word")


@pytest.mark.parametrize("cut", [1, 30, 60])
def test_a_broken_last_line_is_dropped_and_reported(tmp_path, caplog, cut):
    path = write_log(tmp_path, instance("a"), json.dumps(instance("b"))[:-cut])
    with caplog.at_level(logging.WARNING):
        assert [r.recording_id for r in read_instances(path, "word")] == ["a"]
    assert f"{path}:2" in caplog.text


def test_a_last_line_cut_inside_a_character_is_dropped(tmp_path, caplog):
    path = write_log(tmp_path, instance("a"))
    path.write_bytes(path.read_bytes() + '{"prediction": "é'.encode()[:-1])
    assert [r.recording_id for r in read_instances(path, "word")] == ["a"]
    assert f"{path}:2" in caplog.text


def test_a_broken_line_in_the_middle_is_an_error_with_its_number(tmp_path):
    path = write_log(tmp_path, instance("a"), '{"index": 1, "predic\n', instance("b"))
    with pytest.raises(ValueError, match=r"instances.log:2: the line is not JSON"):
        read_instances(path, "word")


@pytest.mark.parametrize("line", ["[]\n", "{}\n", '{"prediction": "a", "source": []}\n', "3\n"])
def test_a_line_that_is_no_instance_is_an_error_even_at_the_end(tmp_path, line):
    with pytest.raises(ValueError, match=r"instances.log:2: not an instance"):
        read_instances(write_log(tmp_path, instance("a"), line), "word")


def test_a_recording_that_comes_twice_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"instances.log:2: recording 'a' was in line 1"):
        read_instances(write_log(tmp_path, instance("a"), instance("a")), "word")


def test_a_missing_log_and_an_unknown_unit_say_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"instances\.log is missing"):
        read_instances(tmp_path / "instances.log", "word")
    with pytest.raises(ValueError, match="'spm', expected one of: word, char"):
        read_instances(tmp_path / "instances.log", "spm")


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    spec = {"system": "hikari", "knob": "wait_penalty", "value": 0.5, "language": "ja", "unit": "char", "x": "é"}
    write_run_spec(tmp_path / "run", spec)
    write_log(tmp_path / "run", instance("a", "é.", (1, 2), (1, 2)), instance("b", "", (), ()))
    run = read_run(tmp_path / "run")
    assert (run.spec, run.unit) == (spec, "char")
    assert [r.recording_id for r in run.records] == ["a", "b"]


@pytest.mark.parametrize("text", ["{", "[]", '{"system": "hikari"}', '{"unit": "spm"}'])
def test_a_run_json_that_cannot_be_used_is_named(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=r"run\.json"):
        read_run_spec(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_run_spec(tmp_path, {"unit": "word"})

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_run_spec(tmp_path, {"unit": "char"})
    assert read_run_spec(tmp_path) == {"unit": "word"}
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_written_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "other").write_text("")
    path = write_run_spec(tmp_path, {"unit": "word"})
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_run_folders_are_found_below_a_folder_once_each(tmp_path):
    for name in ("b", "a", "deep/c"):
        write_run_spec(tmp_path / name, {"unit": "word"})
    found = find_run_folders([tmp_path / "b", tmp_path])
    assert [p.relative_to(tmp_path).as_posix() for p in found] == ["b", "a", "deep/c"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no run folder .* below .*empty"):
        find_run_folders([tmp_path, tmp_path / "empty"])
