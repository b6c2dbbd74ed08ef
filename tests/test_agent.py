"""What the agent promises to SimulEval and simulstream: no word lost, none invented, nothing kept."""

from __future__ import annotations

import gc
import logging
from argparse import Namespace

import numpy as np
import pytest
import soundfile
import torch
from harness import agent_arguments, push_all, random_model, run_simuleval, write_tokenizer
from simuleval.data.segments import EmptySegment, SpeechSegment

from hikari_agent.agent import HikariAgent
from hikari_agent.audio import read_audio
from hikari_agent.tokens import WAIT, WordAssembler

SHORT = {"window_rows": 20, "wait_penalty": 0.6, "drain_ms": 400, "drain_cap_ms": 800}
FIRST_SECONDS = slice(0, 3 * 16_000 + 123)


@pytest.fixture(scope="module")
def audio(golden_audio) -> np.ndarray:
    return golden_audio[FIRST_SECONDS]


@pytest.fixture(scope="module")
def agent(tiny_folder) -> HikariAgent:
    return make_agent(tiny_folder)


def make_agent(folder, **options) -> HikariAgent:
    return HikariAgent(agent_arguments(folder, **SHORT | options))


def tokens_of(agent: HikariAgent, samples: np.ndarray, target: str = "de") -> tuple[list[str], list[int]]:
    """The words that come out, and every token the model chose."""
    tokens: list[int] = []
    stream = agent.stream_to(target)
    stream.on_step = lambda step: tokens.append(step.token)
    try:
        return push_all(agent, samples)[0], tokens
    finally:
        stream.on_step = None


def assembled(agent: HikariAgent, tokens: list[int]) -> list[str]:
    assembler, words = WordAssembler(), []
    for token in tokens:
        words += assembler.wait() if token == WAIT else assembler.push(agent.vocabulary.token_bytes(token))
    return words + assembler.flush()


# Nothing is lost


@pytest.mark.parametrize("n_samples", [3840, 3841, 20_000, 41_599, 80_123])
@pytest.mark.parametrize("drain_ms", [0, 400])
def test_a_recording_that_ends_inside_a_word_loses_nothing(tiny_folder, golden_audio, n_samples, drain_ms):
    agent = make_agent(tiny_folder, drain_ms=drain_ms, wait_penalty=3.0)
    words, tokens = tokens_of(agent, golden_audio[:n_samples])
    assert words == assembled(agent, tokens) != []
    assert drain_ms or tokens[-1] != WAIT, "the made-up model was to be inside a word at the end"


