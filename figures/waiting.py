"""How long the slowest hundredth waits, by how busy the servers of one queue are."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, PercentFormatter

from calc import queueing
from calc.derivations.serving import PromptQueue, busiest
from figures import style

LONGEST = 20  # service times
BUSY = numpy.r_[0:0.1:8j, 1 - numpy.geomspace(0.88, 0.01, 40)]
COLOURS = dict(zip(PromptQueue.servers, (style.ORANGE, style.BLUE, style.GREEN), strict=True))


def draw() -> Figure:
    figure = style.figure(height=3.9, narrow_height=4.6)
    axes = figure.subplots()
    limit = PromptQueue.limit
    axes.axhline(limit, color=style.INK, linewidth=1, alpha=0.5)
    for row, (servers, colour) in enumerate(COLOURS.items()):
        tail = queueing.waiting_tail("1 s", BUSY, servers, PromptQueue.beyond).m_as("s")
        mean = queueing.waiting_time("1 s", BUSY, servers).m_as("s")
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
        name = "1 server" if servers == 1 else f"{servers} servers, one queue"
        axes.text(0.03, LONGEST * (0.93 - 0.07 * row), name, **words)
    axes.text(0.03, LONGEST * 0.71, "dashed: the mean wait", size=style.SMALL)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, LONGEST)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("Utilisation")
    axes.set_ylabel("Wait of the slowest hundredth (service times)")
    axes.yaxis.set_major_locator(MultipleLocator(5))
    return figure
