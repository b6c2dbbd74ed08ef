"""Make training shards out of speech: `python -m scripts.prepare STAGE IN OUT`, a stage at a time.

    python -m scripts.prepare synth out/corpus/synthetic --recordings 100
    python -m scripts.prepare import tiny out/corpus/1-import --format testset
    python -m scripts.prepare transcribe out/corpus/1-import out/corpus/2-transcribe --model WHISPER --keep-text
    python -m scripts.prepare translate out/corpus/2-transcribe out/corpus/3-translate --base-url URL --model NAME --to de
    python -m scripts.prepare align out/corpus/3-translate out/corpus/4-align
    python -m scripts.prepare interleave out/corpus/4-align out/corpus/5-interleave --tokenizer WHISPER
    python -m scripts.prepare shards out/corpus/5-interleave out/shards

Each writes a corpus (`hikari_agent.training.corpus`) and a report.json. A stage that was stopped goes on where it was; one
that is finished does nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.cli import add_common_arguments, report_errors

FORMATS = ("ctm", "textgrid", "text", "lhotse", "testset")


def _import(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages.importing import import_folder
    from hikari_agent.training.stages.resumable import report_lines

    if arguments.format == "testset":
        return report_lines(import_test_set(str(arguments.source), arguments.output))
    report = import_folder(arguments.source, arguments.output, arguments.format, arguments.language, arguments.tier)
    return report_lines(report)


def import_test_set(name: str, output: Path) -> dict[str, Any]:
    """A test set (name or folder) as a corpus: a segment is a sentence, its references are its translations."""
    from hikari_agent.training.stages.importing import Clip, Sentence, import_clips
    from testsets.manifest import load

    test_set = load(name)
    test_set.verify()
    clips = [
        Clip(
            recording.id,
            test_set.audio_path(recording),
            test_set.source_language,
            tuple(
                Sentence(s.source, (s.offset_ms / 1000, (s.offset_ms + s.duration_ms) / 1000), translations=s.targets)
                for s in recording.segments
            ),
        )
        for recording in test_set.recordings
    ]
    return import_clips(clips, output, {"format": "testset", "name": test_set.name}, test_set.sha256)


def _synth(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.corpus import read_corpus
    from hikari_agent.training.stages.resumable import report_lines
    from hikari_agent.training.stages.synth import Plan, synthesise

    forbidden = {s.text or "" for corpus in arguments.exclude for cut in read_corpus(corpus) for s in cut.supervisions}
    texts: tuple[str, ...] = ()
    if arguments.texts:
        lines = arguments.texts.read_text(encoding="utf-8").splitlines()
        texts = tuple(" ".join(line.split()) for line in lines if line.strip())
        if not texts:
            raise ValueError(f"{arguments.texts} has no sentence in it: give one a line")
    plan = Plan(
        arguments.seed, arguments.sentences, arguments.held_out_voices, tuple(arguments.engines.split(",")),
        tuple(arguments.pause_s), frozenset(forbidden), texts,
    )  # fmt: skip
    return report_lines(synthesise(plan, arguments.recordings, arguments.output, arguments.jobs))


def _transcribe(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages.resumable import report_lines
    from hikari_agent.training.stages.transcribe import Recogniser, transcribe

    recogniser = Recogniser(
        arguments.model, arguments.language, arguments.keep_text, arguments.min_match, arguments.beam,
        arguments.compute_type, arguments.num_threads,
    )  # fmt: skip
    report = transcribe(arguments.source, arguments.output, recogniser, arguments.jobs)
    figures = report["figures"]
    matched = [f"{figures['n_matched']} of {figures['n_words']} words recognised"] if "n_matched" in figures else []
    return [*report_lines(report), *matched]


def _translate(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages import translate
    from hikari_agent.training.stages.resumable import report_lines

    if arguments.translations:
        if arguments.base_url or arguments.model or arguments.to:
            raise ValueError("--translations is instead of --base-url, --model and --to: give one or the other")
        return report_lines(translate.translate_from_file(arguments.source, arguments.output, arguments.translations))
    if not (arguments.base_url and arguments.model and arguments.to):
        raise ValueError("translate needs --base-url, --model and --to, or --translations with a file")
    from testsets.manifest import cache_folder

    service = translate.Service(
        arguments.base_url, arguments.model, os.environ.get(arguments.key_variable) or "none", arguments.timeout_s,
        arguments.retries,
    )  # fmt: skip
    cache = arguments.cache or cache_folder() / "translations.sqlite"
    languages = arguments.to.split(",")
    report = translate.translate(arguments.source, arguments.output, service, languages, cache, arguments.concurrency)
    prices = translate.Prices(*arguments.prices) if arguments.prices else None
    return [*report_lines(report), *translate.cost_lines(report, prices)]


def _align(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages.align import align, link_lines
    from hikari_agent.training.stages.resumable import report_lines

    parallel = {}
    for item in arguments.parallel or ():
        language, equals, path = item.partition("=")
        if not equals:
            raise ValueError(f"--parallel '{item}': expected LANGUAGE=FILE, such as de=pairs.tsv.gz")
        parallel[language] = Path(path)
    languages = arguments.languages.split(",") if arguments.languages else None
    report = align(arguments.source, arguments.output, arguments.aligner, languages, parallel)
    return [*report_lines(report), *link_lines(report)]


def _interleave(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages.interleaving import figure_lines, interleave_corpus
    from hikari_agent.training.stages.resumable import report_lines

    report = interleave_corpus(
        arguments.source, arguments.output, arguments.tokenizer, arguments.dilation, arguments.jobs
    )
    return [*report_lines(report), *figure_lines(report)]


def _shards(arguments: argparse.Namespace) -> list[str]:
    from hikari_agent.training.stages.resumable import report_lines
    from hikari_agent.training.stages.shards import write_shards

    report = write_shards(
        arguments.source, arguments.output, arguments.format, arguments.shard_size, arguments.seed, arguments.jobs
    )
    return [*report_lines(report), f"{report['figures']['n_shards']} shards"]


def _add_stages(stages: Any) -> None:
    """One subparser for each stage, with its function as `stage`."""

    def stage(
        name: str, function: Callable[[argparse.Namespace], list[str]], text: str, source: str
    ) -> Callable[..., Any]:
        parser = stages.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        parser.add_argument("source", type=Path, metavar="IN", help=source)
        parser.add_argument("output", type=Path, metavar="OUT", help="new folder for the result")
        parser.set_defaults(stage=function)
        add_common_arguments(parser)
        return parser.add_argument

    add = stage("import", _import, "recordings and what is known of them become a corpus",
                "folder of recordings; with --format testset its name (tiny) or folder")  # fmt: skip
    add("--format", choices=FORMATS, required=True,
        help="ctm: audio and word times; textgrid: audio and ID.TextGrid; text: audio and ID.txt, a sentence a line; "
        "lhotse: manifests; testset: one of the project's")  # fmt: skip
    add("--language", help="code of what is spoken, such as en (needed but for lhotse and testset)")
    add("--tier", default="words", help="tier of the TextGrids that holds the words (default: words)")

    parser = stages.add_parser("synth", help=(text := "synthetic talks with exact word times and gold alignments"),
                               description=f"{text[0].upper()}{text[1:]}.")  # fmt: skip
    parser.add_argument("output", type=Path, metavar="OUT", help="new folder for the corpus")
    parser.set_defaults(stage=_synth)
    add_common_arguments(parser)
    add = parser.add_argument
    add("--recordings", type=int, required=True, metavar="N", help="talks to make, one speaker each")
    add("--sentences", type=int, default=10, metavar="N", help="sentences a talk (default: 10)")
    add("--seed", type=int, default=0, help="of speakers, sentences and pauses (default: 0)")
    add("--held-out-voices", action="store_true", help="speakers that training never hears (default: the others)")
    add(
        "--engines",
        default="espeak",
        metavar="NAME,…",
        help="of espeak, flite, piper; each as likely (default: espeak)",
    )
    add(
        "--pause-s", type=float, nargs=2, default=[0.15, 0.9], metavar="S", help="between sentences (default: 0.15 0.9)"
    )
    add("--texts", type=Path, metavar="FILE", help="real sentences to say, one a line (default: the grammar's)")
    add("--exclude", type=Path, action="append", default=[], metavar="CORPUS", help="whose sentences must not be said")
    _add_jobs(add)

    add = stage("transcribe", _transcribe, "what is said, in sentences, and when each word ends", "corpus folder")
    add("--model", required=True, help="Whisper: CTranslate2 or Hugging Face folder, or a name faster-whisper knows")
    add("--language", help="code of what is spoken (default: the corpus's, else as detected)")
    add("--keep-text", action="store_true", help="time the sentences the corpus has (default: write new ones)")
    add("--min-match", type=float, default=0.5, metavar="SHARE",
        help="with --keep-text, drop recordings with fewer words recognised (default: 0.5)")  # fmt: skip
    add("--beam", type=int, default=5, help="beam width (default: 5)")
    add("--compute-type", default="int8", help="CTranslate2's number format (default: int8)")
    add("--num-threads", type=int, default=1, metavar="N", help="CPU threads a job (default: 1)")
    _add_jobs(add)

    add = stage(
        "translate", _translate, "every sentence in other languages, four sentences of context", "corpus folder"
    )
    add("--base-url", metavar="URL", help="of an OpenAI-compatible server, such as http://localhost:8000/v1")
    add("--model", help="name the server knows the model by")
    add("--to", metavar="LANG,…", help="languages to translate into, such as de,ja")
    add(
        "--key-variable",
        default="OPENAI_API_KEY",
        metavar="NAME",
        help="environment variable of the key (default: OPENAI_API_KEY)",
    )
    add("--concurrency", type=int, default=8, metavar="N", help="recordings at a time (default: 8)")
    add("--retries", type=int, default=6, metavar="N", help="tries again after 429, 5xx, lost connections (default: 6)")
    add("--timeout-s", type=float, default=60.0, metavar="S", help="longest wait for an answer, s (default: 60)")
    add(
        "--cache",
        type=Path,
        metavar="FILE",
        help="SQLite file of answers (default: translations.sqlite in the user cache)",
    )
    add("--prices", type=float, nargs=2, metavar=("IN", "OUT"), help="of a million prompt and completion tokens")
    add(
        "--translations",
        type=Path,
        metavar="FILE",
        help=".tsv or .jsonl with `source` and languages, instead of a server",
    )

    add = stage("align", _align, "links between source words and those of the translations", "corpus folder")
    add(
        "--aligner",
        default="systran",
        help="systran, eflomal, simalign, or gold: the links there are (default: systran)",
    )
    add("--languages", metavar="LANG,…", help="translations to align (default: all)")
    add(
        "--parallel",
        action="append",
        metavar="LANG=FILE",
        help="more text to learn from: source TAB translation, .gz too",
    )

    add = stage("interleave", _interleave, "token ids and base release times of every written word", "corpus folder")
    add("--tokenizer", type=Path, required=True, metavar="DIR", help="folder with Whisper's tokenizer.json")
    add("--dilation", type=int, default=4, help="encoder frames of 20 ms a slot, for the report (default: 4)")
    _add_jobs(add)

    add = stage("shards", _shards, "shuffled lhotse Shar shards at 16 kHz for training", "corpus folder")
    add("--format", choices=("wav", "flac", "opus"), default="flac", help="of the audio (default: flac)")
    add("--shard-size", type=int, default=100, metavar="N", help="recordings a shard (default: 100)")
    add("--seed", type=int, default=0, help="of the shuffling (default: 0)")
    _add_jobs(add)


def _add_jobs(add: Callable[..., Any]) -> None:
    add("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")


def _run(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "jobs", 1) < 1 or getattr(arguments, "concurrency", 1) < 1:
        raise ValueError("--jobs and --concurrency are 1 or more")
    for line in arguments.stage(arguments):
        print(line)
    print(arguments.output)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one stage; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.prepare",
        description="Make training shards out of speech, a stage at a time; each can be stopped and started again. "
        "Example: python -m scripts.prepare import tiny out/corpus/1-import --format testset",
    )
    _add_stages(parser.add_subparsers(title="stages", metavar="STAGE", required=True))
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