def test_a_model_that_never_waits_is_cut_off_at_the_cap(tiny_folder, audio):
    agent = make_agent(tiny_folder, wait_penalty=100.0, drain_cap_ms=1000)
    words, tokens = tokens_of(agent, audio)
    assert WAIT not in tokens
    assert len(tokens) == -(-len(audio) // 1280) - 2 + 12  # 12 rows are 960 ms, 13 would be 1040
    assert words == assembled(agent, tokens)


def test_utterances_one_after_the_other_equal_fresh_agents(tiny_folder, golden_audio):
    parts = [golden_audio[a:b] for a, b in ((0, 30_000), (200_000, 220_001), (400_000, 440_000))]
    one = make_agent(tiny_folder)
    together = [push_all(one, part) for part in parts]
    assert together == [push_all(make_agent(tiny_folder), part) for part in parts]
    assert all(words for words, _ in together)


def test_an_agent_reset_in_the_middle_of_a_recording_forgets_it(tiny_folder, audio):
    agent = make_agent(tiny_folder)
    expected = push_all(agent, audio)
    agent.pushpop(SpeechSegment(content=audio[:30_000].tolist(), sample_rate=16_000, finished=False))
    agent.reset()
    assert push_all(agent, audio) == expected


def test_one_agent_serves_two_recordings_at_once_with_explicit_states(agent, golden_audio):
    parts = [golden_audio[:40_000], golden_audio[200_000:240_000]]
    expected = [push_all(agent, part, segment_ms=500)[0] for part in parts]
    states, words = [agent.build_states() for _ in parts], [[], []]
    for start in range(0, 40_000, 8000):
        for i, part in enumerate(parts):
            segment = SpeechSegment(
                content=part[start : start + 8000].tolist(), sample_rate=16_000, finished=start == 32_000
            )
            words[i] += (agent.pushpop(segment, states[i]).content or "").split()
    assert words == expected


def test_the_final_call_is_idempotent(agent, audio):
    out = agent.pushpop(SpeechSegment(content=audio.tolist(), sample_rate=16_000, finished=True))
    assert out.finished
    assert out.content
    for _ in range(2):
        again = agent.policy()
        assert (again.content, again.finished) == ("", True)
        popped = agent.pushpop(EmptySegment(finished=True))
        assert popped.finished
        assert not popped.content
    agent.reset()


def test_audio_that_comes_with_the_last_segment_equals_audio_before_an_empty_last_segment(agent, audio):
    expected = agent.pushpop(SpeechSegment(content=audio.tolist(), sample_rate=16_000, finished=True)).content
    agent.reset()
    first = agent.pushpop(SpeechSegment(content=audio.tolist(), sample_rate=16_000, finished=False))
    last = agent.pushpop(EmptySegment(finished=True))
    agent.reset()
    assert not first.finished
    assert last.finished
    assert f"{first.content} {last.content}".split() == expected.split()


def test_finished_is_never_sent_before_the_source_is_finished(agent, golden_audio):
    for start in range(0, 60_000, 1280):
        content = golden_audio[start : start + 1280].tolist()
        assert not agent.pushpop(SpeechSegment(content=content, sample_rate=16_000, finished=False)).finished
    for segment in (EmptySegment(), SpeechSegment(content=[], sample_rate=16_000, finished=False)):
        assert not agent.pushpop(segment).finished
    agent.reset()


def test_an_agent_keeps_no_copy_of_audio_or_text(agent, audio):
    for start in range(0, len(audio), 1280):
        agent.pushpop(SpeechSegment(content=audio[start : start + 1280].tolist(), sample_rate=16_000, finished=False))
        assert agent.states.source == agent.states.target == []
    agent.reset()


# Recordings of every kind


@pytest.fixture(scope="module")
def eight_bit_audio(golden_audio) -> np.ndarray:
    """Two seconds whose samples are multiples of 1/64 below 1/2: every format holds them, and twice them, exactly."""
    loud = golden_audio[: 2 * 16_000] / np.abs(golden_audio[: 2 * 16_000]).max()
    return (np.round(loud * 31) / 64).astype(np.float32)


def as_simuleval_reads(path) -> tuple[np.ndarray, int]:
    samples, rate = soundfile.read(path, dtype="float32")
    return np.asarray(samples.tolist()), rate


@pytest.fixture(scope="module")
def eight_bit_text(agent, eight_bit_audio) -> list[str]:
    words, _ = push_all(agent, eight_bit_audio)
    assert len(words) > 5
    return words


@pytest.mark.parametrize(
    ("suffix", "subtype", "channels"),
    [
        ("wav", "PCM_U8", "mono"),
        ("wav", "PCM_U8", "left only"),
        ("wav", "PCM_16", "mono"),
        ("wav", "PCM_16", "stereo"),
        ("wav", "PCM_16", "left only"),
        ("wav", "PCM_24", "mono"),
        ("wav", "PCM_32", "mono"),
        ("wav", "FLOAT", "mono"),
        ("wav", "FLOAT", "left only"),
        ("wav", "DOUBLE", "mono"),
        ("flac", "PCM_S8", "mono"),
        ("flac", "PCM_24", "stereo"),
    ],
)
def test_every_sample_format_gives_the_text_of_its_16_khz_mono_twin(
    agent, eight_bit_audio, eight_bit_text, tmp_path, suffix, subtype, channels
):
    mono, nothing = eight_bit_audio, np.zeros_like(eight_bit_audio)
    columns = {"mono": [mono], "stereo": [mono, mono], "left only": [2 * mono, nothing]}[channels]
    samples = np.stack(columns, axis=1)
    if subtype not in ("FLOAT", "DOUBLE"):
        samples = (samples.astype(np.float64) * 2**31).astype(np.int32)
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, samples, 16_000, subtype=subtype)
    assert push_all(agent, as_simuleval_reads(path)[0])[0] == eight_bit_text
    np.testing.assert_array_equal(read_audio(path), eight_bit_audio)


