"""Small shards for the tests: random sound, words at known times, targets of random tokens."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from hikari_agent.training.dataset import write_index


def write_shards(
    folder: Path, n_shards: int = 3, n_cuts: int = 4, seconds: float = 8.0, languages=("en", "de")
) -> Path:
    """`n_shards` shards of `n_cuts` recordings each; word i of a recording ends at 0.4 * (i + 1) s."""
    from lhotse import MonoCut, Recording, SupervisionSegment
    from lhotse.shar import SharWriter
    from lhotse.supervision import AlignmentItem

    folder.mkdir(parents=True)
    rng = random.Random(5)
    noise = np.random.default_rng(5)
    durations = []
    with SharWriter(str(folder), fields={"recording": "wav"}, shard_size=n_cuts) as writer:
        for number in range(n_shards * n_cuts):
            samples = (0.05 * noise.standard_normal((1, int(seconds * 16_000)))).astype(np.float32)
            n_words = int(seconds / 0.4) - 1
            words = [AlignmentItem(f"w{i}", 0.4 * i, 0.4, None) for i in range(n_words)]
            targets = {
                language: {"ids": [[rng.randrange(100, 400) for _ in range(1 + i % 2)] for i in range(n_words)],
                           "ends": [round(0.4 * (i + 1), 3) for i in range(n_words)]}
                for language in languages
            }  # fmt: skip
            supervision = SupervisionSegment(
                id=f"s{number}", recording_id=f"r{number}", start=0.0, duration=seconds, text=" ".join(w.symbol for w in words),
                language="en", alignment={"word": words},
                custom={"targets": targets, "phonemes": [[i % 7, 0.4 * i] for i in range(n_words)]},
            )  # fmt: skip
            recording = Recording(id=f"r{number}", sources=[], sampling_rate=16_000, num_samples=samples.shape[1],
                                  duration=seconds, channel_ids=[0])  # fmt: skip
            cut = MonoCut(
                id=f"r{number}", start=0, duration=seconds, channel=0, recording=recording, supervisions=[supervision]
            )
            writer.write(_with_audio(cut, samples))
    for _ in range(n_shards):
        durations.append(n_cuts * seconds)
    write_index(folder, durations)
    return folder


def _with_audio(cut, samples):
    cut.recording = cut.recording.__class__.from_bytes(_wav(samples[0]), recording_id=cut.recording.id)
    return cut


def _wav(samples: np.ndarray) -> bytes:
    import io

    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, 16_000, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
