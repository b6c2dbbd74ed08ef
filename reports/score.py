"""Scores: numbers that know how they came about, and all of them for one run against a test set.

`scores.jsonl` in a run folder holds them, one a line.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from reports import quality
from reports.bootstrap import bootstrap_interval
from reports.extras import MissingExtra
from reports.latency import stream_laal
from reports.resegment import ResegmentedSegment, resegment
from reports.runs import Run, RunRecord, read_run
from testsets.files import write_whole
from testsets.manifest import Recording, TestSet

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

ORIGINS = ("measured", "published")


@dataclass(frozen=True)
class Score:
    """A number over `n` items with the 95 % `interval` around it, or None and the `reason` why it is missing.

    Error rates, BLEU and chrF2 are in percent, latencies in ms. Scores with equal signatures are comparable.
    `origin` is "measured", or "published" with the `source` it was printed in.

    Raises ValueError for a missing value without a reason, a reason beside a value, a value that is not finite, an
    unknown origin or a published number without a source.
    """

    metric: str
    value: float | None
    signature: str
    n: int
    reason: str | None = None
    interval: tuple[float, float] | None = None
    origin: str = "measured"
    source: str | None = None

    def __post_init__(self) -> None:
        if self.value is None and not self.reason:
            raise ValueError(f"{self.metric} is missing without a reason: say why")
        if self.value is not None and self.reason:
            raise ValueError(f"{self.metric} is {self.value} and has a reason to be missing: '{self.reason}'")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.metric} is {self.value}: a value that cannot be computed is None with a reason")
        if self.origin not in ORIGINS:
            raise ValueError(f"{self.metric}: origin is '{self.origin}', expected one of: {', '.join(ORIGINS)}")
        if self.origin == "published" and not self.source:
            raise ValueError(f"{self.metric} was published without a source: say where it is printed")


def score_run(
    run: Run, test_set: TestSet, language: str | None = None, rng: np.random.Generator | None = None
) -> list[Score]:
    """WER (CER for ja, zh and yue) if the run transcribes, BLEU, chrF2, StreamLAAL, StreamLAAL_CA and SilentSegments.

    `language` is what the run writes (default: its run.json's); `rng` draws the intervals (default: seed 0). A metric
    whose extra is not installed, and every metric but SilentSegments of a run that wrote nothing, is missing with a
    reason. Raises ValueError if run and test set are not of the same recordings, KeyError if the test set has no
    references in `language`.
    """
    import numpy as np

    rng = rng or np.random.default_rng(0)
    language = language or run.spec.get("language")
    if not language:
        raise ValueError(f"{run.folder / 'run.json'} does not say which language the run writes: pass --language")
    made_on = run.spec.get("test_set_sha256")
    if made_on and made_on != test_set.sha256:
        logger.warning(
            "%s was made on test set %s…, it is scored against '%s' %s…",
            run.folder, made_on[:12], test_set.name, test_set.sha256[:12],
        )  # fmt: skip
    pairs = _pair(run, test_set)
    references = test_set.references(language)
    transcribes = quality.base_language(language) == quality.base_language(test_set.source_language)
    rate = "CER" if quality.base_language(language) in quality.CHARACTER_LANGUAGES else "WER"

    scores: list[Score] = []
    if transcribes:
        texts = [record.prediction for record, _ in pairs]
        whole = [" ".join(references[recording.id]) for _, recording in pairs]
        scores += _or_missing(
            (rate,), len(pairs), run, lambda: [_quality(quality.error_rate(texts, whole, language, rng))]
        )
    n_segments = sum(len(recording.segments) for _, recording in pairs)
    try:
        segments = [
            segment
            for record, recording in pairs
            for segment in resegment(record, recording.segments, references[recording.id], run.unit)
        ]
    except MissingExtra as error:
        names = ("BLEU", "chrF2", "StreamLAAL", "StreamLAAL_CA", "SilentSegments")
        return scores + [_missing(name, n_segments, str(error)) for name in names]
    said, wanted = [s.text for s in segments], [s.reference for s in segments]
    cut = f"|segments:mweralign-{version('mweralign')}|unit:{run.unit}" if any(said) else ""
    scores += _or_missing(
        ("BLEU",), n_segments, run, lambda: [_quality(quality.bleu(said, wanted, language, rng), cut)]
    )
    scores += _or_missing(("chrF2",), n_segments, run, lambda: [_quality(quality.chrf(said, wanted, rng), cut)])
    scores += _or_missing(("StreamLAAL", "StreamLAAL_CA"), n_segments, run, lambda: _latencies(segments, run, cut, rng))
    n_silent = sum(not s.units for s in segments)
    scores.append(Score("SilentSegments", float(n_silent), cut.removeprefix("|"), n_segments))
    return scores


def _pair(run: Run, test_set: TestSet) -> list[tuple[RunRecord, Recording]]:
    """Records with their recordings (matched by the stem of the audio file), in the test set's order."""
    by_stem = {Path(recording.audio).stem: recording for recording in test_set.recordings}
    if len(by_stem) != len(test_set.recordings):
        raise ValueError(f"test set '{test_set.name}' has two audio files of one name: a run cannot tell them apart")
    records = {record.recording_id: record for record in run.records}
    if set(by_stem) != set(records):
        only_run, only_set = sorted(set(records) - set(by_stem)), sorted(set(by_stem) - set(records))
        raise ValueError(
            f"{run.folder} and test set '{test_set.name}' are not of the same recordings. "
            f"Only in the run ({len(only_run)}): {', '.join(only_run) or 'none'}. "
            f"Only in the test set ({len(only_set)}): {', '.join(only_set) or 'none'}. "
            "Finish the run, or score it against the set it was made on."
        )
    return [(records[stem], recording) for stem, recording in by_stem.items()]


def _or_missing(names: Sequence[str], n: int, run: Run, compute: Callable[[], list[Score]]) -> list[Score]:
    """What `compute` returns, or `names` missing for one of the two reasons there can be."""
    if not any(record.units for record in run.records):
        return [_missing(name, n, "every prediction is empty") for name in names]
    try:
        return compute()
    except MissingExtra as error:
        return [_missing(name, n, str(error)) for name in names]


def _missing(name: str, n: int, reason: str) -> Score:
    logger.warning("%s is missing: %s", name, reason)
    return Score(name, None, "", n, reason=reason)


def _quality(found: quality.Quality, suffix: str = "") -> Score:
    return Score(found.metric, found.value, found.signature + suffix, found.n, interval=found.interval)


def _latencies(segments: Sequence[ResegmentedSegment], run: Run, cut: str, rng: np.random.Generator) -> list[Score]:
    found = stream_laal(segments, run.unit)
    plain = _latency("StreamLAAL", found.value_ms, found.segments_ms, cut, rng)
    if (jobs := run.spec.get("jobs", 1)) > 1:  # they took the processor from one another
        reason = f"{jobs} recordings were run at a time, so computing times say little"
        return [plain, Score("StreamLAAL_CA", None, "", plain.n, reason=reason)]
    return [plain, _latency("StreamLAAL_CA", found.ca_value_ms, found.ca_segments_ms, cut, rng)]


def _latency(name: str, value: float, per_segment: Sequence[float | None], cut: str, rng: np.random.Generator) -> Score:
    import numpy as np

    counted = np.array([lag for lag in per_segment if lag is not None])
    interval = bootstrap_interval(lambda drawn: float(counted[drawn].mean()), len(counted), rng)
    return Score(name, value, f"variant:fbk-v2{cut}|scale:ms", len(counted), interval=interval)


def score_folder(folder: Path, test_set: TestSet) -> list[Score]:
    """Score the run in a folder by its own run.json and write its `scores.jsonl`; raises as `score_run` does."""
    scores = score_run(read_run(folder), test_set)
    write_scores(folder, scores)
    return scores


def write_scores(folder: Path, scores: Iterable[Score]) -> Path:
    """Write `scores.jsonl` into a run folder, whole or not at all; returns its path."""
    path = folder / "scores.jsonl"
    write_whole(path, "".join(json.dumps(asdict(score), ensure_ascii=False) + "\n" for score in scores))
    return path


def read_scores(folder: Path) -> list[Score]:
    """The scores of a run folder. Raises FileNotFoundError, or ValueError naming file and line."""
    path = folder / "scores.jsonl"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: score the run first, python -m scripts.score {folder}")
    scores = []
    # Not splitlines: a reason may hold one of the Unicode line separators.
    for number, line in enumerate(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"), start=1):
        try:
            content = json.loads(line)
            interval = content["interval"] and tuple(content["interval"])
            scores.append(Score(**{**content, "interval": interval}))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: not a score ({error}): score the run again") from error
    return scores
