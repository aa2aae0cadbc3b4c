"""Ten numbers between the fifteen that four bits and a scale can say, in MXFP4 and in NVFP4."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.number_formats import WorkedBlock
from figures import style

LABELLED = (0, 1, 2, 3, 4, 6)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.6, narrow_height=8.4)
    left, right = style.panels(figure, 2, sharey=True)
    mx_scale = f"{WorkedBlock.mx.name}: scale {show(WorkedBlock.mx_scale)}"
    nv_scale = (
        f"{WorkedBlock.nv.name}: scale {show(WorkedBlock.nv_block_scale)}"
        f" × {show(WorkedBlock.tensor_scale, digits=3)} = {show(WorkedBlock.nv_scale, digits=3)}"
    )
    left.set_ylabel("Value")
    _panel(left, mx_scale, WorkedBlock.mx_scale, WorkedBlock.mx_back, WorkedBlock.mx_codes)
    _panel(right, nv_scale, WorkedBlock.nv_scale, WorkedBlock.nv_back, WorkedBlock.nv_codes)
    return figure


def alt() -> str:
    return f"""Panels for {WorkedBlock.mx.name} and {WorkedBlock.nv.name} with the same
    {WorkedBlock.count} numbers as dots, over lines at the numbers that an element times the scale
    can be. The scale of {WorkedBlock.mx.name} is {show(WorkedBlock.mx_scale)}, so its lines end at
    {show(WorkedBlock.mx_largest_back)} and the largest number, {show(WorkedBlock.largest)}, is cut
    off by {show(WorkedBlock.mx_clipped, digits=2)}; that of {WorkedBlock.nv.name} is
    {show(WorkedBlock.nv_scale, digits=3)}, its lines end at
    {show(WorkedBlock.nv_largest_back, digits=3)}, and {show(WorkedBlock.nv_clipped, digits=2)} is
    cut off. From each dot a stroke leads to the line that it is rounded to, and below stands its
    code of {WorkedBlock.element.bits} bits."""


def _panel(
    axes: Axes, title: str, scale: float, back: tuple[float, ...], codes: tuple[int, ...]
) -> None:
    """Values as dots, the grid of the element times the scale, and where each value goes."""
    element, count = WorkedBlock.element, WorkedBlock.count
    axes.set_title(title, size=style.SMALL, weight="bold", loc="left")
    levels = [element.decode(code) for code in range(2 ** (element.bits - 1))]
    levels += [-level for level in levels[1:]]
    right = count + 0.3
    _strokes(axes, [((-0.8, level * scale), (right, level * scale)) for level in levels], 0.7, 0.45)
    for level in levels:
        if abs(level) in LABELLED:
            name = f"{level:{'+' if level else ''}g}".replace("-", "−")
            y = level * scale
            style.note(axes, count + 0.6, y, name, color=style.BLUE, va="center")
    rounded = list(zip(range(count), WorkedBlock.values, back, strict=True))
    _strokes(axes, [((x, value), (x, end)) for x, value, end in rounded], 2.2, 1, style.RED)
    _strokes(axes, [((x - 0.35, end), (x + 0.35, end)) for x, _, end in rounded], 2.2, 1)
    dots = [((x, value), (x + 0.01, value)) for x, value, _ in rounded]
    _strokes(axes, dots, 3.6, 1, style.INK)
    for row, code in enumerate(codes):
        text = f"{code:0{element.bits}b}"
        style.note(axes, row, -4.25, text, rotation=90, ha="center", va="top")
    style.note(axes, -0.7, -5.75, "sign, exponent, exponent, mantissa")
    axes.set_xlim(-0.8, count + 1.6)
    axes.set_ylim(-6.1, 4.1)
    axes.set_xticks([])
    axes.set_yticks(range(-4, 5))
    axes.spines["bottom"].set_visible(False)


def _strokes(
    axes: Axes,
    ends: Sequence[tuple[tuple[float, float], tuple[float, float]]],
    width: float,
    alpha: float,
    colour: str = style.BLUE,
) -> None:
    """Strokes from point to point, all in one line with gaps, which keeps the drawing small."""
    x = [at for (first, _), (last, _) in ends for at in (first, last, nan)]
    y = [at for (_, first), (_, last) in ends for at in (first, last, nan)]
    axes.plot(x, y, color=colour, linewidth=width, alpha=alpha, solid_capstyle="round")
