"""Why the stream need not recompute its window: what is kept equals what a recompute gives, however the audio is cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness import FIRST_SPECIAL, random_model
from hypothesis import given, settings
from hypothesis import strategies as st

from hikari_agent.audio import log_mel_spectrogram
from hikari_agent.decoding import AdaptiveWaitBias
from hikari_agent.release import ReleaseWindow
from hikari_agent.stream import HikariStream

PROMPT = [FIRST_SPECIAL + 1, FIRST_SPECIAL + 6, 1058, 1063]
STEP = 1280


def greedy(window: ReleaseWindow, audio: np.ndarray, penalty: float = 0.6) -> tuple[list[int], torch.Tensor]:
    """The tokens the model chooses over `audio`, and the logits (n_steps, vocab_size) it chose from."""
    state, rows = window.start(PROMPT), []
    size = window.row_samples
    for i in range(len(audio) // size):
        logits, state = window.step(state, torch.from_numpy(audio[i * size : (i + 1) * size]))
        if logits is not None:
            rows.append(logits.clone())
            biased = rows[-1].clone()
            biased[93] -= penalty
            state.tokens.append(int(biased.argmax()))
    return [int((row - penalty * (torch.arange(len(row)) == 93)).argmax()) for row in rows], torch.stack(rows)


def assert_incremental_equals_full(model, audio: np.ndarray, n_rows: int | None = None) -> None:
    tokens, logits = greedy(ReleaseWindow(model, n_rows), audio)
    full_tokens, full_logits = greedy(ReleaseWindow(model, n_rows, incremental=False), audio)
    assert tokens == full_tokens
    torch.testing.assert_close(logits, full_logits, atol=1e-3, rtol=0)
    assert logits.isfinite().all()


def noise(seconds: float, loudness: float, seed: int = 0) -> np.ndarray:
    samples = np.random.default_rng(seed).normal(size=int(seconds * 16_000))
    return (loudness * samples).astype(np.float32)


def rising() -> np.ndarray:
    """Near-silence, then louder and louder: the log-mel floor rises under what was heard long before."""
    return np.concatenate(
        [noise(1.0, loudness, seed) for seed, loudness in enumerate((1e-5, 1e-5, 1e-3, 1e-4, 0.1, 0.3))]
    )


def silence_then_sound() -> np.ndarray:
    zeros = np.zeros(16_000, np.float32)
    return np.concatenate([zeros, noise(1.0, 0.1), zeros, noise(0.5, 1e-4), zeros])


MADE_UP = {
    "rising": rising,
    "silence then sound": silence_then_sound,
    "digital silence": lambda: np.zeros(6 * 16_000, np.float32),
    "falling": lambda: rising()[::-1].copy(),
}


# 1. What is kept equals what a recompute gives


def test_incremental_equals_full_over_a_short_window_and_its_slide(tiny_model, golden_audio):
    assert_incremental_equals_full(tiny_model, golden_audio[: 100 * STEP], n_rows=50)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [337, 375])
def test_incremental_equals_full_over_the_first_window_and_across_its_slide(tiny_model, golden_audio, n_rows):
    assert_incremental_equals_full(tiny_model, golden_audio[: (n_rows + 10) * STEP], n_rows)


@pytest.mark.parametrize("signal", MADE_UP)
def test_incremental_equals_full_when_the_floor_moves(tiny_model, signal):
    assert_incremental_equals_full(tiny_model, MADE_UP[signal]())


@pytest.mark.parametrize("n_rows", [5, 6, 49, 374])
def test_windows_of_any_length_run(tiny_model, golden_audio, n_rows):
    assert_incremental_equals_full(tiny_model, golden_audio[: 60 * STEP], n_rows)


@pytest.mark.parametrize("dilation", [1, 2, 3, 4, 8])
def test_any_dilation_runs(dilation):
    model = random_model(decoder_time_dilation=dilation)
    assert_incremental_equals_full(model, rising(), n_rows=40)


@pytest.mark.parametrize("dilation", [1, 2, 4])
def test_any_dilation_runs_with_voice_activity(dilation, golden_audio):
    """A row of dilation 1 is 320 samples, less than voice activity takes at a time: it looks at the window's last 512."""
    window = ReleaseWindow(random_model(decoder_time_dilation=dilation), 40)
    steps = []
    stream = HikariStream(window, PROMPT, lambda token: b" x", AdaptiveWaitBias(), drain_ms=0, on_step=steps.append)
    stream.push(stream.start(), golden_audio[:16_000])
    assert len(steps) == 16_000 // window.row_samples - 2


