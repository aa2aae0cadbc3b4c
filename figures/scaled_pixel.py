"""Accuracy against the factor by which one input is larger, in floating point and in INT8."""

from __future__ import annotations

import polars
from matplotlib.figure import Figure
from polars import col

from calc import formats
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.digits_sweep import SCALED
from figures import style

FLOATS = listed(formats.get(key).name for key in style.PRECISIONS if key != "int8")


def draw() -> Figure:
    figure = style.figure(height=3.2, narrow_height=3.4)
    axes = figure.subplots()
    for precision in ("fp32", "int8"):
        colour = style.PRECISIONS[precision]
        rows = _means(precision)
        axes.errorbar(
            rows["factor"].to_list(),
            rows["accuracy"].to_list(),
            rows["std"].to_list(),
            fmt="o-",
            color=colour,
            markersize=4,
            elinewidth=1.2,
            capsize=2,
        )
    factors = SCALED["factor"].unique().sort().to_list()
    style.note(axes, factors[0], 94, FLOATS, va="top", bold=True)
    style.note(
        axes,
        factors[-3] / 1.2,
        74,
        formats.INT8.name,
        ha="right",
        color=style.PRECISIONS["int8"],
        bold=True,
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks(factors[::2] if style.is_narrow() else factors)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    axes.minorticks_off()
    axes.set_xlabel("Scale of one pixel (logarithmic)")
    axes.set_ylabel("Test accuracy")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_ylim(0, 104)
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)
    return figure


def alt() -> str:
    floats, codes = _means("fp32"), _means("int8")
    ends = (f"{show(floats['accuracy'][place], digits=3)}%" for place in (0, -1))
    fall = (f"{show(mean, digits=3)}% at {factor}" for factor, mean, _ in codes.tail(5).rows())
    first, *_, last = codes["factor"]
    return f"""Test accuracy against the factor by which a pixel is multiplied, from {first} to
    {last} on a logarithmic axis, with error bars. At its ends the level line of {FLOATS} is at
    {listed(ends)}. That of INT8 begins at {show(codes["accuracy"][0], digits=3)}% and then falls:
    {listed(fall)}."""


def _means(precision: str) -> polars.DataFrame:
    """Of each factor the mean accuracy over all seeds, and its spread, in percent."""
    return (
        SCALED.filter(col("precision") == precision)
        .group_by("factor", maintain_order=True)
        .agg((col("accuracy") * 100).mean(), (col("accuracy") * 100).std().alias("std"))
    )
