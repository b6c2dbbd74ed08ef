"""How the tests drive our agents: a small tokenizer, SimulEval's loop in process, and SimulEval itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
GOLDENS = Path(__file__).parent / "goldens" / "hikari"
FIRST_SPECIAL = 957  # of the golden vocabulary: real id - 50257


def write_tokenizer(folder: Path, n_words: int = FIRST_SPECIAL - 256, n_ids: int = 1100) -> None:
    """Whisper's layout in small: 256 bytes (93 is "~"), words, then the special tokens in Whisper's order."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers.convert_slow_tokenizer import bytes_to_unicode
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    pieces = list(bytes_to_unicode().values())
    pieces += [("Ġ" if i % 3 else "") + f"w{i}" for i in range(n_words)]
    specials = ["endoftext", "startoftranscript", *list(LANGUAGES)[:99], "translate", "transcribe", "startoflm",
                "startofprev", "nospeech", "notimestamps"]  # fmt: skip
    specials += [f"{0.02 * i:.2f}" for i in range(n_ids - len(pieces) - len(specials))]
    tokenizer = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in specials])
    tokenizer.save(str(folder / "tokenizer.json"))


class ReplaySpeech:
    """A voice activity whose answers are given, one a step: the goldens come with their speech flags."""

    def __init__(self, flags) -> None:
        self.flags = flags

    def start(self) -> int:
        return 0

    def __call__(self, samples, index: int) -> tuple[float, int]:
        return (1.0 if self.flags[index] else 0.0), index + 1


def agent_arguments(folder: Path, **options) -> Namespace:
    """The namespace SimulEval would hand to HikariAgent; options without the prefix."""
    return Namespace(device="cpu", **{"hikari_model": str(folder), **{f"hikari_{k}": v for k, v in options.items()}})


def push_all(agent, samples: np.ndarray, segment_ms: float = 80, rate: int = 16_000) -> tuple[list[str], list[float]]:
    """What SimulEval's evaluator does with one recording: the words and their delays in ms."""
    from simuleval.data.segments import EmptySegment, SpeechSegment

    size = int(np.ceil(segment_ms / 1000 * rate))
    words, delays = [], []
    for start in range(0, max(len(samples), 1), size):
        end = min(start + size, len(samples))
        last = end == len(samples)
        segment = (
            SpeechSegment(content=samples[start:end].tolist(), sample_rate=rate, finished=last)
            if len(samples)
            else EmptySegment(finished=True)
        )
        out = agent.pushpop(segment)
        assert out.finished == last, "finished must be signalled at the end of the audio, and only there"
        if not out.is_empty and out.content:
            new = out.content.split()
            words += new
            delays += [end * 1000 / rate] * len(new)
    agent.reset()
    return words, delays


def run_simuleval(folder: Path, wavs: list[Path], *arguments: str, segment_ms: int = 80, check: bool = True):
    """`python -m simuleval.cli` on these recordings; returns the finished process and the rows of instances.log."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.txt").write_text("".join(f"{wav}\n" for wav in wavs))
    (folder / "target.txt").write_text("reference\n" * len(wavs))
    command = [sys.executable, "-m", "simuleval.cli", "--source", str(folder / "source.txt")]
    command += ["--target", str(folder / "target.txt"), "--output", str(folder / "out"), "--no-scoring"]
    command += ["--no-progress-bar", "--source-segment-size", str(segment_ms), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
    log = folder / "out" / "instances.log"
    return done, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def random_model(seed: int = 0, scale: float = 0.3, **sizes):
    """A random Hikari whose biases and norms are random too; two layers of width 16 unless `sizes` says otherwise."""
    import torch

    from hikari_agent.config import HikariConfig
    from hikari_agent.model import HikariForConditionalGeneration

    small = {f"{side}_{what}": n for side in ("encoder", "decoder")
             for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))}  # fmt: skip
    small |= dict(vocab_size=1100, d_model=16, max_source_positions=400, max_target_positions=100)
    small |= dict(encoder_is_causal=True, decoder_time_dilation=4, bos_token_id=957, eos_token_id=957, pad_token_id=957)
    small |= dict(decoder_start_token_id=958)
    generator = torch.Generator().manual_seed(seed)
    model = HikariForConditionalGeneration(HikariConfig(**(small | sizes))).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return model