@pytest.mark.parametrize(
    ("rate", "n_channels", "segment_ms"),
    [(8_000, 1, 333), (8_000, 2, 80), (44_100, 1, 80), (44_100, 2, 333), (48_000, 2, 80)],
)
def test_every_sample_rate_gives_the_text_of_its_16_khz_mono_twin(
    agent, golden_audio, tmp_path, rate, n_channels, segment_ms
):
    samples = np.repeat(golden_audio[: 2 * rate, None], n_channels, axis=1)
    if n_channels == 2:
        samples[:, 1] *= 0.25
    soundfile.write(tmp_path / "a.wav", samples, rate, subtype="PCM_16")
    soundfile.write(tmp_path / "twin.wav", read_audio(tmp_path / "a.wav"), 16_000, subtype="FLOAT")
    twin, twin_rate = as_simuleval_reads(tmp_path / "twin.wav")
    expected, _ = push_all(agent, twin, segment_ms, twin_rate)
    assert len(expected) > 3
    content, rate = as_simuleval_reads(tmp_path / "a.wav")
    assert push_all(agent, content, segment_ms, rate)[0] == expected


def test_a_sample_rate_that_changes_within_a_recording_is_refused(agent):
    agent.pushpop(SpeechSegment(content=[0.0] * 1280, sample_rate=16_000, finished=False))
    with pytest.raises(ValueError, match="changed from 16000 to 8000 Hz within a recording"):
        agent.push(SpeechSegment(content=[0.0] * 640, sample_rate=8_000, finished=False))
    agent.reset()


TOO_SHORT = [0, 1, 319, 3839]


@pytest.mark.parametrize("n_samples", TOO_SHORT)
def test_a_recording_shorter_than_the_prompt_says_nothing(agent, golden_audio, n_samples):
    assert push_all(agent, golden_audio[:n_samples]) == ([], [])


@pytest.mark.slow
def test_simuleval_gets_through_recordings_shorter_than_the_prompt(tiny_folder, golden_audio, tmp_path):
    wavs = [tmp_path / f"{n}.wav" for n in TOO_SHORT]
    for n, wav in zip(TOO_SHORT, wavs, strict=True):
        soundfile.write(wav, golden_audio[:n], 16_000, subtype="PCM_16")
    _, rows = run_simuleval(
        tmp_path, wavs, "--agent-class", "hikari_agent.agent.HikariAgent", "--hikari-model", str(tiny_folder)
    )
    assert [row["prediction"] for row in rows] == [""] * len(TOO_SHORT)
    assert [row["delays"] for row in rows] == [[]] * len(TOO_SHORT)


# How it is called, and in which language it answers


def test_simulstreams_calls_give_the_same_words(agent, audio):
    """simulstream 0.4 pushes into the states, calls the policy, and at the end only sets `source_finished`."""
    expected, _ = push_all(agent, audio, segment_ms=1000)
    words = []
    for start in range(0, len(audio), 16_000):
        content = audio[start : start + 16_000].tolist()
        agent.states.update_source(
            SpeechSegment(index=0, content=content, sample_rate=16_000, finished=False, tgt_lang=agent.tgt_lang)
        )
        action = agent.policy(agent.states)
        if not action.is_read():
            assert not action.finished
            words += action.content.split()
    agent.states.source_finished = True
    action = agent.policy(agent.states)
    assert action.finished
    assert words + action.content.split() == expected
    agent.reset()
    assert push_all(agent, audio, segment_ms=1000)[0] == expected


def test_options_that_are_not_given_have_their_defaults(tiny_folder, audio):
    agent = HikariAgent(Namespace(hikari_model=str(tiny_folder)))
    defaults = HikariAgent.default_arguments()
    assert {k: v for k, v in vars(agent.args).items() if k != "hikari_model"} == {
        k: v for k, v in vars(defaults).items() if k != "hikari_model"
    }
    everything = HikariAgent(Namespace(**{**vars(defaults), "hikari_model": str(tiny_folder), "device": "cpu"}))
    assert push_all(agent, audio) == push_all(everything, audio)


def prompt_language(agent: HikariAgent, segment_language) -> str:
    agent.pushpop(SpeechSegment(content=[0.1] * 1280, sample_rate=16_000, finished=False, tgt_lang=segment_language))
    names = {i: name for name, i in agent.vocabulary.ids.items()}
    name = names[agent.states.session[1].window.tokens[1]]
    agent.reset()
    return name[2:-2]


def test_the_segments_language_goes_before_the_agents_and_that_before_the_options(tiny_folder):
    agent = make_agent(tiny_folder, target="ru")
    assert prompt_language(agent, None) == "ru"
    agent.tgt_lang = "en"
    assert prompt_language(agent, None) == "en"
    assert prompt_language(agent, "ja") == "ja"
    agent.tgt_lang = None
    assert prompt_language(agent, None) == "ru"
    assert prompt_language(agent, SpeechSegment().tgt_lang) == "ru"  # SimulEval's default is a type


