"""What a precision costs on the digits: less than the next seed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from calc import formats
from calc.derivations.simulating import PrecisionCost
from figures import style

NAMES = {key: formats.get(key).name for key in style.PRECISIONS}
# What makes answers change: in FP32 another seed, and else the precision.
CHANGES = {key: f"to {name}" for key, name in NAMES.items()} | {"fp32": "next seed"}


def draw() -> Figure:
    figure = style.figure(height=2.8, narrow_height=5.2)
    left, right = style.panels(figure, 2)
    for place, (precision, colour) in enumerate(style.PRECISIONS.items()):
        accuracy = [100 * each for each in PrecisionCost.accuracy[precision]]
        # Equal seeds stand above each other, so that none hides the next.
        lift = place + numpy.linspace(-0.28, 0.28, len(accuracy))
        left.plot(accuracy, lift, "o", color=colour, alpha=0.45, markersize=3.5, mew=0)
        left.errorbar(
            statistics.mean(accuracy),
            place,
            xerr=statistics.stdev(accuracy),
            color=style.INK,
            marker="|",
            markersize=14,
            linewidth=1.2,
            capsize=3,
        )
        changed = PrecisionCost.changed[precision]
        right.plot(changed, lift, "o", color=colour, alpha=0.45, markersize=3.5, mew=0)
    left.set_xlabel("Test accuracy, trained in it (%)")
    right.set_xlabel(f"Answers of {PrecisionCost.test_samples} that change")
    right.set_xlim(left=-0.5)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.set_yticks(range(len(NAMES)), NAMES.values())
    right.set_yticks(range(len(CHANGES)), CHANGES.values())
    for axes in (left, right):
        axes.set_ylim(len(NAMES) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=style.INK, alpha=0.12, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure


def alt() -> str:
    accuracies = (
        f"{name} {min(found):.1%} to {max(found):.1%}, {statistics.mean(found):.1%} on average"
        for precision, name in NAMES.items()
        for found in [PrecisionCost.accuracy[precision]]
    )
    changes = (
        f"{label} {_span(found)}"
        for precision, label in CHANGES.items()
        for found in [PrecisionCost.changed[precision]]
    )
    return f"""Panels of dots with the precisions as rows, a dot for each of {PrecisionCost.seeds}
    seeds. In the first the test accuracy of networks that were trained in a precision:
    {"; ".join(accuracies)}. In the second, of {PrecisionCost.test_samples} answers, those that
    change: {"; ".join(changes)}."""


def _span(counts: Sequence[float]) -> str:
    least, most = min(counts), max(counts)
    return f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"
