"""Hikari as a SimulEval agent: `simuleval --agent-class hikari_agent.agent.HikariAgent --hikari-model DIR …`.

Speech segments of any size, rate and number of channels go in; each WriteAction holds whole words (whole characters
for Japanese and Chinese). Everything still pending goes out in the one call where the source is finished.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from simuleval.agents import SpeechToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.agents.states import AgentStates
from simuleval.data.segments import EmptySegment, Segment

from .audio import StreamingDecoder, check_audio_file
from .errors import USER_ERRORS, one_line
from .tokens import LANGUAGES_WITHOUT_BLANKS, RELEASED_TARGETS, TASKS

if TYPE_CHECKING:
    import torch

    from .stream import HikariStream

logger = logging.getLogger(__name__)


class AudioStates(AgentStates):
    """SimulEval's states without its copy of the recording: samples are decoded, handed on once, and forgotten.

    `session` is the agent's: whatever it has to remember of this recording.
    """

    def reset(self) -> None:
        super().reset()
        self.session: Any = None
        self._decoder: StreamingDecoder | None = None
        self._pieces: list[np.ndarray] = []
        self._flushed = False

    def update_source(self, segment: Segment) -> None:
        """Take a segment: content is a list of samples, or of [left, right, …] lists, at the segment's rate."""
        self.source_finished = segment.finished
        if isinstance(segment, EmptySegment):
            return
        self.source_sample_rate = segment.sample_rate
        # SimulEval 1.1.4 leaves a type where no language was given.
        self.tgt_lang = segment.tgt_lang if isinstance(segment.tgt_lang, str) else None
        if len(segment.content) == 0:
            return
        if self._decoder is None:
            self._decoder = StreamingDecoder(segment.sample_rate)
        elif self._decoder.sample_rate != segment.sample_rate:
            raise ValueError(
                f"the sample rate changed from {self._decoder.sample_rate} to {segment.sample_rate} Hz within a recording"
            )
        self._pieces.append(self._decoder.push(np.asarray(segment.content, np.float32)))

    def update_target(self, segment: Segment) -> None:
        self.target_finished = segment.finished  # the text is in the log: no copy is kept

    def take(self) -> np.ndarray:
        """The samples that came since the last call, (n,) float32 at 16 kHz, to the last one once the source is finished."""
        if self.source_finished and self._decoder is not None and not self._flushed:
            self._pieces.append(self._decoder.flush())
            self._flushed = True
        pieces, self._pieces = self._pieces, []
        return np.concatenate([np.zeros(0, np.float32), *pieces])


class StreamingAgent(SpeechToTextAgent):
    """What our SimulEval agents share: states that forget, options with defaults, errors in one line."""

    option_prefix: str  # of the options that `add_args` adds, "hikari" for --hikari-model
    on_command_line = False

    def __init__(self, args: Namespace) -> None:
        """`args` may leave out any option of `add_args`: it has its default then (simulstream's wrapper needs that)."""
        super().__init__(Namespace(**{**vars(self.default_arguments()), **vars(args)}))

    @classmethod
    def default_arguments(cls) -> Namespace:
        parser = ArgumentParser()
        cls.add_args(parser)
        return parser.parse_args([])

    def option(self, name: str) -> Any:
        return getattr(self.args, f"{self.option_prefix}_{name}")

    def build_states(self) -> AudioStates:
        return AudioStates()

    @classmethod
    def from_args(cls, args: Namespace) -> StreamingAgent:
        """Build the agent for SimulEval's command line: an error is one line and exit status 2."""
        with errors_in_one_line(debug=getattr(args, f"{cls.option_prefix}_debug", False)):
            check_sources(getattr(args, "source", None), getattr(args, "target", None))
            agent = cls(args)
        agent.on_command_line = True
        return agent

    def pushpop(self, *args: Any, **kwargs: Any) -> Segment:
        """Hear a segment and answer; on the command line an error ends the run in one line."""
        if not self.on_command_line:
            return super().pushpop(*args, **kwargs)
        with errors_in_one_line(debug=self.option("debug")):
            return super().pushpop(*args, **kwargs)

    @staticmethod
    def write(text: str, finished: bool) -> Action:
        """The action for what there is to say: nothing is said before the end without text."""
        return WriteAction(text, finished=finished) if text or finished else ReadAction()