@pytest.mark.parametrize(("task", "language"), [("translate", "de"), ("transcribe", "en")])
def test_the_language_of_each_task_without_any_option(tiny_folder, task, language):
    assert prompt_language(make_agent(tiny_folder, task=task), None) == language


def test_japanese_is_written_by_characters_without_blanks(tiny_folder, audio):
    agent = make_agent(tiny_folder, target="ja", wait_penalty=3.0)
    assert agent.stream_to("ja").by_characters
    tokens, contents = [], []
    agent.stream_to("ja").on_step = lambda step: tokens.append(step.token)
    for start in range(0, len(audio), 16_000):
        out = agent.pushpop(
            SpeechSegment(content=audio[start : start + 16_000].tolist(), sample_rate=16_000,
                          finished=start + 16_000 >= len(audio))
        )  # fmt: skip
        contents.append(out.content or "")
    assert sum(len(content) > 1 for content in contents) > 2
    data = b"".join(agent.vocabulary.token_bytes(t) for t in tokens if t != WAIT)
    assert "".join(contents) == "".join(data.decode("utf-8", "replace").split())
    assert " " not in "".join(contents)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"target": "xx"}, "unknown language 'xx'. Known: "), ({"task": "sing"}, "unknown task 'sing'. Known: "),
     ({"window_rows": 4}, "a window of 4 rows"), ({"window_rows": 376}, "a window of 376 rows: this model takes 5 to 375")],
)  # fmt: skip
def test_a_wrong_option_is_refused_when_the_agent_is_built(tiny_folder, options, message):
    with pytest.raises(ValueError, match=message):
        make_agent(tiny_folder, **options)


def test_an_unknown_language_in_a_segment_is_refused(agent):
    with pytest.raises(ValueError, match="unknown language 'xx'"):
        agent.pushpop(SpeechSegment(content=[0.0] * 1280, sample_rate=16_000, finished=False, tgt_lang="xx"))
    agent.reset()


def test_a_language_hikari_was_not_trained_to_write_is_warned_about(tiny_folder, caplog):
    make_agent(tiny_folder, target="fr")
    assert "was not trained to translate into 'fr'" in caplog.text
    caplog.clear()
    make_agent(tiny_folder, target="ru")
    assert "was not trained" not in caplog.text


@pytest.mark.parametrize(("target", "unit", "warned"),
                         [("ja", "word", True), ("ja", "char", False), ("de", "char", True), ("de", "word", False),
                          ("ja", "spm", False)])  # fmt: skip
def test_a_latency_unit_that_does_not_fit_the_language_is_warned_about(tiny_folder, caplog, target, unit, warned):
    arguments = agent_arguments(tiny_folder, target=target)
    arguments.eval_latency_unit = unit
    with caplog.at_level(logging.WARNING):
        HikariAgent(arguments)
    assert (f"--eval-latency-unit is {unit}" in caplog.text) == warned


def test_half_precision_runs_and_single_precision_comes_back(tiny_folder, audio):
    agent = make_agent(tiny_folder)
    expected = push_all(agent, audio)
    agent.to("cpu", fp16=True)
    assert agent.model.dtype == torch.float16
    assert tokens_of(agent, audio)[1]
    agent.to("cpu")
    assert agent.model.dtype == torch.float32
    assert push_all(agent, audio)[1][0] == expected[1][0]  # float32 again, of weights that were rounded in between


# It can run for ever


@pytest.mark.slow
def test_an_hour_needs_no_more_memory_than_a_minute(tmp_path):
    import psutil

    layers = dict(encoder_layers=1, decoder_layers=1, max_source_positions=40, max_target_positions=10)
    random_model(**layers).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    agent = HikariAgent(agent_arguments(tmp_path))
    second = [0.0] * 16_000
    process = psutil.Process()
    for i in range(3600):
        agent.pushpop(SpeechSegment(content=second, sample_rate=16_000, finished=False))
        if i == 60:
            gc.collect()
            after_a_minute = process.memory_info().rss
    gc.collect()
    assert process.memory_info().rss - after_a_minute < 20e6
    _, state = agent.states.session
    assert state.heard_samples == 3600 * 16_000
    assert len(state.window.tokens) == 11
    assert len(state.window.samples) == 10 * 1280
