"""DeepSeek's service as two pools: servers that prefill, caches that move, servers that decode."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.drafts_and_pools import Pools
from figures import style

ACROSS = 11  # servers in a row of the picture
GAP = 7.0
READERS, WRITERS = (round(count.m_as("")) for count in (Pools.reading, Pools.writing))


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.5, narrow_height=2.9)
    axes = style.diagram(figure, 2 * ACROSS + GAP, 15.2, left=-0.2, bottom=-3.6)
    _pool(axes, 0, READERS, style.ORANGE)
    _pool(axes, ACROSS + GAP, WRITERS, style.BLUE)
    for left, count, name, rate, color in (
        (0, READERS, "prefill", Pools.rate_in, style.ORANGE),
        (ACROSS + GAP, WRITERS, "decode", Pools.rate_out, style.BLUE),
    ):
        text = f"{name}: {show(count)} servers"
        style.note(axes, left, 12.7, text, bold=True, color=color)
        style.note(axes, left, -0.7, f"{show(rate, digits=3)} each", va="top", color=color)
    start, end = ACROSS + 0.3, ACROSS + GAP - 0.5
    style.arrow(axes, (start, 6), (end, 6), head="-|>", color=style.GREEN, linewidth=2)
    words = "caches" if narrow else "caches\nof prompts"
    look: dict[str, Any] = {"ha": "center", "va": "bottom", "color": style.GREEN, "bold": True}
    style.note(axes, (start + end) / 2, 6.6, words, **look)
    style.note(axes, 0, -2.2, _tokens(Pools.tokens_in, "in"), va="top")
    style.note(axes, ACROSS + GAP, -2.2, _tokens(Pools.tokens_out, "out"), va="top")
    return figure


def alt() -> str:
    return f"""Two grids of servers with an arrow of caches between them. {show(READERS)} prefill,
    at {show(Pools.rate_in, digits=3)} each, the {_tokens(Pools.tokens_in, "in")} of a day;
    {show(WRITERS)} decode, at {show(Pools.rate_out, digits=3)} each,
    {_tokens(Pools.tokens_out, "out")}."""


def _tokens(count: Quantity, way: str) -> str:
    return f"{show(count)} {way}"


def _pool(axes: Axes, left: float, count: int, color: str) -> None:
    places = [(left + n % ACROSS, 11 - n // ACROSS, 0.85, 0.85) for n in range(count)]
    look: dict[str, Any] = {"edgecolor": (style.INK, 0.4), "linewidth": 0.4}
    style.boxes(axes, places, facecolor=(color, 0.6), **look)
