"""Corpora for the tests of `scripts.prepare`: the LibriVox clips with the word times made by PocketSphinx."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from harness import ROOT

from scripts import prepare

WORDS = ROOT / "tests" / "goldens" / "librivox" / "words.ctm"


def librivox_folder(folder: Path) -> Path:
    """A folder of five recordings, 25 s, and one .ctm, as another tool would leave it."""
    folder.mkdir(parents=True)
    shutil.copyfile(WORDS, folder / "words.ctm")
    for path in sorted((ROOT / "testsets" / "tiny").glob("sense-*.flac")):
        shutil.copyfile(path, folder / path.name)
    return folder


def librivox_corpus(folder: Path) -> Path:
    """Those clips as a corpus."""
    source = librivox_folder(folder / "clips")
    assert prepare.main(["import", str(source), str(folder / "import"), "--format", "ctm", "--language", "en"]) == 0
    return folder / "import"


def rows(folder: Path) -> list[dict]:
    """The cuts of a corpus as they are stored."""
    with gzip.open(folder / "cuts.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def rewrite(folder: Path, cuts: list[dict]) -> None:
    """Put other cuts into a corpus, whatever they are worth."""
    with gzip.open(folder / "cuts.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(cut) + "\n" for cut in cuts)


def small_vocabulary(folder: Path) -> Path:
    """A tokenizer for en, de and ja with a few merges."""
    from hikari_agent.training.vocabulary import train_vocabulary

    text = [word for cut in WORDS.read_text().splitlines() for word in (f" {cut.split()[-1]}", f" ge{cut.split()[-1]}")]
    train_vocabulary(text, 400, ["en", "de", "ja"], folder)
    return folder
