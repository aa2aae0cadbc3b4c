"""A ring all-reduce among four devices, step by step: who holds the sum of whose parts."""

from __future__ import annotations

from string import ascii_lowercase

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from calc.derivations import show
from calc.derivations.collectives_chapter import Exchange, RingOfFour
from figures import style

DEVICES = ascii_lowercase[: RingOfFour.devices]
GAP = 0.3  # between two devices, for the arrow


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.4, narrow_height=8.0)
    panels = figure.subplots(4, 2) if narrow else figure.subplots(2, 4)
    history = RingOfFour.steps()
    half = len(history) // 2
    # The words between the halves take a panel, so that each half fills its own.
    shown: list[Exchange | None] = [*history[: half + 1], None, *history[half + 1 :]]
    step = 0
    for axes, exchange in zip(panels.flat, shown, strict=True):
        axes.set_axis_off()
        axes.set_xlim(-GAP - 0.1, len(DEVICES) * (1 + GAP) - GAP + 0.05)
        axes.set_ylim(len(DEVICES), -1.75)
        axes.set_aspect("equal")
        if exchange is None:
            _legend(axes)
            continue
        _devices(axes, exchange)
        title = f"Step {step}: {'add' if step <= half else 'copy'}" if step else "Start"
        style.note(axes, 0, -1.15, title, bold=True)
        step += 1
    return figure


def alt() -> str:
    n, *_, last = RingOfFour.devices, *RingOfFour.steps()
    whole = sum(len(summed) == n for parts in last.held for summed in parts)
    return f"""Grids of {n} devices by {n} parts of an array: at the start, and after each of
    {show(2 * (n - 1))} steps. In each of the first {show(n - 1)} steps every device receives a part
    from its left neighbour and adds it, until each holds a part that is the sum of all, marked Σ.
    In the {show(n - 1)} steps after them the finished sums go round as copies, until all {whole}
    cells hold one."""


def _devices(axes: Axes, exchange: Exchange) -> None:
    for device, parts in enumerate(exchange.held):
        left = device * (1 + GAP)
        style.note(axes, left + 0.5, -0.3, DEVICES[device], ha="center", alpha=0.8)
        for part, summed in enumerate(parts):
            complete = len(summed) == len(DEVICES)
            fill, alpha = (style.RED, 1) if complete else (style.INK, 0.13 * (len(summed) - 1))
            axes.add_patch(
                Rectangle(
                    (left, part),
                    1,
                    0.92,
                    facecolor=to_rgba(fill, alpha),
                    edgecolor=style.INK,
                    linewidth=0.5,
                    clip_on=False,
                )
            )
            style.note(
                axes,
                left + 0.5,
                part + 0.48,
                "Σ" if complete else "".join(DEVICES[index] for index in sorted(summed)),
                ha="center",
                va="center",
                color="#ffffff" if complete else style.INK,
                weight="bold" if complete else "normal",
            )
    for _, receiver, part in exchange.messages:
        end = receiver * (1 + GAP)
        axes.add_patch(
            FancyArrowPatch(
                (end - GAP - 0.08, part + 0.46),
                (end + 0.06, part + 0.46),
                arrowstyle="-|>",
                mutation_scale=8,
                color=style.RED,
                linewidth=1.6,
                shrinkA=0,
                shrinkB=0,
                clip_on=False,
            )
        )


def _legend(axes: Axes) -> None:
    lines = ("Σ is the sum of all", "devices. Each holds", "one; now they go", "round as copies.")
    style.note(axes, 0, 0.1, "\n".join(lines), va="top", linespacing=1.4)
