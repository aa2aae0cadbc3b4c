"""A training step with its exchange of gradients after the backward pass, and behind it."""

from __future__ import annotations

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc import collectives, training
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.collectives_chapter import Overlap
from figures import style

UNIT = "ms"
HEIGHT = 0.8
PITCH = 2.9  # rows from a step to the next
NEXT_TO_NOTHING = 0.01  # of a step: what is shorter is not drawn
FEWER = 2  # times fewer tokens than just hide the exchange


class Step(NamedTuple):
    """A step of so many tokens on each GPU, with its exchange hidden or not."""

    tokens: Quantity
    hidden: bool

    @property
    def compute(self) -> Quantity:
        time: Quantity = training.training_time(
            Overlap.parameters, self.tokens, 1, Overlap.peak, Overlap.utilization
        )
        return time.to(UNIT)

    @property
    def forward(self) -> Quantity:
        time: Quantity = (1 - Overlap.backward) * self.compute
        return time

    @property
    def time(self) -> Quantity:
        time: Quantity = collectives.step_time(
            self.compute, Overlap.communication, 1 if self.hidden else 0, Overlap.backward
        )
        return time.to(UNIT)


FEW = (Overlap.break_even / FEWER).to("token")
STEPS = (Step(FEW, hidden=False), Step(FEW, hidden=True), Step(Overlap.break_even, hidden=True))


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.3, narrow_height=3.0)
    axes = figure.subplots()
    for index, step in enumerate(STEPS):
        _step(axes, PITCH * index, step)
    axes.set_xlim(0, 1.01 * max(step.time.m_as(UNIT) for step in STEPS))
    axes.set_ylim(PITCH * len(STEPS) - 1.2, -1.1)
    axes.set_yticks(
        [PITCH * index + row for index in range(len(STEPS)) for row in range(2)],
        ["GPU", "net" if narrow else "network"] * len(STEPS),
    )
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"Time ({UNIT})")
    return figure


def alt() -> str:
    after, behind, enough = STEPS
    return f"""Timelines of steps, each with a row for the GPU, forward and then backward pass, and
    one for the network. With {show(after.tokens, digits=2)} on each GPU the exchange of
    {show(Overlap.communication, UNIT, digits=3)} follows the backward pass, and the step takes
    {show(after.time, digits=3)}. Begun with the backward pass it outlasts it, and the step takes
    {show(behind.time, digits=3)}, of which the GPU computes for {show(behind.compute, digits=3)}.
    With {show(enough.tokens, digits=2)} both end together, after {show(enough.time, digits=3)}."""


def _step(axes: Axes, row: float, step: Step) -> None:
    """The GPU's row with the network's below, and how long both take above them."""
    forward, compute, end = (time.m_as(UNIT) for time in (step.forward, step.compute, step.time))
    start = forward if step.hidden else compute
    narrow = style.is_narrow()
    for level, left, right, colour, alpha, name in (
        (row, 0.0, forward, style.INK, 0.15, "fwd" if narrow else "forward"),
        (row, forward, compute, style.INK, 0.3, "bwd" if narrow else "backward"),
        (row + 1, start, compute, style.BLUE, 0.45, "hidden"),
        (row + 1, compute, end, style.ORANGE, 0.45, "exposed"),
    ):
        if right - left < NEXT_TO_NOTHING * end:
            continue
        corner = (left, level - HEIGHT / 2)
        axes.add_patch(
            Rectangle(corner, right - left, HEIGHT, color=colour, alpha=alpha, linewidth=0)
        )
        middle = (left + right) / 2
        style.note(axes, middle, level, name, ha="center", va="center")
    axes.plot([end, end], [row - 0.5, row + 1.5], color=style.RED, linewidth=1.4)
    words = f"{show(step.tokens, digits=2)} on each GPU: {show(step.time, digits=3)}"
    style.note(axes, 0, row - 0.75, words, bold=True, va="center")
