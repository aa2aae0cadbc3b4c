"""A tile of the output, what it keeps, and what passes by."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc.derivations import show
from calc.derivations.gemms_chapter import TILE, TileOnSM
from figures import style

SIZE = 4.0  # of the drawn output, in units of the drawing
DEEP = 5.0  # of the inputs along k
GAP = 0.8
ROW, COLUMN = 1.0, 2.0  # where the tile begins, from the top left of the output
HIGH, WIDE = 1.0, 0.6  # of the tile
SLICE = 0.8, 0.35  # of the step along k: where it begins, and how far it goes


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.2, narrow_height=5.6)
    axes = figure.subplots()
    left, top = DEEP + GAP, -(DEEP + GAP)  # where the output begins, with inputs left and above
    _matrix(axes, 0, 0, DEEP, SIZE, "A: m × k")
    _matrix(axes, left, DEEP + GAP, SIZE, DEEP, "B: k × n")
    _matrix(axes, left, 0, SIZE, SIZE, "C: m × n")
    _block(axes, 0, ROW, DEEP, HIGH, style.BLUE, 0.2)
    _block(axes, SLICE[0], ROW, SLICE[1], HIGH, style.BLUE, 0.9)
    _block(axes, left + COLUMN, top, WIDE, DEEP, style.GREEN, 0.2)
    _block(axes, left + COLUMN, top + SLICE[0], WIDE, SLICE[1], style.GREEN, 0.9)
    _block(axes, left + COLUMN, ROW, WIDE, HIGH, style.ORANGE, 0.9)
    rows, columns = TILE
    sums = f"the tile: {rows} × {columns}\nsums, {show(TileOnSM.sums)}\nof registers"
    _note(axes, left + 0.2, ROW + HIGH + 1.1, sums, style.ORANGE)
    slice_a = f"a slice: {rows} × {TileOnSM.step},\nused {columns} times"
    _note(axes, 0.2, ROW + HIGH + 1.1, slice_a, style.BLUE)
    slice_b = f"a slice: {TileOnSM.step} × {columns},\nused {rows} times"
    _note(axes, left + 0.2, top + SLICE[0] + 2.4, slice_b, style.GREEN)
    fits = f"{TileOnSM.stages} slices of both at a time:\n{show(TileOnSM.staged)} of shared memory"
    _note(axes, 0.2, top + 2.0, fits, style.INK)
    axes.set_xlim(-0.2, left + SIZE + 0.2)
    axes.set_ylim(SIZE + 0.7, top - 0.2)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


def alt() -> str:
    rows, columns = TILE
    return f"""The output C of a matrix product with the inputs A to its left and B above it. A tile
    of {rows} × {columns} elements of C is marked, the band of {rows} rows of A beside it and the
    band of {columns} columns of B above it. In each band a slice of {TileOnSM.step} elements along
    k is filled: each element of the slice of A is used {columns} times, each of B {rows} times. The
    sums of the tile take {show(TileOnSM.sums)} of registers, and {TileOnSM.stages} slices of both
    inputs {show(TileOnSM.staged)} of shared memory."""


def _matrix(axes: Axes, left: float, above: float, wide: float, high: float, name: str) -> None:
    axes.add_patch(Rectangle((left, -above), wide, high, fill=False, edgecolor=style.INK))
    style.note(axes, left + wide, -above + high + 0.12, name, ha="right", va="top")


def _block(
    axes: Axes, left: float, down: float, wide: float, high: float, colour: str, alpha: float
) -> None:
    axes.add_patch(Rectangle((left, down), wide, high, color=colour, alpha=alpha, linewidth=0))


def _note(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    style.note(axes, x, y, text, color=colour, va="center")
