"""The programs that score, table and draw: from run folders to files, as a person calls them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reports.score import read_scores
from scripts import plot, score, table
from testsets.manifest import Recording, Segment, TestSet, save

ROOT = Path(__file__).parents[1]
SAID = {
    "one": ["the cat sat on the mat and the dog lay beside it", "now it rains"],
    "two": ["nobody came to the long meeting in the evening"],
}


@pytest.fixture
def test_set(tmp_path):
    """A test set of two recordings, in English with German references, that has no audio: none is read here."""
    recordings = [
        Recording(
            name, f"{name}.flac", "", 4000.0 * len(lines),
            tuple(Segment(4000.0 * i, 4000.0, line, {"de": line.upper()}) for i, line in enumerate(lines)),
        )
        for name, lines in SAID.items()
    ]  # fmt: skip
    made = TestSet("mine", "en", "", "", tuple(recordings), tmp_path / "set")
    save(made)
    return made


def write_run(folder, made_on, value, delay_ms, drop=(), **spec):
    """A run that says what was said, without the words in `drop`, each word so late after its segment's start."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(
        json.dumps(
            {
                "system": "echo", "knob": "wait", "value": value, "language": "en", "unit": "word",
                "test_set": "mine", "test_set_sha256": made_on.sha256, **spec,
            }
        )
    )  # fmt: skip
    with (folder / "instances.log").open("w") as log:
        for i, recording in enumerate(made_on.recordings):
            pairs = [
                (word, segment.offset_ms + delay_ms)
                for segment in recording.segments
                for word in segment.source.split()
                if word not in drop
            ]
            instance = {
                "index": i, "prediction": " ".join(w for w, _ in pairs), "delays": [d for _, d in pairs],
                "elapsed": [d + 50 for _, d in pairs], "prediction_length": len(pairs), "reference": "",
                "source": [f"/audio/{recording.audio}"], "source_length": recording.duration_ms,
            }  # fmt: skip
            log.write(json.dumps(instance) + "\n")
    return folder


@pytest.fixture
def runs(tmp_path, test_set):
    write_run(tmp_path / "runs" / "late", test_set, 2, 3000.0)
    write_run(tmp_path / "runs" / "deep" / "early", test_set, 1, 1000.0, drop=("the", "cat"))
    return tmp_path / "runs"


