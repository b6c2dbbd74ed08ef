"""A Hugging Face Whisper checkpoint -> an untrained Hikari: the start of training.

The weights and their names stay; the encoder becomes causal, the decoder gets a clock of 80 ms a row and as many rows
as its window has. `python -m scripts.convert WHISPER OUT` does it from the command line.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .checkpoint import SIZES, Checkpoint, read_index, read_json, resolve_folder
from .tokens import Vocabulary

POSITIONS = "model.decoder.embed_positions.weight"
# Keys of a Whisper's config.json that its Hikari keeps, beside its sizes.
KEPT = (
    "activation_function", "init_std", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id",
    "tie_word_embeddings",
)  # fmt: skip
ENGLISH_ONLY_END = 50256  # id of <|endoftext|>; 50257 in the multilingual vocabulary, whose "~" is 93 too
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")


def convert_whisper(
    whisper: str | os.PathLike[str], target: str | os.PathLike[str], dilation: int = 4, n_rows: int | None = None
) -> Path:
    """Write the Hikari made from the Whisper in folder `whisper` to folder `target`; returns `target`.

    `dilation` encoder frames of 20 ms a row; `n_rows` rows (default: what fills the encoder's 30 s: 375). Raises
    FileNotFoundError or ValueError naming the file or key: no Whisper, weights missing or of another size, English-only
    vocabulary ("~" is not WAIT), more rows than Whisper has positions, or `target` not empty.
    """
    from .config import HikariConfig
    from .model import HikariForConditionalGeneration

    source, folder = resolve_folder(whisper), Path(target)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: give a new folder")
    path = source / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{source} has no config.json: give the folder of a Hugging Face Whisper")
    content = read_json(path)
    if content.get("model_type") != "whisper":
        raise ValueError(f"{path} says model_type '{content.get('model_type')}', expected 'whisper'")
    if dilation < 1:
        raise ValueError(f"dilation {dilation}: a row advances at least one frame of 20 ms")
    vocabulary = Vocabulary.from_folder(source)  # refuses a vocabulary whose "~" is not WAIT
    if not vocabulary.languages() or vocabulary.ids.get("<|endoftext|>") == ENGLISH_ONLY_END:
        raise ValueError(f"{source} is an English-only Whisper: Hikari's prompt names a language")
    # A config leaves out what equals Whisper's defaults.
    n_frames, n_positions = content.get("max_source_positions", 1500), content.get("max_target_positions", 448)
    n_rows = n_frames // dilation if n_rows is None else n_rows
    if not 5 <= n_rows <= n_positions:
        raise ValueError(f"{n_rows} rows: this Whisper has text positions for 5 to {n_positions}")
    kept = {key: content[key] for key in (*SIZES, *KEPT) if key in content}
    clock = {"max_target_positions": n_rows, "encoder_is_causal": True, "decoder_time_dilation": dilation}
    config = HikariConfig(**kept | clock)
    model = HikariForConditionalGeneration(config)
    shapes = {name: tuple(p.shape) for name, p in model.state_dict().items()}
    tensors = Checkpoint(source, config, read_index(source)).tensors(
        shapes | {POSITIONS: (n_positions, config.d_model)}
    )
    tensors[POSITIONS] = tensors[POSITIONS][:n_rows]
    model.to(tensors[POSITIONS].dtype).load_state_dict(tensors)
    model.save_pretrained(folder)
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    return folder
