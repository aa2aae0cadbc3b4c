"""The memories of one machine as a pyramid: what each holds, and how long it takes to answer."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from calc.derivations import show
from calc.derivations.memory_hierarchy import Level, MemoryHierarchy
from calc.units import Quantity
from figures import style

TIER = 1.0
GAP = 0.12
CENTRE, HALF = 0.25, 0.25
COLUMNS = {"Capacity": 0.66, "Latency": 0.83, "Bandwidth": 1.0}
PLACES = [("on the\nchip", 0, 3), ("in the\npackage", 3, 4), ("in the\nbox", 4, 6)]


def draw() -> Figure:
    figure = style.figure(height=3.5)
    axes = figure.subplots()
    axes.set_axis_off()
    levels = MemoryHierarchy.levels
    for row, level in enumerate(levels):
        _tier(axes, level, row, len(levels))
        values = [level.capacity, level.latency, level.bandwidth]
        for x, value in zip(COLUMNS.values(), values, strict=True):
            axes.text(x, _middle(row), _short(value), ha="right", va="center")
    for title, x in COLUMNS.items():
        axes.text(x, 0.3, title, ha="right", weight="bold", size=style.SMALL)
    for place, first, last in PLACES:
        _place(axes, place, first, last)
    axes.set_xlim(-0.17, 1.0)
    axes.set_ylim(_middle(len(levels)) + 0.4, 0.7)
    return figure


def _middle(row: int) -> float:
    return -row * (TIER + GAP) - TIER / 2


def _tier(axes: Axes, level: Level, row: int, count: int) -> None:
    """A slice of the pyramid, from its apex at the first level to its base at the last."""
    upper = HALF * (0.52 + 0.48 * row / count)
    lower = HALF * (0.52 + 0.48 * (row + 1 - GAP) / count)
    top, bottom = _middle(row) + TIER / 2, _middle(row) - TIER / 2
    corners = [
        (CENTRE - upper, top),
        (CENTRE + upper, top),
        (CENTRE + lower, bottom),
        (CENTRE - lower, bottom),
    ]
    strength = 0.55 - 0.45 * row / (count - 1)  # the faster, the darker
    axes.add_patch(Polygon(corners, facecolor=style.RED, alpha=strength, edgecolor="none"))
    axes.text(CENTRE, _middle(row), level.name, ha="center", va="center", weight="bold")


def _place(axes: Axes, place: str, first: int, last: int) -> None:
    top, bottom = _middle(first) + TIER / 2, _middle(last - 1) - TIER / 2
    axes.plot([-0.04, -0.04], [top, bottom], color=style.INK, linewidth=0.8)
    axes.text(-0.06, (top + bottom) / 2, place, ha="right", va="center", size=style.SMALL)


def _short(value: Quantity | None) -> str:
    return "–" if value is None else str(show(value, digits=3))
