"""Time of a token against the device hours it takes, by how many devices share the model."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc.derivations.cost_and_carbon import OneCall
from figures import style

NAMES = {"h100": "H100", "a100": "A100", "tpu-v5p": "TPU v5p"}
LAST = {"h100": "left", "a100": "right", "tpu-v5p": "right"}  # where the last number has room


def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.9)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Time per token (ms), faster to the right")
    style.log_axis(axes, "y", "Device hours for a million tokens")
    for axis, places in ((axes.xaxis, (1, 2, 5, 10, 20, 50)), (axes.yaxis, (0.5, 1, 2, 5))):
        axis.set_major_locator(FixedLocator(places))
    axes.set_xlim(60, 1.1)
    axes.set_ylim(0.45, 5)
    counts = numpy.array(OneCall.devices)
    for key in OneCall.keys:
        made = OneCall.plan(key, counts)
        time = made.time_per_token.upper.m_as("ms")
        paid = (made.devices / made.throughput.lower).m_as("h/Mtoken")
        colour = style.DEVICES[key]
        axes.plot(time, paid, color=colour, linewidth=1.9)
        for count, x, y in zip(counts, time, paid, strict=True):
            last = count == counts[-1]
            axes.annotate(
                f"{count}",
                (x, y),
                xytext=(0, 5) if last else (5, -13),
                textcoords="offset points",
                ha=LAST[key] if last else "center",
                color=colour,
                size=style.SMALL,
            )
        heads = OneCall.devices.index(OneCall.heads.magnitude)
        axes.plot(time[heads], paid[heads], "o", color=colour, markersize=6)
        axes.annotate(
            NAMES[key],
            (time[0], paid[0]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            color=colour,
            size=style.SMALL,
            weight="bold",
        )
    return figure
