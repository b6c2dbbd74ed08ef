"""Read a CTranslate2 Whisper model and write it as a Hugging Face Whisper folder, without CTranslate2 or PyTorch.

The folder loads with `WhisperForConditionalGeneration.from_pretrained` and `WhisperProcessor.from_pretrained` in
transformers 4.57 and 5.24. Every file in it is written here and not by transformers, whose own files for one of the
two versions confuse the other.
"""

from __future__ import annotations

import json
import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hikari_agent.checkpoint import read_json

if TYPE_CHECKING:
    import numpy as np

# Type ids of model.bin (CTranslate2 include/ctranslate2/types.h, DataType) as numpy type names. bfloat16 (5) has none.
NUMPY_TYPES = {0: "float32", 1: "int8", 2: "int16", 3: "int32", 4: "float16"}
SPECIFICATION = "WhisperSpec"
BINARY_VERSIONS = (4, 5, 6)
N_MULTILINGUAL_TOKENS = 51865  # Whisper's smallest multilingual vocabulary; English-only models have 51864
HOP_SAMPLES, SAMPLE_RATE = 160, 16000  # of Whisper's log-mel frames
REMEDY = "Fetch or copy the model again."


@dataclass(frozen=True)
class Ct2Model:
    """The contents of a `model.bin`: variables by name, aliases resolved."""

    specification: str
    revision: int
    variables: dict[str, np.ndarray]


class _Cursor:
    """Reads little-endian values one after another and says where a file ends too early."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path, self.content, self.position = path, content, 0

    def skip(self, n_bytes: int) -> int:
        """The position before `n_bytes`, which are passed over."""
        start, end = self.position, self.position + n_bytes
        if end > len(self.content):
            raise ValueError(
                f"{self.path} ends at byte {len(self.content)}, inside a value that reaches to byte {end}: "
                f"the file is cut short. {REMEDY}"
            )
        self.position = end
        return start

    def number(self, code: str) -> int:
        """An unsigned integer: B, H or I as in `struct`."""
        start = self.skip(struct.calcsize("<" + code))
        return struct.unpack_from("<" + code, self.content, start)[0]

    def text(self) -> str:
        """A string: 2 bytes of length, then as many bytes, the last of them zero."""
        n_bytes = self.number("H")
        start = self.skip(n_bytes)
        try:
            return self.content[start : start + n_bytes].rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: no name at byte {start}, the file is damaged. {REMEDY}") from error


def read_model(path: Path) -> Ct2Model:
    """Read a CTranslate2 `model.bin`.

    Raises FileNotFoundError, and ValueError if it is no CTranslate2 model, is cut short or has bytes left over.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: a CTranslate2 model folder holds model.bin")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty, expected a CTranslate2 model. {REMEDY}")
    with path.open("rb") as file:
        cursor = _Cursor(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    version = cursor.number("I")
    if version not in BINARY_VERSIONS:
        raise ValueError(
            f"{path} starts with {version}, expected a CTranslate2 binary version {BINARY_VERSIONS[0]} to "
            f"{BINARY_VERSIONS[-1]}: this is another kind of file, or of a newer CTranslate2. Give a model.bin written "
            "by ct2-transformers-converter 3 or 4"
        )
    specification, revision = cursor.text(), cursor.number("I")
    variables = dict(_read_variable(cursor) for _ in range(cursor.number("I")))
    for _ in range(cursor.number("I")):
        alias, name = cursor.text(), cursor.text()
        if name not in variables:
            raise ValueError(f"{path}: '{alias}' stands for '{name}', which is not in the file. {REMEDY}")
        variables[alias] = variables[name]
    if cursor.position != len(cursor.content):
        n_left = len(cursor.content) - cursor.position
        raise ValueError(f"{path} has {n_left} bytes after its last value, expected none. {REMEDY}")
    return Ct2Model(specification, revision, variables)


def _read_variable(cursor: _Cursor) -> tuple[str, np.ndarray]:
    import numpy as np

    name = cursor.text()
    shape = [cursor.number("I") for _ in range(cursor.number("B"))]
    type_id, n_bytes = cursor.number("B"), cursor.number("I")
    if type_id not in NUMPY_TYPES:
        raise ValueError(
            f"{cursor.path}: '{name}' has type {type_id}, known are {NUMPY_TYPES}. Convert the model with "
            "--quantization float16"
        )
    data_type = np.dtype(NUMPY_TYPES[type_id])
    if n_bytes != math.prod(shape) * data_type.itemsize:
        raise ValueError(
            f"{cursor.path}: '{name}' has {n_bytes} bytes, its shape {shape} of {data_type} needs "
            f"{math.prod(shape) * data_type.itemsize}. {REMEDY}"
        )
    start = cursor.skip(n_bytes)
    return name, np.frombuffer(cursor.content, data_type, math.prod(shape), start).reshape(shape)


def convert(source: Path, target: Path) -> Path:
    """Write the CTranslate2 Whisper model in the folder `source` as a Hugging Face folder `target`; returns `target`.

    `source` holds model.bin, config.json and tokenizer.json. The numbers keep their precision (float16 or float32).
    Raises FileNotFoundError, and ValueError for a file that is damaged or holds another kind of model.
    """
    from safetensors.numpy import save

    model = read_model(source / "model.bin")
    if model.specification != SPECIFICATION:
        raise ValueError(
            f"{source / 'model.bin'} holds a {model.specification!r}, expected {SPECIFICATION!r}. Only Whisper models "
            "can be converted; give the folder of one"
        )
    settings, tokenizer = _read_json(source / "config.json"), _read_json(source / "tokenizer.json")
    try:
        tensors = _rename(model.variables)
        config = _config(model.variables, tokenizer, settings)
        generation_config = _generation_config(config, tokenizer, settings)
        texts = _tokenizer_files(tokenizer)
    except KeyError as error:
        raise ValueError(
            f"the Whisper model in {source} lacks {error}, expected model.bin, config.json and tokenizer.json as "
            f"ct2-transformers-converter writes them. {REMEDY}"
        ) from error
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))
    files = {
        "config.json": config,
        "generation_config.json": generation_config,
        "preprocessor_config.json": _feature_extractor(config),
        "tokenizer.json": tokenizer,
    }
    texts |= {name: json.dumps(content, ensure_ascii=False, indent=1) + "\n" for name, content in files.items()}
    for name, text in texts.items():
        (target / name).write_text(text, encoding="utf-8")
    return target


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it lies beside model.bin in a CTranslate2 Whisper folder")
    return read_json(path)