class HikariAgent(StreamingAgent):
    """A Hikari checkpoint under SimulEval. `tgt_lang` (simulstream, --tgt-lang) goes before --hikari-target."""

    option_prefix = "hikari"

    def __init__(self, args: Namespace) -> None:
        super().__init__(args)
        import torch

        from .checkpoint import resolve_folder
        from .model import HikariForConditionalGeneration
        from .stream import window_of
        from .tokens import Vocabulary

        if self.option("num_threads"):
            torch.set_num_threads(self.option("num_threads"))
        self.device = check_device(getattr(self.args, "device", "cpu"))
        self.dtype = torch.float16 if _wants_half(self.args) else torch.float32
        folder = resolve_folder(self.option("model"))
        self.vocabulary = Vocabulary.from_folder(self.option("tokenizer") or folder)
        self.model = HikariForConditionalGeneration.from_pretrained(folder, dtype=self.dtype, device=self.device)
        self.window = window_of(self.model, self.option("window"), self.option("window_rows"))
        self._streams: dict[str, HikariStream] = {}
        self.stream_to(self.option("target"))  # an unknown language is told now, not at the first recording
        logger.info(
            "Hikari %s: device %s, %s, %d threads, window '%s' of %d rows",
            self.option("model"), self.device, self.dtype, torch.get_num_threads(),
            self.window.name, self.window.n_rows,
        )  # fmt: skip

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--hikari-model", metavar="DIR", default="hikari-tiny",
            help="checkpoint folder, a hub id such as sbintuitions/hikari-medium, or hikari-tiny, which is shipped: a "
            "demonstration on synthetic speech (default: hikari-tiny)")  # fmt: skip
        add("--hikari-tokenizer", metavar="DIR", help="folder with Whisper's tokenizer.json (default: the model's)")
        add("--hikari-task", choices=TASKS, default="translate", help="what to write (default: translate)")
        add("--hikari-target", metavar="LANG",
            help="language to write, as Whisper's two-letter code (default: de; en for transcribe)")  # fmt: skip
        add("--hikari-wait-penalty", type=float, metavar="LOGIT",
            help="subtracted from the WAIT logit: larger is earlier (default: what the checkpoint's config.json says, or "
            "0.0)")  # fmt: skip
        add("--hikari-boost", type=float, metavar="LOGIT",
            help="added to the penalty at each step of speech after 10 WAITs; 0 = constant penalty (default: what the "
            "checkpoint's config.json says, or 0.3)")  # fmt: skip
        add("--hikari-decay", type=float, default=0.3, metavar="SHARE",
            help="share of the boost that each piece of text takes back, 0 to 1 (default: 0.3)")  # fmt: skip
        add("--hikari-repetition-penalty", type=float, default=0.0, metavar="LOGIT",
            help="subtracted from the best token if it is among the last 5 (default: 0.0)")  # fmt: skip
        add("--hikari-window", choices=("lanes", "release"),
            help="what is recomputed when: 'release' is the released server, step for step, 'lanes' recomputes nothing and "
            "needs the causal front end (default: what the model's front end allows, lanes first)")  # fmt: skip
        add("--hikari-window-rows", type=int, metavar="N",
            help="decoder window in rows of 80 ms, at least 5 (default: all the model has, 375 = 30 s)")  # fmt: skip
        add("--hikari-drain-ms", type=float, default=1000, metavar="MS",
            help="at the end go on over silence until the model has said WAIT this long; 0 = stop (default: 1000)")  # fmt: skip
        add("--hikari-drain-cap-ms", type=float, default=10_000, metavar="MS",
            help="longest silence to go on over at the end (default: 10000)")  # fmt: skip
        add("--hikari-num-threads", type=int, metavar="N", help="CPU threads of torch (default: torch's)")
        add("--hikari-debug", action="store_true", help="show the traceback of an error")

    def to(self, device: str, *args: Any, fp16: bool = False, **kwargs: Any) -> None:
        """Move the model; streams that are under way do not move with it."""
        import torch

        self.device = check_device(device)
        self.dtype = torch.float16 if fp16 else torch.float32
        self.model.to(device=self.device, dtype=self.dtype)

    def stream_to(self, target: str | None) -> HikariStream:
        """The stream that writes `target`. Raises ValueError for an unknown language."""
        from .decoding import AdaptiveWaitBias, RepetitionPenalty
        from .stream import HikariStream

        task = self.option("task")
        target = target or ("en" if task == "transcribe" else "de")
        if target not in self._streams:
            prompt = self.vocabulary.prompt(task, target)
            if max(prompt) >= self.model.config.vocab_size:
                raise ValueError(
                    f"the tokenizer's prompt has id {max(prompt)}, the model {self.option('model')} has "
                    f"{self.model.config.vocab_size} tokens: give the tokenizer that belongs to it (--hikari-tokenizer)"
                )
            if target not in (("en",) if task == "transcribe" else RELEASED_TARGETS):
                logger.warning(
                    "hikari-medium was not trained to %s into '%s': only a model of your own will", task, target
                )
            self._warn_about_unit(target)
            penalty, boost = self.option("wait_penalty"), self.option("boost")
            penalty = self.model.config.wait_penalty if penalty is None else penalty
            boost = self.model.config.wait_boost if boost is None else boost
            self._streams[target] = HikariStream(
                self.window,
                prompt,
                self.vocabulary.token_bytes,
                bias=AdaptiveWaitBias(penalty, boost, self.option("decay")),
                repetition=RepetitionPenalty(self.option("repetition_penalty")),
                by_characters=target in LANGUAGES_WITHOUT_BLANKS,
                drain_ms=self.option("drain_ms"),
                drain_cap_ms=self.option("drain_cap_ms"),
            )
        return self._streams[target]

    def _warn_about_unit(self, target: str) -> None:
        unit = getattr(self.args, "eval_latency_unit", None) or getattr(self.args, "latency_unit", None)
        expected = "char" if target in LANGUAGES_WITHOUT_BLANKS else "word"
        if unit in ("word", "char") and unit != expected:
            logger.warning("target '%s' is counted by %s, --eval-latency-unit is %s", target, expected, unit)

    def policy(self, states: AudioStates | None = None) -> Action:
        """Hear what came, say what is due. The last call (source finished) says all the rest."""
        states = self.states if states is None else states
        if states.session is None:  # the language of a recording is that of its first segment
            stream = self.stream_to(states.tgt_lang or self.tgt_lang or self.option("target"))
            states.session = stream, stream.start()
        stream, state = states.session
        samples = states.take()
        if state.finished:
            return self.write("", finished=True)
        emissions, state = stream.push(state, samples)
        if states.source_finished:
            rest, state = stream.finish(state)
            emissions += rest
        states.session = stream, state
        blank = "" if stream.by_characters else " "
        return self.write(blank.join(e.text for e in emissions), states.source_finished)


