"""A measured step before and after levers of 3, 2, 2 and 1.5, beside what their product says."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations.training_levers import MeasuredStep, PromisedFactors
from figures import style

COLOURS = {
    "forward": style.BLUE,
    "backward": style.GREEN,
    "optimizer": style.ORANGE,
    "clearing": style.PURPLE,
    "data": style.RED,
}
NAMES = {"optimizer": "optimiser"}  # where calc spells otherwise than the book
LABEL: dict[str, Any] = {"size": style.SMALL, "weight": "bold", "va": "bottom"}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.5, narrow_height=3.0)
    axes = figure.subplots()
    shares, narrow = MeasuredStep.shares, style.is_narrow()
    for index, factors in ((0, (1.0,) * len(shares)), (1, MeasuredStep.factors)):
        left = 0.0
        for (part, share), factor in zip(shares.items(), factors, strict=True):
            width = 100 * share / factor
            axes.barh(index, width, left=left, height=0.6, color=COLOURS[part], alpha=0.85)
            if index == 0 and width > 10:
                axes.text(
                    left + (width / 2 if left else 0),
                    -0.4,
                    NAMES.get(part, part),
                    **LABEL,
                    ha="center" if left else "left",
                )
            left += width
    after = 100 / MeasuredStep.combined.m_as("")
    style.note(axes, after + 2, 1, f"{100 / after:.1f} times as fast", va="center", bold=True)
    promised = 100 / PromisedFactors.product
    axes.barh(2, promised, height=0.6, color=style.INK, alpha=0.6)
    product = f"{PromisedFactors.product:.0f} times: "
    style.note(
        axes,
        promised + 2,
        2,
        product + ("the product" if narrow else "what the factors multiply to"),
        va="center",
    )
    axes.set_yticks([0, 1, 2], ["measured", "all levers", "promised"])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(2.5, -0.8)
    axes.set_xlim(0, 100)
    axes.set_xlabel("Time of a step")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    return figure


def alt() -> str:
    after = MeasuredStep.shares["optimizer"] / MeasuredStep.optimizer_factor
    after *= MeasuredStep.combined.magnitude
    before = (f"{NAMES.get(part, part)} {share:.1%}" for part, share in MeasuredStep.shares.items())
    return f"""Bars of time, in percent of a measured step. The parts of that step are
    {listed(before)}. With all levers {1 / MeasuredStep.combined:.0%} are left, {after:.0%} of it
    the optimiser. The bar that the product of the factors promises is
    {1 / PromisedFactors.product:.1%} long."""
