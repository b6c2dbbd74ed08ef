"""Tables and figures made of scored runs."""

import csv
import doctest
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reports.plots
import reports.tables
from reports.extras import MissingExtra
from reports.labels import place_labels
from reports.plots import pareto_front, plot_pareto
from reports.runs import write_run_spec
from reports.score import Score, write_scores
from reports.tables import rows, to_csv, to_latex, to_markdown

ROOT = Path(__file__).parents[1]


def add_run(root, system, value, scores, **spec):
    folder = root / f"{system}-{value}-{spec.get('language', 'en')}"
    usual = {"knob": "bias", "language": "en", "unit": "word", "test_set": "mine", "test_set_sha256": "0"}
    write_run_spec(folder, {"system": system, "value": value, **usual, **spec})
    write_scores(folder, [s if isinstance(s, Score) else Score(s[0], s[1], "sig", 9) for s in scores])
    return folder


@pytest.fixture
def runs(tmp_path):
    """Two systems with four points each, WER in percent and StreamLAAL in ms."""
    points = {
        "hikari": [(2, 3100, 11.2), (10, 2200, 12.4), (0.5, 1500, 17.3), (-1, 720, 38.0)],
        "whisper_la": [(4, 1100, 58.8), (8, 1450, 32.0), (16, 2300, 19.5), (32, 3500, 10.1)],
    }
    return [
        add_run(tmp_path, system, value, [("WER", wer), ("StreamLAAL", ms)])
        for system, mine in points.items()
        for value, ms, wer in mine
    ]


coordinates = st.integers(0, 6).map(float)


@given(points=st.lists(st.tuples(coordinates, coordinates), max_size=12), higher=st.booleans())
def test_the_front_is_what_nobody_dominates(points, higher):
    def dominates(a, b):
        quality_a, quality_b = (a[1], b[1]) if higher else (-a[1], -b[1])
        return a[0] <= b[0] and quality_a >= quality_b and (a[0] < b[0] or quality_a > quality_b)

    assert pareto_front(points, higher) == [not any(dominates(q, p) for q in points) for p in points]


def test_rows_come_by_system_and_then_by_knob_value_as_a_number(runs):
    frame = rows(runs)
    assert list(zip(frame["system"], frame["value"], strict=True)) == [
        ("hikari", -1), ("hikari", 0.5), ("hikari", 2), ("hikari", 10),
        ("whisper_la", 4), ("whisper_la", 8), ("whisper_la", 16), ("whisper_la", 32),
    ]  # fmt: skip
    assert list(frame["WER"])[:2] == [38.0, 17.3]


def test_a_system_without_a_knob_has_a_row_too(tmp_path):
    scores = [("WER", 5.0), ("StreamLAAL", 2000.0)]
    frame = rows([add_run(tmp_path, "offline", None, scores, knob=None), add_run(tmp_path, "a", 1, scores)])
    assert to_markdown(frame).splitlines()[3] == "| offline |  |  | en | mine | **5.0** | **2.00** |"
    _, svg = plot_pareto(frame, tmp_path / "curve")
    said = re.findall(r"<!-- (.*?) -->", svg.read_text())
    assert "offline" in said
    assert "nan" not in " ".join(said)


def test_markdown_prints_seconds_percent_and_the_best_in_bold(runs):
    lines = to_markdown(rows(runs)).splitlines()
    assert lines[0] == "| System | Knob | Value | Language | Test set | WER (%) ↓ | StreamLAAL (s) ↓ |"
    assert lines[2] == "| hikari | bias | -1 | en | mine | 38.0 | **0.72** |"
    assert lines[9] == "| whisper_la | bias | 32 | en | mine | **10.1** | 3.50 |"
    assert len(lines) == 10


def test_a_missing_number_is_a_dash_with_its_reason_below(tmp_path):
    add_run(tmp_path, "a", 1, [Score("BLEU", None, "", 9, reason="every prediction is empty"), ("WER", 10.0)])
    text = to_markdown(rows([add_run(tmp_path, "b", 1, [("BLEU", 20.0)]), tmp_path / "a-1-en"]))
    assert "| a | bias | 1 | en | mine | 10.0 | – [1] |" in text
    assert "| b | bias | 1 | en | mine | – [2] | 20.0 |" in text
    assert "[1] BLEU: every prediction is empty" in text
    assert "[2] WER: not among the scores of this run" in text
    assert "0.0 |" not in text.replace("10.0 |", "").replace("20.0 |", "")


