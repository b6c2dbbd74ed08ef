"""Scores of many runs as one table: a pandas frame, and from it Markdown, CSV and LaTeX.

How a metric is named, scaled and rounded is said here and nowhere else; plots ask here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.extras import needs_extra
from reports.runs import read_run_spec
from reports.score import Score, read_scores

if TYPE_CHECKING:
    import pandas as pd

MISSING = "–"


@dataclass(frozen=True)
class Metric:
    """How a metric is shown: `title`, `unit`, its value times `scale` with so many `decimals`, which way is better."""

    title: str
    unit: str
    scale: float
    decimals: int
    higher_is_better: bool

    @property
    def header(self) -> str:
        arrow = "↑" if self.higher_is_better else "↓"
        return f"{self.title} ({self.unit}) {arrow}" if self.unit else f"{self.title} {arrow}"

    def show(self, value: float) -> str:
        """The value as it is printed everywhere."""
        return f"{value * self.scale:.{self.decimals}f}"


# In the order of the columns.
METRICS = {
    "WER": Metric("WER", "%", 1, 1, False),
    "CER": Metric("CER", "%", 1, 1, False),
    "BLEU": Metric("BLEU", "", 1, 1, True),
    "chrF2": Metric("chrF2", "", 1, 1, True),
    "StreamLAAL": Metric("StreamLAAL", "s", 1e-3, 2, False),
    "StreamLAAL_CA": Metric("StreamLAAL_CA", "s", 1e-3, 2, False),
    "SilentSegments": Metric("Silent segments", "", 1, 0, False),
}
DESCRIPTION = {"system": "System", "knob": "Knob", "value": "Value", "language": "Language", "test_set": "Test set"}


@dataclass(frozen=True)
class _Cell:
    text: str
    best: bool = False
    published: bool = False
    note: int | None = None


def rows(run_folders: Iterable[Path]) -> pd.DataFrame:
    """One row a run, by system and then knob value: what was run, and its scores as they are stored.

    Columns: system, knob, value, language, test_set, test_set_sha256, folder; one a metric, in percent or ms, NaN if
    missing; and `scores`, a dict of Score by metric. Raises FileNotFoundError for a run without scores.
    """
    with needs_extra("score"):
        import pandas as pd

    found: list[dict[str, Any]] = []
    for folder in run_folders:
        spec = read_run_spec(folder)
        scores = {score.metric: score for score in read_scores(folder)}
        names = (*DESCRIPTION, "test_set_sha256")
        values = {name: score.value if score.value is not None else math.nan for name, score in scores.items()}
        found.append({**{name: spec.get(name) for name in names}, "folder": str(folder), **values, "scores": scores})
    found.sort(key=lambda row: (str(row["system"]), str(row["test_set"]), str(row["language"]), _rank(row["value"])))
    # As objects: pandas would turn a missing knob into NaN and whole knob values into fractions.
    words = {
        name: pd.Series([row[name] for row in found], dtype=object)
        for name in (*DESCRIPTION, "test_set_sha256", "folder", "scores")
    }
    numbers = {
        name: pd.Series([row.get(name, math.nan) for row in found], dtype=float)
        for name in metric_order({name for row in found for name in row["scores"]})
    }
    scores_column = {"scores": words.pop("scores")}
    return pd.DataFrame({**words, **numbers, **scores_column})


def _rank(value: Any) -> tuple[int, float, str]:
    """Sorts knob values: none first, then numbers, then the rest as text."""
    if value is None:
        return 0, 0.0, ""
    try:
        return 1, float(value), ""
    except (TypeError, ValueError):
        return 2, 0.0, str(value)


def metric_order(names: Iterable[str]) -> list[str]:
    """Metrics in the order of their columns; those not known here come last, by name."""
    known = list(METRICS)
    return sorted(names, key=lambda name: (known.index(name) if name in METRICS else len(known), name))


def metric(name: str) -> Metric:
    """How `name` is shown; a metric not known here is shown as it is, higher is better."""
    return METRICS.get(name, Metric(name, "", 1, 2, True))


def show_knob(value: Any) -> str:
    """A knob's value as it is printed, without the zeros that make a whole number look measured.

    >>> show_knob(2.0)
    '2'
    """
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def to_markdown(frame: pd.DataFrame) -> str:
    """A Markdown table with the best of each column in bold, published numbers in italics, and notes below."""
    headers, body, notes = _cells(frame)
    lines = ["| " + " | ".join(_pipe(h) for h in headers) + " |"]
    lines.append("|" + "|".join("---" if i < len(DESCRIPTION) else "--:" for i in range(len(headers))) + "|")
    for line in body:
        lines.append("| " + " | ".join(_markdown(cell) for cell in line) + " |")
    if notes:
        lines += ["", *(f"[{i}] {note}  " for i, note in enumerate(notes, start=1))]
    return "\n".join(lines) + "\n"


def _pipe(text: str) -> str:
    return text.replace("|", "\\|")


def _markdown(cell: _Cell) -> str:
    text = _pipe(cell.text)
    text = f"*{text}*" if cell.published else text
    text = f"**{text}**" if cell.best else text
    return text if cell.note is None else f"{text} [{cell.note}]"


def to_latex(frame: pd.DataFrame) -> str:
    """A booktabs tabular with the best of each column in bold, published numbers in italics, and notes below."""
    headers, body, notes = _cells(frame)
    alignment = "l" * len(DESCRIPTION) + "r" * (len(headers) - len(DESCRIPTION))
    lines = [r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    lines += [" & ".join(_escaped(h) for h in headers) + r" \\", r"\midrule"]
    lines += [" & ".join(_latex(cell) for cell in line) + r" \\" for line in body]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize [{i}] {_escaped(note)}" for i, note in enumerate(notes, start=1)]
    return "\n".join(lines) + "\n"


def _latex(cell: _Cell) -> str:
    text = _escaped(cell.text)
    text = rf"\textit{{{text}}}" if cell.published else text
    text = rf"\textbf{{{text}}}" if cell.best else text
    return text if cell.note is None else rf"{text}\,[{cell.note}]"


_LATEX = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "↑": r"$\uparrow$", "↓": r"$\downarrow$", MISSING: "--",
    "…": r"\dots{}", "≤": r"$\leq$",
}  # fmt: skip


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def to_csv(frame: pd.DataFrame) -> str:
    """The frame as CSV, values as stored (latencies in ms, columns say so), reasons of missing ones in `missing`."""
    plain = frame.drop(columns="scores")
    plain["missing"] = [
        "; ".join(f"{name}: {score.reason}" for name, score in scores.items() if score.value is None)
        for scores in frame["scores"]
    ]
    in_ms = {name: f"{name}_ms" for name in plain.columns if name in METRICS and METRICS[name].unit == "s"}
    return str(plain.rename(columns=in_ms).to_csv(index=False, lineterminator="\n"))


def _cells(frame: pd.DataFrame) -> tuple[list[str], list[list[_Cell]], list[str]]:
    """Headers, rows of cells and notes: everything the renderers share."""
    lines: list[dict[str, Any]] = [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
    names = metric_order({name for line in lines for name in line["scores"]})
    notes: list[str] = []

    def note(text: str) -> int:
        if text not in notes:
            notes.append(text)
        return notes.index(text) + 1

    best = {name: _best(lines, name) for name in names}
    body = []
    for i, line in enumerate(lines):
        cells = [_Cell(show_knob(line[name]) if name == "value" else str(line[name] or "")) for name in DESCRIPTION]
        for name in names:
            score: Score | None = line["scores"].get(name)
            if score is None:
                cells.append(_Cell(MISSING, note=note(f"{name}: not among the scores of this run")))
            elif score.value is None:
                cells.append(_Cell(MISSING, note=note(f"{name}: {score.reason}")))
            else:
                published = score.origin == "published"
                text = metric(name).show(score.value) + (f"/{score.n}" if name == "SilentSegments" else "")
                number = note(f"{name}: published, {score.source}") if published else None
                cells.append(_Cell(text, i in best[name], published, number))
        body.append(cells)
    for name in names:
        for comparable in _groups(lines):
            signatures = {s.signature for line in comparable if (s := line["scores"].get(name)) and s.value is not None}
            if len(signatures) > 1:
                note(f"{name}: not computed alike in all rows: {'; '.join(sorted(signatures))}")
    return [*DESCRIPTION.values(), *(metric(name).header for name in names)], body, notes


def _group(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["test_set"], line["test_set_sha256"], line["language"]


def _groups(lines: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows on the same test set and language."""
    return [[line for line in lines if _group(line) == key] for key in dict.fromkeys(_group(line) for line in lines)]


def _best(lines: Sequence[dict[str, Any]], name: str) -> set[int]:
    """Rows whose printed value is the best among at least two comparable ones: same test set, language, signature."""
    groups: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    for i, line in enumerate(lines):
        score = line["scores"].get(name)
        if score is not None and score.value is not None and name != "SilentSegments":
            groups.setdefault((*_group(line), score.signature), []).append((float(metric(name).show(score.value)), i))
    result = set()
    for values in groups.values():
        if len(values) > 1:
            top = (max if metric(name).higher_is_better else min)(value for value, _ in values)
            result |= {i for value, i in values if value == top}
    return result
