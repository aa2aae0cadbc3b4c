"""Where to cut off: rounding error falls with the clip point, clipping error rises."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.quantization import Clipping
from figures import style

FRACTIONS = numpy.linspace(0.2, 1, 161)  # of the largest value
CLIP = FRACTIONS * Clipping.largest.magnitude


def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=6.2)
    narrow = style.is_narrow()
    panels = style.panels(figure, 2, sharey=not narrow)
    _panel(panels[0], Clipping.few_bits)
    _panel(panels[1], Clipping.many_bits)
    for axes in panels if narrow else panels[:1]:
        axes.set_ylabel("Squared error / variance")
    return figure


def alt() -> str:
    (few, _, _, best_few), (many, _, _, best_many) = map(
        _errors, (Clipping.few_bits, Clipping.many_bits)
    )
    return f"""Panels of squared error, as a share of the variance and on a logarithmic axis,
    against the clip point in standard deviations. Where the clip point rises, rounding error rises
    and clipping error falls. With {Clipping.few_bits} bits their sum is least at
    {CLIP[best_few]:.1f}. With {Clipping.many_bits} bits rounding error is
    {show(few[-1] / many[-1], digits=2)} times as small, and the sum is least at
    {CLIP[best_many]:.1f}, near the largest value of {show(Clipping.largest, digits=2)}."""


def _errors(bits: int) -> tuple[Any, Any, Any, int]:
    """Errors by rounding, by clipping and in all at each clip point, and where all is least."""
    rounding, clipping = Clipping.errors(bits, FRACTIONS)
    total = rounding + clipping
    return rounding, clipping, total, int(total.argmin())


def _panel(axes: Axes, bits: int) -> None:
    clip, (rounding, clipping, total, best) = CLIP, _errors(bits)
    style.log_axis(axes, "y", "")
    axes.plot(clip, rounding, color=style.INK, linewidth=1.2, linestyle=(0, (4, 3)))
    axes.plot(clip[clipping > 0], clipping[clipping > 0], color=style.RED, linewidth=1.4)
    axes.plot(clip, total, color=style.INK, linewidth=2.2)
    axes.set_ylim(1.4e-5, 0.6)
    axes.set_xlabel("Clip point (standard deviations)")
    axes.set_title(f"{bits} bits", size=style.SMALL, weight="bold", loc="left")
    inside = best < len(clip) - 20
    axes.plot(clip[best], total[best], "o", color=style.INK, markersize=6, zorder=5)
    style.note(
        axes,
        clip[best],
        total[best],
        f"least at {clip[best]:.1f}",
        (0, 9) if inside else (8, 78),
        ha="center" if inside else "right",
        arrowprops=None if inside else {"arrowstyle": "-", "color": style.INK, "linewidth": 0.6},
        bold=True,
    )
    seen = int((rounding > 2e-5).argmax()) + 36
    style.note(axes, clip[seen], rounding[seen], "rounding", (-6, 6), ha="right")
    style.note(axes, clip[110], clipping[110], "clipping", (-4, -12), ha="right", color=style.RED)
    style.note(axes, clip[12], total[12], "both", (6, 6), bold=True)
