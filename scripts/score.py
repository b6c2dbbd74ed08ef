"""Score runs against a test set: writes scores.jsonl into each run folder and prints one table.

    python -m scripts.score runs --testset tiny

The table (Markdown) goes to stdout, all else to stderr.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from reports.runs import Run, find_run_folders, read_run
from reports.score import score_run, write_scores
from reports.tables import rows, to_markdown
from scripts.cli import add_common_arguments, report_errors
from testsets.manifest import TestSet, load

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    return report_errors(_score, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.score",
        description="Score runs against a test set, for example: python -m scripts.score runs --testset tiny",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="RUN_FOLDER", help="a run folder, or one above some")
    parser.add_argument(
        "--testset", metavar="NAME", help="test set name or folder (default: the one in each run's run.json)"
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="language of the references, e.g. de (default: the one in each run's run.json)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the 95%% intervals (default: 0)")
    add_common_arguments(parser)
    return parser


def _score(arguments: argparse.Namespace) -> int:
    import numpy as np
    from tqdm import tqdm

    folders = []
    for folder in find_run_folders(arguments.folders):
        if (folder / "instances.log").is_file():
            folders.append(folder)
        else:
            logger.warning("%s has no instances.log yet, it is left out: finish the sweep", folder)
    if not folders:
        raise ValueError("none of the runs is finished: start the sweep again, it goes on where it was")
    # disable=None: silent when stderr is not a terminal.
    for folder in tqdm(folders, unit="run", desc="scoring", disable=True if arguments.quiet else None):
        run = read_run(folder)
        scores = score_run(
            run, _test_set(run, arguments.testset), arguments.language, np.random.default_rng(arguments.seed)
        )
        logger.info("wrote %s", write_scores(folder, scores))
    print(to_markdown(rows(folders)), end="")
    return 0


def _test_set(run: Run, name: str | None) -> TestSet:
    """The test set `name`, or the one the run was made on; the recordings that were run, if it was not all of them."""
    if name:
        test_set = load(name)
    elif not run.spec.get("test_set"):
        raise ValueError(f"{run.folder / 'run.json'} does not say which test set the run was made on: pass --testset")
    else:
        try:
            test_set = load(run.spec["test_set"])
        except KeyError:  # not a known name: it was given as a folder
            test_set = load(run.spec.get("test_set_folder", run.spec["test_set"]))
    return test_set.select(run.spec["recordings"]) if run.spec.get("recordings") else test_set


if __name__ == "__main__":
    raise SystemExit(main())
