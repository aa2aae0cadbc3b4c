"""Tiles of a product on the processors of an A100: one wave, and two for one more row."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.gemms_chapter import RowMore
from figures import style

ACROSS = 12  # processors in a row of the picture
DOWN = RowMore.units // ACROSS
GAP = 1.6
LOOK = {"edgecolor": (style.INK, 0.5), "linewidth": 0.5}


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.0, narrow_height=2.5)
    axes = style.diagram(
        figure, 3 * (ACROSS + GAP), DOWN + (4.2 if narrow else 3), bottom=-2.2 if narrow else -1.4
    )
    spilled = RowMore.tiles_after - RowMore.units
    for index, tiles in enumerate((RowMore.tiles, RowMore.units, spilled)):
        _wave(axes, index * (ACROSS + GAP), int(tiles))
    rows, more = (show(count) for count in (RowMore.rows, RowMore.more))
    second = ACROSS + GAP
    for left, words, rate, color in (
        (0, f"{rows} rows: {show(RowMore.tiles)} tiles", RowMore.before, style.BLUE),
        (second, f"{more} rows: {show(RowMore.tiles_after)} tiles", RowMore.after, style.ORANGE),
    ):
        text = f"{words}\n{show(rate, digits=3)}"
        text = text.replace(": ", ":\n") if narrow else text
        style.note(axes, left, DOWN + 0.6, text, bold=True, color=color)
    waves = ("one wave", "first wave", f"second wave: {show(int(spilled))}")
    for index, name in enumerate(waves):
        below = name.replace(": ", ":\n") if narrow else name
        style.note(axes, index * (ACROSS + GAP), -0.4, below, va="top")
    return figure


def alt() -> str:
    spilled = int(RowMore.tiles_after - RowMore.units)
    return f"""Grids of the {show(RowMore.units)} processors of an A100, filled where one has a
    tile. With {show(RowMore.rows)} rows the {show(RowMore.tiles)} tiles are one wave, measured at
    {show(RowMore.before, digits=3)}. With {show(RowMore.more)} rows there are
    {show(RowMore.tiles_after)} tiles: the first wave fills the grid, and the second has
    {show(spilled)}, at {show(RowMore.after, digits=3)}."""


def _wave(axes: Axes, left: float, tiles: int) -> None:
    every = [(left + n % ACROSS, DOWN - 1 - n // ACROSS, 0.86, 0.86) for n in range(RowMore.units)]
    style.boxes(axes, every[:tiles], facecolor=(style.BLUE, 0.75), **LOOK)
    if every[tiles:]:
        style.boxes(axes, every[tiles:], facecolor=(style.INK, 0.06), **LOOK)
