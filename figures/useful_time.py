"""Share of the time that lasts: by the interval of checkpoints, and by the number of devices."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import training
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Quoted, show
from calc.derivations.training_at_scale import Failures
from figures import style


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=6.6)
    left, right = style.panels(figure, 2, sharey=True)
    _by_interval(left)
    _by_devices(right)
    style.shared_label(left, right, "Useful share of the time (%)")
    left.set_ylim(0, 104)
    left.set_yticks(range(0, 101, 25))
    return figure


def alt() -> str:
    def useful(checkpoint: Quantity, restart: Quantity) -> Quoted:
        return show(Failures.useful(Failures.most, checkpoint, restart).to("%"), digits=2)

    saved = [
        f"{_saved_at_times(devices).magnitude:.0%}" for devices in (Failures.fewest, Failures.most)
    ]
    return f"""Panels of the useful share of the time, on logarithmic horizontal axes. In
    the first, by the interval between checkpoints, flat hills on {show(Failures.devices)} H100s:
    checkpoints of
    {show(Failures.checkpoint, digits=2)} peak at {show(Failures.goodput, digits=2)}, every
    {show(Failures.interval, digits=2)}, and those of {show(Failures.slow_checkpoint)} at
    {show(Failures.slow_goodput, digits=2)}, every {show(Failures.slow_interval, digits=2)}. In the
    second, from {show(Failures.fewest)} to {show(Failures.most)} devices, falling curves: at the
    right end {useful(Failures.checkpoint, Failures.quick_restart)} are useful with restarts of
    {show(Failures.quick_restart)}, {useful(Failures.checkpoint, Failures.restart)} with restarts of
    {show(Failures.restart)}, {useful(Failures.slow_checkpoint, Failures.restart)} with slow
    checkpoints too; saved every {show(Failures.fixed)}, they fall from {saved[0]} to {saved[1]}. A
    triangle marks the {show(Failures.effective_time)} that a run on {show(Failures.devices)}
    reports."""


def _saved_at_times(devices: Any) -> Quantity:
    """The useful share of so many devices that save at a fixed interval."""
    between = training.time_between_failures(Failures.of_a_device, devices)
    return training.goodput(Failures.fixed, Failures.checkpoint, Failures.restart, between)


def _by_interval(axes: Axes) -> None:
    style.log_axis(axes, "x", "Between checkpoints (min)", decades=2)
    interval = numpy.geomspace(0.1, 1000, 25)
    axes.set_xlim(interval[0], interval[-1])
    for checkpoint, best, colour in (
        (Failures.checkpoint, Failures.interval, style.BLUE),
        (Failures.slow_checkpoint, Failures.slow_interval, style.RED),
    ):
        axes.plot(interval, _useful(quantity(interval, "min"), checkpoint), color=colour)
        axes.plot(best.m_as("min"), _useful(best, checkpoint), "o", color=colour, markersize=6)
    _note(axes, 0.5, 60, f"saved in\n{show(Failures.checkpoint, digits=2)}", style.BLUE)
    _note(axes, 10, 38, f"in {show(Failures.slow_checkpoint)}", style.RED)
    _note(axes, 0.13, 99, "dots: Young and Daly", style.INK)


def _useful(interval: Quantity, checkpoint: Quantity) -> numpy.ndarray:
    goodput = training.goodput(interval, checkpoint, Failures.restart, Failures.between)
    return numpy.asarray(goodput.m_as("%"))


def _by_devices(axes: Axes) -> None:
    style.log_axis(axes, "x", "H100s")
    devices = numpy.geomspace(Failures.fewest, Failures.most, 14)
    axes.set_xlim(devices[0], devices[-1])
    for checkpoint, restart, colour in (
        (Failures.checkpoint, Failures.quick_restart, style.GREEN),
        (Failures.checkpoint, Failures.restart, style.BLUE),
        (Failures.slow_checkpoint, Failures.restart, style.RED),
    ):
        useful = Failures.useful(devices, checkpoint, restart).m_as("%")
        axes.plot(devices, useful, color=colour)
    axes.plot(devices, _saved_at_times(devices).m_as("%"), ":", color=style.INK, linewidth=1.4)
    reported = Failures.devices, Failures.effective_time.m_as("%")
    axes.plot(*reported, "^", color=style.INK, markersize=7)
    _note(axes, 240000, 100, f"restart in {show(Failures.quick_restart)}", style.GREEN, "right")
    _note(axes, 58000, 85, f"in {show(Failures.restart)}", style.BLUE)
    _note(axes, 26000, 33, f"saved in\n{show(Failures.slow_checkpoint)}", style.RED)
    _note(axes, 4600, 64, f"saved\nevery {show(Failures.fixed)}", style.INK, "right")


def _note(axes: Axes, x: float, y: float, text: str, colour: str, side: str = "left") -> None:
    style.note(axes, x, y, text, color=colour, bold=True, va="center", ha=side)
