"""`scripts.prepare` from recordings to shards on real speech: what it makes, that a rerun is free, that a kill costs nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpora import librivox_corpus, rewrite, rows, small_vocabulary
from harness import ROOT
from translation_server import TranslationServer, fake_translation

from scripts import fetch, prepare
from testsets.manifest import cache_folder, load


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    return librivox_corpus(tmp_path_factory.mktemp("librivox"))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory) -> Path:
    return small_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def whisper() -> str:
    folder = fetch.model_folder("whisper-base")
    if not (folder / fetch.MARKER).is_file():
        pytest.skip("whisper-base is not in the cache: python -m scripts.fetch whisper-base")
    pytest.importorskip("faster_whisper", reason="faster-whisper is not installed: pip install -e '.[train]'")
    return str(folder)


@pytest.fixture(scope="module")
def recognised(reference, whisper, tmp_path_factory) -> Path:
    """The clips as Whisper base hears them."""
    folder = tmp_path_factory.mktemp("recognised") / "out"
    assert prepare.main(["transcribe", str(reference), str(folder), "--model", whisper]) == 0
    return folder


def run(stage: str, source: Path, target: Path, *options: object) -> Path:
    assert prepare.main([stage, str(source), str(target), *map(str, options)]) == 0
    return target


def translate(server: TranslationServer, source: Path, target: Path, cache: Path, languages: str = "de,ja") -> int:
    options = ["--base-url", server.url, "--model", "fake", "--to", languages, "--cache", str(cache)]
    return prepare.main(["translate", str(source), str(target), "--concurrency", "3", *options])


def chain(server: TranslationServer, source: Path, folder: Path, vocabulary: Path) -> Path:
    assert translate(server, source, folder / "translated", folder / "cache.sqlite") == 0
    run("align", folder / "translated", folder / "aligned", "--languages", "de,ja")
    run("interleave", folder / "aligned", folder / "interleaved", "--tokenizer", vocabulary)
    return run("shards", folder / "interleaved", folder / "shards", "--format", "wav", "--shard-size", 2)


def state(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.suffix not in (".sqlite", "")}


@pytest.mark.parametrize("start", ["reference", pytest.param("recognised", marks=pytest.mark.slow)])
def test_real_speech_becomes_shards_that_training_reads_and_a_rerun_does_nothing(start, vocabulary, tmp_path, request):
    from hikari_agent.tokens import Vocabulary
    from hikari_agent.training.dataset import Shards

    source = request.getfixturevalue(start)
    sentences = [sentence for cut in rows(source) for sentence in cut["supervisions"]]
    with TranslationServer(faulty=True) as server:
        folder = chain(server, source, tmp_path, vocabulary)
        assert len(server.asked) == 2 * len(sentences)
        assert server.n_requests > len(server.asked), "the server's faults were met"
        before, n_requests = state(tmp_path), server.n_requests
        chain(server, source, tmp_path, vocabulary)
        assert server.n_requests == n_requests
    assert state(tmp_path) == before

    shards, token_bytes = Shards(folder), Vocabulary.from_folder(vocabulary).token_bytes
    assert len(shards) == 3
    said: dict[str, set[str]] = {"en": set(), "de": set(), "ja": set()}
    for number in range(len(shards)):
        for timeline, samples in shards.load(number):
            assert len(samples) == round(16_000 * timeline.duration_s)
            for language, target in timeline.targets.items():
                said[language].add(b"".join(token_bytes(i) for word in target.words for i in word).decode().strip())
                assert all(0 < end <= timeline.duration_s for end in target.order_s)
    texts = [sentence["text"] for sentence in sentences]
    assert said == {
        "en": set(texts),
        "de": {fake_translation(text, "German") for text in texts},
        "ja": {fake_translation(text, "Japanese") for text in texts},
    }
    if start == "recognised":
        losses = twenty_steps(folder, vocabulary, tmp_path)
        assert statistics.mean(losses[-5:]) < statistics.mean(losses[:5])


def twenty_steps(shards: Path, vocabulary: Path, folder: Path, tasks: str = "en,de,ja") -> list[float]:
    """The losses of a small model that begins with random weights."""
    from scripts import train

    sizes = {f"{side}_{what}": n for side in ("encoder", "decoder")
             for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 64))}  # fmt: skip
    sizes |= dict(vocab_size=500, d_model=32, max_source_positions=400, max_target_positions=100)
    sizes |= dict(encoder_is_causal=True, decoder_time_dilation=4, frontend="causal")
    (folder / "config.json").write_text(json.dumps(sizes))
    arguments = ["--shards", str(shards), "--output", str(folder / "run"), "--config", str(folder / "config.json")]
    arguments += ["--vocabulary", str(vocabulary), "--tasks", tasks, "--section-s", "4", "--batch-s", "16"]
    arguments += ["--steps", "20", "--peak", "3e-3", "--warmup-steps", "2", "--logging-steps", "1", "--quiet"]
    assert train.main(arguments) == 0
    history = json.loads((folder / "run" / "checkpoint-20" / "trainer_state.json").read_text())["log_history"]
    losses = [entry["loss"] for entry in history if "loss" in entry]
    assert len(losses) == 20
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("keep_text", [False, True])
def test_recognised_words_end_within_150_ms_of_the_reference(keep_text, reference, recognised, whisper, tmp_path):
    corpus = recognised
    if keep_text:
        corpus = run("transcribe", reference, tmp_path / "kept", "--model", whisper, "--keep-text")
    errors = []
    for truth, heard in zip(rows(reference), rows(corpus), strict=True):
        words = [_ends(cut) for cut in (truth, heard)]
        times = dict(words[1])
        errors += [abs(times[word] - end) for word, end in words[0] if word in times]
    assert len(errors) >= 60
    assert statistics.median(errors) <= 0.150  # 0.05 s measured


def _ends(cut: dict) -> list[tuple[tuple[str, int], float]]:
    """(word, how often it was there before) -> its end in s; hyphens cut words, for the reference has none."""
    counts: dict[str, int] = {}
    ends = []
    for sentence in cut["supervisions"]:
        for symbol, start, duration, _ in sentence["alignment"]["word"]:
            for part in re.findall(r"[a-z]+", symbol.lower().replace("mr.", "mister")):
                counts[part] = counts.get(part, 0) + 1
                ends.append(((part, counts[part]), start + duration))
    return ends


@pytest.mark.slow
def test_a_transcript_of_something_else_is_dropped_with_its_reason(reference, whisper, tmp_path, capsys):
    (tmp_path / "source").mkdir()
    cuts = rows(reference)[:2]
    for cut in cuts:
        cut["recording"]["sources"][0]["source"] = str(reference.parent / "clips" / f"{cut['id']}.flac")
    text = "completely other things are told here today"
    cuts[1]["supervisions"][0]["text"] = text
    del cuts[1]["supervisions"][0]["alignment"]
    rewrite(tmp_path / "source", cuts)
    run("transcribe", tmp_path / "source", tmp_path / "out", "--model", whisper, "--keep-text")
    assert [cut["id"] for cut in rows(tmp_path / "out")] == ["sense-0870"]
    assert "dropped 1: the transcript is not what is said (sense-0880: " in capsys.readouterr().out
    arguments = ["transcribe", str(reference), str(tmp_path / "no"), "--model", whisper, "--language", "xx"]
    assert prepare.main(arguments) == 2
    assert "unknown language 'xx'. The model knows: af, am" in capsys.readouterr().err


@pytest.fixture(scope="module")
def timed_clips(whisper, tmp_path_factory) -> Path:
    """The clips of a game's tutorial with their human translations, timed by Whisper base."""
    if not (cache_folder() / "testsets" / "warzone-clips" / "manifest.json").is_file():
        pytest.skip("the test set warzone-clips is not in the cache: python -m scripts.fetch warzone")
    folder = tmp_path_factory.mktemp("warzone")
    corpus = run("import", load("warzone-clips").root, folder / "imported", "--format", "testset")
    return run("transcribe", corpus, folder / "timed", "--model", whisper, "--keep-text")


