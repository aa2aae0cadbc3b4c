"""The one look of all figures: type, ink, colours, axes.

Figures are transparent, their text stays text, and everything neutral is drawn in INK, which a
page replaces by the colour of its own text: one drawing serves light and dark. A device has the
same colour in every figure, and so has a number format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib.style
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from calc.core.units import Quantity
from calc.derivations import show

P = ParamSpec("P")  # of what draws a figure
FONTS = Path(__file__).parent / "fonts"
STYLE = Path(__file__).with_name("book.mplstyle")
WIDTH = 7.0  # inches: the column of a page
NARROW = 5.0  # a page of less is a phone's

INK = "#1f2328"
# Each of these stands out as well from a light page as from a dark one.
BLUE = "#307ec2"
ORANGE = "#be621a"
GREEN = "#1c8b6c"
PURPLE = "#9c65b9"

RED = "#c85943"  # what is no device

PRECISIONS = {"fp32": INK, "fp16": BLUE, "bf16": ORANGE, "int8": GREEN}
DEVICES = {"h100": BLUE, "a100": ORANGE, "tpu-v5p": GREEN, "phone-npu": PURPLE}

SMALL = 9.5
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
OWN_FONTS = sorted(FONTS.glob("Inter-*.ttf"))  # none beside a notebook
for _font in OWN_FONTS:
    font_manager.fontManager.addfont(_font)


def is_narrow() -> bool:
    """Return whether the figure is for a phone, as matplotlib's own width of a figure tells."""
    width: float = matplotlib.rcParams["figure.figsize"][0]
    return width < NARROW


