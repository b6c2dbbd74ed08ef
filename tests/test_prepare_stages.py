"""The stages of `scripts.prepare` one by one: what each makes of good input, and what it says to bad."""

from __future__ import annotations

import builtins
import itertools
import json
import os
import shutil
import time

import numpy as np
import pytest
import soundfile
from corpora import librivox_corpus, librivox_folder, rewrite, rows, small_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

from hikari_agent.training.corpus import read_corpus, words
from hikari_agent.training.stages.aligners import learnt, plain, symmetrised, units_of
from hikari_agent.training.stages.sentences import TimedText, ends_sentence, split, times_for
from scripts import prepare


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return librivox_corpus(tmp_path_factory.mktemp("librivox"))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    return small_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture
def corpus(imported, tmp_path):
    """A copy of the imported corpus that a test may spoil; its audio stays where it is."""
    shutil.copytree(imported.parent, tmp_path / "librivox")
    return tmp_path / "librivox" / "import"


def heard(text: str, step_s: float = 0.5) -> list[TimedText]:
    return [TimedText(word, i * step_s, i * step_s + 0.4) for i, word in enumerate(text.split())]


def test_a_known_text_takes_over_the_times_of_what_was_heard():
    text = ["He", "was", "not", "ill", "disposed", "at", "all", ",", "man."]
    times, n_matched = times_for(text, heard("he was not ill-disposed man"), 3.0)
    assert n_matched == 4
    assert [(word.text, round(word.end_s, 2)) for word in times] == [
        *(("He", 0.4), ("was", 0.9), ("not", 1.4)),
        # 1.5 to 1.9 s was heard as one word: five share it by their length
        *(("ill", 1.57), ("disposed", 1.76), ("at", 1.81), ("all", 1.88), (",", 1.9)),
        ("man.", 2.4),
    ]


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcd")), st.lists(st.sampled_from("abcx")))
def test_times_never_fall_and_stay_in_the_recording(text, said):
    duration = 0.5 * len(said) + 1
    times, n_matched = times_for(text, heard(" ".join(said)), duration)
    assert [word.text for word in times] == text
    assert n_matched <= min(len(text), len(said))
    ends = [word.end_s for word in times]
    assert ends == sorted(ends)
    assert all(0 <= word.start_s <= word.end_s <= duration for word in times)


@pytest.mark.parametrize(
    ("word", "follower", "ends"),
    [("them.", "He", True), ("Mr.", "John", False), ("J.", "Smith", False), ("I.", "Then", True), ("so…", "he", False),
     ('"Well!"', '"He', True), ("3.5", "Then", False), ("usw.", "und", False), ("z.B.", "Haus", False)],
)  # fmt: skip
def test_where_a_sentence_ends(word, follower, ends):
    assert ends_sentence(word, follower) is ends


def test_an_endless_sentence_is_cut_at_its_longest_pauses():
    spoken = [TimedText("a", i + 0.0, i + (0.1 if i in (40, 75) else 0.9)) for i in range(100)]
    parts = split(spoken)
    assert [word for part in parts for word in part] == spoken
    assert {spoken.index(part[-1]) for part in parts} >= {40, 75}
    assert all(part[-1].end_s - part[0].start_s <= 30 for part in parts)


@pytest.mark.parametrize(
    ("text", "language"), [("今日は AI です。 はい", "ja"), ("我们 好", "zh"), ("猫が本を読む", "ja")]
)
def test_units_without_blanks_make_up_the_text(text, language):
    units = units_of(text, language)
    assert "".join(units) == text
    assert len(units) > 2
    assert all(unit.strip() for unit in units)


@pytest.mark.parametrize("aligner", ["systran", "eflomal"])
def test_an_aligner_learns_a_dictionary_from_the_corpus(aligner):
    pytest.importorskip("systran_align" if aligner == "systran" else "eflomal")
    german = dict(the="der", a="ein", dog="Hund", cat="Kater", sleeps="schläft.", eats="frisst.")
    pairs = []
    for determiner, noun, verb, _ in itertools.product(("the", "a"), ("dog", "cat"), ("sleeps", "eats"), range(10)):
        source = plain([determiner, noun, verb])
        said, asked = (
            plain([german[word] for word in source]),
            plain([german[word] for word in (verb, determiner, noun)]),
        )
        pairs += [(source, said), (source, said), (source, asked)]
    link = learnt(aligner, pairs)
    assert {(0, 0), (1, 1), (2, 2)} <= set(link(*pairs[0]))
    assert {(0, 1), (1, 2)} <= set(link(*pairs[2]))