def _n_layers(variables: Mapping[str, np.ndarray], side: str) -> int:
    return len({m[1] for m in (re.match(rf"{side}/layer_(\d+)/", name) for name in variables) if m})


def _rename(variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The weights under their Hugging Face names; projections that CTranslate2 stacks are taken apart."""
    import numpy as np

    tensors: dict[str, np.ndarray] = {}

    def take(name: str, parts: Mapping[str, str], source: str) -> None:
        for new, old in parts.items():
            tensors[f"{name}.{new}"] = variables[f"{source}/{old}"]

    def linear(name: str, source: str) -> None:
        take(name, {"weight": "weight", "bias": "bias"}, source)

    def norm(name: str, source: str) -> None:
        take(name, {"weight": "gamma", "bias": "beta"}, source)

    def stacked(name: str, source: str, letters: str) -> None:
        """Projections one above the other, in the order of `letters`; Whisper's keys have no bias."""
        weights = np.split(variables[f"{source}/weight"], len(letters))
        biases = np.split(variables[f"{source}/bias"], len(letters))
        for letter, weight, bias in zip(letters, weights, biases, strict=True):
            tensors[f"{name}.{letter}_proj.weight"] = weight
            if letter != "k":
                tensors[f"{name}.{letter}_proj.bias"] = bias
            elif np.any(bias):
                raise ValueError(f"'{source}' has a bias on its keys, Whisper has none: not a Whisper model. {REMEDY}")

    for conv in ("conv1", "conv2"):
        linear(f"model.encoder.{conv}", f"encoder/{conv}")
    take("model.decoder.embed_tokens", {"weight": "weight"}, "decoder/embeddings")
    for side in ("encoder", "decoder"):
        take(f"model.{side}.embed_positions", {"weight": "encodings"}, f"{side}/position_encodings")
        norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
        for i in range(_n_layers(variables, side)):
            new, old = f"model.{side}.layers.{i}", f"{side}/layer_{i}"
            norm(f"{new}.self_attn_layer_norm", f"{old}/self_attention/layer_norm")
            stacked(f"{new}.self_attn", f"{old}/self_attention/linear_0", "qkv")
            linear(f"{new}.self_attn.out_proj", f"{old}/self_attention/linear_1")
            if side == "decoder":
                norm(f"{new}.encoder_attn_layer_norm", f"{old}/attention/layer_norm")
                stacked(f"{new}.encoder_attn", f"{old}/attention/linear_0", "q")
                stacked(f"{new}.encoder_attn", f"{old}/attention/linear_1", "kv")
                linear(f"{new}.encoder_attn.out_proj", f"{old}/attention/linear_2")
            norm(f"{new}.final_layer_norm", f"{old}/ffn/layer_norm")
            linear(f"{new}.fc1", f"{old}/ffn/linear_0")
            linear(f"{new}.fc2", f"{old}/ffn/linear_1")
    for name, tensor in tensors.items():
        if tensor.dtype.kind != "f":
            raise ValueError(
                f"'{name}' is {tensor.dtype}, expected float16 or float32: the model is quantised. "
                "Convert it with --quantization float16"
            )
    return {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}


def _token_ids(tokenizer: Mapping[str, Any]) -> dict[str, int]:
    return tokenizer["model"]["vocab"] | {token["content"]: token["id"] for token in tokenizer["added_tokens"]}


def _config(
    variables: Mapping[str, np.ndarray], tokenizer: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The sizes, read off the weights."""
    ids = _token_ids(tokenizer)
    n_tokens, d_model = variables["decoder/embeddings/weight"].shape
    config: dict[str, Any] = {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "vocab_size": n_tokens,
        "d_model": d_model,
        "num_mel_bins": variables["encoder/conv1/weight"].shape[1],
        "max_source_positions": len(variables["encoder/position_encodings/encodings"]),
        "max_target_positions": len(variables["decoder/position_encodings/encodings"]),
        "activation_function": "gelu",
        "scale_embedding": False,
        "tie_word_embeddings": True,
        "decoder_start_token_id": ids["<|startoftranscript|>"],
        "begin_suppress_tokens": settings["suppress_ids_begin"],
        # transformers 5 loads in this type unless told another; float16 is slow on a CPU, and float32 exact.
        "dtype": "float32",
    }
    for side in ("encoder", "decoder"):
        config[f"{side}_layers"] = _n_layers(variables, side)
        config[f"{side}_attention_heads"] = int(variables[f"{side}/num_heads"])
        config[f"{side}_ffn_dim"] = len(variables[f"{side}/layer_0/ffn/linear_0/bias"])
    return config | dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), ids["<|endoftext|>"])


def _generation_config(
    config: Mapping[str, Any], tokenizer: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What `generate` and the timing of words need: start tokens, suppressed tokens, languages, alignment heads."""
    ids = _token_ids(tokenizer)
    shared = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "begin_suppress_tokens")
    is_multilingual = config["vocab_size"] >= N_MULTILINGUAL_TOKENS
    content: dict[str, Any] = {name: config[name] for name in shared} | {
        "alignment_heads": settings["alignment_heads"],
        "suppress_tokens": settings["suppress_ids"],
        "is_multilingual": is_multilingual,
        "max_length": config["max_target_positions"],
        "max_initial_timestamp_index": 50,  # 1 s in steps of 20 ms, as in OpenAI's own decoding
        "no_timestamps_token_id": ids["<|notimestamps|>"],
        "prev_sot_token_id": ids["<|startofprev|>"],
        "return_timestamps": False,
    }
    if is_multilingual:
        tokens = {id_: token for token, id_ in ids.items()}
        content["lang_to_id"] = {tokens[id_]: id_ for id_ in settings["lang_ids"]}
        content["task_to_id"] = {task: ids[f"<|{task}|>"] for task in ("transcribe", "translate")}
    return content


def _feature_extractor(config: Mapping[str, Any]) -> dict[str, Any]:
    n_frames = 2 * config["max_source_positions"]  # conv2 halves the frames
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": config["num_mel_bins"],
        "sampling_rate": SAMPLE_RATE,
        "hop_length": HOP_SAMPLES,
        "n_fft": 400,
        "chunk_length": n_frames * HOP_SAMPLES // SAMPLE_RATE,
        "n_samples": n_frames * HOP_SAMPLES,
        "nb_max_frames": n_frames,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def _tokenizer_files(tokenizer: Mapping[str, Any]) -> dict[str, str]:
    """tokenizer_config.json, and vocab.json and merges.txt, which transformers 4's `WhisperProcessor` reads."""
    model, added = tokenizer["model"], tokenizer["added_tokens"]
    end = "<|endoftext|>"
    # tokenizers before 0.20 writes a merge as one string, later ones as a pair.
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    settings = {
        "tokenizer_class": "WhisperTokenizer",
        "processor_class": "WhisperProcessor",
        "model_max_length": 1024,
        "add_prefix_space": False,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "errors": "replace",
        "added_tokens_decoder": {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in added},
        "additional_special_tokens": [t["content"] for t in added if t["special"]],
    } | dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), end)
    return {
        "tokenizer_config.json": json.dumps(settings, ensure_ascii=False, indent=1) + "\n",
        "vocab.json": json.dumps(model["vocab"], ensure_ascii=False) + "\n",
        "merges.txt": "".join(line + "\n" for line in ("#version: 0.2", *merges)),
    }
