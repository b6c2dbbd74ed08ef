"""Train a Hikari on shards: `python -m scripts.train --init CHECKPOINT --shards DIR --output DIR`.

    torchrun --nproc-per-node 2 -m scripts.train …      several processes

A killed run that is started again with the same flags goes on where it was.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.cli import add_common_arguments, report_errors

if TYPE_CHECKING:
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.dataset import Recipe
    from hikari_agent.training.learner import HikariLearner
    from hikari_agent.training.trainer import Evaluate

logger = logging.getLogger(__name__)

# Flags that may differ when a run goes on: they change no loss.
CIRCUMSTANCES = (
    "output", "quiet", "debug", "workers", "num_threads", "save_steps", "logging_steps", "evaluate_steps", "dev",
    "dev_penalties",
)  # fmt: skip
PRECISIONS = ("float32", "bf16", "bf16-weights")


def _preset(arguments: argparse.Namespace) -> Any:
    from hikari_agent.training.presets import PRESETS

    changed = {name: getattr(arguments, name) for name in ("steps", "peak", "warmup_steps", "decay", "accumulation")}
    if arguments.beta2 is not None:
        changed["betas"] = (0.9, arguments.beta2)
    if arguments.weight_decay is not None:
        changed["weight_decay"] = arguments.weight_decay
    if arguments.recovery_share is not None:
        changed["recovery_share"] = arguments.recovery_share
    return dataclasses.replace(
        PRESETS[arguments.preset], **{name: value for name, value in changed.items() if value is not None}
    )


def _learner(arguments: argparse.Namespace) -> Any:
    from hikari_agent.training.start import from_checkpoint, from_scratch

    heads = {}
    if arguments.phoneme_weight:
        from hikari_agent.training.synth import PHONEMES

        heads = dict(n_phonemes=len(PHONEMES))
    half = arguments.precision == "bf16-weights"
    if arguments.init:
        learner = from_checkpoint(
            arguments.init, arguments.vocabulary, arguments.frontend or "causal", **heads, half_weights=half,
            dilation=arguments.dilation, seed=arguments.seed,
        )  # fmt: skip
    else:
        from hikari_agent.config import HikariConfig

        config = HikariConfig(**json.loads(arguments.config.read_text()))
        learner = from_scratch(config, arguments.seed, **heads, half_weights=half)
    learner.phoneme_weight = arguments.phoneme_weight
    if arguments.gradient_checkpointing:
        learner.recompute_layers()
    return learner


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError for flags that do not go together."""
    if bool(arguments.init) == bool(arguments.config):
        raise ValueError("give one of --init (a checkpoint) and --config (a config.json, for random weights)")
    if arguments.config and not arguments.vocabulary:
        raise ValueError("--config needs --vocabulary: the folder with the tokenizer.json the shards were made with")
    if arguments.config and (arguments.frontend or arguments.dilation):
        raise ValueError("--frontend and --dilation change a checkpoint: with --config write them into the file")


def _claim(arguments: argparse.Namespace) -> None:
    """Write what the run is made with into the output folder. Raises ValueError if another was begun there."""
    from testsets.files import write_whole

    settings = {k: v for k, v in vars(arguments).items() if k not in CIRCUMSTANCES}
    text = json.dumps(settings, default=str, indent=1, sort_keys=True) + "\n"
    path = arguments.output / "run.json"
    if not path.is_file():
        write_whole(path, text)
    elif path.read_text(encoding="utf-8") != text:
        there, now = json.loads(path.read_text(encoding="utf-8")), json.loads(text)
        differing = sorted(k for k in there.keys() | now.keys() if there.get(k) != now.get(k))
        raise ValueError(
            f"{arguments.output} holds a run with other flags ({differing[0]}: there {there.get(differing[0])!r}, now "
            f"{now.get(differing[0])!r}). Take another --output, or remove it"
        )


