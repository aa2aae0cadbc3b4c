"""A slower device, on a simulated clock: the time that the work would have taken there."""

from __future__ import annotations

import time

from calc.core.arguments import number, truth
from calc.core.errors import InputError
from calc.core.units import Quantity, QuantityLike, quantity


def speed_factor(factor: float, name: str = "compute_speed_factor") -> float:
    """Return a checked slowdown: 1 for this machine, less for a faster device."""
    return number(name, factor, above=0.0)


def extra_time(factor: float) -> Quantity:
    """Return the share of time that a slowdown adds; negative where the device is faster.

    Equation: r = f − 1

    >>> print(extra_time(1.5).to("%"))
    50%
    """
    return quantity(speed_factor(factor) - 1)


def lost_speed(factor: float) -> Quantity:
    """Return the share of speed that a slowdown takes, always less than it adds to the time.

    Equation: r = 1 − 1 / f

    >>> print(lost_speed(1.5).to("%"))
    33.33%
    """
    return quantity(1 - 1 / speed_factor(factor))


def apply_compute_slowdown(elapsed: QuantityLike, factor: float, sleep: bool = False) -> Quantity:
    """The time that work of this duration takes on a device that needs `factor` times as long.

    Nothing waits for it, unless `sleep` asks to: then the call returns when that time is over,
    which it is already on a faster device.

    >>> print(apply_compute_slowdown("2 s", 1.5), apply_compute_slowdown("2 s", 0.5))
    3 s 1 s
    """
    duration = quantity(elapsed)
    if not duration.check("[time]"):
        raise InputError(f"elapsed must be a time, as 2 s is; got {duration}")
    seconds = number("elapsed", duration.m_as("s"))
    simulated = seconds * speed_factor(factor, "factor")
    if truth("sleep", sleep):
        time.sleep(max(simulated - seconds, 0.0))
    return quantity(simulated, "s").to(duration.units)
