"""Time of a token against the device hours it takes, by how many devices share the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from calc import quantity
from calc.derivations import show
from calc.derivations.cost_and_carbon import MoreDevices, OneCall
from figures import style

MILLION = show(quantity(1e6, "token"))
NAMES = {"h100": "H100", "a100": "A100", "tpu-v5p": "TPU v5p"}
MEASURED = ("h100", "a100")
NODE = OneCall.devices.index(MoreDevices.node)
# Where the number of devices at a point of an expectation has room.
BESIDE: dict[str, Sequence[tuple[int, int, str]]] = {
    "h100": ((0, -14, "center"), (5, -14, "left"), (8, -2, "left"), *[(8, -3, "left")] * 3),
    "a100": ((0, 7, "center"), (0, 7, "center"), (0, -15, "center"), *[(8, -3, "left")] * 3),
}


def draw() -> Figure:
    figure = style.figure(height=3.8, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Time per token (ms), faster to the right")
    style.log_axis(axes, "y", f"Device hours for {MILLION}")
    for axis, places in (
        (axes.xaxis, (1, 2, 5, 10, 20, 50)),
        (axes.yaxis, (0.5, 1, 2, 5, 10, 20, 50)),
    ):
        axis.set_major_locator(FixedLocator(places))
    axes.set_xlim(130, 1.1)
    axes.set_ylim(0.45, 110)
    for key in OneCall.keys:
        time, paid = _bounds(key)
        axes.plot(time, paid, color=style.DEVICES[key], linewidth=1.3, linestyle=(0, (5, 2)))
    for key in MEASURED:
        _expectation(axes, key)
    time, paid = _bounds("tpu-v5p")
    _note(axes, NAMES["tpu-v5p"], (time[1], paid[1]), (0, -13), "center", "tpu-v5p")
    time, paid = _bounds("h100")
    _note(axes, f"{OneCall.devices[-1]}", (time[-1], paid[-1]), (0, 5), "center", "h100")
    _note(axes, "no overlap", (time[NODE], paid[NODE]), (2, -14), "center", "h100")
    return figure


def _expectation(axes: Axes, key: str) -> None:
    """The curve of what is expected, with a dot where it leaves the server."""
    time, paid = _expected(key)
    axes.plot(time, paid, color=style.DEVICES[key], linewidth=2)
    axes.plot(time[NODE], paid[NODE], "o", color=style.DEVICES[key], markersize=6)
    points = zip(OneCall.devices, time, paid, BESIDE[key], strict=True)
    for count, x, y, (right, up, side) in points:
        _note(axes, f"{count}", (x, y), (right, up), side, key)
    _note(
        axes, f"{NAMES[key]},\nexpected", (time[-1], paid[-1]), (0, 9), "center", key, weight="bold"
    )


def _note(
    axes: Axes,
    words: str,
    place: tuple[float, float],
    offset: tuple[int, int],
    side: str,
    key: str,
    **look: Any,
) -> None:
    axes.annotate(
        words,
        place,
        xytext=offset,
        textcoords="offset points",
        ha=side,
        color=style.DEVICES[key],
        size=style.SMALL,
        **look,
    )


def alt() -> str:
    def at(key: str, place: int) -> str:
        time, paid = _expected(key)
        return f"{show(time[place], digits=2)} ms and {show(paid[place], digits=2)} hours"

    first, node = OneCall.devices[0], MoreDevices.node
    turns = (
        f"{NAMES[key]} {at(key, 0)} at {first}, {at(key, NODE)} at {node},"
        f" {at(key, NODE + 1)} at {OneCall.devices[NODE + 1]}"
        for key in MEASURED
    )
    return f"""Log-log plot of the device hours for {MILLION} against the time per token, faster to
    the right. Solid curves of what is expected go right and up a little to a dot at {node} devices,
    a whole server, and turn back there, ever more steeply: {"; ".join(turns)}. Dashed curves of the
    bound without overlap, one for each kind of device, go on to the right up to
    {OneCall.devices[-1]} devices, that of H100s to {show(MoreDevices.bound_most, digits=2)}."""


def _bounds(key: str) -> tuple[Any, Any]:
    """Milliseconds for a token, and device hours for a million, at published rates."""
    made = OneCall.plan(key, numpy.array(OneCall.devices))
    paid = (made.devices / made.throughput.lower).m_as("h/Mtoken")
    return made.time_per_token.upper.m_as("ms"), paid


def _expected(key: str) -> tuple[list[float], list[float]]:
    """The same as it is expected at measured rates, point by point."""
    time, paid = [], []
    for count in OneCall.devices:
        found = OneCall.plan(key, count).expected
        assert found is not None
        time.append(found.time_per_token.m_as("ms"))
        paid.append((count / found.throughput).m_as("h/Mtoken"))
    return time, paid
