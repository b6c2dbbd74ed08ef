"""What to write: models behind one small interface. Heavy imports are inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Proposal:
    """What a model says of the audio so far, on top of the forced prefix.

    `frames[i]` is the encoder frame that token i attends to most. `is_complete`: the model ended the text itself; if
    not, decoding was stopped, and the last token is the one that stopped it.
    """

    tokens: list[int]
    frames: list[int]
    is_complete: bool


class Backend(Protocol):
    """A model that continues a forced prefix."""

    window_samples: int  # the longest audio it takes, at 16 kHz

    def to(self, device: Any, dtype: Any) -> None:
        """Move the model to a torch device and number format."""
        ...

    def encode(self, samples: np.ndarray) -> Any:
        """(n,) float32 at 16 kHz -> encoder states."""
        ...

    def n_frames(self, samples: np.ndarray) -> int:
        """How many encoder frames hold audio (not padding)."""
        ...

    def propose(
        self, states: Any, n_frames: int, prefix: Sequence[int], stop: Callable[[int], bool] | None = None
    ) -> Proposal:
        """Decode greedily behind `prefix` until the model ends, or `stop(attended frame)` is true for a token.

        Frames from `n_frames` on are padding: attention to them does not count.
        """
        ...

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes of a token of text."""
        ...
