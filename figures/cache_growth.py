"""What a sequence keeps by its context: a line for keys and values, a floor for states."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import models
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.partial_attention import CacheGrowth
from figures import style

LIFTS = (0, 4, 0, 0, -4)  # of labels that would touch, in points
COLOURS = (style.INK, style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)


def draw() -> Figure:
    figure = style.figure(height=3.8, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Context (tokens)")
    style.log_axis(axes, "y", "Kept of a sequence (MiB)")
    axes.set_xlim(CacheGrowth.shortest, CacheGrowth.longest)
    for key, colour, lift in zip(CacheGrowth.keys, COLOURS, LIFTS, strict=True):
        _model(axes, models.get(key), colour, lift)
    if style.is_narrow():
        axes.legend(loc="upper left", frameon=False, fontsize=style.SMALL)
    return figure


def alt() -> str:
    ends = (
        f"{model.name} from {show(CacheGrowth.at(model, CacheGrowth.shortest), digits=2)} to"
        f" {show(CacheGrowth.at(model, CacheGrowth.longest), digits=3)}"
        for model in map(models.get, CacheGrowth.keys)
    )
    return f"""Log-log plot of what a sequence keeps, in MiB, against its context, from
    {show(CacheGrowth.shortest)} to {show(CacheGrowth.longest)} tokens: {listed(ends)}. Models with
    caches alone rise in proportion, and that with windows bends where they are full. Those with
    states begin level and rise late."""


def _model(axes: Axes, model: models.Transformer, colour: str, lift: float) -> None:
    context = numpy.geomspace(CacheGrowth.shortest, CacheGrowth.longest, 200)
    cache = CacheGrowth.at(model, context).m_as("MiB")
    axes.plot(context, cache, color=colour, linewidth=1.8, label=model.name)
    if style.is_narrow():
        return
    style.note(
        axes,
        context[-1],
        cache[-1],
        model.name,
        (5, lift),
        va="center",
        color=colour,
        bold=True,
        annotation_clip=False,
    )
