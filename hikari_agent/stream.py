"""The stream: 16 kHz samples in, whole words out with the audio that had been heard when they were decided.

Everything that survives between two chunks is in a `StreamState`; the `HikariStream` itself never changes, so one
serves any number of streams. A state that was handed in is used up, go on with the one that comes back; a `fork()` of it
is an independent stream.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from .audio import SAMPLE_RATE
from .decoding import RepetitionPenalty, WaitBias, choose
from .lanes import LanesState, LanesWindow
from .model import HikariForConditionalGeneration
from .release import ReleaseState, ReleaseWindow
from .tokens import WAIT, WordAssembler
from .vad import FRAME, SPEECH_THRESHOLD, SileroVad


@dataclass(frozen=True)
class Emission:
    """Whole words (or characters), and how much audio had been heard when they were decided."""

    text: str
    heard_samples: int  # at 16 kHz, never more than the recording has
    last: bool = False  # said at the end of the audio: nothing comes after it


@dataclass(frozen=True)
class Step:
    """What happened in one step, for whoever watches: telemetry, tests, plots of the WAIT logit."""

    token: int
    row: int
    context_length: int  # tokens the decoder was given
    wait_penalty: float  # used in this step
    margin: float  # best minus second-best logit, after the penalties
    logits: torch.Tensor  # (vocab_size,), before the penalties


class VoiceActivity(Protocol):
    """512 samples at 16 kHz -> the probability of speech, with an explicit state."""

    def start(self) -> Any: ...

    def __call__(self, samples: np.ndarray, state: Any) -> tuple[float, Any]: ...


class Window(Protocol):
    """What is computed for a row, and what is kept: `ReleaseWindow` or `LanesWindow`."""

    name: str
    n_rows: int
    row_samples: int

    def start(self, prompt: list[int]) -> Any: ...

    def step(self, state: Any, samples: torch.Tensor) -> tuple[torch.Tensor | None, Any]: ...


def window_of(model: HikariForConditionalGeneration, name: str | None = None, n_rows: int | None = None) -> Window:
    """The window policy `name`, "lanes" or "release"; without a name the one the model's front end allows, lanes first.

    Raises ValueError for a policy the front end rules out, or rows the model does not have.
    """
    name = name or ("lanes" if model.config.frontend == "causal" else "release")
    return LanesWindow(model, n_rows) if name == "lanes" else ReleaseWindow(model, n_rows)


@dataclass
class StreamState:
    """One stream between two chunks."""

    window: ReleaseState | LanesState
    assembler: WordAssembler
    wait_penalty: float
    vad: Any
    pending: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # heard, less than a step
    heard_samples: int = 0
    n_waits: int = 0  # steps in a row that said WAIT
    finished: bool = False

    def fork(self) -> StreamState:
        """An independent copy: both streams may hear and say different things from here on."""
        return copy.deepcopy(self)


class HikariStream:
    """A model with its prompt, its WAIT bias and its window: everything about a stream that does not change."""

    def __init__(
        self,
        window: Window,
        prompt: list[int],
        token_bytes: Callable[[int], bytes],
        bias: WaitBias | None = None,
        repetition: RepetitionPenalty | None = None,
        vad: VoiceActivity | None = None,
        by_characters: bool = False,
        drain_ms: float = 1000,
        drain_cap_ms: float = 10_000,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        """`token_bytes` gives a text token's UTF-8 bytes (`Vocabulary.token_bytes`).

        At the end of the audio the stream goes on over silence until the model has said WAIT for `drain_ms` in a row,
        `drain_cap_ms` at most; 0 does not go on.
        """
        self.window = window
        self.prompt = prompt
        self.token_bytes = token_bytes
        self.bias = bias or WaitBias()
        self.repetition = repetition or RepetitionPenalty()
        self.vad = vad or SileroVad()
        self.by_characters = by_characters
        self.row_ms = window.row_samples * 1000 / SAMPLE_RATE
        self.drain_ms = drain_ms
        self.drain_cap_ms = drain_cap_ms
        self.on_step = on_step

    def start(self) -> StreamState:
        """A stream that has heard nothing."""
        return StreamState(
            window=self.window.start(self.prompt),
            assembler=WordAssembler(self.by_characters),
            wait_penalty=self.bias.penalty,
            vad=self.vad.start(),
        )

    def push(self, state: StreamState, samples: np.ndarray) -> tuple[list[Emission], StreamState]:
        """Hear some samples, (n,) float32 at 16 kHz, n of any size -> what was said while hearing them, and the state."""
        assert not state.finished, "this stream has ended: start a new one"
        emissions: list[Emission] = []
        heard_before = state.heard_samples - len(state.pending)
        state.heard_samples += len(samples)
        audio = np.concatenate([state.pending, np.asarray(samples, np.float32)])
        size = self.window.row_samples
        n_steps = len(audio) // size
        for i in range(n_steps):
            words = self._step(state, audio[i * size : (i + 1) * size])
            if words:
                emissions.append(Emission(self._join(words), heard_before + (i + 1) * size))
        state.pending = audio[n_steps * size :].copy()
        return emissions, state

    def finish(self, state: StreamState) -> tuple[list[Emission], StreamState]:
        """The audio is over: fill the last step with silence, drain, and say everything that is pending.

        Returns no or one emission; its words carry the delay of the end of the audio. Audio shorter than the prompt's
        (240 ms at dilation 4) says nothing.
        """
        size = self.window.row_samples
        words: list[str] = []
        if not state.finished and state.heard_samples >= 3 * size:
            if len(state.pending):
                words += self._step(state, np.pad(state.pending, (0, size - len(state.pending))))
            state.n_waits = n_drained = 0  # a WAIT before the end only said that more was to be heard
            while state.n_waits * self.row_ms < self.drain_ms and (n_drained + 1) * self.row_ms <= self.drain_cap_ms:
                words += self._step(state, np.zeros(size, np.float32))
                n_drained += 1
            words += state.assembler.flush()
        state.finished = True
        state.pending = state.pending[:0]
        return ([Emission(self._join(words), state.heard_samples, last=True)] if words else []), state

    def _step(self, state: StreamState, samples: np.ndarray) -> list[str]:
        """One step of the model; returns the words that are complete after it."""
        logits, state.window = self.window.step(state.window, torch.from_numpy(samples))
        if logits is None:
            return []
        tokens = state.window.tokens
        is_speech = False
        if self.bias.needs_speech:  # the released server looks at the last 32 ms of each step only
            probability, state.vad = self.vad(state.window.samples[-FRAME:].numpy(), state.vad)
            is_speech = probability > SPEECH_THRESHOLD
        token, margin = choose(logits, tokens, state.wait_penalty, self.repetition)
        if self.on_step:
            row = state.window.last_row
            self.on_step(Step(token, row, len(tokens), state.wait_penalty, margin, logits))
        tokens.append(token)
        state.wait_penalty = self.bias.after(state.wait_penalty, tokens, is_speech)
        if token == WAIT:
            state.n_waits += 1
            return state.assembler.wait()
        state.n_waits = 0
        return state.assembler.push(self.token_bytes(token))

    def _join(self, words: list[str]) -> str:
        return ("" if self.by_characters else " ").join(words)
