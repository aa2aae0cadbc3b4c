"""A tile with one buffer waits for every slice; with several it waits for the first alone."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.gemms_chapter import PipelineOfTile, TileOnSM
from calc.derivations.quoting import words
from figures import style

LATENCY = PipelineOfTile.latency.m_as("cycle")
WORK = PipelineOfTile.multiplied.m_as("cycle")
END = LATENCY + 7.4 * WORK
HIGH = 0.74
BELOW = 2.1  # where the buffers begin


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.6, narrow_height=3.2)
    axes = style.diagram(figure, END, 1.0, left=-1500, bottom=-BELOW - TileOnSM.stages - 0.1)
    start = 0.0
    while start + LATENCY + WORK < END:
        _slice(axes, 0, start, start + LATENCY)
        start += LATENCY + WORK
    _name(axes, 0, "one\nbuffer")
    share = show(PipelineOfTile.alone, digits=2)
    text = f"{share} of the rate" if narrow else f"tensor cores busy {share} of the time"
    style.note(axes, END, 0.5, text, ha="right", bold=True, color=style.ORANGE)
    ended = LATENCY
    free = [0.0] * TileOnSM.stages
    for number in range(int((END - LATENCY) / WORK)):
        row = number % TileOnSM.stages
        _slice(axes, BELOW + row, free[row], ended)
        ended += WORK
        free[row] = ended
    _name(axes, BELOW + (TileOnSM.stages - 1) / 2, f"{words(TileOnSM.stages)}\nbuffers")
    text = "no gap" if narrow else "after the first slice no gap"
    style.note(axes, END, 0.5 - BELOW, text, ha="right", bold=True, color=style.ORANGE)
    text = f"{_cycles(LATENCY)}" if narrow else f"fetched in {_cycles(LATENCY)}"
    style.note(axes, 0, 0.5, text, color=style.BLUE, bold=True)
    ahead = _cycles(PipelineOfTile.ahead.m_as("cycle"))
    text = f"{ahead} ahead" if narrow else f"the next slices may take {ahead}"
    style.note(axes, 0, 0.5 - BELOW, text, color=style.BLUE, bold=True)
    names = [("fetched", style.BLUE), ("waits", style.INK), ("multiplied", style.ORANGE)]
    for index, (name, color) in enumerate(names):
        left = END * (0.3 + 0.23 * index)
        style.note(axes, left, -BELOW - TileOnSM.stages, name, color=color, bold=True)
    return figure


def alt() -> str:
    return f"""Timelines of a tile's slices. With one buffer each slice is fetched for
    {_cycles(LATENCY)} and then multiplied, so that tensor cores are busy
    {show(PipelineOfTile.alone, digits=2)} of the time. With {words(TileOnSM.stages)} buffers, a row
    for each, the products stand like stairs without a gap, while the other buffers are fetched for
    up to {_cycles(PipelineOfTile.ahead.m_as("cycle"))}."""


def _cycles(count: float) -> str:
    return f"{show(count, digits=3)} cycles"


def _slice(axes: Axes, row: float, fetched: float, multiplied: float) -> None:
    """A slice in its buffer: on its way, waiting, and multiplied."""
    low = -row - HIGH / 2
    arrives = fetched + LATENCY
    style.card(axes, (fetched, low), (LATENCY, HIGH), color=style.BLUE, alpha=0.3)
    if multiplied > arrives:
        style.card(axes, (arrives, low), (multiplied - arrives, HIGH), color=style.INK, alpha=0.05)
    if multiplied + WORK <= END + 1:
        style.card(axes, (multiplied, low), (WORK, HIGH), color=style.ORANGE, alpha=0.6)


def _name(axes: Axes, row: float, name: str) -> None:
    style.note(axes, -120, -row, name, ha="right", va="center")
