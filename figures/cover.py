"""Every accelerator has the same roof at another place: the figure of the cover."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc import hardware, quantity, roofline
from calc.derivations import show
from calc.derivations.hardware_tables import dtype_of_two_bytes
from calc.derivations.roofline_chapter import DecodeStep
from figures import style

DEVICES = [
    (device, dtype)
    for device in map(hardware.get, hardware.names())
    if (dtype := dtype_of_two_bytes(device)) and device.publishes("memory_bandwidth")
]
SHOWN = hardware.H100
INTENSITIES = quantity(numpy.geomspace(0.2, 1e4, 300), "FLOP/byte")


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.75, narrow_height=3.2)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Operations for each byte", decades=2 if narrow else 1)
    style.log_axis(axes, "y", "Operations a second (TFLOP/s)")
    axes.grid(visible=False)
    axes.set_xlim(INTENSITIES[0].m, INTENSITIES[-1].m)
    axes.spines[["left", "bottom"]].set_alpha(0.35)
    for device, dtype in DEVICES:
        peak, bandwidth = device.peak(dtype), device.memory_bandwidth
        rates = roofline.attainable(peak, bandwidth, INTENSITIES).m_as("TFLOP/s")
        shown = device.key == SHOWN.key
        axes.plot(
            INTENSITIES.m,
            rates,
            color=style.DEVICES[SHOWN.key] if shown else style.INK,
            alpha=1 if shown else 0.2,
            linewidth=2.4 if shown else 0.8,
            zorder=3 if shown else 1,
            solid_joinstyle="miter",
        )
    axes.set_ylim(top=2e4)
    ridge, peak = DecodeStep.ridge_point.m, DecodeStep.peak.m_as("TFLOP/s")
    axes.plot([ridge, ridge], [peak, 7e3], color=style.RED, linewidth=0.8)
    bend = f"{show(DecodeStep.ridge_point, digits=3)}"
    style.note(axes, ridge, 8e3, bend, color=style.RED, ha="center")
    token = DecodeStep.intensity.m, DecodeStep.attainable.m_as("TFLOP/s")
    axes.plot([token[0], token[0]], [token[1], 0.03], color=style.RED, linewidth=0.8)
    style.note(axes, 1.2 * token[0], 0.028, "one answer at a time", color=style.RED, ha="left")
    for point in [(ridge, peak), token]:
        axes.plot(*point, "o", color=style.RED, markersize=6.5, zorder=4)
    return figure


def alt() -> str:
    return f"""The rooflines of {len(DEVICES)} accelerators as thin lines on logarithmic axes, each
    rising with the operations that are done for each byte and then level at its peak. One stands
    out, that of an H100: it bends at {show(DecodeStep.ridge_point, digits=3)}, where its
    {show(DecodeStep.peak, digits=3)} begin, and a dot far down its slope, at
    {show(DecodeStep.attainable, digits=3)}, is a model that writes one answer at a time."""
