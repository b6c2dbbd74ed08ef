"""Shared fixtures: the golden checkpoint with a tokenizer of its own, and its audio."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from harness import GOLDENS, write_tokenizer

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def golden_audio() -> np.ndarray:
    """45 s at 16 kHz, float32 (720640,)."""
    return soundfile.read(GOLDENS / "audio.wav", dtype="float32")[0]


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    """The golden checkpoint with a Whisper-shaped tokenizer: bytes, words that begin with a blank or do not, specials."""
    folder = tmp_path_factory.mktemp("checkpoint")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copyfile(GOLDENS / "tiny_checkpoint" / name, folder / name)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model():
    from hikari_agent.model import HikariForConditionalGeneration

    return HikariForConditionalGeneration.from_pretrained(GOLDENS / "tiny_checkpoint")
