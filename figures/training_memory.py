"""Memory of a device by part, for the ways to cut a model, and a mixture, among sixty-four."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.training_at_scale import ShardedStates
from calc.steps.layouts import DeviceMemory
from figures import style

PARTS = (  # of the memory held: their fields, their names, and colours
    ("weights", "weights", style.BLUE),
    ("gradients", "gradients", style.GREEN),
    ("optimizer", "optimiser", style.ORANGE),
    ("activations", "activations", style.PURPLE),
)
PASSING = ("logits or recomputation", style.INK)
GROUPS = (
    (ShardedStates.model, ShardedStates.ways, ShardedStates.held),
    (ShardedStates.mixture, ShardedStates.ways_of_mixture, ShardedStates.held_of_mixture),
)
BREAK = 520  # GB: from here to the next number the axis is left out
BEYOND = 900
MOST = 2900
CUTS = tuple(n for n, (name, *_) in enumerate(ShardedStates.ways) if name.startswith(("CP", "TP")))


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=5.2, narrow_height=5.8)
    near, far = figure.subplots(1, 2, sharey=True, width_ratios=(2.6, 1) if narrow else (4.2, 1))
    figure.set_layout_engine("constrained", wspace=0.02)
    capacity = ShardedStates.capacity.m_as("GB")
    places, names, headings = [], [], []
    left = 0.0
    for model, ways, memories in GROUPS:
        headings.append(left)
        style.note(
            near,
            -0.02,
            left,
            model.name,
            transform=near.get_yaxis_transform(),
            ha="right",
            va="center",
            bold=True,
        )
        for number, ((name, *_), memory) in enumerate(zip(ways, memories, strict=True)):
            left += 1.35 if ways is ShardedStates.ways and number == CUTS[0] else 1
            _bar(near, far, left, memory)
            places.append(left)
            names.append(name.split(":")[0] if narrow else name)
        left += 1.3
    for axes in (near, far):
        axes.set_ylim(left - 0.6, -0.7)
        axes.tick_params(axis="y", length=0)
    near.axvline(capacity, color=style.RED, linewidth=1.2)
    style.note(
        near,
        capacity + 8,
        headings[0],
        f"an H100 has {show(ShardedStates.capacity)}",
        color=style.RED,
        va="center",
    )
    near.set_yticks(places, names)
    near.set_xlim(0, BREAK)
    near.set_xticks(range(0, BREAK, 200 if narrow else 100))
    far.set_xlim(BEYOND, MOST)
    far.set_xticks(range(2000 if narrow else 1000, MOST, 1000))
    far.spines["left"].set_visible(False)
    _break(near, far)
    figure.supxlabel("Memory of a device (GB)", size=10.5)
    names_and_colors = [*(part[1:] for part in PARTS), PASSING]
    handles = [Patch(label=name, facecolor=color, linewidth=0) for name, color in names_and_colors]
    columns = 2 if narrow else 3
    style.legend(figure, above=True, columns=columns, handles=handles, handlelength=1.3)
    return figure


def alt() -> str:
    sentences = []
    for model, ways, memories in GROUPS:
        bars = (
            f"{name}: {show(memory.total, digits=3)}"
            for (name, *_), memory in zip(ways, memories, strict=True)
        )
        sentences.append(f"of {model.name}, {'; '.join(bars)}")
    first = ShardedStates.held[0]
    parts = [f"{show(getattr(first, part), digits=3)} of {name}" for part, name, _ in PARTS]
    parts.append(f"{show(ShardedStates.logits, digits=2)} of logits")
    return f"""Stacked bars of the memory of a device for ways to cut two models, on an axis that is
    broken for the two longest, with a line at the {show(ShardedStates.capacity)}, or
    {show(ShardedStates.capacity.to("GB"), digits=2)}, of an H100. The first bar is {listed(parts)};
    the stages of ZeRO remove these one by one, except activations and logits, which CP, TP and
    recomputation shrink.
    In all, {". And ".join(sentences)}."""


def _bar(near: Axes, far: Axes, left: float, memory: DeviceMemory) -> None:
    """The parts of what is held, one after the other, and their sum beside them."""
    start = 0.0
    total = memory.total.m_as("GB")
    sizes = [(getattr(memory, part).m_as("GB"), color) for part, _, color in PARTS]
    for size, color in [*sizes, (total - sum(size for size, _ in sizes), PASSING[1])]:
        for axes in (near, far) if start + size > BREAK else (near,):
            axes.barh(left, size, left=start, height=0.68, color=color, linewidth=0)
        start += size
    capacity = ShardedStates.capacity.m_as("GB")
    axes = far if total > BREAK else near
    beside = capacity if total < capacity < total + 95 else total
    style.note(axes, beside, left, f"{total:.0f}", (4, 0), va="center")


def _break(near: Axes, far: Axes) -> None:
    """Two slanted strokes where the axis is left out."""
    marks: dict[str, Any] = {
        "marker": [(-0.5, -1), (0.5, 1)],
        "markersize": 9,
        "linestyle": "none",
        "color": style.INK,
        "markeredgewidth": 1,
        "clip_on": False,
    }
    near.plot([1], [0], transform=near.transAxes, **marks)
    far.plot([0], [0], transform=far.transAxes, **marks)
