"""Checkpoints: every way the same weights may lie on disk gives the same model, and a Whisper becomes a Hikari."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import GOLDENS, agent_arguments, random_model, write_tokenizer
from safetensors.torch import load_file, save_file

from hikari_agent.checkpoint import read_checkpoint
from hikari_agent.config import HikariConfig
from hikari_agent.convert import convert_whisper
from hikari_agent.model import HikariForConditionalGeneration, sinusoids

EMBEDDING, PROJECTION = "model.decoder.embed_tokens.weight", "proj_out.weight"
load = HikariForConditionalGeneration.from_pretrained


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of the golden checkpoint, to be changed."""
    return shutil.copytree(GOLDENS / "tiny_checkpoint", tmp_path / "model")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def change_weights(folder: Path, new: dict[str, torch.Tensor], without: tuple[str, ...] = ()) -> None:
    kept = {name: tensor for name, tensor in weights(folder).items() if name not in without}
    save_file(kept | new, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder: Path, **values) -> None:
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | values))


def assert_same_weights(model, other) -> None:
    ours, theirs = model.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def logits(model) -> torch.Tensor:
    mel = torch.randn(1, model.config.num_mel_bins, 60, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        return model(
            input_features=mel.to(model.dtype), decoder_input_ids=torch.tensor([[958, 961, 1058, 1063, 5, 93]])
        ).logits


def test_the_released_names_and_shapes_load(tiny_model):
    config = tiny_model.config
    names = set(weights(GOLDENS / "tiny_checkpoint"))
    assert len(names) == 15 * config.encoder_layers + 24 * config.decoder_layers + 11
    assert set(tiny_model.state_dict()) == names | {PROJECTION}
    assert tiny_model.proj_out.weight is tiny_model.model.decoder.embed_tokens.weight
    assert not tiny_model.training


def test_saving_and_loading_gives_the_same_model(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path)
    again = load(tmp_path)
    assert_same_weights(again, tiny_model)
    assert torch.equal(logits(again), logits(tiny_model))
    content = json.loads((tmp_path / "config.json").read_text())
    assert content["model_type"] == "hikari"
    assert content["architectures"] == ["HikariForConditionalGeneration"]
    assert (content["decoder_time_dilation"], content["encoder_is_causal"]) == (4, True)


def test_saving_leaves_the_tied_projection_out(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path)
    assert set(weights(tmp_path)) == set(weights(GOLDENS / "tiny_checkpoint"))


def test_unknown_config_keys_survive_loading_and_saving(folder, tmp_path):
    change_config(folder, something_new={"a": 1}, mimi=True)
    load(folder).save_pretrained(tmp_path / "again")
    content = json.loads((tmp_path / "again" / "config.json").read_text())
    assert content["something_new"] == {"a": 1}
    assert content["mimi"] is True


def test_shards_equal_the_single_file(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 3
    assert not (tmp_path / "model.safetensors").exists()
    assert_same_weights(load(tmp_path), tiny_model)


def test_a_missing_shard_is_named(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path, max_shard_size="100KB")
    shard = sorted(tmp_path.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{shard.name} is missing: fetch the checkpoint again"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_a_damaged_index_is_named(tiny_model, tmp_path, content):
    tiny_model.save_pretrained(tmp_path, max_shard_size="100KB")
    (tmp_path / "model.safetensors.index.json").write_text(content)
    with pytest.raises(ValueError, match=r"model\.safetensors\.index\.json .*fetch it again"):
        load(tmp_path)


@pytest.mark.parametrize("stored", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("wanted", [torch.float32, torch.float16, torch.bfloat16])
def test_any_stored_dtype_loads_as_any_wanted_one(folder, tiny_model, stored, wanted):
    change_weights(folder, {name: tensor.to(stored) for name, tensor in weights(folder).items()})
    model = load(folder, dtype=wanted)
    expected = {name: tensor.to(stored).to(wanted) for name, tensor in tiny_model.state_dict().items()}
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    torch.testing.assert_close(logits(model).float(), logits(tiny_model), atol=0.5, rtol=0)


def test_a_file_that_holds_the_tied_projection_too_loads(folder, tiny_model):
    change_weights(folder, {PROJECTION: weights(folder)[EMBEDDING].clone()})
    assert_same_weights(load(folder), tiny_model)


def test_a_file_that_holds_only_the_projection_loads(folder, tiny_model):
    change_weights(folder, {PROJECTION: weights(folder)[EMBEDDING]}, without=(EMBEDDING,))
    model = load(folder)
    assert_same_weights(model, tiny_model)
    assert model.proj_out.weight is model.model.decoder.embed_tokens.weight


def test_an_untied_projection_is_its_own(folder, tiny_model, tmp_path):
    projection = torch.randn(1100, 64)
    change_weights(folder, {PROJECTION: projection})
    change_config(folder, tie_word_embeddings=False)
    model = load(folder)
    assert torch.equal(model.proj_out.weight, projection)
    assert torch.equal(model.model.decoder.embed_tokens.weight, tiny_model.model.decoder.embed_tokens.weight)
    model.save_pretrained(tmp_path / "again")
    assert_same_weights(load(tmp_path / "again"), model)


def test_the_encoders_positions_are_read_from_the_file(folder):
    table = torch.randn(1500, 64)
    change_weights(folder, {"model.encoder.embed_positions.weight": table})
    assert torch.equal(load(folder).model.encoder.embed_positions.weight, table)


SPEECH_TO_SPEECH = {
    "depth_decoder.embed_text_token.weight": torch.zeros(3),
    "depth_decoder.layers.0.mlp.fc1.weight": torch.zeros(2, 2, 2),
    "model.decoder.embed_semantic_token.weight": torch.zeros(9, 4),
    "model.decoder.embed_acoustic_tokens.3.weight": torch.zeros(9, 4),
    "s2t_adapter.proj.weight": torch.zeros(1),
}


def test_leftovers_of_the_speech_to_speech_model_are_ignored_in_silence(folder, tiny_model, caplog):
    change_weights(folder, SPEECH_TO_SPEECH)
    assert_same_weights(load(folder), tiny_model)
    assert not caplog.text


def test_other_unknown_weights_are_ignored_with_a_warning(folder, tiny_model, caplog):
    change_weights(folder, {"model.decoder.layers.2.fc1.bias": torch.zeros(128), **SPEECH_TO_SPEECH})
    assert_same_weights(load(folder), tiny_model)
    assert "1 unknown weights ignored, the first is 'model.decoder.layers.2.fc1.bias'" in caplog.text


def test_a_released_file_without_weights_config_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no config\.json: give the folder of a saved model"):
        read_checkpoint(tmp_path)


def test_config_defaults_are_the_released_classs():
    config = HikariConfig()
    expected = dict(
        vocab_size=51865, num_mel_bins=80, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
        decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536, activation_function="gelu",
        max_source_positions=1500, max_target_positions=448, encoder_is_causal=False, decoder_time_dilation=1,
        tie_word_embeddings=True, pad_token_id=50256, bos_token_id=50256, eos_token_id=50256, decoder_start_token_id=50257,
        is_encoder_decoder=True, model_type="hikari", hidden_size=384, num_hidden_layers=4, num_attention_heads=6,
    )  # fmt: skip
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize(("dilation", "samples"), [(1, 320), (2, 640), (4, 1280)])
def test_a_row_is_20_ms_times_the_dilation(dilation, samples):
    assert HikariConfig(decoder_time_dilation=dilation).row_samples == samples


def test_another_activation_is_refused():
    with pytest.raises(ValueError, match=r"activation_function 'relu' in config\.json: Hikari has 'gelu'"):
        random_model(activation_function="relu")


def test_a_fresh_model_has_whispers_encoder_positions():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = dict(d_model=16, encoder_attention_heads=2, decoder_attention_heads=2, encoder_layers=1, decoder_layers=1)
    theirs = WhisperForConditionalGeneration(WhisperConfig(**sizes)).model.encoder.embed_positions.weight
    torch.testing.assert_close(sinusoids(1500, 16), theirs.detach())
    ours = HikariForConditionalGeneration(HikariConfig(**sizes)).model.encoder.embed_positions
    assert torch.equal(ours.weight, sinusoids(1500, 16))
    assert not ours.weight.requires_grad


def test_the_model_learns():
    """Gradients reach every parameter but the encoder's fixed positions: what is cached at inference is not cut off."""
    model = random_model()
    mel = torch.randn(2, 80, 80, generator=torch.Generator().manual_seed(0))
    ids = torch.randint(0, 1100, (2, 10), generator=torch.Generator().manual_seed(0))
    model(input_features=mel, decoder_input_ids=ids).logits.logsumexp(-1).sum().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    assert without <= {"model.encoder.embed_positions.weight"}


# Whisper -> Hikari


@pytest.fixture(scope="module")
def whisper_folder(tmp_path_factory) -> Path:
    """A small random Whisper as Hugging Face saves it, with 400 text positions and a tokenizer."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    folder = tmp_path_factory.mktemp("whisper")
    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder")
             for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
    config = WhisperConfig(**sizes, d_model=16, vocab_size=1100, max_target_positions=400, pad_token_id=957, bos_token_id=957,
                           eos_token_id=957, decoder_start_token_id=958)  # fmt: skip
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture
def whisper(whisper_folder, tmp_path) -> Path:
    return shutil.copytree(whisper_folder, tmp_path / "whisper")


def test_a_converted_whisper_has_its_weights_a_causal_encoder_and_375_rows(whisper, tmp_path):
    target = convert_whisper(whisper, tmp_path / "hikari")
    model = load(target)
    theirs = weights(whisper)
    ours = model.state_dict()
    assert ours.keys() == theirs.keys() | {PROJECTION}
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor[:375] if name == "model.decoder.embed_positions.weight" else tensor), name
    config = model.config
    assert (config.max_target_positions, config.decoder_time_dilation, config.encoder_is_causal) == (375, 4, True)
    assert (config.eos_token_id, config.decoder_start_token_id) == (957, 958)
    assert (target / "tokenizer.json").read_bytes() == (whisper / "tokenizer.json").read_bytes()


def test_a_converted_whisper_runs_under_the_agent(whisper, tmp_path):
    from harness import push_all

    from hikari_agent.agent import HikariAgent

    agent = HikariAgent(agent_arguments(convert_whisper(whisper, tmp_path / "hikari"), drain_ms=0, wait_penalty=50))
    words, _ = push_all(agent, np.random.default_rng(0).uniform(-1, 1, 16_000).astype(np.float32))
    assert words


def test_a_whisper_that_was_made_causal_computes_what_hikari_computes(whisper, tmp_path):
    """Hugging Face's own layers with the two masks added, on the same weights."""
    from transformers import WhisperForConditionalGeneration

    theirs = WhisperForConditionalGeneration.from_pretrained(whisper, attn_implementation="eager").eval()
    ours = load(convert_whisper(whisper, tmp_path / "hikari"))
    mel = torch.randn(1, 80, 3000, generator=torch.Generator().manual_seed(0))
    ids = torch.tensor([[958, 961, 1058, 1063, 5, 93, 6, 7]])
    frames, rows = torch.arange(1500), torch.arange(8)[:, None]
    lowest = torch.finfo(torch.float32).min

    def mask(visible: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, 1, *visible.shape).masked_fill(~visible, lowest)

    def replace_mask(attention, additive):
        inner = attention.forward

        def forward(*args, **kwargs):
            kwargs["attention_mask"] = additive
            return inner(*args, **kwargs)

        attention.forward = forward

    for layer in theirs.model.encoder.layers:
        replace_mask(layer.self_attn, mask(frames <= frames[:, None]))
    for layer in theirs.model.decoder.layers:
        replace_mask(layer.encoder_attn, mask((frames < 4 * rows) | (rows == 0)))
        # Row 0 sees no frame: what it would have seen is taken away before the output projection.
        layer.encoder_attn.out_proj.register_forward_pre_hook(lambda m, x: (x[0] * (rows > 0),))
    with torch.inference_mode():
        expected = theirs(input_features=mel, decoder_input_ids=ids)
        found = ours(input_features=mel, decoder_input_ids=ids)
    torch.testing.assert_close(
        found.encoder_last_hidden_state, expected.encoder_last_hidden_state, atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_conversion_keeps_the_stored_dtype(whisper, tmp_path, dtype):
    change_weights(whisper, {name: tensor.to(dtype) for name, tensor in weights(whisper).items()})
    target = convert_whisper(whisper, tmp_path / "hikari")
    assert {tensor.dtype for tensor in weights(target).values()} == {dtype}


@pytest.mark.parametrize(("dilation", "n_rows", "expected"), [(8, None, 187), (4, 100, 100), (4, 400, 400)])
def test_dilation_and_rows_can_be_chosen(whisper, tmp_path, dilation, n_rows, expected):
    config = load(convert_whisper(whisper, tmp_path / "hikari", dilation, n_rows)).config
    assert (config.decoder_time_dilation, config.max_target_positions) == (dilation, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rows": 401}, "401 rows: this Whisper has text positions for 5 to 400"),
        ({"n_rows": 4}, "4 rows: this Whisper has text positions for 5 to 400"),
        ({"dilation": 2}, "750 rows: this Whisper has text positions for 5 to 400"),
        ({"dilation": 0}, "dilation 0: a row advances at least one frame"),
    ],
)
def test_sizes_whisper_has_no_room_for_are_refused(whisper, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        convert_whisper(whisper, tmp_path / "hikari", **options)
    assert not (tmp_path / "hikari").exists()


def test_a_folder_that_is_not_empty_is_never_written_into(whisper, tmp_path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(ValueError, match="is not empty: give a new folder"):
        convert_whisper(whisper, tmp_path)


def test_another_kind_of_model_is_refused(whisper, tmp_path):
    change_config(whisper, model_type="bert")
    with pytest.raises(ValueError, match=r"config\.json says model_type 'bert', expected 'whisper'"):
        convert_whisper(whisper, tmp_path / "hikari")


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder \S+nowhere"):
        convert_whisper(tmp_path / "nowhere", tmp_path / "hikari")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no config\.json: give the folder of a Hugging Face Whisper"):
        convert_whisper(tmp_path / "empty", tmp_path / "hikari")


def test_an_english_only_vocabulary_is_refused_though_it_may_name_languages(whisper, tmp_path):
    """OpenAI's has its <|endoftext|> at 50256, one before the multilingual one, and language tokens none of its models uses."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    path = whisper / "tokenizer.json"
    content = json.loads(path.read_text())
    end = next(token["id"] for token in content["added_tokens"] if token["content"] == "<|endoftext|>")
    content["added_tokens"] = [token | {"id": token["id"] - end + 50256} for token in content["added_tokens"]]
    pieces = [*bytes_to_unicode().values()] + [f"w{i}" for i in range(50_000)]
    content["model"]["vocab"] = {piece: i for i, piece in enumerate(pieces)}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is an English-only Whisper: Hikari's prompt names a language"):
        convert_whisper(whisper, tmp_path / "hikari")


def test_a_vocabulary_without_languages_is_refused(whisper, tmp_path):
    path = whisper / "tokenizer.json"
    content = json.loads(path.read_text())
    keep = ("<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>")
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] in keep]
    for token in content["added_tokens"]:
        content["model"]["vocab"][token["content"]] = token["id"]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is an English-only Whisper"):
        convert_whisper(whisper, tmp_path / "hikari")


def test_the_conversion_program_prints_the_folder_or_one_line_of_error(whisper, tmp_path, capsys):
    from scripts.convert import main

    assert main([str(whisper), str(tmp_path / "hikari")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'hikari'}\n"
    assert main([str(whisper), str(tmp_path / "hikari")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [f"error: {tmp_path / 'hikari'} is not empty: give a new folder"]
