"""What other requests see during the prefill of a long prompt: a stall, slow steps, or nothing."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc import quantity
from calc.derivations import show
from calc.derivations.serving_in_practice import Chunks, Timeline
from figures import style

ARRIVES = Timeline.before * Timeline.step
HEIGHT = 0.8


def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=3.8)
    axes = figure.subplots()
    narrow = style.is_narrow()
    for row, name in enumerate(("whole", "chunks", "prefill\npool", "decode\npool")):
        axes.text(-8, row, name, ha="right", va="center", size=style.SMALL)
    _steps(axes, 0, 0, ARRIVES)
    _block(axes, 0, ARRIVES, Timeline.whole, style.ORANGE, "the prompt")
    _steps(axes, 0, ARRIVES + Timeline.whole, Timeline.end)
    _steps(axes, 1, 0, ARRIVES)
    start, left = ARRIVES, Timeline.chunks
    while left > 0:
        part = min(1.0, left)
        _block(axes, 1, start, Timeline.chunk * part, style.ORANGE)
        start, left = start + Timeline.chunk * part, left - 1
    chunks_end = start
    _steps(axes, 1, start, Timeline.end)
    _block(axes, 2, ARRIVES, Timeline.whole, style.ORANGE, "the prompt")
    _block(axes, 2, ARRIVES + Timeline.whole, Timeline.sent, style.GREEN)
    axes.text(
        ARRIVES + Timeline.whole + Timeline.sent + 6,
        2,
        "its cache" if narrow else "its cache is sent",
        va="center",
        color=style.GREEN,
        size=style.SMALL,
        weight="bold",
    )
    _steps(axes, 3, 0, Timeline.end)
    for row, end in ((0, ARRIVES + Timeline.whole), (1, chunks_end)):
        axes.plot([end, end], [row - 0.5, row + 0.5], color=style.RED, linewidth=2)
    axes.text(
        chunks_end + 4,
        1.55,
        "first token",
        color=style.RED,
        size=style.SMALL,
        weight="bold",
        ha="right",
        va="center",
    )
    axes.set_xlim(0, Timeline.end)
    axes.set_ylim(3.6, -0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    colours = "blue: decode, orange: with prefill"
    axes.set_xlabel(f"Time (ms)\n{colours}" if narrow else f"Time (ms); {colours}")
    return figure


def alt() -> str:
    return f"""Timelines of steps over {show(quantity(Timeline.end, "ms"))}. Prefilled whole, a
    prompt of {show(Chunks.prompt)} tokens stands between steps of {show(Chunks.calm, digits=2)} as
    one block of {show(Chunks.stall, digits=3)} in which no other request gets a token. In chunks of
    {show(Chunks.most_expected)} it is a row of blocks of
    {show(quantity(Timeline.chunk, "ms"), digits=2)}, and its first token comes later. With pools of
    their own one row prefills the prompt and sends its cache, and the other decodes on without a
    gap."""


def _steps(axes: Axes, row: int, start: float, end: float) -> None:
    while start + Timeline.step <= end + 1e-9:
        _block(axes, row, start, Timeline.step, style.BLUE)
        start += Timeline.step


def _block(axes: Axes, row: int, start: float, length: float, colour: str, words: str = "") -> None:
    axes.add_patch(
        Rectangle(
            (start, row - HEIGHT / 2),
            length,
            HEIGHT,
            facecolor=colour,
            edgecolor="#ffffff",
            linewidth=0.4,
        )
    )
    if words:
        axes.text(
            start + length / 2,
            row,
            words,
            ha="center",
            va="center",
            color="#ffffff",
            size=style.SMALL,
        )
