"""Whisper through Hugging Face, made for streaming: short encoder windows, a forced prefix, attention to frames.

The encoder runs on the audio there is and 4 s of silence instead of 30 s: the same text at a fraction of the cost (at
the full window the result equals Hugging Face's encoder). Less silence makes the decoder loop: on 31 beginnings of
1 to 8 s of the tiny set it did so 7 times with 0.5 s, 3 with 1 s, 2 with 2 s, never with 4 s and more.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hikari_agent.audio import FRAME_SAMPLES, SAMPLE_RATE, log_mel_spectrogram
from hikari_agent.checkpoint import read_index
from hikari_agent.tokens import Vocabulary

from . import Proposal

if TYPE_CHECKING:
    import torch

PAD_SAMPLES = 4 * SAMPLE_RATE  # silence behind the audio
MAX_NEW_TOKENS = 224  # half of Whisper's text positions, as its own decoder takes


class WhisperBackend:
    """A Whisper folder (Hugging Face format) that transcribes, or translates into English."""

    window_samples = 30 * SAMPLE_RATE

    def __init__(
        self,
        model: str | os.PathLike[str],
        language: str = "en",
        task: str = "transcribe",
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
    ) -> None:
        """`language` is the language spoken. Raises FileNotFoundError or ValueError if the folder or language is wrong."""
        import torch
        from transformers import WhisperForConditionalGeneration

        folder = Path(model)
        if not (folder / "config.json").is_file():
            raise FileNotFoundError(
                f"no Whisper model in {folder}: give a Hugging Face folder (python -m scripts.fetch whisper-base makes one)"
            )
        read_index(folder)  # a damaged or missing file is told in one line
        self.model = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="sdpa")
        self.model.to(device=device, dtype=dtype or torch.float32).eval()
        self.vocabulary = Vocabulary.from_folder(folder)
        self.token_bytes = self.vocabulary.token_bytes
        generation = self.model.generation_config
        if not getattr(generation, "alignment_heads", None):
            raise ValueError(
                f"{folder}/generation_config.json names no alignment_heads: AlignAtt cannot read attention"
            )
        self.alignment_heads = [tuple(pair) for pair in generation.alignment_heads]
        if getattr(generation, "is_multilingual", True):
            self.prompt = self.vocabulary.prompt(task, language)
        else:
            if language != "en" or task != "transcribe":
                raise ValueError(f"{folder} is an English-only Whisper: it cannot {task} '{language}'")
            self.prompt = [self.vocabulary.special("startoftranscript"), self.vocabulary.special("notimestamps")]
        self.end = self.vocabulary.special("endoftext")
        self._forbidden = self._never_written(generation.suppress_tokens or [])
        decoder = self.model.get_decoder()
        self._attention = _record_cross_attention(decoder, {layer for layer, _ in self.alignment_heads})
        # transformers 4 asks each layer for a head mask and names the cache otherwise.
        takes_mask = "layer_head_mask" in inspect.signature(self.model.get_encoder().layers[0].forward).parameters
        self._layer_arguments = {"layer_head_mask": None} if takes_mask else {}
        self._cache_name = "cache" if "cache" in inspect.signature(decoder.forward).parameters else "past_key_values"

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move the model."""
        self.model.to(device=device, dtype=dtype)
        self._forbidden = self._forbidden.to(device)

    def n_frames(self, samples: np.ndarray) -> int:
        return len(samples) // FRAME_SAMPLES

    def encode(self, samples: np.ndarray) -> torch.Tensor:
        """(n,) float32 at 16 kHz, 30 s at most -> (1, n_frames, d_model), the padding's frames included."""
        import torch

        n_padded = min(self.window_samples, len(samples) + PAD_SAMPLES)
        n_padded -= n_padded % FRAME_SAMPLES
        padded = np.zeros(n_padded, np.float32)
        padded[: len(samples)] = samples[:n_padded]
        mel = log_mel_spectrogram(padded, self.model.config.num_mel_bins)
        encoder = self.model.get_encoder()
        with torch.inference_mode():
            x = mel[None].to(self.model.device, self.model.dtype)
            x = torch.nn.functional.gelu(encoder.conv1(x))
            x = torch.nn.functional.gelu(encoder.conv2(x)).transpose(1, 2)
            x = x + encoder.embed_positions.weight[: x.shape[1]]
            for layer in encoder.layers:
                x = layer(x, None, **self._layer_arguments)
                x = x[0] if isinstance(x, tuple) else x
            return encoder.layer_norm(x)

    def propose(
        self, states: torch.Tensor, n_frames: int, prefix: Sequence[int], stop: Callable[[int], bool] | None = None
    ) -> Proposal:
        """Continue prompt + `prefix` greedily; the key/value cache lives for one call.

        Attention to the padding behind the first `n_frames` frames is not counted.
        """
        import torch
        from transformers import DynamicCache, EncoderDecoderCache

        decoder, cache = self.model.get_decoder(), EncoderDecoderCache(DynamicCache(), DynamicCache())
        limit = self.model.config.max_target_positions - len(self.prompt) - len(prefix)
        ids = [*self.prompt, *prefix]
        tokens: list[int] = []
        frames: list[int] = []
        for _ in range(min(MAX_NEW_TOKENS, limit)):
            with torch.inference_mode():
                out = decoder(
                    input_ids=torch.tensor([ids], device=self.model.device), encoder_hidden_states=states,
                    use_cache=True, **{self._cache_name: cache},
                )  # fmt: skip
                logits = self.model.proj_out(out.last_hidden_state[0, -1]).float() + self._forbidden
            token = int(logits.argmax())
            if token == self.end:
                return Proposal(tokens, frames, is_complete=True)
            heads = [self._attention[layer][0, head, -1, :n_frames] for layer, head in self.alignment_heads]
            tokens.append(token)
            frames.append(int(torch.stack(heads).mean(dim=0).argmax()))
            if stop and stop(frames[-1]):
                return Proposal(tokens, frames, is_complete=False)
            if n_looped := loop_length(tokens):  # what goes round in circles has nothing more to say
                return Proposal(tokens[:-n_looped], frames[:-n_looped], is_complete=True)
            ids = [token]
        return Proposal(tokens, frames, is_complete=False)

    def _never_written(self, suppressed: Sequence[int]) -> Any:
        """An additive mask (vocab_size,): no token Whisper suppresses, and no special token but the end."""
        import torch

        mask = torch.zeros(self.model.config.vocab_size, device=self.model.device)
        mask[list(suppressed)] = -torch.inf
        mask[self.end + 1 :] = -torch.inf
        return mask


