"""Failures in a machine of many devices, and their cost: spares, stragglers, corruption.

How often to save, and the goodput of saving, are laws of `calc.training`.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated

from calc.core.arguments import number, whole_number
from calc.core.errors import InputError
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE_FRACTION, law
from calc.core.units import Quantity, QuantityLike, quantity

PARTS = 4000  # of the integral over the slowest device's time
MOST_SPARES = 100_000


@law
def time_between_interruptions(
    device_time_between_failures: Annotated[QuantityLike, "s", "M_d"],
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    group_time_between_failures: Annotated[QuantityLike, "s", "M_g"],
    group: Annotated[QuantityLike, "", "g", AT_LEAST_ONE],
) -> Annotated[Quantity, "s"]:
    """Mean time between interruptions where devices fail, and what groups of them share fails too.

    Equation: M = 1 / (N / M_d + N / (g · M_g))

    A group is a rack, a switch or a supply of power. Assumes that all fail at random and on their
    own; a group that fails is one interruption, but takes g devices with it.

    Source: daly2006higher

    See also: training.checkpoint_interval

    >>> print(time_between_interruptions("6 year", 16384, "30 year", 64).to("h"))
    3.200 h

    Parameters
    ----------
    device_time_between_failures
        mean time between the failures of a device
    devices
        devices that take part
    group_time_between_failures
        mean time between the failures of what a group shares
    group
        devices that share what fails: a rack, a switch, a supply of power
    """
    of_devices = devices / device_time_between_failures
    return 1 / (of_devices + devices / (group * group_time_between_failures))


@law
def silent_corruptions(
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    time: Annotated[QuantityLike, "s", "T", NON_NEGATIVE],
    device_time_between: Annotated[QuantityLike, "s", "M_s"],
) -> Annotated[Quantity, ""]:
    """Wrong results that nobody reports, expected in a run.

    Equation: n = N · T / M_s

    Assumes that they come at random; in fact a few defective devices make most of them.

    Source: grattafiori2024llama3

    >>> print(silent_corruptions(16384, "54 day", "404 year"))
    5.996

    Parameters
    ----------
    devices
        devices that take part
    time
        time of the run
    device_time_between
        mean time between the silent corruptions of a device
    """
    return devices * time / device_time_between


@law
def lost_to_corruption(
    time_between: Annotated[QuantityLike, "s", "M"],
    detection_time: Annotated[QuantityLike, "s", "D", NON_NEGATIVE],
    restart_time: Annotated[QuantityLike, "s", "R", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, ""]:
    """Share of the time that corruption costs, where all work until it is noticed is thrown away.

    Equation: s = (D + R) / (M + D + R)

    M is the mean time from a restart to the next corruption of the machine, D the time until it is
    noticed. Checkpoints must reach back as far as D.

    Source: geminiteam2023gemini

    >>> print(lost_to_corruption("9 day", "6 h", "10 min").to("%"))
    2.776%

    Parameters
    ----------
    time_between
        mean time from a restart to the next corruption of the machine
    detection_time
        time until a corruption is noticed
    restart_time
        time until work goes on
    """
    lost = detection_time + restart_time
    return lost / (time_between + lost)


@law
def goodput_of_spares(
    devices: Annotated[QuantityLike, "", "N", AT_LEAST_ONE],
    spares: Annotated[QuantityLike, "", "S", NON_NEGATIVE],
    goodput: Annotated[QuantityLike, "", "G", POSITIVE_FRACTION],
) -> Annotated[Quantity, ""]:
    """Share of all devices' time that lasts, those that wait to take over counted too.

    Equation: G_all = G · N / (N + S)

    Source: daly2006higher

    >>> print(goodput_of_spares(16384, 256, 0.95).to("%"))
    93.54%

    Parameters
    ----------
    devices
        devices that take part
    spares
        devices that wait to take over
    goodput
        share of the time that lasts on the devices that work
    """
    return goodput * devices / (devices + spares)


@law
def checkpoint_bandwidth(
    size: Annotated[QuantityLike, "byte", "D"],
    interval: Annotated[QuantityLike, "s", "τ"],
    share: Annotated[QuantityLike, "", "s", POSITIVE_FRACTION],
) -> Annotated[Quantity, "byte/s"]:
    """Bandwidth of storage at which saving takes this share of the interval between checkpoints.

    Equation: BW = D / (s · τ)

    With s = 1 a checkpoint is written in the background, and done when the next one begins.

    Source: grattafiori2024llama3

    >>> print(checkpoint_bandwidth("4.86 TB", "10 min", 0.02).to("GB/s"))
    405 GB/s

    Parameters
    ----------
    size
        bytes of a checkpoint, of a sample or of a token
    interval
        time between checkpoints
    share
        share of the interval that saving takes
    """
    return size / (share * interval)


@law
def storage_kept(
    size: Annotated[QuantityLike, "byte", "D"],
    reach: Annotated[QuantityLike, "s", "T_back", NON_NEGATIVE],
    interval: Annotated[QuantityLike, "s", "τ"],
) -> Annotated[Quantity, "byte"]:
    """Storage for checkpoints that reach back so far, and the one that is being written.

    Equation: M = D · (T_back / τ + 1)

    Source: grattafiori2024llama3

    >>> print(storage_kept("4.86 TB", "1 day", "1 h").to("TB"))
    121.5 TB

    Parameters
    ----------
    size
        bytes of a checkpoint, of a sample or of a token
    reach
        time that the oldest checkpoint reaches back
    interval
        time between checkpoints
    """
    return size * (reach / interval + 1)


@law
def loading_bandwidth(
    rate: Annotated[QuantityLike, "1/s", "R"], size: Annotated[QuantityLike, "byte", "s"]
) -> Annotated[Quantity, "byte/s"]:
    """Bytes of data that a device needs in a second: so many samples or tokens, of this size.

    Equation: BW = R · s

    Each is read once, from where it is stored. A token is an index of two or four bytes, an image
    a file of a hundred thousand.

    Source: hennessy2025architecture

    >>> print(loading_bandwidth("2900 Hz", "115 kB").to("MB/s"))
    333.5 MB/s

    Parameters
    ----------
    rate
        samples or tokens that a device takes in a second
    size
        bytes of a checkpoint, of a sample or of a token
    """
    return rate * size


def slowest(mean: QuantityLike, deviation: QuantityLike, devices: int) -> Annotated[Quantity, "s"]:
    """The mean of the longest of so many step times, each normal with this mean and deviation.

    Equation: E = μ + σ · ∫ x · N · φ(x) · Φ(x)^(N − 1) dx

    All devices wait for this straggler where they meet in every step. Assumes that a device is slow
    at random; one that always is costs all that it lacks. Integrated numerically, to six digits.

    Source: david2003order

    >>> print(slowest("1 s", "20 ms", 16384))
    1.079 s

    Parameters
    ----------
    mean
        mean step time of a device
    deviation
        standard deviation of a device's step time
    devices
        devices that take part
    """
    count = whole_number("slowest(): devices", devices)
    center, spread = quantity(mean).to("s"), quantity(deviation).to("s")
    number("slowest(): mean", center.magnitude, 0.0, 0.0)
    number("slowest(): deviation", spread.magnitude)
    normal, reach = NormalDist(), 10.0
    width = 2 * reach / PARTS
    total = 0.0
    for part in range(PARTS):  # E = ∫ (1 − Φ^N) over x > 0, less ∫ Φ^N over x < 0
        x = -reach + (part + 0.5) * width
        all_below = normal.cdf(x) ** count
        total += (1 - all_below if x > 0 else -all_below) * width
    return center + spread * total


def spares_needed(
    devices: int,
    device_time_between_failures: QuantityLike,
    repair_time: QuantityLike,
    risk: float = 0.01,
) -> int:
    """The fewest spares of which one is ready with this risk at most of none.

    Equation: P(X > S) ≤ risk, X ~ Poisson(N · T_repair / M_d)

    X devices are under repair at a time. Assumes that they fail at random and on their own: spare
    whole groups where what they share fails.

    Source: daly2006higher

    >>> spares_needed(16384, "6 year", "3 day")
    34
    """
    count = whole_number("spares_needed(): devices", devices)
    between = quantity(device_time_between_failures).m_as("s")
    repair = quantity(repair_time).m_as("s")
    number("spares_needed(): device_time_between_failures", between, 0.0, 0.0)
    number("spares_needed(): repair_time", repair)
    if not 0 < number("spares_needed(): risk", risk) < 1:
        raise InputError(f"spares_needed(): risk must be between 0 and 1; got {risk}")
    mean = count * repair / between
    if mean > MOST_SPARES:
        raise InputError(f"{mean:.3g} devices under repair at a time are more than can be spared")
    term = math.exp(-mean / 2)  # in two halves, so that a large mean does not vanish
    total, spares = term, 0
    while total * math.exp(-mean / 2) < 1 - risk:
        spares += 1
        term *= mean / spares
        total += term
    return spares
