"""Bandwidth against the working set on one core: a step down at the end of each cache."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from calc.derivations import show
from calc.derivations.hardware_aware import MEASUREMENT, stored
from figures import style

KIB = 1024


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.9, narrow_height=3.0)
    axes = figure.subplots()
    sizes, rates = _measured()
    axes.plot([size / KIB for size in sizes], rates, "o-", color=style.INK, markersize=3.5)
    axes.set_xscale("log", base=2)
    style.log_axis(axes, "y", "Bandwidth, triad (GB/s)")
    axes.set_ylim(10, 600)
    axes.set_xlabel("Working set (logarithmic)")
    ticks = [16, 256, 4096, 65536] if style.is_narrow() else [8 * 4**power for power in range(8)]
    axes.set_xticks(ticks, [_bytes(tick * KIB) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    for name, size in MEASUREMENT["machine"]["caches"].items():
        axes.axvline(size / KIB, color=style.INK, alpha=0.35, linewidth=0.8, linestyle=(0, (4, 3)))
        style.note(axes, size / KIB, 540, f"{name} ends", (-4, 0), ha="right", va="top")
    return figure


def alt() -> str:
    sizes, rates = _measured()
    pieces, start = [], 0
    for name, end in [*MEASUREMENT["machine"]["caches"].items(), ("", sizes[-1])]:
        reached = [rate for size, rate in zip(sizes, rates, strict=True) if start < size <= end]
        until = (
            f"up to the end of {name} at {_bytes(end)}" if name else f"beyond, up to {_bytes(end)}"
        )
        pieces.append(
            f"{show(min(reached), digits=2)} to {show(max(reached), digits=2)} GB/s {until}"
        )
        start = end
    return f"""Log-log plot of the bandwidth of a triad against its working set, with dashed lines
    where the caches end. The bandwidth falls in steps: it is {"; ".join(pieces)}."""


def _measured() -> tuple[list[int], list[float]]:
    """The sizes of the working set in bytes, and the bandwidth with each in GB/s."""
    sizes = sorted(int(size) for size in MEASUREMENT["working_set"])
    return sizes, [stored("working_set", str(size)).m_as("GB/s") for size in sizes]


def _bytes(size: int) -> str:
    kib = size // KIB
    return f"{kib} KiB" if kib < KIB else f"{kib // KIB} MiB"
