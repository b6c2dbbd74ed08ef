"""From a trained model to the shipped checkpoint: the WAIT penalty, 16 bits, the log of its training, its card."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testsets.files import write_whole

LANGUAGES = ("en", "de", "ja", "ru")
PENALTIES = tuple(0.5 * i for i in range(-2, 9))
CARD = """# hikari-tiny

A small Hikari (arXiv:2603.11578): a causal Whisper-shaped model that says WAIT or a piece of text every 80 ms while it hears
English speech. {millions:.1f} million parameters in 16 bits, a vocabulary of its own, the causal front end. Trained by this
project's pipeline on two CPU cores: `make train` (`scripts/embedded.py`; recipe.json, training_log.json).

**It is a demonstration.** It was trained on synthetic speech (espeak-ng, {voices} voices) saying sentences of a grammar
with 714 English word forms; it knows nothing else. It makes the demo, the sweeps and the tests of quality real without a
download. It is no model for real speech, and its figures are no measure of the method on real talks.

Tasks: English transcription, English to German, Japanese, Russian. Sections of at most 25.6 s; it streams for ever (lanes).
WAIT penalty {penalty:g}, chosen on development talks, is in config.json and is the agent's default.

## Results

`tiny-talks`: sentences it never saw, {minutes:.0f} minutes, half in voices of the training, half in voices it never heard.
WER in %; BLEU (13a; by characters for ja); StreamLAAL in s; in brackets 95 % intervals where they are computed.

{results}

## Training

A vocabulary of {vocabulary} pieces. The auxiliary phoneme loss is no part of the paper; its head is left off. Of the paper's
recipe: release times with a jitter of 0 to 200 ms, one token per 80 ms slot, four-token prompts; different are the
sizes, the rates, the section lengths, and that every section is learnt for all four tasks at once.

{stages}

## Licence

MIT, like the code. The text is made by the grammar in this repository; the speech by espeak-ng, whose output is not under
its licence.
"""


def choose_penalty(model: Path, shards: Sequence[Path]) -> tuple[float, dict[str, dict[str, float]]]:
    """The WAIT penalty with the best mean of 100 - WER and the three BLEUs on development talks, and all scores."""
    from hikari_agent.model import HikariForConditionalGeneration
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.dataset import Shards
    from hikari_agent.training.evaluate import DevelopmentSet

    recordings = [recording for folder in shards for recording in Shards(folder).load(0)]
    development = DevelopmentSet(recordings, Vocabulary.from_folder(model))
    said = development.run(HikariForConditionalGeneration.from_pretrained(model), LANGUAGES, PENALTIES)
    means, table = {}, {}
    for penalty in PENALTIES:
        scores = {language: development.scores(said[language, penalty], language) for language in LANGUAGES}
        means[penalty] = sum(100 - s["wer"] if "wer" in s else s["bleu"] for s in scores.values()) / len(scores)
        table[f"{penalty:g}"] = {f"{name}_{x}": round(v, 3) for x, s in scores.items() for name, v in s.items()}
    return max(means, key=lambda penalty: means[penalty]), table


def export(model: Path, target: Path, penalty: float) -> int:
    """The model in 16 bits with its tokenizer and penalty as folder `target`; returns its number of parameters."""
    import torch

    from hikari_agent.model import HikariForConditionalGeneration

    hikari = HikariForConditionalGeneration.from_pretrained(model).to(torch.float16)
    hikari.config.wait_penalty, hikari.config.wait_boost = penalty, 0.0
    hikari.save_pretrained(target)
    shutil.copyfile(model / "tokenizer.json", target / "tokenizer.json")
    return sum(parameter.numel() for parameter in hikari.parameters())


def results(model: Path, talks: Path, penalty: float, output: Path) -> tuple[str, float]:
    """A Markdown table of the shipped checkpoint on its talks, by half, and the minutes of the talks."""
    from reports.runs import read_run
    from reports.score import score_folder
    from scripts.onepass import sweep
    from testsets.manifest import load

    test_set = load(str(talks))
    lines = [
        "| voices | WER en | BLEU de | StreamLAAL | BLEU ja | StreamLAAL | BLEU ru | StreamLAAL |",
        "|---" * 8 + "|",
    ]
    for kind in ("known", "unheard"):
        chosen = test_set.select([r.id for r in test_set.recordings if r.id.startswith(kind)])
        cells = [kind]
        for folder in sweep(str(model), chosen, LANGUAGES, [penalty], output, kind):
            run = read_run(folder)
            found = {score.metric: score for score in score_folder(folder, chosen)}
            if run.spec["language"] == "en":
                low, high = found["WER"].interval or (float("nan"), float("nan"))
                cells.append(f"{found['WER'].value:.1f} [{low:.1f}, {high:.1f}]")
                continue
            cells += [f"{_bleu(run, chosen):.1f}", f"{(found['StreamLAAL'].value or 0) / 1000:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines), sum(r.duration_ms for r in test_set.recordings) / 60_000


def _bleu(run: Any, test_set: Any) -> float:
    """BLEU of whole recordings, by characters for Japanese."""
    import sacrebleu

    language = run.spec["language"]
    blank, tokenizer = ("", "char") if language == "ja" else (" ", "13a")
    references = test_set.references(language)
    whole = [blank.join(references[recording.id]) for recording in test_set.recordings]
    return sacrebleu.corpus_bleu([r.prediction for r in run.records], [whole], tokenize=tokenizer).score


def training_log(stages: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The losses of every stage, from the state of its last checkpoint."""
    names = ("step", "learning_rate", "loss", "text_loss", "wait_loss", "phoneme_loss")
    log = []
    for stage, folder in stages.items():
        last = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
        for entry in json.loads((last / "trainer_state.json").read_text())["log_history"]:
            if "loss" in entry:
                log.append({"stage": stage, **{name: round(entry[name], 6) for name in names if name in entry}})
    return log


def ship(
    model: Path,
    target: Path,
    development: Sequence[Path],
    talks: Path,
    logs: Mapping[str, Path],
    recipe: Mapping[str, Any],
    output: Path,
) -> None:
    """Write the shipped checkpoint `target`, whole or not at all; its runs on the talks go to `output`."""
    from hikari_agent.training.synth import known_voices

    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    penalty, table = choose_penalty(model, development)
    n_parameters = export(model, part, penalty)
    text, minutes = results(part, talks, penalty, output)
    write_whole(part / "training_log.json", "[\n" + ",\n".join(map(json.dumps, training_log(logs))) + "\n]\n")
    plain = {
        name: [dataclasses.asdict(x) for x in value] if isinstance(value, tuple) else value
        for name, value in recipe.items()
    }
    write_whole(part / "recipe.json", json.dumps(plain | {"development": table}, indent=1) + "\n")
    stages = "\n".join(f"- `{s['name']}` ({s['shards']}): `{s['options']}`" for s in plain["stages"])
    vocabulary = len(json.loads((part / "tokenizer.json").read_text())["model"]["vocab"])
    card = CARD.format(
        millions=n_parameters / 1e6, voices=len(known_voices(("espeak",))), penalty=penalty, minutes=minutes,
        results=text, vocabulary=vocabulary, stages=stages,
    )  # fmt: skip
    write_whole(part / "README.md", card)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)
