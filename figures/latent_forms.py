"""Latent attention in two orders of the same products: keys made, or queries brought to latents."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import BoxStyle, FancyArrowPatch, FancyBboxPatch

from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.partial_attention import TwoForms
from figures import style

Place = tuple[float, float]
WIDE, HIGH = 2.3, 0.8


def draw() -> Figure:
    figure = style.figure(height=4.0, narrow_height=7.4)
    panels = style.panels(figure, 2)
    _expanded(panels[0])
    _absorbed(panels[1])
    return figure


def alt() -> str:
    return f"""Two drawings of boxes and arrows for one head. Expanded: each stored latent, of
    {show(TwoForms.latent)} numbers, passes through two matrices into a key and a value of
    its own, which the query and its weights meet; intensity of a decode
    {show(TwoForms.expanded, digits=2)}. Absorbed: the query passes through the matrix of keys,
    meets latents as they are stored, and their mixture passes through the matrix of values;
    intensity {show(TwoForms.absorbed, digits=3)}."""


def _expanded(axes: Axes) -> None:
    _frame(axes, "Expanded", TwoForms.expanded)
    _box(axes, (2.2, 0.6), "latents z, all positions", style.ORANGE, wide=4.2)
    _box(axes, (0.9, 2.1), "W_K", style.BLUE, wide=1.3)
    _box(axes, (3.5, 2.1), "W_V", style.BLUE, wide=1.3)
    _box(axes, (0.9, 3.6), "keys", style.RED, wide=1.6)
    _box(axes, (3.5, 3.6), "values", style.RED, wide=1.6)
    _box(axes, (0.9, 5.1), "scores  q · k", style.INK)
    _box(axes, (3.5, 5.1), "result  Σ p v", style.INK)
    _box(axes, (0.9, 6.6), "query q", style.GREEN, wide=1.6)
    for start, end in (
        ((0.9, 1.0), (0.9, 1.7)),
        ((3.5, 1.0), (3.5, 1.7)),
        ((0.9, 2.5), (0.9, 3.2)),
        ((3.5, 2.5), (3.5, 3.2)),
        ((0.9, 4.0), (0.9, 4.7)),
        ((3.5, 4.0), (3.5, 4.7)),
        ((0.9, 6.2), (0.9, 5.5)),
        ((2.05, 5.1), (2.35, 5.1)),
    ):
        _arrow(axes, start, end)


def _absorbed(axes: Axes) -> None:
    _frame(axes, "Absorbed", TwoForms.absorbed)
    _box(axes, (2.2, 0.6), "latents z, all positions", style.ORANGE, wide=4.2)
    _box(axes, (0.9, 3.6), "scores  q′ · z", style.INK)
    _box(axes, (3.5, 3.6), "mixture  Σ p z", style.INK)
    _box(axes, (0.9, 5.1), "W_K, turned", style.BLUE, wide=1.3)
    _box(axes, (3.5, 5.1), "W_V", style.BLUE, wide=1.3)
    _box(axes, (0.9, 6.6), "query q", style.GREEN, wide=1.6)
    _box(axes, (3.5, 6.6), "result", style.INK, wide=1.6)
    for start, end in (
        ((0.9, 1.0), (0.9, 3.2)),
        ((3.5, 1.0), (3.5, 3.2)),
        ((2.05, 3.6), (2.35, 3.6)),
        ((0.9, 6.2), (0.9, 5.5)),
        ((0.9, 4.7), (0.9, 4.0)),
        ((3.5, 4.0), (3.5, 4.7)),
        ((3.5, 5.5), (3.5, 6.2)),
    ):
        _arrow(axes, start, end)


def _frame(axes: Axes, title: str, intensity: Quantity) -> None:
    axes.set_xlim(-0.4, 4.8)
    axes.set_ylim(-0.4, 7.2)
    axes.axis("off")
    axes.set_title(
        f"{title}: a decode has {show(intensity, digits=3)}", size=style.SMALL, weight="bold"
    )


def _box(axes: Axes, at: Place, text: str, colour: str, wide: float = WIDE) -> None:
    x, y = at
    shape = FancyBboxPatch(
        (x - wide / 2, y - HIGH / 2),
        wide,
        HIGH,
        boxstyle=BoxStyle.Round(pad=0, rounding_size=0.12),
        facecolor=(colour, 0.18),
        edgecolor=(colour, 0.8),
        linewidth=1.1,
    )
    axes.add_patch(shape)
    style.note(axes, x, y, text, ha="center", va="center")


def _arrow(axes: Axes, start: Place, end: Place) -> None:
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=9, linewidth=1.1, color=style.INK
    )
    axes.add_patch(arrow)
