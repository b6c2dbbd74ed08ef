"""Token ids and text: the WAIT token, the four-token prompt, and how pieces become whole words or characters."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

WAIT = 93  # "~" in Whisper's multilingual vocabulary, which never occurs in Hikari's text
WAIT_TEXT = "~"
TASKS = ("translate", "transcribe")
RELEASED_TARGETS = ("en", "de", "ja", "ru")  # what hikari-medium was trained to write
LANGUAGES_WITHOUT_BLANKS = ("ja", "zh", "yue")  # written and counted by characters


class Vocabulary:
    """The bytes of each token and the ids of the special ones, from a folder's tokenizer.json (or vocab.json)."""

    def __init__(self, pieces: dict[str, int], special: Iterable[str]) -> None:
        from transformers.convert_slow_tokenizer import bytes_to_unicode

        byte_of = {character: byte for byte, character in bytes_to_unicode().items()}
        self.ids = pieces
        specials = set(special)
        self._bytes = {
            i: bytes(byte_of[c] for c in piece)
            for piece, i in pieces.items()
            if piece not in specials and all(c in byte_of for c in piece)
        }

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> Vocabulary:
        """Read a Whisper tokenizer.

        Raises FileNotFoundError if there is none, ValueError if it is damaged or its "~" is not WAIT.
        """
        from tokenizers import Tokenizer

        path = Path(folder) / "tokenizer.json"
        if path.is_file():
            try:
                tokenizer = Tokenizer.from_file(str(path))
            except Exception as error:  # tokenizers raises nothing more exact
                raise ValueError(f"{path} is damaged or no tokenizer ({error}): fetch it again") from error
        elif (Path(folder) / "vocab.json").is_file():
            from transformers import WhisperTokenizerFast

            tokenizer = WhisperTokenizerFast.from_pretrained(str(folder)).backend_tokenizer
        else:
            raise FileNotFoundError(
                f"{folder} has no tokenizer.json: copy it from a multilingual Whisper (openai/whisper-medium has the one "
                "the released Hikari uses), or give a folder that has one (the agent: --hikari-tokenizer)"
            )
        vocabulary = cls(tokenizer.get_vocab(), [t.content for t in tokenizer.get_added_tokens_decoder().values()])
        if vocabulary.ids.get(WAIT_TEXT) != WAIT:
            raise ValueError(
                f"{folder}: token '{WAIT_TEXT}' has id {vocabulary.ids.get(WAIT_TEXT)}, Hikari's WAIT is {WAIT}: this is "
                "not the multilingual Whisper vocabulary"
            )
        return vocabulary

    def token_bytes(self, token: int) -> bytes:
        """The UTF-8 bytes of a text token, perhaps not whole characters; none for a special token."""
        return self._bytes.get(token, b"")

    def special(self, name: str) -> int:
        """The id of `<|name|>`. Raises ValueError if the vocabulary has none."""
        if f"<|{name}|>" not in self.ids:
            raise ValueError(f"the tokenizer has no token <|{name}|>: this is not a multilingual Whisper tokenizer")
        return self.ids[f"<|{name}|>"]

    def languages(self) -> list[str]:
        """Codes of the languages the vocabulary has a token for."""
        words = {"startoftranscript", "startofprev", "startoflm", "endoftext", "nospeech", "nocaptions"}
        words |= {*TASKS, "notimestamps"}
        names = (piece[2:-2] for piece in self.ids if piece.startswith("<|") and piece.endswith("|>"))
        return sorted(name for name in names if name.isalpha() and name not in words)

    def prompt(self, task: str, language: str) -> list[int]:
        """The four prompt ids. `language` is the one to be written. Raises ValueError for an unknown task or language."""
        if task not in TASKS:
            raise ValueError(f"unknown task '{task}'. Known: {', '.join(TASKS)}")
        if language not in self.languages():
            raise ValueError(f"unknown language '{language}'. Known: {', '.join(self.languages())}")
        return [self.special(name) for name in ("startoftranscript", language, task, "notimestamps")]


@dataclass
class WordAssembler:
    """Token bytes in, whole words (or whole characters) out, each as soon as it is known to be complete.

    A word is complete when the next one begins, or when the model says WAIT after it: the tokens of one word fill
    consecutive rows. A character is complete with its last byte. Plain data, so a copy of it forks.
    """

    by_characters: bool = False
    _bytes: bytes = field(default=b"", repr=False)
    _text: str = field(default="", repr=False)

    def push(self, piece: bytes) -> list[str]:
        """Take the bytes of one token; returns the words (characters) that are now complete."""
        data = self._bytes + piece
        text, n_used = codecs.utf_8_decode(data, "replace", False)
        self._bytes = data[n_used:]
        self._text += text
        if self.by_characters:
            return self._release(len(self._text))
        begins_at = self._text.rfind(" ")
        return self._release(begins_at) if begins_at > 0 else []

    def wait(self) -> list[str]:
        """The model said WAIT: the pending word is complete, unless it ends in half a character."""
        return [] if self._bytes else self._release(len(self._text))

    def flush(self) -> list[str]:
        """The end: everything pending; half a character becomes U+FFFD."""
        self._text += self._bytes.decode("utf-8", "replace")
        self._bytes = b""
        return self._release(len(self._text))

    def _release(self, end: int) -> list[str]:
        text, self._text = self._text[:end], self._text[end:]
        return list("".join(text.split())) if self.by_characters else text.split()
