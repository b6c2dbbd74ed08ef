"""A run as it lies on disk: `run.json` (what was run, on what) beside `instances.log` (what came out, and when).

`instances.log` is SimulEval's: one JSON object a line, a line a recording.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testsets.files import write_whole

logger = logging.getLogger(__name__)

UNITS = ("word", "char")
# SimulEval adds measured seconds to delays in floating point: a microsecond is far below a clock tick that matters.
CLOCK_TOLERANCE_MS = 1e-3
# Programs round the length of a recording to whole milliseconds, the time heard to samples.
END_TOLERANCE_MS = 1.0


@dataclass(frozen=True)
class RunRecord:
    """One recording as one system translated it.

    `units` are words or characters without blanks in them; unit i was written when `delays_ms[i]` of the recording
    had been heard and, with the time to compute counted, at `elapsed_ms[i]`. `source_ms` is the recording's length.
    `prediction` is the text with its blanks. No units and an empty prediction is a system that stayed silent.

    Raises ValueError naming recording and unit if the lengths differ, a delay decreases or lies past the end of the
    audio, computation-aware time is below the time heard, or the units are not the prediction's.
    """

    recording_id: str
    units: tuple[str, ...]
    delays_ms: tuple[float, ...]
    elapsed_ms: tuple[float, ...]
    source_ms: float
    prediction: str

    def __post_init__(self) -> None:
        where = f"recording '{self.recording_id}'"
        if not len(self.units) == len(self.delays_ms) == len(self.elapsed_ms):
            raise ValueError(
                f"{where} has {len(self.units)} units, {len(self.delays_ms)} delays and {len(self.elapsed_ms)} elapsed "
                "times, these must be equal: is the run's unit (word or char) right?"
            )
        if "".join(self.units) != "".join(self.prediction.split()) or any(len(u.split()) != 1 for u in self.units):
            raise ValueError(f"{where}: the units, written one after the other, are not the prediction")
        if not (math.isfinite(self.source_ms) and self.source_ms >= 0):
            raise ValueError(f"{where}: its length is {self.source_ms} ms, expected a number from 0 up")
        previous = 0.0
        for i, (unit, delay, elapsed) in enumerate(zip(self.units, self.delays_ms, self.elapsed_ms, strict=True)):
            which = f"{where}, unit {i} '{unit}'"
            if not (math.isfinite(delay) and math.isfinite(elapsed)):
                raise ValueError(f"{which}: delay {delay} ms, elapsed {elapsed} ms, expected finite numbers")
            if delay < previous:
                raise ValueError(f"{which}: its delay is {delay} ms, before {previous} ms: delays never decrease")
            if delay > self.source_ms + END_TOLERANCE_MS:
                raise ValueError(f"{which}: its delay is {delay} ms, past the end of the audio at {self.source_ms} ms")
            if elapsed < delay - CLOCK_TOLERANCE_MS:
                raise ValueError(
                    f"{which}: it was written at {elapsed} ms, before the {delay} ms of audio it is based on were heard"
                )
            previous = delay


@dataclass(frozen=True)
class Run:
    """A run folder read back: `spec` is run.json, `records` one a recording in the log's order."""

    folder: Path
    spec: dict[str, Any]
    records: tuple[RunRecord, ...]

    @property
    def unit(self) -> str:
        """What a delay belongs to: "word" or "char"."""
        return str(self.spec["unit"])


def read_run(folder: Path) -> Run:
    """The run in `folder`. Raises FileNotFoundError without its two files, ValueError if one cannot be read."""
    spec = read_run_spec(folder)
    return Run(folder, spec, tuple(read_instances(folder / "instances.log", str(spec["unit"]))))


def read_run_spec(folder: Path) -> dict[str, Any]:
    """`run.json` of the run in `folder`, with at least a unit. Raises FileNotFoundError or ValueError."""
    path = folder / "run.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no run folder: run.json is missing")
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error})") from error
    if not isinstance(spec, dict) or spec.get("unit") not in UNITS:
        found = repr(spec.get("unit")) if isinstance(spec, dict) else type(spec).__name__
        raise ValueError(f'{path}: expected an object with "unit": "word" or "char", got {found}')
    return spec


def write_run_spec(folder: Path, spec: dict[str, Any]) -> Path:
    """Write `run.json`, whole or not at all, making the folder; returns its path."""
    path = folder / "run.json"
    write_whole(path, json.dumps(spec, ensure_ascii=False, indent=1) + "\n")
    return path


def find_run_folders(paths: Iterable[Path]) -> list[Path]:
    """Every folder with a run.json at or below the given ones, each once, in a fixed order.

    Raises FileNotFoundError for a path without any.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = [path] if (path / "run.json").is_file() else sorted(p.parent for p in path.rglob("run.json"))
        if not inside:
            raise FileNotFoundError(f"no run folder (one with a run.json) at or below {path}")
        found.update(dict.fromkeys(inside))
    return list(found)


def read_instances(path: Path, unit: str) -> list[RunRecord]:
    """The records of a SimulEval instances.log, in its order; a recording's id is the stem of its audio file.

    `unit` says what its delays belong to: "word" or "char" (characters without the blanks between them).
    A broken last line, left by a program that was stopped, is dropped with a warning. Raises FileNotFoundError, and
    ValueError naming file and line for any other line that cannot be read and for a recording that comes twice.
    """
    if unit not in UNITS:
        raise ValueError(f"unit is '{unit}', expected one of: {', '.join(UNITS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: the run has written nothing yet, or its folder was moved")
    lines = [(number, line) for number, line in enumerate(path.read_bytes().split(b"\n"), start=1) if line.strip()]
    records: dict[str, RunRecord] = {}
    line_of: dict[str, int] = {}
    for position, (number, line) in enumerate(lines, start=1):
        try:
            content = json.loads(line.decode("utf-8"))
        except ValueError as error:  # both UnicodeDecodeError and JSONDecodeError
            if position == len(lines):
                logger.warning("%s:%d: the last line is broken (cut off?) and was dropped", path, number)
                break
            raise ValueError(f"{path}:{number}: the line is not JSON ({error})") from error
        try:
            record = _record(content, unit)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}:{number}: not an instance of SimulEval ({error!r})") from error
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        if record.recording_id in records:
            first = line_of[record.recording_id]
            raise ValueError(f"{path}:{number}: recording '{record.recording_id}' was in line {first} already")
        records[record.recording_id] = record
        line_of[record.recording_id] = number
    return list(records.values())


def _record(content: dict[str, Any], unit: str) -> RunRecord:
    prediction = str(content["prediction"])
    words = prediction.split()
    return RunRecord(
        recording_id=Path(str(content["source"][0])).stem,
        units=tuple(words if unit == "word" else "".join(words)),
        delays_ms=_floats(content["delays"]),
        elapsed_ms=_floats(content["elapsed"]),
        source_ms=float(content["source_length"]),
        prediction=prediction,
    )


def _floats(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
