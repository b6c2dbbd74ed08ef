"""Do the paper's claims hold at small scale? `python -m scripts.ablate NAME` trains the arms, sweeps and compares them.

sft: delay recovery against going on without it (Table 5, Figure 5). asr: with and without the transcription task (Table 8).
dilation: 2, 4 and 6 encoder frames a row (Figures 3 and 9). penalty: a constant one against the released
server's adaptive one.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.cli import add_common_arguments, report_errors
from scripts.embedded import Stage, run, train

logger = logging.getLogger(__name__)

TRANSLATIONS = ("de", "ja", "ru")
# Both arms go on from the shipped model for the paper's 2,000 steps, at the same rate, which falls to zero.
GO_ON = (
    "--all-tasks --section-s 6.4 12.8 25.6 --batch-s 51.2 --at-sentence 0.5 --steps 2000 --peak 4e-4 --warmup-steps 100 "
    "--decay linear --seed 6"
)
# Arms that begin after `sounds` and see a third of what the shipped model saw.
FROM_SOUNDS = (
    "--all-tasks --section-s 6.4 6.4 12.8 --batch-s 38.4 --at-sentence 0.7 --phoneme-weight 0.3 --steps 1500 --peak 2e-3 "
    "--warmup-steps 150 --decay linear --seed 5"
)
ARMS: dict[str, dict[str, Stage]] = {
    "sft": {
        "control": Stage("control", "more", "more", GO_ON),
        "sft": Stage("sft", "more", "more", f"{GO_ON} --recovery-share 0.3 --max-shift 40"),
    },
    "asr": {
        "with-asr": Stage("with-asr", "sounds", "more", f"{FROM_SOUNDS} --tasks en,de,ja,ru"),
        "without-asr": Stage("without-asr", "sounds", "more", f"{FROM_SOUNDS} --tasks de,ja,ru"),
    },
    "dilation": {
        f"dilation-{d}": Stage(f"dilation-{d}", "sounds", "more", f"{FROM_SOUNDS} --dilation {d}") for d in (2, 4, 6)
    },
}
SILENCED_S = (6.0, 9.0)  # when the probe of recovery forbids every arm to speak


def compare(name: str, embedded: Path, output: Path, processes: int) -> list[Path]:
    """Train the arms of an ablation (those there are stay), sweep each; returns all run folders."""
    from reports.score import score_folder
    from scripts.onepass import PENALTIES, sweep
    from testsets.manifest import load

    test_set = load("tiny-talks")
    folders = []
    for arm, stage in ARMS[name].items():
        train(stage, embedded, processes)
        model = embedded / "training" / stage.name / "model"
        languages = TRANSLATIONS if arm == "without-asr" else ("en", *TRANSLATIONS)
        made = sweep(str(model), test_set, languages, PENALTIES, output / "runs", arm)
        for folder in made:
            score_folder(folder, test_set)
        folders += made
    return folders


def recovery(model: Path, embedded: Path) -> dict[str, float]:
    """How a model comes back from three seconds of forced silence, over the development talks.

    Words said per word of reference, and the mean lag in s of what comes 0 to 4 s after the silence; by language.
    """
    from hikari_agent.model import HikariForConditionalGeneration
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.dataset import Shards
    from hikari_agent.training.evaluate import DevelopmentSet

    recordings = [r for name in ("dev-known", "dev-unheard") for r in Shards(embedded / "shards" / name).load(0)]
    development = DevelopmentSet(recordings, Vocabulary.from_folder(model))
    hikari = HikariForConditionalGeneration.from_pretrained(model)
    found: dict[str, float] = {}
    for label, silenced in (("free", (0.0, 0.0)), ("silenced", SILENCED_S)):
        said = development.run(hikari, ("en", *TRANSLATIONS), [1.0], silenced)
        for (language, _), recordings_said in said.items():
            scores = development.scores(recordings_said, language, (SILENCED_S[1], SILENCED_S[1] + 4.0))
            found |= {f"{name}_{language}_{label}": value for name, value in scores.items()}
    return found


def real_time_factor(model: Path, seconds: float = 24.0) -> float:
    """Compute time per second of audio of one stream, on one thread, once all is warm."""
    import torch

    from hikari_agent.lanes import LanesWindow
    from hikari_agent.model import HikariForConditionalGeneration
    from hikari_agent.tokens import WAIT

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    window = LanesWindow(HikariForConditionalGeneration.from_pretrained(model))
    sound = 0.01 * torch.randn(int(seconds * 16_000) // window.row_samples, window.row_samples)
    for _ in range(2):
        state = window.start([1, 2, 3, 4])
        started = time.process_time()
        for samples in sound:
            _, state = window.step(state, samples)
            state.tokens.append(WAIT)
        spent = time.process_time() - started
    torch.set_num_threads(n_threads)
    return spent / seconds


def wait_shares(dilation: int, embedded: Path, output: Path) -> dict[str, float]:
    """The share of WAIT among the slots of the development talks' targets, by language."""
    ready = output / "interleaved" / str(dilation)
    vocabulary = str(embedded / "vocabulary")
    source = str(embedded / "corpora" / "dev-known")
    run("scripts.prepare", "interleave", source, str(ready), "--tokenizer", vocabulary, "--dilation", str(dilation))
    figures = json.loads((ready / "report.json").read_text(encoding="utf-8"))["figures"]
    counted = {language: values["statistics"] for language, values in figures.items()}
    return {f"wait_share_{language}": n["n_waits"] / n["n_slots"] for language, n in counted.items()}


