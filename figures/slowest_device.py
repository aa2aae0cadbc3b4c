"""What the slowest of many devices adds to a step, by the spread of their times."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.training_at_scale import OtherFailures
from figures import style

COUNTS = tuple(2**power for power in range(18))
COLOURS = (style.GREEN, style.BLUE, style.RED)


def draw() -> Figure:
    figure = style.figure(height=2.7, narrow_height=3.0)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Devices that meet in every step")
    for deviation, colour in zip(OtherFailures.deviations, COLOURS, strict=True):
        added = [OtherFailures.waiting(count, deviation).m_as("%") for count in COUNTS]
        axes.plot(COUNTS, added, color=colour)
        style.note(
            axes,
            COUNTS[-1] * 1.15,
            added[-1],
            str(show(deviation)),
            color=colour,
            bold=True,
            va="center",
        )
    axes.set_xlim(1, COUNTS[-1] * 3)
    axes.set_ylim(0, None)
    axes.set_ylabel("Added to the mean step (%)")
    return figure


def alt() -> str:
    most = COUNTS[-1]
    ends = listed(
        f"{show(OtherFailures.waiting(most, spread), digits=2)} where times spread by"
        f" {show(spread)}"
        for spread in OtherFailures.deviations
    )
    return f"""Three curves of what waiting for the slowest device adds to the mean step, by the
    number of devices from {COUNTS[0]} to {most}, on a logarithmic axis. They rise steeply at first
    and then slowly, and end at {ends}."""
