"""How the gain of a chain of drafts falls with the batch: by roofs, by kernels, and measured."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.serving_in_practice import DraftsByBatch
from figures import style

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


def draw() -> Figure:
    figure = style.figure(height=3.2, narrow_height=3.6)
    axes = figure.subplots()
    gains = [DraftsByBatch.gain(batch) for batch in BATCHES]
    axes.plot(BATCHES, [bound for bound, _ in gains], color=style.INK, dashes=(4, 2), linewidth=1)
    axes.plot(BATCHES, [kernels for _, kernels in gains], color=style.BLUE, linewidth=2)
    batches, measured = zip(*DraftsByBatch.measured, strict=True)
    axes.plot(batches, measured, "o", color=style.RED, markersize=5)
    axes.axhline(1, color=style.INK, linewidth=1, alpha=0.5)
    for words, place, colour in (
        ("by the roofs", (1.1, gains[0][0] + 0.12), style.INK),
        ("kernels at measured rates", (1.1, gains[0][1] - 0.25), style.BLUE),
        ("measured, EAGLE-3 in SGLang", (2.2, measured[0] + 0.2), style.RED),
        ("no gain", (1.1, 1.07), style.INK),
    ):
        axes.text(place[0], place[1], words, color=colour, size=style.SMALL, weight="bold")
    style.log_axis(axes, "x", "Sequences in the batch")
    axes.set_ylabel("Throughput, with drafts over without")
    axes.set_xlim(1, BATCHES[-1])
    axes.set_ylim(0.8, 3.4)
    return figure


def alt() -> str:
    first, last = DraftsByBatch.measured[0], DraftsByBatch.measured[-1]
    ends = [DraftsByBatch.gain(batch)[1] for batch, _ in (first, last)]
    return f"""The gain of {DraftsByBatch.drafted} drafted tokens against the batch, on a log
    axis. By the roofs it is level at {show(DraftsByBatch.tokens, digits=3)} and turns down near
    {show(DraftsByBatch.bound_from, digits=2)} sequences. With kernels at measured rates it falls
    from {show(ends[0], digits=3)} with {first[0]} to {show(ends[1], digits=3)} with {last[0]}.
    Measured dots lie far below and fall from {show(first[1], digits=3)} to
    {show(last[1], digits=3)}."""
