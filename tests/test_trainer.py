"""The trainer: schedules, the loss, exact resumption, and processes that are as one."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from harness import ROOT, write_tokenizer
from shards import write_shards

from hikari_agent.config import HikariConfig
from hikari_agent.tokens import WAIT
from hikari_agent.training.learner import HikariLearner
from hikari_agent.training.presets import PRESETS
from hikari_agent.training.sections import IGNORED
from hikari_agent.training.start import from_checkpoint, from_scratch, save_learner

pytest.importorskip("accelerate", reason="accelerate is not installed: pip install -e '.[train]'")
from hikari_agent.training.trainer import HikariTrainer, arguments, last_whole_checkpoint

SIZES = dict(
    vocab_size=1100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=400,
    max_target_positions=100, encoder_is_causal=True, decoder_time_dilation=4, frontend="causal", pad_token_id=957,
    bos_token_id=957, eos_token_id=957, decoder_start_token_id=958,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shards, a tokenizer and a config: all that a run from random weights needs."""
    pytest.importorskip("lhotse", reason="lhotse is not installed: pip install -e '.[train]'")
    path = tmp_path_factory.mktemp("training")
    write_shards(path / "shards")
    (path / "tokenizer").mkdir()
    write_tokenizer(path / "tokenizer")
    (path / "config.json").write_text(json.dumps(SIZES))
    return path


