"""Drawings of figures, read from matplotlib: each value by the thing that it is drawn as.

A value has a name such as `0 line blue.2 last y`: the panel, the kind of mark, its colour, which of
these it is, which of its points, and the axis; `“# tokens each”` is a number that a label prints.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import isnan, nan
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from figures import style
from tools.ledger.numbers import numbers, unit_of

COLOURS = {
    getattr(style, name): name.lower()
    for name in ("INK", "BLUE", "ORANGE", "GREEN", "PURPLE", "RED")
}
Point = tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """One thing that is drawn: a line, dots, a bar, a band or a word."""

    panel: int
    kind: str
    colour: str
    points: tuple[Point, ...] = ()  # NaN where it has a place on one axis alone
    text: str = ""


@dataclass(frozen=True)
class Scale:
    """An axis of a panel: its unit, and what a step of one on it is in that."""

    panel: int
    axis: str
    kind: str
    label: str
    unit: str
    step: float
    limits: tuple[float, float]
    is_shown: bool


@dataclass(frozen=True)
class Value:
    """A number that is drawn; "" is the unit of a pure one, and where the axis names none."""

    value: float
    unit: str


@dataclass(frozen=True)
class Drawing:
    """Marks and scales that are read of a figure."""

    marks: tuple[Mark, ...]
    scales: tuple[Scale, ...]

    @property
    def is_log(self) -> bool:
        return any(scale.kind == "log" for scale in self.scales)

    def axes(self) -> list[str]:
        """The scale and the unit of each panel's axes, `-` for one that shows no number."""
        each = [
            f"{'log ' * (scale.kind == 'log')}{scale.unit or 1}" if scale.is_shown else "-"
            for scale in self.scales
        ]
        return [f"{x} × {y}" for x, y in zip(each[::2], each[1::2], strict=True)]

    def values(self) -> dict[str, Value]:
        """Each drawn value by its name."""
        return dict(self._values())

    def _values(self) -> Iterator[tuple[str, Value]]:
        scales = {(scale.panel, scale.axis): scale for scale in self.scales}
        for scale in self.scales:
            for end, limit in zip(("low", "high"), scale.limits, strict=True):
                if scale.is_shown:
                    name = f"{scale.panel} limit {scale.axis} {end}"
                    yield name, Value(limit * scale.step, scale.unit)
        seen: Counter[str] = Counter()
        dots: dict[int, list[Point]] = {}
        for mark in self.marks:
            if mark.kind == "text":
                yield from _of_label(mark.text, seen)
                continue
            name = f"{mark.panel} {mark.kind} {mark.colour}"
            seen[name] += 1
            name += f".{seen[name]}" if seen[name] > 1 else ""
            if mark.kind == "dots":
                dots.setdefault(mark.panel, []).extend(mark.points)
                yield f"{name} number", Value(len(mark.points), "")
            for axis, at in (("x", 0), ("y", 1)):
                scale = scales[mark.panel, axis]
                for point, value in _of_points([point[at] for point in mark.points], mark.kind):
                    yield f"{name} {point}{axis}", Value(value * scale.step, scale.unit)
        for panel, points in dots.items():
            yield f"{panel} dots", Value(len(points), "")
            for axis, at in (("x", 0), ("y", 1)):
                scale = scales[panel, axis]
                values = [point[at] * scale.step for point in points if not isnan(point[at])]
                yield f"{panel} dots least {axis}", Value(min(values, default=nan), scale.unit)
                yield f"{panel} dots most {axis}", Value(max(values, default=nan), scale.unit)
        for (panel, kind), number in Counter((m.panel, m.kind) for m in self.marks).items():
            if kind in ("line", "bar"):
                yield f"{panel} {kind}s", Value(number, "")
        yield "panels", Value(len(self.scales) / 2, "")

    def at(self, name: str, x: float) -> float:
        """The height of a line at a place, between its points as a logarithmic axis has it."""
        panel, kind, colour = name.split()
        colour, _, which = colour.partition(".")
        found = [m for m in self.marks if (str(m.panel), m.kind, m.colour) == (panel, kind, colour)]
        points = sorted(found[int(which or 1) - 1].points)
        places, heights = numpy.log(numpy.array(points)).T
        return float(numpy.exp(numpy.interp(numpy.log(x), places, heights)))


def _of_label(text: str, seen: Counter[str]) -> Iterator[tuple[str, Value]]:
    found = list(numbers(text))
    words = text
    for number in reversed(found):
        end = number.start + len(number.digits)
        words = f"{words[: number.start]}#{words[end:]}"
    seen[words] += 1
    again = f".{seen[words]}" if seen[words] > 1 else ""
    for place, number in enumerate(found, 1):
        which = f" {place}" if len(found) > 1 else ""
        yield f"“{words}”{again}{which}", Value(number.value, number.unit)