def test_two_directions_become_one_set_of_links():
    assert symmetrised({(0, 0), (2, 1)}, {(0, 0), (1, 1)}) == [(0, 0), (1, 1), (2, 1)]
    assert symmetrised(set(), {(0, 0)}) == [(0, 0)]
    assert symmetrised({(0, 0), (5, 5)}, {(0, 0), (5, 0)}) == [(0, 0), (5, 5)]


def test_ctm_keeps_the_times_it_gives(imported):
    cuts = list(read_corpus(imported, needs=("words",)))
    assert [cut.id for cut in cuts] == [f"sense-{n}" for n in ("0870", "0880", "0890", "0920", "0930")]
    first = words(cuts[0].supervisions[0])[1]
    assert (first.symbol, first.start, round(first.end, 2)) == ("mister", 0.37, 0.63)
    assert len(cuts[0].load_audio()[0]) == 113_600


def test_text_grids_and_lhotse_manifests_become_the_same_corpus(imported, tmp_path):
    import textgrid

    folder = librivox_folder(tmp_path / "clips")
    (folder / "words.ctm").unlink()
    for cut in read_corpus(imported):
        grid, tier = textgrid.TextGrid(), textgrid.IntervalTier("words")
        for item in words(cut.supervisions[0]):
            tier.add(round(item.start, 3), round(item.end, 3), item.symbol)
        grid.append(tier)
        grid.write(str(folder / f"{cut.id}.TextGrid"))
    for source, kind in ((folder, "textgrid"), (imported, "lhotse")):
        options = ["--format", kind, *(["--language", "en"] if kind == "textgrid" else [])]
        assert prepare.main(["import", str(source), str(tmp_path / kind), *options]) == 0
        for there, here in zip(rows(imported), rows(tmp_path / kind), strict=True):
            assert here["supervisions"] == there["supervisions"]


def test_a_test_set_brings_its_translations(tmp_path):
    """Warzone's shape: a recording with human translations, of which one lacks a language."""
    from testsets import manifest

    root = tmp_path / "set"
    root.mkdir()
    soundfile.write(root / "a.flac", np.zeros(32_000, np.int16), 16_000)
    texts = [({"de": "Ja .", "cs": "Ano ."}, "Yes ."), ({"de": "Nein ."}, "No .")]
    segments = tuple(manifest.Segment(1000.0 * i, 1000.0, text, targets) for i, (targets, text) in enumerate(texts))
    recording = manifest.Recording("a", "a.flac", manifest.file_sha256(root / "a.flac"), 2000.0, segments)
    manifest.save(manifest.TestSet("made-up", "en", "none", "made up", (recording,), root))
    assert prepare.main(["import", str(root), str(tmp_path / "out"), "--format", "testset"]) == 0
    sentences = rows(tmp_path / "out")[0]["supervisions"]
    assert [(s["text"], s["start"], s["custom"]["translations"]) for s in sentences] == [
        ("Yes .", 0.0, {"de": "Ja .", "cs": "Ano ."}), ("No .", 1.0, {"de": "Nein ."})]  # fmt: skip
    assert prepare.main(["align", str(tmp_path / "out"), str(tmp_path / "aligned")]) == 0
    sentences = rows(tmp_path / "aligned")[0]["supervisions"]
    assert [set(s["custom"]["links"]) for s in sentences] == [{"de"}, {"de"}]
    report = json.loads((tmp_path / "aligned" / "report.json").read_text())
    assert report["dropped"] == {"cs of a recording that lacks it in a sentence": {"n": 1, "first": ["a-1"]}}


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_translations_from_a_file_with_gold_links_become_targets(corpus, vocabulary, tmp_path, suffix):
    texts = [sentence["text"] for cut in rows(corpus) for sentence in cut["supervisions"]]
    german = [f"also {text}" for text in texts]
    lines = ["source\tde", *(f"{a}\t{b}" for a, b in zip(texts, german, strict=True))]
    if suffix == ".jsonl":
        lines = [json.dumps({"source": a, "de": b}) for a, b in zip(texts, german, strict=True)]
    (tmp_path / f"t{suffix}").write_text("\n".join(lines) + "\n")
    options = ["--translations", str(tmp_path / f"t{suffix}")]
    assert prepare.main(["translate", str(corpus), str(corpus.parent / "translated"), *options]) == 0
    cuts = rows(corpus.parent / "translated")
    for cut in cuts:
        for sentence in cut["supervisions"]:
            n = len(sentence["text"].split())
            sentence["custom"] |= {"units": {"de": sentence["custom"]["translations"]["de"].split()},
                                   "links": {"de": [[i, i + 1] for i in range(n)]}}  # fmt: skip
    rewrite(corpus.parent / "translated", cuts)
    assert prepare.main(["align", str(corpus.parent / "translated"), str(tmp_path / "gold"), "--aligner", "gold"]) == 0
    arguments = ["interleave", str(tmp_path / "gold"), str(tmp_path / "out"), "--tokenizer", str(vocabulary)]
    assert prepare.main(arguments) == 0
    sentence = rows(tmp_path / "out")[0]["supervisions"][0]
    targets = sentence["custom"]["targets"]
    ends = [round(start + duration, 3) for _, start, duration, _ in sentence["alignment"]["word"]]
    assert targets["en"]["ends"] == ends
    assert targets["de"]["ends"] == [None, *ends]  # "also" goes with the word after it
    assert targets["de"]["ids"][1:] == targets["en"]["ids"]