def _recipe(arguments: argparse.Namespace, recovery_share: float) -> Recipe:
    from hikari_agent.training.augment import Augmentation
    from hikari_agent.training.dataset import Recipe

    return Recipe(
        section_s=tuple(arguments.section_s), batch_s=arguments.batch_s,
        tasks=tuple(filter(None, arguments.tasks.split(","))), all_tasks=arguments.all_tasks,
        at_sentence=arguments.at_sentence, recovery_share=recovery_share, max_shift=arguments.max_shift,
        phonemes=bool(arguments.phoneme_weight),
        augmentation=Augmentation(
            gain_db=tuple(arguments.gain_db), noise_share=arguments.noise_share, snr_db=tuple(arguments.snr_db),
            reverb_share=arguments.reverb_share, speed_share=arguments.speed_share,
        ),
    )  # fmt: skip


def _evaluate(arguments: argparse.Namespace, recipe: Recipe, vocabulary: Vocabulary) -> Evaluate:
    """What streams the development set: all of it is loaded here."""
    from hikari_agent.training.dataset import Shards
    from hikari_agent.training.evaluate import DevelopmentSet, report

    shards = Shards(arguments.dev)
    recordings = [recording for i in range(len(shards)) for recording in shards.load(i)]
    development = DevelopmentSet(recordings, vocabulary)

    def evaluate(model: HikariLearner) -> dict[str, float]:
        said = development.run(model, recipe.tasks, arguments.dev_penalties)
        return report({key: development.scores(value, key[0]) for key, value in said.items()})

    return evaluate


