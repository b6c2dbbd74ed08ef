"""A Hikari checkpoint on disk, checked before it is loaded: config.json and safetensors, one file or shards.

Every refusal names the key at fault and what to do. Heavy imports are inside, so that a parser can import this.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from .config import HikariConfig

EMBEDDING, PROJECTION = "model.decoder.embed_tokens.weight", "proj_out.weight"
# Keys of config.json that are whole numbers above 0.
SIZES = (
    "vocab_size", "num_mel_bins", "d_model", "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim",
    "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim", "max_source_positions", "max_target_positions",
    "decoder_time_dilation",
)  # fmt: skip
EMBEDDED = ("hikari-tiny",)  # shipped with the package, in checkpoints/
# Left over from the speech-to-speech model: harmless for text.
IGNORED = re.compile(
    r"depth_decoder\.|s2t_adapter\.|model\.decoder\.embed_(semantic_token\.|acoustic_tokens\.\d+\.)weight"
)


@dataclass(frozen=True)
class Checkpoint:
    """A folder with a checked config and the safetensors file that holds each key."""

    folder: Path
    config: HikariConfig
    files: dict[str, Path]

    def tensors(self, shapes: dict[str, tuple[int, ...]]) -> dict[str, torch.Tensor]:
        """The tensors a model with these parameter shapes needs, on the CPU, in the stored dtype.

        Raises ValueError for a missing key or another shape. With tied embeddings either of the two names will do.
        """
        import logging

        from safetensors import safe_open

        source = {name: name for name in shapes}
        if self.config.tie_word_embeddings:
            held = EMBEDDING if EMBEDDING in self.files else PROJECTION
            source[EMBEDDING] = source[PROJECTION] = held
        missing = [name for name in shapes if source[name] not in self.files]
        if missing:
            raise ValueError(
                f"{self.folder}: {len(missing)} of {len(shapes)} weights are missing, the first is '{missing[0]}'. "
                "The file was cut, or config.json (layers, tie_word_embeddings) belongs to another model: fetch it again"
            )
        surplus = [
            name for name in self.files if name not in {*source.values(), PROJECTION} and not IGNORED.match(name)
        ]
        if surplus:
            logging.getLogger(__name__).warning("%s: %d unknown weights ignored, the first is '%s'",
                                                self.folder, len(surplus), surplus[0])  # fmt: skip
        found: dict[str, torch.Tensor] = {}
        for path in sorted({self.files[name] for name in source.values()}):
            with safe_open(path, framework="pt") as file:
                for name in {n for n in source.values() if self.files[n] == path}:
                    found[name] = file.get_tensor(name)
        for name, shape in shapes.items():
            if tuple(found[source[name]].shape) != shape:
                raise ValueError(
                    f"{self.folder}: '{source[name]}' is {tuple(found[source[name]].shape)}, config.json makes it {shape}. "
                    "Use the config.json that was saved with these weights"
                )
        return {name: found[source[name]] for name in shapes}


def read_checkpoint(name_or_path: str | os.PathLike[str], **hub: Any) -> Checkpoint:
    """Find and check a checkpoint: a folder, or a hub id that is downloaded or already in the hub's cache.

    Raises FileNotFoundError if there is none, ValueError if it is not a text Hikari or a file is damaged.
    """
    folder = resolve_folder(name_or_path, **hub)
    config = _read_config(folder)
    return Checkpoint(folder, config, read_index(folder))


def resolve_folder(name_or_path: str | os.PathLike[str], **hub: Any) -> Path:
    """The folder of a checkpoint: a folder, the embedded one's name, or a hub id.

    Raises FileNotFoundError with the reason if it is none of them.
    """
    folder = Path(name_or_path)
    if folder.is_dir():
        return folder
    if str(name_or_path) in EMBEDDED:
        return Path(__file__).parent / "checkpoints" / str(name_or_path)
    if str(name_or_path).startswith((".", "/", "~")) or str(name_or_path).count("/") != 1:
        raise FileNotFoundError(f"no folder {name_or_path}, and it is no hub id (OWNER/NAME): check the path")
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(name_or_path), allow_patterns=["*.json", "*.safetensors", "*.txt"], **hub))
    except Exception as error:  # the hub raises a dozen kinds; each means: not here, and this is why
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FileNotFoundError(
            f"'{name_or_path}' is neither a folder here nor to be had from the hub ({reason}). Download it where there "
            "is a network (huggingface-cli download) and give the folder"
        ) from error


def _read_config(folder: Path) -> HikariConfig:
    from .config import HikariConfig

    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no config.json: give the folder of a saved model")
    content = read_json(path)
    kind = content.get("model_type")
    if kind != "hikari" and "decoder_time_dilation" not in content:
        remedy = f"python -m scripts.convert {folder} OUT" if kind == "whisper" else "give the folder of a Hikari model"
        raise ValueError(
            f"{path} has no decoder_time_dilation (model_type '{kind}'): not a Hikari checkpoint; {remedy}"
        )
    for key in ("decoder_time_dilation", "encoder_is_causal"):
        if key not in content:
            raise ValueError(
                f"{path} has no {key}: a Hikari has decoder_time_dilation 4 and encoder_is_causal true. Use the "
                "config.json that was saved with the weights, or add the key"
            )
    if not content["encoder_is_causal"]:
        raise ValueError(f"{path} says encoder_is_causal false: such an encoder cannot stream")
    for key in ("s2s", "use_rope"):
        if content.get(key):
            raise ValueError(
                f"{path} says {key} true: a speech-to-speech Hikari without decoder positions, which this text agent "
                "does not run. Use a text checkpoint such as sbintuitions/hikari-medium"
            )
    _check_sizes(path, content)
    return HikariConfig.from_dict(content)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises ValueError naming the file if it holds none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}): fetch it again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, expected an object: fetch it again")
    return content


def _check_sizes(path: Path, content: dict[str, Any]) -> None:
    sizes = {key: content[key] for key in SIZES if key in content}
    for key, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"{path} says {key} {size!r}, expected a whole number above 0: fetch it again")
    for key in ("encoder_attention_heads", "decoder_attention_heads"):
        if key in sizes and sizes.get("d_model", 0) % sizes[key]:
            raise ValueError(
                f"{path} says d_model {sizes['d_model']}, which {key} {sizes[key]} does not divide: fetch it again"
            )


def read_index(folder: Path) -> dict[str, Path]:
    """Which file holds which key, from the index of the shards or from the one file there is."""
    from safetensors import SafetensorError, safe_open

    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = set(read_json(index)["weight_map"].values())
            shards = sorted(folder / name for name in names)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{index} is damaged or no index of shards ({error!r}): fetch it again") from error
    else:
        shards = [folder / "model.safetensors"]
    files: dict[str, Path] = {}
    for shard in shards:
        if not shard.is_file():
            raise FileNotFoundError(f"{shard} is missing: fetch the checkpoint again (only safetensors are read)")
        try:
            with safe_open(shard, framework="pt") as file:
                files.update(dict.fromkeys(file.keys(), shard))
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{shard} is damaged or cut ({error}): fetch it again") from error
    return files