def _of_points(values: list[float], kind: str) -> Iterator[tuple[str, float]]:
    known = [value for value in values if not isnan(value)]
    if kind == "bar":
        yield from (("start ", values[0]), ("end ", values[1]), ("size ", values[1] - values[0]))
    elif len(values) == 1:
        yield from (("", value) for value in known)
    elif known:
        yield from (("first ", values[0]), ("last ", values[-1]))
        yield from (("least ", min(known)), ("most ", max(known)))
        if len(values) <= 60:
            yield from ((f"{place} ", value) for place, value in enumerate(values, 1))


@cache
def drawing(name: str) -> Drawing:
    """Return the drawing of a figure of the book."""
    figure: Figure = importlib.import_module(f"figures.{name}").draw()
    return of(figure)


def of(figure: Figure) -> Drawing:
    return Drawing(tuple(_marks(figure)), tuple(_scales(figure)))


def _scales(figure: Figure) -> Iterator[Scale]:
    for panel, axes in enumerate(figure.axes):
        for which, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            low, high = map(float, sorted(axis.get_view_interval()))
            kind, label, shown = axis.get_scale(), _label(axis), bool(_ticks(axis))
            yield Scale(panel, which, kind, label, *_unit(axis), (low, high), shown)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """The ticks that can be seen, with their words."""
    if not axis.axes.axison or not axis.get_visible():
        return []
    low, high = sorted(axis.get_view_interval())
    places = [float(place) for place in axis.get_majorticklocs()]
    words = axis.get_major_formatter().format_ticks(places)
    return [(p, word) for p, word in zip(places, words, strict=True) if low <= p <= high]


def _unit(axis: Axis) -> tuple[str, float]:
    """The unit that the ticks or the label of an axis state, and what a step of one is in that."""
    for place, word in _ticks(axis):
        found = list(numbers(word))
        if place and len(found) == 1 and found[0].unit and word.endswith(found[0].printed):
            return found[0].unit, found[0].value / place
    label = _label(axis)
    if named := re.search(r"(?:\(|, )([^(),]+?)(?:, or .*)?(?:\)| \(logarithmic\))\s*$", label):
        return unit_of(named[1]), 1
    return "", 1


def _label(axis: Axis) -> str:
    """Return the label of an axis, of those that share it, or of the whole figure."""
    axes, is_x = axis.axes, axis is axis.axes.xaxis
    shared = (axes.get_shared_x_axes() if is_x else axes.get_shared_y_axes()).get_siblings(axes)
    labels = [(each.xaxis if is_x else each.yaxis).get_label_text() for each in (axes, *shared)]
    whole = axes.figure.get_supxlabel() if is_x else axes.figure.get_supylabel()
    title = axes.get_title() if is_x else ""
    given = [*labels, whole, title]
    return next((label for label in given if "(" in label), next(filter(None, given), ""))


def _marks(figure: Figure) -> Iterator[Mark]:
    for panel, axes in enumerate(figure.axes):
        for line in axes.lines:
            alone = line.get_linestyle() in ("None", "none", "", " ")
            points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
            if line.get_transform() != axes.transData:  # a level, in shares of the other axis
                level = line.get_transform() == axes.get_yaxis_transform(which="grid")
                points = [(nan, points[0][1]) if level else (points[0][0], nan)]
            yield _mark(panel, "dots" if alone else "line", line.get_color(), points)
        yield from _areas(panel, axes)
    for text in figure.findobj(Text):
        if words := " ".join(text.get_text().split()):
            panel = figure.axes.index(text.axes) if text.axes in figure.axes else -1
            yield Mark(panel, "text", to_hex(text.get_color()), text=words)


def _areas(panel: int, axes: Axes) -> Iterator[Mark]:
    for patch in axes.patches:
        if isinstance(patch, Rectangle):
            x, y = patch.get_xy()
            ends = [(x, y), (x + patch.get_width(), y + patch.get_height())]
            yield _mark(panel, "bar", patch.get_facecolor(), ends)
        else:
            yield _mark(panel, "band", patch.get_facecolor(), patch.get_path().vertices)
    for collection in axes.collections:
        colours = [*collection.get_facecolor(), *collection.get_edgecolor()]
        colour = colours[0] if len(colours) else "black"
        offsets = [(float(x), float(y)) for x, y in collection.get_offsets()]
        if len(offsets) > 1 or any(map(any, offsets)):
            yield _mark(panel, "dots", colour, offsets)
        else:
            for path in collection.get_paths():
                yield _mark(panel, "band", colour, path.vertices)


def _mark(panel: int, kind: str, colour: Any, points: Any) -> Mark:
    named = COLOURS.get(to_hex(colour), to_hex(colour))
    return Mark(panel, kind, named, tuple((float(x), float(y)) for x, y in points))
