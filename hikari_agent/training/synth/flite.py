"""flite in this process, through libflite: three voices built from recordings, with exact phone and word times.

Every phone is reached from its token, so the times need no guess. The synthesis noise is the C library's rand(), which is
seeded for every sentence. One sentence at a time in a process; the libraries stay loaded.

The diphone voices kal and kal16 are left out: their phone times run about 1 % ahead of their samples.
"""

from __future__ import annotations

import ctypes
import functools
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .speech import OTHER, PHONEMES, SILENCE, Speech, checked_speech, checked_words, to_16_khz

# Name -> accent, gender, whether it is held out of training, the mean pitch (Hz) that int_f0_target_mean names when the
# voice speaks as recorded; rms ignores it.
_VOICES: dict[str, tuple[str, str, bool, int | None]] = {
    "slt": ("en-us", "female", False, 170),
    "awb": ("en-gb-scotland", "male", False, 122),
    "rms": ("en-us", "male", True, None),
}
VOICES: dict[str, tuple[str, str, bool]] = {name: entry[:3] for name, entry in _VOICES.items()}

STRETCH = (0.85, 1.2)
PITCH_FACTOR = (0.85, 1.2)
RESAMPLING = (0.9, 1.1)

_CLASSES = {label: label for label in PHONEMES} | {"pau": SILENCE, "ssil": SILENCE, "h#": SILENCE}
_PLAIN = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "."})
_one_at_a_time = threading.Lock()


