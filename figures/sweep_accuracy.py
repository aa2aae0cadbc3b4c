"""Accuracy of every variant of a sweep: its mean over seeds, and its spread."""

from __future__ import annotations

import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from polars import col

from calc import formats
from calc.core.formatting import listed
from calc.derivations.memory_budgets import VARIANTS
from figures import style

TITLES = {"unstructured": "Weights pruned one by one", "structured": "Whole neurons pruned"}


def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=6.4)
    if style.is_narrow():
        panels = figure.subplots(2, 1, sharex=True)
    else:
        panels = figure.subplots(1, 2, sharey=True)
    for axes, (kind, title) in zip(panels, TITLES.items(), strict=True):
        _panel(axes, VARIANTS.filter(col("kind").is_in(["none", kind])))
        axes.set_title(title, size=style.SMALL, weight="bold", loc="left")
        if style.is_narrow() or kind == "unstructured":
            axes.set_ylabel("Test accuracy")
        if not style.is_narrow() or kind == "structured":
            axes.set_xlabel("Pruned")
    return figure


def alt() -> str:
    panels = (
        f"{title}: {listed(f'{mean:.1%} at {level:.0%}' for level, mean, _ in rows)}"
        for kind, title in TITLES.items()
        for rows in [_levels(kind).rows()]
    )
    apart = max(each for kind in TITLES for each in _levels(kind)["apart"].to_list())
    return f"""Panels of test accuracy against the share that is pruned, with error bars, for
    {listed(formats.get(each).name for each in style.PRECISIONS)}. {"; ".join(panels)}. At no level
    are the means of the formats more than {apart:.1%} apart."""


def _levels(kind: str) -> polars.DataFrame:
    """Of each level of pruning the mean accuracy of all formats, and how far apart these are."""
    accuracy = col("accuracy")
    return (
        VARIANTS.filter(col("kind").is_in(["none", kind]))
        .group_by("pruning")
        .agg(accuracy.mean(), (accuracy.max() - accuracy.min()).alias("apart"))
        .sort("pruning")
    )


def _panel(axes: Axes, rows: polars.DataFrame) -> None:
    for number, (precision, colour) in enumerate(style.PRECISIONS.items()):
        mine = rows.filter(col("precision") == precision).sort("pruning")
        beside = 1.4 * (number - 1.5)  # so that points of one level stand side by side
        axes.errorbar(
            [100 * level + beside for level in mine["pruning"]],
            (100 * mine["accuracy"]).to_list(),
            (100 * mine["accuracy_std"]).to_list(),
            fmt="o",
            color=colour,
            markersize=3.5,
            elinewidth=1.2,
        )
        axes.text(
            0.04,
            0.36 - 0.1 * number,
            formats.get(precision).name,
            transform=axes.transAxes,
            color=colour,
            size=style.SMALL,
            weight="bold",
        )
    axes.set_ylim(0, 103)
    axes.set_xlim(-5, 102)
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0f}%")
