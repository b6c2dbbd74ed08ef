"""The window policy of the released server, step for step: what it recomputes, this computes, token for token.

Inside the first window only what changed is computed: the provisional last frame, the frames under a raised log-mel
floor, and the decoder rows that see them. Once the window slides every position shifts, so everything is recomputed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .audio import log10_mel, scale_log_mel
from .layers import KVCache, first_row_seeing, visible_frames
from .model import EncoderState, HikariForConditionalGeneration


@dataclass
class ReleaseState:
    """One stream in the released window. `tokens` is what the server calls its context: prompt, text and WAITs."""

    tokens: list[int]
    n_samples: int
    samples: Tensor  # (n,) the window's audio, newest last
    raw: Tensor  # (n_mels, n) log10 mel of the window, its last column provisional
    mel: Tensor  # (n_mels, 2 * n_frames + 1) what the encoder was last given, zeros behind the end
    encoder: EncoderState
    frames: list[KVCache]
    rows: list[KVCache]
    last_row: int = field(default=-1)  # the decoder row whose logits came last

    def fork(self) -> ReleaseState:
        """An independent copy: both may go on with different tokens."""
        return copy.deepcopy(self)


class ReleaseWindow:
    """Steps of one row (80 ms at dilation 4) over a window of `n_rows` rows; one stream a state.

    With `incremental=False` every step recomputes the whole window, as the released server does; for comparison.
    """

    name = "release"

    def __init__(
        self, model: HikariForConditionalGeneration, n_rows: int | None = None, incremental: bool = True
    ) -> None:
        if model.config.frontend != "released":
            raise ValueError(
                f"window 'release' needs a model with the released front end, this one has '{model.config.frontend}': use "
                "'lanes'"
            )
        limit = model.config.max_target_positions
        n_rows = limit if n_rows is None else n_rows
        if not 5 <= n_rows <= limit:
            raise ValueError(f"a window of {n_rows} rows: this model takes 5 to {limit}")
        n_frames = visible_frames(n_rows - 1, model.config.decoder_time_dilation)
        if n_frames > model.config.max_source_positions:
            raise ValueError(
                f"a window of {n_rows} rows needs {n_frames} encoder frames, the model has positions for "
                f"{model.config.max_source_positions}: choose a shorter window"
            )
        self.model = model
        self.n_rows = n_rows
        self.incremental = incremental
        self.row_samples = model.config.row_samples
        self._n_frames = n_frames

    def start(self, prompt: list[int]) -> ReleaseState:
        """A stream that has heard nothing. `prompt` are the ids every decoder pass begins with."""
        encoder, decoder = self.model.model.encoder, self.model.model.decoder
        empty = torch.zeros(self.model.config.num_mel_bins, 0)
        return ReleaseState(
            tokens=list(prompt),
            n_samples=0,
            samples=torch.zeros(0),
            raw=empty,
            mel=empty,
            encoder=encoder.start(1, self._n_frames),
            frames=decoder.start(1, self._n_frames),
            rows=decoder.start(1, self.n_rows),
        )

    @torch.inference_mode()
    def step(self, state: ReleaseState, samples: Tensor) -> tuple[Tensor | None, ReleaseState]:
        """One row's worth of new audio (row_samples,) -> that row's raw logits (vocab_size,), and the state.

        The logits are None until the last prompt row has its audio (240 ms at dilation 4). The caller appends the
        token it chose to `state.tokens` before the next step.
        """
        assert samples.shape == (self.row_samples,)
        capacity = self.n_rows * self.row_samples
        slid = len(state.samples) + self.row_samples > capacity
        state.n_samples += self.row_samples
        state.samples = torch.cat([state.samples, samples.float()])[-capacity:]
        if state.n_samples < 3 * self.row_samples:
            return None, state
        popped = len(state.tokens) > self.n_rows
        if popped:
            del state.tokens[4]  # the oldest after the prompt, one a step
        row = min(self.n_rows, len(state.tokens)) - 1
        if slid or not self.incremental:
            state.raw = state.raw[:, :0]
            state.mel = state.mel[:, :0]
        first_frame = self._listen(state, visible_frames(row, self.model.config.decoder_time_dilation))
        changed_row = first_row_seeing(first_frame, self.model.config.decoder_time_dilation)
        if popped or not self.incremental:
            changed_row = 0
        first_row = min(changed_row, row, state.rows[0].n)
        rows = [cache.truncated(first_row) for cache in state.rows]
        ids = torch.tensor([state.tokens[first_row : row + 1]], device=self.model.device)
        hidden, state.rows = self.model.model.decoder(ids, state.frames, rows)
        state.last_row = row
        return self.model.proj_out(hidden[0, -1]), state

    def _listen(self, state: ReleaseState, n_frames: int) -> int:
        """Bring encoder frames 0 .. n_frames - 1 up to date with the window; returns the first that was computed."""
        # All columns but the last are final: a centred frame needs 200 samples after its middle.
        n_final = max(0, state.raw.shape[1] - 1)
        new = log10_mel(state.samples, n_final, self.model.config.num_mel_bins)
        state.raw = torch.cat([state.raw[:, :n_final], new], dim=1)
        mel = scale_log_mel(state.raw, state.raw.max())[:, : 2 * n_frames + 1]
        mel = torch.nn.functional.pad(mel, (0, 2 * n_frames + 1 - mel.shape[1]))
        first = _first_changed_frame(state.mel, mel)
        state.mel = mel
        if first >= n_frames:
            return first
        encoder, decoder = self.model.model.encoder, self.model.model.decoder
        weight = encoder.conv1.weight
        columns = mel[None].to(weight.device, weight.dtype)
        before = encoder.resume(state.encoder, first, columns)
        frames, state.encoder = encoder(columns[:, :, 2 * first :], before)
        state.frames = decoder.remember(frames, [cache.truncated(first) for cache in state.frames])
        return first


def _first_changed_frame(old: Tensor, new: Tensor) -> int:
    """The first encoder frame that columns of `new` reach which differ from `old` or are not in it.

    The two convolutions of width 3 (the second of stride 2) spread column c over frames ceil((c - 2) / 2) and later.
    """
    n = min(old.shape[1], new.shape[1])
    differs = (old[:, :n] != new[:, :n]).any(dim=0).nonzero()
    column = int(differs[0]) if len(differs) else n
    if column >= new.shape[1]:
        return new.shape[1] // 2
    return max(0, (column - 1) // 2)
