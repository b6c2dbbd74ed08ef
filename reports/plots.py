"""Quality against latency: every run a point, every system a line, and which points nobody beats.

Drawn from the same rows as the tables (`reports.tables.rows`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.extras import needs_extra
from reports.labels import place_labels
from reports.tables import metric, show_knob

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from reports.score import Score

logger = logging.getLogger(__name__)

# Okabe & Ito 2008: told apart with any common colour blindness; the marker says it again in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# IWSLT's simultaneous track: low is up to 2 s, high up to 4 s (2026: all pairs; 2025: de and cs, others later).
REGIMES = ((2.0, "low latency"), (4.0, "high latency"))
GREY = "#6e6e6e"


def pareto_front(points: Sequence[tuple[float, float]], higher_is_better: bool) -> list[bool]:
    """For each (latency, quality): is there no other point that is nowhere worse and somewhere better?

    Lower latency is better; `higher_is_better` speaks of the quality. Equal points are on the front together.

    >>> pareto_front([(1.0, 20.0), (2.0, 25.0), (3.0, 22.0)], higher_is_better=True)
    [True, True, False]
    """
    sign = 1 if higher_is_better else -1
    best = float("-inf")  # quality reached at a strictly lower latency
    front = [False] * len(points)
    order = sorted(range(len(points)), key=lambda i: (points[i][0], -sign * points[i][1]))
    latency, at_latency = float("-inf"), float("-inf")
    for i in order:
        if points[i][0] != latency:
            best = max(best, at_latency)
            latency, at_latency = points[i][0], sign * points[i][1]
        front[i] = sign * points[i][1] == at_latency and at_latency > best
    return front


def plot_pareto(
    frame: pd.DataFrame,
    path_without_suffix: Path,
    quality: str = "WER",
    latency: str = "StreamLAAL",
    title: str | None = None,
    intervals: bool = False,
) -> list[Path]:
    """Draw `quality` against `latency` of the runs in `frame` and write PNG and SVG; returns their paths.

    Better is up and left. Points on the front over all systems are filled, the others hollow; a point's label is its
    knob value; with `intervals` a cross shows the 95 % intervals of its two scores. Runs without one of the two scores
    are left out with a warning. Raises ValueError if none is left, if they are of several test sets or languages,
    KeyError for a metric nobody has, MissingExtra without matplotlib.
    """
    with needs_extra("plot"):
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    frame = _drawable(frame, quality, latency)
    scale_x, scale_y = metric(latency).scale, metric(quality).scale
    points = [(x * scale_x, y * scale_y) for x, y in zip(frame[latency], frame[quality], strict=True)]
    front = pareto_front(points, metric(quality).higher_is_better)
    crosses = [(_ends(s[latency], scale_x), _ends(s[quality], scale_y)) for s in frame["scores"]] if intervals else []

    # A Figure of our own instead of pyplot: no window system, no state that outlives the call.
    with matplotlib.rc_context({"font.size": 9, "svg.hashsalt": "hikari"}):
        figure = Figure(figsize=(5.2, 3.7), dpi=200, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw_systems(axes, list(frame["system"]), points, front)
        _draw_crosses(axes, list(frame["system"]), points, crosses)
        corners = [corner for cross in crosses for corner in zip(*cross, strict=True)]
        names = _decorate(axes, [*points, *corners], quality, latency)
        axes.set_title(title or _title(frame, quality, latency), fontsize=10)
        handles = _legend_handles(dict(zip(frame["system"], frame["knob"], strict=True)))
        # Long names take two columns, to stay inside the figure.
        columns = 2 if max(len(handle.get_label()) for handle in handles) > 24 else 3
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(columns, len(handles)), frameon=False, fontsize=8
        )
        canvas.draw()  # the layout is known only now, and labels are placed in pixels
        labels = [show_knob(value) for value in frame["value"]]
        place_labels(axes, canvas.get_renderer(), points, labels, _label_colours(list(frame["system"])), names)
        return _save(figure, path_without_suffix)


def _drawable(frame: pd.DataFrame, quality: str, latency: str) -> pd.DataFrame:
    for name in (quality, latency):
        if name not in frame.columns:
            known = ", ".join(dict.fromkeys(m for scores in frame["scores"] for m in scores))
            raise KeyError(f"none of these runs has the score '{name}'. They have: {known or 'none'}")
    missing = frame[quality].isna() | frame[latency].isna()
    for folder in frame["folder"][missing]:
        logger.warning("%s is not drawn: its %s or %s is missing", folder, quality, latency)
    frame = frame[~missing]
    if frame.empty:
        raise ValueError(f"nothing to draw: no run has both {quality} and {latency}")
    kinds = sorted({f"{t} ({x})" for t, x in zip(frame["test_set"], frame["language"], strict=True)})
    if len(kinds) > 1:
        raise ValueError(f"these runs cannot share a figure, they are of: {', '.join(kinds)}. Choose one.")
    return frame


def _draw_systems(
    axes: Axes, systems: Sequence[str], points: Sequence[tuple[float, float]], front: Sequence[bool]
) -> None:
    """One line a system through its points in their order, a marker a point: filled on the front, else hollow."""
    for number, system in enumerate(dict.fromkeys(systems)):
        colour, marker = _style(number)
        mine = [i for i, name in enumerate(systems) if name == system]
        axes.plot(
            [points[i][0] for i in mine], [points[i][1] for i in mine],
            color=colour, linewidth=1.2, alpha=0.6, zorder=2,
        )  # fmt: skip
        for i in mine:
            axes.plot(
                *points[i], linestyle="none", marker=marker, markersize=5.5, markeredgewidth=1.2, zorder=3,
                markeredgecolor=colour, markerfacecolor=colour if front[i] else "white",
            )  # fmt: skip


def _ends(score: Score, scale: float) -> tuple[float, float]:
    """The ends of a score's 95 % interval as they are drawn; both are its value if it has none."""
    assert score.value is not None, "only runs with both scores are drawn"
    low, high = score.interval or (score.value, score.value)
    return low * scale, high * scale


