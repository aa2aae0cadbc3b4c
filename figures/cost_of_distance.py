"""Latency, bandwidth and energy by level of memory: the same slope three times."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.memory_hierarchy import MemoryHierarchy
from calc.units import Quantity
from figures import style

PANELS = {
    "latency": ("Latency (ns)", "ns", MemoryHierarchy.latency_span),
    "bandwidth": ("Bandwidth (GB/s)", "GB/s", MemoryHierarchy.bandwidth_span),
    "energy_per_word": ("Energy of a word (pJ)", "pJ", MemoryHierarchy.energy_span),
}


def draw() -> Figure:
    figure = style.figure(height=3.3)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (field, (title, unit, span)) in zip(panels, PANELS.items(), strict=True):
        _panel(axes, field, unit)
        axes.set_title(title)
        axes.set_xlabel(f"{show(span, digits=2)}× from end to end")
    return figure


def _panel(axes: Axes, field: str, unit: str) -> None:
    levels = [level for level in MemoryHierarchy.levels if level.latency is not None]
    found = [(row, getattr(level, field)) for row, level in enumerate(levels)]
    points: list[tuple[int, Quantity]] = [(row, value) for row, value in found if value is not None]
    rows, values = [row for row, _ in points], [value.m_as(unit) for _, value in points]
    style.log_axis(axes, "x", "", decades=2)
    axes.plot(values, rows, "-o", color=style.RED, linewidth=1, markersize=5)
    rising = values[-1] > values[0]
    axes.set_xlim(min(values) / (3 if rising else 2000), max(values) * (2000 if rising else 3))
    for row, value in points:
        axes.annotate(
            str(show(value, digits=3)),
            (value.m_as(unit), row),
            xytext=(6 if rising else -6, 2),
            textcoords="offset points",
            ha="left" if rising else "right",
            size=style.SMALL,
        )
    axes.set_yticks(range(len(levels)), [level.name for level in levels])
    axes.set_ylim(len(levels) - 0.6, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)
