"""Four kernels of attention on a B200: what each takes off the path, in time of the products."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import quantity
from calc.derivations import show
from calc.derivations.attention_chapter import TilesOfAttention
from figures import style

BLOCKS = 4  # of keys, drawn
HIGH = 0.36
PITCH = 1.5
LANE = 0.3  # of the pitch, from products to exponentials
EXPONENTIALS = TilesOfAttention.exponentials.m_as("")
LEFT = TilesOfAttention.left.m_as("")
MEMORY = TilesOfAttention.in_memory.m_as("")


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.9, narrow_height=3.4)
    axes = style.diagram(figure, MEMORY * 1.01, 0.75, bottom=-3 * PITCH - 0.75)
    _told(axes, 0, "unfused" if narrow else "scores in memory", MEMORY)
    _bar(axes, 0, 0, MEMORY, style.GREEN, "scores cross memory")
    _told(axes, 1, "second: in turn", 1 + EXPONENTIALS)
    for block in range(BLOCKS):
        start = block * (1 + EXPONENTIALS) / BLOCKS
        _bar(axes, 1, start, 1 / BLOCKS, style.BLUE)
        _bar(axes, 1 + LANE, start + 1 / BLOCKS, EXPONENTIALS / BLOCKS, style.ORANGE)
    _told(axes, 2, "third: overlapped", 1.0)
    _told(axes, 3, "fourth: a part emulated", 1.0)
    for row, busy in ((2, EXPONENTIALS), (3, LEFT)):
        _bar(axes, row, 0, 1, style.BLUE)
        _bar(axes, row + LANE, 0, busy, style.ORANGE)
        text = f"busy {_percent(busy)}"
        style.note(axes, 1.06, -(row + LANE) * PITCH, text, va="center", color=style.ORANGE)
    names = [("products", style.BLUE), ("exponentials", style.ORANGE)]
    style.key(axes, names, (0.99, 0.62), 0.09, side="right")
    return figure


def alt() -> str:
    return f"""Timelines of attention on a B200, in the time that its products take alone. With
    scores in memory {show(MEMORY, digits=2)}; with products and exponentials in turn
    {show(1 + EXPONENTIALS, digits=3)}; overlapped {show(1)}, the units of exponentials busy for
    {_percent(EXPONENTIALS)} of it; with a part emulated they are busy for {_percent(LEFT)}."""


def _percent(share: float) -> str:
    return f"{show(quantity(100 * share, '%'), digits=2)}"


def _told(axes: Axes, row: float, name: str, time: float) -> None:
    text = f"{name}: {show(time, digits=3)}"
    style.note(axes, 0, 0.26 - row * PITCH, text, bold=True)


def _bar(axes: Axes, row: float, start: float, long: float, color: str, words: str = "") -> None:
    style.card(axes, (start, -row * PITCH - HIGH / 2), (long, HIGH), words, color, 0.45)
