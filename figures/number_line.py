"""Every positive value of the narrow formats, each a tick on one logarithmic axis."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import formats
from calc.derivations import show
from calc.formats import Float, Integer
from figures import style

ROWS: tuple[Float | Integer, ...] = (
    formats.FP8_E5M2,
    formats.FP8_E4M3,
    formats.FP6_E3M2,
    formats.FP6_E2M3,
    formats.FP4_E2M1,
    formats.INT8,
    formats.INT4,
)


NORMAL, EQUAL = style.BLUE, style.ORANGE


def draw() -> Figure:
    figure = style.figure(height=4.4, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Value", decades=2 if style.is_narrow() else 1)
    axes.set_xlim(5e-6, 4e5)
    axes.set_ylim(len(ROWS) - 0.4, -0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for row, form in enumerate(ROWS):
        _ticks(axes, row, form)
    _legend(axes)
    return figure


def alt() -> str:
    rows = (
        f"{form.name} {_values(form).size}, from {show(_values(form)[0], digits=3)} to "
        f"{show(_values(form)[-1])}"
        for form in ROWS
    )
    return f"""Rows of ticks over a logarithmic axis, a tick for each positive number of a format:
    {"; ".join(rows)}. A floating-point format has the same number of ticks in each power of two;
    those of its subnormal numbers, at its left end, and of the integers stand at equal distances,
    far apart at the left and in a solid band at the right."""


def _values(form: Float | Integer) -> Any:
    """All positive numbers of a format, in order."""
    values = form.decode(range(1, 2 ** (form.bits - 1)))
    return values[values <= form.max]


def _ticks(axes: Axes, row: int, form: Float | Integer) -> None:
    """A tick for each positive value; those that stand at equal distances in another colour."""
    values = _values(form)
    normal_from = form.smallest_normal if isinstance(form, Float) else form.max + 1
    for chosen, color in (
        (values[values >= normal_from], NORMAL),
        (values[values < normal_from], EQUAL),
    ):
        axes.vlines(chosen, row - 0.18, row + 0.3, color=color, linewidth=0.9)
    label = axes.annotate(
        form.name, (values[0], row - 0.24), va="bottom", weight="bold", size=style.SMALL
    )
    if not style.is_narrow():
        axes.annotate(
            f"{values.size} values",
            (1, 0),
            xycoords=label,
            xytext=(6, 0),
            textcoords="offset points",
            va="bottom",
            size=style.SMALL,
        )


def _legend(axes: Axes) -> None:
    narrow = style.is_narrow()
    e4m3, int8 = formats.FP8_E4M3, formats.INT8
    for x, form, side, text, color in (
        (e4m3.smallest_subnormal / 1.5, e4m3, "right", "subnormal:\nequal steps", EQUAL),
        (e4m3.max * 1.5, e4m3, "left", "normal: same number\nin each power of two", NORMAL),
        (int8.max * 1.5, int8, "left", "integer:\nequal steps", EQUAL),
    ):
        style.note(
            axes,
            x,
            ROWS.index(form) + 0.06,
            text.split(":")[0] if narrow else text,
            color=color,
            ha=side,
            va="center",
        )
