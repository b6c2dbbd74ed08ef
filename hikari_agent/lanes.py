"""The window policy that never recomputes: a window is a lane, and before it is full a second one warms up beside it.

A lane starts at row 0 with the prompt, hears the same audio, and is given the tokens that the active lane chooses; when the
active lane has no row left, the other takes over. At most two live at once, so a step costs the same for ever.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .audio import CAUSAL_PAST, causal_log_mel
from .layers import KVCache, visible_frames
from .model import EncoderState, HikariForConditionalGeneration


@dataclass
class Lane:
    """One window: an encoder and a decoder that began together. `n_rows` rows of audio have been heard."""

    encoder: EncoderState
    frames: list[KVCache]
    rows: list[KVCache]
    n_rows: int = 0


@dataclass
class LanesState:
    """One stream: the lanes (the active first), what was said last, and the samples a mel frame still looks at."""

    tokens: list[int]  # prompt, text and WAITs: the last of them, for penalties that look back
    prompt: list[int]
    lanes: list[Lane]
    samples: Tensor  # (n,) the newest step's audio with what lies before it
    last_row: int = field(default=-1)

    def fork(self) -> LanesState:
        """An independent copy: both may go on with different tokens."""
        return copy.deepcopy(self)


class LanesWindow:
    """Steps of one row (80 ms at dilation 4) over lanes of `n_rows` rows, `overlap_rows` of them shared by two lanes.

    Takes models with the causal front end. The default overlap is half a window.
    """

    name = "lanes"

    def __init__(
        self, model: HikariForConditionalGeneration, n_rows: int | None = None, overlap_rows: int | None = None
    ) -> None:
        config = model.config
        if config.frontend != "causal":
            raise ValueError(
                f"window 'lanes' needs a model with the causal front end, this one has '{config.frontend}': use 'release'"
            )
        limit = min(config.max_target_positions, config.max_source_positions // config.decoder_time_dilation + 1)
        self.n_rows = limit if n_rows is None else n_rows
        if not 8 <= self.n_rows <= limit:
            raise ValueError(f"a window of {self.n_rows} rows: this model takes 8 to {limit}")
        self.overlap_rows = self.n_rows // 2 if overlap_rows is None else overlap_rows
        if not 4 <= self.overlap_rows <= self.n_rows // 2:
            raise ValueError(f"an overlap of {self.overlap_rows} rows: expected 4 to {self.n_rows // 2}, half a window")
        self.model = model
        self.row_samples = config.row_samples
        self._n_frames = visible_frames(self.n_rows - 1, config.decoder_time_dilation)

    def start(self, prompt: list[int]) -> LanesState:
        """A stream that has heard nothing. `prompt` are the four ids every lane begins with."""
        nothing = torch.zeros(CAUSAL_PAST)
        return LanesState(list(prompt), list(prompt), [self.lane(1, 1)], nothing)

    @torch.inference_mode()
    def step(self, state: LanesState, samples: Tensor) -> tuple[Tensor | None, LanesState]:
        """One row's worth of new audio (row_samples,) -> that row's raw logits (vocab_size,), and the state.

        The logits are None until the last prompt row has its audio (240 ms at dilation 4). The caller appends the
        token it chose to `state.tokens` before the next step.
        """
        assert samples.shape == (self.row_samples,)
        del state.tokens[: -self.n_rows]
        state.samples = torch.cat([state.samples[-CAUSAL_PAST:], samples.float()])
        mel = causal_log_mel(samples.float(), state.samples[:CAUSAL_PAST], self.model.config.num_mel_bins)
        weight = self.model.model.encoder.conv1.weight
        prompt, last = (torch.tensor([ids], device=weight.device) for ids in (state.prompt, [state.tokens[-1]]))
        hidden = self.advance(state.lanes, mel[None].to(weight.device, weight.dtype), prompt, last)
        state.last_row = state.lanes[0].n_rows
        return (None if hidden is None else self.model.proj_out(hidden[0])), state

    def lane(self, n_streams: int, n_variants: int) -> Lane:
        """A lane at its beginning, for streams that began together and variants of each that hear the same."""
        encoder, decoder = self.model.model.encoder, self.model.model.decoder
        return Lane(
            encoder.start(n_streams, self._n_frames),
            decoder.start(n_streams, self._n_frames),
            decoder.start(n_streams * n_variants, self.n_rows),
        )

    def advance(self, lanes: list[Lane], mel: Tensor, prompts: Tensor, last: Tensor) -> Tensor | None:
        """One row for B streams that began together, K variants each -> its hidden states (B * K, d_model).

        `lanes` are changed in place: one is dropped when it is full, one added when it is time. `mel` is the row's
        (B, n_mels, 8 at dilation 4), `prompts` (B * K, 4), `last` (B * K, 1) the tokens chosen last. None as long as the
        active lane has not come to the prompt's end.
        """
        if lanes[0].n_rows == self.n_rows - 1:
            del lanes[0]
        if len(lanes) == 1 and lanes[0].n_rows >= self.n_rows - 1 - self.overlap_rows:
            lanes.append(self.lane(len(mel), len(prompts) // len(mel)))
        active, *_ = [self._hear(lane, mel, prompts, last) for lane in lanes]
        return active

    def _hear(self, lane: Lane, mel: Tensor, prompts: Tensor, last: Tensor) -> Tensor | None:
        encoder, decoder = self.model.model.encoder, self.model.model.decoder
        frames, lane.encoder = encoder(mel, lane.encoder)
        lane.frames = decoder.remember(frames, lane.frames)
        lane.n_rows += 1
        if lane.n_rows < prompts.shape[1] - 1:
            return None
        ids = prompts if lane.n_rows == prompts.shape[1] - 1 else last
        hidden, lane.rows = decoder(ids, lane.frames, lane.rows)
        return hidden[:, -1]
