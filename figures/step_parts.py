"""Figure of the parts of a decode step's time, by its batch, until memory is full."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.serving_chapter import StepParts
from figures import style

WEIGHTS, CACHES = style.BLUE, style.ORANGE
HIGHEST = 37  # ms
CASES = (  # sizes of a number, and the sequences that fill the memory
    (StepParts.size, StepParts.largest.magnitude),
    (StepParts.short_size, StepParts.largest_short.magnitude),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.7, narrow_height=6.2)
    names = ("Batch (requests decoded together)", "Time of a step (ms)")
    panels = style.shared_panels(figure, 2, *names, sharex=True, sharey=True)
    for axes, (size, most) in zip(panels, CASES, strict=True):
        _panel(axes, size, int(most), f"Weights and caches in {show(size)}")
    return figure


def alt() -> str:
    (size, most), (short_size, most_short) = CASES
    ends = (
        f"{show(sum(StepParts.parts(batch, element)[:2]), digits=2)} ms" for element, batch in CASES
    )
    long, short = ends
    return f"""Panels of the time of a step against the batch: a level band of reading weights
    carries a wedge of reading caches, a dashed line is arithmetic, and a red line is the longer of
    both. With numbers of {show(size)} the wedge grows to {long} at {show(most)} requests, where
    memory is full, and arithmetic stays below. With {show(short_size)} the line of arithmetic
    leaves the wedge behind at {show(StepParts.compute_bound, digits=3)} requests, and the step
    follows it until memory is full at {show(most_short)}, where reading takes {short} and
    arithmetic {show(StepParts.parts(most_short, short_size)[2], digits=2)} ms."""


def _panel(axes: Axes, size: Quantity, most: int, title: str) -> None:
    ends = numpy.array([1, most])
    weights, caches, arithmetic = StepParts.parts(ends, size)
    read, floor = weights + caches, numpy.zeros(2)
    for low, high, colour in ((floor, weights, WEIGHTS), (weights, read, CACHES)):
        band = (*low, *high[::-1])
        axes.fill((*ends, *ends[::-1]), band, color=colour, alpha=0.4, linewidth=0)
    axes.plot(ends, arithmetic, color=style.INK, linewidth=1.2, linestyle=(0, (4, 2)))
    bend = StepParts.compute_bound.magnitude if size == StepParts.short_size else most
    corners = numpy.array([1, bend, most])
    weights, caches, arithmetic = StepParts.parts(corners, size)
    step = numpy.maximum(weights + caches, arithmetic)
    axes.plot(corners, step, color=style.RED, linewidth=2)
    axes.axvline(most, color=style.INK, linewidth=1)
    if bend < most:
        axes.plot(bend, step[1], "o", color=style.RED, markersize=5)
        style.note(axes, 60, 17, f"arithmetic binds\nfrom {bend:.0f} on", (0, 0))
        style.note(axes, 1300, 10, "caches", (0, -4))
        style.note(axes, most, HIGHEST, f"memory is full at {most}", (-5, -14), ha="right")
    else:
        style.note(axes, 400, weights[0] / 2, "weights", (0, -4))
        style.note(axes, 470, 6, "caches", (0, 0))
        style.note(axes, most, step[-1], "the step", (5, -6), color=style.RED, weight="bold")
        style.note(axes, most, arithmetic[-1], "arithmetic", (5, -4))
        style.note(axes, most, HIGHEST, f"memory is full at {most}", (6, -14))
    axes.set_xlim(0, StepParts.most)
    axes.set_ylim(0, HIGHEST)
    axes.set_title(title, loc="left", size=style.SMALL + 0.5)
    axes.yaxis.set_major_locator(MultipleLocator(10))
    axes.xaxis.set_major_locator(MultipleLocator(1000))