def test_only_comparable_numbers_compete_for_bold(tmp_path):
    folders = [
        add_run(tmp_path, "a", 1, [("BLEU", 20.0)]),
        add_run(tmp_path, "a", 1, [("BLEU", 30.0)], language="de"),
        add_run(tmp_path, "b", 1, [("BLEU", 25.0)]),
        add_run(tmp_path, "c", 1, [Score("BLEU", 40.0, "tok:char", 9)]),
    ]
    text = to_markdown(rows(folders))
    assert re.findall(r"\*\*(.*?)\*\*", text) == ["25.0"]
    assert "BLEU: not computed alike in all rows: sig; tok:char" in text


def test_higher_is_better_for_bleu_and_ties_are_both_bold(tmp_path):
    folders = [add_run(tmp_path, "abc"[i], 1, [("BLEU", value)]) for i, value in enumerate([20.0, 30.01, 29.99])]
    assert re.findall(r"\*\*(.*?)\*\*", to_markdown(rows(folders))) == ["30.0", "30.0"]


def test_a_published_number_has_another_face_and_its_source(tmp_path):
    published = Score("BLEU", 31.0, "sig", 9, origin="published", source="A Paper, Table 2")
    text = to_markdown(rows([add_run(tmp_path, "a", 1, [published])]))
    assert "| *31.0* [1] |" in text
    assert "[1] BLEU: published, A Paper, Table 2" in text


def test_latex_is_booktabs_with_the_best_in_bold_and_nothing_unescaped(runs):
    text = to_latex(rows(runs))
    assert all(rf"\{rule}rule" in text for rule in ("top", "mid", "bottom"))
    assert r"whisper\_la & bias & 32 & en & mine & \textbf{10.1} & 3.50 \\" in text
    body = text[text.index(r"\toprule") :]
    assert not re.search(r"(?<!\\)[_%#]", body)
    assert len({line.count(" & ") for line in body.splitlines() if line.endswith(r"\\")}) == 1


def test_latex_dashes_have_their_reason_below(tmp_path):
    reason = "sacrebleu is not installed: pip install -e .[score] & 100 %"
    text = to_latex(rows([add_run(tmp_path, "a", 1, [Score("BLEU", None, "", 9, reason=reason)])]))
    assert r"& --\,[1] \\" in text
    assert r"[1] BLEU: sacrebleu is not installed: pip install -e .[score] \& 100 \%" in text


def test_csv_holds_the_stored_values_and_reasons(tmp_path):
    scores = [("StreamLAAL", 1234.5678), Score("BLEU", None, "", 9, reason="a, b")]
    (row,) = csv.DictReader(io.StringIO(to_csv(rows([add_run(tmp_path, "a", 0.5, scores)]))))
    assert (row["system"], row["value"], row["StreamLAAL_ms"], row["BLEU"]) == ("a", "0.5", "1234.5678", "")
    assert row["missing"] == "BLEU: a, b"


def test_a_run_that_was_not_scored_says_how_to(tmp_path):
    write_run_spec(tmp_path, {"unit": "word"})
    with pytest.raises(FileNotFoundError, match=r"python -m scripts\.score"):
        rows([tmp_path])


def test_intervals_are_crosses_and_the_axes_hold_them(tmp_path, runs):
    """The cross of one run, found again in the picture: its ends lie where the axes say."""
    wide = Score("WER", 20.0, "sig", 9, interval=(5.0, 80.0))
    late = Score("StreamLAAL", 2000, "sig", 9, interval=(1000, 3000))
    folder = add_run(tmp_path, "wide", 1, [wide, late])
    plain, crossed = (
        plot_pareto(rows([*runs, folder]), tmp_path / f"{flag}", intervals=flag)[1].read_text()
        for flag in (False, True)
    )
    assert crossed.count("stroke-opacity: 0.45") - plain.count("stroke-opacity: 0.45") == 2 * (len(runs) + 1)
    assert "80" in re.findall(r"<!-- (\S+) -->", crossed)
    assert "80" not in re.findall(r"<!-- (\S+) -->", plain)


