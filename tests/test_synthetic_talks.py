"""Talks by synthetic voices as corpora and as a test set, and the recipe of the shipped checkpoint."""

from __future__ import annotations

import ctypes.util
import filecmp

import pytest
from corpora import rows

from scripts import ablate, embedded, prepare, sweep, train
from scripts.talks import write_test_set
from testsets.manifest import load

needs_espeak = pytest.mark.skipif(
    ctypes.util.find_library("espeak-ng") is None,
    reason="no espeak-ng here: apt-get install libespeak-ng1 espeak-ng-data",
)
OPTIONS = ["--recordings", "2", "--sentences", "2", "--seed", "3", "--quiet"]


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("talks") / "talks-known"
    assert prepare.main(["synth", str(folder), *OPTIONS]) == 0
    return folder


@needs_espeak
def test_a_talk_has_word_times_translations_and_gold_links(talks):
    cuts = rows(talks)
    assert [len(cut["supervisions"]) for cut in cuts] == [2, 2]
    for cut in cuts:
        first, second = cut["supervisions"]
        assert second["start"] > first["start"] + first["duration"]
        for sentence in cut["supervisions"]:
            words = sentence["alignment"]["word"]
            assert [word for word, *_ in words] == sentence["text"].split()
            starts = [start for _, start, _, _ in words]
            assert starts == sorted(starts)
            assert sentence["custom"]["translations"].keys() == {"de", "ja", "ru"}
            assert all(link[0] < len(words) for links in sentence["custom"]["links"].values() for link in links)
            assert max(time for _, time in sentence["custom"]["phonemes"]) <= cut["duration"]


@needs_espeak
def test_a_talk_is_made_again_to_the_sample_and_a_finished_corpus_is_left_alone(talks, tmp_path, capsys):
    assert prepare.main(["synth", str(tmp_path / "again"), *OPTIONS, "--jobs", "2"]) == 0
    for path in (talks / "audio").glob("*.wav"):
        assert filecmp.cmp(path, tmp_path / "again" / "audio" / path.name, shallow=False)
    before = {path: path.stat().st_mtime_ns for path in talks.rglob("*")}
    assert prepare.main(["synth", str(talks), *OPTIONS]) == 0
    assert {path: path.stat().st_mtime_ns for path in talks.rglob("*")} == before
    assert prepare.main(["synth", str(talks), *OPTIONS, "--sentences", "3"]) == 2
    assert "n_sentences was 2, now it is 3" in capsys.readouterr().err


@needs_espeak
def test_a_killed_corpus_goes_on_with_its_own_settings_only(tmp_path, capsys, monkeypatch):
    from hikari_agent.training.stages import synth

    folder, speak = tmp_path / "killed", synth.recording

    def dies_at_the_second(plan, number):
        if number:
            raise ValueError("the power went out")
        return speak(plan, number)

    monkeypatch.setattr(synth, "recording", dies_at_the_second)
    assert prepare.main(["synth", str(folder), *OPTIONS]) == 2
    monkeypatch.setattr(synth, "recording", speak)
    written = {path: path.stat().st_mtime_ns for path in (folder / "audio").glob("*.wav")}
    assert len(written) == 1
    assert not (folder / "cuts.jsonl.gz").exists()
    assert prepare.main(["synth", str(folder), *OPTIONS, "--pause-s", "1", "2"]) == 2
    assert "begun otherwise" in capsys.readouterr().err
    assert prepare.main(["synth", str(folder), *OPTIONS]) == 0
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert len(rows(folder)) == 2


@needs_espeak
def test_excluded_sentences_are_not_said(talks, tmp_path):
    said = {sentence["text"] for cut in rows(talks) for sentence in cut["supervisions"]}
    assert prepare.main(["synth", str(tmp_path / "other"), *OPTIONS, "--exclude", str(talks)]) == 0
    assert not said & {sentence["text"] for cut in rows(tmp_path / "other") for sentence in cut["supervisions"]}


@needs_espeak
def test_real_sentences_are_said_as_they_are(tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("It was the best of times.\n\nHe was not an ill disposed young man.\n")
    assert prepare.main(["synth", str(tmp_path / "out"), *OPTIONS, "--texts", str(tmp_path / "texts.txt")]) == 0
    texts = [sentence["text"] for cut in rows(tmp_path / "out") for sentence in cut["supervisions"]]
    assert texts == ["It was the best of times.", "He was not an ill disposed young man."] * 2
    (tmp_path / "texts.txt").write_text("\n")
    assert prepare.main(["synth", str(tmp_path / "none"), *OPTIONS, "--texts", str(tmp_path / "texts.txt")]) == 2
    assert "no sentence in it: give one a line" in capsys.readouterr().err


@needs_espeak
def test_talks_become_a_test_set(talks, tmp_path):
    write_test_set([talks], tmp_path / "set")
    test_set = load(str(tmp_path / "set"))
    test_set.verify()
    assert [recording.id for recording in test_set.recordings] == ["known-1", "known-2"]
    assert test_set.languages() == ["en", "de", "ja", "ru"]
    assert test_set.recordings[0].segments[0].source == rows(talks)[0]["supervisions"][0]["text"]


def test_every_command_of_the_recipe_is_one_that_its_program_takes(tmp_path, monkeypatch):
    """The programs' own parsers read them; what they would do is not done."""
    parsed: list = []

    def note(body, arguments):
        parsed.append(arguments)
        return 0

    def run(*command: str) -> None:
        if command[0] == "torch.distributed.run":
            command = command[command.index("-m") + 1 :]
        {"scripts.prepare": prepare.main, "scripts.train": train.main, "scripts.sweep": sweep.parse}[command[0]](
            [*command[1:]]
        )

    for module in (prepare, train):
        monkeypatch.setattr(module, "report_errors", note)
    for module in (embedded, ablate):
        monkeypatch.setattr(module, "run", run)
    corpora = (*embedded.TALKS, *embedded.DEVELOPMENT, embedded.SOUNDS, embedded.SENTENCES, embedded.MORE)
    for corpus in corpora:
        embedded.make_shards(corpus, tmp_path, 2)
    stages = [*embedded.STAGES, *(stage for arms in ablate.ARMS.values() for stage in arms.values())]
    for stage in stages:
        embedded.train(stage, tmp_path, 2)
    assert len(parsed) == 3 * len(corpora) + len(stages)
    assert {arguments.peak for arguments in parsed if hasattr(arguments, "peak")} == {2e-3, 1.4e-3, 4e-4}
    ablate._adaptive(tmp_path)