def _adaptive(output: Path) -> list[Path]:
    """The shipped model under SimulEval, which has the voice activity that the adaptive penalty listens to; en-de."""
    from reports.score import score_folder
    from testsets.manifest import load

    run(
        "scripts.sweep", "--system", "hikari-tiny", "--system", "hikari-tiny-adaptive", "--testset", "tiny-talks",
        "--language", "de", "--knob", "wait_penalty=-1:3:1", "--output", str(output / "runs"), "--jobs", "2",
    )  # fmt: skip
    folders = sorted(path.parent for path in (output / "runs").rglob("run.json"))
    test_set = load("tiny-talks")
    for folder in folders:
        score_folder(folder, test_set)
    return folders


def _run(arguments: argparse.Namespace) -> int:
    from reports.plots import plot_pareto
    from reports.tables import rows, to_markdown
    from testsets.files import write_whole

    output: Path = arguments.output / arguments.name
    if arguments.name == "penalty":
        folders = _adaptive(output)
    else:
        folders = compare(arguments.name, arguments.embedded, output, arguments.processes)
    frame = rows(folders)
    write_whole(output / "table.md", to_markdown(frame))
    for language in sorted(set(frame["language"]) & set(TRANSLATIONS)):
        one = frame[frame["language"] == language]
        plot_pareto(one, output / f"curve-{language}", quality="BLEU", latency="StreamLAAL", intervals=True)
    more: dict[str, Any] = {}
    for arm, stage in ARMS.get(arguments.name, {}).items():
        model = arguments.embedded / "training" / stage.name / "model"
        more[arm] = {"real_time_factor": real_time_factor(model)}
        if arguments.name == "sft":
            more[arm] |= recovery(model, arguments.embedded)
        if arguments.name == "dilation":
            more[arm] |= wait_shares(int(arm.split("-")[1]), arguments.embedded, output)
    write_whole(output / "more.json", json.dumps(more, indent=1) + "\n")
    print(to_markdown(frame))
    print(output)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.ablate",
        description="Train the arms of an ablation at small scale, sweep and compare them. Needs what scripts.embedded "
        "leaves. Example: python -m scripts.ablate sft --embedded out/embedded --output out/ablations",
    )
    add = parser.add_argument
    add("name", choices=(*ARMS, "penalty"), help="what is compared")
    add(
        "--embedded",
        type=Path,
        default=Path("out/embedded"),
        metavar="DIR",
        help="of scripts.embedded (default: out/embedded)",
    )
    add("--output", type=Path, default=Path("out/ablations"), metavar="DIR", help="(default: out/ablations)")
    add("--processes", type=int, default=2, metavar="N", help="processes that train (default: 2)")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
