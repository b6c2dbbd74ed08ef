"""Stage `import`: recordings with what is known about them, from other tools' formats, become a corpus.

A reader turns a folder into clips: `ctm` (audio and word times), `textgrid` (audio and Praat or MFA files), `text` (audio and
transcripts without times) and `lhotse` (manifests). A transcript is ID.txt beside ID's audio, a sentence a line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audio import check_audio_file
from ..corpus import CUTS, check_cut, language_name, write_corpus, write_text
from .resumable import REPORT, finished_report, key_of
from .sentences import TimedText, split, times_for
from .transcribe import supervision

if TYPE_CHECKING:
    from lhotse import MonoCut

logger = logging.getLogger(__name__)

AUDIO = (".wav", ".flac", ".ogg", ".opus", ".mp3")
SILENCES = ("", "<eps>", "sil", "sp", "spn", "<sil>", "<p:>")
PAUSE_S = 1.0  # words without a transcript: a pause this long ends a sentence too
SKETCH = f"audio files ({', '.join(AUDIO)})"


@dataclass(frozen=True)
class Sentence:
    """A sentence as given: its text, where it lies (s; None: unknown), its words' times if known, its translations."""

    text: str
    span_s: tuple[float, float] | None = None
    words: tuple[TimedText, ...] = ()
    translations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Clip:
    """A recording as given. `id` becomes the cut's."""

    id: str
    audio: Path
    language: str
    sentences: tuple[Sentence, ...]


def import_clips(clips: Iterable[Clip], target: Path, settings: dict[str, Any], source: str) -> dict[str, Any]:
    """Write clips as corpus `target`; returns the report. `source` stands for their content: same again, nothing is done.

    Raises FileNotFoundError or ValueError for audio that cannot be read and for times or texts that cannot be right.
    """
    return _write((_cut(clip) for clip in clips), target, settings, source)


def import_folder(source: Path, target: Path, kind: str, language: str | None, tier: str = "words") -> dict[str, Any]:
    """Import a folder of format `kind`; returns the report.

    Raises FileNotFoundError or ValueError naming the file and, where there is one, the line.
    """
    if not source.is_dir():
        raise FileNotFoundError(f"no folder {source}: name the one that holds the recordings or manifests")
    if language is not None:
        language_name(language)
    elif kind != "lhotse":
        raise ValueError(f"--format {kind} says no language: add --language, such as --language en")
    settings = {"format": kind, "language": language, "tier": tier}
    if kind == "lhotse":
        return _write(_manifests(source, language), target, settings, folder_state(source))
    readers: dict[str, Callable[[], Iterator[Clip]]] = {
        "ctm": lambda: _ctm(source, str(language)),
        "textgrid": lambda: _text_grids(source, str(language), tier),
        "text": lambda: _texts(source, str(language)),
    }
    return import_clips(readers[kind](), target, settings, folder_state(source))


def folder_state(folder: Path) -> str:
    """A checksum of the names, sizes and times of a folder's files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    state = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256(json.dumps(state).encode()).hexdigest()


def _write(cuts: Iterable[MonoCut], target: Path, settings: dict[str, Any], source: str) -> dict[str, Any]:
    key = key_of("import", settings, source)
    if report := finished_report(target, key, CUTS):
        return report
    totals: dict[str, Any] = {"n_recordings": 0, "n_sentences": 0, "audio_s": 0.0, "dropped": {}, "figures": {}}

    def checked() -> Iterator[MonoCut]:
        for cut in cuts:
            check_cut(cut, where="import")
            totals["n_recordings"] += 1
            totals["n_sentences"] += len(cut.supervisions)
            totals["audio_s"] += cut.duration
            yield cut

    ready = list(checked())  # an error comes before anything is written
    if not ready:
        raise ValueError(f"nothing to import: expected {SKETCH}, or lhotse manifests with --format lhotse")
    target.mkdir(parents=True, exist_ok=True)
    write_text(target / REPORT, json.dumps({**key, **totals}, ensure_ascii=False, indent=1) + "\n")
    write_corpus(ready, target)
    return {**key, **totals}


def _cut(clip: Clip) -> MonoCut:
    from lhotse import Recording, SupervisionSegment

    check_audio_file(clip.audio)
    recording = Recording.from_file(clip.audio.absolute(), recording_id=clip.id)
    if len(recording.channel_ids or [0]) > 1:
        raise ValueError(
            f"{clip.audio} has {len(recording.channel_ids or [])} channels, expected 1: ffmpeg -i {clip.audio.name} -ac 1 out.wav"
        )
    cut = recording.to_cut()
    cut.id = clip.id
    for number, sentence in enumerate(clip.sentences):
        if sentence.words:
            made = supervision(cut, number, sentence.words, clip.language)
        else:
            start, end = sentence.span_s or (0.0, cut.duration)
            made = SupervisionSegment(f"{clip.id}-{number}", clip.id, start, round(end - start, 3),
                                      text=" ".join(sentence.text.split()), language=clip.language)  # fmt: skip
        if sentence.translations:
            made.custom = {"translations": dict(sentence.translations)}
        cut.supervisions.append(made)
    return cut


def _recordings(folder: Path) -> dict[str, Path]:
    """The audio files under a folder by stem. Raises ValueError if there are none, or two of one stem."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in AUDIO and path.is_file():
            if path.stem in found:
                raise ValueError(f"{found[path.stem]} and {path} have the same name: rename one")
            found[path.stem] = path
    if not found:
        raise ValueError(f"{folder} has no {SKETCH}")
    return found


