"""Energy of one step, from adding two bytes to crossing a network: bars over five decades."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.numbers_to_know import EnergyLadder, EnergyOfMovement
from figures import style

UNIT = "pJ"
GROUPS = {"arithmetic": "one operation", "movement": "fetching one word"}
GAP = 1.0  # rows between the groups, for their titles
EDGES = (0.006, 6e4)


def draw() -> Figure:
    figure = style.figure(height=4.6, narrow_height=4.8)
    axes = figure.subplots()
    style.log_axis(axes, "x", f"Energy ({UNIT})", decades=2 if style.is_narrow() else 1)
    axes.set_xlim(*EDGES)
    rows = _rows()
    for name, energy, _ in EnergyLadder.rungs:
        _bar(axes, rows[name], name, energy.m_as(UNIT))
    for group, title in GROUPS.items():
        first = min(rows[name] for name, _, member in EnergyLadder.rungs if member == group)
        axes.text(EDGES[0], first - 0.72, title, weight="bold", va="center")
    _quoted_elsewhere(axes, rows)
    _one_multiply(axes, rows)
    axes.set_yticks(list(rows.values()), list(rows))
    axes.set_ylim(max(rows.values()) + 0.6, -1.2)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure


def alt() -> str:
    def energies(group: str) -> str:
        return listed(
            f"{'≈ ' if name in EnergyLadder.estimates else ''}{show(energy, UNIT, digits=3)} "
            f"({name.replace(', ', ' of ')})"
            for name, energy, member in EnergyLadder.rungs
            if member == group
        )

    quoted = (
        f"{show(energy, UNIT, digits=3)} ({name.replace(', ', ' of ')})"
        for name, energy in EnergyLadder.quoted_elsewhere
    )
    return f"""Horizontal bars of energy on a logarithmic axis. {GROUPS["arithmetic"].capitalize()}
    takes {energies("arithmetic")}; {GROUPS["movement"]} takes {energies("movement")}. Diamonds in
    the bars mark what is often quoted instead: {listed(quoted)}. A dotted line leads from the FP16
    multiply down to DRAM, which takes as much as
    {show(EnergyOfMovement.dram_word_per_fp16_multiply, digits=3)} such multiplies."""


def _rows() -> dict[str, float]:
    rows, row, last = {}, 0.0, "arithmetic"
    for name, _, group in EnergyLadder.rungs:
        row += GAP if group != last else 0
        rows[name], row, last = row, row + 1, group
    return rows


def _bar(axes: Axes, row: float, name: str, energy: float) -> None:
    estimate = name in EnergyLadder.estimates
    axes.barh(row, energy, height=0.72, color=style.RED, alpha=0.3 if estimate else 1.0)
    label = f"{'≈ ' if estimate else ''}{show(energy, digits=3)}"
    if name == "DRAM":
        multiplies = show(EnergyOfMovement.dram_word_per_fp16_multiply, digits=3)
        label += f" = {multiplies} ×" if style.is_narrow() else f" = {multiplies} multiplies"
    axes.annotate(
        label,
        (energy, row),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        size=style.SMALL,
    )


def _quoted_elsewhere(axes: Axes, rows: dict[str, float]) -> None:
    for name, energy in EnergyLadder.quoted_elsewhere:
        axes.plot(
            energy.m_as(UNIT),
            rows[name],
            "D",
            markersize=5.5,
            markerfacecolor="none",
            markeredgecolor=style.INK,
            markeredgewidth=1.2,
        )

    first = EnergyLadder.quoted_elsewhere[0][0]
    axes.annotate(
        "◇ as often quoted",
        (EnergyOfMovement.register.m_as(UNIT), rows[first]),
        xytext=(26, 0),
        textcoords="offset points",
        va="center",
        size=style.SMALL,
    )


def _one_multiply(axes: Axes, rows: dict[str, float]) -> None:
    """What a word of DRAM is measured in: a line from the FP16 multiply down to it."""
    energy = EnergyOfMovement.fp16_multiply.m_as(UNIT)
    axes.plot(
        [energy] * 2, [rows["FP16 multiply"], rows["DRAM"] + 0.36], ":", color=style.INK, lw=1.1
    )
