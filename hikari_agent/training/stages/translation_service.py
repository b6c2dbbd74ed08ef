"""Sentences through an OpenAI-compatible endpoint: the prompt, a cache that outlives the process, and what it cost."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..corpus import language_name

N_CONTEXT = 4  # sentences before, with their translations (arXiv:2603.11578)
INSTRUCTION = (
    "You interpret a talk from {source} into {target}, one sentence at a time. Answer with the translation of the last "
    "sentence and nothing else: no notes, no quotation marks around it, no line breaks. Translate all that is said, in the "
    "order in which it is said as far as good {target} allows, and spell numbers and names as {target} does."
)
PROMPT_VERSION = sha256(INSTRUCTION.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Service:
    """An endpoint and a model behind it. `retries` with exponential back-off follow 408, 409, 429, 5xx and lost connections."""

    base_url: str
    model: str
    api_key: str = "none"
    timeout_s: float = 60.0
    retries: int = 6
    temperature: float = 0.0


@dataclass(frozen=True)
class Answer:
    """A translation and the tokens that were paid for it: none if it came from the cache."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False


class Cache:
    """Answers by the checksum of all they depend on, in an SQLite file; for any number of threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        try:
            self._base = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=60)
            self._base.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, text TEXT NOT NULL)")
        except sqlite3.Error as error:
            raise ValueError(
                f"{path} is no cache of translations ({error}): remove it, or name another with --cache"
            ) from error

    def get(self, key: str) -> str | None:
        with self._lock:
            row = self._base.execute("SELECT text FROM answers WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put(self, key: str, text: str) -> None:
        with self._lock:
            self._base.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, text))

    def close(self) -> None:
        self._base.close()


class Translator:
    """Translates sentence by sentence; one object serves any number of threads."""

    def __init__(self, service: Service, cache: Cache) -> None:
        try:
            import openai
        except ImportError as error:
            raise ImportError(
                "translating needs the package openai, of the extra train: pip install -e '.[train]'"
            ) from error
        self.service = service
        self.cache = cache
        self._client = openai.OpenAI(
            base_url=service.base_url, api_key=service.api_key, timeout=service.timeout_s, max_retries=service.retries
        )

    def __call__(self, sentence: str, context: Sequence[tuple[str, str]], source: str, target: str) -> Answer:
        """The translation of a sentence that follows `context`, pairs of sentence and translation.

        An empty text: the model gave none, twice. Raises ValueError if the endpoint refuses or cannot be reached.
        """
        messages = prompt(sentence, context, source, target)
        content = [self.service.model, self.service.temperature, PROMPT_VERSION, messages]
        key = sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
        known = self.cache.get(key)
        if known is not None:
            return Answer(known, cached=True)
        text, paid = "", [0, 0]
        for _ in range(2):
            text = self._ask(messages, paid)
            if text:
                self.cache.put(key, text)
                break
        return Answer(text, paid[0], paid[1])

    def _ask(self, messages: list[dict[str, str]], paid: list[int]) -> str:
        import openai

        try:
            reply: Any = self._client.chat.completions.create(
                model=self.service.model, messages=messages, temperature=self.service.temperature  # type: ignore[arg-type]
            )  # fmt: skip
        except openai.APIConnectionError as error:
            raise ValueError(
                f"no answer from {self.service.base_url} after {self.service.retries + 1} tries ({error}): is the server "
                "up, and --base-url right? What is translated so far is kept: start again to go on"
            ) from error
        except openai.APIError as error:
            raise ValueError(
                f"{self.service.base_url} refused model {self.service.model} ({error}): check --model and the API key. "
                "What is translated so far is kept: start again to go on"
            ) from error
        if reply.usage:
            paid[0] += reply.usage.prompt_tokens
            paid[1] += reply.usage.completion_tokens
        choice = reply.choices[0] if reply.choices else None
        if choice is None or choice.finish_reason == "length":
            return ""  # a translation cut short is none
        return " ".join((choice.message.content or "").split())


def prompt(sentence: str, context: Sequence[tuple[str, str]], source: str, target: str) -> list[dict[str, str]]:
    """The messages: the instruction, the context as turns already taken, the sentence.

    >>> [m["role"] for m in prompt("He was.", [("Was he?", "War er?")], "en", "de")]
    ['system', 'user', 'assistant', 'user']
    """
    text = INSTRUCTION.format(source=language_name(source), target=language_name(target))
    turns = [{"role": role, "content": said} for pair in context
             for role, said in zip(("user", "assistant"), pair, strict=True)]  # fmt: skip
    return [{"role": "system", "content": text}, *turns, {"role": "user", "content": sentence}]
