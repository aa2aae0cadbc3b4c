"""Layers of a fully sharded model, gathered behind others, with too few tokens and enough."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.training_at_scale import FullyShardedLayer
from figures import style

LAYERS = 4
HIGH = 0.8
PITCH = 3.3
GATHER = FullyShardedLayer.gather.m_as("ms")
CASES = (
    (FullyShardedLayer.few, FullyShardedLayer.compute_few.m_as("ms")),
    (FullyShardedLayer.many, FullyShardedLayer.compute_many.m_as("ms")),
)
END = GATHER + LAYERS * CASES[1][1]


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.6, narrow_height=3.0)
    axes = style.diagram(figure, END, 1.2, left=-0.13 * END, bottom=-PITCH - 1.8)
    for index, (tokens, compute) in enumerate(CASES):
        row = -index * PITCH
        _name(axes, row, "net" if narrow else "network")
        _name(axes, row - 1, "GPU")
        _layers(axes, row, compute)
        text = f"{show(tokens)} tokens: {show(max(compute, GATHER), digits=2)} ms a layer"
        color = style.GREEN if compute < GATHER else style.ORANGE
        style.note(axes, 0, row + 0.6, text, bold=True, color=color)
    return figure


def alt() -> str:
    (few, short), (many, long) = CASES
    return f"""Timelines of {show(LAYERS)} layers, with a row for the network, which gathers the
    weights of a layer while the GPU computes the one before. With {show(few)} tokens a layer's
    gather is the longer, {show(max(short, GATHER), digits=2)} ms, and the GPU waits for each. With
    {show(many)} tokens the arithmetic is, at {show(long, digits=2)} ms, and the network waits."""


def _layers(axes: Axes, row: float, compute: float) -> None:
    """A gather begins when the GPU begins with the layer before, for which two are held."""
    gathered = done = started = 0.0
    for layer in range(LAYERS):
        begin = max(gathered, started) if layer else 0.0
        gathered = begin + GATHER
        number = str(show(layer + 1))
        low = row - HIGH / 2
        critical = 0.65 if compute < GATHER or layer == 0 else 0.2
        style.card(axes, (begin, low), (GATHER, HIGH), number, style.GREEN, critical)
        started = max(gathered, done)
        done = started + compute
        critical = 0.65 if compute > GATHER or layer == LAYERS - 1 else 0.2
        style.card(axes, (started, low - 1), (compute, HIGH), number, style.ORANGE, critical)


def _name(axes: Axes, row: float, name: str) -> None:
    style.note(axes, -0.01 * END, row, name, ha="right", va="center")