@pytest.mark.slow
def test_clips_with_human_translations_keep_them_down_to_the_training(timed_clips, vocabulary, tmp_path):
    clips = {recording.id: recording.segments[0] for recording in load("warzone-clips").recordings}

    def go() -> Path:
        corpus = run("align", timed_clips, tmp_path / "aligned", "--languages", "de")
        corpus = run("interleave", corpus, tmp_path / "interleaved", "--tokenizer", vocabulary)
        return run("shards", corpus, tmp_path / "shards", "--format", "wav", "--shard-size", 10)

    folder = go()
    kept = rows(tmp_path / "interleaved")
    assert len(kept) >= 25  # an actor who says something else drops a clip
    for cut in kept:
        sentence, segment = cut["supervisions"][0], clips[cut["recording"]["id"]]
        assert sentence["text"] == segment.source
        assert sentence["custom"]["translations"]["de"] == segment.targets["de"]
        assert len(sentence["custom"]["links"]["de"]) > 1
        assert len(sentence["custom"]["targets"]["de"]["ends"]) == len(segment.targets["de"].split())
    before = state(tmp_path)
    go()
    assert state(tmp_path) == before
    losses = twenty_steps(folder, vocabulary, tmp_path, "en,de")
    assert statistics.mean(losses[-5:]) < statistics.mean(losses[:5])


