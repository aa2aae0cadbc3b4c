"""A layer of experts on four devices: a token's vector goes to its experts, results come back."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import BoxStyle, FancyArrowPatch, FancyBboxPatch

from calc.derivations import show
from calc.derivations.experts_chapter import ExpertExchange
from figures import style

DEVICES = 4
CHOSEN = ((0, 1), (2, 1), (3, 0))  # the devices of the token's experts, and which of two they are
HOME = 0
TOP, MIDDLE, BOTTOM = 2.0, 1.0, 0.0


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=4.2)
    axes = figure.subplots()
    for device in range(DEVICES):
        _box(axes, device, TOP, 0.8, f"GPU {device + 1}\ntokens")
        _box(axes, device, BOTTOM, 0.8, "the same\ntokens")
        for expert in (0, 1):
            used = (device, expert) in CHOSEN
            name = f"E{2 * device + expert + 1}"
            _box(axes, device + (expert - 0.5) * 0.42, MIDDLE, 0.36, name, used)
    for device, expert in CHOSEN:
        column = device + (expert - 0.5) * 0.42
        _arrow(axes, (HOME, TOP - 0.24), (column, MIDDLE + 0.24), style.BLUE)
        _arrow(axes, (column, MIDDLE - 0.24), (HOME, BOTTOM + 0.24), style.ORANGE)
    narrow = style.is_narrow()
    for height, name, size, colour in (
        (1.5, "dispatch, FP8", ExpertExchange.token_there, style.BLUE),
        (0.5, "combine, BF16", ExpertExchange.token_back, style.ORANGE),
    ):
        words = f"{name}:\n{show(size, digits=3)} a token"
        style.note(
            axes,
            DEVICES - 0.55,
            height,
            words,
            ha="right" if narrow else "left",
            va="center",
            color=colour,
            bold=True,
        )
    axes.set_xlim(-0.5, DEVICES - 0.5 if narrow else DEVICES + 0.9)
    axes.set_ylim(-0.35, 2.35)
    axes.axis("off")
    return figure


def alt() -> str:
    return f"""{DEVICES} GPUs in a row, each with tokens of its own above, two experts in the middle
    and the same tokens below. Arrows lead from the first GPU to the {len(CHOSEN)} experts that a
    token has chosen, one of them its own and the others on two other GPUs, and back from them. With
    {ExpertExchange.copies} experts the way there is
    {show(ExpertExchange.token_there, digits=3)} of FP8, and the way back
    {show(ExpertExchange.token_back, digits=3)} of BF16."""


def _box(axes: Axes, x: float, y: float, width: float, words: str, used: bool = False) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - 0.22),
            width,
            0.44,
            boxstyle=BoxStyle.Round(pad=0, rounding_size=0.05),
            facecolor=style.GREEN if used else "none",
            edgecolor=style.GREEN if used else style.INK,
            linewidth=1,
        )
    )
    style.note(axes, x, y, words, ha="center", va="center", color="#ffffff" if used else style.INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=11, color=colour, linewidth=1.6
        )
    )