@contextlib.contextmanager
def errors_in_one_line(debug: bool) -> Iterator[None]:
    """Turn an error of the user's into one line on stderr and exit status 2; with `debug` let it through."""
    try:
        yield
    except USER_ERRORS as error:
        if debug:
            raise
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise SystemExit(2) from None


def check_device(name: str) -> torch.device:
    """The torch device of that name. Raises ValueError if this machine has none such."""
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"unknown device '{name}': use cpu, cuda or cuda:0") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device '{name}' is not here: torch {torch.__version__} sees {torch.cuda.device_count()} CUDA devices. Use "
            "--device cpu, or install the CUDA build of torch"
        )
    return device


def check_sources(source: str | None, target: str | None) -> None:
    """Check the source list before a model is loaded: that it, its recordings and its references are there.

    Raises FileNotFoundError or ValueError naming the file and the line.
    """
    if not source:
        return
    lists = {}
    for name, path in (("--source", source), ("--target", target)):
        if path is None:
            continue
        if not Path(path).is_file():
            raise FileNotFoundError(f"no file {path} ({name}): it holds one line a recording")
        if Path(path).suffix.lower() in (".wav", ".flac", ".mp3", ".ogg", ".mp4"):
            raise ValueError(f"{path} ({name}) is a recording: give a text file with the path of one recording a line")
        try:
            lists[name] = Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} ({name}) is not UTF-8 text ({error.reason} at byte {error.start})") from error
    if len({len(lines) for lines in lists.values()}) > 1:
        raise ValueError(
            f"{source} has {len(lists['--source'])} recordings, {target} has {len(lists['--target'])} references: "
            "SimulEval takes one reference line a recording"
        )
    for number, line in enumerate(lists["--source"], start=1):
        try:
            check_audio_file(line.strip())
        except (FileNotFoundError, ValueError) as error:
            raise type(error)(f"{source}, line {number}: {error}") from error


def _wants_half(args: Namespace) -> bool:
    return getattr(args, "dtype", None) == "fp16" or bool(getattr(args, "fp16", False))
