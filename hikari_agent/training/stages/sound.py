"""The sound of a recording of a corpus, as the models hear it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...audio import StreamingDecoder, check_audio_file

if TYPE_CHECKING:
    from lhotse import MonoCut


def load_audio(cut: MonoCut) -> np.ndarray:
    """The cut's sound, (n_samples,) float32 at 16 kHz. Raises FileNotFoundError or ValueError naming the file."""
    source = cut.recording.sources[0]
    if source.type == "file":
        check_audio_file(source.source)
    try:
        samples = cut.load_audio()[0]
    except Exception as error:  # lhotse and its backends raise whatever they like
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise ValueError(
            f"the audio of recording {cut.id} cannot be read ({reason}): replace {source.source}, or leave it out"
        ) from error
    decoder = StreamingDecoder(cut.sampling_rate)
    return np.concatenate([decoder.push(samples), decoder.flush()])
