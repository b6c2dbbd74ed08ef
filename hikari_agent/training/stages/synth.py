"""Synthetic talks: sentences of the grammar, or real ones, said by a synthetic voice with pauses between them.

A recording is one speaker's; what it holds is a pure function of (seed, number), so any part can be made again.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...audio import SAMPLE_RATE
from .. import grammar
from ..synth import PHONEMES, Speech, draw

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What every recording of a corpus is made with. `pause_s` lies between sentences."""

    seed: int
    n_sentences: int = 10  # a recording
    held_out_voices: bool = False
    engines: tuple[str, ...] = ("espeak",)
    pause_s: tuple[float, float] = (0.15, 0.9)
    forbidden: frozenset[str] = frozenset()  # English sentences that must not be said: those of a test set
    texts: tuple[str, ...] = ()  # real sentences to say, instead of the grammar's: they get no translations here


def recording(plan: Plan, number: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Samples (n,) float32 at 16 kHz and the cut, as the dictionary lhotse stores; without the path of its audio.

    A sentence that the voice cannot time is left out and counted in the cut's `custom["dropped"]`.
    """
    rng = random.Random(f"{plan.seed}/{number}")
    voice = draw(rng, held_out=plan.held_out_voices, engines=plan.engines)
    pieces, supervisions, dropped = [np.zeros(int(rng.uniform(0.05, 0.5) * SAMPLE_RATE), np.float32)], [], 0
    n_samples = len(pieces[0])
    for sentence in _sentences(plan, number, rng):
        try:
            speech = voice.speak(sentence.source)
        except ValueError as error:
            dropped += 1
            logger.debug("left out: %s", error)
            continue
        name = f"talk-{plan.seed}-{number:06d}"
        offset = n_samples / SAMPLE_RATE
        supervisions.append(_supervision(f"{name}-{len(supervisions)}", name, voice.name, offset, sentence, speech))
        pieces += [speech.samples, np.zeros(int(rng.uniform(*plan.pause_s) * SAMPLE_RATE), np.float32)]
        n_samples += len(pieces[-2]) + len(pieces[-1])
    samples = np.concatenate(pieces)
    cut = {
        "id": f"talk-{plan.seed}-{number:06d}", "start": 0, "duration": len(samples) / SAMPLE_RATE, "channel": 0,
        "supervisions": supervisions, "custom": {"dropped": dropped}, "type": "MonoCut",
    }  # fmt: skip
    return samples, cut


def _sentences(plan: Plan, number: int, rng: random.Random) -> list[grammar.ParallelSentence]:
    if plan.texts:
        first = number * plan.n_sentences % len(plan.texts)
        chosen = [plan.texts[(first + i) % len(plan.texts)] for i in range(plan.n_sentences)]
        return [grammar.ParallelSentence(tuple(text.split()), {}) for text in chosen]
    talk: list[grammar.ParallelSentence] = []
    while len(talk) < plan.n_sentences:
        more = grammar.talk(rng, plan.n_sentences - len(talk))
        talk += [sentence for sentence in more if sentence.text("en") not in plan.forbidden]
    return talk


def _supervision(
    name: str, recording_id: str, speaker: str, offset: float, sentence: grammar.ParallelSentence, speech: Speech
) -> dict[str, Any]:
    words = [
        [word, round(offset + start, 4), round(end - start, 4), None]
        for word, (start, end) in zip(sentence.source, speech.words, strict=True)
    ]
    classes = {label: i for i, label in enumerate(PHONEMES)}
    custom: dict[str, Any] = {
        "translations": {language: sentence.text(language) for language in sentence.targets},
        "units": {language: [word.text for word in words] for language, words in sentence.targets.items()},
        "links": {
            language: [[word.source, i] for i, word in enumerate(words) if word.source is not None]
            for language, words in sentence.targets.items()
        },
    }
    if speech.phonemes:
        custom["phonemes"] = [[classes.get(label, 0), round(offset + start, 4)] for label, start in speech.phonemes]
    return {
        "id": name, "recording_id": recording_id, "start": round(offset, 4),
        "duration": round(len(speech.samples) / SAMPLE_RATE, 4), "channel": 0, "text": " ".join(sentence.source),
        "language": "en", "speaker": speaker, "alignment": {"word": words}, "custom": custom,
    }  # fmt: skip


def write_recordings(plan: Plan, numbers: Sequence[int], folder: Path, jobs: int) -> Iterator[dict[str, Any]]:
    """Make recordings `numbers` in `jobs` processes: FLAC files under `folder`/audio, and their cuts in order."""
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    work = [(plan, number, folder) for number in numbers]
    if jobs == 1:
        yield from map(_write, work)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_write, work, chunksize=4)


def _write(work: tuple[Plan, int, Path]) -> dict[str, Any]:
    import soundfile

    plan, number, folder = work
    samples, cut = recording(plan, number)
    path = folder / "audio" / f"{cut['id']}.wav"
    temporary = path.with_suffix(".tmp")
    soundfile.write(str(temporary), samples, SAMPLE_RATE, subtype="PCM_16", format="WAV")
    temporary.replace(path)
    cut["recording"] = {
        "id": cut["id"], "sources": [{"type": "file", "channels": [0], "source": f"audio/{path.name}"}],
        "sampling_rate": SAMPLE_RATE, "num_samples": len(samples), "duration": len(samples) / SAMPLE_RATE,
        "channel_ids": [0],
    }  # fmt: skip
    return cut
