"""Where the power of an A100 goes in a matrix product: its parts end to end, up to the limit."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.memory_hierarchy import EnergyBudget
from figures import style

COLOURS = {
    "Multiply and add": style.RED,
    "Shared memory": style.BLUE,
    "L2 cache": style.BLUE,
    "HBM": style.BLUE,
    "Idle": style.INK,
    "Unexplained": "none",
}
FADED = {"L2 cache": 0.75, "HBM": 0.5, "Idle": 0.35}


def draw() -> Figure:
    figure = style.figure(height=2.6, narrow_height=2.8)
    axes = figure.subplots()
    start = 0.0
    for row, (name, power) in enumerate(EnergyBudget.parts):
        width = power.m_as("W")
        axes.barh(
            row,
            width,
            left=start,
            height=0.7,
            color=COLOURS[name],
            alpha=FADED.get(name),
            edgecolor=style.INK if name == "Unexplained" else "none",
            linewidth=0.8,
        )
        left = start > EnergyBudget.tdp.m_as("W") / 2
        style.note(
            axes,
            start if left else start + width,
            row,
            str(show(power, "W", 2)),
            (-4 if left else 4, 0),
            ha="right" if left else "left",
            va="center",
        )
        start += width
    limit = EnergyBudget.tdp.m_as("W")
    axes.axvline(limit, color=style.INK, linewidth=0.8, linestyle=":")
    axes.set_xlim(0, 1.03 * limit)
    axes.set_xlabel("Power (W)")
    axes.set_yticks(range(len(EnergyBudget.parts)), [name for name, _ in EnergyBudget.parts])
    axes.set_ylim(len(EnergyBudget.parts) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def alt() -> str:
    parts = listed(f"{name} {show(power, 'W', 2)}" for name, power in EnergyBudget.parts)
    return f"""Horizontal bars, each beginning where the one above it ends, from nothing to the
    design power of {show(EnergyBudget.tdp)}: {parts}. Moving operands takes
    {show(EnergyBudget.movement_share, "%", 2)} of it, arithmetic
    {show(EnergyBudget.arithmetic_share, "%", 2)}."""