@pytest.mark.slow
def test_clips_translated_by_a_server_that_fails_at_times_train_too(timed_clips, vocabulary, tmp_path):
    sentences = {sentence["text"] for cut in rows(timed_clips) for sentence in cut["supervisions"]}
    with TranslationServer(faulty=True) as server:
        folder = chain(server, timed_clips, tmp_path, vocabulary)
        assert len(server.asked) == 2 * len(sentences)
        assert server.n_requests > len(server.asked), "the server's faults were met"
        before, n_requests = state(tmp_path), server.n_requests
        chain(server, timed_clips, tmp_path, vocabulary)
        assert server.n_requests == n_requests
    assert state(tmp_path) == before
    for cut in rows(tmp_path / "interleaved"):
        sentence = cut["supervisions"][0]
        assert sentence["custom"]["translations"]["de"] == fake_translation(sentence["text"], "German")
    losses = twenty_steps(folder, vocabulary, tmp_path)
    assert statistics.mean(losses[-5:]) < statistics.mean(losses[:5])


def test_each_sentence_is_asked_with_the_four_before_it_and_their_translations(reference, tmp_path):
    cuts = rows(reference)[:1]
    cuts[0]["recording"]["sources"][0]["source"] = str(reference.parent / "clips" / "sense-0870.flac")
    first = cuts[0]["supervisions"][0]
    words = [[["one", 0.1 * i, 0.1, None]] for i in range(6)]
    cuts[0]["supervisions"] = [
        first | {"id": f"s{i}", "start": 0.1 * i, "text": "one", "alignment": {"word": word}}
        for i, word in enumerate(words)
    ]
    (tmp_path / "source").mkdir()
    rewrite(tmp_path / "source", cuts)
    with TranslationServer() as server:
        assert translate(server, tmp_path / "source", tmp_path / "out", tmp_path / "cache.sqlite", "de") == 0
    assert [len(messages) for messages in server.asked] == [2, 4, 6, 8, 10]  # the sixth is the fifth again: cached
    pair = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "geone"}]
    assert server.asked[-1][1:] == [*pair * 4, {"role": "user", "content": "one"}]


