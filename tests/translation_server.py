"""An OpenAI-compatible server over a real socket for the tests: word-for-word "translations", and faults on demand."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def fake_translation(sentence: str, language: str) -> str:
    """What the server answers: German has a word for each word, Japanese no blanks."""
    if language == "Japanese":
        return "今日は猫が本を読みます" * (1 + len(sentence.split()) // 8) + "。"
    return " ".join(
        f"{word[:1].upper()}{word[1:]}" if i % 3 else f"ge{word}" for i, word in enumerate(sentence.split())
    )


class TranslationServer:
    """`faulty`: every fifth request is refused with 429, another fifth with 500, every seventh connection is dropped.

    `asked` holds the messages of the requests that were answered. After `dies_after` answers all are refused with 401.
    """

    def __init__(self, faulty: bool = False, dies_after: int | None = None, wait_s: float = 0.0) -> None:
        self.faulty, self.dies_after, self.wait_s = faulty, dies_after, wait_s
        self.asked: list[list[dict]] = []
        self.n_requests = 0
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(server.wait_s)
                status = server.take(request["messages"])
                if status == 0:
                    self.connection.close()
                    return
                content = {"error": {"message": f"made-up fault {status}"}}
                if status == 200:
                    content = server.answer(request)
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("retry-after-ms", "5")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.handle_error = lambda *_: None  # a client that was killed
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> TranslationServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def take(self, messages: list[dict]) -> int:
        """The status of the next request; 0 drops its connection."""
        with self._lock:
            number = self.n_requests
            self.n_requests += 1
            if self.dies_after is not None and len(self.asked) >= self.dies_after:
                return 401
            if self.faulty and number % 7 == 6:
                return 0
            if self.faulty and number % 5 in (0, 2):
                return 429 if number % 5 else 500
            self.asked.append(messages)
            return 200

    def answer(self, request: dict) -> dict:
        messages = request["messages"]
        language = "Japanese" if "into Japanese" in messages[0]["content"] else "German"
        text = fake_translation(messages[-1]["content"], language)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return {"id": "a", "object": "chat.completion", "created": 0, "model": request["model"],
                "choices": choices, "usage": usage}  # fmt: skip
