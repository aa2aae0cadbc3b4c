"""The kernel under the roofs of one core: memory, arithmetic, its own chain, and the divider."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.precision_of_a_kernel import ChainRoof
from calc.derivations.resolvent_measured import (
    BACKENDS,
    KernelRoof,
    KernelSpeed,
    MachineOfKernel,
    timed,
)
from figures import style

RATE = "GFLOP/s"
LEFT, RIGHT = 0.03, 40.0
# Roofs that are no bandwidth: what holds there, the rate, and how it is drawn.
LEVELS: tuple[tuple[str, Quantity, str], ...] = (
    ("FP64", MachineOfKernel.fp64, style.INK),
    ("chain, eight rows", ChainRoof.group, style.ORANGE),
    ("divider", ChainRoof.divider, style.GREEN),
    ("chain, one row", ChainRoof.one_row, style.ORANGE),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.2, narrow_height=4.4)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Arithmetic intensity (FLOP/byte)")
    style.log_axis(axes, "y", f"Rate of the ratio form ({RATE})")
    axes.set_xlim(LEFT, RIGHT)
    axes.set_ylim(0.015, 130)
    bandwidth = MachineOfKernel.bandwidth.m_as("GB/s")
    for name, rate, colour in LEVELS:
        _level(axes, name, rate.m_as(RATE), bandwidth, colour)
    slope = numpy.geomspace(LEFT, MachineOfKernel.fp64.m_as(RATE) / bandwidth, 50)
    axes.plot(slope, bandwidth * slope, color=style.INK)
    style.note(axes, 1.2 * LEFT, 9, f"memory,\n{bandwidth:.0f} GB/s", bold=True)
    for name, reached in _measured().items():
        axes.plot(KernelRoof.intensity.magnitude, reached, "o", color=style.PURPLE, markersize=7)
        style.note(
            axes,
            1.25 * KernelRoof.intensity.magnitude,
            reached,
            name,
            ha="left",
            va="center",
            color=style.PURPLE,
            bold=True,
        )
    return figure


def alt() -> str:
    levels = (f"{name} at {show(rate.to(RATE), digits=2)}" for name, rate, _ in LEVELS)
    dots = (f"{name} at {show(rate, digits=2)}" for name, rate in _measured().items())
    return f"""Log-log plot of the rate of the ratio form in complex128 against arithmetic
    intensity. A roof rises with the memory's {show(MachineOfKernel.bandwidth, digits=2)}; to its
    right lie level ones: {listed(levels)}. Dots stand above each other, at an intensity of
    {show(KernelRoof.intensity, digits=2)}: {listed(dots)} {RATE}. One row stands below its chain,
    the batch below the divider."""


def _level(axes: Axes, name: str, rate: float, bandwidth: float, colour: str) -> None:
    """A level roof, from where the memory's crosses it."""
    axes.plot([rate / bandwidth, RIGHT], [rate, rate], color=colour)
    style.note(
        axes,
        0.92 * RIGHT,
        1.08 * rate,
        f"{name}, {rate:.2g}",
        ha="right",
        va="bottom",
        color=colour,
        bold=True,
    )


def _measured() -> dict[str, float]:
    """Rates by what ran, in GFLOP/s."""
    many = {
        f"{label}, {KernelSpeed.batch} rows": timed(
            "flop_per_second", backend, KernelSpeed.batch, KernelSpeed.n
        )
        for backend, label in BACKENDS.items()
    }
    one = timed("flop_per_second", "numba", 1, KernelSpeed.n)
    return {name: rate / 1e9 for name, rate in {**many, "numba, one row": one}.items()}
