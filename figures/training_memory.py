"""Memory of a device by part, for eight ways to cut one model among sixty-four of them."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.training_at_scale import ShardedStates
from figures import style

PARTS = (  # of the memory held: their names in calc and in the book, and colours
    ("weights", "weights", style.BLUE),
    ("gradients", "gradients", style.GREEN),
    ("optimizer", "optimiser", style.ORANGE),
    ("activations", "activations", style.PURPLE),
)
MOST = 500  # GB: a copy of everything goes beyond it
SLICED = 5  # from this way on there is a gap above


def draw() -> Figure:
    figure = style.figure(height=3.7, narrow_height=4.4)
    axes = figure.subplots()
    places = [way + (0.4 if way >= SLICED else 0) for way in range(len(ShardedStates.ways))]
    capacity = ShardedStates.capacity.m_as("GB")
    narrow = style.is_narrow()
    room = 90 if narrow else 40
    for place, held in zip(places, ShardedStates.held, strict=True):
        start = 0.0
        for part, _, colour in PARTS:
            size = getattr(held, part).m_as("GB")
            axes.barh(place, min(size, MOST - start), left=start, height=0.66, color=colour)
            start = min(start + size, MOST)
        total = held.total.m_as("GB")
        beside = capacity if start < capacity < start + room else start
        text = f"{total:.0f}" if total < MOST else f"→ {total:.0f}"
        axes.text(beside + 5, place, text, va="center", size=style.SMALL)
    axes.plot([capacity, capacity], [-0.5, places[-1] + 0.9], color=style.RED, linewidth=1.2)
    axes.text(
        capacity + 8,
        places[-1] + 0.62,
        f"an H100 has {show(ShardedStates.capacity)}",
        color=style.RED,
        size=style.SMALL,
        va="center",
    )
    for number, (_, name, colour) in enumerate(PARTS):
        row, column = divmod(number, 2)
        axes.text(
            0.4 * column if narrow else 0.23 * number,
            1.07 - 0.06 * row if narrow else 1.0,
            name,
            transform=axes.transAxes,
            color=colour,
            size=style.SMALL,
            weight="bold",
        )
    names = [name for name, *_ in ShardedStates.ways]
    axes.set_yticks(places, [name.split(":")[0] if narrow else name for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(places[-1] + 0.9, -0.6)
    axes.set_xlim(0, MOST + 75)
    axes.set_xlabel("Memory of a device (GB)")
    return figure


def alt() -> str:
    bars = (
        f"{name}: {show(held.total, digits=3)}"
        for (name, *_), held in zip(ShardedStates.ways, ShardedStates.held, strict=True)
    )
    first = ShardedStates.held[0]
    parts = (f"{show(getattr(first, part), digits=3)} of {name}" for part, name, _ in PARTS)
    return f"""Stacked bars of the memory of a device for {len(ShardedStates.ways)} ways to cut,
    with a line at the {show(ShardedStates.capacity)}, or
    {show(ShardedStates.capacity.to("GB"), digits=2)}, of an H100. The first bar is {listed(parts)};
    ZeRO takes them away by and by, but for the activations. In all, {"; ".join(bars)}."""
