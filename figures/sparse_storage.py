"""Memory of a matrix against its share of zeros, in three storages and three element sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import simulation, sparsity
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.digits_sweep import Crossovers, DenseStorage
from figures import style

COLOURS = {"dense": style.INK, "csr": style.ORANGE, "bitmask": style.BLUE}
PRECISIONS = ("fp32", "fp16", "int8")


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.3, narrow_height=8.4)
    panels = style.shared_panels(figure, 3, "Zeros", "Memory, of the full matrix")
    for number, axes in enumerate(panels):
        name, size = Crossovers.elements[number]
        _panel(axes, PRECISIONS[number], size)
        axes.set_title(name, size=style.SMALL, weight="bold", loc="left")
    return figure


def alt() -> str:
    def crossings(law: Callable[[Quantity], Quantity]) -> str:
        return listed(f"{show(law(size).to('%'))} in {name}" for name, size in Crossovers.elements)

    return f"""Panels of the memory of a matrix, relative to dense storage, against its share of
    zeros, one for each size of element. Dense storage is a level line; CSR falls from above it to
    nearly nothing, and a bitmask from a little above it to a small rest. Dots mark the shares of
    zeros from which they pay: CSR {crossings(_csr_crossover)}; the bitmask
    {crossings(sparsity.bitmask_crossover)}."""


def _csr_crossover(size: Quantity) -> Quantity:
    return sparsity.csr_crossover(size, Crossovers.index)


def _panel(axes: Axes, precision: str, size: Quantity) -> None:
    zeros = numpy.linspace(0, 1, 5)  # of straight lines
    shape = DenseStorage.rows, DenseStorage.columns
    full = simulation.storage_bytes(shape, 0.0, precision)
    for form, colour in COLOURS.items():
        share = (simulation.storage_bytes(shape, zeros, precision, form) / full).m_as("")
        axes.plot(100 * zeros, 100 * share, color=colour, linewidth=1.8)
    crossings = {
        "csr": _csr_crossover(size).m_as("%"),
        "bitmask": sparsity.bitmask_crossover(size).m_as("%"),
    }
    for form, crossing in crossings.items():
        axes.plot([crossing], [100], "o", color=COLOURS[form], markersize=6, zorder=3)
    style.note(axes, 98, 104, "dense", ha="right", color=style.INK)
    axes.annotate(
        f"CSR pays\nabove {crossings['csr']:.0f}%",
        (crossings["csr"], 100),
        (crossings["csr"] + 5, 128),
        color=COLOURS["csr"],
        size=style.SMALL,
        va="bottom",
    )
    style.note(
        axes,
        4,
        14,
        f"bitmask pays\nabove {crossings['bitmask']:.4g}%",
        color=COLOURS["bitmask"],
        va="bottom",
    )
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 210)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_xticks([0, 25, 50, 75, 100])
