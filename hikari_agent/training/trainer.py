"""Training on transformers.Trainer: our batches, the paper's schedules, exact resumption, one process or many.

torchrun --nproc-per-node 2 -m scripts.train --preset pretrain --init base/ --shards shards/ --output out/
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from .dataset import SectionDataset
from .learner import HikariLearner
from .presets import Preset

logger = logging.getLogger(__name__)

STATE = "trainer_state.json"
Evaluate = Callable[[HikariLearner], Mapping[str, float]]


def arguments(output: Path, preset: Preset, seed: int, **options: Any) -> TrainingArguments:
    """transformers' arguments of a run; `options` are its own, such as `bf16`, `save_steps`."""
    defaults: dict[str, Any] = dict(
        logging_steps=10, save_steps=500, save_total_limit=2, report_to=["tensorboard"], dataloader_num_workers=0,
        logging_nan_inf_filter=False, ddp_find_unused_parameters=False,
    )  # fmt: skip
    return TrainingArguments(
        output_dir=str(output),
        max_steps=preset.steps,
        gradient_accumulation_steps=preset.accumulation,
        max_grad_norm=preset.clip,
        per_device_train_batch_size=1,  # a batch of ours is one item of the loader
        seed=seed,
        ignore_data_skip=True,  # the dataset begins where the step says
        remove_unused_columns=False,
        average_tokens_across_devices=True,
        **(defaults | options),
    )


class HikariTrainer(Trainer):
    """transformers' Trainer with our dataset and schedule; logs the losses of text, WAIT and phonemes too."""

    def __init__(
        self,
        model: HikariLearner,
        args: TrainingArguments,
        preset: Preset,
        dataset: Callable[[int], SectionDataset],
        evaluate: Evaluate | None = None,
        evaluate_steps: int = 500,
    ) -> None:
        """`dataset(first)` gives this process's batches from number `first` on."""
        super().__init__(model=model, args=args)
        self.preset = preset
        self._dataset = dataset
        self._parts: dict[str, tuple[torch.Tensor, int]] = {}
        self._first_step = 0
        if evaluate is not None:
            self.add_callback(StreamingEvaluation(self, evaluate, evaluate_steps))

    def resume(self) -> Any:
        """Train from the last whole checkpoint in the output folder, from the start if there is none."""
        checkpoint = last_whole_checkpoint(Path(self.args.output_dir), self.args.world_size)
        if checkpoint is None:
            return self.train()
        self._first_step = TrainerState.load_from_json(str(checkpoint / STATE)).global_step
        if self._first_step >= self.preset.steps:
            logger.info("all %d steps are done already", self.preset.steps)
            return self._load_from_checkpoint(str(checkpoint))
        logger.info("going on at step %d of %d", self._first_step, self.preset.steps)
        return self.train(resume_from_checkpoint=str(checkpoint))

    def get_train_dataloader(self) -> DataLoader:
        dataset = self._dataset(self._first_step * self.preset.accumulation)
        return DataLoader(
            dataset, batch_size=None, num_workers=self.args.dataloader_num_workers,
            pin_memory=torch.cuda.is_available(),
        )  # fmt: skip

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        learnt = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer: Any = torch.optim.AdamW(
            learnt, lr=self.preset.peak, betas=self.preset.betas, weight_decay=self.preset.weight_decay
        )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        preset = self.preset
        self.lr_scheduler: Any = LambdaLR(optimizer or self.optimizer, lambda step: preset.rate(step) / preset.peak)
        return self.lr_scheduler

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **kwargs: Any) -> Any:
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        for name in ("text", "wait", "phoneme"):
            value = outputs.get(name)
            if value is not None:
                total, n = self._parts.get(name, (torch.zeros((), device=value.device), 0))
                self._parts[name] = total + value, n + 1
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        if "loss" in logs:
            logs |= {f"{name}_loss": float(total / n) for name, (total, n) in self._parts.items()}
            self._parts = {}
        super().log(logs, *args, **kwargs)


class StreamingEvaluation(TrainerCallback):
    """Streams a development set every `steps` steps, on the first process, and logs what `evaluate` says of it."""

    def __init__(self, trainer: HikariTrainer, evaluate: Evaluate, steps: int) -> None:
        self.trainer = trainer
        self.evaluate = evaluate
        self.steps = steps

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        if state.global_step % self.steps and state.global_step != state.max_steps:
            return
        if state.is_world_process_zero:
            learner = self.trainer.accelerator.unwrap_model(self.trainer.model)
            learner.eval()
            should_log = control.should_log
            self.trainer.log({f"dev_{name}": value for name, value in self.evaluate(learner).items()})
            control.should_log = should_log  # logging takes it back, and the other processes would log alone
            learner.train()


def last_whole_checkpoint(output: Path, n_processes: int = 1) -> Path | None:
    """The newest checkpoint that a kill did not cut short: transformers writes its state last, each process its own."""
    names = [f"rng_state_{i}.pth" for i in range(n_processes)] if n_processes > 1 else ["rng_state.pth"]
    found = [
        path
        for path in output.glob("checkpoint-*")
        if all((path / name).is_file() for name in names) and _is_whole_json(path / STATE)
    ]
    return max(found, key=lambda path: int(path.name.split("-")[1]), default=None)


def _is_whole_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return False
    return True


def process_of_run() -> tuple[int, int]:
    """(rank, number of processes), as torchrun says in the environment."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