@pytest.mark.parametrize("n_rows", [-1, 0, 4, 376])
def test_a_window_the_model_has_no_rows_for_is_refused(tiny_model, n_rows):
    with pytest.raises(ValueError, match=f"a window of {n_rows} rows: this model takes 5 to 375"):
        ReleaseWindow(tiny_model, n_rows)


def test_a_window_the_encoder_has_no_positions_for_is_refused():
    model = random_model(max_source_positions=40)
    ReleaseWindow(model, 11)
    with pytest.raises(
        ValueError, match="12 rows needs 44 encoder frames, the model has positions for 40: choose a shorter"
    ):
        ReleaseWindow(model, 12)


# 2. Cutting the audio differently, or another future, changes nothing that was said


def said(model, pushes: list[np.ndarray], n_rows: int = 30) -> tuple[list[tuple], torch.Tensor]:
    """Emissions (text, audio heard) and logits of a stream that hears these pushes."""
    steps, emissions = [], []
    stream = HikariStream(ReleaseWindow(model, n_rows), PROMPT, lambda token: b" w%d" % token, drain_ms=0,
                          on_step=steps.append)  # fmt: skip
    state = stream.start()
    for samples in pushes:
        new, state = stream.push(state, samples)
        emissions += new
    new, _ = stream.finish(state)
    logits = torch.stack([step.logits for step in steps]) if steps else torch.zeros(0)
    return [(e.text, e.heard_samples) for e in emissions + new], logits


def cut(audio: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    ends = [int(end) for end in np.cumsum(sizes) if end < len(audio)]
    return [audio[a:b] for a, b in zip([0, *ends], [*ends, len(audio)], strict=True)]


@pytest.mark.parametrize("sizes", [[1] * 4000, [319] * 200, [1281] * 50, [1, 319, 1281, 0, 5000] * 20, [1279, 2] * 50])
def test_cutting_the_audio_differently_does_not_change_what_is_said(tiny_model, golden_audio, sizes):
    audio = golden_audio[: 3 * 16_000 + 77]
    expected, logits = said(tiny_model, [audio])
    assert len(expected) > 3
    assert said(tiny_model, cut(audio, sizes))[0] == expected
    assert torch.equal(said(tiny_model, cut(audio, sizes))[1], logits)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.integers(0, 9000), max_size=25), st.integers(0, 24_000))
def test_no_cut_changes_what_is_said(sizes, n_samples):
    model = random_model()
    audio = rising()[40_000 : 40_000 + n_samples]
    whole, pieces = said(model, [audio]), said(model, cut(audio, sizes))
    assert pieces[0] == whole[0]
    assert torch.equal(pieces[1], whole[1])


@pytest.mark.parametrize("n_steps", [5, 29, 30, 40])
def test_audio_after_a_step_changes_nothing_of_that_step(tiny_model, golden_audio, n_steps):
    """All audio comes in one push, so that a stream that looks ahead would be found out."""
    heard = golden_audio[: (n_steps + 2) * STEP]
    _, alone = said(tiny_model, [heard])
    for future in (golden_audio[-20 * STEP :], noise(2, 0.5), np.zeros(STEP, np.float32), noise(0.01, 0.5)):
        assert torch.equal(said(tiny_model, [np.concatenate([heard, future])])[1][:n_steps], alone[:n_steps])


def test_future_audio_does_not_change_past_frames(tiny_model):
    mel = torch.randn(1, 80, 200, generator=torch.Generator().manual_seed(0))
    other = mel.clone()
    other[:, :, 101:] = 3.0
    with torch.inference_mode():
        frames, changed = (tiny_model.model.encoder.encode(m)[0] for m in (mel, other))
    # Column 101 is the first that differs; convolutions of width 3, the second of stride 2, spread it to frame 50.
    assert torch.equal(frames[:50], changed[:50])
    assert ((frames[50:] - changed[50:]).abs().amax(dim=1) > 1e-3).all()


def test_future_tokens_and_frames_do_not_change_past_rows(tiny_model):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randn(1, 80, 64, generator=generator)
    ids = torch.randint(0, 1100, (1, 20), generator=generator)
    other_frames, other_ids = frames.clone(), ids.clone()
    other_frames[:, 4 * 11 :] += 5.0  # row 11 sees frames 0 .. 43
    other_ids[:, 12:] = 7
    with torch.inference_mode():
        logits = tiny_model(encoder_outputs=frames, decoder_input_ids=ids).logits[0]
        changed = tiny_model(encoder_outputs=other_frames, decoder_input_ids=other_ids).logits[0]
    torch.testing.assert_close(changed[:12], logits[:12], atol=1e-5, rtol=0)
    assert ((changed[12:] - logits[12:]).abs().amax(dim=1) > 1e-3).all()


