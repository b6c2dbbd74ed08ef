"""Turn a Hugging Face Whisper folder into an untrained Hikari: `python -m scripts.convert WHISPER OUT`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.cli import add_common_arguments, report_errors


def _run(arguments: argparse.Namespace) -> int:
    from hikari_agent.convert import convert_whisper

    print(convert_whisper(arguments.whisper, arguments.output, arguments.dilation, arguments.rows))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.convert",
        description="Turn a Whisper into an untrained Hikari, the start of training. Example: "
        "python -m scripts.convert ~/.cache/hikari-simulst/models/whisper-base out/hikari-base",
    )
    parser.add_argument("whisper", help="folder or hub id of a multilingual Hugging Face Whisper")
    parser.add_argument("output", type=Path, help="new folder for the Hikari checkpoint")
    parser.add_argument("--dilation", type=int, default=4, help="encoder frames of 20 ms a decoder row (default: 4)")
    parser.add_argument("--rows", type=int, help="decoder rows of the window (default: the encoder's 30 s, 375)")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
