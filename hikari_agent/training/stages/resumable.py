"""Runs a stage over the recordings of a corpus so that it can be killed: what is finished is never done again.

Finished recordings go to `cuts.partial.jsonl`, a line each; at the end the whole corpus is made of them, in the input's
order, with `report.json` beside it. A finished output with the same settings and input is left alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from ..corpus import CUTS, check_corpus_folder, count_cuts, parse_cut, read_corpus, write_corpus, write_text

if TYPE_CHECKING:
    from lhotse import MonoCut

logger = logging.getLogger(__name__)

REPORT, PARTIAL = "report.json", "cuts.partial.jsonl"
N_EXAMPLES = 5  # of what was dropped, for each reason

Item = TypeVar("Item")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Result:
    """What became of one recording. `cut` is None if it was dropped.

    `dropped` are (reason, where) of what was left out; `figures` are numbers, nested by name, that add up.
    """

    id: str
    cut: dict[str, Any] | None
    dropped: list[tuple[str, str]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


def key_of(stage: str, settings: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What an output was made with; equal keys are equal outputs. `source` stands for the input."""
    return json.loads(json.dumps({"stage": stage, "settings": settings, "source": source}, default=str))


def finished_report(target: Path, key: Mapping[str, Any], output: str) -> dict[str, Any] | None:
    """The report of an output that is whole, None if there is none yet; `output` is the file that is written last.

    Raises ValueError if the folder holds something else.
    """
    if not (target / output).exists():
        return None
    try:
        report = json.loads((target / REPORT).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        report = {}
    found = {name: report.get(name) for name in key}
    if found != key:
        raise ValueError(
            f"{target} holds another output ({_difference(found, key)}): remove it, or name another folder"
        )
    logger.info("%s is there already, made with the same input and settings: nothing to do", target)
    return report


def run_stage(
    stage: str,
    source: Path,
    target: Path,
    settings: Mapping[str, Any],
    work: Callable[[Iterable[MonoCut]], Iterable[Result]],
    needs: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Put every recording of corpus `source` through `work` into corpus `target`; returns the report.

    `work` takes the recordings that are not finished yet, and gives a Result for each, in any order. The settings are
    all that the results depend on. Raises ValueError if `target` holds something else, or what `work` raises.
    """
    check_corpus_folder(source)
    if source.resolve() == target.resolve():
        raise ValueError(f"{target} is the input: name another folder for the output")
    key = key_of(stage, settings, sha256((source / CUTS).read_bytes()).hexdigest())
    if report := finished_report(target, key, CUTS):
        return report
    is_new = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with _Log(target / PARTIAL, key) as log:
        order: list[str] = []
        n_before = len(log.places)

        def unfinished() -> Iterator[MonoCut]:
            for cut in read_corpus(source, needs):
                order.append(cut.id)
                if cut.id not in log.places:
                    yield cut

        try:
            for result in progress(work(unfinished()), stage, count_cuts(source) - n_before):
                log.add(result)
        except BaseException:
            log.drop_if_empty()
            if is_new and not any(target.iterdir()):
                target.rmdir()
            raise
        summary = _summary(log.get(name) for name in order)
        write_text(target / REPORT, json.dumps({**key, **summary}, ensure_ascii=False, indent=1) + "\n")
        cuts = (log.get(name).cut for name in order)
        write_corpus((parse_cut(json.dumps(cut), str(log.path)) for cut in cuts if cut is not None), target)
    log.path.unlink()
    seconds = time.monotonic() - started
    logger.info("%s: %.0f s of audio in %.1f s, %.0f x real time", stage, summary["audio_s"], seconds,
                summary["audio_s"] / seconds)  # fmt: skip
    return {**key, **summary}


def spread(function: Callable[[Item], Made], items: Iterable[Item], jobs: int, threads: bool = False) -> Iterator[Made]:
    """`function` of every item, in `jobs` processes (or threads), as they come ready; few items are held at a time."""
    if jobs == 1:
        yield from map(function, items)
        return
    executor = ThreadPoolExecutor(jobs) if threads else ProcessPoolExecutor(jobs, mp_context=_spawn())
    pending: set[Future[Made]] = set()
    try:
        for item in items:
            pending.add(executor.submit(function, item))
            if len(pending) >= 2 * jobs:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in as_completed(pending))
    finally:
        executor.shutdown(cancel_futures=True)


def progress(items: Iterable[Item], name: str, total: int | None = None, unit: str = "recording") -> Iterator[Item]:
    """The items, with a bar on a terminal."""
    from tqdm import tqdm

    silent = None if logger.isEnabledFor(logging.INFO) else True  # None: silent unless stderr is a terminal
    yield from tqdm(items, desc=name, total=total, unit=unit, disable=silent)


def report_lines(report: Mapping[str, Any]) -> list[str]:
    """A report for a person: what there is, and what was dropped and why."""
    lines = [f"{report['n_recordings']} recordings, {report['n_sentences']} sentences, {report['audio_s']:.0f} s"]
    for reason, dropped in report["dropped"].items():
        lines.append(f"dropped {dropped['n']}: {reason} ({', '.join(dropped['first'])})")
    return lines


def drop(dropped: dict[str, Any], reason: str, where: str) -> None:
    """Count one thing that was left out, and keep the first of them as examples."""
    entry = dropped.setdefault(reason, {"n": 0, "first": []})
    entry["n"] += 1
    if len(entry["first"]) < N_EXAMPLES:
        entry["first"].append(where)


def add_up(total: dict[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Add numbers to those of the same name, in dictionaries within dictionaries too; returns `total`, changed."""
    for name, value in figures.items():
        if isinstance(value, Mapping):
            add_up(total.setdefault(name, {}), value)
        else:
            total[name] = total.get(name, 0) + value
    return total


class _Log:
    """The growing log of finished recordings: its first line is the key, then a Result a line."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self.path = path
        self.places: dict[str, int] = {}
        self._file: IO[bytes] = path.open("a+b")
        self._resume(key)

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, result: Result) -> None:
        self._write(result.__dict__, result.id)

    def get(self, name: str) -> Result:
        self._file.seek(self.places[name])
        return Result(**json.loads(self._file.readline()))

    def drop_if_empty(self) -> None:
        if not self.places:
            self.path.unlink()

    def _write(self, content: Mapping[str, Any], name: str | None) -> None:
        self._file.seek(0, 2)
        if name is not None:
            self.places[name] = self._file.tell()
        self._file.write((json.dumps(content, ensure_ascii=False) + "\n").encode())
        self._file.flush()

    def _resume(self, key: Mapping[str, Any]) -> None:
        self._file.seek(0)
        end = 0
        for line in self._file:
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("cut short")
                content = json.loads(line)
                if end and not {"id", "cut"} <= content.keys():
                    raise ValueError("no result")
            except ValueError:
                logger.warning("%s: dropped a broken line at its end, the recording is done again", self.path)
                break
            if end:
                self.places[content["id"]] = end
            elif content != key:
                raise ValueError(
                    f"{self.path} was begun otherwise ({_difference(content, key)}): finish it as it was begun, or remove it"
                )
            end += len(line)
        self._file.truncate(end)
        if not end:
            self._write(key, None)
        elif self.places:
            logger.info("%s: %d recordings are finished already", self.path.parent, len(self.places))


def _summary(results: Iterable[Result]) -> dict[str, Any]:
    summary: dict[str, Any] = {"n_recordings": 0, "n_sentences": 0, "audio_s": 0.0, "dropped": {}, "figures": {}}
    for result in results:
        for reason, where in result.dropped:
            drop(summary["dropped"], reason, where)
        add_up(summary["figures"], result.figures)
        if result.cut is not None:
            summary["n_recordings"] += 1
            summary["n_sentences"] += len(result.cut["supervisions"])
            summary["audio_s"] += result.cut["duration"]
    return summary


def _difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """In words, the first thing in which two keys differ."""
    for name in ("stage", "source"):
        if found.get(name) != wanted[name]:
            return "its input was another" if name == "source" else f"stage {found.get(name)}, not {wanted[name]}"
    for name, value in wanted["settings"].items():
        if (found.get("settings") or {}).get(name) != value:
            return f"{name} was {found['settings'].get(name)!r}, now it is {value!r}"
    return "more settings"


def _spawn() -> Any:
    import multiprocessing

    return multiprocessing.get_context("spawn")
