"""Which voices exist, which are for training and which only for tests, and how a speaker is drawn at random.

The split is fixed here by name. A held-out voice is a speaker that training never hears, in any accent: six that training
hears from others, and two that it never hears. Variants that are near copies of each other are on the same side.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from . import flite, piper
from .espeak import ACCENTS, FEMALE_VARIANTS, VARIANTS, EspeakVoice
from .speech import Voice

ENGINES: tuple[str, ...] = ("espeak", "flite", "piper")

HELD_OUT_ACCENTS: tuple[str, ...] = ("en-gb-x-gbclan", "en-us-nyc")
HELD_OUT_VARIANTS: tuple[str, ...] = (
    *("Annie", "belinda", "linda", "f4"),
    *("Alex", "edward", "edward2", "gustave", "m3", "m8", "paul", "quincy"),
)

RATE_WPM = (140, 190)
PITCH = (35, 65)  # espeak's units; 50 is the variant's own
PITCH_RANGE = (30, 70)
RESAMPLING = (0.9, 1.1)


@dataclass(frozen=True)
class VoiceFamily:
    """A speaker before the random parameters: an accent of espeak with a variant, or a voice of another engine."""

    engine: str
    accent: str
    variant: str
    gender: str  # "female" or "male"

    @property
    def name(self) -> str:
        """espeak/en-us/m3"""
        return f"{self.engine}/{self.accent}/{self.variant.replace(' ', '_')}"

    def draw(self, rng: random.Random) -> Voice:
        """This speaker with rate, pitch, range and resampling (or what else the engine varies) drawn at random."""
        if self.engine == "espeak":
            return EspeakVoice(
                self.accent,
                self.variant,
                rate_wpm=rng.randint(*RATE_WPM),
                pitch=rng.randint(*PITCH),
                pitch_range=rng.randint(*PITCH_RANGE),
                resampling=round(rng.uniform(*RESAMPLING), 2),
            )
        if self.engine == "flite":
            return flite.draw(self.variant, rng)
        return piper.draw(self.variant, rng)


def known_voices(engines: Sequence[str] = ENGINES) -> list[VoiceFamily]:
    """The voices for training, in a fixed order."""
    accents = [accent for accent in ACCENTS if accent not in HELD_OUT_ACCENTS]
    return _families(engines, accents, held_out=False)


def held_out_voices(engines: Sequence[str] = ENGINES) -> list[VoiceFamily]:
    """The voices for tests alone, in a fixed order: every one is a speaker that no known voice is."""
    return _families(engines, list(ACCENTS), held_out=True)


def draw(rng: random.Random, held_out: bool, engines: Sequence[str] = ("espeak",)) -> Voice:
    """A speaker at random: an engine (each as likely), then a family of it, then its parameters.

    Raises KeyError for an unknown engine, ValueError if the engines have no such voice.
    """
    families = held_out_voices(engines) if held_out else known_voices(engines)
    present = sorted({family.engine for family in families})
    if not present:
        kind = "held-out" if held_out else "known"
        raise ValueError(f"no {kind} voice of {', '.join(engines) or 'no engine'}: add espeak")
    engine = rng.choice(present)
    return rng.choice([family for family in families if family.engine == engine]).draw(rng)


def _families(engines: Sequence[str], accents: Sequence[str], held_out: bool) -> list[VoiceFamily]:
    for engine in engines:
        if engine not in ENGINES:
            raise KeyError(f"no speech engine {engine!r}. Known: {', '.join(ENGINES)}")
    families: list[VoiceFamily] = []
    if "espeak" in engines:
        families += [
            VoiceFamily("espeak", accent, variant, "female" if variant in FEMALE_VARIANTS else "male")
            for accent in accents
            for variant in VARIANTS
            if (variant in HELD_OUT_VARIANTS) == held_out
        ]
    for engine, voices in (("flite", flite.VOICES), ("piper", piper.VOICES)):
        if engine in engines:
            families += [
                VoiceFamily(engine, accent, voice, gender)
                for voice, (accent, gender, is_held_out) in voices.items()
                if is_held_out == held_out
            ]
    return families
