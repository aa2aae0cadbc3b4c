"""Plans drawn with matplotlib, and drawings written so that a light page and a dark one take them.

Everything neutral is in one ink, which a written drawing takes from the page that it stands on.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.core.errors import InputError, MissingExtraError
from calc.core.files import writable, write_text
from calc.planning.comparing import devices
from calc.planning.comparing_report import label
from calc.planning.report import RANGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from calc.planning.comparing import Comparison

INK = "#1f2328"
COLORS = ("#307ec2", "#be621a", "#1c8b6c", "#9c65b9", "#c85943")  # on light paper and on dark
STYLE = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "calc",  # and what is drawn twice is the same file
}
PAGE = """<style>svg { color: #1f2328; background: #fefdfb }
@media (prefers-color-scheme: dark) { svg { color: #dcdee1; background: #15171a } }</style>
"""
PAID = {"cost_per_token": "Cost", "energy_per_token": "Energy"}
APART = 0.11  # of the height of the axes, from one label of two lines to the next


def front(found: Comparison) -> Figure:
    """The entries of a comparison as curves over their batches, and the front of all as a band."""
    if not found.paid:
        raise InputError(
            "a front holds cost against time, and neither a price is given nor a power published:"
            ' give price ("3 USD/hour")'
        )
    matplotlib = _matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        best = sorted((p for plans in found.front.values() for p in plans), key=found.latency)
        points = [(found.latency(each), found.price(each)) for each in best]
        axes.step(*zip(*points, strict=True), where="post", color=INK, alpha=0.2, linewidth=7)
        ends = []
        for place, entry in enumerate(found.has(found.paid)):
            color, plan = COLORS[place % len(COLORS)], found.plan_of(entry)
            points = [(found.latency(each), found.price(each)) for each in entry.curve]
            axes.plot(*zip(*points, strict=True), "o-", color=color, markersize=3.5, linewidth=1.5)
            end = found.latency(plan), found.price(plan)
            axes.plot(*end, "o", color=color, markersize=7)
            text = f"{label(found, entry)}\n{devices(plan)}, batch {plan.batch}"
            ends.append((end, text, color))
        for axis in ("x", "y"):
            _logarithmic(axes, axis, matplotlib.ticker.FuncFormatter(_plain))
        axes.set_xlabel("Time per token (ms)")
        axes.set_ylabel(f"{PAID[found.paid]} ({RANGES[found.paid][1]})")
        _label(axes, ends)
    return figure


def write_svg(figure: Figure, file: Path | str) -> None:
    """The drawing as an SVG, whose ink and paper are those of a light or a dark screen."""
    text = io.StringIO()
    with _matplotlib().rc_context(STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None})
    drawn = text.getvalue().replace(INK, "currentColor").replace("<defs>", f"{PAGE}<defs>", 1)
    write_text(checked_svg(file), drawn)


def checked_svg(file: Path | str) -> Path:
    """A file that can be written and whose name says what it is."""
    if (path := writable(file)).suffix != ".svg":
        raise InputError(f"a drawing is an SVG and needs a name that ends in .svg; got {file}")
    return path


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
        import matplotlib.ticker
    except ImportError:
        raise MissingExtraError("a drawing", "matplotlib", "planning") from None
    return matplotlib


def _logarithmic(axes: Any, which: str, formatter: Callable[..., str]) -> None:
    getattr(axes, f"set_{which}scale")("log")
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(formatter)
    axis.set_minor_formatter(formatter)
    axis.get_minor_locator().set_params(subs=(2, 3, 5))
    axes.grid(axis=which, which="both", color=INK, alpha=0.12, linewidth=0.6)


def _plain(value: float, _: int) -> str:
    return f"{value:g}"


def _label(axes: Any, ends: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Each curve's name beside the axes, as high as its end is, or as near as others allow."""
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) for end, _, _ in ends]
    taken = 2.0
    for height, (end, text, color) in sorted(zip(heights, ends, strict=True), reverse=True):
        taken = min(height, taken - APART)
        axes.annotate(
            text,
            end,
            xytext=(1.04, taken),
            textcoords="axes fraction",
            va="center",
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6},
        )
