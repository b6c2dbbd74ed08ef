"""A person's mistakes end in one line that says what was got and what to do, with exit status 2 and no traceback."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from harness import run_simuleval, write_tokenizer
from safetensors.torch import load_file, save_file

from hikari_agent.agent import HikariAgent

FC1 = "model.encoder.layers.0.fc1.weight"


@pytest.fixture
def folder(tiny_folder, tmp_path) -> Path:
    """A copy of the golden checkpoint with its tokenizer, to be damaged."""
    return shutil.copytree(tiny_folder, tmp_path / "model")


def refusal(capsys, arguments: Namespace) -> str:
    """What `from_args`, which SimulEval calls, says before it ends with status 2: one line."""
    with pytest.raises(SystemExit) as exit_info:
        HikariAgent.from_args(arguments)
    assert exit_info.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    return line


def arguments(folder: Path | str, **options) -> Namespace:
    return Namespace(device="cpu", hikari_model=str(folder), **options)


def config(folder: Path, remove: str = "", **values) -> None:
    content = json.loads((folder / "config.json").read_text()) | values
    content.pop(remove, None)
    (folder / "config.json").write_text(json.dumps(content))


def weights(folder: Path, remove: str = "", **values) -> None:
    content = load_file(folder / "model.safetensors") | values
    content.pop(remove, None)
    save_file(content, folder / "model.safetensors")


def cut_weights(folder: Path, n_bytes: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_bytes])


def write(name: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(content)


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


DAMAGES = {
    "no decoder_time_dilation": (
        lambda f: config(f, "decoder_time_dilation"),
        ["config.json has no decoder_time_dilation", "Use the config.json that was saved with the weights"],
    ),
    "no encoder_is_causal": (lambda f: config(f, "encoder_is_causal"), ["has no encoder_is_causal", "add the key"]),
    "encoder_is_causal false": (
        lambda f: config(f, encoder_is_causal=False),
        ["encoder_is_causal false", "cannot stream"],
    ),
    "s2s true": (
        lambda f: config(f, s2s=True),
        ["s2s true", "Use a text checkpoint such as sbintuitions/hikari-medium"],
    ),
    "use_rope true": (lambda f: config(f, use_rope=True), ["use_rope true", "Use a text checkpoint"]),
    "a Whisper": (
        lambda f: config(f, "decoder_time_dilation", model_type="whisper"),
        ["no decoder_time_dilation (model_type 'whisper')", "python -m scripts.convert", "OUT"],
    ),
    "another model": (
        lambda f: config(f, "decoder_time_dilation", model_type="bert"),
        ["(model_type 'bert'): not a Hikari checkpoint", "give the folder of a Hikari model"],
    ),
    "no config": (remove("config.json"), ["has no config.json", "give the folder of a saved model"]),
    "config cut": (write("config.json", '{"d_model": 6'), ["config.json is not JSON", "fetch it again"]),
    "config a list": (write("config.json", "[]"), ["config.json holds a list, expected an object", "fetch it again"]),
    "another activation": (lambda f: config(f, activation_function="relu"), ["activation_function 'relu'", "'gelu'"]),
    "heads that do not divide the width": (
        lambda f: config(f, encoder_attention_heads=3, decoder_attention_heads=3),
        ["config.json", "64", "3"],
    ),
    "no heads": (lambda f: config(f, decoder_attention_heads=0), ["config.json", "decoder_attention_heads", "0"]),
    "dilation 0": (lambda f: config(f, decoder_time_dilation=0), ["config.json", "decoder_time_dilation", "0"]),
    "a size that is no number": (lambda f: config(f, d_model="wide"), ["config.json", "d_model", "wide"]),
    "no tokenizer": (remove("tokenizer.json"), ["has no tokenizer.json", "copy it from", "--hikari-tokenizer"]),
    "tokenizer cut": (write("tokenizer.json", '{"version": "1.0"'), ["tokenizer.json is damaged", "fetch it again"]),
    "no weights": (remove("model.safetensors"), ["model.safetensors is missing", "fetch the checkpoint again"]),
    "weights of no bytes": (lambda f: cut_weights(f, 0), ["model.safetensors is damaged or cut", "fetch it again"]),
    "weights cut in the header": (
        lambda f: cut_weights(f, 1000),
        ["model.safetensors is damaged or cut", "fetch it again"],
    ),
    "weights cut in the data": (lambda f: cut_weights(f, 100_000), ["model.safetensors is damaged or cut", "fetch it"]),
    "weights cut by a byte": (lambda f: cut_weights(f, -1), ["model.safetensors is damaged or cut", "fetch it again"]),
    "a key missing": (
        lambda f: weights(f, FC1),
        [f"1 of 90 weights are missing, the first is '{FC1}'", "fetch it again"],
    ),
    "a size mismatch": (
        lambda f: weights(f, **{FC1: torch.zeros(128, 65)}),
        [
            f"'{FC1}' is (128, 65), config.json makes it (128, 64)",
            "Use the config.json that was saved with these weights",
        ],
    ),
    "another number of layers": (
        lambda f: config(f, encoder_layers=3),
        ["15 of 105 weights are missing", "config.json"],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_in_one_line(capsys, folder, damage):
    spoil, expected = DAMAGES[damage]
    spoil(folder)
    line = refusal(capsys, arguments(folder))
    assert str(folder) in line or damage == "another activation"
    for part in expected:
        assert part in line


OPTIONS = {
    "no such folder": ({"hikari_model": "/nowhere/hikari"}, ["no folder /nowhere/hikari", "check the path"]),
    "no such name": ({"hikari_model": "hikari"}, ["no folder hikari", "no hub id (OWNER/NAME)"]),
    "unknown language": ({"hikari_target": "klingon"}, ["unknown language 'klingon'", "Known: af, "]),
    "unknown device": ({"device": "tpu9"}, ["unknown device 'tpu9'", "use cpu, cuda or cuda:0"]),
    "window too short": ({"hikari_window_rows": 4}, ["a window of 4 rows", "5 to 375"]),
    "window too long": ({"hikari_window_rows": 376}, ["a window of 376 rows", "5 to 375"]),
    "no tokenizer folder": ({"hikari_tokenizer": "/nowhere"}, ["/nowhere has no tokenizer.json", "--hikari-tokenizer"]),
}


@pytest.mark.parametrize("mistake", OPTIONS)
def test_a_wrong_option_is_refused_in_one_line(capsys, tiny_folder, mistake):
    options, expected = OPTIONS[mistake]
    line = refusal(capsys, Namespace(**{**vars(arguments(tiny_folder)), **options}))
    for part in expected:
        assert part in line


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_cuda_where_there_is_none_is_refused_in_one_line(capsys, tiny_folder, device):
    line = refusal(capsys, Namespace(device=device, hikari_model=str(tiny_folder)))
    assert f"device '{device}' is not here" in line
    assert "Use --device cpu" in line


def test_a_tokenizer_of_another_model_is_refused_in_one_line(capsys, tiny_folder, tmp_path):
    write_tokenizer(tmp_path, n_words=1500, n_ids=2000)
    line = refusal(capsys, arguments(tiny_folder, hikari_tokenizer=str(tmp_path)))
    assert f"the model {tiny_folder} has 1100 tokens" in line
    assert "give the tokenizer that belongs to it (--hikari-tokenizer)" in line


def test_an_error_of_many_lines_is_told_in_one(capsys, tiny_folder, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("one\n  two\n")

    monkeypatch.setattr("hikari_agent.tokens.Vocabulary.from_folder", fail)
    assert refusal(capsys, arguments(tiny_folder)) == "error: one two"


def test_a_hub_id_that_cannot_be_had_says_why(capsys, monkeypatch, tmp_path):
    import huggingface_hub

    def unreachable(*args, **kwargs):
        raise OSError("no network\nand a second line")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    line = refusal(capsys, arguments("nobody/nothing"))
    assert "'nobody/nothing' is neither a folder here nor to be had from the hub (no network)" in line
    assert "give the folder" in line


def lists(tmp_path: Path, sources: list[str], n_targets: int) -> dict[str, str]:
    (tmp_path / "source.txt").write_text("".join(f"{source}\n" for source in sources))
    (tmp_path / "target.txt").write_text("reference\n" * n_targets)
    return {"source": str(tmp_path / "source.txt"), "target": str(tmp_path / "target.txt")}


@pytest.fixture
def wav(tmp_path) -> Path:
    soundfile.write(tmp_path / "good.wav", np.zeros(1600, np.int16), 16_000)
    return tmp_path / "good.wav"


def test_a_recording_that_is_not_there_is_named_with_its_line(capsys, tiny_folder, tmp_path, wav):
    line = refusal(capsys, arguments(tiny_folder, **lists(tmp_path, [str(wav), "gone.wav"], 2)))
    assert f"{tmp_path / 'source.txt'}, line 2: no audio file gone.wav: check the path" in line


def test_a_text_named_wav_is_named_with_its_line(capsys, tiny_folder, tmp_path, wav):
    (tmp_path / "text.wav").write_text("this is no audio")
    line = refusal(capsys, arguments(tiny_folder, **lists(tmp_path, [str(tmp_path / "text.wav"), str(wav)], 2)))
    assert "source.txt, line 1: " in line
    assert "text.wav is not audio" in line
    assert "ffmpeg" in line


def test_an_empty_line_in_the_source_list_is_named(capsys, tiny_folder, tmp_path, wav):
    line = refusal(capsys, arguments(tiny_folder, **lists(tmp_path, [str(wav), ""], 2)))
    assert "source.txt, line 2: " in line


@pytest.mark.parametrize("n_targets", [0, 1, 3])
def test_another_number_of_references_than_recordings_is_refused_with_both(
    capsys, tiny_folder, tmp_path, wav, n_targets
):
    line = refusal(capsys, arguments(tiny_folder, **lists(tmp_path, [str(wav)] * 2, n_targets)))
    assert "source.txt has 2 recordings" in line
    assert f"target.txt has {n_targets} references" in line
    assert "one reference line a recording" in line


def test_a_source_list_that_is_not_there_is_named(capsys, tiny_folder, tmp_path):
    line = refusal(capsys, arguments(tiny_folder, source=str(tmp_path / "nothing.txt"), target=None))
    assert f"no file {tmp_path / 'nothing.txt'} (--source)" in line


def test_a_recording_given_as_the_list_is_told(capsys, tiny_folder, wav):
    line = refusal(capsys, arguments(tiny_folder, source=str(wav), target=None))
    assert "good.wav (--source) is a recording: give a text file" in line


def test_the_lists_are_checked_before_the_model_is_loaded(capsys, tmp_path):
    line = refusal(capsys, arguments(tmp_path / "no model either", **lists(tmp_path, ["gone.wav"], 1)))
    assert "gone.wav" in line


def test_debug_shows_the_traceback(tiny_folder):
    with pytest.raises(ValueError, match="unknown language 'klingon'"):
        HikariAgent.from_args(arguments(tiny_folder, hikari_target="klingon", hikari_debug=True))


AGENT = ("--agent-class", "hikari_agent.agent.HikariAgent")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wavs", "options", "expected"),
    [
        (["good.wav", "gone.wav"], ["--hikari-model", "MODEL"], "line 2: no audio file gone.wav"),
        (["text.wav"], ["--hikari-model", "MODEL"], "text.wav is not audio"),
        (["nan.wav"], ["--hikari-model", "MODEL"], "samples that are NaN or infinite: export it again"),
        (["good.wav"], ["--hikari-model", "nowhere"], "no folder nowhere"),
        (["good.wav"], ["--hikari-model", "MODEL", "--hikari-target", "klingon"], "unknown language 'klingon'"),
        (["good.wav"], ["--hikari-model", "DAMAGED"], "config.json has no decoder_time_dilation"),
    ],
)
def test_simuleval_ends_with_one_line_of_error(folder, tiny_folder, tmp_path, wav, wavs, options, expected):
    config(folder, "decoder_time_dilation")
    (tmp_path / "text.wav").write_text("this is no audio")
    soundfile.write(tmp_path / "nan.wav", np.full(16_000, np.nan, np.float32), 16_000, subtype="FLOAT")
    paths = [tmp_path / name if (tmp_path / name).exists() else Path(name) for name in wavs]
    options = [{"MODEL": str(tiny_folder), "DAMAGED": str(folder)}.get(option, option) for option in options]
    done, rows = run_simuleval(tmp_path / "run", paths, *AGENT, *options, check=False)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert expected in line
    assert "Traceback" not in done.stderr + done.stdout
    assert rows == []


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_simuleval_refuses_cuda_where_there_is_none(tiny_folder, tmp_path, wav):
    options = ["--hikari-model", str(tiny_folder), "--device", "cuda"]
    done, _ = run_simuleval(tmp_path / "run", [wav], *AGENT, *options, check=False)
    assert done.returncode == 2
    assert "error: device 'cuda' is not here" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_simuleval_shows_the_traceback_with_debug(tiny_folder, tmp_path, wav):
    options = ["--hikari-model", str(tiny_folder), "--hikari-target", "klingon", "--hikari-debug"]
    done, _ = run_simuleval(tmp_path / "run", [wav], *AGENT, *options, check=False)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
    assert "ValueError: unknown language 'klingon'" in done.stderr
