"""Caches of three sequences, reserved whole and in blocks that lie wherever one is free."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.serving_chapter import PagedCache
from figures import style

COLORS = (style.BLUE, style.ORANGE, style.GREEN)
ACROSS = 8  # blocks in a row of the memory
# Blocks of the sequences in the order in which they were taken, as they came and grew in turn.
TAKEN = "abcabcacacacc"


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.4, narrow_height=4.2)
    reserved, paged = style.panels(figure, 2)
    for axes, share, name in (
        (reserved, PagedCache.reserved, "reserved"),
        (paged, PagedCache.paged, "in blocks"),
    ):
        style.canvas(axes, ACROSS + 0.1, 4.1, left=-0.1, bottom=-0.6 if narrow else -0.1)
        style.note(axes, 0, 3.45, f"{name}: {show(share, digits=2)} filled", bold=True)
    longest = PagedCache.longest / PagedCache.block
    for row, (length, color) in enumerate(zip(PagedCache.lengths, COLORS, strict=True)):
        low = 2.15 - row
        style.card(reserved, (0, low), (longest, 0.8), alpha=0.06)
        style.card(reserved, (0, low), (length / PagedCache.block, 0.8), color=color, alpha=0.6)
        text = f"{show(length)} tokens"
        style.note(reserved, length / PagedCache.block + 0.15, low + 0.4, text, va="center")
    left = dict(zip("abc", PagedCache.lengths, strict=True))
    for block in range(3 * ACROSS):
        corner = (block % ACROSS, 2.15 - block // ACROSS)
        style.card(paged, corner, (0.9, 0.8), alpha=0.06)
        if block < len(TAKEN):
            _block(paged, corner, TAKEN[block], left)
    return figure


def alt() -> str:
    lengths = ", ".join(str(show(length)) for length in PagedCache.lengths)
    return f"""Two pictures of the memory of caches. Reserved, each sequence has a long
    row of its own, of which {lengths} tokens are filled: {show(PagedCache.reserved, digits=2)} of
    all. In blocks, the same sequences lie mixed in a grid, each with one block that is not full:
    {show(PagedCache.paged, digits=2)} filled, and the rest of the grid is free."""


def _block(axes: Axes, corner: tuple[float, float], name: str, left: dict[str, int]) -> None:
    filled = min(PagedCache.block, left[name]) / PagedCache.block
    left[name] -= PagedCache.block
    color = COLORS["abc".index(name)]
    style.card(axes, corner, (0.9 * filled, 0.8), color=color, alpha=0.6)
