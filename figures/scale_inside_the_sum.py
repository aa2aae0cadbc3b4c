"""Scales of tokens and of outputs leave the sum of a product; that of an inner channel cannot."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc.derivations.quantization_quality import Scales
from figures import style


def draw() -> Figure:
    figure = style.figure(height=2.9, narrow_height=4.6)
    axes = figure.subplots()
    tokens, channels, outputs = Scales.tokens, Scales.channels, Scales.outputs
    if style.is_narrow():  # the weights above the product, as a product is done by hand
        inputs, weights, product = (0.0, 0.0), (channels + 1.0, tokens + 1.0), (channels + 1.0, 0.0)
    else:
        inputs = (0.0, (channels - tokens) / 2)
        weights = (channels + 2.0, 0.0)
        product = (channels + outputs + 4.0, (channels - tokens) / 2)
        for left, sign in ((channels + 1.0, "·"), (channels + outputs + 3.0, "=")):
            axes.text(left, channels / 2, sign, ha="center", va="center", size=16)
    _matrix(axes, inputs, tokens, channels, "Activations")
    _matrix(axes, weights, channels, outputs, "Weights")
    _matrix(axes, product, tokens, outputs, "Product")
    row, column, inner = Scales.token, Scales.output, Scales.channel
    _band(axes, inputs, tokens, channels, style.BLUE, row=row)
    _band(axes, product, tokens, outputs, style.BLUE, row=row)
    _band(axes, weights, channels, outputs, style.GREEN, column=column)
    _band(axes, product, tokens, outputs, style.GREEN, column=column)
    _band(axes, inputs, tokens, channels, style.RED, column=inner)
    _band(axes, weights, channels, outputs, style.RED, row=inner)
    _names(axes, inputs, weights, product)
    axes.set_aspect("equal")
    axes.set_xlim(-0.6, product[0] + outputs + 0.6)
    axes.set_ylim(-1.7, weights[1] + channels + 1.2)
    axes.axis("off")
    return figure


def alt() -> str:
    return """Three matrices: activations times weights are the product. A row of the activations, a
    token, and the same row of the product are marked alike, and so are a column of the weights, an
    output, and the same column of the product: their scales multiply a row or a column of the
    product from outside. A column of the activations and the row of the weights that it meets, an
    inner channel, are marked in red, and nothing in the product is: each of its elements adds up
    over all inner channels."""


def _matrix(axes: Axes, corner: tuple[float, float], rows: int, columns: int, name: str) -> None:
    for row in range(rows):
        for column in range(columns):
            place = (corner[0] + column, corner[1] + row)
            axes.add_patch(
                Rectangle(place, 1, 1, fill=False, edgecolor=style.INK, alpha=0.4, linewidth=0.7)
            )
    top = (corner[0] + columns / 2, corner[1] + rows + 0.25)
    style.note(axes, *top, name, ha="center", va="bottom", bold=True)


def _band(
    axes: Axes,
    corner: tuple[float, float],
    rows: int,
    columns: int,
    colour: str,
    row: int | None = None,
    column: int | None = None,
) -> None:
    """One row from above or one column from the left, filled."""
    if row is not None:
        place, width, height = (corner[0], corner[1] + rows - 1 - row), columns, 1
    else:
        assert column is not None
        place, width, height = (corner[0] + column, corner[1]), 1, rows
    axes.add_patch(
        Rectangle(
            place, width, height, facecolor=colour, alpha=0.4, edgecolor=colour, linewidth=1.4
        )
    )


def _names(
    axes: Axes,
    inputs: tuple[float, float],
    weights: tuple[float, float],
    product: tuple[float, float],
) -> None:
    below = (
        (inputs[0] + Scales.channel + 0.5, inputs[1], "inner channel:\nstays inside", style.RED),
        (product[0] + Scales.output + 0.5, product[1], "output:\nleaves the sum", style.GREEN),
    )
    for across, bottom, text, colour in below:
        style.note(axes, across, bottom - 0.25, text, ha="center", va="top", color=colour)
    side = inputs[0] - 0.15, inputs[1] + Scales.tokens - Scales.token - 0.5
    style.note(axes, *side, "token", rotation=90, ha="right", va="center", color=style.BLUE)
