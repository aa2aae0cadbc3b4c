"""Figure of the same elements, read along a row and down a column: the cache lines fetched."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.hardware_aware import OwnQuestions
from figures import style

EACH = int(OwnQuestions.waste.magnitude)  # elements of a line, and elements that are read
COLUMNS = 2 * EACH
ROW, COLUMN = 2, 3  # where both walks begin
CELL, WITHIN = 0.8, 0.95  # of the pitch: a cell, and where another of its line follows
ALONG = tuple((ROW, column) for column in range(EACH))
DOWN = tuple((row, COLUMN) for row in range(EACH))


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.0, narrow_height=4.2)
    panels = style.panels(figure, 2)
    for axes, name, read in zip(
        panels, ("(a) along a row", "(b) down a column"), (ALONG, DOWN), strict=True
    ):
        _matrix(axes, read)
        axes.set_title(f"{name}: {_bytes(read)}", size=style.SMALL)
    for spot, words, colour in (
        (0, "orange: used", style.ORANGE),
        (EACH, "blue: fetched for nothing", style.BLUE),
    ):
        style.note(panels[-1], spot, EACH + 0.8, words, color=colour, va="center")
    return figure


def alt() -> str:
    return f"""A matrix stored by rows, drawn twice, in cache lines of {show(OwnQuestions.line)}
    with {show(EACH)} elements of {show(OwnQuestions.element)}. Reading {show(EACH)} elements along
    a row fetches {show(len(_lines(ALONG)))} line: {_bytes(ALONG)}. Reading {show(EACH)} elements
    down a column fetches {show(len(_lines(DOWN)))} lines: {_bytes(DOWN)}."""


def _lines(read: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """The lines that hold these elements, by row and by place in it."""
    return {(row, column // EACH) for row, column in read}


def _bytes(read: tuple[tuple[int, int], ...]) -> str:
    fetched = len(_lines(read)) * OwnQuestions.line
    return f"{show((len(read) * OwnQuestions.element).m_as('byte'))} of {show(fetched)} used"


def _matrix(axes: Axes, read: tuple[tuple[int, int], ...]) -> None:
    """Elements in their rows: not fetched, fetched, and read, in the order of the arrow."""
    lines = _lines(read)
    everything = [(row, column) for row in range(EACH) for column in range(COLUMNS)]
    fetched = [(row, column) for row, column in everything if (row, column // EACH) in lines]
    idle = [element for element in everything if element not in fetched]
    wasted = [element for element in fetched if element not in read]
    for places, colour, alpha in (
        (idle, style.INK, 0.1),
        (wasted, style.BLUE, 0.4),
        (read, style.ORANGE, 1.0),
    ):
        if places:
            cells = [_cell(*element) for element in places]
            style.boxes(axes, cells, facecolor=colour, alpha=alpha, linewidth=0)
    (first_row, first), *_, (last_row, last) = read
    start, end = (first + CELL / 2, first_row + CELL / 2), (last + CELL / 2, last_row + CELL / 2)
    style.arrow(axes, start, end, color="#ffffff", linewidth=1.2, shrinkB=0)
    for row in range(EACH):
        words = str(row + 1) if row else f"row {row + 1}"
        style.note(axes, -0.3, row + CELL / 2, words, ha="right", va="center")
    axes.set_xlim(-2.2, COLUMNS)
    axes.set_ylim(EACH + 1.2, 0)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _cell(row: int, column: int) -> tuple[float, float, float, float]:
    """An element's square; between lines there is more room."""
    return column, row, WITHIN if (column + 1) % EACH else CELL, CELL
