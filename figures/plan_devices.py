"""Time of a token, its all-reduces and the device hours it takes, by how many devices share it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc import quantity
from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.cost_and_carbon import MoreDevices, OneCall
from figures import style

MILLION = show(quantity(1e6, "token"))
LOOKS = {  # a device's name, its color, and how far up that stands beside the end of a curve
    "a100": ("A100", style.DEVICES["a100"], 2),
    "h100": ("H100", style.DEVICES["h100"], -2),
    "gb200": ("GB200\nNVL72", style.PURPLE, -2),
}
# Between the last number of devices in a server and the next.
EDGE = (MoreDevices.node * MoreDevices.across) ** 0.5


def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.9, narrow_height=9.2)
    panels = style.panels(figure, 3)
    shown = (
        ("(a) Time per token", "Time (ms)", _time, _bound_of_time, (0.9, 80)),
        ("(b) Its all-reduces", "Time (ms)", _sums, _bound_of_sums, (0.14, 40)),
        ("(c) Price", f"Device hours for {MILLION}", _hours, _bound_of_hours, (0.3, 40)),
    )
    for axes, (title, label, law, bound, limits) in zip(panels, shown, strict=True):
        _devices(axes)
        style.log_axis(axes, "y", label)
        axes.yaxis.set_major_locator(FixedLocator([0.2, 0.5, 1, 2, 5, 10, 20, 50]))
        axes.set_ylim(*limits)
        axes.set_title(title)
        for key, (name, color, up) in LOOKS.items():
            curve = [law(key, count) for count in OneCall.devices]
            axes.plot(OneCall.devices, curve, color=color, marker="o", markersize=3)
            if narrow or axes is panels[-1]:
                _name(axes, name, curve[-1], up, color)
        least = [bound(count) for count in OneCall.devices]
        axes.plot(
            OneCall.devices,
            least,
            color=style.DEVICES["h100"],
            linewidth=1.3,
            linestyle=(0, (5, 2)),
        )
        if narrow or axes is panels[-1]:
            _name(axes, "bound\nof H100", least[-1], 0, style.DEVICES["h100"], weight="normal")
    for axes in panels:
        top = axes.get_ylim()[1] * 0.93
        for text, place, side in (("server", EDGE * 0.93, "right"), ("beyond", EDGE * 1.1, "left")):
            style.note(axes, place, top, text, ha=side, va="top")
    _, sums, _ = panels
    style.note(
        sums,
        OneCall.devices[-1],
        _sums("gb200", OneCall.devices[-1]),
        f"domain\nof {MoreDevices.domain}",
        (0, -5),
        ha="right",
        va="top",
        color=style.PURPLE,
    )
    return figure


def alt() -> str:
    def at(law: Callable[[str, int], float], key: str, unit: str) -> str:
        few, many = (
            show(quantity(law(key, count), unit), digits=2)
            for count in (MoreDevices.node, MoreDevices.across)
        )
        return f"{few} and {many}"

    times = (
        f"{at(_time, key, 'ms')} on {' '.join(name.split())}s" for key, (name, *_) in LOOKS.items()
    )
    return f"""Log-log plots against the number of devices, from {OneCall.devices[0]} to
    {OneCall.devices[-1]}, of the time per token, of the all-reduces in it, and of the device hours
    for {MILLION}, with a solid curve of what is expected for each kind of device and a dashed bound
    for H100s; all beyond the {MoreDevices.node} devices of a server is grey. Time per token on
    {MoreDevices.node} and on {MoreDevices.across} devices: {listed(times)}. The all-reduces jump at
    that edge, from {show(quantity(_sums("h100", MoreDevices.node), "ms"), digits=2)} to
    {show(quantity(_sums("h100", MoreDevices.across), "ms"), digits=2)} on H100s, and are level in a
    rack, where {MoreDevices.domain} devices are one domain; device hours rise throughout."""


def _time(key: str, devices: int) -> float:
    """Milliseconds of a token as expected."""
    time: float = OneCall.expected(devices, key=key).time_per_token.m_as("ms")
    return time


def _sums(key: str, devices: int) -> float:
    """Milliseconds of all-reduces in it."""
    time: float = OneCall.expected(devices, key=key).passes["each token"]["tensor"].m_as("ms")
    return time


def _hours(key: str, devices: int) -> float:
    """Device hours for a million tokens."""
    hours: float = (devices / OneCall.expected(devices, key=key).throughput).m_as("h/Mtoken")
    return hours


def _bound_of_time(devices: int) -> float:
    """Milliseconds of a token on H100s at published rates, without overlap."""
    time: float = OneCall.plan(devices=devices).time_per_token.upper.m_as("ms")
    return time


def _bound_of_sums(devices: int) -> float:
    """Milliseconds of its all-reduces by bandwidth alone."""
    time: float = MoreDevices.least_sums(devices).m_as("ms")
    return time


def _bound_of_hours(devices: int) -> float:
    """Device hours for a million tokens at that bound."""
    hours: float = (devices / OneCall.plan(devices=devices).throughput.lower).m_as("h/Mtoken")
    return hours


def _devices(axes: Axes) -> None:
    """The axis of devices, grey where they are in more than one server of H100s or A100s."""
    counts: Sequence[int] = OneCall.devices
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{count}" for count in counts])
    axes.minorticks_off()
    axes.set_xlim(counts[0] * 0.85, counts[-1] * 1.08)
    axes.set_xlabel("Devices")
    axes.axvspan(EDGE, counts[-1] * 1.08, color=style.INK, alpha=0.07, linewidth=0)


def _name(axes: Axes, name: str, end: float, up: int, color: str, **look: Any) -> None:
    axes.annotate(
        name,
        (OneCall.devices[-1], end),
        xytext=(8, up),
        textcoords="offset points",
        va="center",
        color=color,
        size=style.SMALL,
        **{"weight": "bold", **look},
    )
