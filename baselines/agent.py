"""Any backend under any policy as a SimulEval agent: `simuleval --agent-class baselines.agent.PolicyAgent …`.

Audio gathers in chunks. At each chunk the backend continues what was already said (the forced prefix), the policy
says how much of that may be said now, and whole words of it are written. At 30 s audio and its text leave together.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from simuleval.agents.actions import Action

from hikari_agent.agent import AudioStates, StreamingAgent, check_device
from hikari_agent.audio import SAMPLE_RATE
from hikari_agent.tokens import LANGUAGES_WITHOUT_BLANKS, TASKS
from hikari_agent.vad import FRAME, SileroVad, VadState

from . import policies
from .backends import Backend, Proposal

logger = logging.getLogger(__name__)

POLICIES = ("alignatt", "local-agreement", "wait-k", "at-end")
SILENCE_KEPT_SAMPLES = SAMPLE_RATE // 2  # of the silence before the first word, kept so that no onset is cut


@dataclass
class Buffer:
    """What the backend still hears and what was said of it: chunks of audio, each with the tokens it holds."""

    chunks: list[tuple[np.ndarray, list[int]]] = field(default_factory=list)

    @property
    def samples(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.float32), *(samples for samples, _ in self.chunks)])

    @property
    def prefix(self) -> list[int]:
        return [token for _, tokens in self.chunks for token in tokens]

    def write(self, tokens: list[int], positions: list[float]) -> None:
        """Put each token into the chunk that holds sample `position` of the buffer, never before an earlier token."""
        ends = np.cumsum([len(samples) for samples, _ in self.chunks])
        written = [i for i, (_, held) in enumerate(self.chunks) if held]
        at = written[-1] if written else 0
        for token, position in zip(tokens, positions, strict=True):
            at = max(at, min(int(np.searchsorted(ends, position, side="right")), len(self.chunks) - 1))
            self.chunks[at][1].append(token)

    def trim(self, limit_samples: int) -> None:
        """Let the oldest chunks go, audio and text together, until `limit_samples` are left."""
        while len(self.chunks) > 1 and sum(len(samples) for samples, _ in self.chunks) > limit_samples:
            del self.chunks[0]


@dataclass
class Session:
    """One recording under way."""

    vad: VadState
    buffer: Buffer = field(default_factory=Buffer)
    pending: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # heard, less than a chunk
    vad_pending: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    has_speech: bool = False
    is_over: bool = False
    n_units: int = 0  # chunks since speech began: wait-k's source units
    n_words: int = 0  # words written
    proposals: list[list[str]] = field(default_factory=list)  # LocalAgreement's, on top of what is said
    held: list[str] = field(default_factory=list)  # words that wait for the end of the recording


class PolicyAgent(StreamingAgent):
    """A backend and a policy. Nothing is said before Silero has heard speech."""

    option_prefix = "policy"

    def __init__(self, args: Namespace) -> None:
        super().__init__(args)
        import torch

        if not self.option("model"):
            raise ValueError("no model: give --policy-model a folder (python -m scripts.fetch whisper-base makes one)")
        self._check_options()
        if self.option("num_threads"):
            torch.set_num_threads(self.option("num_threads"))
        self.device = check_device(getattr(self.args, "device", "cpu"))
        self.backend = self._load_backend()
        self.vad = SileroVad()
        target = "en" if self.option("task") == "translate" else self.option("language")
        self.by_characters = target in LANGUAGES_WITHOUT_BLANKS
        self.chunk_samples = round(self.option("chunk_ms") * SAMPLE_RATE / 1000)
        logger.info("%s under %s: device %s, %d threads, chunk %g ms", self.option("model"), self.option("name"),
                    self.device, torch.get_num_threads(), self.option("chunk_ms"))  # fmt: skip

    def _load_backend(self) -> Backend:
        from .backends.whisper import WhisperBackend

        return WhisperBackend(self.option("model"), self.option("language"), self.option("task"), self.device)

    def _check_options(self) -> None:
        """Raise ValueError for a number out of range, naming the option, before a model is loaded."""
        if not 1 <= self.option("buffer_s") <= 30:
            raise ValueError(f"--policy-buffer-s {self.option('buffer_s'):g}: expected 1 to 30 s")
        if not 20 <= self.option("chunk_ms") <= 1000 * self.option("buffer_s"):
            raise ValueError(
                f"--policy-chunk-ms {self.option('chunk_ms'):g}: expected at least 20 ms, and no more than "
                f"--policy-buffer-s ({self.option('buffer_s'):g} s)"
            )
        for name, least in (("frame_threshold", 0), ("agreement", 1), ("k", 1)):
            if self.option(name) < least:
                flag = f"--policy-{name.replace('_', '-')}"
                raise ValueError(f"{flag} {self.option(name)}: expected {least} or more")

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--policy-name", choices=POLICIES, default="alignatt", help="when to write (default: alignatt)")
        add("--policy-backend", choices=("whisper",), default="whisper", help="what to write (default: whisper)")
        add("--policy-model", metavar="DIR", help="the backend's model folder")
        add("--policy-language", default="en", metavar="LANG", help="language spoken (default: en)")
        add("--policy-task", choices=TASKS, default="transcribe",
            help="transcribe, or translate into English (default: transcribe)")  # fmt: skip
        add("--policy-chunk-ms", type=float, default=1000, metavar="MS",
            help="audio between two decisions; wait-k's source unit (default: 1000)")  # fmt: skip
        add("--policy-frame-threshold", type=int, default=25, metavar="FRAMES",
            help="alignatt: hold tokens that look at the last FRAMES encoder frames of 20 ms (default: 25)")  # fmt: skip
        add("--policy-agreement", type=int, default=2, metavar="N",
            help="local-agreement: proposals in a row that have to agree (default: 2)")  # fmt: skip
        add("--policy-k", type=int, default=3, metavar="UNITS", help="wait-k: source units ahead (default: 3)")
        add("--policy-buffer-s", type=float, default=30, metavar="S",
            help="longest audio the backend hears at once, up to 30 (default: 30)")  # fmt: skip
        add("--policy-vad-threshold", type=float, default=0.5, metavar="P",
            help="speech probability that opens the recording; 0 opens at once (default: 0.5)")  # fmt: skip
        add("--policy-num-threads", type=int, metavar="N", help="CPU threads of torch (default: torch's)")
        add("--policy-debug", action="store_true", help="show the traceback of an error")

    def to(self, device: str, *args: Any, fp16: bool = False, **kwargs: Any) -> None:
        import torch

        self.device = check_device(device)
        self.backend.to(self.device, torch.float16 if fp16 else torch.float32)

    def policy(self, states: AudioStates | None = None) -> Action:
        """Hear what came; at each whole chunk, and at the end, say what the policy allows."""
        states = self.states if states is None else states
        session: Session = states.session or Session(vad=self.vad.start())
        states.session = session
        session.pending = np.concatenate([session.pending, states.take()])
        words: list[str] = []
        n_kept = 1 if states.source_finished else 0  # the last chunk, whole or not, is the final one
        while len(session.pending) >= self.chunk_samples + n_kept:
            chunk, session.pending = session.pending[: self.chunk_samples], session.pending[self.chunk_samples :]
            words += self._hear(session, chunk, is_final=False)
        if states.source_finished and not session.is_over:
            session.is_over = True
            chunk, session.pending = session.pending, session.pending[:0]
            words += self._hear(session, chunk, is_final=True)
        return self.write(("" if self.by_characters else " ").join(filter(None, words)), states.source_finished)

    def _hear(self, session: Session, chunk: np.ndarray, is_final: bool) -> list[str]:
        """One chunk more: the words to write now."""
        session.buffer.chunks.append((chunk, []))
        if not self._speech_began(session, chunk):
            session.buffer.chunks = [(session.buffer.samples[-SILENCE_KEPT_SAMPLES:], [])]
            return []
        session.n_units += 1
        limit = min(self.backend.window_samples, round(self.option("buffer_s") * SAMPLE_RATE))
        if self.option("name") == "at-end":
            return self._hear_offline(session, limit, is_final)
        session.buffer.trim(limit)
        samples, prefix = session.buffer.samples, session.buffer.prefix
        n_frames = self.backend.n_frames(samples)
        if n_frames == 0:
            return []
        proposal = self.backend.propose(
            self.backend.encode(samples), n_frames, prefix, self._stop_rule(n_frames, is_final)
        )
        words = self._whole_words(proposal, is_final)
        n = self._allowed(session, proposal, words, n_frames, is_final)
        session.n_words += n
        session.proposals = [proposed[n:] for proposed in session.proposals]
        n_tokens = sum(map(len, words[:n]))
        frame_samples = len(samples) / n_frames
        session.buffer.write(proposal.tokens[:n_tokens], [f * frame_samples for f in proposal.frames[:n_tokens]])
        return self._text(words[:n])

    def _stop_rule(self, n_frames: int, is_final: bool) -> Any:
        """AlignAtt need not decode on behind the first token that looks too far ahead."""
        if self.option("name") != "alignatt" or is_final:
            return None
        threshold = self.option("frame_threshold")
        return lambda frame: policies.alignatt([frame], n_frames, threshold, False) == 0

    def _allowed(
        self, session: Session, proposal: Proposal, words: list[list[int]], n_frames: int, is_final: bool
    ) -> int:
        """How many of the proposed words the policy lets through."""
        name = self.option("name")
        if name == "alignatt":
            n_tokens = policies.alignatt(proposal.frames, n_frames, self.option("frame_threshold"), is_final)
            ends = np.cumsum([len(word) for word in words])
            return int(np.searchsorted(ends, n_tokens, side="right"))
        if name == "wait-k":
            return policies.wait_k(len(words), session.n_units, self.option("k"), session.n_words, is_final)
        session.proposals = [*session.proposals, self._text(words)][-self.option("agreement") :]
        return policies.local_agreement(session.proposals, self.option("agreement"), is_final)

    def _hear_offline(self, session: Session, limit: int, is_final: bool) -> list[str]:
        """at-end: decode each full window once, hold its text, and say all of it when the recording is over.

        The last word of a full window may be cut: the next window begins before it. Where the model ended its text long
        before the audio did, and somebody still speaks, it is asked again from where it looked last.
        """
        samples = session.buffer.samples
        while is_final or len(samples) + self.chunk_samples > limit:
            n_frames = self.backend.n_frames(samples)
            if n_frames == 0:
                break
            proposal = self.backend.propose(self.backend.encode(samples), n_frames, [])
            words = self._whole_words(proposal, is_final=True)
            kept = words[:-1] if len(words) > 1 and not is_final else words
            session.held += self._text(kept)
            seen = policies.next_window(proposal.frames, sum(map(len, kept)), n_frames)
            rest = samples[round(seen / n_frames * len(samples)) :]
            is_stuck = len(samples) - len(rest) < SAMPLE_RATE / 2
            samples = samples[:0] if is_stuck or (is_final and not self._is_speech(rest)) else rest
            if not len(samples):
                break
        session.buffer.chunks = [(samples, [])]
        n = policies.at_end(len(session.held), is_final)
        return session.held[:n]

    def _is_speech(self, samples: np.ndarray) -> bool:
        """Whether there is at least half a second of sound that Silero takes for speech somewhere."""
        state, n_speech = self.vad.start(), 0
        for start in range(0, len(samples) - FRAME + 1, FRAME):
            probability, state = self.vad(samples[start : start + FRAME], state)
            n_speech += probability >= max(0.5, self.option("vad_threshold"))
        return n_speech * FRAME >= SAMPLE_RATE / 2

    def _speech_began(self, session: Session, chunk: np.ndarray) -> bool:
        """Whether speech has been heard up to this chunk; once it has, it has."""
        if session.has_speech:
            return True
        threshold = self.option("vad_threshold")
        audio = np.concatenate([session.vad_pending, chunk])
        n_frames = len(audio) // FRAME
        for i in range(n_frames):
            probability, session.vad = self.vad(audio[i * FRAME : (i + 1) * FRAME], session.vad)
            session.has_speech |= probability >= threshold
        session.vad_pending = audio[n_frames * FRAME :]
        session.has_speech |= threshold <= 0
        return session.has_speech

    def _whole_words(self, proposal: Proposal, is_final: bool) -> list[list[int]]:
        """The proposal's tokens by words (characters), an unfinished last one left out unless it is final."""
        pieces = [self.backend.token_bytes(token) for token in proposal.tokens]
        words = group_words(pieces, self.by_characters)
        if words and not (proposal.is_complete or is_final):
            words.pop()  # the token that stopped the decoder belongs to it
        return [[proposal.tokens[i] for i in word] for word in words]

    def _text(self, words: list[list[int]]) -> list[str]:
        """The text of each word; a stray blank gives an empty one."""
        return [b"".join(map(self.backend.token_bytes, word)).decode("utf-8", "replace").strip() for word in words]


def group_words(pieces: list[bytes], by_characters: bool) -> list[list[int]]:
    """Indices of token pieces by word: a blank begins one. By characters: each group ends with a whole character.

    >>> group_words([b" in", b"ter", b"est", b" is"], by_characters=False)
    [[0, 1, 2], [3]]
    """
    groups: list[list[int]] = []
    is_open = False
    for i, piece in enumerate(pieces):
        if groups and (is_open if by_characters else not piece.startswith(b" ")):
            groups[-1].append(i)
        else:
            groups.append([i])
        if by_characters:
            text = b"".join(pieces[j] for j in groups[-1])
            is_open = text.decode("utf-8", "ignore").encode() != text
    return groups
