"""A long cache on the processors of an H100: one block for each head, and split into parts."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.attention_chapter import Decode
from figures import style

ACROSS = 12  # processors in a row of the picture
DOWN = Decode.sms // ACROSS
LONG = 13.0  # of the cache, as it is drawn
LEFT = 17.0  # where the processors begin
COLORS = (style.BLUE, style.GREEN)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.6, narrow_height=3.4)
    axes = style.diagram(figure, LEFT + ACROSS, 2 * DOWN + 6.6, left=-0.3, bottom=-0.3)
    heads = f"{show(Decode.groups)} heads" if narrow else f"{show(Decode.groups)} heads of keys"
    for bottom, parts, busy, text in (
        (DOWN + 4.0, 1, Decode.groups, "whole"),
        (0.0, Decode.parts, Decode.sms, f"{show(Decode.parts)} parts"),
    ):
        _cache(axes, bottom + 1.2, parts)
        _processors(axes, bottom, busy)
        tokens = f"{heads}, {text}"
        style.note(axes, 0, bottom + DOWN + 0.4, tokens, bold=True, color=style.BLUE)
        style.note(axes, LEFT, bottom + DOWN + 0.4, f"{show(busy)} of {show(Decode.sms)} SMs")
        style.arrow(axes, (LONG + 0.6, bottom + DOWN / 2), (LEFT - 0.5, bottom + DOWN / 2))
    style.note(axes, 0, DOWN + 5.0, f"{show(Decode.context)} tokens", va="top")
    style.note(axes, 0, 1.0, f"of {show(Decode.part, digits=2)} tokens", va="top")
    return figure


def alt() -> str:
    return f"""The cache of one request, a bar of {show(Decode.context)} tokens for each of
    {show(Decode.groups)} heads of keys, beside a grid of processors. Whole, the bars fill
    {show(Decode.groups)} of {show(Decode.sms)}. Cut into {show(Decode.parts)} parts of
    {show(Decode.part, digits=2)} tokens, they fill all {show(Decode.sms)}."""


def _cache(axes: Axes, bottom: float, parts: int) -> None:
    long = LONG / parts
    pitch = (DOWN - 1.2) / Decode.groups
    for shade, color in enumerate(COLORS):
        cut = [
            (part * long, bottom + head * pitch, long, 0.85 * pitch)
            for head in range(Decode.groups)
            for part in range(shade, parts, len(COLORS))
        ]
        if cut:
            style.boxes(
                axes, cut, facecolor=(color, 0.6), edgecolor=(style.INK, 0.4), linewidth=0.4
            )


def _processors(axes: Axes, bottom: float, busy: int) -> None:
    every = [
        (LEFT + n % ACROSS, bottom + DOWN - 1 - n // ACROSS, 0.84, 0.84) for n in range(Decode.sms)
    ]
    look = {"edgecolor": (style.INK, 0.5), "linewidth": 0.5}
    style.boxes(axes, every[:busy], facecolor=(style.BLUE, 0.75), **look)
    if every[busy:]:
        style.boxes(axes, every[busy:], facecolor=(style.INK, 0.06), **look)
