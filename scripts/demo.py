"""The whole way in one command: real speech, a real model under two policies, scores, a table and the curve.

    python -m scripts.demo --output out/demo

Then the Hikari agent on the same audio, with random weights until a trained model is shipped.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.cli import add_common_arguments, report_errors

logger = logging.getLogger(__name__)

SYSTEMS = ("whisper-alignatt", "whisper-local-agreement")
TEST_SET = "tiny"


def make_random_hikari(folder: Path, tokenizer_folder: Path, seed: int = 0) -> Path:
    """Write a Hikari of two small layers with random weights and Whisper's tokenizer; returns its folder.

    Its words mean nothing: it shows that the agent, the log and the clock work.
    """
    import torch

    from hikari_agent.config import HikariConfig
    from hikari_agent.model import HikariForConditionalGeneration

    torch.manual_seed(seed)
    config = HikariConfig(
        d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, decoder_layers=2,
        decoder_attention_heads=4, decoder_ffn_dim=128, max_target_positions=375, encoder_is_causal=True,
        decoder_time_dilation=4, init_std=0.3,
    )  # fmt: skip
    HikariForConditionalGeneration(config).save_pretrained(folder)
    shutil.copyfile(tokenizer_folder / "tokenizer.json", folder / "tokenizer.json")
    return folder


def _demo(arguments: argparse.Namespace) -> int:
    from reports.plots import plot_pareto
    from reports.runs import read_run
    from reports.score import score_run, write_scores
    from reports.tables import rows, to_csv, to_markdown
    from scripts import fetch, sweep
    from testsets.files import write_whole
    from testsets.manifest import load

    output: Path = arguments.output
    whisper = fetch.fetch_whisper_base()
    if arguments.fresh:
        for name in ("runs", "hikari-random"):
            shutil.rmtree(output / name, ignore_errors=True)
    test_set = load(TEST_SET)
    seconds = sum(recording.duration_ms for recording in test_set.recordings) / 1000
    logger.info(
        "sweeping %s over %.0f s of speech, %d recordings at a time", " and ".join(SYSTEMS), seconds, arguments.jobs
    )
    common = ["--testset", TEST_SET, "--jobs", str(arguments.jobs)]
    systems = [part for name in SYSTEMS for part in ("--system", name)]
    points = sweep.plan(sweep.parse([*common, *systems, "--output", str(output / "runs")]))
    failures = sweep.run(points, arguments.jobs, arguments.quiet)
    if failures:
        raise ValueError(f"{len(failures)} recordings failed, the first: {failures[0]}")
    folders = [point.folder for point in points]
    for folder in folders:
        write_scores(folder, score_run(read_run(folder), test_set))
    frame = rows(folders)
    write_whole(output / "table.md", to_markdown(frame))
    write_whole(output / "table.csv", to_csv(frame))
    drawn = plot_pareto(frame, output / "curve", quality="WER", latency="StreamLAAL")
    print(to_markdown(frame))
    for path in (output / "table.md", output / "table.csv", *drawn):
        print(path)

    logger.info(
        "now the Hikari agent, with RANDOM weights: what it says means nothing, until a trained model is shipped"
    )
    random = output / "hikari-random"  # outside of runs/, so that no table or figure takes it for a system
    if not (random / "model" / "config.json").is_file():
        make_random_hikari(random / "model", whisper)
    chosen = ["--system", "hikari", "--model", str(random / "model"), "--knob", "wait_penalty=0"]
    hikari = sweep.plan(sweep.parse([*common, *chosen, "--output", str(random / "runs")]))
    failures = sweep.run(hikari, arguments.jobs, arguments.quiet)
    if failures:
        raise ValueError(f"the Hikari agent failed: {failures[0]}")
    n_words = sum(len(record.units) for record in read_run(hikari[0].folder).records)
    logger.info("the Hikari agent heard %.0f s and wrote %d meaningless words", seconds, n_words)
    print(hikari[0].folder / "instances.log")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.demo",
        description="Sweep Whisper base under AlignAtt and LocalAgreement over the test set `tiny`, score, table and plot "
        "it, then run the Hikari agent. Example: python -m scripts.demo --output out/demo",
    )
    parser.add_argument("--output", type=Path, default=Path("out/demo"), metavar="DIR", help="(default: out/demo)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="recordings at a time (default: 2)")
    parser.add_argument(
        "--fresh", action="store_true", help="remove earlier runs from the output folder first (default: go on)"
    )
    add_common_arguments(parser)
    return report_errors(_demo, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
