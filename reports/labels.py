"""Places short labels beside points of a figure so that they cover neither points, lines nor each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

# Eight directions, nearest first, in typographic points from the middle of the marker to the label's nearest edge.
DISTANCES = (5.0, 8.0, 12.0, 17.0, 23.0)
DIRECTIONS = [(math.cos(a), math.sin(a)) for a in (math.pi / 4 * k for k in (1, 7, 3, 5, 2, 6, 0, 4))]
MARKER_RADIUS = 4.5


def place_labels(
    axes: Axes,
    renderer: Any,
    points: Sequence[tuple[float, float]],
    labels: Sequence[str],
    colours: Sequence[Any],
    avoid: Sequence[Any] = (),
) -> None:
    """Annotate each of `points` (data coordinates) with its label and colour, in the nearest free place around it.

    Covering a label, a marker or one of the `avoid` texts costs most, leaving the axes as much, crossing a line
    little, distance least. Greedy in the order given; the axes must have been laid out.
    """
    from matplotlib.transforms import Bbox

    pixel = axes.figure.dpi / 72  # of a typographic point
    centres = [(float(x), float(y)) for x, y in axes.transData.transform(list(points))]
    radius = MARKER_RADIUS * pixel
    markers = [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in centres]
    solid = markers + [text.get_window_extent(renderer) for text in avoid]
    lines = [(x, y) for line in axes.lines for x, y in _samples(line, axes)]
    for (x, y), centre, label, colour in zip(points, centres, labels, colours, strict=True):
        if not label:
            continue
        text = axes.annotate(
            label, (x, y), xytext=(0, 0), textcoords="offset points", ha="left", va="bottom",
            fontsize=7, color=colour, zorder=4,
        )  # fmt: skip
        size = text.get_window_extent(renderer)
        chosen = min(
            _places(size.width / pixel, size.height / pixel),
            key=lambda place: _cost(_moved(size, centre, place, pixel), place, solid, lines, axes.bbox),
        )
        text.set_position(chosen[:2])
        solid.append(_moved(size, centre, chosen, pixel))


def _places(width: float, height: float) -> Iterator[tuple[float, float, float]]:
    """Lower left corners of a label relative to its point, in typographic points, and how far out they are."""
    for distance in DISTANCES:
        for across, up in DIRECTIONS:
            # The label hangs off the end of the arrow: on its far side, or centred where the arrow is upright or level.
            left = distance * across + (0 if across > 0.1 else -width if across < -0.1 else -width / 2)
            bottom = distance * up + (0 if up > 0.1 else -height if up < -0.1 else -height / 2)
            yield left, bottom, distance


def _moved(size: Bbox, centre: tuple[float, float], place: tuple[float, float, float], pixel: float) -> Bbox:
    from matplotlib.transforms import Bbox

    left, bottom = centre[0] + place[0] * pixel, centre[1] + place[1] * pixel
    return Bbox.from_bounds(left, bottom, size.width, size.height)


def _cost(
    box: Bbox,
    place: tuple[float, float, float],
    solid: Sequence[Bbox],
    lines: Sequence[tuple[float, float]],
    frame: Bbox,
) -> float:
    covered = sum(box.x0 < o.x1 and o.x0 < box.x1 and box.y0 < o.y1 and o.y0 < box.y1 for o in solid)
    outside = not (frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1)
    crossed = sum(box.x0 < x < box.x1 and box.y0 < y < box.y1 for x, y in lines)
    return 1000 * covered + 1000 * outside + 20 * min(crossed, 5) + place[2]


def _samples(line: Any, axes: Axes) -> Iterator[tuple[float, float]]:
    """Points along a drawn line, about every four pixels."""
    corners = [(float(x), float(y)) for x, y in line.get_transform().transform(line.get_xydata())]
    for (x0, y0), (x1, y1) in pairwise(corners):
        n = max(1, int(math.hypot(x1 - x0, y1 - y0) / 4))
        yield from ((x0 + (x1 - x0) * k / n, y0 + (y1 - y0) * k / n) for k in range(n + 1))
