"""Rebuild the embedded checkpoint from nothing: `python -m scripts.embedded --output out/embedded` (`make train`).

Synthetic talks, a vocabulary, shards, four stages of training, the WAIT penalty chosen on the development talks. Every
step is one of the project's own commands, is skipped when its result is there, and goes on when it was killed. What it
makes, OUTPUT/hikari-tiny and OUTPUT/tiny-talks, goes to hikari_agent/checkpoints and to testsets by hand.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.cli import add_common_arguments, report_errors
from scripts.shipping import LANGUAGES, ship
from testsets.files import write_whole

logger = logging.getLogger(__name__)

WORD_LIST = Path("/usr/share/dict/words")  # Debian: wamerican
SIZES = {
    "d_model": 192, "encoder_layers": 4, "decoder_layers": 3, "encoder_attention_heads": 3, "decoder_attention_heads": 3,
    "encoder_ffn_dim": 768, "decoder_ffn_dim": 768, "max_source_positions": 1280, "max_target_positions": 320,
    "encoder_is_causal": True, "decoder_time_dilation": 4, "frontend": "causal",
}  # fmt: skip
VOCABULARY = 3200  # bytes and merges
# What every stage of training hears: two processes of one thread each train faster on two cores than one of two.
COMMON = (
    "--precision bf16-weights --accumulation 1 --beta2 0.98 --weight-decay 0.01 --gain-db -12 4 --noise-share 0.7 "
    "--snr-db 12 40 --num-threads 1 --save-steps 250 --logging-steps 25"
)
# glibc gives torch's big blocks back after each use and gets them anew, zeroed page by page: kept, a step is 14 % shorter.
ALLOCATOR = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592"


@dataclass(frozen=True)
class Corpus:
    """A synthetic corpus: options of `scripts.prepare synth`."""

    name: str
    options: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """A stage of training: what it begins with ("" is random weights), its shards, and options of `scripts.train`."""

    name: str
    start: str
    shards: str
    options: str


TALKS = (
    Corpus("talks-known", "--recordings 6 --sentences 15 --seed 9001 --pause-s 0.3 1.2"),
    Corpus("talks-unheard", "--recordings 6 --sentences 15 --seed 9002 --pause-s 0.3 1.2 --held-out-voices"),
)
DEVELOPMENT = (
    Corpus("dev-known", "--recordings 12 --sentences 5 --seed 8001 --pause-s 0.3 1.2"),
    Corpus("dev-unheard", "--recordings 12 --sentences 5 --seed 8002 --pause-s 0.3 1.2 --held-out-voices"),
)
HELD_BACK = tuple(corpus.name for corpus in (*TALKS, *DEVELOPMENT))
SOUNDS = Corpus("sounds", "--recordings 2120 --sentences 10 --seed 77")
SENTENCES = Corpus("sentences", "--recordings 4000 --sentences 10 --seed 1", HELD_BACK)
MORE = Corpus("more", "--recordings 5000 --sentences 10 --seed 2", HELD_BACK)

STAGES = (
    # What sounds are: random words, phoneme labels only.
    Stage("sounds", "", "sounds", "--tasks= --section-s 6.4 --batch-s 64 --phoneme-weight 1 --steps 600 --peak 2e-3 "
          "--warmup-steps 100 --decay constant --seed 1"),
    # Short sections, so that the decoder finds the alignment.
    Stage("short", "sounds", "sentences", "--all-tasks --section-s 5.12 6.4 --batch-s 38.4 --at-sentence 0.7 "
          "--phoneme-weight 0.3 --steps 1500 --peak 2e-3 --warmup-steps 150 --decay constant --seed 2"),
    # Sections up to a whole window, the rate falling to zero.
    Stage("base", "short", "sentences", "--all-tasks --section-s 6.4 6.4 12.8 25.6 --batch-s 51.2 --at-sentence 0.5 "
          "--phoneme-weight 0.2 --steps 2150 --peak 1.4e-3 --warmup-steps 50 --decay linear --seed 3"),
    # The same again and longer, on sentences of its own.
    Stage("more", "base", "more", "--all-tasks --section-s 6.4 6.4 12.8 25.6 --batch-s 51.2 --at-sentence 0.5 "
          "--phoneme-weight 0.2 --steps 7500 --peak 1.4e-3 --warmup-steps 100 --decay linear --seed 4"),
)  # fmt: skip


def run(*command: str) -> None:
    """One of the project's commands in a process of its own. Raises CalledProcessError if it fails."""
    logger.info("python -m %s", " ".join(command))
    environment = {"GLIBC_TUNABLES": ALLOCATOR, **os.environ}
    subprocess.run([sys.executable, "-m", *command], check=True, env=environment)


def write_random_words(path: Path, n_lines: int = 8000, seed: int = 77) -> None:
    """Lines of 4 to 11 random English words: every sound of the language, and no sentence of it."""
    if not WORD_LIST.is_file():
        raise FileNotFoundError(f"no word list {WORD_LIST}: apt-get install wamerican")
    lines = WORD_LIST.read_text(encoding="utf-8").split("\n")
    words = [w for w in lines if w.isascii() and w.isalpha() and w.islower() and 2 < len(w) < 13]
    rng = random.Random(seed)
    write_whole(path, "".join(" ".join(rng.sample(words, k=rng.randint(4, 11))) + ".\n" for _ in range(n_lines)))


