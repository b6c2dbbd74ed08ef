"""What the conversion of a CTranslate2 Whisper promises, on a random small model written by the rules of the format."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from baselines.backends.ctranslate2 import convert, read_model

N_TOKENS = 51865
LANGUAGES = ("en", "de")


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def model_file(variables: dict[str, np.ndarray], specification: str = "WhisperSpec", version: int = 6) -> bytes:
    content = struct.pack("<I", version) + text(specification) + struct.pack("<II", 3, len(variables))
    type_ids = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}
    for name, value in variables.items():
        content += text(name) + struct.pack("<B", value.ndim) + struct.pack(f"<{value.ndim}I", *value.shape)
        content += struct.pack("<BI", type_ids[value.dtype.name], value.nbytes) + value.tobytes()
    return content + struct.pack("<I", 1) + text("decoder/projection/weight") + text(next(iter(variables)))


def stacked(weights: dict[str, np.ndarray], module: str, letters: str) -> dict[str, np.ndarray]:
    width = len(weights[f"{module}.q_proj.bias"])
    biases = [weights.get(f"{module}.{letter}_proj.bias", np.zeros(width, np.float32)) for letter in letters]
    return {
        "weight": np.concatenate([weights[f"{module}.{letter}_proj.weight"] for letter in letters]),
        "bias": np.concatenate(biases),
    }


def ct2_variables(model, data_type: str) -> dict[str, np.ndarray]:
    """What CTranslate2's converter would store for the Hugging Face `model`."""
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    stored = {"decoder/embeddings/weight": weights["model.decoder.embed_tokens.weight"]}
    modules = {}
    for side in ("encoder", "decoder"):
        stored[f"{side}/position_encodings/encodings"] = weights[f"model.{side}.embed_positions.weight"]
        modules[f"{side}/layer_norm"] = f"model.{side}.layer_norm"
        for i in range(model.config.num_hidden_layers):
            ours, theirs = f"{side}/layer_{i}", f"model.{side}.layers.{i}"
            stacks = {"self_attention/linear_0": ("self_attn", "qkv")}
            modules |= {
                f"{ours}/self_attention/layer_norm": f"{theirs}.self_attn_layer_norm",
                f"{ours}/self_attention/linear_1": f"{theirs}.self_attn.out_proj",
                f"{ours}/ffn/layer_norm": f"{theirs}.final_layer_norm",
                f"{ours}/ffn/linear_0": f"{theirs}.fc1",
                f"{ours}/ffn/linear_1": f"{theirs}.fc2",
            }
            if side == "decoder":
                modules[f"{ours}/attention/layer_norm"] = f"{theirs}.encoder_attn_layer_norm"
                modules[f"{ours}/attention/linear_2"] = f"{theirs}.encoder_attn.out_proj"
                stacks |= {f"attention/linear_{n}": ("encoder_attn", letters) for n, letters in enumerate(("q", "kv"))}
            for name, (module, letters) in stacks.items():
                for kind, value in stacked(weights, f"{theirs}.{module}", letters).items():
                    stored[f"{ours}/{name}/{kind}"] = value
    modules |= {f"encoder/conv{n}": f"model.encoder.conv{n}" for n in (1, 2)}
    for ours, theirs in modules.items():
        kinds = ("gamma", "beta") if ours.endswith("layer_norm") else ("weight", "bias")
        for kind, their_kind in zip(kinds, ("weight", "bias"), strict=True):
            stored[f"{ours}/{kind}"] = weights[f"{theirs}.{their_kind}"]
    stored = {name: value.astype(data_type) for name, value in stored.items()}
    n_heads = np.array(model.config.encoder_attention_heads, np.int16)
    return stored | {
        "encoder/num_heads": n_heads,
        "decoder/num_heads": n_heads,
        "decoder/pre_norm": np.array(1, np.int8),
    }


def tokenizer_file() -> dict:
    """A byte-level tokenizer with Whisper's special tokens where Whisper's multilingual models have them."""
    from tokenizers.pre_tokenizers import ByteLevel

    characters = sorted(ByteLevel.alphabet())
    fill = [f"<unused{i}>" for i in range(50257 - len(characters))]
    special = ["endoftext", "startoftranscript", *LANGUAGES, "translate", "transcribe"]
    special += ["startoflm", "startofprev", "nospeech", "notimestamps"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": 50257 + i, "content": f"<|{name}|>", **flags} for i, name in enumerate(special)],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(characters + fill)}, "merges": []},
    }


@pytest.fixture(scope="module")
def whisper():
    """A random two-layer Whisper; biases and norms are random too, so that each must find its place."""
    torch = pytest.importorskip("torch")
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(1)
    sizes = {
        f"{side}_{what}": n for side in ("encoder", "decoder") for what, n in (("layers", 2), ("attention_heads", 2))
    }
    sizes |= {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "d_model": 16, "num_mel_bins": 8, "vocab_size": N_TOKENS}
    config = WhisperConfig(**sizes, max_source_positions=50, max_target_positions=12)
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2)
    return model


