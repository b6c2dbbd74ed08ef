"""One point of a sweep: a system with one knob value on one test set, run by SimulEval, one process a recording.

A recording is a unit: its row is there whole or not at all, so a sweep that was stopped goes on where it was. One
process a recording also keeps SimulEval from holding every recording in memory as Python floats.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from baselines.systems import SystemSpec
from hikari_agent.tokens import LANGUAGES_WITHOUT_BLANKS
from reports.runs import read_instances, read_run_spec, write_run_spec
from testsets.files import file_sha256, write_whole
from testsets.manifest import Recording, TestSet

logger = logging.getLogger(__name__)

ROOT = Path(__file__).parent.parent
PACKAGES = ("hikari-simulst", "simuleval", "torch", "transformers", "numpy", "onnxruntime")
# What makes two runs the same: all else in run.json tells where and when.
IDENTITY = (
    "system", "knob", "value", "language", "unit", "test_set", "test_set_sha256", "model", "model_sha256", "model_revision",
    "arguments", "segment_ms", "dtype", "device",
)  # fmt: skip
CIRCUMSTANCES = ("versions", "revision", "threads", "jobs", "machine")  # may differ, but not unnoticed


@dataclass(frozen=True)
class Point:
    """A system at one knob value on a test set, and the folder its run goes to."""

    spec: SystemSpec
    value: float | None
    test_set: TestSet
    language: str
    model: str
    folder: Path
    device: str = "cpu"
    dtype: str = "fp32"
    threads: int = 1
    jobs: int = 1  # recordings under way at a time, this point's or others'
    extra: tuple[str, ...] = ()  # further options for the agent

    @property
    def label(self) -> str:
        return self.spec.name if self.value is None else f"{self.spec.name} {self.spec.knob.name}={self.value:g}"  # type: ignore[union-attr]

    @property
    def unit(self) -> str:
        return "char" if self.language in LANGUAGES_WITHOUT_BLANKS else "word"

    @property
    def arguments(self) -> list[str]:
        """SimulEval's arguments that make the system, but for the number of threads."""
        source = self.test_set.source_language
        return [*self.spec.arguments(self.model, source, self.language, self.value), *self.extra]

    def run_spec(self) -> dict[str, Any]:
        """run.json: what was run, on what, with what, where and when."""
        spec: dict[str, Any] = {
            "system": self.spec.name,
            "knob": self.spec.knob.name if self.spec.knob else None,
            "value": self.value,
            "language": self.language,
            "unit": self.unit,
            "test_set": self.test_set.name,
            "test_set_sha256": self.test_set.sha256,
            "test_set_folder": str(self.test_set.root.resolve()),
            "recordings": [recording.id for recording in self.test_set.recordings],
            "model": self.model,
            "model_sha256": _model_sha256(Path(self.model)),
            "model_revision": _model_revision(self.model),
            "arguments": self.arguments,
            "segment_ms": self.spec.segment_ms,
            "dtype": self.dtype,
            "device": self.device,
            "threads": self.threads,
            "jobs": self.jobs,
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
            "python": platform.python_version(),
            "versions": {name: _version(name) for name in PACKAGES},
            "revision": _revision(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return spec

    def prepare(self) -> None:
        """Make the folder and its run.json. Raises ValueError if it holds a run of something else."""
        spec = self.run_spec()
        if (self.folder / "run.json").is_file():
            found = read_run_spec(self.folder)
            differing = [key for key in IDENTITY if found.get(key) != spec[key]]
            if differing:
                lines = "; ".join(f"{key}: there {found.get(key)!r}, now {spec[key]!r}" for key in differing)
                raise ValueError(f"{self.folder} holds another run ({lines}). Take another --output, or remove it")
            if changed := [key for key in CIRCUMSTANCES if found.get(key) != spec[key]]:
                logger.warning("%s was begun with other %s: remove it to run it anew", self.folder, ", ".join(changed))
            return
        self.test_set.write_simuleval_inputs(self.folder / "inputs", self.language)
        write_run_spec(self.folder, spec)

    def is_done(self, recording: Recording) -> bool:
        return self._log(recording).is_file()

    def run_recording(self, index: int, recording: Recording, children: Children) -> None:
        """Run one recording unless it is done. Raises RuntimeError with the agent's error if it fails."""
        if self.is_done(recording):
            return
        output = self._log(recording).parent.with_suffix(".part")
        shutil.rmtree(output, ignore_errors=True)
        output.mkdir(parents=True)
        inputs = self.folder / "inputs"
        command = [
            sys.executable, "-m", "simuleval.cli", *self.arguments, *self._thread_options(),
            "--source", str(inputs / "source.txt"), "--target", str(inputs / "target.txt"),
            "--start-index", str(index), "--end-index", str(index + 1), "--output", str(output),
            "--source-segment-size", str(self.spec.segment_ms), "--eval-latency-unit", self.unit,
            "--device", self.device, "--dtype", self.dtype, "--no-scoring", "--no-progress-bar",
        ]  # fmt: skip
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "PYTHONUNBUFFERED": "1"}
        with (output / "stderr.log").open("w", encoding="utf-8") as errors:
            status = children.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        said = (output / "stderr.log").read_text(encoding="utf-8", errors="replace").strip()
        if status:
            told = [line for line in said.splitlines() if line.startswith("error: ")] or said.splitlines()[-1:]
            reason = told[0].removeprefix("error: ") if told else "it said nothing"
            raise RuntimeError(f"{self.label} on '{recording.id}': SimulEval ended with status {status}: {reason}")
        (record,) = read_instances(output / "instances.log", self.unit)
        if record.recording_id != Path(recording.audio).stem:
            raise RuntimeError(f"{self.label} on '{recording.id}': the log is of recording '{record.recording_id}'")
        output.replace(self._log(recording).parent)

    def finish(self) -> None:
        """Join the recordings into the run's instances.log, in the test set's order."""
        lines = []
        for index, recording in enumerate(self.test_set.recordings):
            row = json.loads(self._log(recording).read_text(encoding="utf-8"))
            lines.append(json.dumps({**row, "index": index}, ensure_ascii=False) + "\n")
        write_whole(self.folder / "instances.log", "".join(lines))

    def _thread_options(self) -> list[str]:
        return [self.spec.threads_flag, str(self.threads)] if self.spec.threads_flag else []

    def _log(self, recording: Recording) -> Path:
        return self.folder / "recordings" / recording.id / "instances.log"


class Children:
    """The processes under way, so that an interrupt ends them all."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, command: list[str], **options: Any) -> int:
        """Start a process and wait for it; returns its status. Raises RuntimeError once `stop` was called."""
        with self._lock:
            if self._stopped:
                raise RuntimeError("the sweep was stopped")
            child = subprocess.Popen(command, **options)
            self._running.add(child)
        try:
            return child.wait()
        finally:
            with self._lock:
                self._running.discard(child)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._running:
                child.terminate()


@functools.cache
def _model_sha256(folder: Path) -> str | None:
    """Checksum of a local model's weights, all files of them in order; None for a hub id."""
    files = sorted(folder.glob("*.safetensors"))
    sums = [file_sha256(path) for path in files]
    return hashlib.sha256("".join(sums).encode()).hexdigest() if len(sums) > 1 else next(iter(sums), None)


def _model_revision(model: str) -> str | None:
    """The commit of a hub model that is in the hub's cache; None for a folder."""
    from huggingface_hub import try_to_load_from_cache

    if Path(model).is_dir():
        return None
    cached = try_to_load_from_cache(model, "config.json")
    return Path(cached).parent.name if isinstance(cached, str) else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@functools.cache
def _revision() -> str | None:
    """The checkout's git commit, with a + if files differ from it; None outside of git."""
    git = ["git", "-C", str(ROOT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")
