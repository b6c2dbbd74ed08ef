"""Where training begins: random weights, a Hikari that was converted from Whisper, or one that was trained before.

A new, small vocabulary may replace the checkpoint's: each of its pieces starts as the mean of the old pieces it is made of.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from ..checkpoint import resolve_folder
from ..config import HikariConfig
from ..model import HikariForConditionalGeneration, sinusoids
from ..tokens import Vocabulary
from .learner import HikariLearner

HEADS = "training_heads.safetensors"


def from_scratch(config: HikariConfig, seed: int, n_phonemes: int = 0, half_weights: bool = False) -> HikariLearner:
    """Random weights, the same for the same seed. A decoder row starts at the position of the frame it has heard up to."""
    torch.manual_seed(seed)
    learner = HikariLearner(config, n_phonemes, half_weights=half_weights)
    n_layers = config.encoder_layers + config.decoder_layers
    with torch.no_grad():
        for name, module in learner.named_modules():
            if isinstance(module, nn.Linear | nn.Conv1d) and name != "proj_out":
                fan_in = module.weight[0].numel()
                std = fan_in**-0.5
                if name.endswith(("out_proj", "fc2")):
                    std /= (2 * n_layers) ** 0.5  # residual branches add up
                elif isinstance(module, nn.Conv1d):
                    std *= 2**0.5
                module.weight.normal_(std=std)
        decoder = learner.model.decoder
        decoder.embed_tokens.weight.normal_(std=config.d_model**-0.5)
        decoder.embed_positions.weight.copy_(_row_positions(config))
    return learner


def from_checkpoint(
    folder: str | Path,
    vocabulary: Path | None = None,
    frontend: str | None = None,
    n_phonemes: int = 0,
    half_weights: bool = False,
    dilation: int | None = None,
    seed: int = 0,
) -> HikariLearner:
    """The weights of a Hikari checkpoint (`python -m scripts.convert` makes one of a Whisper).

    `vocabulary` is a folder with another tokenizer.json to write with, `frontend` another front end to hear with,
    `dilation` another clock: its decoder positions begin anew.
    Raises FileNotFoundError or ValueError as `HikariForConditionalGeneration.from_pretrained` does.
    """
    source = resolve_folder(str(folder))
    model = HikariForConditionalGeneration.from_pretrained(source)
    if vocabulary is not None and Path(vocabulary).resolve() != source.resolve():
        replace_vocabulary(model, source, vocabulary)
    values = model.config.to_dict()
    if frontend is not None:
        values["frontend"] = frontend
    state = model.state_dict()
    if dilation is not None and dilation != values["decoder_time_dilation"]:
        values |= {
            "decoder_time_dilation": dilation,
            "max_target_positions": values["max_source_positions"] // dilation,
        }
        state["model.decoder.embed_positions.weight"] = _row_positions(HikariConfig(**values))
    torch.manual_seed(seed)
    learner = HikariLearner(HikariConfig(**values), n_phonemes, half_weights=half_weights)
    missing = learner.load_state_dict(state, strict=False).missing_keys  # heads that are new have their random weights
    assert all(name.startswith("phoneme_head.") for name in missing), missing
    heads = source / HEADS
    if learner.phoneme_head is not None and heads.is_file():
        learner.phoneme_head.load_state_dict(load_file(heads))
    return learner


def _row_positions(config: HikariConfig) -> torch.Tensor:
    """(n_rows, d_model): for each decoder row the encoder's position of the frame it has heard up to."""
    every = config.decoder_time_dilation
    return sinusoids(config.max_target_positions * every, config.d_model)[::every]


def save_learner(learner: HikariLearner, vocabulary: Path, folder: Path) -> None:
    """Write the model alone with its tokenizer, and beside it the training heads, for a run that begins with it.

    The folder is there whole or not at all.
    """
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    learner.export().save_pretrained(part)
    shutil.copyfile(vocabulary / "tokenizer.json", part / "tokenizer.json")
    if learner.phoneme_head is not None:
        save_file({k: v.detach().cpu() for k, v in learner.phoneme_head.state_dict().items()}, part / HEADS)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def replace_vocabulary(model: HikariForConditionalGeneration, old_folder: Path, new_folder: Path) -> None:
    """Give a model the vocabulary of `new_folder`, its embeddings made of those of `old_folder`'s."""
    from tokenizers import Tokenizer

    old = Tokenizer.from_file(str(Path(old_folder) / "tokenizer.json"))
    new = Tokenizer.from_file(str(Path(new_folder) / "tokenizer.json"))
    new_vocabulary = Vocabulary.from_folder(new_folder)
    old_ids = old.get_vocab()
    embedding = model.model.decoder.embed_tokens.weight.data
    rows = embedding.mean(dim=0).repeat(new.get_vocab_size(), 1)
    for piece, i in new.get_vocab().items():
        if piece in old_ids and old_ids[piece] < len(embedding):  # bytes and special tokens among them
            rows[i] = embedding[old_ids[piece]]
            continue
        text = new_vocabulary.token_bytes(i).decode("utf-8", "ignore")
        ids = old.encode(text, add_special_tokens=False).ids if text else []
        if ids:
            rows[i] = embedding[ids].mean(dim=0)
    model.config.vocab_size = len(rows)
    end = new.token_to_id("<|endoftext|>")
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        setattr(model.config, key, end)
    model.config.decoder_start_token_id = new.token_to_id("<|startoftranscript|>")
    model.model.decoder.embed_tokens = nn.Embedding.from_pretrained(rows, freeze=False)
    model.proj_out = nn.Linear(rows.shape[1], rows.shape[0], bias=False)
    model.proj_out.weight = model.model.decoder.embed_tokens.weight
