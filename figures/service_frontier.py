"""Figure of the device time of an output token against the limit on its time, by machine."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc import machines
from calc.derivations import show
from calc.derivations.service_under_load import MACHINES, AskedService, ServiceFrontier, paid
from figures import style

COLORS = dict(zip(MACHINES, (style.ORANGE, style.BLUE, style.GREEN, style.PURPLE), strict=True))
NAMES = {key: machines.get(key).device.key.upper() for key in MACHINES}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.2, narrow_height=3.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Limit on the time of a token (ms)")
    style.log_axis(axes, "y", "GPU hours per Mtoken")
    axes.xaxis.set_major_locator(FixedLocator((20, 50, 100, 200)))
    axes.yaxis.set_major_locator(FixedLocator((0.2, 0.5, 1, 2, 5)))
    limits = ServiceFrontier.limits.m_as("ms")
    for key, color in COLORS.items():
        axes.plot(limits, ServiceFrontier.of(key).magnitude, color=color, linewidth=1.8)
        limit = AskedService.tpot.m_as("ms")
        axes.plot(limit, paid(key).magnitude, "o", color=color, markersize=5)
        axes.annotate(
            NAMES[key],
            (limits[-1], ServiceFrontier.of(key).magnitude[-1]),
            xytext=(5, 0),
            textcoords="offset points",
            color=color,
            va="center",
            annotation_clip=False,
        )
    axes.set_xlim(limits[0], limits[-1])
    axes.set_ylim(0.15, 6.5)
    return figure


def alt() -> str:
    def ends(key: str) -> str:
        prices = ServiceFrontier.of(key).magnitude
        first = next(index for index, price in enumerate(prices) if math.isfinite(price))
        limit, most, least = ServiceFrontier.limits[first], prices[first], prices[-1]
        return (
            f"{NAMES[key]} from {show(most, digits=2)} at {show(limit)} to {show(least, digits=2)}"
        )

    return f"""Log-log plot of GPU hours per Mtoken of output against the limit on the time of a
    token, a falling curve for each machine, steep on the left and nearly level on the
    right: {"; ".join(map(ends, MACHINES))}. Dots above the curves are the designs of the
    table."""