def train(folder, name, *more, steps=100, processes=1, kill_at=None):
    """Run `scripts.train`; returns the losses that were logged, by step."""
    command = [sys.executable, "-m"]
    if processes > 1:
        command += ["torch.distributed.run", "--nproc-per-node", str(processes), "--master-port", "29617", "-m"]
    command += ["scripts.train", "--shards", str(folder / "shards"), "--output", str(folder / name)]
    command += ["--config", str(folder / "config.json"), "--vocabulary", str(folder / "tokenizer")]
    command += ["--section-s", "4", "--tasks", "en,de", "--logging-steps", "1", "--num-threads", "1", "--quiet"]
    command += ["--steps", str(steps), "--peak", "1e-3", "--warmup-steps", "5", "--decay", "constant", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if kill_at is not None:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and not (folder / name / f"checkpoint-{kill_at}" / "trainer_state.json").is_file():
            pass
        process.kill()
        process.wait()
        return {}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    last = last_whole_checkpoint(folder / name, processes)
    history = json.loads((last / "trainer_state.json").read_text())["log_history"]
    return {entry["step"]: entry["loss"] for entry in history if "loss" in entry}


@pytest.mark.parametrize(
    ("name", "step", "rate"),
    [("pretrain", 0, 0.0), ("pretrain", 50, 2e-5), ("pretrain", 100, 4e-5), ("pretrain", 17_500, 4e-5 * 17_500 / 34_900),
     ("pretrain", 35_000, 0.0), ("sft", 0, 0.0), ("sft", 100, 4e-5), ("sft", 2_000, 4e-5)],
)  # fmt: skip
def test_the_presets_are_the_papers_schedules(name, step, rate, tmp_path):
    from torch.optim import SGD

    preset = PRESETS[name]
    assert preset.rate(step) == pytest.approx(rate)
    learner = HikariLearner(HikariConfig(**SIZES))
    trainer = HikariTrainer(
        learner, arguments(tmp_path, preset, seed=0, report_to=[], use_cpu=True), preset, dataset=None
    )
    scheduler = trainer.create_scheduler(preset.steps, SGD(learner.parameters(), lr=preset.peak))
    assert preset.peak * scheduler.lr_lambdas[0](step) == pytest.approx(rate)
    assert (preset.accumulation, preset.clip, preset.recovery_share) == (2, 1.0, 0.3 if name == "sft" else 0.0)


def test_the_loss_is_the_mean_over_the_rows_that_count():
    learner = from_scratch(HikariConfig(**SIZES), seed=0).eval()
    mel, ids = torch.randn(2, 80, 160), torch.randint(0, 1100, (4, 20))
    labels = torch.where(torch.rand(4, 20) < 0.6, WAIT, ids)
    labels[:, :5] = IGNORED
    out = learner(mel, ids, labels)
    rows = []
    for k in range(4):  # the obvious way: each sample alone
        logits = super(HikariLearner, learner).forward(mel[k // 2 : k // 2 + 1], ids[k : k + 1]).logits[0]
        rows += [F.cross_entropy(logits[i], labels[k, i]) for i in range(20) if labels[k, i] != IGNORED]
    assert out.loss.item() == pytest.approx(torch.stack(rows).mean().item(), rel=1e-4)
    half = learner(mel, ids, labels, num_items_in_batch=2 * len(rows))
    assert half.loss.item() == pytest.approx(out.loss.item() / 2, rel=1e-5)


def test_weights_cast_to_half_precision_give_the_same_loss_and_gradients_about():
    config = HikariConfig(**SIZES)
    mel, ids = torch.randn(2, 80, 160), torch.randint(0, 1100, (4, 20))
    results = []
    for half in (False, True):
        learner = from_scratch(config, seed=0, half_weights=half)
        loss = learner(mel, ids, ids).loss
        loss.backward()
        grads = torch.cat([p.grad.flatten() for p in learner.parameters() if p.grad is not None])
        assert grads.dtype == torch.float32
        results.append((loss.item(), grads))
    assert results[1][0] == pytest.approx(results[0][0], rel=0.01)
    assert F.cosine_similarity(results[0][1], results[1][1], dim=0) > 0.99


def test_gradient_checkpointing_changes_no_gradient():
    mel, ids = torch.randn(2, 80, 160), torch.randint(0, 1100, (4, 20))
    gradients = []
    for recompute in (False, True):
        learner = from_scratch(HikariConfig(**SIZES), seed=0)
        if recompute:
            learner.recompute_layers()
        learner(mel, ids, ids).loss.backward()
        gradients.append([p.grad for p in learner.parameters() if p.grad is not None])
    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(*gradients, strict=True))
    with pytest.raises(ValueError, match="bf16-weights"):
        from_scratch(HikariConfig(**SIZES), seed=0, half_weights=True).recompute_layers()


def test_the_heads_of_training_stay_out_of_the_model_and_come_back(tmp_path):
    from hikari_agent.model import HikariForConditionalGeneration

    write_tokenizer(tmp_path)
    learner = from_scratch(HikariConfig(**SIZES), seed=0, n_phonemes=9)
    save_learner(learner, tmp_path, tmp_path / "model")
    model = HikariForConditionalGeneration.from_pretrained(tmp_path / "model")
    assert not any("phoneme" in name for name, _ in model.named_parameters())
    again = from_checkpoint(tmp_path / "model", n_phonemes=9)
    assert all(torch.equal(a, b) for a, b in zip(learner.parameters(), again.parameters(), strict=True))


def test_a_folder_that_holds_a_run_with_other_flags_is_refused(capsys, folder):
    from scripts.train import main

    common = [
        "--shards",
        str(folder / "shards"),
        "--config",
        str(folder / "config.json"),
        "--section-s",
        "4",
        "--quiet",
    ]
    common += ["--vocabulary", str(folder / "tokenizer"), "--output", str(folder / "claimed"), "--tasks", "en,de"]
    common += ["--batch-s", "8", "--steps", "1", "--warmup-steps", "0", "--num-threads", "1"]
    assert main(common) == 0
    capsys.readouterr()
    assert main([*common, "--seed", "5"]) == 2
    assert "holds a run with other flags (seed: there 0, now 5)" in capsys.readouterr().err


def test_a_run_needs_one_start(capsys, folder):
    from scripts.train import main

    assert main(["--shards", str(folder / "shards"), "--output", str(folder / "none")]) == 2
    assert "give one of --init" in capsys.readouterr().err
    assert not (folder / "none").exists()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_hundred_losses_and_a_killed_run_resumes_to_them(folder):
    batch = ["--batch-s", "8", "--accumulation", "1", "--save-steps", "30"]
    first = train(folder, "first", *batch)
    assert len(first) == 100
    assert first[100] < first[1]
    assert train(folder, "second", *batch) == first
    train(folder, "killed", *batch, kill_at=60)
    assert not (folder / "killed" / "model").exists()
    assert train(folder, "killed", *batch) == first
    (folder / "killed" / "model").rename(folder / "killed" / "earlier")
    (folder / "killed" / "checkpoint-900").mkdir()  # a kill cut it short in its last file
    for name in ("rng_state.pth", "trainer_state.json"):
        (folder / "killed" / "checkpoint-900" / name).write_text('{"epoch": 1.0,')
    assert train(folder, "killed", *batch) == first, "a run that is done was trained on"
    weights = [(folder / name / "model" / "model.safetensors").read_bytes() for name in ("first", "killed")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(folder):
    one = train(folder, "one", "--batch-s", "8", "--accumulation", "2", "--streams", "2", steps=20)
    streamed = ["--dev", str(folder / "shards"), "--evaluate-steps", "10"]  # on the first process alone
    two = train(
        folder, "two", "--batch-s", "8", "--accumulation", "1", "--streams", "2", *streamed, steps=20, processes=2
    )
    assert one.keys() == two.keys()
    assert max(abs(one[step] - two[step]) for step in one) < 1e-4


def test_a_preset_can_be_changed_in_parts():
    assert dataclasses.replace(PRESETS["sft"], steps=10).rate(5) == pytest.approx(4e-5 * 5 / 100)