def test_the_figure_is_written_as_png_and_svg_with_what_it_must_say(runs, tmp_path):
    png, svg = plot_pareto(rows(runs), tmp_path / "out" / "curve_0.5")
    assert (png.name, svg.name) == ("curve_0.5.png", "curve_0.5.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in png.parent.iterdir()) == [png.name, svg.name]
    said = re.findall(r"<!-- (.*?) -->", svg.read_text())
    for text in ("StreamLAAL (s), lower is better", "WER (%), up is better, axis inverted", "hikari (bias)",
                 "whisper_la (bias)", "dominated", "WER against StreamLAAL on mine (en)", "low latency ≤ 2 s",
                 "high latency ≤ 4 s", "-1", "0.5", "32"):  # fmt: skip
        assert text in said


def test_the_same_rows_give_the_same_figure(runs, tmp_path):
    first = [path.read_bytes() for path in plot_pareto(rows(runs), tmp_path / "curve")]
    assert [path.read_bytes() for path in plot_pareto(rows(runs), tmp_path / "curve")] == first


def test_a_run_without_one_of_the_scores_is_left_out_and_named(runs, tmp_path, caplog):
    silent = Score("WER", None, "", 9, reason="every prediction is empty")
    folder = add_run(tmp_path, "silent", 1, [silent, ("StreamLAAL", 1000.0)])
    _, svg = plot_pareto(rows([*runs, folder]), tmp_path / "curve")
    assert f"{folder} is not drawn" in caplog.text
    assert "silent" not in svg.read_text()
    with pytest.raises(ValueError, match="no run has both WER and StreamLAAL"):
        plot_pareto(rows([folder]), tmp_path / "curve")


def test_runs_of_two_languages_cannot_share_a_figure(runs, tmp_path):
    other = add_run(tmp_path, "hikari", 1, [("WER", 5.0), ("StreamLAAL", 1000.0)], language="de")
    with pytest.raises(ValueError, match=r"mine \(de\), mine \(en\)"):
        plot_pareto(rows([*runs, other]), tmp_path / "curve")


def test_an_unknown_metric_is_named_with_those_there_are(runs, tmp_path):
    with pytest.raises(KeyError, match=r"no.* 'COMET'\. They have: WER, StreamLAAL"):
        plot_pareto(rows(runs), tmp_path / "curve", quality="COMET")


def test_a_single_run_can_be_drawn(tmp_path):
    frame = rows([add_run(tmp_path, "a", None, [("BLEU", 20.0), ("StreamLAAL", 5000.0)])])
    assert all(path.stat().st_size > 1000 for path in plot_pareto(frame, tmp_path / "curve", quality="BLEU"))


def test_labels_cover_neither_points_nor_one_another():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), dpi=200)
    canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
    points = [(1.0, 1.0), (1.05, 1.02), (1.1, 0.98), (2.0, 2.0), (2.02, 2.0), (3.0, 1.0)]
    axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=5.5)
    canvas.draw()
    place_labels(axes, canvas.get_renderer(), points, ["0.25"] * 6, ["black"] * 6)
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in axes.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert not any(box.contains(*axes.transData.transform(point)) for box in boxes for point in points)
    assert all(axes.bbox.contains(box.x0, box.y0) and axes.bbox.contains(box.x1, box.y1) for box in boxes)


def test_drawing_leaves_pyplot_alone(runs, tmp_path):
    program = (
        "import sys; from pathlib import Path; from reports.plots import plot_pareto; from reports.tables import rows; "
        "plot_pareto(rows([Path(p) for p in sys.argv[2:]]), Path(sys.argv[1])); "
        "print('matplotlib.figure' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "curve"), *map(str, runs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "True False\n", done.stderr


def test_without_matplotlib_the_extra_is_named(runs, tmp_path, monkeypatch):
    frame = rows(runs)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"matplotlib is not installed: pip install -e \.\[plot\]"):
        plot_pareto(frame, tmp_path / "curve")


def test_the_examples_in_docstrings_hold():
    found = doctest.testmod(reports.tables)
    assert (found.failed, found.attempted > 0) == (0, True)
    found = doctest.testmod(reports.plots)
    assert (found.failed, found.attempted > 0) == (0, True)
