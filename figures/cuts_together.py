"""Messages of FSDP, of TP and of both, by the tokens of a device, between servers and in a rack."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.catalog.machines import Machine
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.decisions import CutsThatHide
from calc.derivations.training_at_scale import CutsTogether
from figures import style

TOKENS = numpy.geomspace(200, 10_000, 16)
TENSOR = f"TP {CutsTogether.inside}"


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=6.0)
    servers, rack = style.panels(figure, 2)
    _panel(servers, CutsTogether.servers, f"FSDP {CutsThatHide.devices} over servers of H200s")
    _panel(rack, CutsTogether.rack, f"FSDP {CutsTogether.of_rack} in a rack of GB300s")
    servers.set_ylabel("Messages / arithmetic")
    if style.is_narrow():
        rack.set_ylabel("Messages / arithmetic")
    style.note(servers, 500, 5.3, "FSDP alone,\nand both", (8, 2), bold=True, color=style.RED)
    style.note(rack, 500, 4.3, "FSDP alone", (8, 4), bold=True, color=style.BLUE)
    style.note(rack, 3500, 0.58, "both", (0, 5), bold=True, color=style.RED)
    _crossing(servers, CutsTogether.tokens, style.RED, (6, 5))
    _crossing(rack, CutsTogether.tokens_of_rack, style.BLUE, (6, 5))
    _crossing(rack, CutsTogether.together, style.RED, (2, -14), ha="right")
    return figure


def alt() -> str:
    return f"""Log-log panels of the time of messages over that of the arithmetic against the tokens
    of a device, each with a level line of {TENSOR} alone. Over servers of H200s the falling lines
    of FSDP alone and of both are one, and reach a ratio of one at
    {show(CutsTogether.tokens, digits=2)}; {TENSOR} lies at {show(CutsTogether.share, digits=2)}. In
    a rack of GB300s FSDP alone reaches it at {show(CutsTogether.tokens_of_rack, digits=2)}, and
    both together at {show(CutsTogether.together, digits=2)}, though {TENSOR} takes
    {show(CutsTogether.share_of_rack, digits=2)}."""


def _panel(axes: Axes, machine: Machine, title: str) -> None:
    style.log_axis(axes, "x", "Tokens of a device in a microbatch")
    style.log_axis(axes, "y", "")
    axes.set_xlim(TOKENS[0], TOKENS[-1])
    axes.set_ylim(0.1, 20)
    axes.set_title(title)
    taken = zip(*(CutsTogether.taken(machine, each) for each in TOKENS), strict=True)
    gathers, sums, both = taken
    axes.axhline(1, color=style.INK, linewidth=0.8)
    axes.plot(TOKENS, gathers, color=style.BLUE, linewidth=3.6, alpha=0.55)
    axes.plot(TOKENS, sums, color=style.ORANGE)
    axes.plot(TOKENS, both, color=style.RED, linewidth=1.6)
    style.note(axes, TOKENS[0], sums[0], f"{TENSOR} alone", (4, -13), color=style.ORANGE, bold=True)


def _crossing(
    axes: Axes, tokens: Quantity, color: str, by: tuple[float, float], **look: str
) -> None:
    axes.plot(tokens.m_as("token"), 1, "o", color=color, markersize=6)
    style.note(axes, tokens.m_as("token"), 1, str(show(tokens, digits=2)), by, bold=True, **look)
