"""A corpus on disk: a folder whose cuts.jsonl.gz holds lhotse cuts, one a recording, with a supervision for each sentence.

Every stage of `scripts.prepare` reads one and writes another. What a sentence holds grows on the way: `text` and
`language`; `alignment["word"]`, one item for each blank-separated word of the text, in seconds from the cut's start;
`custom["translations"]`, text by language; `custom["units"]`, the words of each translation that `custom["links"]`
count, [source word, unit]; and `custom["targets"]`, the token ids of each written word and its base release time.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from lhotse import CutSet, MonoCut, SupervisionSegment
    from lhotse.supervision import AlignmentItem

CUTS = "cuts.jsonl.gz"
NEEDS = ("words", "translations", "links", "targets")  # what a stage may ask of every sentence
TOLERANCE_S = 0.001  # times are stored in milliseconds or finer
STAGE_OF = {"words": "transcribe", "translations": "translate", "links": "align", "targets": "interleave"}


class WordTargets(TypedDict):
    """One sentence in one language: token ids of each word, and its base release time in s (None: with the word before)."""

    ids: list[list[int]]
    ends: list[float | None]


class _CutsOnDisk:
    """The checked cuts of a corpus, read anew each time they are gone through; one is in memory at a time."""

    def __init__(self, folder: Path, needs: Sequence[str]) -> None:
        self.folder = folder
        self.needs = needs

    def __iter__(self) -> Iterator[MonoCut]:
        return (cut for cut, _ in read_lines(self.folder, self.needs))


def read_corpus(folder: Path, needs: Sequence[str] = ()) -> CutSet:
    """The cuts of a corpus folder as a lazy CutSet, with absolute paths; each is checked when it is reached.

    `needs` are those of `NEEDS` that every sentence must have. Raises FileNotFoundError or ValueError for a folder that
    is none; going through it raises ValueError naming the line, the recording, the sentence and what to do.
    """
    from lhotse import CutSet

    assert set(needs) <= set(NEEDS)
    check_corpus_folder(folder)
    return CutSet(_CutsOnDisk(folder, needs))


def read_lines(folder: Path, needs: Sequence[str] = ()) -> Iterator[tuple[MonoCut, bytes]]:
    """The cuts of a corpus as `read_corpus` gives them, each with the line of JSON it was read from."""
    ids = set()
    for number, line in enumerate(_lines(folder / CUTS), 1):
        where = f"{folder / CUTS}, line {number}"
        cut = parse_cut(line, where)
        if cut.id in ids:
            raise ValueError(f"{where}: recording {cut.id} is there twice: give each a name of its own")
        ids.add(cut.id)
        check_cut(cut, needs, where)
        yield with_audio_from(cut, folder), line


def check_corpus_folder(folder: Path) -> None:
    """Raise FileNotFoundError or ValueError if `folder` is no corpus."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder}: a corpus is made by `python -m scripts.prepare import`")
    if not (folder / CUTS).is_file():
        made = folder / "cuts.partial.jsonl"
        what = (
            "the stage that writes it was stopped: start it again"
            if made.is_file()
            else "make one: scripts.prepare import"
        )
        raise ValueError(f"{folder} is no corpus, it has no {CUTS}: {what}")


def write_corpus(cuts: Iterable[MonoCut], folder: Path) -> int:
    """Write `folder`/cuts.jsonl.gz, whole or not at all; returns the number of cuts.

    Paths of audio in the folder or beside it become relative, so that they may be moved together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    n_cuts = 0
    with whole_file(folder / CUTS) as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
        for cut in cuts:
            file.write((json.dumps(_relative(stored(cut), folder.resolve()), ensure_ascii=False) + "\n").encode())
            n_cuts += 1
    return n_cuts


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file that is flushed and takes the place of `path` when the block ends well, and is removed if not."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def count_cuts(folder: Path) -> int:
    """How many lines cuts.jsonl.gz has. Raises ValueError if it is damaged."""
    return sum(1 for _ in _lines(folder / CUTS))


def parse_cut(line: bytes | str, where: str) -> MonoCut:
    """A cut out of its JSON. Raises ValueError, beginning with `where`, if it is none."""
    from lhotse import MonoCut
    from lhotse.serialization import deserialize_item

    try:
        cut = deserialize_item(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where}: no lhotse cut ({error}): make the corpus again") from error
    if not isinstance(cut, MonoCut):
        raise ValueError(
            f"{where}: a {type(cut).__name__}, expected a MonoCut: write each channel as a recording of its own"
        )
    return cut


def stored(cut: MonoCut) -> dict[str, Any]:
    """The cut as the dictionary that lhotse stores; its own `to_dict` copies every word on the way, which takes long."""
    from lhotse.utils import fastcopy

    content = fastcopy(cut, supervisions=[]).to_dict()
    content["supervisions"] = []
    for sentence in cut.supervisions:
        content["supervisions"].append(fastcopy(sentence, alignment=None, custom=None).to_dict())
        if sentence.alignment:
            content["supervisions"][-1]["alignment"] = {
                kind: [list(item) for item in items] for kind, items in sentence.alignment.items()
            }
        if sentence.custom:
            content["supervisions"][-1]["custom"] = sentence.custom
    return content


def check_cut(cut: MonoCut, needs: Sequence[str] = (), where: str = "corpus") -> None:
    """Raise ValueError, beginning with `where`, if a cut is not as this module's docstring says."""
    where = f"{where}, recording {cut.id}"
    if cut.recording is None:
        raise ValueError(f"{where}: it has no audio: import the corpus with its recordings")
    latest_start = latest_end = 0.0
    for sentence in cut.supervisions:
        place = f"{where}, sentence {sentence.id}"
        if not (sentence.text or "").strip():
            raise ValueError(f"{place}: an empty transcript: leave the sentence out")
        if not sentence.language:
            raise ValueError(f"{place}: no language: import the corpus again with --language")
        items = words(sentence)
        if items:
            _check_words(sentence, place)
        for i, item in enumerate(items):
            backwards = item.start < latest_start - TOLERANCE_S or item.end < latest_end - TOLERANCE_S
            if backwards or item.duration < 0:
                raise ValueError(
                    f"{place}: word {i} '{item.symbol}' is at {item.start:.3f} to {item.end:.3f} s, behind one at "
                    f"{latest_start:.3f} to {latest_end:.3f} s: word times must not run backwards. Sort them, put speakers "
                    "who talk at once into recordings of their own, or transcribe anew"
                )
            latest_start, latest_end = item.start, item.end
        if latest_end > cut.duration + 0.1:
            raise ValueError(
                f"{place}: it ends at {latest_end:.2f} s, the recording at {cut.duration:.2f} s: wrong audio?"
            )
        _check_translations(sentence, place)
        for need in needs:
            if not (items if need == "words" else need in (sentence.custom or {})):
                raise ValueError(f"{place}: it has no {need}: run `python -m scripts.prepare {STAGE_OF[need]}` first")