def write_ct2(folder: Path, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(content)
    settings = {"alignment_heads": [[1, 0], [1, 1]], "lang_ids": [50259, 50260]}
    settings |= {"suppress_ids": [1, 2], "suppress_ids_begin": [220, 50257]}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_file()), encoding="utf-8")
    return folder


def logits(model):
    import torch

    generator = torch.Generator().manual_seed(2)
    features = torch.randn(1, 8, 100, generator=generator)
    with torch.no_grad():
        return model(input_features=features, decoder_input_ids=torch.tensor([[50258, 50259, 50261, 70]])).logits


@pytest.mark.parametrize(("data_type", "tolerance"), [("float32", 1e-5), ("float16", 1e-2)])
def test_a_converted_model_computes_what_the_original_computes(whisper, tmp_path, data_type, tolerance):
    import torch
    from safetensors.torch import load_file
    from transformers import WhisperForConditionalGeneration

    source = write_ct2(tmp_path / "ct2", model_file(ct2_variables(whisper, data_type)))
    convert(source, tmp_path / "hf")
    converted, report = WhisperForConditionalGeneration.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert {str(t.dtype) for t in load_file(tmp_path / "hf" / "model.safetensors").values()} == {f"torch.{data_type}"}
    torch.testing.assert_close(logits(converted.eval()), logits(whisper), atol=tolerance, rtol=tolerance)


def test_a_converted_folder_has_tokenizer_features_and_generation_settings(whisper, tmp_path):
    from transformers import GenerationConfig, WhisperProcessor

    convert(write_ct2(tmp_path / "ct2", model_file(ct2_variables(whisper, "float16"))), tmp_path / "hf")
    settings = GenerationConfig.from_pretrained(tmp_path / "hf")
    assert settings.lang_to_id == {"<|en|>": 50259, "<|de|>": 50260}
    assert settings.task_to_id == {"translate": 50261, "transcribe": 50262}
    assert settings.alignment_heads == [[1, 0], [1, 1]]
    assert (settings.suppress_tokens, settings.begin_suppress_tokens) == ([1, 2], [220, 50257])
    assert (settings.eos_token_id, settings.decoder_start_token_id, settings.max_length) == (50257, 50258, 12)
    processor = WhisperProcessor.from_pretrained(tmp_path / "hf")
    ids = processor.tokenizer.encode("dž , é", add_special_tokens=False)
    assert processor.tokenizer.decode([50258, *ids, 50257], skip_special_tokens=True) == "dž , é"
    features = processor(np.zeros(1600, np.float32), sampling_rate=16000, return_tensors="np").input_features
    assert features.shape == (1, 8, 100)


SMALL = model_file({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7, np.int16)})


def test_read_model_gives_names_shapes_numbers_and_aliases(tmp_path):
    (tmp_path / "model.bin").write_bytes(SMALL)
    model = read_model(tmp_path / "model.bin")
    assert (model.specification, model.revision) == ("WhisperSpec", 3)
    np.testing.assert_array_equal(model.variables["a"], [[0, 1, 2], [3, 4, 5]])
    assert model.variables["b"] == 7
    assert model.variables["decoder/projection/weight"] is model.variables["a"]


def test_a_model_file_cut_anywhere_is_refused(tmp_path):
    for n_bytes in range(len(SMALL)):
        (tmp_path / "model.bin").write_bytes(SMALL[:n_bytes])
        with pytest.raises(ValueError, match=r"model\.bin (ends at byte \d+.*cut short|is empty).*Fetch or copy"):
            read_model(tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 a zip file", r"starts with 67324752, expected a CTranslate2 binary version 4 to 6"),
        (SMALL + b"\0", r"has 1 bytes after its last value"),
        (SMALL.replace(struct.pack("<BI", 0, 24), struct.pack("<BI", 5, 24)), r"'a' has type 5"),
        (SMALL.replace(struct.pack("<BI", 0, 24), struct.pack("<BI", 0, 20)), r"'a' has 20 bytes, its shape \[2, 3\]"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_was_expected(tmp_path, content, message):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path / "model.bin")


def test_another_model_than_whisper_is_refused(tmp_path):
    source = write_ct2(tmp_path / "ct2", model_file({"a": np.zeros(1, np.float32)}, "TransformerSpec"))
    with pytest.raises(ValueError, match="holds a 'TransformerSpec', expected 'WhisperSpec'"):
        convert(source, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_a_quantised_model_is_refused_and_a_lacking_tensor_named(whisper, tmp_path):
    variables = ct2_variables(whisper, "float32")
    name = "decoder/layer_1/ffn/linear_0/weight"
    source = write_ct2(tmp_path / "ct2", model_file(variables | {name: variables[name].astype(np.int8)}))
    with pytest.raises(ValueError, match=r"'model.decoder.layers.1.fc1.weight' is int8.*quantised"):
        convert(source, tmp_path / "hf")
    write_ct2(source, model_file({k: v for k, v in variables.items() if k != name}))
    with pytest.raises(ValueError, match=f"lacks '{name}'"):
        convert(source, tmp_path / "hf")


def test_a_ct2_folder_without_a_tokenizer_names_the_file(whisper, tmp_path):
    source = write_ct2(tmp_path / "ct2", SMALL)
    (source / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json is missing"):
        convert(source, tmp_path / "hf")
