"""Hikari as one page: a causal Whisper encoder, a decoder that advances one row every 80 ms, and its logits.

Parameter names are Hugging Face Whisper's, and `model(input_features=…, decoder_input_ids=…).logits` works as there.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput
from transformers.utils import ModelOutput

from .checkpoint import read_checkpoint
from .config import HikariConfig
from .layers import DecoderLayer, EncoderLayer, KVCache, StreamingConv1d, visible_frames


@dataclass(frozen=True)
class EncoderState:
    """Where an encoder stands: the inputs its convolutions still need, a cache a layer, frames done."""

    tails: tuple[Tensor, Tensor]
    caches: list[KVCache]
    n_frames: int


class HikariEncoder(nn.Module):
    def __init__(self, config: HikariConfig) -> None:
        super().__init__()
        d_model = config.d_model
        self.is_causal = config.encoder_is_causal
        self.n_heads = config.encoder_attention_heads
        self.n_future = 0 if config.frontend == "causal" else 1  # log-mel columns a frame needs of what follows it
        self.conv1 = StreamingConv1d(config.num_mel_bins, d_model, n_zeros=2 - self.n_future)
        self.conv2 = StreamingConv1d(d_model, d_model, stride=2)
        self.embed_positions = nn.Embedding(config.max_source_positions, d_model)
        self.embed_positions.requires_grad_(False)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, config.encoder_attention_heads, config.encoder_ffn_dim)
            for _ in range(config.encoder_layers)
        )
        self.layer_norm = nn.LayerNorm(d_model)

    def forward(self, mel: Tensor, state: EncoderState | None = None) -> tuple[Tensor, EncoderState]:
        """A piece of log-mel (B, n_mels, n) -> the frames it completes (B, n_frames, d_model), 20 ms each, and the state.

        With the released front end the last frame needs one column of zeros behind the signal: `encode` adds it.
        """
        tail1, tail2 = state.tails if state else (None, None)
        x, tail1 = self.conv1(mel, tail1)
        x, tail2 = self.conv2(F.gelu(x), tail2)
        x = F.gelu(x).transpose(1, 2)
        first = state.n_frames if state else 0
        last = first + x.shape[1]
        if last > self.embed_positions.num_embeddings:
            raise ValueError(
                f"{last} encoder frames, but the model has positions for {self.embed_positions.num_embeddings} "
                f"({self.embed_positions.num_embeddings / 50:g} s): cut the audio"
            )
        x = x + self.embed_positions.weight[first:last]
        caches = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, state.caches[i] if state else None, self.is_causal)
            caches.append(cache)
        return self.layer_norm(x), EncoderState((tail1, tail2), caches, last)

    def encode(self, mel: Tensor) -> Tensor:
        """A whole signal (B, n_mels, n), n even -> (B, n / 2, d_model)."""
        if mel.shape[2] % 2:
            raise ValueError(f"{mel.shape[2]} log-mel frames: the encoder takes an even number")
        return self(F.pad(mel, (0, self.n_future)))[0]

    def resume(self, state: EncoderState, frame: int, mel: Tensor) -> EncoderState:
        """The state as it was before `frame`; `mel` is the signal from its start, at least 2 * frame columns of it."""
        tail1, tail2 = mel.new_zeros(*mel.shape[:2], 1), mel.new_zeros(len(mel), self.conv2.in_channels, 1)
        if frame:  # the first convolution goes over two columns again, so that the second needs no tail
            tail1, tail2 = mel[:, :, 2 * frame - 2 : 2 * frame], tail2[:, :, :0]
        return EncoderState((tail1, tail2), [cache.truncated(frame) for cache in state.caches], frame)

    def start(self, batch: int, capacity: int) -> EncoderState:
        """An empty state whose caches hold `capacity` frames: all is allocated here, nothing until they are full."""
        weight, heads = self.conv1.weight, self.n_heads
        caches = [KVCache.empty(batch, heads, capacity, weight.shape[0] // heads, like=weight) for _ in self.layers]
        tails = (
            weight.new_zeros(batch, weight.shape[1], self.conv1.n_zeros),
            weight.new_zeros(batch, weight.shape[0], self.conv2.n_zeros),
        )
        return EncoderState(tails, caches, 0)


class HikariDecoder(nn.Module):
    def __init__(self, config: HikariConfig) -> None:
        super().__init__()
        self.dilation = config.decoder_time_dilation
        self.n_heads = config.decoder_attention_heads
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.embed_positions = nn.Embedding(config.max_target_positions, config.d_model)
        self.layers = nn.ModuleList(
            DecoderLayer(config.d_model, config.decoder_attention_heads, config.decoder_ffn_dim)
            for _ in range(config.decoder_layers)
        )
        self.layer_norm = nn.LayerNorm(config.d_model)

    def forward(
        self, ids: Tensor, frames: list[KVCache], caches: list[KVCache] | None = None
    ) -> tuple[Tensor, list[KVCache]]:
        """Token ids (B, n_rows) behind the rows in `caches`, against remembered frames -> (B, n_rows, d_model), caches."""
        first = caches[0].n if caches else 0
        last = first + ids.shape[1]
        if last > self.embed_positions.num_embeddings:
            raise ValueError(f"{last} decoder rows, but the model has {self.embed_positions.num_embeddings} positions")
        visible = [visible_frames(row, self.dilation) for row in range(first, last)]
        x = self.embed_tokens(ids) + self.embed_positions.weight[first:last]
        longer = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, caches[i] if caches else None, frames[i], visible)
            longer.append(cache)
        return self.layer_norm(x), longer

    def remember(self, frames: Tensor, caches: list[KVCache] | None = None) -> list[KVCache]:
        """Encoder frames (B, n_frames, d_model) as keys and values of each layer, behind those in `caches`."""
        layers = cast("list[DecoderLayer]", self.layers)
        return [layer.encoder_attn.remember(frames, caches[i] if caches else None) for i, layer in enumerate(layers)]

    def start(self, batch: int, capacity: int) -> list[KVCache]:
        """Empty caches that hold `capacity` rows or frames, one a layer."""
        weight, heads = self.embed_tokens.weight, self.n_heads
        return [KVCache.empty(batch, heads, capacity, weight.shape[1] // heads, like=weight) for _ in self.layers]


class HikariModel(nn.Module):
    """Encoder and decoder under the names Whisper's checkpoints give them."""

    def __init__(self, config: HikariConfig) -> None:
        super().__init__()
        self.encoder = HikariEncoder(config)
        self.decoder = HikariDecoder(config)


