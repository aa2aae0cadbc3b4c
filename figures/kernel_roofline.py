"""The kernel under the measured roofs of one core: eager, NumPy and compiled."""

from __future__ import annotations

import numpy
from matplotlib.figure import Figure

from calc.codesign.kernel_speed import FLOP_PER_ENTRY, bytes_per_entry
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.resolvent import BACKENDS, SIZES, KernelSpeed, MachineOfKernel, timed
from figures import style

OWN = KernelSpeed.batch, KernelSpeed.n
COLOURS = {"complex128": style.PURPLE, "complex64": style.INK}
ROOFS = {"complex128": ("FP64", MachineOfKernel.fp64), "complex64": ("FP32", MachineOfKernel.fp32)}


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.2, narrow_height=4.4)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Arithmetic intensity (FLOP/byte)")
    style.log_axis(axes, "y", "Rate of the ratio form (GFLOP/s)")
    axes.set_xlim(0.12 if narrow else 0.1, 14)
    axes.set_ylim(6e-4, 300)
    intensity = numpy.geomspace(0.1, 14, 200)
    bandwidth = MachineOfKernel.bandwidth.m_as("GB/s")
    for dtype, (name, peak) in ROOFS.items():
        colour, top = COLOURS[dtype], peak.m_as("GFLOP/s")
        axes.plot(intensity, numpy.minimum(top, bandwidth * intensity), color=colour)
        axes.text(
            13,
            top * (1.1 if dtype == "complex64" else 0.9),
            f"{name} {top:.0f}",
            ha="right",
            va="bottom" if dtype == "complex64" else "top",
            color=colour,
            size=style.SMALL,
            weight="bold",
        )
        x = _intensity(dtype)
        for backend, label in BACKENDS.items():
            rates = [_rate(backend, size, dtype) for size in SIZES]
            axes.plot([x] * len(rates), rates, "o", color=colour, markersize=3.5, alpha=0.55, mew=0)
            mine = _rate(backend, OWN, dtype)
            axes.plot(x, mine, "o", color=colour, markersize=7)
            if dtype == "complex64":
                axes.text(1.25 * x, mine, label, va="center", size=style.SMALL, weight="bold")
        axes.text(
            x * (0.88 if dtype == "complex128" else 1.25),
            8e-4,
            dtype,
            ha="right" if dtype == "complex128" else "left",
            va="bottom",
            color=colour,
            size=style.SMALL,
        )
    axes.text(
        0.28,
        0.42 * bandwidth,
        f"{bandwidth:.0f} GB/s",
        size=style.SMALL,
        weight="bold",
        ha="center",
    )
    return figure


def alt() -> str:
    rates = (
        f"{label} at {show(_rate(backend, OWN, 'complex128'), digits=2)} and "
        f"{show(_rate(backend, OWN, 'complex64'), digits=2)} GFLOP/s"
        for backend, label in BACKENDS.items()
    )
    others = [
        _rate(backend, size, dtype) for backend in BACKENDS for size in SIZES for dtype in ROOFS
    ]
    roofs = (f"{show(peak, digits=2)} for {name}" for name, peak in ROOFS.values())
    return f"""Log-log plot of the rate of the ratio form against arithmetic intensity: a roof that
    rises with the memory's {show(MachineOfKernel.bandwidth, digits=2)} and turns flat at
    {listed(roofs)}. Dots stand above each other, at an intensity of
    {show(_intensity("complex128"), digits=2)} for complex128 and
    {show(_intensity("complex64"), digits=2)} for complex64. With {OWN[0]} rows of {OWN[1]} they
    are, in this order, {"; ".join(rates)}; at other sizes between {show(min(others), digits=1)} and
    {show(max(others), digits=2)} GFLOP/s."""


def _rate(backend: str, size: tuple[int, ...], dtype: str) -> float:
    batch, n = size
    return timed("flop_per_second", backend, batch, n, dtype) / 1e9


def _intensity(dtype: str) -> float:
    return FLOP_PER_ENTRY["ratio"] / bytes_per_entry(dtype)
