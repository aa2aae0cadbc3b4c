"""Energy of one step, a mark for each process: fetching a word against computing with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.numbers_to_know import EnergyLadder
from figures import style

UNIT = "pJ"
OLD, NEW = (str(show(process)) for process in EnergyLadder.processes)
A100 = "A100, measured"
# How each process is marked; the A100's own process is the newer one.
MARKS = {OLD: ("o", style.INK), NEW: ("s", style.BLUE), A100: ("D", style.DEVICES["a100"])}
MULTIPLIES = dict(
    zip(MARKS, (*EnergyLadder.fp16_multiplies, EnergyLadder.fp16_multiplies[-1]), strict=True)
)
FAR = ("HBM2", "DRAM, DDR")  # whose marks say how many multiplies they are
CAPACITY = re.compile(r", .*(?= \()")  # of a cache that has a name, which is enough on a phone
EDGES = (0.003, 2e4)
GROUPS = {"one operation": EnergyLadder.operations, "fetching one word": EnergyLadder.words}
GAP = 1.3  # rows between the groups, for their titles


def draw() -> Figure:
    figure = style.figure(height=4.6, narrow_height=4.8)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Energy ({UNIT})", decades=2 if style.is_narrow() else 1)
    axes.set_xlim(*EDGES)
    row, places = 0.0, {}
    for title, rungs in GROUPS.items():
        axes.text(EDGES[0], row - 0.85, title, weight="bold", va="center")
        for name, *energies in rungs:
            places[CAPACITY.sub("", name) if style.is_narrow() else name] = row
            _rung(axes, row, name, _by_process(energies))
            row += 1
        row += GAP
    _names(axes)
    axes.set_yticks(list(places.values()), list(places))
    axes.set_ylim(row - GAP - 0.5, -1.4)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def alt() -> str:
    def energies(rungs: tuple[tuple[str, *tuple[Quantity | None, ...]], ...], process: str) -> str:
        energy_of = ((name, _by_process(energies).get(process)) for name, *energies in rungs)
        return listed(
            f"{show(energy, UNIT, digits=2)} ({name.replace(', ', ' of ')})"
            for name, energy in energy_of
            if energy is not None
        )

    far = listed(
        f"{show(_multiplies(process, energy), digits=2)} for {name.split(',')[0]} ({process})"
        for name, *energies in EnergyLadder.words
        if name in FAR
        for process, energy in _by_process(energies).items()
    )
    return f"""Dots of energy on a logarithmic axis, with a mark for each process. One operation
    takes at {OLD} {energies(EnergyLadder.operations, OLD)}, at {NEW}
    {energies(EnergyLadder.operations, NEW)}. Fetching one word takes at {OLD}
    {energies(EnergyLadder.words, OLD)}, at {NEW} {energies(EnergyLadder.words, NEW)}, and on a
    running A100 {energies(EnergyLadder.words, A100)}. Labels give words as FP16 multiplies of their
    own process: {far}."""


def _by_process(energies: Sequence[Quantity | None]) -> dict[str, Quantity]:
    pairs = zip(MARKS, energies, strict=False)  # operations were not measured on the A100
    return {process: energy for process, energy in pairs if energy is not None}


def _multiplies(process: str, energy: Quantity) -> Quantity:
    factor: Quantity = (energy / MULTIPLIES[process]).to("")
    return factor


def _rung(axes: Axes, row: float, name: str, energies: dict[str, Quantity]) -> None:
    reach = [energy.m_as(UNIT) for energy in energies.values()]
    axes.plot([min(reach), max(reach)], [row, row], color=style.INK, alpha=0.35, linewidth=1)
    for (process, energy), side in zip(energies.items(), (-1, 1, 1), strict=False):
        mark, colour = MARKS[process]
        hollow = process == OLD
        axes.plot(
            energy.m_as(UNIT),
            row,
            mark,
            color=colour,
            markersize=7,
            markerfacecolor="none" if hollow else colour,
            markeredgewidth=1.6,
            zorder=4 if hollow else 3,
        )
        if name in FAR:
            style.note(
                axes,
                energy.m_as(UNIT),
                row,
                f"{show(_multiplies(process, energy), digits=2)} ×",
                (8 * side, 0),
                ha="right" if side < 0 else "left",
                va="center",
                color=colour,
                bold=True,
            )


def _names(axes: Axes) -> None:
    """Names of the marks, and of what the factors count."""
    _, (_, *second), *_ = EnergyLadder.operations
    sides = ((8, "left"), (-8, "right"))
    for (process, energy), (offset, side) in zip(_by_process(second).items(), sides, strict=True):
        _name(axes, process, (energy.m_as(UNIT), 1), (offset, 0), side)
    row, energy = next(
        (row, energies[-1])
        for row, (_, *energies) in enumerate(EnergyLadder.words, len(EnergyLadder.operations))
        if energies[-1] is not None
    )
    _name(axes, A100, (energy.m_as(UNIT), row + GAP), (8, 0), "left")
    multiply = max(energy.m_as(UNIT) for energy in EnergyLadder.fp16_multiplies)
    style.note(
        axes,
        multiply,
        3,
        "the unit of ×" if style.is_narrow() else "the unit of ×, in each process",
        (12, 0),
        va="center",
    )


def _name(
    axes: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], side: str
) -> None:
    style.note(
        axes,
        *place,
        text.split(",")[0] if style.is_narrow() else text,
        by=offset,
        ha=side,
        va="center",
        color=MARKS[text][1],
        bold=True,
    )
