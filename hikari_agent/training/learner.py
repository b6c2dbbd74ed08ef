"""A Hikari that is being trained: the loss of a batch, auxiliary heads that are left off when it is saved.

The loss is the cross entropy of every row that counts (arXiv 2603.11578). `phoneme_weight` adds that of a head on the
encoder which names the phoneme of each 20 ms: no part of the paper, but a small model from scratch needs it to find out
what sounds are.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from transformers.utils import ModelOutput

from ..config import HikariConfig
from ..model import HikariForConditionalGeneration
from ..tokens import WAIT
from .sections import IGNORED


@dataclass
class Losses(ModelOutput):
    """Scalars. `text` and `wait` are means over the rows that should say a token, or WAIT; detached."""

    loss: Tensor | None = None
    text: Tensor | None = None
    wait: Tensor | None = None
    phoneme: Tensor | None = None


class HikariLearner(HikariForConditionalGeneration):
    """The model with its training heads, under the same parameter names; `save_pretrained` of the model is enough."""

    accepts_loss_kwargs = True  # transformers' Trainer: forward takes `num_items_in_batch`

    def __init__(
        self, config: HikariConfig, n_phonemes: int = 0, phoneme_weight: float = 0.5, half_weights: bool = False
    ) -> None:
        super().__init__(config)
        self.phoneme_head = nn.Linear(config.d_model, n_phonemes) if n_phonemes else None
        self.phoneme_weight = phoneme_weight
        # Autocast leaves norms and softmax in float32; with all weights cast once a step, two cores train 1.3 times
        # as fast. The optimiser's weights stay float32 in both.
        self.half_weights = half_weights

    def forward(  # type: ignore[override]
        self,
        input_features: Tensor,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        phonemes: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Losses:
        """The losses of a batch of `hikari_agent.training.dataset`.

        `num_items_in_batch` are the rows that count in all batches of this step: the sum is divided by it, so that
        accumulation and several processes give the loss of one big batch. Without it the mean is over this batch.
        """
        frames, logits = self._run(input_features, decoder_input_ids)
        if logits is None or labels is None:  # a batch of sounds only
            phoneme = self._phoneme_loss(frames, phonemes)
            return Losses(loss=self.phoneme_weight * phoneme, phoneme=phoneme.detach())
        flat = labels.flatten()
        entropy = F.cross_entropy(logits.flatten(0, 1).float(), flat, ignore_index=IGNORED, reduction="none")
        learnt = flat != IGNORED
        n = num_items_in_batch if num_items_in_batch is not None else learnt.sum().clamp(min=1)
        loss = entropy.sum() / n
        is_wait = flat == WAIT
        detached = entropy.detach()
        result = Losses(text=_mean(detached, learnt & ~is_wait), wait=_mean(detached, is_wait))
        if self.phoneme_head is not None and phonemes is not None:
            phoneme = self._phoneme_loss(frames, phonemes)
            result["phoneme"] = phoneme.detach()
            # As much of the step's mean as this batch has of the step's rows.
            loss = loss + self.phoneme_weight * phoneme * (learnt.sum() / n)
        result["loss"] = loss
        return result

    def _phoneme_loss(self, frames: Tensor, phonemes: Tensor | None) -> Tensor:
        assert self.phoneme_head is not None, "a model without a phoneme head has nothing to learn from sounds alone"
        assert phonemes is not None, "the batch has no phonemes"
        named = self.phoneme_head(frames.float()).flatten(0, 1)
        total = F.cross_entropy(named, phonemes.flatten(), ignore_index=IGNORED, reduction="sum")
        return total / (phonemes != IGNORED).sum().clamp(min=1)

    def _run(self, mel: Tensor, ids: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if not self.half_weights:
            return self._both(mel, ids)
        half = {name: p.to(torch.bfloat16) for name, p in self.named_parameters() if not name.startswith("phoneme")}
        return functional_call(
            _Forward(self), {f"model.{k}": v for k, v in half.items()}, (mel.to(torch.bfloat16), ids)
        )

    def _both(self, mel: Tensor, ids: Tensor | None) -> tuple[Tensor, Tensor | None]:
        frames = self.model.encoder.encode(mel)
        if ids is None:
            return frames, None
        hidden, _ = self.model.decoder(ids, self.model.decoder.remember(frames))
        return frames, self.proj_out(hidden)

    def recompute_layers(self) -> None:
        """Gradient checkpointing: forget what is inside a layer and compute it again in the backward pass.

        Raises ValueError with half weights, which are gone by then.
        """
        if self.half_weights:
            raise ValueError("gradient checkpointing does not go with --precision bf16-weights: take bf16 or float32")
        for layer in (*self.model.encoder.layers, *self.model.decoder.layers):
            layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)

    def export(self) -> HikariForConditionalGeneration:
        """The model alone, on the CPU in float32, in evaluation mode."""
        model = HikariForConditionalGeneration(self.config)
        state = {k: v.detach().cpu().float() for k, v in self.state_dict().items() if not k.startswith("phoneme_head")}
        model.load_state_dict(state)
        return model.eval()


class _Forward(nn.Module):
    """What `functional_call` calls: a module whose forward is the learner's way to frames and logits."""

    def __init__(self, learner: HikariLearner) -> None:
        super().__init__()
        self.model = learner

    def forward(self, *args: Any) -> Any:
        return self.model._both(*args)


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    return (values * chosen).sum() / chosen.sum().clamp(min=1)
