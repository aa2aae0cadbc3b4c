"""Slots of a batch that wait for its longest answer, and slots that are filled at once."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.serving_chapter import Batching
from figures import style

Run = list[tuple[int, int, int]]
CASES = (("fixed batches", Batching.fixed()), ("continuous batching", Batching.continuous()))
END = Batching.steps(CASES[0][1])
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.2, narrow_height=4.0)
    for axes, (name, run) in zip(style.panels(figure, len(CASES)), CASES, strict=True):
        style.canvas(axes, END + 0.2, Batching.slots + 1.1, left=-0.2, bottom=-0.3)
        _run(axes, run)
        steps = Batching.steps(run)
        text = f"{name}: {show(steps)} steps"
        style.note(axes, 0, Batching.slots + 0.3, text, bold=True)
        axes.plot([steps, steps], [-0.2, Batching.slots], color=style.RED, linewidth=1.6)
    return figure


def alt() -> str:
    fixed, continuous = (show(Batching.steps(run)) for _, run in CASES)
    return f"""Timelines of {show(Batching.slots)} slots. In fixed batches the slots of short
    answers stay empty until the longest of the batch ends, and all answers take {fixed} steps. In
    continuous batching the next answer begins wherever one ends: {continuous} steps."""


def _run(axes: Axes, run: Run) -> None:
    style.card(axes, (0, 0), (Batching.steps(run), Batching.slots), alpha=0.06)
    for number, (slot, start, steps) in enumerate(run):
        corner = (start, Batching.slots - 1 - slot + 0.08)
        color = COLORS[number % len(COLORS)]
        style.card(axes, corner, (steps, 0.84), str(show(number + 1)), color, 0.45)
