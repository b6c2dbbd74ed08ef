"""How long after the speaker a system writes: LAAL of one segment and StreamLAAL of long recordings.

StreamLAAL is computed as by `stream_laal.py` 2.0 of FBK-fairseq, so that numbers compare with published ones: times
before a segment's start count as its start, and computation-aware times are rebuilt from SimulEval's `elapsed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.resegment import ResegmentedSegment


@dataclass(frozen=True)
class StreamLaal:
    """StreamLAAL and StreamLAAL_CA of a run, in ms, and of its segments (None: nothing was written for it).

    The values are plain means over the segments with something written; `n_silent` is how many had nothing.
    """

    value_ms: float
    ca_value_ms: float
    segments_ms: tuple[float | None, ...]
    ca_segments_ms: tuple[float | None, ...]
    n_silent: int


def laal(delays_ms: Sequence[float], source_ms: float, reference_length: int) -> float:
    """Length-adaptive average lagging of one segment, in ms (Papi et al. 2022, arXiv:2206.05807).

    `delays_ms[i]` is the audio heard when unit i was written, counted from the segment's start; units after the
    first one at or past `source_ms` do not count, and if that is the very first and past it, its delay is the result.

    >>> laal([1000, 2000], source_ms=2000, reference_length=2)
    1000.0

    Raises ValueError if `delays_ms` is empty: a silent system has no lag; count it as missing.
    """
    if not delays_ms:
        raise ValueError("LAAL of a segment without units: a silent system has no lag, count the segment as missing")
    if delays_ms[0] > source_ms:
        return float(delays_ms[0])
    step_ms = source_ms / max(len(delays_ms), reference_length)
    lags = []
    for i, delay in enumerate(delays_ms):
        lags.append(delay - i * step_ms)
        if delay >= source_ms:
            break
    return fmean(lags)


def reference_length(reference: str, unit: str) -> int:
    """Units of a reference line as stream_laal.py 2.0 counts them; an empty line has one word and no characters."""
    return len(reference.split(" ")) if unit == "word" else len(reference.strip())


def stream_laal(segments: Sequence[ResegmentedSegment], unit: str) -> StreamLaal:
    """StreamLAAL and its computation-aware form over resegmented segments, each recording's together and in order.

    Polák et al. and Papi et al. 2024 (arXiv:2406.14177), version 2.0 of FBK's program. Raises ValueError if nothing
    was written for any segment.
    """
    plain: list[float | None] = []
    aware: list[float | None] = []
    for segment, delays, elapsed in segment_times(segments):
        length = reference_length(segment.reference, unit)
        plain.append(laal(delays, segment.duration_ms, length) if delays else None)
        aware.append(laal(elapsed, segment.duration_ms, length) if elapsed else None)
    written = [value for value in plain if value is not None]
    if not written:
        raise ValueError(f"StreamLAAL of {len(segments)} segments without units: a silent system has no lag")
    return StreamLaal(
        value_ms=fmean(written),
        ca_value_ms=fmean(value for value in aware if value is not None),
        segments_ms=tuple(plain),
        ca_segments_ms=tuple(aware),
        n_silent=len(plain) - len(written),
    )


def segment_times(
    segments: Sequence[ResegmentedSegment],
) -> Iterator[tuple[ResegmentedSegment, list[float], list[float]]]:
    """Each segment with its units' delays and computation-aware times in ms from the segment's start, none below 0.

    SimulEval's `elapsed` adds up all computing since the recording began, as if the system fell further and further
    behind. stream_laal.py 2.0 counts for a unit only the computing since the unit before it; units written together
    share it. The chain runs through all segments of a recording.
    """
    recording_id = None
    for segment in segments:
        if segment.recording_id != recording_id:
            recording_id = segment.recording_id
            previous_delay = previous_elapsed = previous_lead = None
        delays, elapsed = [], []
        for delay, raw in zip(segment.delays_ms, segment.elapsed_ms, strict=True):
            if previous_elapsed is None or previous_delay is None or previous_lead is None:
                aware = raw
            elif raw == previous_elapsed:
                aware = previous_lead + delay
            else:
                aware = raw - previous_elapsed + previous_delay
            delays.append(max(0.0, delay - segment.offset_ms))
            elapsed.append(max(0.0, aware - segment.offset_ms))
            previous_delay, previous_elapsed, previous_lead = delay, raw, elapsed[-1] - delays[-1]
        yield segment, delays, elapsed