def _record_cross_attention(decoder: Any, layers: Collection[int]) -> dict[int, torch.Tensor]:
    """A dict that holds the newest cross-attention weights of these layers, (B, n_heads, n_rows, n_frames).

    Only eager attention gives its weights away; it is set for these alone, all else keeps the fast kernels.
    """
    weights: dict[int, torch.Tensor] = {}

    def recorder(index: int) -> Callable[..., None]:
        return lambda module, inputs, output: weights.__setitem__(index, output[1])

    for index in layers:
        attention = decoder.layers[index].encoder_attn
        attention.config = copy.copy(attention.config)
        attention.config._attn_implementation = "eager"
        attention.register_forward_hook(recorder(index))
    return weights


def loop_length(tokens: Sequence[int], longest: int = 40) -> int:
    """How many tokens at the end say again what stands before them: the decoder is in a loop; 0 if it is not.

    A stretch of 1 to 7 tokens may occur 3 times in a row, one of 8 to `longest` once.

    >>> loop_length([7, 1, 2, 1, 2, 1, 2, 1, 2]), loop_length([1, 2, 1, 2])
    (6, 0)
    """
    for n in range(1, min(longest, len(tokens) // 2) + 1):
        times = 4 if n < 8 else 2
        if len(tokens) >= n * times and all(tokens[-i] == tokens[-i - n] for i in range(1, n * (times - 1) + 1)):
            return n * (times - 1)
    return 0
