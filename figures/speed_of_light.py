"""What light in fibre leaves of a latency budget: round trips between real places."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import links
from calc.core.formatting import listed
from calc.core.units import Quantity, quantity
from calc.derivations import show
from calc.derivations.numbers_to_know import ReachOfBudgets
from figures import style

UNIT = "ms"
LENGTH = "km"
EDGES = (0.5, 1000)
TOP = -1.5  # the row above the first, for the names of the budgets
LENGTHS = (100, 1000, 10_000)  # that the upper axis names


def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Round trip of light in fibre ({UNIT})")
    axes.set_xlim(*EDGES)
    narrow = style.is_narrow()
    rows = range(len(ReachOfBudgets.places))
    _budgets(axes, [TOP, *rows] if narrow else [])
    for row, (name, _, time) in enumerate(ReachOfBudgets.places):
        _place(axes, row, time)
        if narrow:
            text = f"{name}, {show(time, UNIT, digits=2)}"
            style.note(axes, EDGES[0], row, text, (0, 6))
    names = [f"{name}, {show(length, LENGTH)}" for name, length, _ in ReachOfBudgets.places]
    axes.set_yticks([] if narrow else rows, [] if narrow else names)
    axes.set_ylim(rows[-1] + 0.5, TOP)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _lengths(axes)
    return figure


def alt() -> str:
    places = (
        f"{name.replace(' – ', ' to ')} at {show(length, LENGTH)} and {show(time, UNIT, digits=2)}"
        for name, length, time in ReachOfBudgets.places
    )
    budgets = listed(f"{show(budget)} for {name}" for name, budget in ReachOfBudgets.budgets)
    late = listed(name for name, _, time in ReachOfBudgets.places if time > ReachOfBudgets.click)
    return f"""Dots on a logarithmic axis of the round trip of light in fibre, with the length of
    the path on a second one, a row for each path: {listed(places)}. Vertical lines are budgets:
    {budgets}. What is dotted between a place and the line of a click is the time left for servers
    and networks; {late.replace(" – ", " to ")} lies beyond that line."""


def _budgets(axes: Axes, rows: list[float]) -> None:
    """A line for each budget; where rows are given, pieces of it that leave room for names."""
    for name, budget in ReachOfBudgets.budgets:
        x = budget.m_as(UNIT)
        for row in rows:
            axes.plot([x, x], [row - 0.1, row + 0.3], color=style.RED, linewidth=1.4)
        if not rows:
            axes.axvline(x, color=style.RED, linewidth=1.4)
        left = budget is not ReachOfBudgets.voice
        style.note(
            axes,
            x,
            TOP,
            f"{name}\n{show(budget)}",
            (-4 if left else 4, -2),
            ha="right" if left else "left",
            va="top",
            color=style.RED,
            bold=True,
            linespacing=1.15,
        )


def _place(axes: Axes, row: int, time: Quantity) -> None:
    """A path up to its dot, and beyond it, dotted, what a click has left."""
    x, click = time.m_as(UNIT), ReachOfBudgets.click.m_as(UNIT)
    axes.plot([EDGES[0], x], [row, row], color=style.INK, linewidth=1.6)
    if x < click:
        axes.plot([x, click], [row, row], ":", color=style.INK, linewidth=1)
    axes.plot(x, row, "o", color=style.INK, markersize=6, zorder=5)
    if not style.is_narrow():
        style.note(
            axes,
            min(x, click),
            row,
            f"{show(time, UNIT, digits=2)}",
            (-4, 4),
            ha="right",
            va="bottom",
        )


def _lengths(axes: Axes) -> None:
    """The same axis as the length of a path."""
    upper = axes.twiny()
    style.log_axis(upper, "x", f"Length of the path ({LENGTH})")
    upper.grid(visible=False)
    upper.set_xlim(*EDGES)
    ticks = [links.round_trip_time(quantity(length, LENGTH)).m_as(UNIT) for length in LENGTHS]
    upper.set_xticks(ticks, [style.plain(length) for length in LENGTHS])
    upper.spines["left"].set_visible(False)
    upper.spines["top"].set_visible(True)
