"""Caches of latents on four GPUs: copied by TP, one by one under DP, cut by tokens under DCP."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.experts_chapter import CacheCopies
from figures import style

DEVICES = CacheCopies.devices
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
PITCH = DEVICES + 0.9
CASES = (
    ("TP", "every cache on every GPU", CacheCopies.copied, CacheCopies.cache),
    ("DP attention", "a sequence on one GPU", CacheCopies.cache, CacheCopies.cache),
    ("DCP", "a part of every context", CacheCopies.cache, CacheCopies.part),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.3, narrow_height=5.8)
    panels = style.panels(figure, len(CASES))
    for axes, (name, what, holds, reads) in zip(panels, CASES, strict=True):
        style.canvas(axes, DEVICES * PITCH - 0.7, DEVICES + 2.4, left=-0.2, bottom=-2.7)
        for device in range(DEVICES):
            left = device * PITCH
            style.card(axes, (left, 0), (DEVICES, DEVICES), color=style.INK, alpha=0.04)
            for row, color in enumerate(COLORS):
                if name == "DP attention" and row != device:
                    continue
                start, long = (device, 1) if name == "DCP" else (0, DEVICES)
                style.card(axes, (left + start, row + 0.12), (long, 0.76), color=color, alpha=0.6)
        style.note(axes, 0, DEVICES + 1.4, name, bold=True)
        style.note(axes, 0, DEVICES + 0.35, what)
        text = f"a GPU holds {show(holds, digits=2)}\na token reads {show(reads, digits=2)} on each"
        text = text.removesuffix(" on each") if name == "DP attention" else text
        style.note(axes, 0, -0.5, text, va="top", linespacing=1.3)
    return figure


def alt() -> str:
    (_, _, copied, whole), (_, _, own, read), (_, _, shared, part) = CASES
    held, of_one, of_part = (show(size, digits=2) for size in (copied, own, shared))
    whole, read, part = (show(size, digits=2) for size in (whole, read, part))
    return f"""Panels of {show(DEVICES)} GPUs with bars for the caches of as many sequences. Under
    TP each GPU has all bars whole: it holds {held}, and a token reads {whole} on each. Under DP of
    attention each has the bar of one sequence: {of_one}, and a token reads {read}. Under DCP each
    has a part of every bar: {of_part}, and a token reads {part} on each."""
