"""Operations of a token forward by its context: flat at first, then in proportion to it."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import models, transformer
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.transformer_arithmetic import Crossover
from figures import style


def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=4.2)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Positions that the token looks at")
    style.log_axis(axes, "y", "Forward pass of a token (GFLOP)")
    axes.set_xlim(Crossover.shortest, Crossover.longest)
    for key in Crossover.keys:
        _model(axes, models.get(key))
    axes.set_ylim(5, None)
    return figure


def alt() -> str:
    doubled = (
        f"{show(transformer.crossover_context(model), digits=2)} for {model.name}"
        for model in map(models.get, Crossover.keys)
    )
    return f"""Log-log plot of the operations of a token's forward pass, in GFLOP, against the
    positions that the token looks at, from {show(Crossover.shortest)} to {show(Crossover.longest)}.
    The curve of each model begins level, where its weights are nearly all of the work, and bends
    upwards until it rises in proportion to the positions. A dot marks where attention costs as much
    as the weights: at {listed(doubled)}. Beyond the context that a model was made to read, its
    curve is dotted."""


def _model(axes: Axes, model: models.Transformer) -> None:
    crossover, limit = transformer.crossover_context(model).magnitude, model.context
    for low, high, line in ((Crossover.shortest, limit, "-"), (limit, Crossover.longest, ":")):
        context = numpy.geomspace(low, high, 100)
        work = Crossover.work(model, context).m_as("GFLOP/token")
        axes.plot(context, work, line, color=style.INK, linewidth=1.6)
    there = Crossover.work(model, crossover).m_as("GFLOP/token")
    axes.plot(crossover, there, "o", color=style.RED, markersize=6)
    flat = Crossover.work(model, Crossover.shortest).m_as("GFLOP/token")
    style.note(axes, Crossover.shortest, flat, model.name, (4, -13))
    style.note(
        axes,
        crossover,
        there,
        str(show(crossover, digits=2)),
        (-5, 5),
        ha="right",
        color=style.RED,
        bold=True,
    )
