"""Figure of the wait of the slowest hundredth, by how busy the servers of one queue are."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

from calc import quantity, queueing
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.service_under_load import PromptQueue, busiest
from figures import style

SERVICE = quantity(1, "s")  # the unit of all waits
LONGEST = 20  # service times
BUSY = numpy.r_[0:0.1:8j, 1 - numpy.geomspace(0.88, 0.01, 40)]
COLOURS = dict(zip(PromptQueue.servers, (style.ORANGE, style.BLUE, style.GREEN), strict=True))


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.6)
    axes = figure.subplots()
    limit = PromptQueue.limit
    axes.axhline(limit, color=style.INK, linewidth=1, alpha=0.5)
    for row, (servers, colour) in enumerate(COLOURS.items()):
        tail = queueing.waiting_tail(SERVICE, BUSY, servers, PromptQueue.beyond).m_as("s")
        mean = queueing.waiting_time(SERVICE, BUSY, servers).m_as("s")
        for wait, look in ((tail, {"linewidth": 2}), (mean, {"linewidth": 1, "dashes": (4, 2)})):
            # From the last zero on: few wait where hardly any server is busy.
            drawn = (numpy.append(wait[1:], 0) > 0) & (wait < 2 * LONGEST)
            axes.plot(BUSY[drawn], wait[drawn], color=colour, **look)
        there = busiest(servers, limit)
        axes.plot(there, limit, "o", color=colour, markersize=6)
        words: dict[str, Any] = {"color": colour, "weight": "bold", "size": style.SMALL}
        last = style.is_narrow() and servers == PromptQueue.servers[-1]
        axes.annotate(
            f"{there:.0%}",
            (1 if last else there, limit),
            (4, -3) if last else (-4, 5),
            textcoords="offset points",
            ha="left" if last else "right",
            **words,
        )
        name = f"{servers} server" if servers == 1 else f"{servers} servers, one queue"
        axes.text(0.03, LONGEST * (0.93 - 0.07 * row), name, **words)
    style.note(axes, 0.03, LONGEST * 0.71, "dashed: the mean wait")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, LONGEST)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("Utilisation")
    axes.set_ylabel(f"Wait of the slowest {show(PromptQueue.beyond, '%')} (service times)")
    axes.yaxis.set_major_locator(MultipleLocator(5))
    return figure


def alt() -> str:
    places = (f"{busiest(servers, PromptQueue.limit):.0%} for {servers}" for servers in COLOURS)
    return f"""The wait that the slowest {show(PromptQueue.beyond, "%")} of requests exceed, in
    service times, against utilisation: curves for {listed(COLOURS)} servers of a queue begin near
    {show(0)} and turn up, the more servers the later and the more steeply. A level line at
    {PromptQueue.limit} service times meets them at {listed(places)}. Dashed curves of the mean run
    lower."""
