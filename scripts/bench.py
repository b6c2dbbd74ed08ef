"""Time one step of the released window: incremental against recomputing, same weights, same audio, same run.

    python -m scripts.bench --size base

Three ways to the same logits at the same step: `incremental` computes what changed; `filled` recomputes the audio
heard so far; `released` recomputes the full fixed shapes (30 s of encoder frames, every decoder row and its logits), as
the released server does. Writes reports/bench/release_step.json and prints a table.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.cli import add_common_arguments, report_errors

if TYPE_CHECKING:
    import torch

    from hikari_agent.model import HikariForConditionalGeneration
    from hikari_agent.release import ReleaseState

OUTPUT = Path(__file__).parent.parent / "reports" / "bench" / "release_step.json"
# d_model, layers, heads, as in OpenAI's Whisper of that name.
SIZES = {"tiny": (384, 4, 6), "base": (512, 6, 8), "medium": (1024, 24, 16)}
PROMPT = [50258, 50261, 50358, 50363]


def random_model(size: str) -> HikariForConditionalGeneration:
    """A Hikari of a Whisper's size with random weights: a step costs the same whatever they are."""
    import torch

    from hikari_agent.config import HikariConfig
    from hikari_agent.model import HikariForConditionalGeneration

    torch.manual_seed(0)
    d_model, n_layers, n_heads = SIZES[size]
    config = HikariConfig(
        d_model=d_model, encoder_layers=n_layers, decoder_layers=n_layers, encoder_attention_heads=n_heads,
        decoder_attention_heads=n_heads, encoder_ffn_dim=4 * d_model, decoder_ffn_dim=4 * d_model,
        max_target_positions=375, encoder_is_causal=True, decoder_time_dilation=4,
    )  # fmt: skip
    return HikariForConditionalGeneration(config).eval()


def released_step(model: HikariForConditionalGeneration, state: ReleaseState) -> torch.Tensor:
    """The logits of `state`'s newest row, computed as the released server does: all shapes full, nothing kept."""
    import torch

    from hikari_agent.audio import log_mel_spectrogram

    n_rows = model.config.max_target_positions
    mel = log_mel_spectrogram(state.samples)
    mel = torch.nn.functional.pad(mel, (0, 2 * model.config.max_source_positions - mel.shape[1]))
    ids = torch.tensor([state.tokens[:n_rows] + [0] * (n_rows - len(state.tokens))])
    with torch.inference_mode():
        return model(input_features=mel[None], decoder_input_ids=ids).logits[0, state.last_row]


def measure(size: str, n_steps: int, every: int) -> dict[str, Any]:
    """Run `n_steps` steps and compare at each `every`th; times in ms, medians over the compared steps."""
    import torch

    from hikari_agent.audio import read_audio
    from hikari_agent.release import ReleaseWindow
    from testsets.manifest import load

    model = random_model(size)
    fast, slow = ReleaseWindow(model), ReleaseWindow(model, incremental=False)
    sonnet = load("tiny").select(["sonnet-1"])
    audio = torch.from_numpy(read_audio(sonnet.audio_path(sonnet.recordings[0])))
    state = fast.start(PROMPT)
    times: dict[str, list[float]] = {"incremental": [], "filled": [], "released": []}
    worst = 0.0
    for step in range(n_steps + 2):
        samples = audio[step * fast.row_samples : (step + 1) * fast.row_samples]
        compared = step >= 2 and (step - 2) % every == every - 1
        before = copy.deepcopy(state) if compared else state
        logits, state = _timed(times["incremental"] if compared else [], fast.step, state, samples)
        if logits is None:
            continue
        if compared:
            filled, _ = _timed(times["filled"], slow.step, before, samples)
            released = _timed(times["released"], released_step, model, state)
            worst = max(worst, *(float((other - logits).abs().max()) for other in (filled, released)))
        state.tokens.append(int(logits.argmax()))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "size": size, "parameters": sum(p.numel() for p in model.parameters()), "steps": n_steps,
        "compared_steps": len(times["incremental"]), **{f"{name}_ms": round(t, 2) for name, t in medians.items()},
        "filled_over_incremental": round(medians["filled"] / medians["incremental"], 1),
        "released_over_incremental": round(medians["released"] / medians["incremental"], 1),
        "largest_logit_difference": float(f"{worst:.2g}"),
    }  # fmt: skip


def _timed(times: list[float], function: Callable[..., Any], *arguments: Any) -> Any:
    started = time.perf_counter()
    result = function(*arguments)
    times.append(1000 * (time.perf_counter() - started))
    return result


def _run(arguments: argparse.Namespace) -> int:
    import torch

    from testsets.files import write_whole

    torch.set_num_threads(arguments.threads)
    rows = [measure(size, arguments.steps, arguments.every) for size in arguments.size or ["tiny", "base"]]
    found = {
        "what": "one 80 ms step of the released window, inside the first 30 s, float32 on CPU, random weights",
        **machine(arguments.threads), "rows": rows,
    }  # fmt: skip
    write_whole(arguments.output, json.dumps(found, indent=1) + "\n")
    print("| size | incremental ms | filled ms | released ms | filled / incremental | released / incremental |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['size']} | {row['incremental_ms']} | {row['filled_ms']} | {row['released_ms']} "
            f"| {row['filled_over_incremental']} | {row['released_over_incremental']} |"
        )
    print(arguments.output)
    return 0


def machine(threads: int) -> dict[str, Any]:
    """What a figure was measured on, for the file it is written to."""
    import torch
    import transformers

    return {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "machine": f"{_cpu()}, {os.cpu_count()} CPUs", "threads": threads,
    }  # fmt: skip


def _cpu() -> str:
    """The processor's name, from the kernel where it tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench",
        description="Time a step of the released window, incremental against recomputing. Example: "
        "python -m scripts.bench --size base",
    )
    parser.add_argument("--size", action="append", choices=SIZES, help="model size; repeatable (default: tiny, base)")
    parser.add_argument("--steps", type=int, default=370, help="steps of 80 ms, up to 372 (default: 370)")
    parser.add_argument("--every", type=int, default=20, metavar="N", help="compare each Nth step (default: 20)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="CPU threads (default: 1)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help="JSON to write")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
