"""Figure of a long prompt's prefill as other requests see it: a stall, slow steps, nothing."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc import quantity
from calc.derivations import show
from calc.derivations.drafts_and_pools import Chunks, Timeline
from figures import style

ARRIVES = Timeline.before * Timeline.step
READ = ARRIVES + Timeline.whole
HEIGHT = 0.56
PITCH = 1.15


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.1, narrow_height=4.4)
    axes = figure.subplots()
    narrow = style.is_narrow()
    step, chunk = (show(quantity(time, "ms"), digits=2) for time in (Timeline.step, Timeline.chunk))
    for row, name in enumerate(("whole", "in chunks", "prefill\npool", "decode\npool")):
        style.note(axes, -8, row * PITCH, name, ha="right", va="center")

    _steps(axes, 0, 0, ARRIVES)
    _block(axes, 0, ARRIVES, Timeline.whole, style.ORANGE)
    _steps(axes, 0, READ, Timeline.end)
    nobody = f"no token for {show(Chunks.stall, digits=2)}"
    if narrow:
        _tell(axes, 0, ARRIVES, nobody, style.ORANGE)
    else:
        _tell(axes, 0, 0, f"a token every {step}", style.BLUE)
        _tell(axes, 0, ARRIVES + 80, nobody, style.ORANGE)

    _steps(axes, 1, 0, ARRIVES)
    start, left = ARRIVES, Timeline.chunks
    while left > 0:
        part = min(1.0, left)
        _block(axes, 1, start, Timeline.chunk * part, style.ORANGE)
        start, left = start + Timeline.chunk * part, left - 1
    _steps(axes, 1, start, Timeline.end)
    _tell(axes, 1, ARRIVES, f"a token every {chunk}, with each chunk", style.ORANGE)

    _block(axes, 2, ARRIVES, Timeline.whole, style.ORANGE)
    _block(axes, 2, READ, Timeline.sent, style.GREEN)
    _tell(axes, 2, ARRIVES, "prefill alone", style.ORANGE)
    style.note(
        axes,
        READ + Timeline.sent + 8,
        2 * PITCH,
        "its cache\nis sent" if narrow else "its cache is sent",
        va="center",
        color=style.GREEN,
        bold=True,
    )
    _steps(axes, 3, 0, Timeline.end)
    _tell(axes, 3, 0, f"a token every {step}, as before", style.BLUE)

    for row, end in enumerate((READ, start, READ)):
        height = row * PITCH
        axes.plot([end, end], [height - HEIGHT / 2, height + 0.45], color=style.RED, linewidth=2)
    _tell(axes, 0, READ + 8, "first token", style.RED)
    axes.set_xlim(0, Timeline.end)
    axes.set_ylim(3 * PITCH + 0.5, -0.8)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("Time (ms)")
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


def _block(axes: Axes, row: int, start: float, length: float, colour: str) -> None:
    axes.add_patch(
        Rectangle(
            (start, row * PITCH - HEIGHT / 2),
            length,
            HEIGHT,
            facecolor=colour,
            edgecolor="#ffffff",
            linewidth=0.4,
        )
    )


def _tell(axes: Axes, row: int, start: float, words: str, colour: str) -> None:
    """Write what a row shows from there on above it: on a bar the words would be too faint."""
    style.note(
        axes,
        start,
        row * PITCH - HEIGHT / 2 - 0.07,
        words,
        va="bottom",
        color=colour,
        bold=True,
        linespacing=1.0,
    )
