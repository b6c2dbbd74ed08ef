"""A sweep in one pass over the audio: every language and WAIT penalty of a Hikari at once, as a run folder each.

    python -m scripts.onepass --testset tiny-talks --output out/runs

Without SimulEval, so without computation-aware times: `elapsed` is the time heard. For a model with the causal front end.
What is written is what the agent writes with a constant penalty (--hikari-boost 0); a test holds one against the other.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.cli import add_common_arguments, report_errors

if TYPE_CHECKING:
    from testsets.manifest import TestSet

PENALTIES = tuple(float(penalty) for penalty in range(-2, 7))
ENGINE = "one pass (scripts.onepass): no computation-aware times"


def sweep(
    model: str, test_set: TestSet, languages: Sequence[str], penalties: Sequence[float], output: Path, name: str
) -> list[Path]:
    """Stream a test set with a model; returns the run folders, `output`/NAME/LANGUAGE/PENALTY."""
    from baselines.systems import SYSTEMS
    from hikari_agent.audio import read_audio
    from hikari_agent.checkpoint import resolve_folder
    from hikari_agent.model import HikariForConditionalGeneration
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.evaluate import stream_all
    from reports.runs import write_run_spec
    from scripts.points import Point
    from testsets.files import write_whole

    folder = resolve_folder(model)
    hikari = HikariForConditionalGeneration.from_pretrained(folder)
    sounds = [read_audio(test_set.audio_path(recording)) for recording in test_set.recordings]
    vocabulary = Vocabulary.from_folder(folder)
    said = stream_all(hikari, vocabulary, sounds, test_set.source_language, languages, penalties)
    spec = dataclasses.replace(SYSTEMS["hikari-tiny"], name=name)
    folders = []
    for (language, penalty), recordings in said.items():
        point = Point(spec, penalty, test_set, language, str(folder), output / name / language / f"{penalty:g}")
        blank = "" if point.unit == "char" else " "
        references = test_set.references(language)
        lines = []
        for index, (recording, one) in enumerate(zip(test_set.recordings, recordings, strict=True)):
            delays = [min(recording.duration_ms, 1000 * heard) for heard in one.heard_s]
            row = {
                "index": index, "prediction": blank.join(one.units), "delays": delays, "elapsed": delays,
                "prediction_length": len(one.units), "reference": " ".join(references[recording.id]),
                "source": [recording.audio], "source_length": recording.duration_ms,
            }  # fmt: skip
            lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        write_whole(point.folder / "instances.log", "".join(lines))
        write_run_spec(point.folder, point.run_spec() | {"engine": ENGINE})
        folders.append(point.folder)
    return folders


def _run(arguments: argparse.Namespace) -> int:
    from reports.score import score_folder
    from testsets.manifest import load

    test_set = load(arguments.testset)
    if arguments.recordings:
        test_set = test_set.select(arguments.recordings.split(","))
    test_set.verify()
    languages = arguments.languages.split(",")
    for folder in sweep(arguments.model, test_set, languages, arguments.penalties, arguments.output, arguments.name):
        score_folder(folder, test_set)
        print(folder)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.onepass",
        description="Sweep a Hikari over languages and WAIT penalties in one pass over the audio, and score it. "
        "Example: python -m scripts.onepass --testset tiny-talks --output out/runs",
    )
    add = parser.add_argument
    add(
        "--model",
        default="hikari-tiny",
        metavar="DIR",
        help="checkpoint with the causal front end (default: hikari-tiny)",
    )
    add("--testset", default="tiny-talks", metavar="NAME", help="test set, or a folder with one (default: tiny-talks)")
    add("--recordings", metavar="ID,…", help="only these of its recordings (default: all)")
    add("--languages", default="en,de,ja,ru", metavar="LANG,…", help="languages to write (default: en,de,ja,ru)")
    add("--penalties", type=float, nargs="+", default=PENALTIES, metavar="P",
        help="WAIT penalties (default: -2 to 6)")  # fmt: skip
    add("--name", default="hikari-tiny", help="the system's name in tables (default: hikari-tiny)")
    add("--output", type=Path, required=True, metavar="DIR", help="for the run folders")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
