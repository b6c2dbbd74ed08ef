"""Sound to numbers: decoding in pieces, the log-mel, and Silero's voice activity, each against the slow way."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import soundfile
import soxr
import torch
from harness import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from hikari_agent.audio import (
    SAMPLE_RATE,
    StreamingDecoder,
    check_audio_file,
    log10_mel,
    log_mel_spectrogram,
    read_audio,
    scale_log_mel,
)
from hikari_agent.vad import FRAME, SPEECH_THRESHOLD, SileroVad

SPEECH = ROOT / "testsets" / "tiny" / "sense-0870.flac"


def noise(n: int, n_channels: int = 1, seed: int = 0) -> np.ndarray:
    samples = np.random.default_rng(seed).uniform(-0.5, 0.5, (n, n_channels)).astype(np.float32)
    return samples[:, 0] if n_channels == 1 else samples


def decode(samples: np.ndarray, rate: int, cuts: list[int]) -> np.ndarray:
    decoder = StreamingDecoder(rate)
    pieces = [decoder.push(samples[a:b]) for a, b in zip([0, *cuts], [*cuts, len(samples)], strict=True)]
    return np.concatenate([*pieces, decoder.flush()])


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([(44_100, 1), (8_000, 1), (48_000, 2), (16_000, 1), (16_000, 2), (22_050, 2), (11_025, 1)]),
    st.lists(st.integers(0, 20_000), max_size=12),
)
def test_cutting_the_audio_differently_does_not_change_what_is_heard(form, cuts):
    rate, n_channels = form
    samples = noise(20_000, n_channels)
    np.testing.assert_array_equal(decode(samples, rate, sorted(cuts)), decode(samples, rate, []))


@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000])
def test_a_resampled_recording_is_soxr_of_the_whole(rate):
    samples = noise(30_000)
    whole = soxr.resample(samples, rate, SAMPLE_RATE, quality="HQ")
    cut = decode(samples, rate, list(range(0, 30_000, 777)))
    assert abs(len(cut) - 30_000 * SAMPLE_RATE / rate) <= 1
    np.testing.assert_allclose(cut[: len(whole)], whole[: len(cut)], atol=1e-5)


def test_channels_are_averaged():
    np.testing.assert_array_equal(decode(np.array([[0.5, 0.25], [-1, 1]], np.float32), 16_000, [1]), [0.375, 0.0])


def test_16_khz_mono_comes_through_bit_for_bit():
    np.testing.assert_array_equal(decode(noise(1000), 16_000, [1, 999]), noise(1000))


@pytest.mark.parametrize("rate", [0, -1])
def test_a_sample_rate_must_be_positive(rate):
    with pytest.raises(ValueError, match=f"sample rate {rate} Hz: expected a positive number"):
        StreamingDecoder(rate)


def test_a_file_reads_as_its_samples(tmp_path):
    samples = np.round(noise(5000) * 127) / 128
    soundfile.write(tmp_path / "a.wav", samples, 16_000, subtype="PCM_16")
    np.testing.assert_array_equal(read_audio(tmp_path / "a.wav"), samples.astype(np.float32))


def test_what_is_no_audio_file_is_named_with_the_remedy(tmp_path):
    (tmp_path / "a.wav").write_text("hello")
    with pytest.raises(ValueError, match=r"a\.wav is not audio .*ffmpeg -i a\.wav -ac 1 -ar 16000"):
        read_audio(tmp_path / "a.wav")
    with pytest.raises(FileNotFoundError, match=r"no audio file .*b\.wav"):
        check_audio_file(tmp_path / "b.wav")


@pytest.mark.parametrize("n", [201, 320, 1280, 3840, 4001, 16_000])
def test_log_mel_from_a_later_frame_is_the_slice_of_the_whole(n):
    samples = noise(n)
    whole = log10_mel(samples)
    assert whole.shape == (80, n // 160)
    for first in sorted({0, 1, 2, 3, n // 320, n // 160 - 1}):
        if first < n // 160:
            torch.testing.assert_close(log10_mel(samples, first), whole[:, first:], atol=1e-4, rtol=1e-5)


def test_log_mel_is_whispers(golden_audio):
    from transformers import WhisperFeatureExtractor

    samples = golden_audio[:480_000]
    theirs = WhisperFeatureExtractor()(samples, sampling_rate=16_000, return_tensors="np").input_features[0]
    np.testing.assert_allclose(log_mel_spectrogram(samples), theirs, atol=1e-4)


def test_log_mel_of_128_bands_is_whisper_large_v3s(golden_audio):
    from transformers import WhisperFeatureExtractor

    samples = golden_audio[240_000:720_000]
    extractor = WhisperFeatureExtractor(feature_size=128)
    theirs = extractor(samples, sampling_rate=16_000, return_tensors="np").input_features[0]
    np.testing.assert_allclose(log_mel_spectrogram(samples, n_mels=128), theirs, atol=1e-4)


def test_the_floor_lies_8_below_the_maximum():
    raw = torch.tensor([[-10.0, 0.0, 1.0]])
    assert scale_log_mel(raw, raw.max()).tolist() == [[-0.75, 1.0, 1.25]]


def test_silence_has_a_finite_log_mel():
    assert log_mel_spectrogram(np.zeros(1600, np.float32)).unique().tolist() == [-1.5]


@pytest.mark.parametrize("n", [0, 1, 200])
def test_too_few_samples_for_a_spectrogram_are_refused_with_both_counts(n):
    with pytest.raises(ValueError, match=f"{n} samples are too few for a spectrogram: at least 201"):
        log_mel_spectrogram(noise(n))


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """(n_frames, 512): the whole of a spoken sentence, in Silero's frames."""
    samples = read_audio(SPEECH)
    return samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)


def probabilities(vad: SileroVad, frames: np.ndarray, state) -> tuple[list[float], object]:
    out = []
    for frame in frames:
        probability, state = vad(frame, state)
        out.append(probability)
    return out, state


def test_voice_activity_is_silero_s_own_frame_by_frame(speech):
    from silero_vad import load_silero_vad

    theirs = load_silero_vad(onnx=True)
    expected = [float(theirs(torch.from_numpy(frame), SAMPLE_RATE)) for frame in speech]
    found, _ = probabilities(SileroVad(), speech, SileroVad().start())
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_speech_is_told_from_silence(speech):
    vad = SileroVad()
    assert max(probabilities(vad, speech, vad.start())[0]) > SPEECH_THRESHOLD
    assert max(probabilities(vad, np.zeros((30, FRAME), np.float32), vad.start())[0]) < 0.5


def test_a_forked_voice_activity_goes_on_as_if_nothing_had_happened(speech):
    vad = SileroVad()
    _, state = probabilities(vad, speech[:20], vad.start())
    fork = copy.deepcopy(state)
    alone, _ = probabilities(vad, speech[20:40], state)
    probabilities(vad, np.zeros((20, FRAME), np.float32), state)  # a state is a value: using it changes nothing
    assert probabilities(vad, speech[20:40], state)[0] == probabilities(vad, speech[20:40], fork)[0] == alone


@pytest.mark.parametrize("n", [0, 511, 513])
def test_voice_activity_takes_512_samples_only(n):
    with pytest.raises(ValueError, match=r"Silero takes 512 at a time"):
        SileroVad()(np.zeros(n, np.float32), SileroVad().start())
