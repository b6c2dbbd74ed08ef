"""A test set as data: recordings, their segments and references, with checksums.

A manifest is one JSON file, `manifest.json`, beside the audio it describes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testsets.files import file_sha256, write_whole

HERE = Path(__file__).parent


def cache_folder() -> Path:
    """The folder for what is built or fetched once: models/NAME and testsets/NAME (follows XDG_CACHE_HOME)."""
    try:
        import platformdirs
    except ImportError as error:
        raise ImportError(
            "test sets and models need platformdirs: pip install -e '.[score,plot,whisper-base]'"
        ) from error
    return platformdirs.user_cache_path("hikari-simulst")


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording with its transcript and its translations by language code."""

    offset_ms: float
    duration_ms: float
    source: str
    targets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """One audio file, heard from start to end; `audio` is relative to the manifest's folder."""

    id: str
    audio: str
    sha256: str
    duration_ms: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class TestSet:
    """Recordings in a fixed order, in one source language."""

    __test__ = False  # the name starts with Test: not a test case for pytest

    name: str
    source_language: str
    licence: str
    origin: str
    recordings: tuple[Recording, ...]
    root: Path

    @property
    def sha256(self) -> str:
        """Checksum of everything but the place it lies in: equal checksums are equal test sets."""
        content = {k: v for k, v in asdict(self).items() if k != "root"}
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def audio_path(self, recording: Recording) -> Path:
        return self.root / recording.audio

    def references(self, language: str) -> dict[str, list[str]]:
        """Reference lines by recording id, one a segment; the source language gives the transcript.

        Raises KeyError if a segment has no translation into `language`.
        """
        if language == self.source_language:
            return {r.id: [s.source for s in r.segments] for r in self.recordings}
        missing = [r.id for r in self.recordings for s in r.segments if language not in s.targets]
        if missing:
            raise KeyError(
                f"test set '{self.name}' has no '{language}' for {len(missing)} segments, the first in recording "
                f"'{missing[0]}'. Languages: {', '.join(self.languages())}"
            )
        return {r.id: [s.targets[language] for s in r.segments] for r in self.recordings}

    def languages(self) -> list[str]:
        """Languages that have a reference for every segment, the source language first."""
        segments = [s for r in self.recordings for s in r.segments]
        complete = set.intersection(*(set(s.targets) for s in segments)) if segments else set()
        return [self.source_language, *sorted(complete)]

    def verify(self) -> None:
        """Check every audio file against its checksum.

        Raises FileNotFoundError or ValueError naming the file.
        """
        for recording in self.recordings:
            path = self.audio_path(recording)
            if not path.is_file():
                raise FileNotFoundError(f"{path} of test set '{self.name}' is missing: build or fetch the set again")
            found = file_sha256(path)
            if found != recording.sha256:
                raise ValueError(
                    f"{path}: sha256 is {found[:12]}…, the manifest of test set '{self.name}' says "
                    f"{recording.sha256[:12]}…: the file was changed or cut, build or fetch the set again"
                )

    def select(self, ids: Sequence[str]) -> TestSet:
        """The same set with the named recordings only. Raises KeyError for an unknown id."""
        known = {r.id: r for r in self.recordings}
        for name in ids:
            if name not in known:
                raise KeyError(f"no recording '{name}' in test set '{self.name}'. Known: {', '.join(known)}")
        return TestSet(**{**self.__dict__, "recordings": tuple(known[name] for name in ids)})

    def write_simuleval_inputs(self, folder: Path, language: str) -> None:
        """Write what SimulEval and StreamLAAL read: source.txt, target.txt, references.txt, segments.yaml.

        source.txt and target.txt have one line a recording (the references joined), references.txt and
        segments.yaml (wav, offset and duration in seconds) one a segment.
        """
        import yaml

        references = self.references(language)
        folder.mkdir(parents=True, exist_ok=True)
        wavs = [str(self.audio_path(r).resolve()) for r in self.recordings]
        whole = [" ".join(references[r.id]) for r in self.recordings]
        lines = [line for r in self.recordings for line in references[r.id]]
        spans = [
            {"wav": Path(r.audio).name, "offset": s.offset_ms / 1000, "duration": s.duration_ms / 1000}
            for r in self.recordings
            for s in r.segments
        ]
        for name, content in (("source.txt", wavs), ("target.txt", whole), ("references.txt", lines)):
            (folder / name).write_text("".join(line + "\n" for line in content), encoding="utf-8")
        (folder / "segments.yaml").write_text(yaml.safe_dump(spans, default_flow_style=None), encoding="utf-8")


def save(test_set: TestSet) -> Path:
    """Write `manifest.json` into the set's root, whole or not at all; returns its path."""
    content = {k: v for k, v in asdict(test_set).items() if k != "root"}
    path = test_set.root / "manifest.json"
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return path


def load(name: str, root: Path | None = None) -> TestSet:
    """The test set `name`: shipped with the project, built in the cache, or a folder with a manifest.json.

    `root` replaces the folder the name would be looked up in. Raises KeyError for an unknown name and ValueError
    for a manifest that cannot be read.
    """
    candidates = [root] if root else [HERE / name, cache_folder() / "testsets" / name, Path(name)]
    for folder in candidates:
        if (folder / "manifest.json").is_file():
            return _read(folder / "manifest.json")
    known = sorted(
        {p.parent.name for base in (HERE, cache_folder() / "testsets") for p in base.glob("*/manifest.json")}
    )
    raise KeyError(
        f"no test set '{name}'. Here: {', '.join(known)}. Others are built by `python -m scripts.fetch NAME` "
        "(see its --help), or give a folder that holds a manifest.json"
    )


def _read(path: Path) -> TestSet:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        recordings = tuple(
            Recording(**{**r, "segments": tuple(Segment(**s) for s in r["segments"])}) for r in content["recordings"]
        )
        return TestSet(**{**content, "recordings": recordings, "root": path.parent})
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a test set manifest ({error}): build or fetch the set again") from error
