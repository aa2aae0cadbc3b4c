"""Attention block by block: what stays on the chip, and how a block changes it."""

from __future__ import annotations

from math import exp

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.attention_chapter import RunningSoftmax
from figures import style

PITCH = 3.0
NAMES = ("μ", "ℓ", "a")


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.6, narrow_height=3.0)
    blocks = len(RunningSoftmax.blocks)
    axes = style.diagram(figure, (blocks + 0.85) * PITCH, 6.3, left=-1.7, bottom=-0.35)
    for row, name in enumerate(("K and V" if narrow else "keys, values", "scores", "kept")):
        height = (5.45, 3.65, 1.55)[row]
        style.note(axes, -0.25, height, name, ha="right", va="center")
    states = RunningSoftmax.states()
    for block, (scores, state) in enumerate(zip(RunningSoftmax.blocks, states, strict=True)):
        left = block * PITCH
        style.card(axes, (left, 5.0), (2.2, 0.9), f"block {show(block + 1)}", style.GREEN, 0.3)
        style.arrow(axes, (left + 1.1, 4.95), (left + 1.1, 4.15), color=style.GREEN)
        text = " ".join(str(show(score, digits=2)) for score in scores)
        style.card(axes, (left, 3.2), (2.2, 0.9), text, style.INK, 0.08)
        style.arrow(axes, (left + 1.1, 3.15), (left + 1.1, 2.55))
        _kept(axes, left, state)
        if block:
            style.arrow(axes, (left - PITCH + 2.25, 1.4), (left - 0.05, 1.4), color=style.ORANGE)
            if not narrow:
                shrunk = f"× {show(exp(states[block - 1][0] - state[0]), digits=2)}"
                style.note(axes, left - 0.4, 1.6, shrunk, ha="center", color=style.ORANGE)
    _, total, weighted = states[-1]
    end = blocks * PITCH
    style.arrow(axes, (end - PITCH + 2.25, 1.4), (end - 0.05, 1.4), color=style.ORANGE)
    result = f"a / ℓ =\n{show(weighted / total, digits=3)}"
    style.card(axes, (end, 0.6), (2.3, 1.7), result, style.ORANGE, 0.55, weight="bold")
    return figure


def alt() -> str:
    states = RunningSoftmax.states()
    largest = ", ".join(str(show(state[0], digits=2)) for state in states)
    _, total, weighted = states[-1]
    return f"""Blocks of keys and values pass by from left to right, each with two scores of one
    query below it. What is kept goes on from block to block: the largest score μ, which is
    {largest}, a sum ℓ that ends at {show(total, digits=3)}, and a weighted sum a that ends at
    {show(weighted, digits=3)}. Their quotient {show(weighted / total, digits=3)} is the result."""


def _kept(axes: Axes, left: float, state: tuple[float, float, float]) -> None:
    """The three numbers that a query needs of all blocks so far."""
    style.card(axes, (left, 0.1), (2.2, 2.4), color=style.ORANGE, alpha=0.2)
    for row, (name, value) in enumerate(zip(NAMES, state, strict=True)):
        text = f"{name} = {show(value, digits=3)}"
        style.note(axes, left + 0.15, 2.1 - 0.75 * row, text, va="center")
