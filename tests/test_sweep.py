"""A sweep is SimulEval runs in run folders: resumed where it was stopped, never mixed, failures told at the end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile
from harness import ROOT, run_simuleval

from baselines.systems import SYSTEMS, takes
from reports.runs import read_run
from scripts.sweep import knob_values, main
from testsets.files import file_sha256
from testsets.manifest import Recording, Segment, TestSet, save


@pytest.fixture(scope="module")
def two_recordings(tmp_path_factory, golden_audio):
    """A test set of two short recordings."""
    root = tmp_path_factory.mktemp("set")
    recordings = []
    for name, start, n_samples in (("one", 0, 32_000), ("two", 400_000, 24_000)):
        soundfile.write(root / f"{name}.wav", golden_audio[start : start + n_samples], 16_000)
        segment = Segment(0.0, n_samples / 16, f"text of {name}", {"de": f"Text von {name}"})
        checksum = file_sha256(root / f"{name}.wav")
        recordings.append(Recording(name, f"{name}.wav", checksum, n_samples / 16, (segment,)))
    save(TestSet("pair", "en", "CC0", "made up", tuple(recordings), root))
    return root


def sweep(output, test_set, model, *more: str) -> list[str]:
    return [
        "--system", "hikari", "--testset", str(test_set), "--language", "de", "--model", str(model), "--quiet",
        "--output", str(output), *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_a_point_is_what_simuleval_logs_and_a_second_sweep_runs_nothing_again(
    tmp_path, two_recordings, tiny_folder, capsys
):
    arguments = sweep(tmp_path / "out", two_recordings, tiny_folder, "--knob", "wait_penalty=0.6")
    assert main(arguments) == 0
    (folder,) = capsys.readouterr().out.split()
    run = read_run(tmp_path / "out" / "pair.de" / "hikari" / "wait_penalty=0.6")
    assert str(run.folder) == folder
    assert [record.recording_id for record in run.records] == ["one", "two"]
    assert run.spec["value"] == 0.6
    assert run.spec["versions"]["simuleval"] == "1.1.4"
    wavs = [two_recordings / "one.wav", two_recordings / "two.wav"]
    _, rows = run_simuleval(
        tmp_path / "direct", wavs, "--agent-class", "hikari_agent.agent.HikariAgent", "--hikari-model", str(tiny_folder),
        "--hikari-boost", "0", "--hikari-wait-penalty", "0.6", "--hikari-target", "de",
    )  # fmt: skip
    for ours, theirs in zip(run.records, rows, strict=True):
        assert ours.prediction == theirs["prediction"]
        assert list(ours.delays_ms) == theirs["delays"]
    logs = {p: p.stat().st_mtime_ns for p in run.folder.rglob("recordings/*/instances.log")}
    before = (run.folder / "instances.log").read_text()
    assert main(arguments) == 0
    assert {p: p.stat().st_mtime_ns for p in logs} == logs
    assert (run.folder / "instances.log").read_text() == before

    with pytest.raises(ValueError, match=r"holds another run.*dtype: there 'fp32', now 'fp16'"):
        main([*arguments, "--dtype", "fp16", "--debug"])


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_ends_with_the_same_words(tmp_path, two_recordings, tiny_folder):
    command = [sys.executable, "-m", "scripts.sweep"]
    command += sweep(tmp_path / "killed", two_recordings, tiny_folder, "--knob", "wait_penalty=0,1")
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "killed").rglob("recordings/one/instances.log")) and time.monotonic() < deadline:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert "Traceback" not in said
    n_done = len(list((tmp_path / "killed").rglob("recordings/*/instances.log")))
    assert 1 <= n_done < 4
    assert main(command[3:]) == 0
    assert main(sweep(tmp_path / "whole", two_recordings, tiny_folder, "--knob", "wait_penalty=0,1")) == 0
    for value in ("0", "1"):
        killed, whole = (
            read_run(tmp_path / kind / "pair.de" / "hikari" / f"wait_penalty={value}") for kind in ("killed", "whole")
        )
        assert [(r.units, r.delays_ms) for r in killed.records] == [(r.units, r.delays_ms) for r in whole.records]


@pytest.mark.slow
def test_a_failure_is_told_and_does_not_stop_the_rest(tmp_path, two_recordings, tiny_folder, capsys):
    arguments = sweep(
        tmp_path, two_recordings, tiny_folder, "--knob", "wait_penalty=0", "--", "--hikari-window-rows", "9999"
    )
    assert main(arguments) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(told) == 2
    assert "a window of 9999 rows: this model takes 5 to 375" in told[0]
    assert not list(tmp_path.rglob("recordings/*/instances.log"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--system", "hikary"], "no system 'hikary'. Known: hikari, hikari-tiny"),
        (["--system", "hikari", "--language", "ja"], "has no 'ja'"),
        (["--system", "whisper-alignatt", "--language", "de"], "does not write 'de' from 'en'"),
        (["--system", "hikari", "--knob", "wait_penaltie=1"], "hikari have: wait_penalty"),
        (["--system", "hikari", "--jobs", "0"], "--jobs 0"),
        (["--system", "hikari", "--knob", "wait_penalty=a"], "expected a list 1,2,4 or a range"),
        (["--system", "hikari", "--testset", "nowhere"], "no test set 'nowhere'"),
        (["--system", "hikari", "--recordings", "three"], "no recording 'three'"),
    ],
)
def test_a_wrong_plan_is_one_line_before_anything_runs(tmp_path, two_recordings, capsys, more, message):
    assert main(["--testset", str(two_recordings), "--output", str(tmp_path / "out"), *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not (tmp_path / "out").exists()


def test_knob_values_are_lists_or_ranges():
    assert knob_values("-2:6:1") == list(np.arange(-2.0, 7))
    assert knob_values("0:1:0.25") == [0, 0.25, 0.5, 0.75, 1]
    assert knob_values("4,10,25") == [4, 10, 25]
    for wrong in ("", "a", "1:2", "0:1:0", "0:1:0.3", "2:1:1"):
        with pytest.raises(ValueError, match="knob values"):
            knob_values(wrong)


def test_every_system_can_be_started_and_cited():
    import importlib

    for spec in SYSTEMS.values():
        module, name = spec.agent_class.rsplit(".", 1)
        agent = getattr(importlib.import_module(module), name)
        import argparse

        parser = argparse.ArgumentParser(exit_on_error=False)
        agent.add_args(parser)
        value = spec.knob.values[0] if spec.knob else None
        arguments = spec.arguments("the-folder", "en", "en", value)
        parser.parse_args(arguments[2:])
        assert arguments[arguments.index(spec.model_flag) + 1] == "the-folder"
        assert arguments[arguments.index(spec.task_flag) + 1] == "transcribe"
        assert spec.licence
        assert spec.citation


def test_the_task_follows_from_the_pair():
    def task(name: str, source: str, target: str) -> str:
        assert takes(SYSTEMS[name], source, target)
        arguments = SYSTEMS[name].arguments("m", source, target, None)
        return arguments[arguments.index(SYSTEMS[name].task_flag) + 1]

    assert task("hikari", "en", "en") == "transcribe"
    assert task("hikari", "en", "de") == "translate"
    assert task("hikari", "ja", "en") == "translate"
    assert task("whisper-alignatt", "cs", "cs") == "transcribe"
    assert task("whisper-alignatt", "cs", "en") == "translate"
    assert not takes(SYSTEMS["whisper-alignatt"], "en", "de")
