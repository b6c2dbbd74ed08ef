"""Endless batches from shards. Which sections a batch holds is a pure function of (seed, batch number).

So a run resumes by its step alone, and one process sees what several see together: batch `g` of the run belongs to stream
`g % n_streams`, and each stream goes through the shards in an order of its own, epoch after epoch.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from ..audio import SAMPLE_RATE, causal_log_mel, log_mel_spectrogram
from ..config import HikariConfig
from ..tokens import WAIT, Vocabulary
from .augment import Augmentation, change_speed
from .sections import Timeline, draw_start, phoneme_labels, sample

INDEX = "index.json"


@dataclass(frozen=True)
class Recipe:
    """What a batch is made of. The defaults are the paper's (arXiv 2603.11578) on one GPU of its 96.

    `tasks` are languages to write; a section's own language is transcribed. One is drawn for each section, or with
    `all_tasks` every section has all of them, for one pass of the encoder. Without any, only sounds are learnt.
    """

    section_s: tuple[float, ...] = (30.0,)  # one is drawn for each batch
    batch_s: float = 128 * 30.0  # audio in a batch, s
    tasks: tuple[str, ...] = ("en", "de", "ja", "ru")
    all_tasks: bool = False
    at_sentence: float = 0.0  # share of sections that begin just before a sentence
    min_words: int = 4
    jitter_s: float = 0.2
    recovery_share: float = 0.0  # 0.3 for SFT
    max_shift: int | None = None
    phonemes: bool = False
    augmentation: Augmentation = field(default_factory=Augmentation)


class Shards:
    """A folder of lhotse Shar shards, as `python -m scripts.prepare shards` writes it.

    Raises FileNotFoundError or ValueError if it is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cuts = sorted(folder.glob("cuts.*.jsonl*"))
        self.recordings = sorted(folder.glob("recording.*.tar"))
        if not self.cuts or len(self.cuts) != len(self.recordings):
            raise FileNotFoundError(
                f"{folder} is no folder of shards: {len(self.cuts)} cuts.*.jsonl.gz and {len(self.recordings)} "
                "recording.*.tar, expected as many of each. Make them: python -m scripts.prepare shards"
            )
        if not (folder / INDEX).is_file():
            raise FileNotFoundError(
                f"{folder} has no {INDEX}: make the shards again (python -m scripts.prepare shards)"
            )
        self.durations_s: list[float] = json.loads((folder / INDEX).read_text())["durations_s"]
        if len(self.durations_s) != len(self.cuts):
            raise ValueError(
                f"{folder / INDEX} tells of {len(self.durations_s)} shards, the folder has {len(self.cuts)}"
            )

    def __len__(self) -> int:
        return len(self.cuts)

    def load(self, shard: int) -> list[tuple[Timeline, np.ndarray]]:
        """The recordings of a shard: timelines, and samples (n,) int16 at 16 kHz."""
        from lhotse import CutSet

        cuts = CutSet.from_shar(fields={"cuts": [self.cuts[shard]], "recording": [self.recordings[shard]]})
        recordings = []
        for cut in cuts:
            if cut.sampling_rate != SAMPLE_RATE:
                raise ValueError(f"{self.recordings[shard]}, {cut.id}: {cut.sampling_rate} Hz, expected {SAMPLE_RATE}")
            samples = (cut.load_audio()[0] * 32768).clip(-32768, 32767).astype(np.int16)
            recordings.append((Timeline.of(cut.duration, cut.supervisions), samples))
        return recordings


@dataclass(frozen=True)
class Epoch:
    """A stream's way through its shards: their `order`, and for each how many batches there are up to its end."""

    number: int
    first: int  # batch of the stream
    order: list[int]
    ends: list[int]


