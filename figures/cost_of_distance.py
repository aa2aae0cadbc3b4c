"""Latency, bandwidth and energy by level of memory: the same slope three times."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.memory_hierarchy_chapter import Level, MemoryHierarchy
from figures import style

PANELS = {
    "latency": ("Latency (ns)", "ns", MemoryHierarchy.latency_span),
    "bandwidth": ("Bandwidth (GB/s)", "GB/s", MemoryHierarchy.bandwidth_span),
    "energy_per_word": ("Energy of a word (pJ)", "pJ", MemoryHierarchy.energy_span),
}
SHORT_NAMES = {"L1 and shared memory": "L1"}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.3, narrow_height=6.4)
    panels = style.panels(figure, 3, sharey=True)
    for axes, (field, (title, unit, span)) in zip(panels, PANELS.items(), strict=True):
        _panel(axes, field, unit)
        times = f"{show(span, digits=2)}×"
        axes.set_title(f"{title}, {times}" if style.is_narrow() else title)
        axes.set_xlabel("" if style.is_narrow() else f"{times} from end to end")
    return figure


def alt() -> str:
    ways = []
    for field, (title, unit, span) in PANELS.items():
        (_, first), *_, (_, last) = _points(field)
        ways.append(
            f"{title.split(' (')[0].lower()} {'rises' if last > first else 'falls'} from "
            f"{show(first, unit, digits=3)} to {show(last, unit, digits=3)}, a factor of "
            f"{show(span, digits=2)}"
        )
    return f"""Panels of dots on logarithmic axes, with the levels of memory as rows:
    {listed(level.name for level in _levels())}. Away from the arithmetic, {"; ".join(ways)}."""


def _levels() -> list[Level]:
    return [level for level in MemoryHierarchy.levels if level.bandwidth is not None]


def _points(field: str) -> list[tuple[int, Quantity]]:
    """The rows of the levels whose value is known, and the values."""
    rows = [(row, getattr(level, field)) for row, level in enumerate(_levels())]
    return [(row, value) for row, value in rows if value is not None]


def _panel(axes: Axes, field: str, unit: str) -> None:
    levels, points = _levels(), _points(field)
    rows, values = [row for row, _ in points], [value.m_as(unit) for _, value in points]
    style.log_axis(axes, "x", "", decades=2)
    axes.plot(values, rows, "-", color=style.RED, linewidth=1)
    rising = values[-1] > values[0]
    room = 2000 if style.is_narrow() else 8000  # for the names beside the last points
    axes.set_xlim(min(values) / (3 if rising else room), max(values) * (room if rising else 3))
    for row, value in points:
        _point(axes, row, value, unit, rising)
    names = [level.name for level in levels]
    if style.is_narrow():
        names = [SHORT_NAMES.get(name, name) for name in names]
    axes.set_yticks(range(len(levels)), names)
    axes.set_ylim(len(levels) - 0.6, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)


def _point(axes: Axes, row: int, value: Quantity, unit: str, rising: bool) -> None:
    """A value at its place; an estimate is a diamond."""
    estimate = value.provenance is not None and value.provenance.kind == "estimate"
    x = value.m_as(unit)
    axes.plot(x, row, "D" if estimate else "o", markersize=5.5, color=style.RED, zorder=3)
    style.note(
        axes,
        x,
        row,
        f"{'≈ ' if estimate else ''}{show(value, digits=3)}",
        (7 if rising else -7, 2),
        ha="left" if rising else "right",
    )
