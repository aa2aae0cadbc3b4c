"""The power of a device, and of its share of hosts and fans: idle, at work, and at most.

A device at work draws what `calc.energy.power_at_work` says, with coefficients that are fitted to
GPUs whose power was metered while they wrote tokens; its range is that of loads of a model or of a
device that was left out. Of the machine's other parts a maker publishes the most that they draw.
One server of eight H100s was seen at 8.4 kW of its 10.2, which is three fifths of that most, and
all others are taken to draw as large a share. No device that serves draws less than one that is
ready and does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from calc.catalog import constants, machines
from calc.catalog.hardware import get
from calc.catalog.machines import Machine
from calc.core.arguments import check_is
from calc.core.arrays import Number
from calc.core.elementwise import minimum
from calc.core.units import Quantity, quantity
from calc.laws import energy

NOTHING = quantity(0, "W")
OF_MACHINES = "a machine of calc.machines"
CALIBRATED_ON, FULL = "dgx-h100", "power_hgx_h100_most"


@dataclass(frozen=True)
class Power:
    """Watts of one device, and of its share of the machine's other parts."""

    device: Quantity
    rest: Quantity = NOTHING
    """Power of hosts, links and fans; nothing where the machine's power is unpublished."""

    @property
    def total(self) -> Quantity:
        return self.device + self.rest


def most(machine: Machine, whole: bool = True, cap: Quantity | None = None) -> Power | None:
    """Return the design power or the cap, that of the machine shared out; None if unpublished.

    >>> print(most(machines.get("dgx-h100")).total)
    1275 W
    """
    check_is(Machine, "machine", machine, OF_MACHINES)
    if not machine.device.publishes("tdp"):
        return None
    limit = machine.device.tdp if cap is None else minimum(cap, machine.device.tdp)
    if not whole or not machine.publishes("power"):
        return Power(limit)
    return Power(limit, (machine.power / machine.domain).to("W") - machine.device.tdp)


def idle(machine: Machine) -> Power | None:
    """Return the watts of a device that is ready and does nothing, by those of an A100.

    >>> print(idle(machines.get("dgx-h100")).device)
    78.75 W
    """
    check_is(Machine, "machine", machine, OF_MACHINES)
    if not machine.device.publishes("tdp"):
        return None
    return Power(_idle_share() * machine.device.tdp)


def at_work(
    machine: Machine,
    memory_use: Number,
    compute_use: Number,
    whole: bool = True,
    cap: Quantity | None = None,
) -> Power | None:
    """Return what is expected of a device whose kernels use so much of its bandwidth and peak.

    A cap on its power is what it draws at most.

    >>> found = at_work(machines.get("dgx-h100"), 0.6, 0.05)
    >>> print(found.device, found.rest)
    563.5 W 350 W
    """
    limit = most(machine, whole)
    if limit is None:
        return None
    device = energy.power_at_work(
        machine.device.tdp,
        minimum(memory_use, 1.0),
        minimum(compute_use, 1.0),
        *(constants.get(f"coefficient_power_{name}") for name in ("at_work", *BY)),
    )
    return Power(device if cap is None else minimum(device, cap), _rest_share() * limit.rest)


def slowdown(machine: Machine, cap: Quantity, memory_use: Number, compute_use: Number) -> Number:
    """Return how many times as long work takes under a cap, which is within `caps` of the device.

    >>> h100 = machines.get("dgx-h100")
    >>> print(f"{slowdown(h100, quantity('400 W'), 0.6, 0.05):.3f}")
    1.092
    """
    power = at_work(machine, memory_use, compute_use, whole=False)
    assert power is not None
    fixed, _ = caps(machine)
    clock = energy.clock_at_cap(power.device - fixed, cap - fixed)
    factor: Number = energy.slowdown_at_clock(minimum(memory_use, 1.0), clock).m_as("")
    return factor


def caps(machine: Machine) -> tuple[Quantity, Quantity]:
    """Return between what a cap may be set: what no clock saves, and the design power.

    >>> print(*caps(machines.get("dgx-h100")))
    210 W 700 W
    """
    check_is(Machine, "machine", machine, OF_MACHINES)
    return constants.get("coefficient_power_fixed") * machine.device.tdp, machine.device.tdp


BY = "by_memory", "by_compute"


def between(
    machine: Machine, expected: Power, whole: bool = True, cap: Quantity | None = None
) -> tuple[Power, Power]:
    """Return the range of 80 % of loads around what is expected at work.

    The device stays within its design power, and the rest of the machine between nothing and its.

    >>> h100 = machines.get("dgx-h100")
    >>> low, high = between(h100, at_work(h100, 0.6, 0.05))
    >>> print(low.device, low.rest, high.device, high.rest)
    422.6 W 0 W 687.4 W 575 W
    """
    limit = most(machine, whole, cap)
    check_is(Power, "expected", expected, "what at_work() returns")
    assert limit is not None
    low, high = (constants.get(f"coefficient_power_{end}") for end in ("low", "high"))
    return (
        Power(low * expected.device),
        Power(minimum(high * expected.device, limit.device), limit.rest),
    )


@cache
def _idle_share() -> Quantity:
    return (constants.get("power_idle_a100") / get("a100-40gb").tdp).to("")


@cache
def _rest_share() -> Quantity:
    """The share of the most that the other parts of a server drew, while its GPUs drew theirs."""
    server = machines.get(CALIBRATED_ON)
    devices = server.domain * server.device.tdp
    return ((constants.get(FULL) - devices) / (server.power - devices)).to("")