class _Wave(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char_p),
        ("sample_rate", ctypes.c_int),
        ("n_samples", ctypes.c_int),
        ("n_channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    )


class _CstVoice(ctypes.Structure):  # as far as we need it
    _fields_ = (("name", ctypes.c_char_p), ("features", ctypes.c_void_p))


class _Phone(NamedTuple):
    name: str
    start_s: float
    end_s: float


class _Token(NamedTuple):
    text: str  # with its punctuation
    phones: list[_Phone]


@dataclass(frozen=True)
class FliteVoice:
    """One speaker of flite: `speaker` slt, awb or rms.

    `stretch` 0.5-2 makes every phone that much longer, `pitch_hz` 40-400 is the mean pitch (None: as recorded), `resampling`
    0.5-2 plays the speech that much faster. Raises KeyError for an unknown speaker, ValueError for a number out of range.
    """

    speaker: str = "slt"
    stretch: float = 1.0
    pitch_hz: int | None = None
    resampling: float = 1.0

    def __post_init__(self) -> None:
        if self.speaker not in _VOICES:
            raise KeyError(f"no flite voice {self.speaker!r}. Known: {', '.join(_VOICES)}")
        if self.pitch_hz is not None and _VOICES[self.speaker][3] is None:
            raise ValueError(f"flite's {self.speaker} has one pitch: leave pitch_hz out")
        for what, value, low, high in (
            ("stretch", self.stretch, 0.5, 2.0),
            ("pitch_hz", self.pitch_hz or 100, 40, 400),
            ("resampling", self.resampling, 0.5, 2.0),
        ):
            if not low <= value <= high:
                raise ValueError(f"{what} {value}: expected {low} to {high}")

    @property
    def engine(self) -> str:
        """The synthesiser."""
        return "flite"

    @property
    def name(self) -> str:
        """The speaker with all parameters: flite/slt/stretch1.00/pitch170/x1.00"""
        pitch = self.pitch_hz or _VOICES[self.speaker][3] or "own"
        return f"flite/{self.speaker}/stretch{self.stretch:.2f}/pitch{pitch}/x{self.resampling:.2f}"

    def speak(self, words: Sequence[str]) -> Speech:
        """Speak one sentence; the words' times are those of their phones.

        Raises ValueError for letters that are not English, or if flite's tokens are not the words; ImportError without
        libflite.
        """
        words = checked_words(words)
        sentence = " ".join(words)
        text = sentence.translate(_PLAIN)
        if not text.isascii():
            raise ValueError(f"flite reads English letters only, not all of {sentence!r}; drop the sentence")
        samples, rate, segments, tokens = _synthesise(self, text)
        spans = _word_spans(text.split(), tokens)
        factor = self.resampling
        return checked_speech(
            to_16_khz(samples.astype(np.float32) / 32768, rate * factor),
            [(start / factor, end / factor) for start, end in spans],
            [(_CLASSES.get(phone.name, OTHER), phone.start_s / factor) for phone in segments],
            sentence,
        )


def draw(speaker: str, rng: random.Random) -> FliteVoice:
    """`speaker` with stretch, pitch and resampling drawn at random."""
    stretch = round(rng.uniform(*STRETCH), 2)
    factor = rng.uniform(*PITCH_FACTOR)
    resampling = round(rng.uniform(*RESAMPLING), 2)
    own_hz = _VOICES[speaker][3]
    return FliteVoice(speaker, stretch, None if own_hz is None else round(own_hz * factor), resampling)


def _word_spans(words: Sequence[str], tokens: Sequence[_Token]) -> list[tuple[float, float]]:
    """Start and end of every word in seconds, from the tokens that spell it. Raises ValueError if they do not."""
    spans = []
    rest = iter(tokens)
    for word in words:
        spelt, phones = "", list[_Phone]()
        while len(spelt) < len(word):
            token = next(rest, None)
            if token is None:
                break
            spelt += token.text
            phones += token.phones
        if spelt != word or not phones:
            raise ValueError(f"flite reads {word!r} in {' '.join(words)!r} as {spelt!r}; drop the sentence")
        spans.append((phones[0].start_s, phones[-1].end_s))
    return spans


def _synthesise(voice: FliteVoice, text: str) -> tuple[np.ndarray, int, list[_Phone], list[_Token]]:
    """int16 (n,) samples, their rate in Hz, all phones with pauses, and the tokens with theirs."""
    with _one_at_a_time:
        flite = _library()
        pointer = _loaded_voice(voice.speaker)
        features = ctypes.cast(pointer, ctypes.POINTER(_CstVoice)).contents.features
        flite.feat_set_float(features, b"duration_stretch", voice.stretch)
        pitch_hz = voice.pitch_hz or _VOICES[voice.speaker][3]
        if pitch_hz is not None:
            flite.feat_set_float(features, b"int_f0_target_mean", pitch_hz)
        ctypes.CDLL(None).srand(0)
        utterance = flite.flite_synth_text(text.encode("ascii"), pointer)
        if not utterance:
            raise ValueError(f"flite says nothing to {text!r}; drop the sentence")
        try:
            wave = ctypes.cast(flite.utt_wave(utterance), ctypes.POINTER(_Wave)).contents
            if wave.n_samples <= 0:
                raise ValueError(f"flite says nothing to {text!r}; drop the sentence")
            samples = np.ctypeslib.as_array(wave.samples, (wave.n_samples,)).copy()
            segments = [_phone(item) for item in _items(flite.relation_head(flite.utt_relation(utterance, b"Segment")))]
            tokens = [_token(item) for item in _items(flite.relation_head(flite.utt_relation(utterance, b"Token")))]
            return samples, int(wave.sample_rate), segments, tokens
        finally:
            flite.delete_utterance(utterance)


def _token(item: int) -> _Token:
    flite = _library()
    text = "".join(_feature(item, name) for name in (b"prepunctuation", b"name", b"punc"))
    phones = []
    for word in _items(flite.item_daughter(item)):
        for syllable in _items(_daughter_as(word, b"SylStructure")):
            for segment in _items(flite.item_daughter(syllable)):
                phones.append(_phone(flite.item_as(segment, b"Segment")))
    return _Token(text, phones)


def _phone(segment: int) -> _Phone:
    """A phone lasts from the end of the one before to its own end."""
    flite = _library()
    before = flite.item_prev(segment)
    start_s = flite.item_feat_float(before, b"end") if before else 0.0
    return _Phone(_feature(segment, b"name"), start_s, flite.item_feat_float(segment, b"end"))


def _items(item: int | None) -> Iterator[int]:
    """The item and those after it in its relation."""
    while item:
        yield item
        item = _library().item_next(item)


def _daughter_as(item: int, relation: bytes) -> int | None:
    flite = _library()
    there = flite.item_as(item, relation)
    return flite.item_daughter(there) if there else None


def _feature(item: int, name: bytes) -> str:
    flite = _library()
    return flite.item_feat_string(item, name).decode() if flite.item_feat_present(item, name) else ""


@functools.cache
def _library() -> ctypes.CDLL:
    flite = _load("libflite.so.1")
    pointer, string = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in (
        ("flite_synth_text", pointer, [string, pointer]),
        ("utt_wave", pointer, [pointer]),
        ("utt_relation", pointer, [pointer, string]),
        ("relation_head", pointer, [pointer]),
        ("item_next", pointer, [pointer]),
        ("item_prev", pointer, [pointer]),
        ("item_daughter", pointer, [pointer]),
        ("item_as", pointer, [pointer, string]),
        ("item_feat_present", ctypes.c_int, [pointer, string]),
        ("item_feat_string", string, [pointer, string]),
        ("item_feat_float", ctypes.c_float, [pointer, string]),
        ("feat_set_float", None, [pointer, string, ctypes.c_float]),
        ("delete_utterance", None, [pointer]),
    ):
        function = getattr(flite, name)
        function.restype, function.argtypes = result, arguments
    flite.flite_init()
    return flite


@functools.cache
def _loaded_voice(speaker: str) -> int:
    """The pointer to a voice."""
    register = getattr(_load(f"libflite_cmu_us_{speaker}.so.1"), f"register_cmu_us_{speaker}")
    register.restype, register.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
    return int(register(None))


def _load(library: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(library)
    except OSError as error:
        raise ImportError(f"flite voices need {library}: apt-get install libflite1 ({error})") from error
