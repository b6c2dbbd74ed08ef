"""From logits to a token: the WAIT bias, which is the latency knob, and the released repetition penalty.

A positive WAIT penalty makes WAIT less likely, so the model writes earlier; a negative one makes it read on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .tokens import WAIT


@dataclass(frozen=True)
class WaitBias:
    """A constant penalty, subtracted from the WAIT logit at every step: the paper's probe (arXiv 2603.11578)."""

    penalty: float = 0.0

    @property
    def needs_speech(self) -> bool:
        """Whether `after` looks at the voice activity."""
        return False

    def after(self, penalty: float, tokens: Sequence[int], is_speech: bool) -> float:
        """The penalty of the next step, given this one's and all tokens up to the one just chosen."""
        return penalty


@dataclass(frozen=True)
class AdaptiveWaitBias(WaitBias):
    """The released server's penalty: it grows by `boost` while somebody speaks and the model has said WAIT
    `patience` times in a row, and after each piece of text falls back toward `penalty` by the share `decay`."""

    boost: float = 0.3
    decay: float = 0.3
    patience: int = 10

    @property
    def needs_speech(self) -> bool:
        return self.boost != 0

    def after(self, penalty: float, tokens: Sequence[int], is_speech: bool) -> float:
        if tokens[-1] != WAIT:
            return penalty - self.decay * (penalty - self.penalty)
        recent = tokens[-self.patience :]
        if is_speech and len(tokens) > self.patience and all(token == WAIT for token in recent):
            return penalty + self.boost
        return penalty


@dataclass(frozen=True)
class RepetitionPenalty:
    """Subtracted once from the most likely token if it is no WAIT and among the last `span` entries (prompt included)."""

    penalty: float = 0.0
    span: int = 5

    def __call__(self, logits: torch.Tensor, tokens: Sequence[int]) -> None:
        if self.penalty:
            best = int(logits.argmax())
            if best != WAIT and best in tokens[-self.span :]:
                logits[best] -= self.penalty


def choose(
    logits: torch.Tensor, tokens: Sequence[int], wait_penalty: float, repetition: RepetitionPenalty
) -> tuple[int, float]:
    """The greedy token of one row (vocab_size,), after both penalties, and its margin over the second best."""
    logits = logits.clone()
    repetition(logits, tokens)
    logits[WAIT] -= wait_penalty
    best, second = logits.topk(2).values.tolist()
    return int(logits.argmax()), best - second
