"""The paper's two schedules by name (arXiv 2603.11578), and where the learning rate stands at a step of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    """Optimiser and schedule: linear warm-up to `peak`, then "linear" decay to zero or "constant"."""

    steps: int
    peak: float
    warmup_steps: int
    decay: str
    accumulation: int = 1  # batches a step
    clip: float = 1.0  # norm of the gradient
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    recovery_share: float = 0.0  # of the samples are of delay recovery

    def rate(self, step: int) -> float:
        """The learning rate of step `step`, counted from 0; the one step before which nothing was learnt has 0."""
        if step < self.warmup_steps:
            return self.peak * step / self.warmup_steps
        if self.decay == "constant":
            return self.peak
        return self.peak * max(0, self.steps - step) / max(1, self.steps - self.warmup_steps)


PRESETS = {
    "pretrain": Preset(steps=35_000, peak=4e-5, warmup_steps=100, decay="linear", accumulation=2),
    "sft": Preset(steps=2_000, peak=4e-5, warmup_steps=100, decay="constant", accumulation=2, recovery_share=0.3),
}
