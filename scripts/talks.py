"""Synthetic corpora as a test set: Opus recordings and a manifest, with the grammar's translations as references."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

OPUS_LEVEL = 0.85  # libsndfile's compression level, 0 to 1: about 24 kbit/s for 16 kHz mono


def write_test_set(corpora: Sequence[Path], folder: Path, name: str = "tiny-talks") -> Path:
    """Corpora of `scripts.prepare synth` as test set `folder`; returns its manifest.

    A recording is called after its corpus (talks-known -> known-1), a segment is a sentence. Written whole or not at all.
    """
    import soundfile

    from hikari_agent.training.corpus import read_corpus, translations
    from testsets.files import file_sha256
    from testsets.manifest import Recording, Segment, TestSet, save

    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    recordings = []
    for corpus in corpora:
        for number, cut in enumerate(read_corpus(corpus), start=1):
            identifier = f"{corpus.name.split('-')[-1]}-{number}"
            path = part / f"{identifier}.ogg"
            samples = cut.load_audio()[0]
            soundfile.write(
                path, samples, cut.sampling_rate, format="OGG", subtype="OPUS", compression_level=OPUS_LEVEL
            )
            segments = tuple(
                Segment(round(1000 * s.start, 1), round(1000 * s.duration, 1), s.text or "", translations(s))
                for s in cut.supervisions
            )
            duration_ms = round(1000 * cut.duration, 3)
            recordings.append(Recording(identifier, path.name, file_sha256(path), duration_ms, segments))
    origin = "sentences of hikari_agent.training.grammar, said by espeak-ng (python -m scripts.embedded)"
    save(TestSet(name, "en", "CC0-1.0", origin, tuple(recordings), part))
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)
    return folder / "manifest.json"
