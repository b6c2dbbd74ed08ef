"""Cut one long hypothesis into one piece a reference segment, so that word errors are fewest (mweralign).

Matusov et al. 2005, "Evaluating machine translation output with automatic sentence segmentation". Matching ignores
case; units go out in order, none is lost.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise

from reports.extras import needs_extra
from reports.runs import RunRecord
from testsets.manifest import Segment

# mweralign reads "###" as a separator between alternative references.
SEPARATOR, ESCAPED_SEPARATOR = "###", "＃＃＃"


@dataclass(frozen=True)
class ResegmentedSegment:
    """What a system wrote for one reference segment: `units` with their times, counted from the recording's start.

    `text` is the units with the blanks they had; `offset_ms` and `duration_ms` are the reference segment's.
    """

    recording_id: str
    index: int
    text: str
    units: tuple[str, ...]
    delays_ms: tuple[float, ...]
    elapsed_ms: tuple[float, ...]
    offset_ms: float
    duration_ms: float
    reference: str


def resegment(
    record: RunRecord, segments: Sequence[Segment], references: Sequence[str], unit: str
) -> list[ResegmentedSegment]:
    """One piece of `record` for each of `segments`, whose reference lines are `references`; some may be empty.

    `unit` is "word" or "char": by characters, references and hypothesis are spaced out first. Raises ValueError if
    there are no segments or not one reference each, MissingExtra without mweralign.
    """
    if not segments or len(segments) != len(references):
        raise ValueError(
            f"recording '{record.recording_id}' has {len(segments)} segments and {len(references)} references: "
            "expected one reference a segment, and at least one"
        )
    lines = [" ".join(_pieces(reference, unit)) for reference in references]
    counts = _counts(lines, record.units)
    bounds = list(pairwise(accumulate(counts, initial=0)))
    texts = _texts(record, bounds, unit)
    return [
        ResegmentedSegment(
            recording_id=record.recording_id,
            index=index,
            text=text,
            units=record.units[start:end],
            delays_ms=record.delays_ms[start:end],
            elapsed_ms=record.elapsed_ms[start:end],
            offset_ms=segment.offset_ms,
            duration_ms=segment.duration_ms,
            reference=reference,
        )
        for index, (segment, reference, text, (start, end)) in enumerate(
            zip(segments, references, texts, bounds, strict=True)
        )
    ]


def _pieces(text: str, unit: str) -> list[str]:
    """Words or characters of a reference line; a no-break space joins words here, as it does in stream_laal.py."""
    words = [word for word in re.split(r"[ \t\n\v\f\r]+", text) if word]
    return words if unit == "word" else list("".join(words))


def _texts(record: RunRecord, bounds: list[tuple[int, int]], unit: str) -> list[str]:
    """The stretch of the prediction that each span of units covers: by characters, blanks inside are kept."""
    if unit == "word":
        return [" ".join(record.units[start:end]) for start, end in bounds]
    positions = [i for i, character in enumerate(record.prediction) if not character.isspace()]
    return [
        record.prediction[positions[start] : positions[end - 1] + 1] if end > start else "" for start, end in bounds
    ]


def _counts(lines: list[str], units: tuple[str, ...]) -> list[int]:
    """How many of `units` each reference line is given."""
    if not units:
        return [0] * len(lines)
    align_texts = _load_align_texts()
    # Every line ends in a line break: mweralign drops an empty last line and crashes on an empty text.
    reference = "".join(line.replace(SEPARATOR, ESCAPED_SEPARATOR) + "\n" for line in lines)
    hypothesis = " ".join(units).replace(SEPARATOR, ESCAPED_SEPARATOR)
    with _stderr_to_nowhere():
        aligned = align_texts(reference, hypothesis)
    counts = [len(line.split()) for line in aligned.split("\n")]
    assert len(counts) == len(lines), f"mweralign returned {len(counts)} lines for {len(lines)} references"
    assert sum(counts) == len(units), f"mweralign returned {sum(counts)} units of {len(units)}"
    return counts


def _load_align_texts():  # type: ignore[no-untyped-def]  # mweralign has no annotations
    """mweralign's function; importing it must not configure the root logger, which it does by basicConfig."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        with needs_extra("score"):
            from mweralign import align_texts
    finally:
        for handler in [h for h in root.handlers if h not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)
    return align_texts


@contextmanager
def _stderr_to_nowhere() -> Iterator[None]:
    """Point file descriptor 2 at the null device: the C++ part of mweralign reports progress there."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)