def words(sentence: SupervisionSegment) -> list[AlignmentItem]:
    """The sentence's words with their times in s from the cut's start; none if it is not timed yet."""
    return (sentence.alignment or {}).get("word", [])


def translations(sentence: SupervisionSegment) -> dict[str, str]:
    """The sentence's text by target language."""
    return (sentence.custom or {}).get("translations", {})


def units(sentence: SupervisionSegment) -> dict[str, list[str]]:
    """The words of each translation, in a language without blanks the pieces that make it up."""
    return (sentence.custom or {}).get("units", {})


def links(sentence: SupervisionSegment) -> dict[str, list[tuple[int, int]]]:
    """Which source word (first) each unit (second) of a translation was made from, counted from 0."""
    return {
        language: [(i, j) for i, j in pairs] for language, pairs in (sentence.custom or {}).get("links", {}).items()
    }


def targets(sentence: SupervisionSegment) -> dict[str, WordTargets]:
    """What is to be written for the sentence, by language, its own among them."""
    return (sentence.custom or {}).get("targets", {})


def custom_with(sentence: SupervisionSegment, **more: Any) -> dict[str, Any]:
    """The sentence's custom fields with `more`; a value of None takes the field out."""
    merged = {**(sentence.custom or {}), **more}
    return {name: value for name, value in merged.items() if value is not None}


def language_name(code: str) -> str:
    """The English name of one of Whisper's languages. Raises ValueError for an unknown code."""
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    if code not in LANGUAGES:
        raise ValueError(f"unknown language '{code}'. Known: {', '.join(sorted(LANGUAGES))}")
    return LANGUAGES[code].title()


def with_audio_from(cut: MonoCut, folder: Path) -> MonoCut:
    """The same cut (changed in place) with the paths of its audio, relative to `folder`, made absolute."""
    for source in cut.recording.sources:
        if source.type == "file":
            source.source = os.path.normpath(folder.absolute() / source.source)
    return cut


def _relative(cut: dict[str, Any], folder: Path) -> dict[str, Any]:
    for source in cut["recording"]["sources"]:
        if source["type"] == "file":
            path = Path(source["source"]).resolve()
            if path.is_relative_to(folder.parent):
                source["source"] = Path(os.path.relpath(path, folder)).as_posix()
    return cut


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it and make the corpus again") from error


def _check_words(sentence: SupervisionSegment, place: str) -> None:
    expected, found = (sentence.text or "").split(), [item.symbol for item in words(sentence)]
    if expected != found:
        differ = [i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b]
        i = differ[0] if differ else min(len(expected), len(found))
        raise ValueError(
            f"{place}: {len(expected)} words of text, {len(found)} with times; the first that differs is word {i}, "
            f"'{''.join(expected[i : i + 1])}' and '{''.join(found[i : i + 1])}'. Time the words of the text again: "
            "scripts.prepare transcribe --keep-text"
        )


def _check_translations(sentence: SupervisionSegment, place: str) -> None:
    n_words = len((sentence.text or "").split())
    if sentence.language in translations(sentence):
        raise ValueError(f"{place}: a translation into {sentence.language}, which it is in already: take it out")
    for language, text in translations(sentence).items():
        pieces = units(sentence).get(language)
        if pieces is not None and "".join(pieces) != "".join(text.split()) and "".join(pieces) != text:
            raise ValueError(f"{place}: its {language} units do not make up its translation: align it again")
        for i, j in links(sentence).get(language, []):
            if pieces is None or not (0 <= i < n_words and 0 <= j < len(pieces)):
                raise ValueError(
                    f"{place}: link ({i}, {j}) into {language} is beyond its {n_words} source words and "
                    f"{len(pieces or ())} units: align it again"
                )
    for language, target in targets(sentence).items():
        if len(target["ids"]) != len(target["ends"]):
            raise ValueError(
                f"{place}: {len(target['ids'])} words and {len(target['ends'])} times in {language}: interleave it again"
            )
