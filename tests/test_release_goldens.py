"""The released step loop, token for token, against arrays that a rebuild of it made (tests/goldens/hikari/README.md)."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from harness import FIRST_SPECIAL, GOLDENS, ReplaySpeech, agent_arguments, push_all, run_simuleval

from hikari_agent.audio import log_mel_spectrogram
from hikari_agent.decoding import AdaptiveWaitBias, RepetitionPenalty, WaitBias
from hikari_agent.release import ReleaseWindow
from hikari_agent.stream import HikariStream
from hikari_agent.tokens import LANGUAGES_WITHOUT_BLANKS, Vocabulary, WordAssembler

ADAPTIVE = np.load(GOLDENS / "adaptive.npz")
STEPS = np.load(GOLDENS / "steps_w375.npz")
META = json.loads(str(ADAPTIVE["meta_json"]))


def golden_run(name: str) -> dict:
    """Settings and expected arrays of one run, by one set of names."""
    if name in META:
        meta, arrays, prefix = META[name], ADAPTIVE, name
        speech = ADAPTIVE["speech"] if meta["boost"] else np.zeros(600, bool)
        settings = dict(n_rows=meta["window"], prompt=meta["prompt"], n_chunks=meta["chunks"], speech=speech)
        settings |= dict(baseline=meta["baseline"], boost=meta["boost"], decay=meta["decay"])
        settings |= dict(repetition=meta["repetition_penalty"], position=arrays[f"{name}_pos"])
    else:
        arrays, prefix = STEPS, name
        settings = dict(n_rows=375, prompt=STEPS["prompt"].tolist(), n_chunks=563, speech=np.zeros(600, bool))
        settings |= dict(baseline=float(name[2:]), boost=0.0, decay=0.3, repetition=0.0, position=STEPS["pos"])
    for key in ("tokens", "margin", "nctx"):
        settings[key] = arrays[f"{prefix}_{key}"]
    return settings


QUICK_RUNS = ("p50", "a50")
LONG_RUNS = ("wp0.0", "wp0.6", "wp1.5", "a337")
RUNS = [*QUICK_RUNS, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG_RUNS)]


def bias_of(run: dict) -> WaitBias:
    return AdaptiveWaitBias(run["baseline"], run["boost"], run["decay"]) if run["boost"] else WaitBias(run["baseline"])


# Inside a long window a full recompute of each step is slow: test_incremental.py compares the two there.
@pytest.mark.parametrize(
    ("name", "incremental"),
    [
        *((name, incremental) for name in QUICK_RUNS for incremental in (True, False)),
        *(pytest.param(name, True, marks=pytest.mark.slow) for name in LONG_RUNS),
    ],
)
def test_the_stream_gives_the_released_tokens(tiny_model, golden_audio, name, incremental):
    run = golden_run(name)
    steps = []
    stream = HikariStream(
        ReleaseWindow(tiny_model, run["n_rows"], incremental), run["prompt"], lambda token: b" x",
        bias=bias_of(run), repetition=RepetitionPenalty(run["repetition"]), vad=ReplaySpeech(run["speech"]),
        drain_ms=0, on_step=steps.append,
    )  # fmt: skip
    state = stream.start()
    for i in range(run["n_chunks"]):
        _, state = stream.push(state, golden_audio[i * 1280 : (i + 1) * 1280])
    assert [s.token for s in steps] == run["tokens"].tolist()
    assert [s.context_length for s in steps] == run["nctx"].tolist()
    assert [s.row for s in steps] == run["position"].tolist()
    np.testing.assert_allclose([s.margin for s in steps], run["margin"], atol=1e-3)
    if name in META:
        np.testing.assert_allclose([s.wait_penalty for s in steps], ADAPTIVE[f"{name}_wp"], atol=1e-9)
    else:
        raw = np.stack([steps[j].logits.numpy() for j in STEPS["logit_steps"]])
        np.testing.assert_allclose(raw, STEPS[f"{name}_logits"], atol=1e-3)


def make_agent(tiny_folder, run: dict):
    from hikari_agent.agent import HikariAgent

    names = {958 + 1: "en", 961: "de", 963: "ru", 966: "ja"}
    agent = HikariAgent(
        agent_arguments(
            tiny_folder, task="translate" if run["prompt"][2] == 1058 else "transcribe", target=names[run["prompt"][1]],
            wait_penalty=run["baseline"], boost=run["boost"], decay=run["decay"], window_rows=run["n_rows"],
            repetition_penalty=run["repetition"], drain_ms=0,
        )
    )  # fmt: skip
    stream = agent.stream_to(names[run["prompt"][1]])
    assert stream.prompt == run["prompt"]
    stream.vad = ReplaySpeech(run["speech"])
    return agent, stream


@pytest.mark.parametrize("segment_ms", [80, 200, 1000])
@pytest.mark.parametrize("name", RUNS)
def test_the_agent_gives_the_released_tokens_whatever_the_segment_size(tiny_folder, golden_audio, name, segment_ms):
    run = golden_run(name)
    agent, stream = make_agent(tiny_folder, run)
    tokens = []
    stream.on_step = lambda step: tokens.append(step.token)
    push_all(agent, golden_audio[: run["n_chunks"] * 1280], segment_ms)
    assert tokens == run["tokens"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("segment_ms", [80, 200, 1000])
def test_simuleval_logs_the_released_tokens_at_the_time_they_were_decided(
    tiny_folder, tmp_path, golden_audio, segment_ms
):
    import soundfile

    run = golden_run("p50")
    audio = golden_audio[: run["n_chunks"] * 1280]
    soundfile.write(tmp_path / "a.wav", audio, 16_000, subtype="PCM_16")
    _, rows = run_simuleval(
        tmp_path, [tmp_path / "a.wav"], "--agent-class", "hikari_agent.agent.HikariAgent",
        "--hikari-model", str(tiny_folder), "--hikari-target", "ru", "--hikari-wait-penalty", "0.6", "--hikari-boost", "0",
        "--hikari-window-rows", "50", "--hikari-drain-ms", "0", segment_ms=segment_ms,
    )  # fmt: skip
    token_bytes = Vocabulary.from_folder(tiny_folder).token_bytes
    assembler, words, delays = WordAssembler(), [], []
    for j, token in enumerate(run["tokens"].tolist()):
        new = assembler.wait() if token == 93 else assembler.push(token_bytes(token))
        words += new
        step_ms = (3 + j) * 80
        delays += [min(-(-step_ms // segment_ms) * segment_ms, len(audio) / 16)] * len(new)
    rest = assembler.flush()
    assert rows[0]["prediction"].split() == words + rest
    assert rows[0]["delays"] == delays + [len(audio) / 16] * len(rest)


def test_log_mel_equals_the_released_front_end(golden_audio):
    golden = np.load(GOLDENS / "logmel.npz")
    for n in (3840, 15360):
        np.testing.assert_allclose(log_mel_spectrogram(golden_audio[:n]), golden[f"mel_{n}"], atol=1e-4)
    mel = log_mel_spectrogram(golden_audio[1280:481280])
    np.testing.assert_allclose(mel[:, golden["mel_480000_from1280_idx"]], golden["mel_480000_from1280"], atol=1e-4)
    np.testing.assert_allclose(mel.max(), golden["mel_480000_from1280_max"], atol=1e-4)
    np.testing.assert_allclose(mel.min(), golden["mel_480000_from1280_min"], atol=1e-4)
    mel = log_mel_spectrogram(golden_audio[:478720])
    np.testing.assert_allclose(mel[:, golden["mel_478720_idx"]], golden["mel_478720"], atol=1e-4)


def test_encoder_states_equal_the_released_ones(tiny_model, golden_audio):
    golden = np.load(GOLDENS / "encoder.npz")
    for j in (0, 9, 100, 371, 372, 373, 560):
        end = 3840 + 1280 * j
        n = int(golden[f"enc_j{j}_nsamples"])
        mel = log_mel_spectrogram(golden_audio[end - n : end])
        mel = torch.nn.functional.pad(mel, (0, 3000 - mel.shape[1]))
        with torch.inference_mode():
            frames = tiny_model.model.encoder.encode(mel[None])[0]
        np.testing.assert_allclose(frames[golden[f"enc_j{j}_frames"]], golden[f"enc_j{j}"], atol=1e-4)


def test_a_whole_decoder_pass_equals_the_released_one(tiny_model, golden_audio):
    golden = np.load(GOLDENS / "teacher_forced.npz")
    mel = log_mel_spectrogram(golden_audio[240_000:720_000])[None]
    ids = torch.from_numpy(golden["ids"]).long()[None]
    with torch.inference_mode():
        out = tiny_model(input_features=mel, decoder_input_ids=ids)
    np.testing.assert_allclose(out.logits[0, golden["rows"]], golden["logits"], atol=1e-3)
    assert out.logits[0].argmax(-1).tolist() == golden["argmax"].tolist()
    np.testing.assert_allclose(out.encoder_last_hidden_state[0, golden["enc_frames"]], golden["enc"], atol=1e-4)


def test_prompts_are_the_released_ids(tiny_folder):
    vocabulary = Vocabulary.from_folder(tiny_folder)
    offset = 50257 - FIRST_SPECIAL
    released = {"ja": 50266, "de": 50261, "ru": 50263, "en": 50259}
    for language, token in released.items():
        assert [t + offset for t in vocabulary.prompt("translate", language)] == [50258, token, 50358, 50363]
    assert [t + offset for t in vocabulary.prompt("transcribe", "en")] == [50258, 50259, 50359, 50363]
    assert set(LANGUAGES_WITHOUT_BLANKS) & set(vocabulary.languages()) >= {"ja", "zh"}
