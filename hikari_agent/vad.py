"""Voice activity: Silero's network from its own package, with its state passed explicitly. No network access."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .audio import SAMPLE_RATE

FRAME = 512  # samples a call, 32 ms
CONTEXT = 64  # samples of the previous call that go before them
SPEECH_THRESHOLD = 0.8  # the released server's


@dataclass(frozen=True)
class VadState:
    """What Silero carries from call to call: its recurrent state (2, 1, 128) and the end of the last frame (64,)."""

    recurrent: np.ndarray
    context: np.ndarray


class SileroVad:
    """Speech probability of 512 samples at 16 kHz."""

    def start(self) -> VadState:
        return VadState(np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32))

    def __call__(self, samples: np.ndarray, state: VadState) -> tuple[float, VadState]:
        """(512,) float32 -> the probability of speech, and the next state."""
        if samples.shape != (FRAME,):
            raise ValueError(f"{samples.shape} samples: Silero takes {FRAME} at a time")
        frame = np.concatenate([state.context, samples.astype(np.float32)])[None]
        inputs = {"input": frame, "state": state.recurrent, "sr": np.array(SAMPLE_RATE, np.int64)}
        probability, recurrent = _session().run(None, inputs)
        return float(probability[0, 0]), VadState(recurrent, frame[0, -CONTEXT:])


@functools.cache
def _session() -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    package = find_spec("silero_vad")  # found, not imported: the package would load torch hub code
    if package is None or not package.submodule_search_locations:
        raise ImportError("voice activity needs the package silero-vad: pip install silero-vad")
    model = Path(package.submodule_search_locations[0]) / "data" / "silero_vad.onnx"
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
