"""A comparison as a drawing: each entry over its batches, and the front of cost against time."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from calc.core.errors import InputError
from calc.planning.comparing.compare import devices
from calc.planning.comparing.report import label
from calc.planning.drawing import COLORS, INK, STYLE, loaded_matplotlib
from calc.planning.report import RANGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calc.planning.comparing.compare import Comparison

PAID = {"cost_per_token": "Cost", "energy_per_token": "Energy"}
APART = 0.11  # of the height of the axes, from one label of two lines to the next


def draw(found: Comparison) -> Figure:
    """The entries of a comparison as curves over their batches, and the front of all as a band."""
    if not found.paid:
        raise InputError(
            "a front holds cost against time, and neither a price is given nor a power published:"
            ' give price ("3 USD/hour")'
        )
    matplotlib = loaded_matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        best = sorted((p for plans in found.front.values() for p in plans), key=found.latency)
        points = [(found.latency(each), found.price(each)) for each in best]
        axes.step(*zip(*points, strict=True), where="post", color=INK, alpha=0.2, linewidth=7)
        ends = []
        for place, entry in enumerate(found.has(found.paid)):
            color, plan = COLORS[place % len(COLORS)], found.plan_of(entry)
            points = [(found.latency(each), found.price(each)) for each in entry.curve]
            axes.plot(*zip(*points, strict=True), "o-", color=color, markersize=3.5, linewidth=1.5)
            end = found.latency(plan), found.price(plan)
            axes.plot(*end, "o", color=color, markersize=7)
            text = f"{label(found, entry)}\n{devices(plan)}, batch {plan.batch}"
            ends.append((end, text, color))
        for axis in ("x", "y"):
            _logarithmic(axes, axis, matplotlib.ticker.FuncFormatter(_plain))
        axes.set_xlabel("Time per token (ms)")
        axes.set_ylabel(f"{PAID[found.paid]} ({RANGES[found.paid][1]})")
        _label(axes, ends)
    return figure


def _logarithmic(axes: Any, which: str, formatter: Callable[..., str]) -> None:
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(formatter)
    axis.get_minor_locator().set_params(subs=(2, 3, 5))
    axes.grid(axis=which, which="both", color=INK, alpha=0.12, linewidth=0.6)


def _plain(value: float, _: int) -> str:
    return f"{value:g}"


def _label(axes: Any, ends: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Each curve's name beside the axes, as high as its end is, or as near as others allow."""
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) for end, _, _ in ends]
    taken = 2.0
    for height, (end, text, color) in sorted(zip(heights, ends, strict=True), reverse=True):
        taken = min(height, taken - APART)
        axes.annotate(
            text,
            end,
            xytext=(1.04, taken),
            textcoords="axes fraction",
            va="center",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6},
        )
