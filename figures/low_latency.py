"""Exchanges of a decode's few tokens by the GPUs that take part, expected and as measured."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.expert_traffic import Kernels
from figures import style

ROWS = tuple(Kernels.low_latency(devices) for devices in Kernels.devices)
WAYS = (("combine, BF16", 4, style.ORANGE), ("dispatch, FP8", 1, style.BLUE))


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=2.7, narrow_height=3.2)
    axes = figure.subplots()
    for _, at, color in WAYS:
        expected = [row[at + 1].m_as("µs") for row in ROWS]
        times = [row[at].m_as("µs") for row in ROWS]
        axes.plot(Kernels.devices, expected, color=color, linewidth=1.6)
        axes.plot(Kernels.devices, times, "o", color=color, markersize=6)
        last = f"{show(times[-1], digits=3)}"
        style.note(axes, Kernels.devices[-1], times[-1], last, (8, 0), va="center", color=color)
    style.key(axes, [(name, color) for name, _, color in WAYS], (0.03, 0.98), 0.11)
    style.note(axes, Kernels.devices[0], 20, "lines: expected; dots: measured", (4, 0))
    style.log_axis(axes, "x", "GPUs")
    axes.set_xticks(Kernels.devices, [str(show(each)) for each in Kernels.devices])
    axes.set_ylabel("Time (µs)")
    axes.set_ylim(0, 430)
    return figure


def alt() -> str:
    (_, back, _), (_, there, _) = WAYS
    first, last = (
        [show(row[at].m_as("µs"), digits=3) for at in (there, back)] for row in (ROWS[0], ROWS[-1])
    )
    expected = [show(ROWS[-1][at + 1].m_as("µs"), digits=3) for at in (there, back)]
    return f"""Lines and dots against the GPUs on a log axis, from {show(Kernels.devices[0])} to
    {show(Kernels.devices[-1])}. Measured dispatches go from {first[0]} to {last[0]} µs, near their
    line, which ends at {expected[0]}; combines go from {first[1]} to {last[1]} µs, and end above
    theirs, at {expected[1]}."""
