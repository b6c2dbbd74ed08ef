"""Draw quality against latency of scored runs: a line a system, a point a run, the Pareto front filled.

    python -m scripts.plot runs --quality WER --latency StreamLAAL --output curve

Writes curve.png and curve.svg and prints their paths. The runs must have been scored (python -m scripts.score).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from reports.plots import plot_pareto
from reports.runs import find_run_folders
from reports.tables import rows
from scripts.cli import add_common_arguments, report_errors
from testsets.manifest import load


def main(argv: Sequence[str] | None = None) -> int:
    return report_errors(_plot, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.plot",
        description="Draw quality against latency of scored runs: python -m scripts.plot runs --output curve",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a run folder, or one above some")
    parser.add_argument("--quality", default="WER", metavar="METRIC", help="vertical axis, e.g. BLEU (default: WER)")
    parser.add_argument(
        "--latency", default="StreamLAAL", metavar="METRIC", help="horizontal axis (default: StreamLAAL, drawn in s)"
    )
    parser.add_argument("--testset", metavar="NAME", help="draw only the runs on this test set (default: all)")
    parser.add_argument("--language", metavar="CODE", help="draw only the runs that write this language (default: all)")
    parser.add_argument("--intervals", action="store_true", help="draw the scores' 95 %% intervals as crosses")
    parser.add_argument("--title", help="title of the figure (default: metrics, test set and language)")
    parser.add_argument(
        "--output", type=Path, default=Path("curve"), metavar="PATH",
        help="where to write, without .png and .svg (default: curve)",
    )  # fmt: skip
    add_common_arguments(parser)
    return parser


def _plot(arguments: argparse.Namespace) -> int:
    frame = rows(find_run_folders(arguments.folders))
    test_set = arguments.testset
    if test_set and (Path(test_set) / "manifest.json").is_file():
        test_set = load(test_set).name
    for column, wanted in (("test_set", test_set), ("language", arguments.language)):
        if wanted is not None:
            known = ", ".join(sorted(set(frame[column].map(str))))
            frame = frame[frame[column] == wanted]
            if frame.empty:
                raise ValueError(f"no run has {column} '{wanted}'. They have: {known}")
    for path in plot_pareto(
        frame, arguments.output, arguments.quality, arguments.latency, arguments.title, arguments.intervals
    ):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
