"""What every program in `scripts/` shares: the common flags, logging to stderr, and errors as one line.

A program builds its parser, calls `add_common_arguments(parser)`, and ends with
`return report_errors(body, parser.parse_args(argv))`, where `body` takes the arguments and returns the exit status.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from collections.abc import Callable

from hikari_agent.errors import USER_ERRORS, one_line


class _StderrHandler(logging.Handler):
    """Writes messages to what `sys.stderr` is at the time: a test or a caller may have replaced it since."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--debug` (traceback and debug messages) and `--quiet` (warnings and errors only)."""
    parser.add_argument("--debug", action="store_true", help="show tracebacks and debug messages (default: off)")
    parser.add_argument("--quiet", action="store_true", help="no progress, only warnings and errors (default: off)")


def configure_logging(arguments: argparse.Namespace) -> None:
    """Send log messages to stderr at the level that `--debug` and `--quiet` ask for; `--debug` wins."""
    level = logging.DEBUG if arguments.debug else logging.WARNING if arguments.quiet else logging.INFO
    root = logging.getLogger()
    if not any(isinstance(handler, _StderrHandler) for handler in root.handlers):
        root.addHandler(_StderrHandler())
    # Our own packages only: other libraries' debug messages would bury them.
    for name in ("__main__", "scripts", "reports", "testsets", "baselines", "hikari_agent"):
        logging.getLogger(name).setLevel(level)


def report_errors(function: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """The exit status of `function(arguments)`: a user's error is one line on stderr and 2, Ctrl-C is 130.

    With `arguments.debug` every error is raised again, traceback and all. Configures logging first.
    """
    configure_logging(arguments)
    try:
        return function(arguments)
    except (*USER_ERRORS, subprocess.CalledProcessError) as error:
        if arguments.debug:
            raise
        print(f"error: {_message(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if arguments.debug:
            raise
        print("interrupted", file=sys.stderr)
        return 130


def _message(error: BaseException) -> str:
    """What an error says, in one line; of a program that failed, what it said too."""
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode(errors="replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        return " ".join(f"{error} {said}".split())
    return one_line(error)
