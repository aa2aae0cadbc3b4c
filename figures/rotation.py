"""A block with an outlier before and after a rotation, and what that does to its error."""

from __future__ import annotations

from math import nan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.number_formats import Rotation, rotated_error
from calc.formats import Block, TwoLevelBlock
from figures import style

COLOURS: dict[Block | TwoLevelBlock, str] = {Rotation.mx: style.ORANGE, Rotation.nv: style.BLUE}
LABELS = {  # at which multiple, and how many points above the line
    (Rotation.mx, False): (16, 6),
    (Rotation.mx, True): (2, 14),
    (Rotation.nv, False): (16, -14),
    (Rotation.nv, True): (32, 7),
}


def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=6.6)
    left, right = style.panels(figure, 2)
    _block(left)
    _errors(right)
    return figure


def alt() -> str:
    return f"""Two panels. In the first, a block of {Rotation.block_size} values, of which one is
    {show(Rotation.largest_before)} and no other is above
    {show(Rotation.next_before, digits=2)}; after the rotation all are of the
    same order, the largest {show(Rotation.largest_after, digits=2)}. In the second, the error of
    {Rotation.mx.name} and {Rotation.nv.name} against the size of the outlier: where it is
    {Rotation.example_times} times as large as the others, a rotation takes that of
    {Rotation.mx.name} from {show(Rotation.mx_plain, digits=2)} to
    {show(Rotation.mx_turned, digits=2)} and that of {Rotation.nv.name} from
    {show(Rotation.nv_plain, digits=2)} to {show(Rotation.nv_turned, digits=2)}."""


def _block(axes: Axes) -> None:
    places = range(Rotation.block_size)
    axes.set_title("One block", size=style.SMALL, weight="bold", loc="left")
    axes.axhline(0, color=style.INK, linewidth=0.6)
    for values, shift, colour in (
        (Rotation.block, -0.18, style.INK),
        (Rotation.turned, 0.18, style.GREEN),
    ):
        x = [place + shift for place in places for _ in range(3)]
        bars = [end for value in values for end in (0, value, nan)]
        axes.plot(x, bars, color=colour, linewidth=2.4, solid_capstyle="butt")
    style.note(axes, 4.2, Rotation.largest_before, "before", va="top", bold=True)
    style.note(axes, 9, Rotation.largest_after + 1, "rotated", color=style.GREEN, bold=True)
    axes.set_xticks([])
    axes.set_xlabel("Values of the block")
    axes.set_ylabel("Value")


def _errors(axes: Axes) -> None:
    axes.set_title("Error of many blocks", size=style.SMALL, weight="bold", loc="left")
    for form, colour in COLOURS.items():
        for rotated, stroke in ((False, "-"), (True, (0, (4, 2)))):
            errors = [rotated_error(form, times, rotated).m_as("%") for times in Rotation.times]
            axes.plot(Rotation.times, errors, color=colour, linestyle=stroke, linewidth=1.5)
            name = f"{form.name}, rotated" if rotated else form.name
            place, offset = LABELS[form, rotated]
            style.note(
                axes,
                place,
                errors[Rotation.times.index(place)],
                name,
                (0, offset),
                ha="center",
                color=colour,
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks(Rotation.times, [str(times) for times in Rotation.times])
    axes.minorticks_off()
    axes.set_ylim(0, 22)
    axes.set_yticks(range(0, 25, 5))
    axes.set_xlabel("Outlier, as a multiple of the others")
    axes.set_ylabel("Error (%)")