def _transcript(audio: Path, required: bool = False) -> list[str] | None:
    """The lines of ID.txt beside a recording, None if it is not there."""
    path = audio.with_suffix(".txt")
    if not path.is_file():
        if required:
            raise FileNotFoundError(f"{audio} has no transcript {path.name}: write one, a sentence a line")
        return None
    lines = [" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError(f"{path} is an empty transcript: write a sentence a line, or take {audio.name} out")
    return lines


def _timed_clip(name: str, audio: Path, language: str, words: list[TimedText]) -> Clip:
    """A clip of timed words: the sentences of its transcript, or as punctuation and pauses cut them."""
    lines = _transcript(audio)
    if lines is None:
        sentences = split(words, PAUSE_S)
    else:
        texts = [line.split() for line in lines]
        times, _ = times_for([word for text in texts for word in text], words, words[-1].end_s if words else 0.0)
        ends = [sum(map(len, texts[: i + 1])) for i in range(len(texts))]
        sentences = [times[end - len(text) : end] for text, end in zip(texts, ends, strict=True)]
    return Clip(name, audio, language, tuple(Sentence(" ".join(w.text for w in s), words=tuple(s)) for s in sentences))


def _ctm(folder: Path, language: str) -> Iterator[Clip]:
    """Lines `recording channel start duration word [confidence]` of all .ctm files, in s."""
    recordings = _recordings(folder)
    files = sorted(folder.rglob("*.ctm"))
    if not files:
        raise ValueError(f"{folder} has no .ctm file: expected lines 'recording channel start duration word'")
    words: dict[str, list[TimedText]] = {}
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            fields = line.split()
            if not fields or line.startswith(";;"):
                continue
            where = f"{path}, line {number}"
            try:
                name, start, duration, word = fields[0], float(fields[2]), float(fields[3]), fields[4]
            except (IndexError, ValueError):
                raise ValueError(f"{where} is '{line}', expected 'recording channel start duration word'") from None
            if name not in recordings:
                raise FileNotFoundError(f"{where}: no audio file {name} ({', '.join(AUDIO)}) under {folder}")
            before = words.setdefault(name, [])
            if duration < 0 or (before and start + duration < before[-1].end_s - 0.001):
                raise ValueError(
                    f"{where}: '{word}' ends at {start + duration:.2f} s, the word before it at "
                    f"{before[-1].end_s if before else start:.2f} s: word times must not run backwards. Sort the file"
                )
            before.append(TimedText(word, start, start + duration))
    for name, audio in recordings.items():
        if name in words:
            yield _timed_clip(name, audio, language, words[name])
        else:
            logger.warning("%s: no word in any .ctm, left out", audio)


def _text_grids(folder: Path, language: str, tier: str) -> Iterator[Clip]:
    try:
        import textgrid
    except ImportError as error:
        raise ImportError("TextGrids need the package textgrid: pip install -e '.[train]'") from error
    for name, audio in _recordings(folder).items():
        path = audio.with_suffix(".TextGrid")
        if not path.is_file():
            raise FileNotFoundError(f"{audio} has no {path.name}: align it, or take it out")
        try:
            grid = textgrid.TextGrid.fromFile(str(path))
        except Exception as error:  # the package raises whatever its parsing meets
            raise ValueError(f"{path} is no TextGrid ({error}): write it again") from error
        if tier not in grid.getNames():
            raise ValueError(f"{path} has no tier '{tier}', only {', '.join(grid.getNames())}: name one with --tier")
        marks = [mark for mark in grid.getFirst(tier) if mark.mark.strip() not in SILENCES]
        words = [TimedText(part, float(m.minTime), float(m.maxTime)) for m in marks for part in m.mark.split()]
        if not words:
            raise ValueError(f"{path}: tier '{tier}' is an empty transcript: take {audio.name} out")
        yield _timed_clip(name, audio, language, words)


def _texts(folder: Path, language: str) -> Iterator[Clip]:
    for name, audio in _recordings(folder).items():
        lines = _transcript(audio, required=True) or []
        yield Clip(name, audio, language, tuple(Sentence(line) for line in lines))


def _manifests(folder: Path, language: str | None) -> Iterator[MonoCut]:
    """lhotse's cuts, or recordings with supervisions; a sentence without a language gets `language`."""
    from lhotse import CutSet, RecordingSet, SupervisionSet
    from lhotse.cut import MonoCut

    from ..corpus import with_audio_from

    found = {kind: sorted(folder.glob(f"*{kind}*.jsonl*")) for kind in ("cuts", "recordings", "supervisions")}
    if found["cuts"]:
        cuts = CutSet.from_files(found["cuts"])
    elif found["recordings"] and found["supervisions"]:
        recordings = RecordingSet.from_recordings(
            r for path in found["recordings"] for r in RecordingSet.from_file(path)
        )
        spoken = SupervisionSet.from_segments(
            s for path in found["supervisions"] for s in SupervisionSet.from_file(path)
        )
        cuts = CutSet.from_manifests(recordings=recordings, supervisions=spoken)
    else:
        raise ValueError(f"{folder} has no *cuts*.jsonl(.gz), nor *recordings*.jsonl and *supervisions*.jsonl")
    for cut in cuts:
        if not isinstance(cut, MonoCut) or cut.recording is None:
            raise ValueError(f"{folder}, cut {cut.id}: expected a MonoCut with a recording, got {type(cut).__name__}")
        with_audio_from(cut, folder)
        for source in cut.recording.sources:
            if source.type == "file":
                check_audio_file(source.source)
        cut.supervisions.sort(key=lambda s: s.start)
        for sentence in cut.supervisions:
            sentence.language = sentence.language or language
            sentence.text = " ".join((sentence.text or "").split())
        yield cut
