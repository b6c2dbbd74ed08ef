"""Whisper made for streaming: short windows, a forced prefix and a cache change nothing but the time it takes."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from harness import write_tokenizer

from baselines.backends.whisper import WhisperBackend
from hikari_agent.audio import log_mel_spectrogram


@pytest.fixture(scope="module")
def small_whisper(tmp_path_factory):
    """A random Whisper of two layers with a Whisper-shaped tokenizer of 1,100 tokens, saved as Hugging Face does."""
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("whisper")
    config = WhisperConfig(
        vocab_size=1100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, init_std=0.5, pad_token_id=957,
        bos_token_id=957, eos_token_id=957, decoder_start_token_id=958,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        alignment_heads=[[0, 1], [1, 2]], suppress_tokens=[0, 1, 2], is_multilingual=True
    )
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def noise():
    return (0.1 * np.random.default_rng(0).standard_normal(30 * 16_000)).astype(np.float32)


def test_the_whole_window_equals_hugging_face_s_encoder(small_whisper, noise):
    backend = WhisperBackend(small_whisper)
    with torch.inference_mode():
        theirs = backend.model.get_encoder()(log_mel_spectrogram(noise)[None]).last_hidden_state
    np.testing.assert_allclose(backend.encode(noise), theirs, atol=1e-5)


def test_a_short_window_is_the_audio_and_four_seconds(small_whisper, noise):
    backend = WhisperBackend(small_whisper)
    assert backend.encode(noise[:32_000]).shape[1] == (2 + 4) * 50
    assert backend.encode(noise[: 28 * 16_000]).shape[1] == 1500
    assert backend.n_frames(noise[:32_000]) == 100


def test_cached_decoding_behind_a_prefix_equals_a_whole_pass_for_each_token(small_whisper, noise):
    from transformers import WhisperForConditionalGeneration

    backend = WhisperBackend(small_whisper)
    eager = WhisperForConditionalGeneration.from_pretrained(small_whisper, attn_implementation="eager").eval()
    states, n_frames, prefix = backend.encode(noise[:48_000]), 150, [300, 301]
    proposal = backend.propose(states, n_frames, prefix, stop=None)
    assert len(proposal.tokens) > 3
    ids = [*backend.prompt, *prefix]
    for token, frame in zip(proposal.tokens[:12], proposal.frames[:12], strict=True):
        with torch.inference_mode():
            out = eager.get_decoder()(
                input_ids=torch.tensor([ids]), encoder_hidden_states=states, output_attentions=True
            )
            logits = eager.proj_out(out.last_hidden_state[0, -1])
            logits[[0, 1, 2]] = -torch.inf
            logits[958:] = -torch.inf
        assert token == int(logits.argmax())
        heads = torch.stack([out.cross_attentions[layer][0, head, -1, :n_frames] for layer, head in ((0, 1), (1, 2))])
        assert frame == int(heads.mean(0).argmax())
        ids.append(token)


def test_decoding_stops_with_the_token_that_looks_too_far(small_whisper, noise):
    backend = WhisperBackend(small_whisper)
    states = backend.encode(noise[:48_000])
    whole = backend.propose(states, 150, [])
    stopped = backend.propose(states, 150, [], stop=lambda frame: True)
    assert stopped.tokens == whole.tokens[:1]
    assert not stopped.is_complete


def test_wrong_folders_and_languages_are_told_in_words(small_whisper, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"scripts\.fetch whisper-base"):
        WhisperBackend(tmp_path)
    with pytest.raises(ValueError, match="unknown language 'xx'"):
        WhisperBackend(small_whisper, language="xx")


def test_damaged_weights_are_told_in_words(small_whisper, tmp_path):
    shutil.copytree(small_whisper, tmp_path / "cut")
    with (tmp_path / "cut" / "model.safetensors").open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or cut"):
        WhisperBackend(tmp_path / "cut")
