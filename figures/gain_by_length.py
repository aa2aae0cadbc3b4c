"""Gain of a head by how many tokens it drafts, for batches that fill the arithmetic or do not."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.drafts_and_pools import GainByLength
from figures import style

COLORS = (style.GREEN, style.ORANGE, style.BLUE, style.PURPLE)
ROWS = GainByLength.rows()


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.8, narrow_height=3.6)
    axes = figure.subplots()
    axes.axhline(1, color=style.INK, linewidth=1, alpha=0.5)
    names = []
    for row, color in zip(ROWS, COLORS, strict=True):
        axes.plot(GainByLength.lengths, _gains(row), "o-", color=color, markersize=5)
        names.append((f"{show(row[1])} × {show(row[0])} tokens", color))
        best = max(_gains(row))
        length = GainByLength.lengths[_gains(row).index(best)]
        below = color in (style.ORANGE, style.PURPLE)
        look: dict[str, Any] = {"ha": "left" if length == 1 else "center", "color": color}
        text = f"{show(best, digits=3)}"
        style.note(axes, length, best, text, (0, -16 if below else 6), **look)
    style.key(axes, names, (1.02, 0.95) if not narrow else (0.03, 1.0), 0.1)
    axes.set_xticks(GainByLength.lengths, [str(show(each)) for each in GainByLength.lengths])
    axes.set_xlabel("Drafted tokens")
    axes.set_ylabel("Gain")
    axes.set_ylim(0.8, 4.2 if narrow else 2.8)
    return figure


def alt() -> str:
    alone, short, *_, full = ([show(gain, digits=3) for gain in _gains(row)] for row in ROWS)
    return f"""Curves of the gain against the drafted tokens. For one request of
    {show(ROWS[0][0])} tokens it rises from {alone[0]} to {alone[-1]}. For {show(ROWS[1][1])} such
    requests it falls from {short[0]} to {short[-1]}, a loss. With contexts of {show(ROWS[-1][0])}
    tokens it is highest with three drafted tokens, {full[2]} for {show(ROWS[-1][1])} requests."""


def _gains(row: Any) -> list[float]:
    return [gain.m_as("") for gain in row[2:]]
