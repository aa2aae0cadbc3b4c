"""Drawings of figures, read from matplotlib: each value by the thing that it is drawn as.

A value has a name such as `0 line blue.2 last y`: the panel, the kind of mark, its colour, which of
these it is, which of its points, and the axis; `“# tokens each”` is a number that a label prints.
`python -m tests.book.drawings roofline` prints the reading of a figure for `tests/figures.toml`.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite, isnan, nan
from statistics import median
from types import ModuleType
from typing import Any
from unittest import mock

import numpy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedFormatter

from calc.core.units import Quantity
from calc.derivations import show
from figures import style
from tools.ledger.numbers import factor, numbers, unit_of

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


class Given:
    """The magnitudes that calc gave while a figure was drawn, and the numbers that it imports."""

    def __init__(self) -> None:
        self.magnitudes: dict[str, set[float]] = {}
        self.places: dict[tuple[str, float], Any] = {}  # of them all on an axis, in order

    def add(self, unit: str, magnitudes: Any) -> None:
        self.magnitudes.setdefault(unit, set()).update(numpy.ravel(magnitudes).astype(float))

    def hold(self, values: list[float], scale: Scale) -> bool:
        """Return whether each of these places on an axis is a magnitude, in the axis's unit."""
        sorted_values = self.places.get(key := (scale.unit, scale.step))
        if sorted_values is None:
            sorted_values = self.places[key] = numpy.sort([*self._on(scale)])
        sought = numpy.array([value for value in values if value and isfinite(value)])
        near = numpy.searchsorted(sorted_values, sought - 1e-6 * abs(sought)).clip(
            max=len(sorted_values) - 1
        )
        return len(sorted_values) > 0 and bool(
            (abs(sorted_values[near] - sought) <= 1e-6 * abs(sought)).all()
        )

    def _on(self, scale: Scale) -> Iterator[float]:
        for unit, magnitudes in self.magnitudes.items():
            factors = [(factor(unit, scale.unit) or nan) / scale.step]
            if not unit:
                factors = [1, 1 / scale.step, *([100] if scale.unit == "%" else [])]
            yield from (m * by for m in magnitudes for by in factors if not isnan(m * by))


