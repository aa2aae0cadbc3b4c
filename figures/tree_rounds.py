"""A tree sums in rounds that double what is summed; steps of a ring grow with the devices."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.collectives_chapter import TreeOrRing
from figures import style

DEVICES = TreeOrRing.devices
MANY = 2 ** numpy.arange(1, int(numpy.log2(TreeOrRing.most)) + 1)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.7, narrow_height=5.0)
    tree, curves = style.panels(figure, 2, **({} if narrow else {"width_ratios": (3, 2)}))
    _tree(tree)
    curves.plot(MANY, 2 * (MANY - 1), color=style.ORANGE)
    curves.plot(MANY, 2 * numpy.log2(MANY), color=style.BLUE)
    for words, steps, color in (
        ("ring", TreeOrRing.most_steps, style.ORANGE),
        ("tree", TreeOrRing.most_rounds, style.BLUE),
    ):
        text = f"{words}: {show(steps)}"
        look: dict[str, Any] = {"ha": "right", "va": "bottom", "color": color, "bold": True}
        style.note(curves, TreeOrRing.most, steps, text, (-8, 0), **look)
    style.log_axis(curves, "x", "Devices")
    style.log_axis(curves, "y", "Steps or rounds")
    curves.set_ylim(top=6000)
    return figure


def alt() -> str:
    return f"""A tree over {show(DEVICES)} devices: in each round arrows lead from half of those
    left to their neighbours, until one has the sum, which goes back the same way, in
    {show(TreeOrRing.rounds)} rounds together, where a ring takes {show(TreeOrRing.steps)} steps.
    Beside it a log-log plot against the devices: steps of a ring rise to
    {show(TreeOrRing.most_steps)} among {show(TreeOrRing.most)}, rounds of a tree to
    {show(TreeOrRing.most_rounds)}."""


def _tree(axes: Axes) -> None:
    levels = int(numpy.log2(DEVICES))
    style.canvas(axes, DEVICES - 0.3, levels + 1.3, left=-0.8, bottom=-0.9)
    for level in range(levels + 1):
        left = range(0, DEVICES, 2**level)
        for device in left:
            summed = 2**level
            alpha = 0.12 + 0.6 * level / levels
            words = "Σ" if summed == DEVICES else str(show(summed))
            style.card(axes, (device - 0.3, level - 0.25), (0.6, 0.5), words, style.BLUE, alpha)
            if level < levels:
                goal = device - device % 2 ** (level + 1)
                end = (goal + (0.0 if goal == device else 0.12), level + 0.72)
                look: dict[str, Any] = {"color": style.ORANGE, "shrinkA": 0, "shrinkB": 0}
                style.arrow(axes, (device, level + 0.27), end, **look)
    text = f"tree: {show(TreeOrRing.rounds)} rounds, up and down"
    style.note(axes, DEVICES - 0.5, levels + 0.85, text, ha="right", bold=True, color=style.BLUE)
    text = f"ring: {show(TreeOrRing.steps)} steps"
    style.note(axes, DEVICES - 0.5, levels + 0.3, text, ha="right", bold=True, color=style.ORANGE)
    words = f"what each of {show(DEVICES)} devices has summed"
    style.note(axes, -0.4, -0.8, words)