def test_the_wait_character_and_special_tokens_of_a_text_are_left_out(corpus, vocabulary, tmp_path):
    from hikari_agent.tokens import WAIT, Vocabulary

    cuts = rows(corpus)[:1]
    sentence = cuts[0]["supervisions"][0]
    for i, word in ((1, "~"), (2, "jo~hn"), (3, "x<|de|>")):
        sentence["alignment"]["word"][i][0] = word
    sentence["text"] = " ".join(item[0] for item in sentence["alignment"]["word"])
    rewrite(corpus, cuts)
    assert prepare.main(["interleave", str(corpus), str(tmp_path / "out"), "--tokenizer", str(vocabulary)]) == 0
    target = rows(tmp_path / "out")[0]["supervisions"][0]["custom"]["targets"]["en"]
    ids = [i for word in target["ids"] for i in word]
    assert WAIT not in ids
    text = b"".join(Vocabulary.from_folder(vocabulary).token_bytes(i) for i in ids).decode()
    assert text.startswith(" and john x had then")
    assert len(target["ids"]) == len(target["ends"]) == len(sentence["alignment"]["word"]) - 1


def test_the_report_counts_what_does_not_fit(corpus, vocabulary, tmp_path):
    from hikari_agent.training.stages.interleaving import figure_lines, interleave_corpus

    cuts = rows(corpus)[:1]
    sentence = cuts[0]["supervisions"][0]
    sentence["custom"] = {"translations": {"de": "Donaudampfschiff " * 12}, "units": {"de": ["Donaudampfschiff"] * 12},
                          "links": {"de": [[21, 0]]}}  # fmt: skip
    rewrite(corpus, cuts)
    report = interleave_corpus(corpus, tmp_path / "out", vocabulary)
    german = report["figures"]["de"]
    assert german["n_unaligned_words"] == 11
    assert german["statistics"]["n_dropped_words"] == 12  # the last source word ends 0.3 s before the recording
    assert report["figures"]["en"]["statistics"]["n_slots"] == 86  # 7.1 s: (7.1 - 0.24) / 0.08, and the first
    assert report["figures"]["en"]["statistics"]["n_dropped_words"] < 3
    assert "beyond the end of their recording" in figure_lines(report)[0]


def _word(cut, i, **changes):
    item = dict(
        zip(("symbol", "start", "duration", "score"), cut["supervisions"][0]["alignment"]["word"][i], strict=True)
    )
    cut["supervisions"][0]["alignment"]["word"][i] = list((item | changes).values())


