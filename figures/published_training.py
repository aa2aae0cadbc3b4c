"""Published training runs beside what is expected of them, and beside their bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from math import nan
from statistics import median
from typing import Any, TypeAlias

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from calc import quantity
from calc.derivations import show
from calc.derivations.predicted_and_measured import expected_of, nearest, system
from calc.published import Comparison
from figures import style

ROWS = expected_of("training")
GENERATIONS = {  # a colour for the devices of a generation, whose names begin so
    "A100": style.ORANGE,
    "H": style.BLUE,
    "GH": style.BLUE,
    "B": style.PURPLE,
    "GB": style.PURPLE,
    "MI": style.GREEN,
    "TPU": style.GREEN,
}
TICKS = (0.25, 0.5, 1, 2, 4)
WIDEST = (0.2, 5.5)  # measured over expected; what is beyond is drawn at the edge
SHORTER = {"TensorRT-LLM": "TRT-LLM", "another program": "other", "up to ": "≤\N{NO-BREAK SPACE}"}
MONTH = re.compile(r"\b\d\d(?P<year>\d\d)-(?P<month>\d\d)\b")
DOT = 3.2  # points
Line: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
System: TypeAlias = tuple[int, Sequence[Comparison]]  # its place from the top, and its rows


@style.drawn_twice
def draw() -> Figure:
    return strips(ROWS, _name)


def alt() -> str:
    return told(ROWS, _name, "training runs")


def _name(row: Comparison) -> str:
    return short(*system(row))


def short(program: str, device: str) -> str:
    """A system by names that are not too wide for a phone."""
    for whole, shorter in SHORTER.items():
        program = program.replace(whole, shorter)
    program = MONTH.sub(lambda found: f"{int(found['month'])}/{found['year']}", program)
    return f"{program}, {device}"


def strips(rows: Sequence[Comparison], name: Callable[[Comparison], str]) -> Figure:
    """A line of dots for each system: measured over expected, and the share of the bound."""
    systems: dict[str, list[Comparison]] = {}
    for row in sorted(rows, key=lambda row: name(row).casefold()):
        systems.setdefault(name(row), []).append(row)
    height = 0.27 * len(systems)
    figure = style.figure(height=height + 1.1, narrow_height=2 * height + 1.9)
    ratios, shares = style.panels(figure, 2, sharey=not style.is_narrow())
    places = [
        (index, _colour(label.split(", ")[-1]), of)
        for index, (label, of) in enumerate(systems.items())
    ]
    whiskers = [line for index, _, of in places for line in _whisker(of, index)]
    _lines(ratios, whiskers, color=style.INK, alpha=0.3, linewidth=1.2)
    for colour in dict.fromkeys(colour for _, colour, _ in places):
        of_colour = [(index, of) for index, of_place, of in places if of_place == colour]
        _dots(ratios, of_colour, colour)
        _spreads(shares, of_colour, colour)
    label = "Measured / expected" if style.is_narrow() else "Measured over expected time"
    style.log_axis(ratios, "x", label)
    ratios.xaxis.set_major_locator(FixedLocator(TICKS))
    ratios.set_xlim(0.16, 7)
    ratios.axvline(1, color=style.INK, linewidth=0.9)
    shares.set_xlim(0, 1)
    shares.xaxis.set_major_formatter(PercentFormatter(1))
    shares.set_xlabel("Share of the bound")
    for axes, letter in ((ratios, "(a)"), (shares, "(b)")):
        axes.set_title(letter, size=style.SMALL, loc="left")
        axes.set_ylim(len(systems) - 0.4, -0.6)
        axes.set_yticks(range(len(systems)), list(systems), size=style.SMALL)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="y", length=0)
    if not style.is_narrow():
        shares.tick_params(labelleft=False)
    return figure


def told(rows: Sequence[Comparison], name: Callable[[Comparison], str], what: str) -> str:
    """The alternative text of the two panels that `strips` draws."""
    high, low = (nearest(rows, name, last) for last in (0, -1))
    off = show(quantity(100 * median(abs(row.error or 0.0) for row in rows), "%"), digits=2)
    return f"""Two panels with a line for each system, {len(rows)} {what} in all. In the first, dots
    of measured over expected time on a logarithmic axis: half of them lie within {off} of the line
    at {show(1)}, and a grey whisker reaches from the bound on the left to the sum of all parts. In
    the second, the share of the bound: a line over all rows, a bar over the middle half, and the
    median, from {show(low[1], digits=2)} for {low[0]} to {show(high[1], digits=2)} for
    {high[0]}."""


def _colour(device: str) -> str:
    return next(
        (colour for name, colour in GENERATIONS.items() if device.startswith(name)), style.INK
    )


def _lines(axes: Axes, lines: Iterable[Line], **look: Any) -> None:
    """Many lines as one path, which makes a lighter drawing than a path for each."""
    points = [point for line in lines for point in (*line, (nan, nan))]
    axes.plot(*zip(*points, strict=True), **look)


def _whisker(rows: Sequence[Comparison], index: int) -> tuple[Line, Line]:
    """Return the median range from bound to no overlap, over the expected time, and its tick."""
    predictions = [row.prediction for row in rows if row.prediction]
    low = median(prediction.lower / (prediction.expected or 1.0) for prediction in predictions)
    high = median(
        (prediction.upper or 1.0) / (prediction.expected or 1.0) for prediction in predictions
    )
    return ((low, index), (high, index)), ((low, index - 0.3), (low, index + 0.3))


def _spreads(axes: Axes, systems: Sequence[System], colour: str) -> None:
    """Draw ranges, middle halves and medians of shares; all dots again would be a heavy page."""
    spreads = [
        (index, numpy.quantile([row.share_of_bound or 0.0 for row in of], (0, 0.25, 0.5, 0.75, 1)))
        for index, of in systems
    ]
    ranges = [((spread[0], index), (spread[4], index)) for index, spread in spreads]
    halves = [((spread[1], index), (spread[3], index)) for index, spread in spreads]
    medians = [((spread[2], index - 0.35), (spread[2], index + 0.35)) for index, spread in spreads]
    _lines(axes, ranges, color=colour, linewidth=1.2)
    _lines(axes, halves, color=colour, linewidth=6, alpha=0.6)
    _lines(axes, medians, color=style.INK, linewidth=1.4)


def _dots(axes: Axes, systems: Sequence[System], colour: str) -> None:
    """Dots as one path of short lines with round ends: many of them stay a light drawing.

    They are spread over the height of their line in five rows, so that dots alike do not hide. A
    path with a curve is one that matplotlib draws point by point, however many it has.
    """
    dots = [
        (min(max(1 + (row.error or 0), WIDEST[0]), WIDEST[1]), index + 0.12 * (count * 2 % 5 - 2))
        for index, of in systems
        for count, row in enumerate(of)
    ]
    vertices, codes = [dots[0]] * 3, [Path.MOVETO, Path.CURVE3, Path.CURVE3]
    for value, y in dots:
        vertices += [(value, y), (value * 1.003, y)]
        codes += [Path.MOVETO, Path.LINETO]
    patch = PathPatch(
        Path(vertices, codes),
        fill=False,
        edgecolor=colour,
        linewidth=DOT,
        alpha=0.6,
        capstyle="round",
        snap=False,
    )
    axes.add_patch(patch)
