"""Two forms of one quantiser on the same data: the staircase, and the error that it leaves."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import quantization
from calc.derivations import show
from calc.derivations.quantization import Drawing
from figures import style

VALUES = 4001  # of a staircase
FORMS = {
    "symmetric": (quantization.symmetric, style.INK),
    "asymmetric": (quantization.affine, style.RED),
}


def draw() -> Figure:
    figure = style.figure(height=4.7, narrow_height=8.6)
    if style.is_narrow():
        panels = figure.subplots(4, 1, height_ratios=(3, 2, 3, 2))
        pairs = [(panels[0], panels[1]), (panels[2], panels[3])]
    else:
        grid = figure.subplots(2, 2, height_ratios=(3, 2), sharey="row")
        pairs = [(grid[0, column], grid[1, column]) for column in range(2)]
    for number, (upper, lower) in enumerate(pairs):
        _case(upper, lower, *Drawing.cases[number])
        if style.is_narrow() or not number:
            upper.set_ylabel("After the round trip")
            lower.set_ylabel("Error")
    return figure


def alt() -> str:
    (weights, weight_bounds), (outputs, output_bounds) = (
        _codes_and_bounds(data) for _, data in Drawing.cases
    )
    return f"""Pairs of panels over the value: above, the staircase of the round trip in
    {Drawing.bits} bits, and below its error, a sawtooth between plus and minus half a step. First
    weights, spread evenly about zero: {weights[0]} symmetric and {weights[1]} asymmetric codes make
    nearly the same staircase, with errors of up to {show(weight_bounds[0], digits=2)} and
    {show(weight_bounds[1], digits=2)}. Then what is left after a ReLU: only {outputs[0]} of the
    symmetric codes occur and all {outputs[1]} asymmetric ones, and the errors reach
    {show(output_bounds[0], digits=2)} and {show(output_bounds[1], digits=2)}."""


def _codes_and_bounds(data: Any) -> tuple[list[int], list[float]]:
    """Of each form on these data: how many codes occur, and the bound of the error."""
    value = numpy.linspace(data.min(), data.max(), VALUES)
    schemes = [build(data, Drawing.bits) for build, _ in FORMS.values()]
    codes = [numpy.unique(scheme.quantize(value)).size for scheme in schemes]
    return codes, [float(scheme.error_bound) for scheme in schemes]


def _case(upper: Axes, lower: Axes, name: str, data: Any) -> None:
    low, high = float(data.min()), float(data.max())
    value = numpy.linspace(low, high, VALUES)
    upper.set_title(name, size=style.SMALL, weight="bold", loc="left")
    _histogram(upper, data)
    upper.plot([low, high], [low, high], ":", color=style.INK, linewidth=0.8)
    bounds = []
    for line, (form, (build, colour)) in enumerate(FORMS.items()):
        scheme = build(data, Drawing.bits)
        codes = scheme.quantize(value)
        restored = scheme.dequantize(codes)
        upper.plot(value, restored, color=colour, linewidth=1.4, alpha=0.9)
        lower.plot(value, restored - value, color=colour, linewidth=1.4, alpha=0.9)
        bounds.append(float(scheme.error_bound))
        for side in (-1, 1):
            bound = side * bounds[-1]
            lower.axhline(bound, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
        style.note(
            upper,
            0.97,
            0.16 - 0.11 * line,
            f"{form}: {numpy.unique(codes).size} codes",
            transform=upper.transAxes,
            ha="right",
            color=colour,
            bold=True,
        )
    lower.set_ylim(-1.25 * max(bounds), 1.55 * max(bounds))
    style.note(lower, low, 1.1 * max(bounds), "half a step")
    margin = 0.04 * (high - low)
    for axes in (upper, lower):
        axes.set_xlim(low - margin, high + margin)
    lower.set_xlabel("Value")


def _histogram(axes: Axes, data: Any) -> None:
    """How often each value occurs, as a shadow; the zeros of a ReLU stand out of the picture."""
    counts, edges = numpy.histogram(data, bins=36)
    shadow = axes.twinx()
    shadow.stairs(counts, edges, fill=True, color=style.INK, alpha=0.12)
    shadow.set_ylim(0, 1.3 * numpy.sort(counts)[-2])
    shadow.axis("off")
