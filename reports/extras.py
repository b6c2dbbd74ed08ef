"""Optional packages: an import that fails says which extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError):
    """An optional package is not installed; the message holds the command that installs it."""


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Put imports under `with needs_extra("score"):`; raises MissingExtra naming the package and the command.

    Only the package's absence counts: a package that is there and breaks while loading shows its own error.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").split(".")[0]
        raise MissingExtra(f"{package} is not installed: pip install -e .[{extra}]") from error
