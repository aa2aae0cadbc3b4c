"""Time of a token against the device hours it takes, by how many devices share the model."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc import quantity
from calc.derivations import show
from calc.derivations.cost_and_carbon import MoreDevices, OneCall
from figures import style

MILLION = show(quantity(1e6, "token"))
NAMES = {"h100": "H100", "a100": "A100", "tpu-v5p": "TPU v5p"}
HEADS = OneCall.devices.index(OneCall.heads.magnitude)
LAST = {"h100": "left", "a100": "right", "tpu-v5p": "right"}  # where the last number has room


def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.9)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Time per token (ms), faster to the right")
    style.log_axis(axes, "y", f"Device hours for {MILLION}")
    for axis, places in ((axes.xaxis, (1, 2, 5, 10, 20, 50)), (axes.yaxis, (0.5, 1, 2, 5))):
        axis.set_major_locator(FixedLocator(places))
    axes.set_xlim(60, 1.1)
    axes.set_ylim(0.45, 5)
    counts = OneCall.devices
    for key in OneCall.keys:
        time, paid = _paid(key)
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
        axes.plot(time[HEADS], paid[HEADS], "o", color=colour, markersize=6)
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


def alt() -> str:
    heads = OneCall.heads.magnitude
    turns = (
        f"{NAMES[key]} {show(time[0], digits=2)} and {show(time[HEADS], digits=2)} ms at "
        f"{show(paid[0], digits=2)} and {show(paid[HEADS], digits=2)} hours"
        for key in OneCall.keys
        for time, paid in [_paid(key)]
    )
    return f"""Log-log plot of the device hours for {MILLION} against the time per token, faster to
    the right: a line for each kind of device, from {OneCall.devices[0]} devices at the left to
    {OneCall.devices[-1]} at the right. From {OneCall.devices[0]} devices to a dot at {show(heads)}
    the lines are nearly level: {"; ".join(turns)}. From there they bend upwards:
    {OneCall.devices[-1]} H100s take {show(MoreDevices.dearest, digits=2)} times the hours of
    {OneCall.devices[0]} and are {show(MoreDevices.fastest, digits=2)} times as fast."""


def _paid(key: str) -> tuple[Any, Any]:
    """Milliseconds for a token, and device hours for a million, by the number of devices."""
    made = OneCall.plan(key, numpy.array(OneCall.devices))
    paid = (made.devices / made.throughput.lower).m_as("h/Mtoken")
    return made.time_per_token.upper.m_as("ms"), paid