class SectionDataset(IterableDataset):
    """Batches of one process (`rank` of `world`), from batch `first` of it on, without an end.

    A batch: `input_features` (B, n_mels, n), `decoder_input_ids` and `labels` (B * K, n_rows), and, if the recipe says so,
    `phonemes` (B, n / 2); sample b's task k is row b * K + k. For `DataLoader(batch_size=None)` with any number of workers.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        vocabulary: Vocabulary,
        config: HikariConfig,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        n_streams: int | None = None,
        first: int = 0,
    ) -> None:
        self.shards = Shards(Path(folder))
        self.recipe = recipe
        self.config = config
        self.seed = seed
        self.rank = rank
        self.world = world
        self.n_streams = n_streams or world
        self.first = first
        self._epochs: dict[int, Epoch] = {}  # where each stream is
        self._n_batches = [max(1, round(duration / recipe.batch_s)) for duration in self.shards.durations_s]
        self.prompts = {
            (task, language): vocabulary.prompt(task, language)
            for language in recipe.tasks
            for task in ("translate", "transcribe")
        }
        longest = max(recipe.section_s)
        if longest * 50 > config.max_source_positions or self._n_rows(longest) > config.max_target_positions:
            raise ValueError(
                f"sections of {longest:g} s, but the model has positions for {config.max_source_positions / 50:g} s"
            )

    def _n_rows(self, section_s: float) -> int:
        return round(section_s * 50) // self.config.decoder_time_dilation

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        worker = get_worker_info()
        step, offset = (worker.num_workers, worker.id) if worker else (1, 0)
        loaded: dict[int, tuple[int, list[tuple[Timeline, np.ndarray]]]] = {}
        number = self.first + offset
        while True:
            batch = number * self.world + self.rank
            stream, position = batch % self.n_streams, batch // self.n_streams
            epoch, shard, i = self._place(stream, position)
            if loaded.get(stream, (None,))[0] != shard:
                loaded[stream] = shard, self.shards.load(shard)
            yield self._batch(loaded[stream][1], f"{self.seed}/{stream}/{epoch}/{shard}/{i}")
            number += step

    def _place(self, stream: int, position: int) -> tuple[int, int, int]:
        """Where a stream's batch is: (epoch, shard, number within the shard)."""
        at = self._epochs.get(stream)
        if at is None or position < at.first:
            at = self._epoch(stream, 0, 0)
        while position >= at.first + at.ends[-1]:
            at = self._epoch(stream, at.number + 1, at.first + at.ends[-1])
        self._epochs[stream] = at
        k = bisect_right(at.ends, position - at.first)
        return at.number, at.order[k], position - at.first - (at.ends[k - 1] if k else 0)

    def _epoch(self, stream: int, number: int, first: int) -> Epoch:
        shared = len(self.shards) < self.n_streams  # more streams than shards: each goes through all of them
        order = list(range(len(self.shards)))
        random.Random(f"{self.seed}/{number}/{stream if shared else ''}").shuffle(order)
        if not shared:
            order = order[stream :: self.n_streams]
        return Epoch(number, first, order, list(accumulate(self._n_batches[shard] for shard in order)))

    def _batch(self, recordings: list[tuple[Timeline, np.ndarray]], key: str) -> dict[str, Tensor]:
        recipe, rng = self.recipe, random.Random(key)
        noise_rng = np.random.default_rng(rng.getrandbits(64))
        section_s = rng.choice(recipe.section_s)
        n_rows = self._n_rows(section_s)
        n_sections = max(1, round(recipe.batch_s / section_s))
        durations = [timeline.duration_s for timeline, _ in recordings]
        sounds, inputs, labels, phonemes = [], [], [], []
        for timeline, samples in rng.choices(recordings, durations, k=n_sections):
            speed = recipe.augmentation.draw_speed(noise_rng)
            start = draw_start(timeline, section_s * speed, rng, recipe.at_sentence, recipe.min_words)
            sounds.append(self._sound(samples, start, section_s, speed, noise_rng))
            for language in self._languages(timeline, rng):
                prompt = self.prompts["transcribe" if language == timeline.language else "translate", language]
                made = sample(
                    timeline, language, start, n_rows, prompt, WAIT, rng, speed=speed, jitter_s=recipe.jitter_s,
                    recovery_share=recipe.recovery_share, max_shift=recipe.max_shift,
                    dilation=self.config.decoder_time_dilation,
                )  # fmt: skip
                inputs.append(made.inputs)
                labels.append(made.labels)
            if recipe.phonemes:
                phonemes.append(phoneme_labels(timeline, start, round(section_s * 50), speed))
        batch = {"input_features": self._features(torch.from_numpy(np.stack(sounds)))}
        if recipe.tasks:
            batch |= {"decoder_input_ids": torch.tensor(inputs), "labels": torch.tensor(labels)}
        if recipe.phonemes:
            batch["phonemes"] = torch.tensor(phonemes)
        return batch

    def _languages(self, timeline: Timeline, rng: random.Random) -> Sequence[str]:
        if not self.recipe.tasks:
            return []
        languages = [language for language in self.recipe.tasks if language in timeline.targets]
        if not languages or (self.recipe.all_tasks and len(languages) < len(self.recipe.tasks)):
            raise ValueError(
                f"a recording has targets in {', '.join(timeline.targets) or 'no language'}, the recipe asks for "
                f"{', '.join(self.recipe.tasks)}: translate and interleave the rest, or leave them out"
            )
        return languages if self.recipe.all_tasks else [rng.choice(languages)]

    def _sound(
        self, samples: np.ndarray, start: float, section_s: float, speed: float, rng: np.random.Generator
    ) -> np.ndarray:
        first = round(start * SAMPLE_RATE)
        piece = samples[first : first + round(section_s * speed * SAMPLE_RATE)].astype(np.float32) / 32768
        piece = change_speed(piece, speed)
        n = round(section_s * SAMPLE_RATE)
        return self.recipe.augmentation(np.pad(piece[:n], (0, n - len(piece[:n]))), rng)

    def _features(self, sounds: Tensor) -> Tensor:
        """(B, n_samples) -> (B, n_mels, n_samples // 160) by the model's front end; one by one is faster than at once."""
        front_end = causal_log_mel if self.config.frontend == "causal" else log_mel_spectrogram
        return torch.stack([front_end(sound, n_mels=self.config.num_mel_bins) for sound in sounds])


def write_index(folder: Path, durations_s: Sequence[float], **more: Any) -> None:
    """Write what `Shards` wants to know of each shard without opening it: the audio it holds, in s."""
    (folder / INDEX).write_text(json.dumps({"durations_s": [round(d, 3) for d in durations_s], **more}) + "\n")
