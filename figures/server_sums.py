"""A hierarchical all-reduce: sums in each server, then over rails, and gathered again."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.collectives_chapter import InAndBetween, TwoNetworks
from figures import style

DRAWN = 4  # devices of a server, and so parts of the array
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
PITCH = DRAWN + 0.8
LEVELS = (3.3, 0.0)
STEPS = (
    ("start", "", None),
    ("sum in the server", "NVLink", InAndBetween.within),
    ("sum over rails", "a port", TwoNetworks.by_hierarchy),
    ("gather", "NVLink", InAndBetween.within),
)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.7, narrow_height=4.6)
    shape = (2, 2) if narrow else (1, 4)
    panels = figure.subplots(*shape).flat
    for step, (axes, (name, link, sent)) in enumerate(zip(panels, STEPS, strict=True)):
        style.canvas(axes, DRAWN * PITCH - 0.1, 6.9, left=-0.5, bottom=-2.3)
        for low in LEVELS:
            style.card(axes, (-0.4, low - 0.3), (DRAWN * PITCH + 0.1, 2.2), alpha=0.05)
            for device in range(DRAWN):
                _device(axes, device, low, step)
        if link == "a port":
            for device in range(DRAWN):
                middle = device * PITCH + device + 0.5
                ends = (middle, LEVELS[1] + 1.7), (middle, LEVELS[0] - 0.1)
                style.arrow(axes, *ends, head="<->", color=style.INK)
        style.note(axes, -0.3, 5.7, name, bold=True)
        if sent is not None:
            text = f"{show(sent, digits=3)} by\n{link}"
            style.note(axes, -0.3, -0.8, text, va="top", color=style.RED)
    return figure


def alt() -> str:
    within, between = (
        show(size, digits=3) for size in (InAndBetween.within, TwoNetworks.by_hierarchy)
    )
    return f"""Two servers of {show(DRAWN)} devices in four panels. At the start each device has all
    parts of the array, faint. After sums in the server, {within} by NVLink, each has one part,
    stronger. After sums over rails, arrows from each device to its like, {between} by a port, that
    part is full. After a gather, {within} by NVLink, each device has all parts."""


def _device(axes: Axes, device: int, low: float, step: int) -> None:
    """Parts of the array that a device has, the stronger the more of their sum is done."""
    for part, color in enumerate(COLORS):
        left = device * PITCH + part
        has = step in (0, 3) or part == device
        alpha = (0.18, 0.5, 0.9, 0.9)[step] if has else 0.0
        style.card(axes, (left, low), (1, 1.6), color=color if has else style.INK, alpha=alpha)
