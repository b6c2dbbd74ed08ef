"""Stage `shards`: lhotse Shar for training: shuffled recordings at 16 kHz, tar files of audio beside their cuts.

Shards are written into a hidden folder beside the output, which takes its name when all are there. A killed run goes on
with the first shard that is missing. `index.json` tells how much audio each shard holds (`hikari_agent.training.dataset`).
"""

from __future__ import annotations

import functools
import json
import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audio import SAMPLE_RATE
from ..corpus import CUTS, check_corpus_folder, parse_cut, read_lines, targets, with_audio_from, write_text
from ..dataset import INDEX, write_index
from .resumable import REPORT, finished_report, key_of, progress, spread
from .sound import load_audio

if TYPE_CHECKING:
    from lhotse import MonoCut

logger = logging.getLogger(__name__)

FORMATS = ("wav", "flac", "opus")
DONE = "done.jsonl"


@dataclass(frozen=True)
class ShardWork:
    """One shard to write: its number and its recordings, as JSON."""

    number: int
    cuts: list[bytes]
    corpus: Path  # that paths in them are relative to


def write_shards(
    source: Path, target: Path, audio_format: str = "flac", shard_size: int = 100, seed: int = 0, jobs: int = 1
) -> dict[str, Any]:
    """Corpus `source` as shards of `shard_size` recordings in `target`; returns the report.

    Raises ValueError for an unknown format, a corpus without targets, an output that holds something else, or audio that
    cannot be read.
    """
    if audio_format not in FORMATS:
        raise ValueError(f"unknown format '{audio_format}'. Known: {', '.join(FORMATS)}")
    if shard_size < 1:
        raise ValueError(f"shards of {shard_size} recordings: give --shard-size 1 or more")
    check_corpus_folder(source)
    settings = {"format": audio_format, "shard_size": shard_size, "seed": seed}
    key = key_of("shards", settings, sha256((source / CUTS).read_bytes()).hexdigest())
    if report := finished_report(target, key, INDEX):
        return report
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is there and holds no shards of ours: remove it, or name another folder")
    started = time.monotonic()
    cuts = _shuffled(source, seed)
    folder = target.with_name(f".{target.name}.part")
    done = _done(folder, key)
    work = (
        ShardWork(number, cuts.lines[first : first + shard_size], source)
        for number, first in enumerate(range(0, len(cuts.lines), shard_size))
        if number not in done
    )
    n_shards = -(-len(cuts.lines) // shard_size)
    function = functools.partial(_write_shard, folder=folder, audio_format=audio_format)
    with (folder / DONE).open("a", encoding="utf-8") as log:
        for number, seconds in progress(spread(function, work, jobs), "shards", n_shards - len(done), "shard"):
            done[number] = seconds
            log.write(json.dumps([number, seconds]) + "\n")
            log.flush()
    durations = [done[number] for number in range(n_shards)]
    report = {
        **key, "n_recordings": len(cuts.lines), "n_sentences": cuts.n_sentences,
        "audio_s": sum(durations), "dropped": {}, "figures": {"n_shards": n_shards},
    }  # fmt: skip
    (folder / DONE).unlink()
    write_text(folder / REPORT, json.dumps(report, indent=1) + "\n")
    write_index(folder, durations, languages=cuts.languages)
    if target.exists():
        target.rmdir()
    folder.rename(target)
    wall_s = time.monotonic() - started
    logger.info(
        "shards: %.0f s of audio in %.1f s, %.0f x real time", report["audio_s"], wall_s, report["audio_s"] / wall_s
    )
    return report


@dataclass(frozen=True)
class _Cuts:
    """The cuts of a corpus in a random order, as JSON, which takes a fifth of the memory."""

    lines: list[bytes]
    n_sentences: int
    languages: list[str]  # those that every recording can be written in


def _shuffled(source: Path, seed: int) -> _Cuts:
    """Raises ValueError if there are no recordings with targets, or a sentence lacks them."""
    lines: list[bytes] = []
    n_sentences = 0
    languages: set[str] | None = None
    for cut, line in read_lines(source, needs=("targets",)):
        if not cut.supervisions:
            logger.warning("recording %s has no sentence to learn from, left out", cut.id)
            continue
        lines.append(line)
        n_sentences += len(cut.supervisions)
        own = set(targets(cut.supervisions[0]))
        languages = own if languages is None else languages & own
    if not lines:
        raise ValueError(f"{source} has no recording with targets, so there is nothing to write")
    random.Random(seed).shuffle(lines)
    return _Cuts(lines, n_sentences, sorted(languages or ()))


def _done(folder: Path, key: dict[str, Any]) -> dict[int, float]:
    """The shards that an earlier run finished, with their seconds; starts the log if there is none."""
    log = folder / DONE
    lines = log.read_text(encoding="utf-8").split("\n") if log.is_file() else []
    if not lines or lines[0] != json.dumps(key):
        for path in folder.glob("*"):  # shards of other settings
            path.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        write_text(log, json.dumps(key) + "\n")
        return {}
    done = {}
    if lines[-1]:
        logger.warning("%s: dropped a broken line at its end, the shard is written again", log)
    for line in lines[1:-1]:
        number, seconds = json.loads(line)
        done[number] = seconds
    write_text(log, "".join(json.dumps(entry) + "\n" for entry in [key, *([n, s] for n, s in done.items())]))
    if done:
        logger.info("%d shards are finished already", len(done))
    return done


def _write_shard(work: ShardWork, folder: Path, audio_format: str) -> tuple[int, float]:
    """Write one shard; its number and the seconds of audio in it."""
    from lhotse.shar import SharWriter

    seconds = 0.0
    with SharWriter(
        str(folder), {"recording": audio_format}, shard_size=len(work.cuts), shard_offset=work.number
    ) as writer:
        for cut in _in_memory(work.cuts, work.corpus):
            writer.write(cut)
            seconds += cut.duration
    return work.number, seconds


def _in_memory(cuts: list[bytes], corpus: Path) -> Iterator[MonoCut]:
    """Each cut with its samples, one channel at 16 kHz, as its whole recording."""
    import numpy as np
    import soundfile
    from lhotse import Recording

    for line in cuts:
        cut = with_audio_from(parse_cut(line, "shards"), corpus)
        samples = load_audio(cut)
        n_samples = round(cut.duration * SAMPLE_RATE)
        samples = np.pad(samples[:n_samples], (0, max(0, n_samples - len(samples))))
        buffer = BytesIO()
        soundfile.write(buffer, samples, SAMPLE_RATE, format="WAV", subtype="PCM_16")
        cut.recording = Recording.from_bytes(buffer.getvalue(), recording_id=cut.recording.id)
        cut.start, cut.channel, cut.duration = 0.0, 0, cut.recording.duration
        yield cut
