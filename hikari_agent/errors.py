"""What a person at a terminal is told: which errors are theirs, and an error as one line."""

from __future__ import annotations

# Mistakes of the person, or of what they gave; anything else is ours and shows its traceback.
USER_ERRORS = (ValueError, KeyError, ImportError, FileNotFoundError, PermissionError)


def one_line(error: BaseException) -> str:
    """What an error says, in one line whatever a library wrote, without the quotes that KeyError puts around it."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__
