"""Figure of the gain of drafts by batch, which falls: by roofs, by kernels, and measured."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.drafts_and_pools import EAGLE, EAGLE_3, DraftsByBatch, DraftsShort
from figures import style

BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.2, narrow_height=3.6)
    axes = figure.subplots()
    gains = [DraftsByBatch.gain(EAGLE_3, batch) for batch in BATCHES]
    older = [DraftsByBatch.gain(EAGLE, batch)[1] for batch in BATCHES]
    roofs, kernels = zip(*gains, strict=True)
    axes.plot(BATCHES, roofs, color=style.INK, dashes=(4, 2), linewidth=1)
    axes.plot(BATCHES, kernels, color=style.BLUE, linewidth=2)
    axes.plot(BATCHES, older, color=style.RED, linewidth=2)
    for head, colour in ((EAGLE_3, style.BLUE), (EAGLE, style.RED)):
        axes.plot(DraftsByBatch.batches, head.gains, "o", color=colour, markersize=5)
    axes.axhline(1, color=style.INK, linewidth=1, alpha=0.5)
    for words, height, colour in (
        ("EAGLE-3, by the roofs", roofs[0] + 0.12, style.INK),
        ("EAGLE-3, kernels", kernels[0] - 0.26, style.BLUE),
        ("EAGLE, kernels", older[0] - 0.21, style.RED),
        ("dots: measured in SGLang", 0.62, style.INK),
    ):
        style.note(axes, 1.1, height, words, color=colour, bold=True)
    style.log_axis(axes, "x", "Sequences in the batch")
    axes.set_ylabel("Throughput, with drafts over without")
    axes.set_xlim(1, BATCHES[-1])
    axes.set_ylim(0.5, 3.2)
    return figure


def alt() -> str:
    return f"""The gain of {DraftsByBatch.drafted} drafted tokens against the batch, on a log axis.
    With kernels at measured rates that of EAGLE-3 falls from {show(DraftsShort.few, digits=3)}
    with {DraftsByBatch.few} to {show(DraftsShort.many, digits=3)} with {DraftsByBatch.most}, below
    the roofs, and that of EAGLE from {show(DraftsShort.few_eagle, digits=3)} to
    {show(DraftsShort.many_eagle, digits=3)}. Measured dots lie far below: they fall from
    {show(DraftsByBatch.first, digits=3)} to {show(DraftsByBatch.last, digits=3)}, and from
    {show(DraftsByBatch.first_eagle, digits=3)} to {show(DraftsByBatch.last_eagle, digits=2)}, no
    gain at all."""
