"""Sections and batches: what a sample says, and that a batch is a function of its number alone."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random

import numpy as np
import pytest
import torch
from harness import write_tokenizer
from shards import write_shards

from hikari_agent.config import HikariConfig
from hikari_agent.tokens import WAIT, Vocabulary
from hikari_agent.training.augment import Augmentation, change_speed, coloured_noise
from hikari_agent.training.dataset import INDEX, Recipe, SectionDataset
from hikari_agent.training.interleave import slot_time_s
from hikari_agent.training.sections import IGNORED, Target, Timeline, draw_start, phoneme_labels, sample

CONFIG = HikariConfig(
    vocab_size=1100, d_model=16, max_source_positions=400, max_target_positions=100, encoder_is_causal=True,
    decoder_time_dilation=4, frontend="causal",
)  # fmt: skip
RECIPE = Recipe(section_s=(4.0,), batch_s=12.0, tasks=("en", "de"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("lhotse", reason="lhotse is not installed: pip install -e '.[train]'")
    return write_shards(tmp_path_factory.mktemp("shards") / "wav")


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(path)
    return Vocabulary.from_folder(path)


def timeline(n_words=20, step=0.5):
    ends = [step * (i + 1) for i in range(n_words)]
    words = [[100 + i] for i in range(n_words)]
    return Timeline(
        duration_s=n_words * step, language="en", word_starts_s=[e - step for e in ends], word_ends_s=ends,
        sentence_starts_s=[0.0, 5.0], targets={"en": Target(words, list(ends), list(ends))},
        phoneme_starts_s=[0.0, 0.1, 0.3], phonemes=[1, 2, 3],
    )  # fmt: skip


def batches(folder, vocabulary, n, recipe=RECIPE, **kwargs):
    return list(itertools.islice(SectionDataset(folder, recipe, vocabulary, CONFIG, **kwargs), n))


def equal(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("start", [0.0, 0.49, 0.51, 3.7, 8.0])
def test_a_section_says_the_words_that_it_hears_whole_and_none_before_its_end(start):
    made = sample(timeline(), "en", start, 50, [1, 2, 3, 4], WAIT, random.Random(0))
    said = [(slot, label) for slot, label in enumerate(made.labels[3:]) if label not in (WAIT, IGNORED)]
    first_whole = int(np.ceil((start - 0.02) / 0.5))
    assert [label for _, label in said] == [100 + i for i in range(first_whole, first_whole + len(said))]
    for slot, label in said:
        assert slot_time_s(slot) >= (label - 99) * 0.5 - start
    last = first_whole + len(said)
    assert last == 20 or (last + 1) * 0.5 + 0.2 > start + slot_time_s(46), "a word that would fit was left out"


def test_a_word_that_is_half_heard_is_not_asked_for_though_its_end_was_rounded_up():
    line = timeline()
    late = [end + 0.0001 for end in line.word_ends_s]
    line = dataclasses.replace(
        line, word_ends_s=late, targets={"en": Target(line.targets["en"].words, list(late), late)}
    )
    made = sample(line, "en", 0.25, 50, [1, 2, 3, 4], WAIT, random.Random(0))
    assert next(label for label in made.labels[3:] if label != WAIT) == 101


def test_each_row_is_given_what_the_row_before_it_was_to_say():
    made = sample(timeline(), "en", 0.0, 50, [1, 2, 3, 4], WAIT, random.Random(0))
    assert made.inputs[:4] == [1, 2, 3, 4]
    assert made.labels[:3] == [IGNORED] * 3
    assert made.inputs[4:] == made.labels[3:-1]
    assert len(made.inputs) == len(made.labels) == 50


def test_after_the_recording_every_row_waits():
    made = sample(timeline(4), "en", 0.0, 100, [1, 2, 3, 4], WAIT, random.Random(0))
    assert set(made.labels[40:]) == {WAIT}


def test_a_sample_of_recovery_learns_neither_the_past_nor_to_be_silent():
    line = timeline()
    n_recovering = 0
    for seed in range(20):
        rng = random.Random(seed)
        made = sample(line, "en", 0.0, 100, [1, 2, 3, 4], WAIT, rng, recovery_share=1.0)
        labels = made.labels[3:]
        learnt = [i for i, label in enumerate(labels) if label != IGNORED]
        if len(learnt) == len(labels):
            continue  # no text was left to delay
        n_recovering += 1
        assert learnt == list(range(learnt[0], len(labels)))
        assert labels[learnt[0] :] == [*made.inputs[4 + learnt[0] :], labels[-1]]
    assert n_recovering > 10


def test_playing_faster_brings_words_forward():
    slow = sample(timeline(), "en", 0.0, 50, [1, 2, 3, 4], WAIT, random.Random(0), jitter_s=0.0)
    fast = sample(timeline(), "en", 0.0, 50, [1, 2, 3, 4], WAIT, random.Random(0), jitter_s=0.0, speed=1.25)
    assert fast.labels.index(103) < slow.labels.index(103)


def test_a_section_with_too_few_words_is_drawn_again():
    line = Timeline(
        100.0, "en", [90 + 0.5 * i for i in range(10)], [90.4 + 0.5 * i for i in range(10)], [90.0], {}, [], []
    )
    starts = [draw_start(line, 20.0, random.Random(seed), 0.0, min_words=4) for seed in range(20)]
    assert sum(line.n_words(start, start + 20.0) >= 4 for start in starts) >= 18
    assert len(set(starts)) > 10


def test_phoneme_labels_name_what_sounded_a_moment_ago():
    labels = phoneme_labels(timeline(), 0.0, 20, delay_s=0.04)
    # Frame j ends at 20 * (j + 1) ms.
    assert labels == [0] + [1 if (j + 1) * 0.02 - 0.04 < 0.1 - 1e-9 else 2 if (j + 1) * 0.02 - 0.04 < 0.3 - 1e-9 else 3
                            for j in range(1, 20)]  # fmt: skip


def test_the_same_seed_gives_the_same_batches_and_another_others(folder, vocabulary):
    recipe = Recipe(
        section_s=(4.0,), batch_s=12.0, tasks=("en", "de"), augmentation=Augmentation((-6, 3), 1.0, speed_share=0.5)
    )
    first = batches(folder, vocabulary, 6, recipe)
    assert all(map(equal, first, batches(folder, vocabulary, 6, recipe)))
    assert not any(map(equal, first, batches(folder, vocabulary, 6, recipe, seed=1)))


def test_a_run_that_resumes_goes_on_with_the_batch_it_had_not_seen(folder, vocabulary):
    whole = batches(folder, vocabulary, 40)
    assert all(map(equal, whole[33:], batches(folder, vocabulary, 7, first=33)))


@pytest.mark.parametrize("streams", [2, 4])
def test_two_processes_see_what_one_sees(folder, vocabulary, streams):
    one = batches(folder, vocabulary, 20, n_streams=streams)
    two = [batches(folder, vocabulary, 10, n_streams=streams, rank=rank, world=2) for rank in range(2)]
    assert all(map(equal, one, [b for pair in zip(*two, strict=True) for b in pair]))


def test_an_epoch_goes_through_every_shard(folder, vocabulary):
    dataset = SectionDataset(folder, RECIPE, vocabulary, CONFIG)
    places = [dataset._place(0, i) for i in range(60)]
    assert {shard for epoch, shard, _ in places if epoch == 0} == {0, 1, 2}
    orders = {tuple(dict.fromkeys(s for e, s, _ in places if e == epoch)) for epoch in range(5)}
    assert len(orders) > 1


def test_workers_change_nothing(folder, vocabulary):
    from torch.utils.data import DataLoader

    dataset = SectionDataset(folder, RECIPE, vocabulary, CONFIG)
    loaded = list(itertools.islice(DataLoader(dataset, batch_size=None, num_workers=2), 6))
    assert all(map(equal, batches(folder, vocabulary, 6), loaded))


def test_all_tasks_of_a_section_follow_each_other(folder, vocabulary):
    recipe = Recipe(section_s=(4.0,), batch_s=12.0, tasks=("en", "de"), all_tasks=True, phonemes=True)
    (batch,) = batches(folder, vocabulary, 1, recipe)
    assert batch["input_features"].shape == (3, 80, 400)
    assert batch["decoder_input_ids"].shape == batch["labels"].shape == (6, 50)
    assert batch["phonemes"].shape == (3, 200)
    assert batch["decoder_input_ids"][:, :4].tolist() == [
        vocabulary.prompt("transcribe", "en"), vocabulary.prompt("translate", "de")
    ] * 3  # fmt: skip


def test_sections_longer_than_the_model_are_refused(folder, vocabulary):
    with pytest.raises(ValueError, match="positions for 8 s"):
        SectionDataset(folder, Recipe(), vocabulary, CONFIG)


def test_a_language_without_targets_is_refused(folder, vocabulary):
    with pytest.raises(ValueError, match="targets in en, de, the recipe asks for ja"):
        batches(folder, vocabulary, 1, Recipe(section_s=(4.0,), batch_s=12.0, tasks=("ja",)))


def test_a_folder_that_holds_no_shards_is_refused(folder, tmp_path, vocabulary):
    with pytest.raises(FileNotFoundError, match=r"no folder of shards.*scripts\.prepare shards"):
        SectionDataset(tmp_path, RECIPE, vocabulary, CONFIG)
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / INDEX).unlink()
    with pytest.raises(FileNotFoundError, match=INDEX):
        SectionDataset(tmp_path, RECIPE, vocabulary, CONFIG)
    (tmp_path / INDEX).write_text(json.dumps({"durations_s": [1.0]}))
    with pytest.raises(ValueError, match="tells of 1 shards, the folder has 3"):
        SectionDataset(tmp_path, RECIPE, vocabulary, CONFIG)


def test_noise_lies_as_far_below_the_sound_as_asked():
    sound = np.sin(np.arange(32_000) * 0.1).astype(np.float32) * 0.3
    noisy = Augmentation(noise_share=1.0, snr_db=(20.0, 20.0))(sound, np.random.default_rng(0))
    snr = 10 * np.log10(np.mean(sound**2) / np.mean((noisy - sound) ** 2))
    assert snr == pytest.approx(20, abs=1)
    assert coloured_noise(1.0).std() == pytest.approx(1, abs=0.01)


def test_reverberation_keeps_loudness_and_onset():
    pytest.importorskip("pyroomacoustics", reason="pyroomacoustics is not installed: pip install -e '.[train]'")
    click = np.zeros(16_000, np.float32)
    click[4000:4100] = 0.5
    wet = Augmentation(reverb_share=1.0)(click, np.random.default_rng(3))
    assert np.mean(wet**2) == pytest.approx(np.mean(click**2), rel=0.3)
    assert np.abs(wet[:3950]).max() < 0.02 < np.abs(wet[4200:6000]).max()


def test_playing_faster_shortens():
    assert len(change_speed(np.zeros(16_000, np.float32), 1.25)) == pytest.approx(12_800, abs=2)


def test_the_loaders_benchmark_says_how_fast_it_is_and_where_the_time_goes(folder, tmp_path, capsys):
    from scripts import loading

    output = tmp_path / "loading.json"
    arguments = ["--shards", str(folder), "--seconds", "0.5", "--output", str(output)]
    assert loading.main(arguments) == 0
    rows = json.loads(output.read_text())["rows"]
    assert [row["recipe"] for row in rows] == ["as recorded", "gain and noise", "gain, noise, rooms and speed"]
    for row in rows:
        assert row["hours_per_hour"] > 50
        assert sum(row["shares"].values()) == pytest.approx(1.0, abs=0.03)
    assert str(output) in capsys.readouterr().out
