"""The window that never recomputes, and the causal front end it stands on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness import random_model

from hikari_agent.audio import HOP_SAMPLES, N_FFT, causal_log_mel
from hikari_agent.decoding import AdaptiveWaitBias
from hikari_agent.lanes import LanesWindow
from hikari_agent.release import ReleaseWindow
from hikari_agent.stream import HikariStream
from hikari_agent.tokens import WAIT, Vocabulary
from hikari_agent.training.evaluate import stream_all, stream_batch

PROMPT = [958, 961, 1058, 1063]
STEP = 1280


@pytest.fixture(scope="module")
def model():
    return random_model(frontend="causal")


@pytest.fixture(scope="module")
def audio(golden_audio) -> torch.Tensor:
    samples = torch.from_numpy(np.asarray(golden_audio, np.float32))
    return samples.repeat(1 + 40 * 16_000 // len(samples))


def run(window, audio, n_steps, force=None):
    """Greedy tokens of `n_steps` steps, and the logits of each."""
    state, tokens, logits = window.start(PROMPT), [], []
    for i in range(n_steps):
        row, state = window.step(state, audio[i * STEP : (i + 1) * STEP])
        if row is None:
            continue
        token = int(row.argmax()) if force is None else force[len(tokens)]
        tokens.append(token)
        logits.append(row)
        state.tokens.append(token)
    return tokens, torch.stack(logits), state


def slow_mel(samples: np.ndarray) -> np.ndarray:
    """Frame by frame, each from the 400 samples before its end."""
    from transformers.audio_utils import mel_filter_bank

    filters = mel_filter_bank(N_FFT // 2 + 1, 80, 0.0, 8000, 16_000, "slaney", "slaney")
    window = np.hanning(N_FFT + 1)[:-1]
    padded = np.concatenate([np.zeros(N_FFT - HOP_SAMPLES), samples])
    frames = []
    for m in range(len(samples) // HOP_SAMPLES):
        power = np.abs(np.fft.rfft(padded[m * HOP_SAMPLES : m * HOP_SAMPLES + N_FFT] * window)) ** 2
        frames.append((np.log10(np.maximum(power @ filters, 1e-6)) + 4) / 4)
    return np.array(frames).T


def test_the_causal_front_end_equals_its_slow_version(audio):
    samples = audio[:16_000]
    np.testing.assert_allclose(causal_log_mel(samples).numpy(), slow_mel(samples.numpy()), atol=2e-4)


def test_future_audio_does_not_change_past_frames(model, audio):
    """Frame j of the encoder hears 20 * (j + 1) ms and nothing after it."""
    samples = audio[:16_000].clone()
    before = model.model.encoder.encode(causal_log_mel(samples)[None])
    samples[20 * 320 :] = 0.7
    after = model.model.encoder.encode(causal_log_mel(samples)[None])
    assert torch.equal(before[:, :20], after[:, :20])
    assert not torch.equal(before[:, 20], after[:, 20])


def test_the_first_lane_says_what_the_whole_pass_says(model, audio):
    tokens, logits, _ = run(LanesWindow(model, overlap_rows=4), audio, 90)
    mel = causal_log_mel(audio[: 90 * STEP])[None]
    whole = model(input_features=mel, decoder_input_ids=torch.tensor([PROMPT + tokens[:-1]])).logits[0, 3:]
    torch.testing.assert_close(logits, whole[: len(logits)], atol=1e-4, rtol=1e-4)


def test_a_lane_that_takes_over_is_a_window_that_began_later(model, audio):
    window = LanesWindow(model, n_rows=40, overlap_rows=15)
    tokens, logits, _ = run(window, audio, 60)
    # The second lane begins after 24 steps and takes over at the 40th: until then it is given the first lane's tokens.
    begin = 24
    forced = tokens[begin:]
    second = LanesWindow(model, n_rows=60, overlap_rows=4)
    past = torch.cat([audio[begin * STEP - 240 : begin * STEP]])
    state = second.start(PROMPT)
    state.samples = past
    seen = []
    for i in range(begin, 60):
        row, state = second.step(state, audio[i * STEP : (i + 1) * STEP])
        if row is not None:
            state.tokens.append(forced[len(seen)])
            seen.append(row)
    n_after = 60 - 39
    torch.testing.assert_close(logits[-n_after:], torch.stack(seen)[-n_after:], atol=1e-4, rtol=1e-4)


def test_a_stream_holds_no_more_after_ten_windows_than_after_two(model, audio):
    window = LanesWindow(model, n_rows=20)
    _, _, early = run(window, audio, 45)
    _, _, late = run(window, audio, 225)
    assert len(late.lanes) == len(early.lanes) <= 2
    assert len(late.tokens) == len(early.tokens) == 21
    assert late.lanes[0].rows[0].keys.shape == early.lanes[0].rows[0].keys.shape


def test_a_fork_goes_on_alone(model, audio):
    window = LanesWindow(model, n_rows=20)
    _, _, state = run(window, audio, 30)
    fork = state.fork()
    state.tokens.append(5)
    window.step(state, audio[:STEP])
    row, _ = window.step(fork, audio[30 * STEP : 31 * STEP])
    _, longer, _ = run(window, audio, 31)
    torch.testing.assert_close(row, longer[-1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_rows", [100, 16])
def test_a_batch_of_streams_and_variants_says_what_each_says_alone(model, audio, n_rows):
    sounds = [audio[: 30 * STEP].numpy(), audio[9000 : 9000 + 25 * STEP].numpy()]
    prompts = torch.tensor([PROMPT, [958, 963, 1058, 1063], PROMPT])
    penalties = torch.tensor([0.0, 0.3, 5.0])
    window = LanesWindow(model, n_rows)
    said = stream_batch(window, sounds, prompts, penalties, rows=41)
    for i, sound in enumerate(sounds):
        for v in range(3):
            state, alone = window.start(prompts[v].tolist()), []
            silent = torch.cat([torch.from_numpy(sound), torch.zeros(20 * STEP)])
            for k in range(40):
                row, state = window.step(state, silent[k * STEP : (k + 1) * STEP])
                if row is not None:
                    row = row.clone()
                    row[WAIT] -= penalties[v]
                    alone.append(int(row.argmax()))
                    state.tokens.append(alone[-1])
            assert said[i, v].tolist() == alone


def test_recordings_of_two_lengths_end_in_a_batch_as_each_ends_in_a_stream(model, audio, tiny_folder):
    vocabulary = Vocabulary.from_folder(tiny_folder)
    sounds = [audio[: 20 * STEP + 700].numpy(), audio[9000 : 9000 + 47 * STEP].numpy()]
    penalty = 0.2
    said = stream_all(model, vocabulary, sounds, "en", ["de"], [penalty])["de", penalty]
    prompt = vocabulary.prompt("translate", "de")
    for sound, batched in zip(sounds, said, strict=True):
        bias = AdaptiveWaitBias(penalty, boost=0.0)
        stream = HikariStream(LanesWindow(model), prompt, vocabulary.token_bytes, bias, drain_cap_ms=4000)
        emissions, state = stream.push(stream.start(), sound)
        rest, _ = stream.finish(state)
        assert " ".join(e.text for e in [*emissions, *rest]).split() == batched.units
        heard = [e.heard_samples / 16_000 for e in [*emissions, *rest] for _ in e.text.split()]
        assert heard == pytest.approx(batched.heard_s)


@pytest.mark.parametrize(("window", "frontend"), [(LanesWindow, "released"), (ReleaseWindow, "causal")])
def test_a_window_names_the_front_end_it_needs(window, frontend):
    with pytest.raises(ValueError, match=r"use '(lanes|release)'"):
        window(random_model(frontend=frontend))


@pytest.mark.parametrize(
    "sizes", [dict(n_rows=3), dict(n_rows=1000), dict(n_rows=40, overlap_rows=2), dict(overlap_rows=90)]
)
def test_a_window_or_an_overlap_that_does_not_fit_is_refused(model, sizes):
    with pytest.raises(ValueError, match=r"expected|takes"):
        LanesWindow(model, **sizes)


def test_an_unknown_front_end_is_refused():
    with pytest.raises(ValueError, match="Known: released, causal"):
        random_model(frontend="future")


def test_a_vocabulary_of_ones_own_waits_with_93(tmp_path):
    from hikari_agent.training.vocabulary import train_vocabulary

    n = train_vocabulary([" the", " then", "医者", "は"] * 50, 262, ["en", "ja"], tmp_path)
    vocabulary = Vocabulary.from_folder(tmp_path)
    assert vocabulary.token_bytes(WAIT) == b"~"
    assert vocabulary.languages() == ["en", "ja"]
    assert len(set(vocabulary.prompt("translate", "ja"))) == 4
    assert max(vocabulary.prompt("translate", "ja")) < n
