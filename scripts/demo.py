"""The whole way in one command: real speech, a real model under two policies, scores, a table and the curve.

    python -m scripts.demo --output out/demo

Then the shipped Hikari on its own talks: three languages and nine WAIT penalties, and one of them under SimulEval.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.cli import add_common_arguments, report_errors

logger = logging.getLogger(__name__)

SYSTEMS = ("whisper-alignatt", "whisper-local-agreement")
TEST_SET = "tiny"


def _demo(arguments: argparse.Namespace) -> int:
    from reports.plots import plot_pareto
    from reports.score import score_folder
    from reports.tables import rows, to_csv, to_markdown
    from scripts import fetch, sweep
    from testsets.files import write_whole
    from testsets.manifest import load

    output: Path = arguments.output
    fetch.fetch_whisper_base()
    if arguments.fresh:
        for name in ("runs", "onepass", "simuleval"):
            shutil.rmtree(output / name, ignore_errors=True)
    test_set = load(TEST_SET)
    seconds = sum(recording.duration_ms for recording in test_set.recordings) / 1000
    logger.info(
        "sweeping %s over %.0f s of speech, %d recordings at a time", " and ".join(SYSTEMS), seconds, arguments.jobs
    )
    common = ["--testset", TEST_SET, "--jobs", str(arguments.jobs)]
    systems = [part for name in SYSTEMS for part in ("--system", name)]
    points = sweep.plan(sweep.parse([*common, *systems, "--output", str(output / "runs")]))
    failures = sweep.run(points, arguments.jobs, arguments.quiet)
    if failures:
        raise ValueError(f"{len(failures)} recordings failed, the first: {failures[0]}")
    folders = [point.folder for point in points]
    for folder in folders:
        score_folder(folder, test_set)
    frame = rows(folders)
    write_whole(output / "table.md", to_markdown(frame))
    write_whole(output / "table.csv", to_csv(frame))
    drawn = plot_pareto(frame, output / "curve", quality="WER", latency="StreamLAAL")
    print(to_markdown(frame))
    for path in (output / "table.md", output / "table.csv", *drawn):
        print(path)

    folders = _hikari(arguments)
    frame = rows(folders)
    write_whole(output / "hikari.md", to_markdown(frame))
    of_german = frame[frame["language"] == "de"]
    drawn = plot_pareto(of_german, output / "hikari-de", quality="BLEU", latency="StreamLAAL")
    print(to_markdown(frame))
    for path in (output / "hikari.md", *drawn):
        print(path)
    return 0


def _hikari(arguments: argparse.Namespace) -> list[Path]:
    """The shipped Hikari on its talks: every penalty in one pass, and one of them through SimulEval; its run folders."""
    from reports.runs import read_run
    from reports.score import score_folder
    from scripts import onepass, sweep
    from testsets.manifest import load

    talks = load("tiny-talks")
    logger.info("now the shipped Hikari on tiny-talks, three translations at nine penalties in one pass over the audio")
    folders = onepass.sweep(
        "hikari-tiny", talks, ["de", "ja", "ru"], onepass.PENALTIES, arguments.output / "onepass", "hikari-tiny"
    )
    chosen = ["--system", "hikari-tiny", "--testset", "tiny-talks", "--language", "de", "--knob", "wait_penalty=1"]
    points = sweep.plan(
        sweep.parse([*chosen, "--jobs", str(arguments.jobs), "--output", str(arguments.output / "simuleval")])
    )
    failures = sweep.run(points, arguments.jobs, arguments.quiet)
    if failures:
        raise ValueError(f"the Hikari agent failed: {failures[0]}")
    for folder in (*folders, points[0].folder):
        score_folder(folder, talks)
    said = [[record.prediction for record in read_run(folder).records] for folder in
            (points[0].folder, arguments.output / "onepass" / "hikari-tiny" / "de" / "1")]  # fmt: skip
    logger.info("SimulEval and the one pass wrote %s", "the same" if said[0] == said[1] else "different texts")
    return folders


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.demo",
        description="Sweep Whisper base under AlignAtt and LocalAgreement over the test set `tiny`, score, table and plot "
        "it, then the shipped Hikari over tiny-talks. Example: python -m scripts.demo --output out/demo",
    )
    parser.add_argument("--output", type=Path, default=Path("out/demo"), metavar="DIR", help="(default: out/demo)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="recordings at a time (default: 2)")
    parser.add_argument(
        "--fresh", action="store_true", help="remove earlier runs from the output folder first (default: go on)"
    )
    add_common_arguments(parser)
    return report_errors(_demo, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
