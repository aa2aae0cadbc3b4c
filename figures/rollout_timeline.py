"""A step of reinforcement learning on one engine: answers, and who waits for the longest."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc.derivations import show
from calc.derivations.fine_tuning import Rollouts
from figures import style

BARS = 16
HALF = 0.5


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=4.0)
    axes = figure.subplots()
    written = Rollouts.step.generation.m_as("s")
    trained = Rollouts.trained.m_as("s")
    for bar, end in enumerate(Rollouts.drawn(BARS)):
        axes.barh(bar, end, height=0.62, color=style.BLUE)
        axes.barh(bar, written - end, left=end, height=0.62, color=style.INK, alpha=0.1)
    axes.add_patch(Rectangle((written, -HALF), trained, BARS, color=style.ORANGE, linewidth=0))
    even = Rollouts.even.m_as("s")
    axes.plot([even, even], [-0.9, BARS - HALF], color=style.RED, linewidth=1.3)
    narrow = style.is_narrow()
    style.note(
        axes,
        even + 0.6,
        -1.3,
        f"all of the average length: {show(Rollouts.even, digits=2)}",
        color=style.RED,
        va="center",
    )
    style.note(
        axes,
        written * 0.62,
        BARS * 0.42,
        "its memory and\narithmetic wait" if narrow else "slots that wait for the longest answer",
        ha="center",
        va="center",
    )
    style.note(
        axes,
        written + trained / 2,
        BARS / 2 - HALF,
        "score\nand train",
        color="white",
        bold=True,
        ha="center",
        va="center",
    )
    style.note(
        axes,
        written * 0.99,
        BARS - 1,
        f"{show(Rollouts.longest, digits=2)}",
        color="white",
        bold=True,
        ha="right",
        va="center",
    )
    axes.set_yticks([])
    axes.set_ylabel(f"{BARS} of {show(Rollouts.engine_answers)} answers")
    axes.set_xlabel("Time of the step (s)")
    axes.set_ylim(BARS, -2)
    axes.set_xlim(0, Rollouts.total.m_as("s"))
    return figure


def alt() -> str:
    return f"""A timeline of one step on one engine. Bars of {BARS} of its
    {show(Rollouts.engine_answers)} answers begin together; most end within the
    {show(Rollouts.even, digits=2)} that all would take at the average length, and the longest, of
    {show(Rollouts.longest, digits=2)}, ends at {show(Rollouts.generation, digits=2)}. Behind each
    bar that has ended a pale one waits for the longest. Then a block of
    {show(Rollouts.trained, digits=2)} scores and trains."""
