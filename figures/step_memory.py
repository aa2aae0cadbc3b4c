"""Memory of a GPU through a training step, with activations kept and made again."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.transformer_arithmetic import Activations, StepMemory
from figures import style

FORWARD = 1 / 3  # of a step, since a backward pass takes twice as long
LOSS = 0.03  # of a step: until the logits' gradient is used up
TIMES = numpy.array([0, FORWARD, FORWARD, FORWARD + LOSS, FORWARD + LOSS, 1])
CASES = (
    ("kept", "activations kept", Activations.kept, StepMemory.peak),
    ("made again", "layers made again", Activations.inputs, StepMemory.recomputed),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.8, narrow_height=4.6)
    shared = style.shared_panels(figure, len(CASES), "Time (steps)", "Memory (GB)")
    for axes, (_, title, kept, peak) in zip(shared, CASES, strict=True):
        _stack(axes, kept.m_as("GB"))
        text = f"{title}: {show(peak, digits=2)}"
        axes.set_title(text)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.08 * StepMemory.peak.m_as("GB"))
    first = shared[0]
    for words, spot, color in (
        ("weights, gradients, optimiser", (0.03, 6), style.BLUE),
        ("activations", (0.4, 22), style.ORANGE),
        ("loss", (0.39, 58), style.RED),
    ):
        style.note(first, *spot, words, color=color, bold=True)
    for axes in shared:
        axes.axvline(FORWARD, color=style.INK, linewidth=0.8, dashes=(3, 3))
    style.note(shared[1], FORWARD + 0.02, 55, "backward")
    style.note(shared[1], FORWARD - 0.02, 55, "forward", ha="right")
    return figure


def alt() -> str:
    kept, again = (show(peak, digits=2) for *_, peak in CASES)
    return f"""Panels of stacked areas of memory over a step. A level band of the state is
    {show(StepMemory.state, digits=2)}. Activations grow on it during the forward pass and shrink
    during the backward pass, and the loss adds a spike between them: {kept} at the peak where
    activations are kept, {again} where layers are made again."""


def _stack(axes: Axes, kept: float) -> None:
    state, loss = StepMemory.state.m_as("GB"), StepMemory.loss.m_as("GB")
    ends = kept * numpy.array([0, 1, 1, 1, 1, 0])
    spike = loss * numpy.array([0, 0, 1, 1, 0, 0])
    level = numpy.full(len(TIMES), state)
    for low, high, color in (
        (0 * level, level, style.BLUE),
        (level, level + ends, style.ORANGE),
        (level + ends, level + ends + spike, style.RED),
    ):
        axes.fill_between(TIMES, low, high, color=color, alpha=0.4, linewidth=0)
        axes.plot(TIMES, high, color=color, linewidth=1.2)