def test_runs_become_scores_a_table_and_a_figure(runs, test_set, tmp_path, capsys):
    assert score.main([str(runs), "--testset", str(test_set.root), "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0].startswith("| System | Knob | Value | Language | Test set | WER (%) ↓ | BLEU ↑ | chrF2 ↑ |")
    assert [line.split("|")[3].strip() for line in lines[2:]] == ["1", "2"]
    scores = {s.metric: s for s in read_scores(runs / "late")}
    assert (scores["WER"].value, scores["BLEU"].value) == (0.0, pytest.approx(100.0))
    n_dropped = sum(w in ("the", "cat") for said in SAID.values() for line in said for w in line.split())
    n_words = sum(len(line.split()) for said in SAID.values() for line in said)
    wer = next(s for s in read_scores(runs / "deep" / "early") if s.metric == "WER")
    assert wer.value == pytest.approx(100 * n_dropped / n_words)

    assert table.main([str(runs)]) == 0
    assert capsys.readouterr().out == printed.out
    assert table.main([str(runs), "--format", "latex", "--output", str(tmp_path / "table.tex"), "--quiet"]) == 0
    assert r"\toprule" in (tmp_path / "table.tex").read_text()
    assert table.main([str(runs), "--format", "csv"]) == 0
    assert "StreamLAAL_ms" in capsys.readouterr().out

    output = tmp_path / "figures" / "curve"
    assert plot.main([str(runs), "--quality", "WER", "--latency", "StreamLAAL", "--output", str(output)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{output}.png", f"{output}.svg"]
    assert all(Path(f"{output}.{kind}").stat().st_size > 1000 for kind in ("png", "svg"))


def test_a_translation_is_scored_without_word_errors(test_set, tmp_path, capsys):
    write_run(tmp_path / "run", test_set, 1, 1000.0, language="de")
    assert score.main([str(tmp_path / "run"), "--testset", str(test_set.root), "--quiet"]) == 0
    assert "WER" not in capsys.readouterr().out
    assert "BLEU" in {s.metric for s in read_scores(tmp_path / "run")}


def test_the_runs_own_test_set_is_the_default(test_set, tmp_path, capsys):
    write_run(tmp_path / "run", test_set, 1, 1000.0, test_set=str(test_set.root))
    assert score.main([str(tmp_path / "run"), "--quiet"]) == 0
    assert "| echo |" in capsys.readouterr().out


def test_a_figure_can_be_limited_to_a_language(runs, test_set, tmp_path, capsys):
    write_run(runs / "german", test_set, 1, 1000.0, language="de")
    assert score.main([str(runs), "--testset", str(test_set.root), "--quiet"]) == 0
    figure = [str(runs), "--quality", "BLEU", "--output", str(tmp_path / "curve")]
    assert plot.main(figure) == 2
    assert plot.main([*figure, "--language", "de"]) == 0
    assert plot.main([*figure, "--language", "fr"]) == 2
    assert "error: no run has language 'fr'. They have: de, en" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        (score, ["nowhere"], "error: no run folder (one with a run.json) at or below nowhere"),
        (table, ["nowhere"], "error: no run folder (one with a run.json) at or below nowhere"),
        (plot, ["RUNS"], "error: RUNS/deep/early/scores.jsonl is missing: score the run first"),
        (score, ["RUNS", "--testset", "unheard-of"], "error: no test set 'unheard-of'"),
        (score, ["RUNS", "--testset", "SET", "--language", "fr"], "error: test set 'mine' has no 'fr'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_status_2(runs, test_set, capsys, program, arguments, message):
    def fill(text):
        return text.replace("RUNS", str(runs)).replace("SET", str(test_set.root))

    assert program.main([fill(a) for a in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(fill(message))
    assert printed.err.count("\n") == 1


def test_debug_shows_where_a_mistake_was_found(runs):
    with pytest.raises(KeyError, match="unheard-of"):
        score.main([str(runs), "--testset", "unheard-of", "--debug"])


@pytest.mark.parametrize("name", ["score", "plot", "table"])
def test_help_needs_nothing_heavy_and_holds_a_command(name):
    program = (
        f"import sys; from scripts import {name}\n"
        f"try: {name}.main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'numpy', 'pandas', 'matplotlib', 'sacrebleu', 'jiwer', 'mweralign', 'simuleval'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == "set()\n"
    assert f"python -m scripts.{name} runs" in " ".join(done.stdout.split())


def test_the_program_runs_from_the_checkout_with_results_on_stdout_only(runs, test_set):
    command = [sys.executable, "-m", "scripts.score", str(runs / "late"), "--testset", str(test_set.root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("| System |")
    assert done.stderr == f"wrote {runs / 'late' / 'scores.jsonl'}\n"


def test_a_run_of_some_recordings_is_scored_against_those_and_finds_its_test_set_by_its_folder(
    tmp_path, test_set, capsys
):
    part = test_set.select(["two"])
    write_run(tmp_path / "run", part, 1, 500.0, recordings=["two"], test_set_folder=str(test_set.root))
    assert score.main([str(tmp_path / "run")]) == 0
    assert "warning" not in capsys.readouterr().err.lower()
    assert {s.metric: s.value for s in read_scores(tmp_path / "run")}["WER"] == 0


def test_a_run_that_is_not_finished_is_left_out_with_a_warning(runs, test_set, capsys):
    (runs / "late" / "instances.log").unlink()
    assert score.main([str(runs), "--testset", str(test_set.root)]) == 0
    printed = capsys.readouterr()
    assert "late has no instances.log yet, it is left out: finish the sweep" in printed.err
    assert printed.out.count("| echo |") == 1
