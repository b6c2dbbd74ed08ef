"""Synthetic talks: sentences of the grammar, or real ones, said by a synthetic voice with pauses between them.

A recording is one speaker's; what it holds is a pure function of (seed, number), so any part can be made again.
"""

from __future__ import annotations

import functools
import json
import logging
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...audio import SAMPLE_RATE
from .. import grammar
from ..corpus import CUTS, parse_cut, with_audio_from, write_corpus, write_text
from ..synth import PHONEMES, Speech, draw
from .resumable import REPORT, drop, finished_report, key_of, progress, spread

if TYPE_CHECKING:
    from lhotse import MonoCut

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
    pieces = [np.zeros(int(rng.uniform(0.05, 0.5) * SAMPLE_RATE), np.float32)]
    supervisions: list[dict[str, Any]] = []
    dropped = 0
    n_samples = len(pieces[0])
    for sentence in _sentences(plan, number, rng):
        try:
            speech = voice.speak(sentence.source)
        except ValueError as error:
            dropped += 1
            logger.debug("left out: %s", error)
            continue
        name = name_of(plan, number)
        offset = n_samples / SAMPLE_RATE
        supervisions.append(_supervision(f"{name}-{len(supervisions)}", name, voice.name, offset, sentence, speech))
        pieces += [speech.samples, np.zeros(int(rng.uniform(*plan.pause_s) * SAMPLE_RATE), np.float32)]
        n_samples += len(pieces[-2]) + len(pieces[-1])
    samples = np.concatenate(pieces)
    cut = {
        "id": name_of(plan, number), "start": 0, "duration": len(samples) / SAMPLE_RATE, "channel": 0,
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
        [word, round(offset + start, 4), round(round(offset + end, 4) - round(offset + start, 4), 4), None]
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
        custom["phonemes"] = [[classes[label], round(offset + start, 4)] for label, start in speech.phonemes]
    return {
        "id": name, "recording_id": recording_id, "start": round(offset, 4),
        "duration": round(len(speech.samples) / SAMPLE_RATE, 4), "channel": 0, "text": " ".join(sentence.source),
        "language": "en", "speaker": speaker, "alignment": {"word": words}, "custom": custom,
    }  # fmt: skip


def synthesise(plan: Plan, n_recordings: int, target: Path, jobs: int = 1) -> dict[str, Any]:
    """Make recordings 0 .. `n_recordings` - 1 of a plan into corpus `target`, in `jobs` processes; returns the report.

    A recording is a WAV file and its cut beside it under `target`/audio, written when both are whole: a killed run goes
    on with the first that is missing. Raises ValueError if `target` holds a corpus made otherwise.
    """
    forbidden = sha256("\n".join(sorted(plan.forbidden)).encode()).hexdigest() if plan.forbidden else None
    texts = sha256("\n".join(plan.texts).encode()).hexdigest() if plan.texts else None
    settings = {**asdict(plan), "forbidden": forbidden, "texts": texts, "n_recordings": n_recordings}
    key = key_of("synth", settings, "the grammar")
    if report := finished_report(target, key, CUTS):
        return report
    audio = target / "audio"
    audio.mkdir(parents=True, exist_ok=True)
    begun = audio / "key.json"
    if not begun.is_file():
        write_text(begun, json.dumps(key))
    elif json.loads(begun.read_text(encoding="utf-8")) != key:
        raise ValueError(f"{target} was begun otherwise: finish it as it was begun, remove it, or name another folder")
    write = functools.partial(_write, plan=plan, folder=audio)
    numbers = (i for i in range(n_recordings) if not (audio / f"{name_of(plan, i)}.json").is_file())
    for _ in progress(spread(write, numbers, jobs), "synth", n_recordings):
        pass
    paths = [audio / f"{name_of(plan, i)}.json" for i in range(n_recordings)]
    report = {**key, "n_recordings": n_recordings, "n_sentences": 0, "audio_s": 0.0, "dropped": {}, "figures": {}}

    def cuts() -> Iterator[MonoCut]:
        for path in paths:
            cut = parse_cut(path.read_bytes(), str(path))
            report["n_sentences"] += len(cut.supervisions)
            report["audio_s"] += cut.duration
            for _ in range((cut.custom or {}).get("dropped", 0)):
                drop(report["dropped"], "the voice could not time the sentence", cut.id)
            yield with_audio_from(cut, target)

    made = list(cuts())
    write_text(target / REPORT, json.dumps(report, ensure_ascii=False, indent=1) + "\n")
    write_corpus(made, target)
    for path in (*paths, begun):
        path.unlink()
    return report


def name_of(plan: Plan, number: int) -> str:
    """talk-9001-000003, or with -unheard- for voices that training never hears."""
    return f"talk-{plan.seed}-{'unheard-' if plan.held_out_voices else ''}{number:06d}"


def _write(number: int, plan: Plan, folder: Path) -> None:
    import soundfile

    samples, cut = recording(plan, number)
    path = folder / f"{cut['id']}.wav"
    temporary = path.with_suffix(".tmp")
    soundfile.write(str(temporary), samples, SAMPLE_RATE, subtype="PCM_16", format="WAV")
    temporary.replace(path)
    cut["recording"] = {
        "id": cut["id"], "sources": [{"type": "file", "channels": [0], "source": f"audio/{path.name}"}],
        "sampling_rate": SAMPLE_RATE, "num_samples": len(samples), "duration": len(samples) / SAMPLE_RATE,
        "channel_ids": [0],
    }  # fmt: skip
    write_text(path.with_suffix(".json"), json.dumps(cut, ensure_ascii=False))
