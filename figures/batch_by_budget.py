"""The batch that a memory holds, by precision: a wall at the parameters, then a straight line."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from calc.core.units import quantity
from calc.derivations import show
from calc.derivations.simulating import BudgetCurves, LargestBatch, ReferenceNetwork
from calc.simulation import estimate_parameter_memory, plan_batches
from figures import style

# A precision, and the name that stands beside the foot of its curve.
CURVES = {"fp32": "FP32", "fp16": "FP16, BF16", "int8": "INT8"}


def draw() -> Figure:
    figure = style.figure(height=3.7, narrow_height=4.4)
    axes = figure.subplots()
    low, high = (each.m_as("KiB") for each in (BudgetCurves.lowest, BudgetCurves.highest))
    budgets = numpy.geomspace(low, high, 1200)
    style.log_axis(axes, "y", "Largest batch (samples)")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda kib, _: _memory(kib)))
    axes.set_xlabel("Memory budget (logarithmic)")
    axes.grid(axis="x", color=style.INK, alpha=0.12, linewidth=0.6)
    axes.set_xlim(low, high)
    axes.set_ylim(0.8, 3000)
    for precision, name in CURVES.items():
        colour = style.PRECISIONS[precision]
        plans = plan_batches(
            ReferenceNetwork.model, BudgetCurves.requested, quantity(budgets, "KiB"), precision
        )
        fits = plans.batch > 0
        axes.plot(budgets[fits], plans.batch[fits], color=colour)
        wall = estimate_parameter_memory(ReferenceNetwork.model, precision).m_as("KiB")
        axes.axvline(wall, color=colour, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.annotate(
            name,
            (wall, 1),
            xytext=(-4, 2),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            color=colour,
            size=style.SMALL,
        )
    budget = LargestBatch.budget.m_as("KiB")
    for batch, precision in ((LargestBatch.fp32, "fp32"), (LargestBatch.fp16, "fp16")):
        colour = style.PRECISIONS[precision]
        left = style.is_narrow() and batch == LargestBatch.fp16  # the next curve is close
        axes.plot(budget, batch, "o", color=colour, markersize=5)
        axes.annotate(
            f"{batch}",
            (budget, batch),
            xytext=(-6, -1) if left else (6, -9),
            textcoords="offset points",
            ha="right" if left else "left",
            color=colour,
            size=style.SMALL,
        )
    axes.annotate(
        f"the {BudgetCurves.requested} asked for",
        (high, BudgetCurves.requested),
        xytext=(-2, 4),
        textcoords="offset points",
        ha="right",
        color=style.INK,
        size=style.SMALL,
    )
    return figure


def alt() -> str:
    walls = (
        f"{show(estimate_parameter_memory(ReferenceNetwork.model, precision).to('KiB'), digits=3)} "
        f"in {name.replace(', ', ' and ')}"
        for precision, name in CURVES.items()
    )
    return f"""Log-log plot of the largest batch against the memory budget, from
    {show(BudgetCurves.lowest)} to {show(BudgetCurves.highest)}, a curve for each precision. A curve
    begins at a dotted line, the memory of the parameters: {"; ".join(walls)}. From there it rises
    steeply, then in proportion to the budget, until it reaches the {show(BudgetCurves.requested)}
    samples asked for. At {show(LargestBatch.budget)} FP32 holds {show(LargestBatch.fp32)} samples
    and FP16 {show(LargestBatch.fp16)}."""


def _memory(kib: float) -> str:
    return f"{kib:.0f} KiB" if kib < 1024 else f"{kib / 1024:.0f} MiB"
