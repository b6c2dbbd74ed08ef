"""What happens to a section's sound before the model hears it: speed, reverberation, gain, noise.

Each is drawn anew for every section, from one random generator, so the same seed gives the same sound.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ..audio import SAMPLE_RATE

N_ROOMS = 64  # rooms to reverberate in
NOISE_COLOURS = (0.0, 0.5, 1.0, 1.5, 2.0)  # exponents of 1/f: white to brown


@dataclass(frozen=True)
class Augmentation:
    """How much of each. The defaults change nothing.

    `gain_db` and `snr_db` are (lowest, highest), drawn evenly; so is `speed`, for the share `speed_share` of sections.
    The noise lies below the section's mean power by `snr_db`; a section gets it with the share `noise_share`.
    """

    gain_db: tuple[float, float] = (0.0, 0.0)
    noise_share: float = 0.0
    snr_db: tuple[float, float] = (10.0, 40.0)
    reverb_share: float = 0.0
    speed_share: float = 0.0
    speed: tuple[float, float] = (0.9, 1.1)

    def draw_speed(self, rng: np.random.Generator) -> float:
        """How much faster a section is to be played; 1.0 is as recorded."""
        return float(rng.uniform(*self.speed)) if rng.random() < self.speed_share else 1.0

    def __call__(self, samples: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Reverberation, gain and noise: (n,) float32 -> the same shape, inside [-1, 1]."""
        if rng.random() < self.reverb_share:
            samples = reverberate(samples, room_impulse(int(rng.integers(N_ROOMS))))
        gain = 10 ** (rng.uniform(*self.gain_db) / 20)
        if gain != 1.0:
            samples = samples * np.float32(gain)
        if rng.random() < self.noise_share:
            power = float(np.mean(samples**2)) + 1e-9
            noise = coloured_noise(float(rng.choice(NOISE_COLOURS)))
            noise = np.resize(np.roll(noise, rng.integers(len(noise))), len(samples))
            samples = samples + noise * np.float32(np.sqrt(power) * 10 ** (-rng.uniform(*self.snr_db) / 20))
        return np.clip(samples, -1.0, 1.0, dtype=np.float32)


def change_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Play faster (and higher) by resampling: (n,) -> (n / speed,)."""
    import soxr

    return samples if speed == 1.0 else soxr.resample(samples, SAMPLE_RATE * speed, SAMPLE_RATE, quality="LQ")


def reverberate(samples: np.ndarray, impulse: np.ndarray) -> np.ndarray:
    """The sound in a room whose impulse response is given, as loud as before and not later: (n,) -> (n,)."""
    from scipy.signal import oaconvolve

    wet = oaconvolve(samples, impulse)[: len(samples)]
    return (wet * np.sqrt((np.mean(samples**2) + 1e-12) / (np.mean(wet**2) + 1e-12))).astype(np.float32)


@functools.lru_cache(maxsize=N_ROOMS)
def room_impulse(room: int) -> np.ndarray:
    """The impulse response of one of `N_ROOMS` shoe-box rooms, from its direct sound on."""
    import pyroomacoustics

    rng = np.random.default_rng(room)
    size = rng.uniform([2.5, 2.5, 2.2], [9.0, 7.0, 4.0])
    shoe_box = pyroomacoustics.ShoeBox(
        size, fs=SAMPLE_RATE, materials=pyroomacoustics.Material(rng.uniform(0.15, 0.7)), max_order=12
    )
    shoe_box.add_source(size * rng.uniform(0.15, 0.85, 3))
    shoe_box.add_microphone(size * rng.uniform(0.15, 0.85, 3))
    shoe_box.compute_rir()
    impulse = shoe_box.rir[0][0]
    return impulse[max(0, int(np.argmax(np.abs(impulse))) - 16) :]


@functools.cache
def coloured_noise(exponent: float, seconds: int = 20) -> np.ndarray:
    """Noise of unit power whose power falls as 1 / f^`exponent`, (seconds * 16,000,) float32."""
    rng = np.random.default_rng(int(exponent * 10))
    n = seconds * SAMPLE_RATE
    spectrum = np.fft.rfft(rng.standard_normal(n))
    frequency = np.maximum(np.fft.rfftfreq(n, 1 / SAMPLE_RATE), 20.0)
    noise = np.fft.irfft(spectrum / frequency ** (exponent / 2), n)
    return (noise / noise.std()).astype(np.float32)
