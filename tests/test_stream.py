"""The stream's own rules, on a model whose tokens are written down beforehand: when words leave, and how it ends."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hikari_agent.decoding import AdaptiveWaitBias
from hikari_agent.stream import Emission, HikariStream
from hikari_agent.tokens import WAIT

STEP = 1280
WORDS = {1: b" eins", 2: b" zwei", 3: b"mal", 4: b" drei"}


class ScriptedWindow:
    """Takes the place of a ReleaseWindow: the script holds the token of each step, then WAIT for ever."""

    row_samples = STEP

    def __init__(self, script: list[int]) -> None:
        self.script = script

    def start(self, prompt: list[int]) -> SimpleNamespace:
        return SimpleNamespace(tokens=list(prompt), samples=torch.zeros(0), n_steps=0, last_row=0)

    def step(self, state: SimpleNamespace, samples: torch.Tensor):
        assert samples.shape == (STEP,)
        state.samples = torch.cat([state.samples, samples])
        state.n_steps += 1
        j = state.n_steps - 3
        if j < 0:
            return None, state
        return torch.eye(100)[self.script[j] if j < len(self.script) else WAIT], state


def run(script: list[int], n_samples: int, **options) -> tuple[list[Emission], list[Emission], SimpleNamespace]:
    """Emissions while the audio runs, emissions at its end, and the window's state."""
    stream = HikariStream(ScriptedWindow(script), [50, 51, 52, 53], WORDS.__getitem__, **options)
    before, state = stream.push(stream.start(), np.ones(n_samples, np.float32))
    after, state = stream.finish(state)
    return before, after, state.window


def test_a_word_is_stamped_with_the_audio_heard_when_it_was_known_to_be_complete():
    before, after, _ = run([1, WAIT, 2, 3, 4, WAIT], 8 * STEP)
    assert before == [Emission("eins", 4 * STEP), Emission("zweimal", 7 * STEP), Emission("drei", 8 * STEP)]
    assert after == []


def test_the_words_of_the_end_carry_the_length_of_the_recording():
    before, after, _ = run([1, 2, 3, 4], 4 * STEP + 7, drain_ms=160)
    assert before == [Emission("eins", 4 * STEP)]
    assert after == [Emission("zweimal drei", 4 * STEP + 7, last=True)]


def test_the_last_step_is_filled_with_silence():
    _, _, window = run([], 4 * STEP + 7, drain_ms=0)
    assert len(window.samples) == 5 * STEP
    assert window.samples[: 4 * STEP + 7].eq(1).all()
    assert not window.samples[4 * STEP + 7 :].any()


@pytest.mark.parametrize(("drain_ms", "n_rows"), [(0, 0), (1, 1), (80, 1), (81, 2), (1000, 13)])
def test_the_end_is_reached_when_the_model_has_said_wait_for_drain_ms_of_silence(drain_ms, n_rows):
    _, _, window = run([1], 3 * STEP, drain_ms=drain_ms)
    assert window.n_steps == 3 + n_rows


def test_text_during_the_drain_starts_the_count_again():
    _, after, window = run([1, WAIT, WAIT, 2, WAIT, WAIT, WAIT, 4], 3 * STEP, drain_ms=240)
    assert [e.text for e in after] == ["eins zwei"]
    assert window.n_steps == 3 + 6


def test_a_model_that_waits_for_more_when_the_audio_ends_still_gets_its_turn():
    """The WAITs before the end say that it was listening, not that it has nothing left to say."""
    _, after, _ = run([*[WAIT] * 20, WAIT, WAIT, 1, 2], 22 * STEP, drain_ms=240)
    assert [e.text for e in after] == ["eins zwei"]


@pytest.mark.parametrize(("cap_ms", "n_rows"), [(0, 0), (79, 0), (80, 1), (400, 5)])
def test_a_model_that_never_waits_is_cut_off_at_the_cap(cap_ms, n_rows):
    _, after, window = run([1] * 100, 3 * STEP, drain_cap_ms=cap_ms)
    assert window.n_steps == 3 + n_rows
    assert after[0].text.split() == ["eins"] * (1 + n_rows)


@pytest.mark.parametrize("n_samples", [0, 1, 3 * STEP - 1])
def test_audio_shorter_than_the_prompts_says_nothing(n_samples):
    before, after, window = run([1, 2], n_samples)
    assert before == after == []
    assert window.tokens == [50, 51, 52, 53]


def test_a_stream_that_has_ended_says_nothing_more_and_hears_nothing_more():
    stream = HikariStream(ScriptedWindow([1, 2]), [], WORDS.__getitem__)
    _, state = stream.push(stream.start(), np.zeros(5 * STEP, np.float32))
    _, state = stream.finish(state)
    assert stream.finish(state)[0] == []
    with pytest.raises(AssertionError, match="this stream has ended"):
        stream.push(state, np.zeros(STEP, np.float32))


def test_voice_activity_hears_the_last_512_samples_of_each_step_and_keeps_its_state():
    heard = []

    class Listener:
        def start(self) -> int:
            return 0

        def __call__(self, samples: np.ndarray, n: int) -> tuple[float, int]:
            heard.append((n, samples.copy()))
            return 0.9, n + 1

    stream = HikariStream(ScriptedWindow([]), [], WORDS.__getitem__, AdaptiveWaitBias(0.0, boost=0.5), vad=Listener())
    audio = np.arange(14 * STEP, dtype=np.float32)
    _, state = stream.push(stream.start(), audio)
    assert [n for n, _ in heard] == list(range(12))
    for n, samples in heard:
        np.testing.assert_array_equal(samples, audio[(n + 3) * STEP - 512 : (n + 3) * STEP])
    assert state.wait_penalty == 1.0  # after 11 and 12 WAITs: the list must be longer than ten


def test_a_constant_bias_never_calls_the_voice_activity():
    class Deaf:
        def start(self) -> None:
            return None

    before, _, _ = run([1, 2], 5 * STEP, vad=Deaf())
    assert before
