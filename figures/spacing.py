"""Figure of the gaps of neighbouring numbers, relative to their size, over a format's range."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import formats
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.number_formats import RangeWall
from calc.formats import Float, Integer
from figures import style

COLOURS: dict[Float | Integer, str] = {
    formats.FP32: style.PRECISIONS["fp32"],
    formats.FP16: style.PRECISIONS["fp16"],
    formats.BF16: style.PRECISIONS["bf16"],
    formats.FP8_E5M2: style.PURPLE,
    formats.FP8_E4M3: style.RED,
    formats.INT8: style.PRECISIONS["int8"],
}
LOW, HIGH = 1e-12, 1e8


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.6, narrow_height=4.6)
    axes = figure.subplots()
    narrow = style.is_narrow()
    style.log_axis(axes, "x", "Value", decades=4 if narrow else 2)
    gap = (
        "Gap, as a share of the value"
        if narrow
        else "Gap to the next number, as a share of the value"
    )
    style.log_axis(axes, "y", gap)
    axes.set_xlim(LOW, HIGH)
    axes.set_ylim(4e-8, 10)
    for form, color in COLOURS.items():
        if isinstance(form, Float):
            _curve(axes, form, color)
    _integers(axes, formats.INT8)
    _gradient(axes)
    _labels(axes, narrow)
    return figure


def alt() -> str:
    gaps = (
        f"{show(form.ulp(1.0), digits=3)} in {form.name}"
        for form in COLOURS
        if isinstance(form, Float)
    )
    ranges = (
        f"{form.name} from {show(form.smallest_subnormal, digits=2)} to {show(form.max)}"
        for form in COLOURS
        if isinstance(form, Float) and form.max < HIGH
    )
    integers = formats.INT8
    return f"""Log-log plot of the gap between neighbouring numbers, as a share of the value,
    against the value. The lines of floating-point formats are sawteeth, level across most of their
    range: at {show(1)} the gap is {listed(gaps)}. FP32 and BF16 cross the whole axis, from
    {show(LOW)} to {show(HIGH)}; the other lines climb at the left to a gap as large as the value
    and end at the right at a wall, {listed(ranges)}. INT8 is a slope from {show(integers.step)} to
    a wall at {show(integers.max)}, and a dotted line marks a gradient of
    {show(RangeWall.gradient)}."""


def _curve(axes: Axes, form: Float, color: str) -> None:
    """Draw the gaps from the smallest number, of its own size, to the wall behind the largest."""
    smallest, largest = max(form.smallest_subnormal, LOW), min(form.max, HIGH)
    exponents = numpy.arange(numpy.floor(numpy.log2(smallest)), numpy.log2(largest) + 1)
    # Within a power of two the gap is constant, so that its share of the value halves.
    corners = numpy.stack([2.0**exponents, numpy.nextafter(2.0 ** (exponents + 1), 0)], axis=1)
    values = corners.ravel().clip(smallest, largest)
    axes.plot(values, form.ulp(values) / values, color=color, linewidth=1.3)
    if form.max < HIGH:
        _wall(axes, form.max, form.ulp(form.max), color)


def _integers(axes: Axes, form: Integer) -> None:
    """Draw the same gap everywhere, as a slope alone."""
    ends = numpy.array([form.step, form.max])
    axes.plot(ends, form.step / ends, color=COLOURS[form], linewidth=1.3, linestyle=(0, (5, 2)))
    _wall(axes, form.max, form.step, COLOURS[form])


def _wall(axes: Axes, largest: float, gap: float, color: str) -> None:
    axes.vlines(largest, gap / largest, axes.get_ylim()[1], color=color, linewidth=1.3)


def _gradient(axes: Axes) -> None:
    axes.axvline(RangeWall.gradient, color=style.INK, linestyle=":", linewidth=1.2)
    style.note(
        axes,
        RangeWall.gradient,
        1e-5,
        f"a gradient of {style.plain(RangeWall.gradient)}",
        (-4, 0),
        rotation=90,
        ha="right",
        va="center",
    )


def _labels(axes: Axes, narrow: bool) -> None:
    for form, x, y, side in (
        (formats.FP32, 1e-5, 1.6e-7, "left"),
        (formats.BF16, 5e7, 1.1e-2, "right"),
        (formats.FP16, formats.FP16.smallest_subnormal / 2, 1.4, "left"),
        (formats.FP8_E5M2, formats.FP8_E5M2.smallest_subnormal, 3, "center"),
        (formats.FP8_E4M3, formats.FP8_E4M3.smallest_subnormal, 1.4, "center"),
        (formats.INT8, formats.INT8.step, 3, "center"),
    ):
        name = form.name.removeprefix("FP8 ") if narrow else form.name
        style.note(axes, x, y, name, color=COLOURS[form], ha=side, bold=True)
    if not narrow:
        style.note(axes, 4e-6, 0.02, "the smallest numbers lose digits")
        style.note(axes, 1e5, 0.6, "beyond\nthe wall:\ninfinity\nor NaN", va="center")