def drawn_twice(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """A function whose figures say, by `narrow()`, how they are drawn again for a phone's page."""

    @wraps(draw)
    def drawn(*arguments: P.args, **named: P.kwargs) -> Figure:
        figure = draw(*arguments, **named)
        vars(figure)["narrow"] = partial(draw, *arguments, **named)
        return figure

    return drawn


def figure(height: float, narrow_height: float | None = None) -> Figure:
    """An empty figure as wide as the page, in the book's style; a phone's may be higher."""
    matplotlib.style.use(STYLE)
    if not OWN_FONTS:
        matplotlib.rcParams["font.family"] = "sans-serif"
    if is_narrow():
        width = matplotlib.rcParams["figure.figsize"][0]
        return Figure(figsize=(width, narrow_height or height), layout="constrained")
    return Figure(figsize=(WIDTH, height), layout="constrained")


def panels(figure: Figure, count: int, **options: Any) -> Any:
    """Side by side; on a phone one below the other. The options are those of `subplots`."""
    return figure.subplots(*((count, 1) if is_narrow() else (1, count)), **options)


def shared_panels(figure: Figure, count: int, x: str, y: str, **options: Any) -> Any:
    """Panels that share the axis along which they stand; the outer ones alone have its label."""
    narrow = is_narrow()
    axis = "sharex" if narrow else "sharey"
    shared = panels(figure, count, **{axis: True, **options})
    for axes in shared if narrow else shared[:1]:
        axes.set_ylabel(y)
    for axes in shared[-1:] if narrow else shared:
        axes.set_xlabel(x)
    return shared


def shared_label(left: Axes, right: Axes, label: str) -> None:
    """Label the y axis that two panels share; one below the other, each has the label."""
    left.set_ylabel(label)
    if is_narrow():
        right.set_ylabel(label)


def note(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    by: tuple[float, float] | None = None,
    bold: bool = False,
    **look: Any,
) -> Text:
    """Small text at a place of the data, or so many points from it."""
    look = {"size": SMALL, **({"weight": "bold"} if bold else {}), **look}
    if by is None:
        return axes.text(x, y, text, **look)
    return axes.annotate(text, (x, y), by, textcoords="offset points", **look)


def arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], head: str = "->", **look: Any
) -> None:
    """Draw an arrow from one place of the data to another."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": head, "color": INK, **look})


def boxes(axes: Axes, places: Iterable[tuple[float, float, float, float]], **look: Any) -> None:
    """Boxes alike, each by a corner, its width and its height, as one path: a page stays light."""
    corners = ((0, 0), (1, 0), (1, 1), (0, 1), (0, 0))
    outlines = [
        Outline([(x + across * width, y + up * height) for across, up in corners], closed=True)
        for x, y, width, height in places
    ]
    axes.add_patch(PathPatch(Outline.make_compound_path(*outlines), **look))


def diagram(
    figure: Figure, right: float, top: float, left: float = 0.0, bottom: float = 0.0
) -> Axes:
    """Axes of a picture that measures nothing, in units of its own."""
    axes: Axes = figure.subplots()
    canvas(axes, right, top, left, bottom)
    return axes


def canvas(axes: Axes, right: float, top: float, left: float = 0.0, bottom: float = 0.0) -> None:
    """Make axes those of a picture that measures nothing."""
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_axis_off()


def card(
    axes: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    words: str = "",
    color: str = INK,
    alpha: float = 0.15,
    **look: Any,
) -> None:
    """A thing of a picture, by its lower left corner and its size, with its name in the middle."""
    face: dict[str, Any] = {
        "facecolor": (color, alpha),
        "edgecolor": (color, 0.8),
        "linewidth": 0.8,
    }
    axes.add_patch(Rectangle(corner, *size, **face))
    if words:
        middle = corner[0] + size[0] / 2, corner[1] + size[1] / 2
        note(axes, *middle, words, **{"ha": "center", "va": "center", **look})


def key(
    axes: Axes,
    names: Iterable[tuple[str, str]],
    place: tuple[float, float],
    step: float,
    side: Literal["left", "right"] = "left",
) -> None:
    """Names in their colours, one below the other; `place` and `step` are shares of the axes."""
    x, y = place
    look: dict[str, Any] = {"transform": axes.transAxes, "ha": side, "va": "top"}
    for number, (name, color) in enumerate(names):
        note(axes, x, y - step * number, name, bold=True, color=color, **look)


def legend(figure: Figure, above: bool, columns: int, **look: Any) -> None:
    """Draw a legend of the whole figure, above or below it."""
    look |= {"loc": f"outside {'upper' if above else 'lower'} center", "ncols": columns}
    figure.legend(frameon=False, fontsize=SMALL, **look)


class _Powers(LogLocator):
    """Powers of ten; on an axis that holds fewer than two of them, twos and fives between them."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        ticks = super().tick_values(vmin, vmax)
        if sum(vmin <= tick <= vmax for tick in ticks) < 2:
            ticks = LogLocator(subs=(1.0, 2.0, 5.0), numticks=20).tick_values(vmin, vmax)
        return ticks


def log_axis(axes: Axes, which: Literal["x", "y"], label: str, decades: int = 1) -> None:
    """A logarithmic axis with a faint line and a plain number for so many powers of ten each."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_locator(_Powers(base=10**decades, numticks=20))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_label_text(label)
    axes.grid(axis=which, color=INK, alpha=0.12, linewidth=0.6)
    axes.set_axisbelow(True)


def ticks(axis: Axis, places: Sequence[Quantity], unit: str) -> None:
    """Set the ticks of an axis at these places, by their values, in the unit of the axis."""
    axis.set_ticks([tick.m_as(unit) for tick in places], [str(show(tick)) for tick in places])


def name_dot(
    axes: Axes, name: str, place: tuple[float, float], offset: tuple[float, float], side: str
) -> None:
    """A dot's name, so many points from it; `side` is the name's that is towards the dot."""
    note(axes, *place, name, offset, ha=side, va="center", color=RED)


def plain(value: float) -> str:
    """10⁻⁵, 0.1, 100, 10 000, 10⁶: a tick as a reader would write it."""
    if value >= 1e5 or 0 < value < 0.9e-4:
        return f"10{str(round(math.log10(value))).translate(SUPERSCRIPTS)}"
    return (
        f"{value:g}" if value < 1e4 else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    )
