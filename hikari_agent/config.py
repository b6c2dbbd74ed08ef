"""The sizes of a Hikari model: a Whisper configuration with a causal encoder and a dilated decoder clock."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig

from .audio import FRAME_SAMPLES, FRONTENDS


class HikariConfig(PretrainedConfig):
    """Hikari's config.json. Names and defaults are the released class's; unknown keys are kept and ignored.

    `decoder_time_dilation` is the number of 20 ms encoder frames a decoder row advances (4: a row every 80 ms).
    `frontend` is ours: "released" is the log-mel hikari-medium was trained on (centred frames, a floor under the
    window's maximum), "causal" hears nothing of the future: see `hikari_agent.audio`. `wait_penalty` and `wait_boost`, ours
    too, are those that suit the checkpoint: the agent's defaults.
    """

    model_type = "hikari"
    attribute_map = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads"}  # noqa: RUF012
    keys_to_ignore_at_inference = ["past_key_values"]  # noqa: RUF012

    def __init__(
        self,
        vocab_size: int = 51865,
        num_mel_bins: int = 80,
        d_model: int = 384,
        encoder_layers: int = 4,
        encoder_attention_heads: int = 6,
        encoder_ffn_dim: int = 1536,
        decoder_layers: int = 4,
        decoder_attention_heads: int = 6,
        decoder_ffn_dim: int = 1536,
        max_source_positions: int = 1500,
        max_target_positions: int = 448,
        activation_function: str = "gelu",
        init_std: float = 0.02,
        encoder_is_causal: bool = False,
        decoder_time_dilation: int = 1,
        frontend: str = "released",
        wait_penalty: float = 0.0,
        wait_boost: float = 0.3,
        tie_word_embeddings: bool = True,
        **kwargs: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.num_mel_bins = num_mel_bins
        self.d_model = d_model
        self.encoder_layers = encoder_layers
        self.encoder_attention_heads = encoder_attention_heads
        self.encoder_ffn_dim = encoder_ffn_dim
        self.decoder_layers = decoder_layers
        self.decoder_attention_heads = decoder_attention_heads
        self.decoder_ffn_dim = decoder_ffn_dim
        self.max_source_positions = max_source_positions
        self.max_target_positions = max_target_positions
        self.activation_function = activation_function
        self.init_std = init_std
        self.encoder_is_causal = encoder_is_causal
        self.decoder_time_dilation = decoder_time_dilation
        if frontend not in FRONTENDS:
            raise ValueError(f"frontend '{frontend}' in config.json. Known: {', '.join(FRONTENDS)}")
        self.frontend = frontend
        self.wait_penalty = wait_penalty
        self.wait_boost = wait_boost
        self.num_hidden_layers = encoder_layers
        kwargs.setdefault("is_encoder_decoder", True)
        for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
            kwargs.setdefault(key, 50256)
        kwargs.setdefault("decoder_start_token_id", 50257)
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)

    @property
    def row_samples(self) -> int:
        """Audio samples a decoder row advances: 1,280 (80 ms) at dilation 4."""
        return FRAME_SAMPLES * self.decoder_time_dilation