def _draw_crosses(
    axes: Axes,
    systems: Sequence[str],
    points: Sequence[tuple[float, float]],
    crosses: Sequence[tuple[tuple[float, float], tuple[float, float]]],
) -> None:
    number = {system: i for i, system in enumerate(dict.fromkeys(systems))}
    for system, (x, y), (across, up) in zip(systems, points, crosses, strict=False):
        thin: dict[str, Any] = dict(color=_style(number[system])[0], linewidth=0.7, alpha=0.45, zorder=1.5)
        axes.plot(across, (y, y), **thin)
        axes.plot((x, x), up, **thin)


def _style(number: int) -> tuple[str, str]:
    return COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]


def _label_colours(systems: Sequence[str]) -> list[tuple[float, ...]]:
    """A label's colour is its system's, darker: small print in the palette's yellow is hard to read."""
    from matplotlib.colors import to_rgb

    number = {system: i for i, system in enumerate(dict.fromkeys(systems))}
    return [tuple(0.7 * channel for channel in to_rgb(_style(number[system])[0])) for system in systems]


def _legend_handles(knob_of: dict[str, str | None]) -> list[Any]:
    """An entry a system, with the knob whose values label its points, and one that explains hollow markers."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=_style(number)[0],
            marker=_style(number)[1],
            markersize=5,
            linewidth=1.2,
            label=f"{system} ({knob})" if knob else system,
        )
        for number, (system, knob) in enumerate(knob_of.items())
    ]
    hollow = Line2D(
        [], [], linestyle="none", marker="o", markersize=5, markerfacecolor="white", markeredgecolor=GREY,
        label="dominated",
    )  # fmt: skip
    return [*handles, hollow]


def _decorate(axes: Axes, points: Sequence[tuple[float, float]], quality: str, latency: str) -> list[Any]:
    """Axes, their names and limits, the regimes; returns the texts that labels must not cover."""
    shown_x, shown_y = metric(latency), metric(quality)
    xs, ys = [x for x, _ in points], [y for _, y in points]
    regimes = REGIMES if shown_x.unit == "s" else ()
    right = max([*xs, *(x for x, _ in regimes)])
    axes.set_xlim(min([0.0, *xs]), right * 1.06 or 1.0)
    spread = (max(ys) - min(ys)) or max(abs(max(ys)) * 0.1, 1.0)
    # More room at the top, where the regimes are named.
    worse, better = spread * 0.1, spread * 0.2
    if shown_y.higher_is_better:
        axes.set_ylim(min(ys) - worse, max(ys) + better)
    else:
        axes.set_ylim(max(ys) + worse, min(ys) - better)
    axes.set_xlabel(f"{shown_x.title} ({shown_x.unit}), lower is better" if shown_x.unit else shown_x.title)
    unit = f" ({shown_y.unit})" if shown_y.unit else ""
    turned = "" if shown_y.higher_is_better else ", axis inverted"
    axes.set_ylabel(f"{shown_y.title}{unit}, up is better{turned}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, linewidth=0.4, color="#dddddd")
    axes.set_axisbelow(True)
    names = []
    for x, name in regimes:
        axes.axvline(x, linestyle=(0, (4, 3)), linewidth=0.9, color=GREY, zorder=1)
        text = axes.annotate(
            f"{name} ≤ {x:g} s", (x, 1), xycoords=("data", "axes fraction"), xytext=(-3, -2),
            textcoords="offset points", ha="right", va="top", fontsize=7, color=GREY,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
        names.append(text)
    return names


def _title(frame: pd.DataFrame, quality: str, latency: str) -> str:
    first = frame.iloc[0]
    where = f" on {first['test_set']}" if first["test_set"] else ""
    return f"{metric(quality).title} against {metric(latency).title}{where}" + (
        f" ({first['language']})" if first["language"] else ""
    )


def _save(figure: Any, path_without_suffix: Path) -> list[Path]:
    """Write both formats, each under a temporary name first."""
    path_without_suffix.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in ("png", "svg"):
        # Not with_suffix: a name like "curve_0.5" has a dot of its own.
        path = path_without_suffix.with_name(f"{path_without_suffix.name}.{kind}")
        temporary = path.with_name(f".{path.name}.part")
        # Without the date the same rows give the same file.
        figure.savefig(temporary, format=kind, metadata={"Date": None} if kind == "svg" else None)
        temporary.replace(path)
        paths.append(path)
    return paths
