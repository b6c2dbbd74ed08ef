"""Where training begins: random weights, or a real Whisper with a new small vocabulary."""

from __future__ import annotations

import pytest
import torch
from harness import write_tokenizer

from hikari_agent.config import HikariConfig
from hikari_agent.convert import convert_whisper
from hikari_agent.model import HikariForConditionalGeneration
from hikari_agent.tokens import WAIT, Vocabulary
from hikari_agent.training.start import from_checkpoint, from_scratch
from hikari_agent.training.vocabulary import train_vocabulary

SMALL = dict(
    vocab_size=300, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
    encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=400, max_target_positions=100, encoder_is_causal=True,
    decoder_time_dilation=4, frontend="causal",
)  # fmt: skip
UNITS = [" It", " was", " the", " best", " of", " times", " Es", " war", " die", " beste", " Zeit"] * 40


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    """Whisper base as the package ships it, made a Hikari, and its vocabulary replaced by 280 pieces."""
    from scripts.fetch import model_folder

    source = model_folder("whisper-base")
    if not (source / "model.safetensors").is_file():
        pytest.skip("Whisper base is not here: python -m scripts.fetch whisper-base")
    folder = tmp_path_factory.mktemp("start")
    convert_whisper(source, folder / "hikari")
    train_vocabulary(UNITS, 280, ["en", "de"], folder / "small")
    return source, folder


def test_the_same_seed_gives_the_same_weights():
    first, again, other = (from_scratch(HikariConfig(**SMALL), seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.model.encoder.conv1.weight, other.model.encoder.conv1.weight)


def test_a_decoder_row_begins_where_the_frame_is_that_it_has_heard_up_to():
    learner = from_scratch(HikariConfig(**SMALL), seed=0)
    positions = learner.model.encoder.embed_positions.weight
    assert torch.allclose(learner.model.decoder.embed_positions.weight[:100], positions[::4][:100], atol=1e-6)


def test_activations_of_random_weights_are_of_order_one():
    learner = from_scratch(HikariConfig(**SMALL | dict(d_model=128, encoder_layers=4, decoder_layers=3)), seed=0)
    logits = learner(torch.randn(1, 80, 200) * 0.3, torch.randint(0, 300, (1, 25)), torch.randint(0, 300, (1, 25)))
    assert 5.0 < float(logits.loss) < 7.0  # ln(300) = 5.7


def test_a_new_piece_begins_as_the_mean_of_the_old_ones(tmp_path):
    write_tokenizer(tmp_path / "old") if (tmp_path / "old").mkdir() is None else None
    learner = from_scratch(HikariConfig(**SMALL | dict(vocab_size=1100, frontend="released")), seed=0)
    learner.export().save_pretrained(tmp_path / "old")
    train_vocabulary(UNITS, 270, ["en", "de"], tmp_path / "new")
    new = from_checkpoint(tmp_path / "old", vocabulary=tmp_path / "new", frontend="causal")
    vocabulary = Vocabulary.from_folder(tmp_path / "new")
    before, after = learner.model.decoder.embed_tokens.weight, new.model.decoder.embed_tokens.weight
    assert torch.equal(after[WAIT], before[WAIT])
    piece = next(i for i in range(256, 270) if len(vocabulary.token_bytes(i)) == 2)
    ids = [Vocabulary.from_folder(tmp_path / "old").ids[c] for c in _letters(vocabulary.token_bytes(piece))]
    assert torch.allclose(after[piece], before[ids].mean(dim=0), atol=1e-6)
    assert new.proj_out.weight is new.model.decoder.embed_tokens.weight
    assert new.config.frontend == "causal"


def _letters(data: bytes) -> list[str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return [bytes_to_unicode()[byte] for byte in data]


@pytest.mark.slow
def test_with_an_open_mask_the_converted_encoder_is_whispers(whisper):
    from transformers import WhisperModel

    source, folder = whisper
    mel = torch.randn(1, 80, 3000) * 0.3
    expected = WhisperModel.from_pretrained(source).encoder(mel).last_hidden_state
    model = HikariForConditionalGeneration.from_pretrained(folder / "hikari")
    model.model.encoder.is_causal = False
    with torch.inference_mode():
        found = model.model.encoder.encode(mel)
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-3)


@pytest.mark.slow
def test_fifty_steps_from_whisper_with_a_new_vocabulary_lower_the_loss(whisper):
    _, folder = whisper
    learner = from_checkpoint(folder / "hikari", vocabulary=folder / "small", frontend="causal")
    vocabulary = Vocabulary.from_folder(folder / "small")
    assert learner.config.vocab_size == len(vocabulary.ids)
    torch.manual_seed(0)
    mel = torch.randn(1, 80, 200) * 0.3
    prompt = vocabulary.prompt("translate", "de")
    slots = [WAIT] * 4 + [260, 265, WAIT, WAIT, 270, WAIT, 262] + [WAIT] * 11
    ids = torch.tensor([prompt + slots[:-1]])
    labels = torch.tensor([[-100] * 3 + slots])
    optimizer = torch.optim.AdamW(learner.parameters(), lr=4e-5)
    losses = []
    for _ in range(50):
        loss = learner(mel, ids, labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
