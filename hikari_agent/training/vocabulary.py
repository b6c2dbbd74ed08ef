"""A small vocabulary of one's own in the layout the stream expects: 256 bytes ("~" is 93, WAIT), merges, special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..tokens import LANGUAGES_WITHOUT_BLANKS, TASKS, WAIT, WAIT_TEXT


def train_vocabulary(units: Iterable[str], size: int, languages: Sequence[str], folder: Path) -> int:
    """Learn byte-level merges and write `folder`/tokenizer.json; returns the number of ids, special tokens included.

    `units` are words as they are encoded one by one, with their blank before them (see `encode_units`). `size` is that of
    the bytes and merges. Raises ValueError if it leaves no room for merges.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    if size <= 256:
        raise ValueError(f"a vocabulary of {size}: the 256 bytes come first, so more are needed")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = list(bytes_to_unicode().values())
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, limit_alphabet=256, special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator((unit.replace(WAIT_TEXT, "") for unit in units), trainer)
    names = ["endoftext", "startoftranscript", *languages, *TASKS, "notimestamps"]
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in names])
    assert tokenizer.token_to_id(WAIT_TEXT) == WAIT
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer.get_vocab_size()


def unit_text(unit: str, language: str) -> str:
    """How a word is written behind others: with its blank, but for languages that have none."""
    return unit if language in LANGUAGES_WITHOUT_BLANKS else f" {unit}"
