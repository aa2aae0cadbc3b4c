"""An exchange of experts on a switch, over rails between servers, and on a torus."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.collectives_chapter import OnTorus
from calc.derivations.expert_traffic import OpeningLayer, ThreeFabrics
from figures import style

SIDE = OnTorus.side
DOT: dict[str, Any] = {"marker": "o", "markersize": 8, "linestyle": "none"}


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.9, narrow_height=7.2)
    panels = style.panels(figure, 3)
    for axes, picture, name, text, time in zip(
        panels,
        (_switch, _rails, _torus),
        ("A switch", "Rails", "A torus"),
        ("every pair at full pace", "a port for each GPU", "half crosses the middle"),
        (OpeningLayer.by_rack, OpeningLayer.by_servers, ThreeFabrics.on_torus),
        strict=True,
    ):
        style.canvas(axes, 3.5, 3.9, left=-0.5, bottom=-1.35)
        if narrow:
            axes.set_aspect("equal")
        picture(axes)
        style.note(axes, -0.4, 3.6, name, bold=True)
        words = f"{text}\n{show(time, digits=2)} a layer"
        style.note(axes, 1.5, -0.75, words, ha="center", va="top", color=style.ORANGE)
    return figure


def alt() -> str:
    return f"""Panels of an exchange. On a switch lines lead from each device of two rows to one box
    between them: {show(OpeningLayer.by_rack, digits=2)}. Of servers, each a box of devices, a line
    of its own leads from each device to its like in the other server:
    {show(OpeningLayer.by_servers, digits=2)}. On a torus of side {show(SIDE)} each device has lines
    to its neighbours alone, a line marks the middle: {show(ThreeFabrics.on_torus, digits=2)}."""


def _dots(axes: Axes, places: list[tuple[float, float]]) -> None:
    axes.plot(*zip(*places, strict=True), color=style.BLUE, **DOT)


def _lines(axes: Axes, pairs: list[tuple[tuple[float, float], tuple[float, float]]]) -> None:
    for start, end in pairs:
        ends = zip(start, end, strict=True)
        axes.plot(*ends, color=style.INK, linewidth=1.2, alpha=0.5, zorder=1)


def _switch(axes: Axes) -> None:
    rows = [[(float(x), y) for x in range(SIDE)] for y in (0.0, 3.0)]
    middles = [(x, 1.3 if y < 1 else 1.7) for row in rows for x, y in row]
    _lines(axes, list(zip(rows[0] + rows[1], middles, strict=True)))
    style.card(axes, (-0.4, 1.2), (3.8, 0.6), "NVSwitch", style.GREEN, 0.3)
    _dots(axes, rows[0] + rows[1])


def _rails(axes: Axes) -> None:
    for low in (-0.35, 2.65):
        style.card(axes, (-0.4, low), (3.8, 0.7), color=style.INK, alpha=0.06)
    rows = [[(float(x), y) for x in range(SIDE)] for y in (0.0, 3.0)]
    _lines(axes, list(zip(rows[0], rows[1], strict=True)))
    for x in range(SIDE):
        style.card(axes, (x - 0.2, 1.2), (0.4, 0.6), color=style.GREEN, alpha=0.3)
    _dots(axes, rows[0] + rows[1])


def _torus(axes: Axes) -> None:
    every = [(float(x), float(y)) for x in range(SIDE) for y in range(SIDE)]
    steps = [((x, y), (x + 1, y)) for x, y in every if x < SIDE - 1]
    steps += [((x, y), (x, y + 1)) for x, y in every if y < SIDE - 1]
    ends = [((-0.45, y), (SIDE - 0.55, y)) for y in map(float, range(SIDE))]
    ends += [((x, -0.45), (x, SIDE - 0.55)) for x in map(float, range(SIDE))]
    _lines(axes, steps + ends)
    axes.plot([1.5, 1.5], [-0.5, 3.45], color=style.RED, linewidth=1.6, dashes=(3, 2))
    _dots(axes, every)
