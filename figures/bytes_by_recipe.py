"""What recipes keep of a small and a large model, with the memories of three cards."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.catalog.models import Transformer
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.fine_tuning import BytesByRecipe
from figures import style

PARTS = (  # of what is kept: their names in calc and in the book, and colours
    ("weight", "weights", style.BLUE),
    ("gradient", "gradients", style.GREEN),
    ("master weight", "master weights", style.RED),
    ("momentum", "momentum", style.ORANGE),
    ("variance", "variance", style.PURPLE),
    ("adapters", "adapters", style.INK),
)
ADAPTERS = 2  # recipes at the end, which have a gap above
MOST = {"small": 160, "large": 480}  # GB


def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=7.0)
    left, right = style.panels(figure, 2)
    _bars(left, BytesByRecipe.small, MOST["small"], "(a) ")
    _bars(right, BytesByRecipe.large, MOST["large"], "(b) ")
    if not style.is_narrow():
        right.set_yticklabels([])
    figure.legend(
        handles=[left.barh(0, 0, color=colour, label=name) for _, name, colour in PARTS],
        loc="outside lower center",
        ncols=3 if style.is_narrow() else len(PARTS),
        frameon=False,
        fontsize=style.SMALL,
        handlelength=0.9,
        columnspacing=1.2,
    )
    return figure


def _bars(axes: Axes, model: Transformer, most: float, panel: str) -> None:
    sizes = BytesByRecipe.kept(model)
    places = [at + (0.5 if at >= len(sizes) - ADAPTERS else 0) for at in range(len(sizes))]
    for place, (_, parts) in zip(places, sizes, strict=True):
        start = 0.0
        for part, _, colour in PARTS:
            size = parts[part].m_as("GB") if part in parts else 0.0
            axes.barh(place, min(size, most - start), left=start, height=0.7, color=colour)
            start = min(start + size, most)
        total = sum(size.m_as("GB") for size in parts.values())
        text = f"{total:.0f}" if total < most else f"→ {total:.0f}"
        style.note(axes, start + most / 60, place, text, va="center")
    cards = [card.m_as("GB") for card in BytesByRecipe.cards]
    for size in cards:
        axes.plot([size, size], [-0.6, places[-1] + 0.6], color=style.INK, linewidth=1, alpha=0.6)
    names = [f"{card.m_as('GiB'):.0f}" for card in BytesByRecipe.cards]
    if cards[1] - cards[0] > most / 10:  # there is room above each line
        for size, name in zip(cards, names, strict=True):
            last = name == names[-1]
            text, side = (f"{name} GiB", "left") if last else (name, "center")
            style.note(axes, size - 7 * last, -0.85, text, ha=side)
    else:
        style.note(axes, cards[0], -0.85, f"{', '.join(names)} GiB")
    axes.set_yticks(places, [name for name, _ in sizes])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(places[-1] + 0.7, -1.5)
    axes.set_xlim(0, most * 1.16)
    axes.set_xlabel(f"{panel}{model.name} (GB)")


def alt() -> str:
    def said(model: Transformer) -> str:
        sizes = BytesByRecipe.kept(model)
        return listed(
            f"{sum(size.m_as('GB') for size in parts.values()):.0f} GB with {name}"
            for name, parts in sizes
        )

    cards = listed(f"{card.m_as('GiB'):.0f}" for card in BytesByRecipe.cards)
    return f"""Two panels of stacked bars, a bar for each recipe, with lines at {cards} GiB.
    {BytesByRecipe.small.name} keeps {said(BytesByRecipe.small)}; {BytesByRecipe.large.name} keeps
    {said(BytesByRecipe.large)}. In mixed precision master weights and moments are three
    quarters of {show(BytesByRecipe.mixed, digits=3)}; QLoRA alone brings the large model below a
    card of {show(BytesByRecipe.cards[1])}."""