def test_a_server_that_fails_for_good_is_one_line_and_what_was_paid_is_kept(reference, tmp_path, capsys):
    n_sentences = sum(len(cut["supervisions"]) for cut in rows(reference))
    with TranslationServer() as server:
        assert translate(server, reference, tmp_path / "whole", tmp_path / "other.sqlite") == 0
    with TranslationServer(dies_after=5) as server:
        capsys.readouterr()
        assert translate(server, reference, tmp_path / "out", tmp_path / "cache.sqlite") == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"error: {server.url} refused model fake (Error code: 401")
        assert not (tmp_path / "out" / "cuts.jsonl.gz").exists()
        server.dies_after = None
        assert translate(server, reference, tmp_path / "out", tmp_path / "cache.sqlite") == 0
        assert len(server.asked) == 2 * n_sentences
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
    with TranslationServer() as server:  # another output, the same cache
        assert translate(server, reference, tmp_path / "again", tmp_path / "cache.sqlite") == 0
        assert server.n_requests == 0
    assert f"0 sentences asked, {2 * n_sentences} from the cache" in capsys.readouterr().out


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_corpus(reference, tmp_path, caplog):
    with TranslationServer(wait_s=0.15) as server:
        command = [sys.executable, "-m", "scripts.prepare", "translate", str(reference), str(tmp_path / "out")]
        command += ["--base-url", server.url, "--model", "fake", "--to", "de", "--concurrency", "1"]
        command += ["--cache", str(tmp_path / "cache.sqlite")]
        killed = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})
        log = tmp_path / "out" / "cuts.partial.jsonl"
        deadline = time.monotonic() + 60
        while not (log.is_file() and log.read_bytes().count(b"\n") >= 3):
            assert time.monotonic() < deadline
            assert killed.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert not (tmp_path / "out" / "cuts.jsonl.gz").exists()
        finished = [json.loads(line) for line in log.read_bytes().splitlines()[1:]]
        log.write_bytes(log.read_bytes() + b'{"id": "sense-09')
        assert translate(server, reference, tmp_path / "out", tmp_path / "cache.sqlite", "de") == 0
        assert "dropped a broken line at its end" in caplog.text
        asked = [messages[-1]["content"] for messages in server.asked]
        assert [asked.count(result["cut"]["supervisions"][0]["text"]) for result in finished] == [1] * len(finished)
        assert len(finished) >= 2
        assert translate(server, reference, tmp_path / "whole", tmp_path / "other.sqlite", "de") == 0
    assert os.listdir(tmp_path / "out") == os.listdir(tmp_path / "whole")
    assert (tmp_path / "out" / "cuts.jsonl.gz").read_bytes() == (tmp_path / "whole" / "cuts.jsonl.gz").read_bytes()


def test_shards_go_on_with_the_first_that_is_missing(reference, vocabulary, tmp_path, monkeypatch):
    from hikari_agent.training.stages import shards

    run("interleave", reference, tmp_path / "interleaved", "--tokenizer", vocabulary)
    options = ("--format", "wav", "--shard-size", 2)
    whole = run("shards", tmp_path / "interleaved", tmp_path / "whole", *options)
    written, write = [], shards._write_shard

    def fails_at(number):
        def write_or_fail(work, **kwargs):
            if work.number == number:
                raise ValueError("the disk is full")
            written.append(work.number)
            return write(work, **kwargs)

        return write_or_fail

    arguments = ["shards", str(tmp_path / "interleaved"), str(tmp_path / "out"), *map(str, options)]
    monkeypatch.setattr(shards, "_write_shard", fails_at(1))
    assert prepare.main(arguments) == 2
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(shards, "_write_shard", fails_at(None))
    assert prepare.main(arguments) == 0
    assert written == [0, 1, 2]
    for name in ("recording.000000.tar", "index.json", "report.json"):
        assert (whole / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"interleaved", "whole", "out"}


@pytest.mark.slow
def test_two_processes_make_the_same_corpus_as_one(reference, vocabulary, tmp_path):
    one = run("interleave", reference, tmp_path / "one", "--tokenizer", vocabulary)
    two = run("interleave", reference, tmp_path / "two", "--tokenizer", vocabulary, "--jobs", 2)
    assert (one / "cuts.jsonl.gz").read_bytes() == (two / "cuts.jsonl.gz").read_bytes()
    assert json.loads((one / "report.json").read_text()) == json.loads((two / "report.json").read_text())
