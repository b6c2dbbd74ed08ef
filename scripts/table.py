"""Print the scores of runs as one table, in Markdown, LaTeX or CSV.

    python -m scripts.table runs --format latex --output table.tex

The runs must have been scored (python -m scripts.score).
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from reports.runs import find_run_folders
from reports.tables import rows, to_csv, to_latex, to_markdown
from scripts.cli import add_common_arguments, report_errors
from testsets.files import write_whole

logger = logging.getLogger(__name__)

FORMATS = {"markdown": to_markdown, "latex": to_latex, "csv": to_csv}


def main(argv: Sequence[str] | None = None) -> int:
    return report_errors(_table, _parser().parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.table",
        description="Print the scores of scored runs as a table: python -m scripts.table runs --format csv",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a run folder, or one above some")
    parser.add_argument(
        "--format", choices=FORMATS, default="markdown",
        help="latex needs the booktabs package; csv has unrounded values, latencies in ms (default: markdown)",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to FILE (default: stdout)")
    add_common_arguments(parser)
    return parser


def _table(arguments: argparse.Namespace) -> int:
    text = FORMATS[arguments.format](rows(find_run_folders(arguments.folders)))
    if arguments.output is None:
        print(text, end="")
    else:
        write_whole(arguments.output, text)
        logger.info("wrote %s", arguments.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
