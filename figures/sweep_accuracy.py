"""Accuracy against the share that is pruned: as it comes out of pruning, and after fine-tuning."""

from __future__ import annotations

import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from polars import col

from calc.core.formatting import listed
from calc.derivations.digits_sweep import TUNED, VARIANTS, variant
from figures import style

TITLES = {"unstructured": "(a) Weights pruned one by one", "structured": "(b) Whole neurons pruned"}
CURVES = (("fine-tuned", TUNED, style.BLUE, "-"), ("as pruned", VARIANTS, style.ORANGE, "--"))


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=6.2)
    panels = style.shared_panels(figure, 2, "Pruned", "Test accuracy")
    for axes, (kind, title) in zip(panels, TITLES.items(), strict=True):
        _panel(axes, kind)
        axes.set_title(title, size=style.SMALL, weight="bold", loc="left")
    return figure


def alt() -> str:
    panels = (
        f"{title.split(') ')[1]}: {label} {listed(_told(rows) for rows in _rows(table, kind))}"
        for kind, title in TITLES.items()
        for label, table, *_ in CURVES
    )
    pattern = variant("2:4", 0.5, "fp32", TUNED)
    return f"""Panels of test accuracy in FP32 against the share that is pruned, a line of means
    with a band of one standard deviation over seeds. {"; ".join(panels)}. A diamond is 2:4 after
    fine-tuning, {pattern["accuracy"]:.1%}."""


def _told(row: dict[str, float]) -> str:
    return f"{row['accuracy']:.1%} at {row['pruning']:.0%}"


def _rows(table: polars.DataFrame, kind: str) -> list[dict[str, float]]:
    wanted = col("kind").is_in(["none", kind]) & (col("precision") == "fp32")
    return table.filter(wanted).sort("pruning").rows(named=True)


def _panel(axes: Axes, kind: str) -> None:
    for label, table, colour, line in CURVES:
        rows = _rows(table, kind)
        shares = [100 * row["pruning"] for row in rows]
        means = [100 * row["accuracy"] for row in rows]
        spreads = [100 * row["accuracy_std"] for row in rows]
        axes.fill_between(
            shares,
            [mean - spread for mean, spread in zip(means, spreads, strict=True)],
            [mean + spread for mean, spread in zip(means, spreads, strict=True)],
            color=colour,
            alpha=0.22,
            linewidth=0,
        )
        axes.plot(shares, means, line, color=colour)
        above = label == "fine-tuned"
        style.note(
            axes,
            shares[-2],
            means[-2],
            label,
            (-4, 6) if above else (-26, -6),
            ha="right",
            color=colour,
            bold=True,
        )
    if kind == "unstructured":
        pattern = variant("2:4", 0.5, "fp32", TUNED)
        axes.plot([50], [100 * pattern["accuracy"]], "D", color=style.BLUE, markersize=6)
        style.note(
            axes, 50, 100 * pattern["accuracy"], "2:4", (-14, 6), ha="center", color=style.BLUE
        )
    axes.set_ylim(0, 110)
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0f}%")