SPOILED = {
    "an empty transcript": (lambda cuts: cuts[2]["supervisions"][0].update(text=" "), "an empty transcript: leave"),
    "times backwards": (lambda cuts: _word(cuts[2], 3, start=0.1), "word times must not run backwards"),
    "other words": (lambda cuts: _word(cuts[2], 3, symbol="x"), "the first that differs is word 3, 'rather' and 'x'"),
    "beyond the end": (lambda cuts: _word(cuts[2], -1, start=9.0), "the recording at 5.30 s: wrong audio?"),
    "no language": (lambda cuts: cuts[2]["supervisions"][0].pop("language"), "no language: import"),
    "a link too far": (
        lambda cuts: cuts[2]["supervisions"][0].update(
            custom={"translations": {"de": "Ja"}, "units": {"de": ["Ja"]}, "links": {"de": [[0, 1]]}}
        ),
        "link (0, 1) into de is beyond its 14 source words and 1 units",
    ),
    "an unknown language": (lambda cuts: cuts[2]["supervisions"][0].update(language="xx"), "unknown language 'xx', "),
    "no cut": (lambda cuts: cuts[2].clear(), "line 3: no lhotse cut"),
    "twice the same": (lambda cuts: cuts[2].update(id="sense-0870"), "recording sense-0870 is there twice"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_spoiled_corpus_is_one_line_and_status_2(what, corpus, vocabulary, tmp_path, capsys):
    spoil, message = SPOILED[what]
    cuts = rows(corpus)
    spoil(cuts)
    rewrite(corpus, cuts)
    arguments = ["interleave", str(corpus), str(tmp_path / "out"), "--tokenizer", str(vocabulary), "--quiet"]
    assert prepare.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "out" / "cuts.jsonl.gz").exists()


def test_sound_that_cannot_be_read_is_named(corpus, vocabulary, tmp_path, capsys):
    assert prepare.main(["interleave", str(corpus), str(tmp_path / "out"), "--tokenizer", str(vocabulary)]) == 0
    broken = corpus.parent / "clips" / "sense-0890.flac"
    for spoil, message in (
        (lambda: broken.write_bytes(broken.read_bytes()[:20_000]), "the audio of recording sense-0890 cannot be read"),
        (lambda: broken.write_bytes(b"no sound"), f"{broken} is not audio that libsndfile reads"),
        (broken.unlink, f"no audio file {broken}"),
    ):
        spoil()
        capsys.readouterr()
        assert prepare.main(["shards", str(tmp_path / "out"), str(tmp_path / "shards"), "--quiet"]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (lambda t: t[:-1], "has 4 translations, "),
        (lambda t: [*t, "more\tmehr"], "row 6 is too many"),
        (lambda t: [t[0], "other\tanders", *t[2:]], "differs first at row 2: source 'other', sentence sense-0880-0"),
        (lambda t: [t[0], "no tab", *t[2:]], "line 3: expected 2 columns (source, de)"),
    ],
)
def test_translations_that_do_not_fit_say_where(corpus, tmp_path, capsys, lines, message):
    texts = [f"{sentence['text']}\tja" for cut in rows(corpus) for sentence in cut["supervisions"]]
    (tmp_path / "t.tsv").write_text("\n".join(["source\tde", *lines(texts)]) + "\n")
    arguments = ["translate", str(corpus), str(tmp_path / "out"), "--translations", str(tmp_path / "t.tsv")]
    assert prepare.main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BAD_CALLS = {
    "no folder": (["align", "{tmp}/nothing", "{tmp}/out"], "no folder {tmp}/nothing: a corpus is made by"),
    "no corpus": (["align", "{tmp}", "{tmp}/out"], "{tmp} is no corpus, it has no cuts.jsonl.gz"),
    "onto itself": (["interleave", "{corpus}", "{corpus}", "--tokenizer", "{vocabulary}"], "is the input: name another"),
    "no translations": (["align", "{corpus}", "{tmp}/out"], "it has no translations: run `python -m scripts.prepare translate`"),
    "no targets": (["shards", "{corpus}", "{tmp}/out"], "it has no targets: run `python -m scripts.prepare interleave`"),
    "unknown aligner": (["align", "{corpus}", "{tmp}/out", "--aligner", "x"], "no aligner 'x'. Known: systran, eflomal"),
    "unknown target": (
        ["translate", "{corpus}", "{tmp}/out", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--to", "de,xx"],
        "unknown language 'xx'. Known: af, am",
    ),
    "no server": (
        ["translate", "{corpus}", "{tmp}/out", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--to", "de",
         "--retries", "0", "--cache", "{tmp}/c.sqlite"],
        "no answer from http://127.0.0.1:9/v1 after 1 tries",
    ),
    "nothing to translate with": (["translate", "{corpus}", "{tmp}/out"], "translate needs --base-url, --model and --to"),
    "no tokenizer": (["interleave", "{corpus}", "{tmp}/out", "--tokenizer", "{tmp}"], "has no tokenizer.json"),
    "no model": (["transcribe", "{corpus}", "{tmp}/out", "--model", "{tmp}/model"], "no model in {tmp}/model: give a folder"),
    "no recordings": (["import", "{tmp}", "{tmp}/out", "--format", "text", "--language", "en"], "{tmp} has no audio files"),
    "no language": (["import", "{tmp}", "{tmp}/out", "--format", "ctm"], "--format ctm says no language: add --language"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_CALLS)
def test_a_bad_call_is_one_line_and_leaves_nothing(what, imported, vocabulary, tmp_path, capsys):
    arguments, message = BAD_CALLS[what]
    places = {"tmp": tmp_path, "corpus": imported, "vocabulary": vocabulary}
    assert prepare.main([*(argument.format(**places) for argument in arguments), "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message.format(**places) in err
    assert err.count("\n") == 1
    assert set(os.listdir(tmp_path)) <= {"c.sqlite"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sense-0870 1 9.0 0.1", "expected 'recording channel start duration word'"),
        ("sense-0870 1 0.3 0.1 back", "word times must not run backwards. Sort the file"),
        ("nobody 1 0.3 0.1 word", "no audio file nobody"),
    ],
)
def test_a_bad_ctm_names_the_line(tmp_path, capsys, line, message):
    folder = librivox_folder(tmp_path / "clips")
    with (folder / "words.ctm").open("a") as file:
        file.write(line + "\n")
    n_lines = len((folder / "words.ctm").read_text().splitlines())
    arguments = ["import", str(folder), str(tmp_path / "out"), "--format", "ctm", "--language", "en"]
    assert prepare.main(arguments) == 2
    err = capsys.readouterr().err
    assert f"words.ctm, line {n_lines}" in err
    assert message in err
    assert not (tmp_path / "out").exists()


def test_an_output_made_otherwise_is_refused(imported, vocabulary, tmp_path, capsys):
    arguments = ["interleave", str(imported), str(tmp_path / "out"), "--tokenizer", str(vocabulary)]
    assert prepare.main(arguments) == 0
    assert prepare.main([*arguments, "--dilation", "2"]) == 2
    assert "holds another output (dilation was 4, now it is 2): remove it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("package", "aligner"), [("systran_align", "systran"), ("eflomal", "eflomal"), ("simalign", "simalign")]
)
def test_a_missing_aligner_says_what_to_install(monkeypatch, package, aligner):
    real = builtins.__import__

    def without(name, *arguments, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=f"pip install {package.replace('_', '-')}"):
        learnt(aligner, [])


def test_interleaving_and_shards_are_hundreds_of_times_faster_than_speech(vocabulary, tmp_path):
    (tmp_path / "clips").mkdir()
    noise = (np.random.default_rng(0).standard_normal(300 * 16_000) * 1000).astype(np.int16)
    soundfile.write(tmp_path / "clips" / "a.wav", noise, 16_000)
    spoken = "\n".join(f"a 1 {0.4 * i:.2f} 0.35 word{i % 50}{'.' if i % 12 == 11 else ''}" for i in range(740))
    (tmp_path / "clips" / "a.ctm").write_text(spoken + "\n")
    folders = [str(tmp_path / name) for name in ("clips", "1", "2", "3")]
    assert prepare.main(["import", *folders[:2], "--format", "ctm", "--language", "en"]) == 0
    assert prepare.main(["interleave", *folders[1:3], "--tokenizer", str(vocabulary)]) == 0  # imports and warms up
    shutil.rmtree(folders[2])
    started = time.process_time()
    assert prepare.main(["interleave", *folders[1:3], "--tokenizer", str(vocabulary)]) == 0
    assert prepare.main(["shards", *folders[2:], "--format", "wav"]) == 0
    assert 300 / (time.process_time() - started) > 250  # over 600 measured on an idle core