def _run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    import torch

    from hikari_agent.checkpoint import resolve_folder
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.dataset import SectionDataset
    from hikari_agent.training.start import save_learner
    from hikari_agent.training.trainer import HikariTrainer, process_of_run
    from hikari_agent.training.trainer import arguments as training_arguments

    if arguments.num_threads:
        torch.set_num_threads(arguments.num_threads)
    preset = _preset(arguments)
    rank, world = process_of_run()
    folder = Path(arguments.vocabulary) if arguments.vocabulary else resolve_folder(arguments.init)
    vocabulary = Vocabulary.from_folder(folder)
    learner = _learner(arguments)
    recipe = _recipe(arguments, preset.recovery_share)

    def dataset(first: int) -> SectionDataset:
        return SectionDataset(
            arguments.shards, recipe, vocabulary, learner.config, arguments.seed, rank, world, arguments.streams, first
        )

    dataset(0)  # what is wrong with the shards or the sections is told before anything is written
    if arguments.dev and learner.config.frontend != "causal":
        raise ValueError("--dev streams in lanes, which need the causal front end (--frontend causal)")
    evaluate = _evaluate(arguments, recipe, vocabulary) if arguments.dev and rank == 0 else None
    if rank == 0:
        _claim(arguments)
    options: dict[str, Any] = dict(
        save_steps=arguments.save_steps, logging_steps=arguments.logging_steps, bf16=arguments.precision == "bf16",
        dataloader_num_workers=arguments.workers, use_cpu=not torch.cuda.is_available(),
        ddp_find_unused_parameters=not recipe.tasks, disable_tqdm=arguments.quiet or not sys.stderr.isatty(),
    )  # fmt: skip
    trainer = HikariTrainer(
        learner, training_arguments(arguments.output, preset, arguments.seed, **options), preset, dataset,
        evaluate, arguments.evaluate_steps,
    )  # fmt: skip
    trainer.resume()
    if rank == 0:
        save_learner(learner, folder, arguments.output / "model")
        print(arguments.output / "model")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.train",
        description="Train a Hikari on shards. Example: python -m scripts.train --init out/hikari-base "
        "--shards out/shards --output out/run --preset pretrain --batch-s 240",
    )
    add = parser.add_argument
    add("--shards", type=Path, required=True, metavar="DIR", help="what `scripts.prepare shards` wrote")
    add(
        "--output", type=Path, required=True, metavar="DIR", help="checkpoints, TensorBoard's logs and the final model/"
    )
    add(
        "--init", metavar="DIR", help="checkpoint to begin with: a Hikari, or what `scripts.convert` makes of a Whisper"
    )
    add("--config", type=Path, metavar="FILE", help="config.json of a model that begins with random weights")
    add("--vocabulary", type=Path, metavar="DIR", help="folder with the shards' tokenizer.json (default: the start's)")
    add("--frontend", choices=("causal", "released"),
        help="log-mel to hear with (default: causal, whatever the checkpoint had; with --config what the file says)")  # fmt: skip
    add("--dilation", type=int, metavar="D", help="frames of 20 ms a decoder row advances (default: the checkpoint's)")
    add("--preset", choices=("pretrain", "sft"), default="pretrain", help="the paper's schedules (default: pretrain)")
    add("--steps", type=int, help="optimiser steps (default: the preset's)")
    add("--peak", type=float, help="highest learning rate (default: the preset's)")
    add("--warmup-steps", type=int, help="steps of linear warm-up (default: the preset's)")
    add("--decay", choices=("linear", "constant"), help="after the warm-up (default: the preset's)")
    add("--accumulation", type=int, help="batches a step (default: the preset's)")
    add("--beta2", type=float, help="AdamW's second beta (default: 0.999)")
    add("--weight-decay", type=float, help="AdamW's weight decay (default: 0)")
    add("--recovery-share", type=float, help="share of samples of delay recovery (default: the preset's)")
    add(
        "--max-shift", type=int, metavar="SLOTS", help="longest delay of such a sample (default: the paper's, no limit)"
    )
    add(
        "--section-s",
        type=float,
        nargs="+",
        default=[30.0],
        metavar="S",
        help="length of sections, one drawn for each batch (default: 30)",
    )
    add(
        "--batch-s",
        type=float,
        default=3840.0,
        metavar="S",
        help="audio in a batch of one process, s (default: 128 sections of 30 s)",
    )
    add(
        "--tasks",
        default="en,de,ja,ru",
        metavar="LANG,…",
        help="languages to write; empty: learn sounds only (default: en,de,ja,ru)",
    )
    add(
        "--all-tasks",
        action="store_true",
        help="every section has all tasks, for one pass of the encoder (default: one drawn)",
    )
    add(
        "--at-sentence", type=float, default=0.0, metavar="SHARE", help="sections that begin at a sentence (default: 0)"
    )
    add(
        "--gain-db",
        type=float,
        nargs=2,
        default=[0.0, 0.0],
        metavar="DB",
        help="lowest and highest gain (default: 0 0)",
    )
    add("--noise-share", type=float, default=0.0, metavar="SHARE", help="sections with noise added (default: 0)")
    add(
        "--snr-db",
        type=float,
        nargs=2,
        default=[10.0, 40.0],
        metavar="DB",
        help="how far below the sound it lies (default: 10 40)",
    )
    add("--reverb-share", type=float, default=0.0, metavar="SHARE", help="sections put into a room (default: 0)")
    add(
        "--speed-share",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="sections played at 0.9 to 1.1 of their speed (default: 0)",
    )
    add(
        "--phoneme-weight",
        type=float,
        default=0.0,
        metavar="W",
        help="of the phoneme loss, for small models from scratch (default: 0, off)",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        default="float32",
        help="bf16: autocast; bf16-weights: all weights cast (default: float32)",
    )
    add(
        "--gradient-checkpointing",
        action="store_true",
        help="recompute layers in the backward pass: less memory (default: off)",
    )
    add("--dev", type=Path, metavar="DIR", help="shards of a development set to stream")
    add(
        "--dev-penalties",
        type=float,
        nargs="+",
        default=[0.0],
        metavar="P",
        help="WAIT penalties to stream it with (default: 0)",
    )
    add("--evaluate-steps", type=int, default=500, metavar="N", help="stream it every N steps (default: 500)")
    add("--save-steps", type=int, default=500, metavar="N", help="write a checkpoint every N steps (default: 500)")
    add("--logging-steps", type=int, default=10, metavar="N", help="log the losses every N steps (default: 10)")
    add("--workers", type=int, default=0, metavar="N", help="processes that load data (default: 0, in the trainer's)")
    add("--streams", type=int, metavar="N", help="independent orders of the shards (default: one a process)")
    add("--seed", type=int, default=0, help="of weights, sections, jitter and noise (default: 0)")
    add("--num-threads", type=int, metavar="N", help="CPU threads of torch a process (default: torch's)")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
