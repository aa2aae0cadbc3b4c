"""Average access by the hit rate of the first cache, in hits: of a CPU core and of a GPU."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from calc import quantity
from calc.derivations import show
from calc.derivations.memory_hierarchy_chapter import AverageAccess
from figures import style

RATES = numpy.linspace(50, 100, 51)
LINES = (("CPU core, DRAM behind L1", 2, style.ORANGE), ("GPU, memory behind L1", 4, style.BLUE))
LOW, HIGH = AverageAccess.low_hit_rate, AverageAccess.hit_rate


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.5, narrow_height=2.9)
    axes = figure.subplots()
    for name, at, color in LINES:
        curve = [_hits(rate, at) for rate in RATES]
        axes.plot(RATES, curve, color=color)
        words = name.split(",")[0] if style.is_narrow() else name
        style.note(axes, RATES[1], curve[1], words, (0, 4), color=color, bold=True)
    for rate in (LOW, HIGH):
        height = _hits(rate.m_as("%"), LINES[0][1])
        axes.plot(rate.m_as("%"), height, "o", color=style.ORANGE, markersize=6)
        text = f"{show(height, digits=2)} at {show(rate, '%')}"
        offset, side = ((-8, 0), "right") if rate == LOW else ((9, 0), "left")
        style.note(axes, rate.m_as("%"), height, text, offset, ha=side, va="center")
    style.log_axis(axes, "y", "Average access (hits)")
    axes.set_ylim(0.9, 100)
    axes.set_xlim(RATES[0], RATES[-1])
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.set_xlabel("Hit rate of the first cache")
    return figure


def alt() -> str:
    cpu, gpu = (show(_hits(RATES[0], at), digits=2) for _, at, _ in LINES)
    low, high = (show(_hits(rate.m_as("%"), LINES[0][1]), digits=2) for rate in (LOW, HIGH))
    return f"""The average access in hits, on a log axis, against the hit rate from
    {show(quantity(RATES[0], "%"))} to {show(quantity(RATES[-1], "%"))}. The curve of a CPU core
    falls from {cpu}, passes {low} at {show(LOW, "%")} and {high} at {show(HIGH, "%")}, and ends at
    one hit; that of a GPU falls from {gpu} to one."""


def _hits(rate: float, at: int) -> float:
    return float(AverageAccess.row(quantity(float(rate), "%"))[at].m_as(""))
