"""Sound to log-mel: the constants of the front end, decoding to 16 kHz mono, and Whisper's log-mel spectrogram.

The released model was trained on OpenAI Whisper's features of the window as it stands: frames are centred, both
ends are reflected, and the floor is 8 below the window's maximum. So the last frame of a growing window is
provisional (it reflects audio instead of hearing it), and a louder sound lifts the floor under every older frame.
The causal front end has neither: a frame ends where it is ready, and the floor and the scaling are fixed.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

SAMPLE_RATE = 16_000  # Hz
N_FFT = 400  # samples, 25 ms
HOP_SAMPLES = 160  # samples between mel frames, 10 ms
N_MELS = 80
FRAME_SAMPLES = 2 * HOP_SAMPLES  # one encoder frame: the second convolution halves the rate
LOG_MEL_RANGE = 8.0  # the floor lies this far (log10) below the maximum
FRONTENDS = ("released", "causal")
CAUSAL_PAST = N_FFT - HOP_SAMPLES  # samples before a frame's own 10 ms that it looks at
CAUSAL_FLOOR = 1e-6  # of the mel power: where Whisper's floor lies under speech of usual loudness


def read_audio(path: str | Path) -> np.ndarray:
    """The whole of an audio file as float32 (n_samples,) at 16 kHz, channels averaged.

    Reads what libsndfile reads (WAV, FLAC, OGG, MP3). Raises FileNotFoundError, or ValueError if it is not audio.
    """
    check_audio_file(path)
    import soundfile

    samples, rate = soundfile.read(str(path), dtype="float32")
    decoder = StreamingDecoder(rate)
    return np.concatenate([decoder.push(samples), decoder.flush()])


def check_audio_file(path: str | Path) -> None:
    """Raise FileNotFoundError or ValueError, in one line, if `path` is no readable audio file."""
    import soundfile

    if not Path(path).is_file():
        raise FileNotFoundError(f"no audio file {path}: check the path in the source list")
    try:
        soundfile.info(str(path))
    except soundfile.LibsndfileError as error:
        raise ValueError(
            f"{path} is not audio that libsndfile reads ({error.error_string}); expected WAV, FLAC, OGG or MP3. "
            f"Convert it: ffmpeg -i {Path(path).name} -ac 1 -ar {SAMPLE_RATE} out.wav"
        ) from error


class StreamingDecoder:
    """Any sample rate, any number of channels, in pieces of any size -> 16 kHz mono float32.

    One resampler lives as long as the recording, so cutting the audio differently changes nothing.
    """

    def __init__(self, sample_rate: int) -> None:
        if sample_rate <= 0:
            raise ValueError(f"sample rate {sample_rate} Hz: expected a positive number")
        self.sample_rate = sample_rate
        self._resampler = None
        if sample_rate != SAMPLE_RATE:
            import soxr

            self._resampler = soxr.ResampleStream(sample_rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")

    def push(self, samples: np.ndarray) -> np.ndarray:
        """(n,) or (n, n_channels) at the source rate -> what is ready of it, (m,) at 16 kHz.

        Raises ValueError for samples that are no finite numbers: one would silence the model for good.
        """
        mono = np.asarray(samples, dtype=np.float32)
        if mono.ndim == 2:
            mono = mono.mean(axis=1, dtype=np.float32)
        if not np.isfinite(mono).all():
            raise ValueError("the recording holds samples that are NaN or infinite: export it again as 16-bit PCM")
        if self._resampler is None or not mono.size:
            return mono
        return self._resampler.resample_chunk(mono)

    def flush(self) -> np.ndarray:
        """What the resampler still holds; the recording is over."""
        nothing = np.zeros(0, np.float32)
        return nothing if self._resampler is None else self._resampler.resample_chunk(nothing, last=True)


def log_mel_spectrogram(samples: torch.Tensor | np.ndarray, n_mels: int = N_MELS) -> torch.Tensor:
    """The released front end for a whole signal: (n_samples,) in [-1, 1] -> (n_mels, n_samples // 160), float32.

    Raises ValueError for fewer than 201 samples, which cannot be reflected.
    """
    raw = log10_mel(samples, n_mels=n_mels)
    return scale_log_mel(raw, raw.max())


def log10_mel(samples: torch.Tensor | np.ndarray, first_frame: int = 0, n_mels: int = N_MELS) -> torch.Tensor:
    """log10 of the mel power, before the floor: frames `first_frame`.. of the whole signal, (n_mels, n), float32."""
    import torch

    signal = torch.as_tensor(samples, dtype=torch.float32)
    if len(signal) <= N_FFT // 2:
        raise ValueError(f"{len(signal)} samples are too few for a spectrogram: at least {N_FFT // 2 + 1} are needed")
    if first_frame * HOP_SAMPLES >= N_FFT // 2:  # no reflection at the left: cut there, then centring is not needed
        signal = torch.cat([signal[first_frame * HOP_SAMPLES - N_FFT // 2 :], signal[-N_FFT // 2 - 1 : -1].flip(0)])
        stft = torch.stft(signal, N_FFT, HOP_SAMPLES, window=_hann(), center=False, return_complex=True)
    else:
        stft = torch.stft(signal, N_FFT, HOP_SAMPLES, window=_hann(), return_complex=True)[:, first_frame:]
    power = stft[:, :-1].abs() ** 2
    return (_mel_filters(n_mels) @ power).clamp(min=1e-10).log10()


def causal_log_mel(samples: torch.Tensor, past: torch.Tensor | None = None, n_mels: int = N_MELS) -> torch.Tensor:
    """The causal front end: (…, n_samples) in [-1, 1] -> (…, n_mels, n_samples // 160), scaled to about [-0.5, 1.5].

    Frame m is ready at 10 * (m + 1) ms: it looks at the 400 samples up to there. `past` (…, 240) are the samples before
    `samples`, zeros at the start of a signal.
    """
    import torch

    past = samples.new_zeros(*samples.shape[:-1], CAUSAL_PAST) if past is None else past
    signal = torch.cat([past, samples], dim=-1)
    spectrum = torch.fft.rfft(signal.unfold(-1, N_FFT, HOP_SAMPLES) * _hann())
    power = spectrum.real.square() + spectrum.imag.square()
    mel = (power @ _mel_filters(n_mels).T).transpose(-1, -2)
    return (mel.clamp(min=CAUSAL_FLOOR).log10() + 4.0) / 4.0


def scale_log_mel(raw: torch.Tensor, maximum: torch.Tensor) -> torch.Tensor:
    """Raise everything to `maximum` - 8 and scale to about [-1, 1], as Whisper does."""
    import torch

    return (torch.maximum(raw, maximum - LOG_MEL_RANGE) + 4.0) / 4.0


@functools.cache
def _hann() -> torch.Tensor:
    import torch

    return torch.hann_window(N_FFT)


@functools.cache
def _mel_filters(n_mels: int) -> torch.Tensor:
    """Slaney's mel filters, (n_mels, n_fft / 2 + 1)."""
    import torch
    from transformers.audio_utils import mel_filter_bank

    filters = mel_filter_bank(N_FFT // 2 + 1, n_mels, 0.0, SAMPLE_RATE / 2, SAMPLE_RATE, "slaney", "slaney")
    return torch.from_numpy(filters.T).float()