def write_vocabulary(folder: Path, config: Path) -> None:
    """The tokenizer of 40,000 sentences of the grammar, and the config of a model that has its size."""
    import itertools

    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training import grammar
    from hikari_agent.training.vocabulary import train_vocabulary, unit_text

    def units() -> Iterator[str]:
        for sentence in itertools.islice(grammar.sentences(5), 40_000):
            yield from (unit_text(word, "en") for word in sentence.source)
            for language in grammar.LANGUAGES:
                yield from (unit_text(word.text, language) for word in sentence.targets[language])

    train_vocabulary(units(), VOCABULARY, LANGUAGES, folder)
    ids = Vocabulary.from_folder(folder).ids
    end = ids["<|endoftext|>"]
    special = {"pad_token_id": end, "bos_token_id": end, "eos_token_id": end}
    special |= {"decoder_start_token_id": ids["<|startoftranscript|>"], "vocab_size": len(ids)}
    write_whole(config, json.dumps(SIZES | special, indent=1) + "\n")


def make_shards(corpus: Corpus, output: Path, jobs: int, more: Sequence[str] = ()) -> None:
    """A corpus spoken, interleaved and put into shards, `output`/shards/NAME."""
    spoken, ready = output / "corpora" / corpus.name, output / "interleaved" / corpus.name
    shards = output / "shards" / corpus.name
    excluded = [part for name in corpus.exclude for part in ("--exclude", str(output / "corpora" / name))]
    run("scripts.prepare", "synth", str(spoken), *corpus.options.split(), *excluded, *more, "--jobs", str(jobs))
    vocabulary = str(output / "vocabulary")
    run("scripts.prepare", "interleave", str(spoken), str(ready), "--tokenizer", vocabulary, "--jobs", str(jobs))
    run(
        "scripts.prepare",
        "shards",
        str(ready),
        str(shards),
        "--format",
        "wav",
        "--shard-size",
        "40",
        "--jobs",
        str(jobs),
    )


def train(stage: Stage, output: Path, processes: int) -> None:
    """One stage, unless its model is there."""
    folder = output / "training" / stage.name
    if (folder / "model" / "tokenizer.json").is_file():
        logger.info("%s is trained already", folder)
        return
    start = ["--config", str(output / "config.json"), "--vocabulary", str(output / "vocabulary")]
    if stage.start:
        start = ["--init", str(output / "training" / stage.start / "model")]
    command = ["torch.distributed.run", "--nproc-per-node", str(processes), "-m"] if processes > 1 else []
    development = [
        "--dev",
        str(output / "shards" / "dev-known"),
        "--dev-penalties",
        "0",
        "1",
        "--evaluate-steps",
        "500",
    ]
    run(
        *command, "scripts.train", *start, "--shards", str(output / "shards" / stage.shards), "--output", str(folder),
        *COMMON.split(), *stage.options.split(), *(development if stage.start else []),
    )  # fmt: skip


def recipe() -> dict[str, object]:
    """All that the checkpoint depends on, for the file beside it."""
    return {
        "sizes": SIZES, "vocabulary": VOCABULARY, "common": COMMON, "stages": STAGES,
        "corpora": (*TALKS, *DEVELOPMENT, SOUNDS, SENTENCES, MORE),
    }  # fmt: skip


def _run(arguments: argparse.Namespace) -> int:
    from scripts.talks import write_test_set

    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    if not (output / "config.json").is_file():
        write_vocabulary(output / "vocabulary", output / "config.json")
    for corpus in (*TALKS, *DEVELOPMENT):
        make_shards(corpus, output, arguments.jobs)
    talks = output / "tiny-talks"
    if not (talks / "manifest.json").is_file():
        write_test_set([output / "corpora" / corpus.name for corpus in TALKS], talks)
    words = output / "words.txt"
    if not words.is_file():
        write_random_words(words)
    make_shards(SOUNDS, output, arguments.jobs, ["--texts", str(words)])
    for corpus in (SENTENCES, MORE):
        make_shards(corpus, output, arguments.jobs)
    for stage in STAGES:
        train(stage, output, arguments.processes)
    final = output / "hikari-tiny"
    if not (final / "README.md").is_file():
        model = output / "training" / STAGES[-1].name / "model"
        development = [output / "shards" / corpus.name for corpus in DEVELOPMENT]
        logs = {stage.name: output / "training" / stage.name for stage in STAGES}
        ship(model, final, development, talks, logs, recipe(), output / "runs")
    print(final)
    print(talks)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; 0, or 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.embedded",
        description="Rebuild the embedded checkpoint and the test set tiny-talks from nothing, in about two hours on two "
        "cores. Example: python -m scripts.embedded --output out/embedded",
    )
    add = parser.add_argument
    add("--output", type=Path, default=Path("out/embedded"), metavar="DIR", help="(default: out/embedded)")
    add("--jobs", type=int, default=2, metavar="N", help="processes that speak and encode (default: 2)")
    add("--processes", type=int, default=2, metavar="N", help="processes that train, of one thread each (default: 2)")
    add_common_arguments(parser)
    return report_errors(_run, parser.parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
