"""Streaming a development set in one batch: many recordings, tasks and WAIT penalties, all at the same row.

What is said is what `HikariStream` says of each alone with a constant penalty. It is how a run of training looks at itself,
and how a sweep of a small model takes minutes.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..audio import CAUSAL_PAST, SAMPLE_RATE, causal_log_mel
from ..lanes import LanesWindow
from ..model import HikariForConditionalGeneration
from ..tokens import LANGUAGES_WITHOUT_BLANKS, WAIT, Vocabulary, WordAssembler
from .interleave import N_PROMPT
from .sections import Timeline

DRAIN_S, DRAIN_CAP_S = 1.0, 4.0  # how the agent ends (--hikari-drain-ms), and how long a batch goes on at most


@dataclass(frozen=True)
class Said:
    """What was said of one recording: words (characters), and the audio in s that had been heard for each."""

    units: list[str]
    heard_s: list[float]


@torch.inference_mode()
def stream_batch(
    window: LanesWindow,
    sounds: Sequence[np.ndarray],
    prompts: Tensor,
    penalties: Tensor,
    rows: int,
    silenced: range = range(0),
) -> Tensor:
    """Greedy streaming of B recordings in V variants each -> tokens (B, V, rows - 3), WAIT included.

    `sounds` are (n,) float32 at 16 kHz, silence follows each; `prompts` (V, 4), `penalties` (V,); all go on for `rows`
    rows. In the `silenced` ones WAIT is forced: a probe of how a model comes back.
    """
    config, size = window.model.config, window.row_samples
    sound = torch.zeros(len(sounds), CAUSAL_PAST + (rows - 1) * size)
    for i, samples in enumerate(sounds):
        n = min(len(samples), sound.shape[1] - CAUSAL_PAST)
        sound[i, CAUSAL_PAST : CAUSAL_PAST + n] = torch.from_numpy(samples[:n])
    weight = window.model.proj_out.weight
    every_prompt = prompts.to(weight.device).repeat(len(sounds), 1)
    bias = penalties.to(weight).repeat(len(sounds))
    lanes = [window.lane(len(sounds), len(prompts))]
    last, chosen = every_prompt[:, -1:], []
    for row in range(rows - 1):
        heard = sound[:, row * size : row * size + CAUSAL_PAST + size]
        mel = causal_log_mel(heard[:, CAUSAL_PAST:], heard[:, :CAUSAL_PAST], config.num_mel_bins).to(weight)
        hidden = window.advance(lanes, mel, every_prompt, last)
        if hidden is None:
            continue
        logits = window.model.proj_out(hidden)
        logits[:, WAIT] -= bias
        last = logits.argmax(dim=-1, keepdim=True)
        if row in silenced:
            last = torch.full_like(last, WAIT)
        chosen.append(last)
    return torch.cat(chosen, dim=1).view(len(sounds), len(prompts), -1)


def read_units(tokens: Sequence[int], vocabulary: Vocabulary, by_characters: bool, row_s: float, end_s: float) -> Said:
    """Tokens of consecutive rows as whole words with their delays; none is later than the recording's end `end_s`.

    Behind the end the rows count until WAIT was said for a second in a row, as in `HikariStream.finish`.
    """
    assembler = WordAssembler(by_characters)
    units: list[str] = []
    heard: list[float] = []
    n_waits = n_drained = 0
    for slot, token in enumerate(tokens):
        if (slot + N_PROMPT - 2) * row_s >= end_s - 1e-6:  # this row hears nothing but silence
            if n_waits * row_s >= DRAIN_S or (n_drained + 1) * row_s > DRAIN_CAP_S + 1e-6:
                break
            n_drained += 1
            n_waits = n_waits + 1 if token == WAIT else 0
        words = assembler.wait() if token == WAIT else assembler.push(vocabulary.token_bytes(token))
        units += words
        heard += [min(end_s, (slot + N_PROMPT - 1) * row_s)] * len(words)
    rest = assembler.flush()
    return Said(units + rest, heard + [end_s] * len(rest))


def stream_all(
    model: HikariForConditionalGeneration,
    vocabulary: Vocabulary,
    sounds: Sequence[np.ndarray],
    source: str,
    languages: Sequence[str],
    penalties: Sequence[float],
    batch: int = 32,
    silenced_s: tuple[float, float] = (0.0, 0.0),
) -> dict[tuple[str, float], list[Said]]:
    """What is said of every recording, by language and WAIT penalty, in one pass over the audio; `source` is spoken.

    `batch` recordings run together, those of like length: each waits for the longest. From the first to the second of
    `silenced_s`, in s of audio, every one is made to say WAIT.
    """
    window = LanesWindow(model)
    row_s = window.row_samples / SAMPLE_RATE
    keys = [(language, penalty) for language in languages for penalty in penalties]
    prompts = torch.tensor([vocabulary.prompt("transcribe" if x == source else "translate", x) for x, _ in keys])
    biases = torch.tensor([penalty for _, penalty in keys])
    said: dict[tuple[str, float], dict[int, Said]] = {key: {} for key in keys}
    silenced = range(*(round(time / row_s) for time in silenced_s))
    ordered = sorted(range(len(sounds)), key=lambda i: len(sounds[i]))
    for first in range(0, len(ordered), batch):
        chosen = ordered[first : first + batch]
        rows = math.ceil(len(sounds[chosen[-1]]) / window.row_samples) + 1 + math.ceil(DRAIN_CAP_S / row_s)
        tokens = stream_batch(window, [sounds[i] for i in chosen], prompts, biases, rows, silenced).tolist()
        for i, variants in zip(chosen, tokens, strict=True):
            for key, row in zip(keys, variants, strict=True):
                characters = key[0] in LANGUAGES_WITHOUT_BLANKS
                said[key][i] = read_units(row, vocabulary, characters, row_s, len(sounds[i]) / SAMPLE_RATE)
    return {key: [by_index[i] for i in range(len(sounds))] for key, by_index in said.items()}


@dataclass(frozen=True)
class DevelopmentSet:
    """Recordings with their timelines: the references are read back from the targets."""

    recordings: Sequence[tuple[Timeline, np.ndarray]]
    vocabulary: Vocabulary

    def run(
        self,
        model: HikariForConditionalGeneration,
        languages: Sequence[str],
        penalties: Sequence[float],
        silenced_s: tuple[float, float] = (0.0, 0.0),
    ) -> dict[tuple[str, float], list[Said]]:
        """What is said of every recording, by language and WAIT penalty: see `stream_all`."""
        sounds = [samples.astype(np.float32) / 32768 for _, samples in self.recordings]
        (source,) = {timeline.language for timeline, _ in self.recordings}
        return stream_all(model, self.vocabulary, sounds, source, languages, penalties, silenced_s=silenced_s)

    def references(self, language: str) -> list[list[str]]:
        """The words (characters) of each recording in `language`."""
        return [[unit for unit, _ in self._timed(timeline, language)] for timeline, _ in self.recordings]

    def scores(
        self, said: Sequence[Said], language: str, heard_s: tuple[float, float] = (0.0, math.inf)
    ) -> dict[str, float]:
        """WER (%) of a transcript or BLEU of a translation, the words said per word of reference, and the mean lag (s).

        The lag of a word that is right is the time from the end of its aligned source word to its emission, of words
        emitted between the two times of `heard_s`.
        """
        import jiwer
        import sacrebleu

        characters = language in LANGUAGES_WITHOUT_BLANKS
        blank = "" if characters else " "
        references = self.references(language)
        texts = [blank.join(s.units) for s in said]
        expected = [blank.join(units) for units in references]
        lags = [lag for s, (timeline, _) in zip(said, self.recordings, strict=True) for lag in
                _lags(s, list(self._timed(timeline, language)), heard_s)]  # fmt: skip
        scores = {
            "length": sum(len(s.units) for s in said) / max(1, sum(map(len, references))),
            "lag_s": float(np.mean(lags)) if lags else float("nan"),
        }
        if all(timeline.language == language for timeline, _ in self.recordings):
            scores["wer"] = 100 * jiwer.wer([plain(t) for t in expected], [plain(t) for t in texts])
        else:
            scores["bleu"] = sacrebleu.corpus_bleu(texts, [expected], tokenize="char" if characters else "13a").score
        return scores

    def _timed(self, timeline: Timeline, language: str) -> list[tuple[str, float]]:
        target = timeline.targets[language]
        characters = language in LANGUAGES_WITHOUT_BLANKS
        timed = []
        for ids, time in zip(target.words, target.order_s, strict=True):
            text = b"".join(map(self.vocabulary.token_bytes, ids)).decode("utf-8", "replace").strip()
            timed += [(unit, time) for unit in (text if characters else text.split())]
        return timed


def plain(text: str) -> str:
    """Lower-case and without punctuation: how words are compared for WER here."""
    return "".join(c for c in text.lower() if c.isalnum() or c.isspace())


def _lags(said: Said, reference: Sequence[tuple[str, float]], heard_s: tuple[float, float]) -> list[float]:
    matcher = difflib.SequenceMatcher(None, said.units, [unit for unit, _ in reference], autojunk=False)
    return [
        said.heard_s[block.a + i] - reference[block.b + i][1]
        for block in matcher.get_matching_blocks()
        for i in range(block.size)
        if heard_s[0] <= said.heard_s[block.a + i] < heard_s[1]
    ]


def report(scores: Mapping[tuple[str, float], Mapping[str, float]]) -> dict[str, float]:
    """Flat names for a log: `wer_en`, `bleu_de`, with the penalty behind them if there are several."""
    several = len({penalty for _, penalty in scores}) > 1
    return {
        f"{name}_{language}" + (f"_{penalty:g}" if several else ""): value
        for (language, penalty), values in scores.items()
        for name, value in values.items()
    }
