"""The memories of one machine as a pyramid: what each holds, and how long it takes to answer."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import approximately, show
from calc.derivations.memory_hierarchy import Level, MemoryHierarchy
from figures import style

TIER = 1.0
GAP = 0.12
TOP = 0.52  # how wide the first level is, of the width of the base
COLUMNS = {"Capacity": 0.645, "Latency": 0.83, "Bandwidth": 1.0}
PLACES = [("on the\nchip", 0, 3), ("in the\npackage", 3, 4), ("in the\nbox", 4, 6)]


def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=3.9)
    axes = figure.subplots()
    axes.set_axis_off()
    (_narrow if style.is_narrow() else _wide)(axes, MemoryHierarchy.levels)
    return figure


def alt() -> str:
    levels = (
        f"{level.name}: {', '.join(value or 'unknown' for value in _values(level))}"
        for level in MemoryHierarchy.levels
    )
    return f"""A pyramid whose levels are the wider the farther they are from the arithmetic, from
    the chip to the box. Beside each stand its {listed(map(str.lower, COLUMNS))}.
    {"; ".join(levels)}."""


def _wide(axes: Axes, levels: tuple[Level, ...]) -> None:
    """The pyramid with the names in it, and a table to its right."""
    for row, level in enumerate(levels):
        _tier(axes, row, len(levels), centre=0.25, half=0.25)
        axes.text(0.25, _middle(row), level.name, ha="center", va="center", weight="bold")
        for x, value in zip(COLUMNS.values(), _values(level), strict=True):
            axes.text(x, _middle(row), value or "–", ha="right", va="center")
    for title, x in COLUMNS.items():
        axes.text(x, 0.3, title, ha="right", weight="bold", size=style.SMALL)
    for place, first, last in PLACES:
        top, bottom = _middle(first) + TIER / 2, _middle(last - 1) - TIER / 2
        axes.plot([-0.04, -0.04], [top, bottom], color=style.INK, linewidth=0.8)
        axes.text(-0.06, (top + bottom) / 2, place, ha="right", va="center", size=style.SMALL)
    axes.set_xlim(-0.17, 1.0)
    axes.set_ylim(_middle(len(levels)) + 0.4, 0.7)


def _narrow(axes: Axes, levels: tuple[Level, ...]) -> None:
    """The pyramid alone, as wide as the page, with the values under each name."""
    for row, level in enumerate(levels):
        _tier(axes, row, len(levels), centre=0.5, half=0.5)
        axes.text(0.5, _middle(row) + 0.2, level.name, ha="center", va="center", weight="bold")
        values = " · ".join(value for value in _values(level) if value)
        axes.text(0.5, _middle(row) - 0.22, values, ha="center", va="center", size=style.SMALL)
    axes.set_xlim(0, 1)
    axes.set_ylim(_middle(len(levels)) + 0.4, 0)


def _middle(row: int) -> float:
    return -row * (TIER + GAP) - TIER / 2


def _tier(axes: Axes, row: int, count: int, centre: float, half: float) -> None:
    """A slice of the pyramid, from its apex at the first level to its base at the last."""
    top_width = 0.66 if style.is_narrow() else TOP
    upper = half * (top_width + (1 - top_width) * row / count)
    lower = half * (top_width + (1 - top_width) * (row + 1 - GAP) / count)
    top, bottom = _middle(row) + TIER / 2, _middle(row) - TIER / 2
    corners = [
        (centre - upper, top),
        (centre + upper, top),
        (centre + lower, bottom),
        (centre - lower, bottom),
    ]
    strength = 0.55 - 0.45 * row / (count - 1)  # the faster, the darker
    axes.add_patch(Polygon(corners, facecolor=style.RED, alpha=strength, edgecolor="none"))


def _values(level: Level) -> list[str]:
    return [_short(value) for value in (level.capacity, level.latency, level.bandwidth)]


def _short(value: Quantity | None) -> str:
    if value is None:
        return ""
    estimate = value.provenance is not None and value.provenance.kind == "estimate"
    return str(approximately(value, 3) if estimate else show(value, digits=3))
