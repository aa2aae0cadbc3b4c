"""What bits cost a small network by method: the paired rise of its loss, with 95 % intervals."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.quantized_network import QuantizedNetwork
from figures import style

METHODS = (  # by name in the rows, and how far beside the tick each stands
    ("nearest", "nearest", style.INK, -0.12),
    ("scaled", "AWQ", style.ORANGE, -0.04),
    ("rotated", "rotated", style.PURPLE, 0.04),
    ("compensated", "GPTQ", style.BLUE, 0.12),
    ("aware training", "QAT", style.GREEN, 0.2),
)
BITS = (4, 3, 2)


def draw() -> Figure:
    figure = style.figure(height=3.2)
    axes = figure.subplots()
    for method, _, colour, beside in METHODS:
        rises = [QuantizedNetwork.rise(method, bits) for bits in BITS]
        axes.errorbar(
            [bits + beside for bits in BITS],
            [mean.magnitude for mean, _ in rises],
            [half.magnitude for _, half in rises],
            fmt="o",
            color=colour,
            markersize=3.5,
            elinewidth=1.2,
            capsize=2,
        )
    names = [(name, colour) for _, name, colour, _ in METHODS]
    style.key(axes, names, (0.98, 0.95), 0.1, side="right")
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(-0.05, 4)
    ticks = (0.0, 0.1, 1.0)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks(BITS, [str(bits) for bits in BITS])
    axes.set_xlim(1.6, 5)
    axes.set_xlabel("Bits of a weight")
    axes.set_ylabel("Rise of the loss (nats)")
    axes.grid(axis="y", color=style.INK, alpha=0.12, linewidth=0.6)
    return figure


def alt() -> str:
    rises = "; ".join(f"{name} {_rises(method)}" for method, name, _, _ in METHODS)
    return f"""Points with intervals: the rise of the loss, in nats a character, against the bits of
    a weight, by method. {rises}."""


def _rises(method: str) -> str:
    rises = ((bits, QuantizedNetwork.rise(method, bits)[0]) for bits in BITS)
    return listed(f"{show(rise, digits=2)} at {bits} bits" for bits, rise in rises)
