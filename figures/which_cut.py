"""MFU of a step between its bounds: by degree of tensor parallelism, and by devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.training_at_scale import Cuts
from calc.steps.layouts import Layout
from figures import style

DEVICES = [2**power for power in range(6, 15)]


def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=6.6)
    left, right = style.panels(figure, 2, sharey=True)
    _by_degree(left)
    _by_devices(right)
    style.shared_label(left, right, "MFU (%)")
    left.set_ylim(0, 80)
    left.set_yticks(range(0, 81, 20))
    return figure


def alt() -> str:
    def bounds(layout: Layout, **how: Any) -> str:
        low, high = Cuts.step(layout, **how).mfu
        return f"{show(low.to('%'), digits=2)} and {show(high.to('%'), digits=2)}"

    node, beyond = (
        bounds(Cuts.sliced(Cuts.devices, degree)) for degree in (Cuts.node, 2 * Cuts.node)
    )
    small = [degree for degree in Cuts.degrees if not Cuts.fits(degree)]
    ends = [bounds(Cuts.sliced(devices, Cuts.node)) for devices in (DEVICES[0], DEVICES[-1])]
    alone = [
        bounds(Cuts.sharded(devices), recomputation="full")
        for devices in (DEVICES[0], Cuts.sequences)
    ]
    return f"""Panels of the MFU of a step between its bounds: nothing hidden, a solid line, and all
    communication hidden, a dashed one. In the first, by the degree of tensor parallelism (TP) on
    {show(Cuts.devices)} H100s, the bounds are {node} at TP {Cuts.node} and {beyond} at TP
    {2 * Cuts.node}, beyond the node, and then both fall; up to TP {small[-1]} the model does not
    fit {show(Cuts.h100.memory_capacity)}. In the second, by devices from {show(DEVICES[0])} to
    {show(DEVICES[-1])}, the bounds of TP {Cuts.node} go from {ends[0]} to {ends[1]}; those of full
    sharding go from {alone[0]} to {alone[1]}, and end at {show(Cuts.sequences)} devices, a sequence
    each."""


def _band(axes: Axes, x: Sequence[int], layouts: Sequence[Layout], colour: str, **how: Any) -> None:
    """What nothing hidden and all hidden would give, and what lies between."""
    steps = [Cuts.step(layout, **how) for layout in layouts]
    low, high = ([step.mfu[end].m_as("%") for step in steps] for end in (0, 1))
    axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.plot(x, low, color=colour)
    axes.plot(x, high, color=colour, linestyle=(0, (6, 2)))


def _by_degree(axes: Axes) -> None:
    _powers(axes, Cuts.degrees, "Degree of tensor parallelism (TP)")
    layouts = [Cuts.sliced(Cuts.devices, degree) for degree in Cuts.degrees]
    _band(axes, Cuts.degrees, layouts, style.BLUE)
    small = [degree for degree in Cuts.degrees if not Cuts.fits(degree)]
    edge = (small[-1] * Cuts.node) ** 0.5
    axes.axvspan(Cuts.degrees[0], edge, color=style.INK, alpha=0.07, linewidth=0)
    _note(axes, 1.1, 8, f"does not fit\n{show(Cuts.h100.memory_capacity)}", style.INK)
    _note(axes, 16, 12, "beyond\nthe node", style.RED)
    _note(axes, 1.1, 74, "all hidden", style.BLUE)
    _note(axes, 1.1, 46, "nothing hidden", style.BLUE)


def _by_devices(axes: Axes) -> None:
    _powers(axes, DEVICES[2::3], "H100s")
    sliced = [Cuts.sliced(devices, Cuts.node) for devices in DEVICES]
    _band(axes, DEVICES, sliced, style.BLUE)
    few = [devices for devices in DEVICES if devices <= Cuts.sequences]
    _band(axes, few, [Cuts.sharded(devices) for devices in few], style.ORANGE, recomputation="full")
    _note(axes, 75, 74, f"TP {Cuts.node}, data-parallel", style.BLUE)
    _note(axes, 75, 38, "fully sharded", style.ORANGE)
    _note(axes, 75, 12, f"which ends at {show(Cuts.sequences)}:\none sequence each", style.ORANGE)


def _powers(axes: Axes, ticks: Sequence[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [style.plain(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.margins(x=0)


def _note(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    style.note(axes, x, y, text, color=colour, bold=True, va="center")
