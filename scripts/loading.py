"""Time the data loader against a step that takes no time: `python -m scripts.loading --shards DIR`.

How many hours of audio one worker gives a trainer in an hour, for sections of 30 s (the paper's) in three recipes, and
where the time goes. Writes reports/bench/loading.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.bench import machine
from scripts.cli import add_common_arguments, report_errors

OUTPUT = Path(__file__).parent.parent / "reports" / "bench" / "loading.json"
SECTION_S = 30.0


def measure(shards: Path, model: str, seconds: float) -> list[dict[str, Any]]:
    """A row for each recipe: hours of audio per hour from one worker, and shares of its time by part."""
    from hikari_agent.checkpoint import read_checkpoint, resolve_folder
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.augment import Augmentation
    from hikari_agent.training.dataset import Recipe, SectionDataset

    folder = resolve_folder(model)
    config, vocabulary = read_checkpoint(folder).config, Vocabulary.from_folder(folder)
    config.max_source_positions, config.max_target_positions = 1500, 375
    noise = Augmentation(gain_db=(-12, 4), noise_share=0.7)
    recipes = {
        "as recorded": Augmentation(),
        "gain and noise": noise,
        "gain, noise, rooms and speed": Augmentation(
            gain_db=noise.gain_db, noise_share=noise.noise_share, reverb_share=0.5, speed_share=0.5
        ),
    }
    rows = []
    for name, augmentation in recipes.items():
        recipe = Recipe(section_s=(SECTION_S,), batch_s=16 * SECTION_S, augmentation=augmentation)
        dataset = SectionDataset(shards, recipe, vocabulary, config)
        row = {"recipe": name, "hours_per_hour": round(_through_worker(dataset, recipe.batch_s, seconds))}
        rows.append(row | {"shares": _shares(dataset, seconds / 2)})
    return rows


def _through_worker(dataset: Any, batch_s: float, seconds: float) -> float:
    """Audio per time of a DataLoader with one worker."""
    from torch.utils.data import DataLoader

    batches = iter(DataLoader(dataset, batch_size=None, num_workers=1))
    for _ in range(3):  # the worker has started, its first shard is open, its filters are made
        next(batches)
    started, n = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        next(batches)
        n += 1
    return n * batch_s / (time.perf_counter() - started)


def _shares(dataset: Any, seconds: float) -> dict[str, float]:
    """The parts of making a batch in this process: read a shard, cut and augment sounds, log-mel; the rest is targets."""
    spent = {"read": 0.0, "sound": 0.0, "log-mel": 0.0}

    def timed(name: str, function: Any) -> Any:
        def run(*arguments: Any) -> Any:
            started = time.perf_counter()
            result = function(*arguments)
            spent[name] += time.perf_counter() - started
            return result

        return run

    dataset.shards.load = timed("read", dataset.shards.load)
    dataset._sound, dataset._features = timed("sound", dataset._sound), timed("log-mel", dataset._features)
    batches = iter(dataset)
    next(batches)
    spent.update(dict.fromkeys(spent, 0.0))
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        next(batches)
    whole = time.perf_counter() - started
    shares = {name: round(value / whole, 2) for name, value in spent.items()}
    return shares | {"targets": round(1 - sum(spent.values()) / whole, 2)}


def _run(arguments: argparse.Namespace) -> int:
    import torch

    from testsets.files import write_whole

    torch.set_num_threads(1)
    rows = measure(arguments.shards, arguments.model, arguments.seconds)
    index = json.loads((arguments.shards / "index.json").read_text(encoding="utf-8"))
    found = {
        "what": f"hours of audio per hour that one worker gives to a step that takes no time; sections of {SECTION_S:g} s, "
        f"one task each, {sum(index['durations_s']) / 3600:.1f} h of shards",
        **machine(1), "rows": rows,
    }  # fmt: skip
    write_whole(arguments.output, json.dumps(found, indent=1) + "\n")
    print("| recipe | hours per hour | read | sound | log-mel | targets |\n|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['recipe']} | {row['hours_per_hour']:,} | "
            + " | ".join(f"{v:.0%}" for v in row["shares"].values())
            + " |"
        )
    print(arguments.output)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.loading",
        description="Time the data loader, one worker. Example: python -m scripts.loading --shards out/shards",
    )
    add = parser.add_argument
    add("--shards", type=Path, required=True, metavar="DIR", help="what `scripts.prepare shards` wrote")
    add("--model", default="hikari-tiny", metavar="DIR", help="whose front end and tokens (default: hikari-tiny)")
    add("--seconds", type=float, default=20.0, help="how long each recipe is measured (default: 20)")
    add("--output", type=Path, default=OUTPUT, metavar="FILE", help="JSON to write")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
