"""One GPU of a server and one of a rack: their memories and links, as wide as their bandwidth."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from calc import machines
from calc.catalog.machines import Machine
from calc.core.units import Quantity
from calc.derivations import approximately, show
from calc.derivations.memory_hierarchy_chapter import Level, MemoryHierarchy
from figures import style

SCALE = 12.0  # points of a link's width for each TB/s
HAIRLINE = 0.8  # points: nothing is drawn thinner
CHIP, WAY, BOX = 112, 54, 84  # points: how wide a chip is, the links beside it and what they reach
HIGH = 206  # points, of a machine
LINE = 12.0  # points, of text
SQUARES = 18  # of a fabric's devices, in a row


class Place(NamedTuple):
    """A memory or a network: its name, what else is known of it, and the way to it."""

    name: str
    facts: tuple[str, ...]
    bandwidth: Quantity | None


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=2.85, narrow_height=5.5)
    axes = figure.subplots()
    _server(axes, 0, 0)
    _rack(axes, *((0, -HIGH - 12) if narrow else (CHIP + WAY + BOX + 20, 0)))
    whole = CHIP + WAY + BOX
    axes.set_xlim(-2, whole + 2 if narrow else 2 * whole + 22)
    axes.set_ylim(-2 * HIGH + 38 if narrow else -HIGH + 14, 17)
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


def alt() -> str:
    server, rack = _machines()
    levels = "; ".join(
        f"{level.name}: " + ", ".join(filter(None, (*_facts(level), _short(level.bandwidth))))
        for level in MemoryHierarchy.levels
    )
    return f"""Block diagrams of one GPU of a server and one of a rack. Links are drawn as wide as
    their bandwidth, and each step away from the arithmetic is narrower. In the {server.name}
    memories have these capacities, latencies and bandwidths: {levels}; NVLink to
    {show(server.domain)} GPUs has {show(server.bandwidth)}, the port to the network
    {_port(server)}. In the {rack.name} HBM has {show(rack.device.memory_bandwidth)}, NVLink to
    {show(rack.domain)} GPUs {show(rack.bandwidth)}, the link to the host {show(rack.host_link)} and
    the port {_port(rack)}."""


def _machines() -> tuple[Machine, Machine]:
    return machines.get("dgx-h100"), machines.get("gb200-nvl72")


def _port(machine: Machine) -> str:
    return str(show(machine.ports.to("GB/s")))


def _short(value: Quantity | None) -> str:
    if value is None:
        return ""
    estimate = value.provenance is not None and value.provenance.kind == "estimate"
    return str(approximately(value, 3) if estimate else show(value, digits=3))


def _facts(level: Level) -> tuple[str, ...]:
    return tuple(_short(value) for value in (level.capacity, level.latency) if value is not None)


def _server(axes: Axes, left: float, top: float) -> None:
    machine, _ = _machines()
    registers, l1, l2, hbm, host, drives = MemoryHierarchy.levels
    cores = (
        f"registers {_facts(registers)[0]}",
        f"L1 {', '.join(_facts(l1))}",
        _short(l1.bandwidth),
    )
    sms = f"{show(MemoryHierarchy.sms)} SMs"
    _chip(axes, left, top, f"(a) {machine.name}", (sms, *cores), l2, hbm)
    host_place = Place(host.name, _facts(host), host.bandwidth)
    _beside(axes, left, top, machine, host_place)
    x, y = left + CHIP + WAY, top - 90 - 3 * LINE - 6
    _link(axes, (x + 12, y), (x + 12, y - 14), drives.bandwidth)
    _text(axes, x + 18, y - 7, _short(drives.bandwidth))
    _box(axes, x, y - 14, BOX, drives.name, _facts(drives))


def _rack(axes: Axes, left: float, top: float) -> None:
    _, machine = _machines()
    device = machine.device
    l2 = Level("L2 cache", device.on_chip_memory, None, None, None)
    hbm = Level("HBM", device.memory_capacity, None, device.memory_bandwidth, None)
    sms = f"{show(device.units)} SMs"
    _chip(axes, left, top, f"(b) {machine.name}", (sms,), l2, hbm)
    _beside(axes, left, top, machine, Place("Grace CPU", ("and its DRAM",), machine.host_link))


def _chip(
    axes: Axes, left: float, top: float, name: str, cores: tuple[str, ...], l2: Level, hbm: Level
) -> None:
    """The processor with its caches in it, and its memory below."""
    _text(axes, left, top + 9, name, weight="bold")
    axes.add_patch(Rectangle((left, top - 104), CHIP, 104, fill=False, edgecolor=style.INK))
    _box(axes, left + 4, top - 4, CHIP - 8, cores[0], cores[1:], lines=3)
    middle = left + CHIP / 2
    _down(axes, middle, top - 4 - 4 * LINE - 6, l2.bandwidth)
    _box(axes, left + 4, top - 78, CHIP - 8, "", (f"L2 {', '.join(_facts(l2))}",), lines=0)
    _down(axes, middle, top - 104, hbm.bandwidth)
    _box(axes, left + 4, top - 124, CHIP - 8, "HBM", (", ".join(_facts(hbm)),))


def _beside(axes: Axes, left: float, top: float, machine: Machine, host: Place) -> None:
    """Draw the links of a chip with their bandwidths: the fabric, the network and the host."""
    x = left + CHIP + WAY
    fabric = Place("NVLink switch", (f"{show(machine.domain)} GPUs", "", ""), machine.bandwidth)
    for place, down in (
        (fabric, 0.0),
        (Place("Network", (), machine.ports.to("GB/s")), 64.0),
        (host, 90.0),
    ):
        _box(axes, x, top - down, BOX, place.name, place.facts)
        y = top - down - 12
        _link(axes, (left + CHIP, y), (x, y), place.bandwidth)
        words = _short(place.bandwidth)
        _text(axes, x - WAY / 2, y + _width(place.bandwidth) / 2 + 5, words, ha="center")
    _squares(axes, x + 4, top - 2 * LINE - 8, machine.domain)


def _box(
    axes: Axes,
    left: float,
    top: float,
    width: float,
    name: str,
    facts: tuple[str, ...],
    lines: int | None = None,
) -> None:
    """A named box with a line for each fact, or as high as so many lines."""
    high = LINE * (1 + (len(facts) if lines is None else lines)) + 6
    axes.add_patch(
        Rectangle((left, top - high), width, high, facecolor=style.INK, alpha=0.09, linewidth=0)
    )
    words = [(name, "bold")] if name else []
    for row, (text, weight) in enumerate((*words, *((fact, "normal") for fact in facts))):
        _text(axes, left + 4, top - 3 - LINE * (row + 0.5), text, weight=weight)


def _down(axes: Axes, x: float, top: float, bandwidth: Quantity | None) -> None:
    """The way from a memory up to its user; dashed where no source says how wide it is."""
    high = 20.0
    if bandwidth is None:
        for side in (-30, 30):
            axes.plot([x + side] * 2, [top, top - high], "--", color=style.INK, linewidth=0.8)
        _text(axes, x, top - high / 2, "no source", ha="center")
        return
    _link(axes, (x, top), (x, top - high), bandwidth)
    _text(axes, x, top - high / 2, _short(bandwidth), ha="center", weight="bold")


def _link(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], bandwidth: Quantity | None
) -> None:
    """A band as wide as its bandwidth."""
    half = _width(bandwidth) / 2
    (x0, y0), (x1, y1) = start, end
    level = y0 == y1
    corner = (x0, y0 - half) if level else (x0 - half, y1)
    size = (x1 - x0, 2 * half) if level else (2 * half, y0 - y1)
    faint = not level and half > 1
    axes.add_patch(
        Rectangle(corner, *size, color=style.BLUE, alpha=0.35 if faint else 1.0, linewidth=0)
    )


def _width(bandwidth: Quantity | None) -> float:
    """Points that a link is wide."""
    return HAIRLINE if bandwidth is None else max(HAIRLINE, SCALE * bandwidth.m_as("TB/s"))


def _squares(axes: Axes, left: float, top: float, count: int) -> None:
    """A square for each device of a fabric; the first is the one that is drawn."""
    pitch, side = 4.3, 3.2
    for first, last, colour, alpha in ((1, count, style.INK, 0.45), (0, 1, style.RED, 1.0)):
        places = (divmod(square, SQUARES) for square in range(first, last))
        squares = [(left + pitch * x, top - pitch * y, side, -side) for y, x in places]
        style.boxes(axes, squares, facecolor=colour, alpha=alpha, linewidth=0)


def _text(axes: Axes, x: float, y: float, text: str, **look: Any) -> None:
    axes.text(x, y, text, va="center", size=style.SMALL, **look)