class HikariForConditionalGeneration(PreTrainedModel):
    """The whole model; the output projection is tied to the token embedding unless the config says otherwise."""

    config_class = HikariConfig
    base_model_prefix = "model"
    main_input_name = "input_features"
    # transformers 5 wants to know what is tied to what; 4 wants the names of the tied only.
    _tied_weights_keys = (
        {"proj_out.weight": "model.decoder.embed_tokens.weight"}
        if int(transformers.__version__.split(".")[0]) >= 5
        else ["proj_out.weight"]
    )

    def __init__(self, config: HikariConfig) -> None:
        super().__init__(config)
        if config.activation_function != "gelu":
            raise ValueError(f"activation_function '{config.activation_function}' in config.json: Hikari has 'gelu'")
        self.model = HikariModel(config)
        self.proj_out = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear | nn.Conv1d):
            nn.init.normal_(module.weight, std=self.config.init_std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif module is self.model.encoder.embed_positions:
            module.weight.data.copy_(sinusoids(*module.weight.shape))
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=self.config.init_std)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(
        self,
        input_features: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        *,
        encoder_outputs: Tensor | tuple[Tensor, ...] | ModelOutput | None = None,
    ) -> Seq2SeqLMOutput:
        """Log-mel (B, n_mels, n_frames) and token ids (B, n_rows) -> `.logits` (B, n_rows, vocab_size).

        `encoder_outputs` (B, n_frames / 2, d_model), bare or first in a tuple or ModelOutput, replaces `input_features`.
        Row i sees frames 0 .. 4 * i - 1 only (at dilation 4).
        """
        if input_features is not None and encoder_outputs is None:
            frames = self.model.encoder.encode(input_features.to(self.dtype))
        elif encoder_outputs is not None and input_features is None:
            frames = encoder_outputs if isinstance(encoder_outputs, Tensor) else encoder_outputs[0]
        else:
            raise ValueError("expected one of input_features and encoder_outputs")
        if decoder_input_ids is None:
            raise ValueError("expected decoder_input_ids: the prompt and what follows it")
        hidden, _ = self.model.decoder(decoder_input_ids, self.model.decoder.remember(frames))
        return Seq2SeqLMOutput(logits=self.proj_out(hidden), encoder_last_hidden_state=frames)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.model.decoder.embed_tokens

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.model.decoder.embed_tokens = value

    def get_output_embeddings(self) -> nn.Linear:
        return self.proj_out

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.proj_out = value

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        dtype: torch.dtype | None = None,
        torch_dtype: torch.dtype | None = None,
        device: str | torch.device = "cpu",
        revision: str | None = None,
        token: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
    ) -> HikariForConditionalGeneration:
        """Load a folder or a hub id such as `sbintuitions/hikari-medium`, in evaluation mode.

        The weights get `dtype` (or `torch_dtype`, its older name), float32 if neither is given, whatever the file
        holds. The last four are for a hub id. Raises FileNotFoundError or ValueError with the key at fault and the
        remedy: see `hikari_agent.checkpoint`.
        """
        dtype = dtype or torch_dtype or torch.float32
        checkpoint = read_checkpoint(
            name_or_path, revision=revision, token=token, cache_dir=cache_dir, local_files_only=local_files_only
        )
        with torch.device("meta"):
            model = cls(checkpoint.config)
        tensors = checkpoint.tensors({name: tuple(p.shape) for name, p in model.state_dict().items()})
        model.load_state_dict({name: t.to(device, dtype) for name, t in tensors.items()}, strict=True, assign=True)
        if checkpoint.config.tie_word_embeddings:
            model.proj_out.weight = model.model.decoder.embed_tokens.weight
        model.config._name_or_path = str(name_or_path)
        return model.eval()


def sinusoids(length: int, channels: int) -> Tensor:
    """Whisper's encoder positions: (length, channels), sine half then cosine half, base 10,000."""
    rates = torch.exp(-math.log(10_000) / (channels // 2 - 1) * torch.arange(channels // 2))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)