@dataclass(frozen=True)
class Drawing:
    """Marks and scales that are read of a figure."""

    marks: tuple[Mark, ...]
    scales: tuple[Scale, ...]
    names: tuple[str, ...]  # of axes, of rows, and of colours in legends
    given: Given

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

    def own(self) -> set[str]:
        """Return what is drawn at values that calc did not give in the unit of its axis."""
        return {
            name
            for name, scale, values in self._drawn_along()
            if not self.given.hold(values, scale)
        }

    def means(self) -> dict[str, float]:
        """Return the geometric mean of all that has one kind and colour in a panel, on each axis.

        A tenth more of one value shows in its fifth digit.
        """
        magnitudes: dict[str, list[float]] = {}
        for name, _, values in self._drawn_along():
            magnitudes.setdefault(name, []).extend(abs(v) for v in values if v and isfinite(v))
        return {
            name: float(f"{numpy.exp(numpy.mean(numpy.log(values))):.5g}")
            for name, values in magnitudes.items()
            if values
        }

    def _drawn_along(self) -> Iterator[tuple[str, Scale, list[float]]]:
        """Yield what each line, bar and row of dots measures on each axis that shows its ticks."""
        scales = {(scale.panel, scale.axis): scale for scale in self.scales}
        for mark in (m for m in self.marks if m.kind in ("line", "dots", "bar")):
            for axis, at in (("x", 0), ("y", 1)):
                values = [point[at] for point in mark.points if not isnan(point[at])]
                if mark.kind == "bar":
                    values = [values[1] - values[0]]
                if (scale := scales[mark.panel, axis]).is_shown:
                    yield f"{mark.panel} {mark.kind} {mark.colour} {axis}", scale, values

    def order(self) -> list[str]:
        """Return what stands in each panel from left to right and up: marks alike, then words.

        Two series exchanged, two labels exchanged, and one left out give another order or number.
        """
        names_in_order = []
        for panel in range(-1, len(self.scales) // 2):
            alike: dict[str, list[Point]] = {}
            words: list[tuple[Point, str]] = []
            for mark, name in self._named():
                if mark.panel == panel and mark.kind == "text":
                    words += [(_rounded(point), name) for point in mark.points[:1]]
                elif mark.panel == panel:
                    alike.setdefault(name, []).append(_middle(mark.points))
            marks = [(_middle(places), f"{len(places)} {name}") for name, places in alike.items()]
            names_in_order += [f"{panel}: {name}" for _, name in sorted(marks) + sorted(words)]
        return [" ".join(name.split()) for name in (*names_in_order, *self.names)]

    def _named(self) -> Iterator[tuple[Mark, str]]:
        """Yield marks with their names; words that differ in numbers alone have their rank too."""
        alike: dict[tuple[int, str], list[list[float]]] = {}
        read = {mark: [n.value for n in numbers(mark.text)] for mark in self.marks if mark.text}
        for mark, values in read.items():
            alike.setdefault((mark.panel, _template(mark.text)), []).append(values)
        for mark in self.marks:
            if mark.kind != "text":
                yield mark, f"{mark.kind} {mark.colour}"
                continue
            words = _template(mark.text)
            others = sorted(alike[mark.panel, words])
            rank = f".{others.index(read[mark]) + 1}" if len(others) > 1 else ""
            yield mark, f"“{words}”{rank}"

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
        marks = [m for m in self.marks if (str(m.panel), m.kind, m.colour) == (panel, kind, colour)]
        points = sorted(marks[int(which or 1) - 1].points)
        places, heights = numpy.log(numpy.array(points)).T
        return float(numpy.exp(numpy.interp(numpy.log(x), places, heights)))


def _template(text: str) -> str:
    """Words of a label with # for each number."""
    for number in reversed(list(numbers(text))):
        text = f"{text[: number.start]}#{text[number.start + len(number.digits) :]}"
    return text


def _middle(points: Sequence[Point]) -> Point:
    """Return the middle of points on both axes, 0 on one where none has a place."""
    x, y = ([point[at] for point in points if not isnan(point[at])] for at in (0, 1))
    return _rounded((median(x or [0]), median(y or [0])))


def _rounded(point: Point) -> Point:
    return float(f"{point[0]:.5g}"), float(f"{point[1]:.5g}")


def _of_label(text: str, seen: Counter[str]) -> Iterator[tuple[str, Value]]:
    printed_numbers = list(numbers(text))
    words = _template(text)
    seen[words] += 1
    again = f".{seen[words]}" if seen[words] > 1 else ""
    for position, number in enumerate(printed_numbers, 1):
        which = f" {position}" if len(printed_numbers) > 1 else ""
        yield f"“{words}”{again}{which}", Value(number.value, number.unit)


def _of_points(values: list[float], kind: str) -> Iterator[tuple[str, float]]:
    finite = [value for value in values if not isnan(value)]
    if kind == "bar":
        yield from (("start ", values[0]), ("end ", values[1]), ("size ", values[1] - values[0]))
    elif len(values) == 1:
        yield from (("", value) for value in finite)
    elif finite:
        yield from (("first ", values[0]), ("last ", values[-1]))
        yield from (("least ", min(finite)), ("most ", max(finite)))
        if len(values) <= 60:
            yield from ((f"{position} ", value) for position, value in enumerate(values, 1))


@cache
def drawing(name: str) -> Drawing:
    """Return the drawing of a figure of the book."""
    return of(*drawn(importlib.import_module(f"figures.{name}")))


@cache
def shown(name: str) -> Counter[float]:
    """Return how often show() prints each number while a figure's module writes its alt text."""
    module = importlib.import_module(f"figures.{name}")
    counts: Counter[float] = Counter()

    def recorded(*values: Any, **options: Any) -> Any:
        text = show(*values, **options)
        counts.update(number.value for number in numbers(str(text)))
        return text

    with mock.patch.object(module, "show", recorded, create=True):
        module.alt()
    return counts


def of(figure: Figure, computed: Given) -> Drawing:
    return Drawing(tuple(_marks(figure)), tuple(scales(figure)), tuple(_names(figure)), computed)


def drawn(module: ModuleType) -> tuple[Figure, Given]:
    """Return a figure, and all that its module had from calc for it."""
    computed = Given()

    def recorded(self: Quantity) -> Any:
        computed.add(str(self.units), self._magnitude)
        return self._magnitude

    Quantity.magnitude = property(recorded)  # type: ignore[assignment]
    try:
        figure: Figure = module.draw()
    finally:
        del Quantity.magnitude
    for name, value in vars(module).items():
        if not name.startswith("__"):
            _collect(value, computed, depth=4)
    return figure, computed


def _collect(value: Any, computed: Given, depth: int) -> None:
    """Add the numbers and quantities that derivations and records hold to those given."""
    of_calc = getattr(value, "__module__", "") or type(value).__module__
    parts: Any = ()
    match value:
        case Quantity():
            computed.add(str(value.units), value._magnitude)
        case bool():
            pass
        case int() | float() | numpy.number():
            computed.add("", value)
        case numpy.ndarray() if value.dtype.kind in "if":
            computed.add("", value)
        case list() | tuple():
            parts = value
        case dict():
            parts = value.values()
        case _ if str(of_calc).startswith("calc.") and hasattr(value, "__dict__"):
            parts = [part for name, part in vars(value).items() if not name.startswith("__")]
    for part in parts if depth else ():
        _collect(part, computed, depth - 1)


def scales(figure: Figure) -> Iterator[Scale]:
    for panel, axes in enumerate(figure.axes):
        for which, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            low, high = map(float, sorted(axis.get_view_interval()))
            kind, words, shown = axis.get_scale(), label(axis), bool(_ticks(axis))
            yield Scale(panel, which, kind, words, *_unit(axis), (low, high), shown)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """The ticks that can be seen, with their words."""
    if not axis.axes.axison or not axis.get_visible():
        return []
    low, high = sorted(axis.get_view_interval())
    places = [float(location) for location in axis.get_majorticklocs()]
    words = axis.get_major_formatter().format_ticks(places)
    return [(p, word) for p, word in zip(places, words, strict=True) if low <= p <= high]


def _unit(axis: Axis) -> tuple[str, float]:
    """The unit that the ticks or the label of an axis state, and what a step of one is in that."""
    for location, word in _ticks(axis):
        labelled = list(numbers(word))
        if (
            location
            and len(labelled) == 1
            and labelled[0].unit
            and word.endswith(labelled[0].printed)
        ):
            return labelled[0].unit, labelled[0].value / location
    stated = label(axis)
    if named := re.search(r"(?:\(|, )([^(),]+?)(?:, or .*)?(?:\)| \(logarithmic\))\s*$", stated):
        return unit_of(named[1]), 1
    return "", 1


def label(axis: Axis) -> str:
    """Return the label of an axis, of those that share it, or of the whole figure."""
    axes, is_x = axis.axes, axis is axis.axes.xaxis
    shared = (axes.get_shared_x_axes() if is_x else axes.get_shared_y_axes()).get_siblings(axes)
    labels = [(each.xaxis if is_x else each.yaxis).get_label_text() for each in (axes, *shared)]
    whole = axes.figure.get_supxlabel() if is_x else axes.figure.get_supylabel()
    title = axes.get_title() if is_x else ""
    texts = [*labels, whole, title]
    return next((words for words in texts if "(" in words), next(filter(None, texts), ""))


def _names(figure: Figure) -> Iterator[str]:
    for panel, axes in enumerate(figure.axes):
        for which, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            if words := label(axis):
                yield f"{panel} {which}: {words}"
            if isinstance(axis.get_major_formatter(), FixedFormatter):
                yield from (f"{panel} {which}: {word}" for _, word in _ticks(axis) if word)
    for legend in [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]:
        pairs = zip(legend.legend_handles, legend.get_texts(), strict=True)
        yield from (f"{_colour(_of_handle(handle))}: {text.get_text()}" for handle, text in pairs)


def _of_handle(handle: Any) -> Any:
    return handle.get_facecolor() if isinstance(handle, Patch) else handle.get_color()


def _marks(figure: Figure) -> Iterator[Mark]:
    for panel, axes in enumerate(figure.axes):
        for line in axes.lines:
            alone = line.get_linestyle() in ("None", "none", "", " ")
            points: Any = numpy.transpose([numpy.asarray(data, float) for data in line.get_data()])
            if line.get_transform() != axes.transData:  # a level, in shares of the other axis
                level = line.get_transform() == axes.get_yaxis_transform(which="grid")
                points = [(nan, points[0][1]) if level else (points[0][0], nan)]
            yield _mark(panel, "dots" if alone else "line", line.get_color(), points)
        yield from _areas(panel, axes)
    for text in figure.findobj(Text):
        if words := " ".join(text.get_text().split()):
            panel = figure.axes.index(text.axes) if text.axes in figure.axes else -1
            yield Mark(panel, "text", to_hex(text.get_color()), _place(text), words)


def _place(text: Text) -> tuple[Point, ...]:
    """Return the place of a text in the data of its panel, of none where it stands outside."""
    axes = text.axes
    if axes is None:
        return ()
    if isinstance(text, Annotation) and text.xycoords == "data":
        return ((float(text.xy[0]), float(text.xy[1])),)
    return (
        tuple(
            axes.transData.inverted().transform(text.get_transform().transform(text.get_position()))
        ),
    )


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
        offsets = [(float(x), float(y)) for x, y in numpy.asarray(collection.get_offsets(), float)]
        if len(offsets) > 1 or any(map(any, offsets)):
            yield _mark(panel, "dots", colour, offsets)
        else:
            for path in collection.get_paths():
                yield _mark(panel, "band", colour, path.vertices)


def _mark(panel: int, kind: str, colour: Any, points: Any) -> Mark:
    return Mark(panel, kind, _colour(colour), tuple((float(x), float(y)) for x, y in points))


def _colour(colour: Any) -> str:
    return COLOURS.get(to_hex(colour), to_hex(colour))


def reading(name: str) -> str:
    """Return the tables of a figure for tests/figures.toml, where its numbers are left open."""
    drawn, alt = drawing(name), importlib.import_module(f"figures.{name}").alt()
    listed = {"axes": drawn.axes(), "numbers": ["" for _ in numbers(alt)], "order": drawn.order()}
    lines = [f"[{name}]", *(f"{key} = {_list(names)}" for key, names in listed.items())]
    if strays := sorted(drawn.own()):
        means = drawn.means()
        lines += [f"[{name}.own]", *(f"{json.dumps(each)} = {means[each]}" for each in strays)]
    return "\n".join(lines)


def _list(names: Sequence[str]) -> str:
    """Return the names as a list of TOML, in lines of at most a hundred characters."""
    items = [f"{json.dumps(name, ensure_ascii=False)}, " for name in names]
    if sum(map(len, items)) < 80:
        return f"[{''.join(items)[:-2]}]"
    lines = ["    "]
    for item in items:
        if len(lines[-1] + item.rstrip()) > 100:
            lines.append("    ")
        lines[-1] += item
    return "\n".join(["[", *map(str.rstrip, lines), "]"])


if __name__ == "__main__":
    for figure_name in sys.argv[1:]:
        print(reading(figure_name))
