"""Run systems over their latency knob on a test set: a run folder for each point, made by SimulEval.

    python -m scripts.sweep --system whisper-alignatt --testset tiny --output out

Started again with the same arguments it goes on where it was stopped. Folders of finished runs go to stdout.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.cli import add_common_arguments, report_errors

if TYPE_CHECKING:
    from baselines.systems import SystemSpec
    from scripts.points import Point


def knob_values(text: str) -> list[float]:
    """Values of a knob: a list `1,2,4`, or a range `-2:6:1` with both ends and the step.

    >>> knob_values("-2:0:1"), knob_values("4,25")
    ([-2.0, -1.0, 0.0], [4.0, 25.0])

    Raises ValueError for anything else.
    """
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        first, last, step = (float(part) for part in text.split(":"))
        n_steps = round((last - first) / step)
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"knob values '{text}': expected a list 1,2,4 or a range FIRST:LAST:STEP") from error
    if n_steps < 0 or abs(first + n_steps * step - last) > 1e-9 * max(1, abs(last)):
        raise ValueError(f"knob values '{text}': steps of {step:g} from {first:g} do not reach {last:g}")
    return [first + i * step for i in range(n_steps + 1)]


def plan(arguments: argparse.Namespace) -> list[Point]:
    """The points that the arguments ask for, checked before anything runs."""
    from baselines.systems import system
    from scripts.points import Point
    from testsets.manifest import load

    test_set = load(arguments.testset)
    if arguments.recordings:
        test_set = test_set.select(arguments.recordings.split(","))
    test_set.verify()
    language = arguments.language or test_set.source_language
    test_set.references(language)  # refuses a language without references
    specs = [system(name) for name in arguments.system]
    known = [spec.knob.name for spec in specs if spec.knob]
    for text in arguments.knob:
        if text.partition("=")[0] not in known:
            raise KeyError(f"no knob in '{text}'. {', '.join(arguments.system)} have: {', '.join(known) or 'none'}")
    if arguments.jobs < 1 or arguments.threads < 1:
        raise ValueError(f"--jobs {arguments.jobs} --threads {arguments.threads}: both are at least 1")
    points = []
    for spec in specs:
        _check_pair(spec, test_set.source_language, language)
        for value in _values(spec, arguments.knob):
            setting = "fixed" if value is None or spec.knob is None else f"{spec.knob.name}={value:g}"
            folder = arguments.output / f"{test_set.name}.{language}" / spec.name / setting
            points.append(
                Point(
                    spec, value, test_set, language, find_model(spec, arguments.model), folder, arguments.device,
                    arguments.dtype, arguments.threads, arguments.jobs, tuple(arguments.agent_options),
                )
            )  # fmt: skip
    return points


def _check_pair(spec: SystemSpec, source: str, target: str) -> None:
    from baselines.systems import takes

    if not takes(spec, source, target):
        words = {("*", "*"): "any language as it is spoken", ("*", "en"): "any into en"}
        shown = ", ".join(words.get(pair, "-".join(pair)) for pair in spec.pairs)
        raise ValueError(f"{spec.name} does not write '{target}' from '{source}'. It does: {shown}")


def _values(spec: SystemSpec, knobs: Sequence[str]) -> list[float | None]:
    """The values to run `spec` at: those given for its knob, or its own."""
    if spec.knob is None:
        return [None]
    for text in knobs:
        name, _, values = text.partition("=")
        if name == spec.knob.name:
            return [*knob_values(values)]
    return [*spec.knob.values]


def find_model(spec: SystemSpec, given: str | None) -> str:
    """The model's folder or hub id. Raises FileNotFoundError if a model that can be fetched was not."""
    from hikari_agent.checkpoint import EMBEDDED, resolve_folder
    from scripts.fetch import DESCRIPTIONS, model_folder

    model = given or spec.model
    if model is None:
        raise ValueError(f"{spec.name} needs a model: give --model")
    if model in DESCRIPTIONS:
        folder = model_folder(model)
        if not folder.is_dir():
            raise FileNotFoundError(f"{model} is not here yet: python -m scripts.fetch {model}")
        return str(folder)
    if model in EMBEDDED:
        return str(resolve_folder(model))
    return str(Path(model).resolve()) if Path(model).is_dir() else model


def run(points: Sequence[Point], jobs: int, quiet: bool = False) -> list[str]:
    """Run every recording of every point, `jobs` at a time; returns what failed, one line each.

    A failure does not stop the rest. Raises KeyboardInterrupt after ending what runs.
    """
    from tqdm import tqdm

    from scripts.points import Children

    for point in points:
        point.prepare()
    children, failures = Children(), []
    total = sum(r.duration_ms for p in points for r in p.test_set.recordings) / 1000
    units: dict[Future[None], tuple[Point, float]] = {}
    pool = ThreadPoolExecutor(max_workers=jobs)
    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total:.0f} s of audio [{elapsed}<{remaining}]"
    try:
        with tqdm(total=total, disable=True if quiet else None, bar_format=bar_format, desc="sweep") as bar:
            for point in points:
                for index, recording in enumerate(point.test_set.recordings):
                    future = pool.submit(point.run_recording, index, recording, children)
                    units[future] = point, recording.duration_ms / 1000
            for future in as_completed(units):
                point, seconds = units[future]
                bar.set_description_str(point.label, refresh=False)
                bar.update(seconds)
                if error := future.exception():
                    failures.append(str(error))
    except KeyboardInterrupt:
        children.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    for point in points:
        if all(point.is_done(recording) for recording in point.test_set.recordings):
            point.finish()
    return failures


def _run(arguments: argparse.Namespace) -> int:
    points = plan(arguments)
    failures = run(points, arguments.jobs, arguments.quiet)
    for point in points:
        if (point.folder / "instances.log").is_file():
            print(point.folder)
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 2 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.sweep",
        description="Run systems over their latency knob, a SimulEval run for each point. Example: "
        "python -m scripts.sweep --system whisper-alignatt --testset tiny --knob frame_threshold=10,25 --output out",
        epilog="Options after -- go to the agent as they are, for example: -- --policy-chunk-ms 1000",
    )
    parser.add_argument("--system", action="append", required=True, help="a name in baselines/systems.py; repeatable")
    parser.add_argument("--testset", default="tiny", metavar="NAME", help="test set name or folder (default: tiny)")
    parser.add_argument("--language", metavar="CODE", help="language to write (default: the test set's own)")
    parser.add_argument(
        "--knob", action="append", default=[], metavar="NAME=VALUES",
        help="values as 1,2,4 or FIRST:LAST:STEP (default: the system's own); repeatable, one for each knob",
    )  # fmt: skip
    parser.add_argument("--model", metavar="DIR", help="model folder or hub id (default: the system's own)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that holds the run folders")
    parser.add_argument("--recordings", metavar="ID,ID", help="only these recordings (default: all)")
    parser.add_argument("--device", default="cpu", help="torch device (default: cpu)")
    parser.add_argument("--dtype", choices=("fp32", "fp16"), default="fp32", help="number format (default: fp32)")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="recordings at a time; more than 1 disturbs computation-aware latency (default: 1)",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads of each job (default: 1)")
    add_common_arguments(parser)
    return parser


def parse(given: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line; what follows `--` is `agent_options`."""
    at = given.index("--") if "--" in given else len(given)
    arguments = _parser().parse_args(given[:at])
    arguments.agent_options = list(given[at + 1 :])
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 if anything failed."""
    return report_errors(_run, parse(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