# 3. Which frames and rows may change


def consecutive_encodings(model, audio: np.ndarray, n_steps: range):
    """Whole recomputes one step apart: (mel, frames) before and after, for each step.

    Zeros behind the audio give every recompute the same shape, as in the released server: nothing else is rounded.
    """

    def whole(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        mel = log_mel_spectrogram(audio[: n * STEP])
        with torch.inference_mode():
            frames = model.model.encoder.encode(torch.nn.functional.pad(mel, (0, 600 - mel.shape[1]))[None])[0]
        return mel, frames[: mel.shape[1] // 2]

    before = whole(n_steps.start)
    for n in n_steps[1:]:
        after = whole(n)
        yield before, after
        before = after


def test_under_a_quiet_floor_exactly_the_last_frame_is_provisional(tiny_model, golden_audio):
    audio = np.concatenate([noise(0.4, 0.9), golden_audio[16_000:80_000]])  # the loudest sound comes first
    for (_, old), (_, new) in consecutive_encodings(tiny_model, audio, range(5, 50)):
        assert torch.equal(old[:-1], new[: len(old) - 1])
        assert (old[-1] - new[len(old) - 1]).abs().max() > 1e-3


def test_a_louder_sound_changes_older_frames_only_from_the_first_lifted_cell_on(tiny_model):
    n_lifted = 0
    for (old_mel, old), (new_mel, new) in consecutive_encodings(tiny_model, rising(), range(3, 72)):
        # The last column before was provisional. Two calls of the FFT differ in the last bits.
        differs = ((old_mel[:, :-1] - new_mel[:, : old_mel.shape[1] - 1]).abs() > 1e-5).any(dim=0).nonzero()
        first = (int(differs[0]) - 1) // 2 if len(differs) else len(old) - 1
        first = min(max(first, 0), len(old) - 1)
        n_lifted += first < len(old) - 1
        if first:
            assert (old[:first] - new[:first]).abs().max() < 1e-4
        assert (old[first] - new[first]).abs().max() > 1e-5
    assert n_lifted > 3


def test_the_incremental_encoder_computes_one_step_and_the_provisional_frame_only(tiny_model, golden_audio):
    audio = np.concatenate([noise(0.4, 0.9), golden_audio[16_000:80_000]])
    computed = []
    handle = tiny_model.model.encoder.layer_norm.register_forward_hook(lambda m, i, out: computed.append(out.shape[1]))
    try:
        greedy(ReleaseWindow(tiny_model), audio[: 40 * STEP])
    finally:
        handle.remove()
    assert computed[0] == 12
    assert set(computed[3:]) == {5}


# 4. Forks


@pytest.mark.parametrize("n_heard", [1, 20, 45])
def test_a_forked_stream_goes_its_own_way_and_the_original_as_if_nothing_had_happened(
    tiny_model, golden_audio, n_heard
):
    audio = golden_audio[: 60 * STEP + 100]
    stream = HikariStream(ReleaseWindow(tiny_model, 40), PROMPT, lambda token: b" w%d" % token, AdaptiveWaitBias())

    def rest(state, samples):
        emissions, state = stream.push(state, samples)
        return [(e.text, e.heard_samples) for e in emissions + stream.finish(state)[0]]

    heard, ahead = audio[: n_heard * STEP + 50], audio[n_heard * STEP + 50 :]
    expected = rest(stream.push(stream.start(), heard)[1], ahead)
    other = noise(2, 0.3)
    expected_other = rest(stream.push(stream.start(), heard)[1], other)
    assert expected != expected_other
    state = stream.push(stream.start(), heard)[1]
    fork, second = state.fork(), state.fork()
    assert rest(fork, other) == expected_other
    assert rest(state, ahead) == expected
    assert rest(second, ahead) == expected


def test_a_forked_window_goes_on_with_other_tokens(tiny_model, golden_audio):
    window = ReleaseWindow(tiny_model)
    pieces = [torch.from_numpy(golden_audio[i * STEP : (i + 1) * STEP]) for i in range(30)]
    state = window.start(PROMPT)
    for samples in pieces[:20]:
        logits, state = window.step(state, samples)
        if logits is not None:
            state.tokens.append(93)
    fork = state.fork()
    fork.tokens[-1] = 5
    for samples in pieces[20:]:
        ours, state = window.step(state, samples)
        theirs, fork = window.step(fork, samples)
        state.tokens.append(93)
        fork.tokens.append(5)
    straight = window.start(PROMPT)
    for samples in pieces:
        expected, straight = window.step(straight, samples)
        straight.tokens.append(93) if expected is not None else None
    assert torch.equal(ours, expected)
    assert (theirs - expected).abs().max() > 1e-3
