"""The time of a collective by its size, on so many devices of a machine."""

from __future__ import annotations

from calc import collectives, communication, curves, machines, quantity
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Choice, Count, Drawing, Model, band, geometric

SIZE = Axis("Size", "byte", log=True)
TIME = Axis("Time", "us", log=True)
INPUTS = (
    Choice("machine", "Machine", "dgx-h100", machines.names()),
    Count("devices", "Devices", "8", 2, 2**20),
    Choice("operation", "Operation", "all_reduce", curves.OPERATIONS),
    Amount("size", "Size", "64 MB", "byte", 1, 1e13),
)


def answer(machine: str, devices: int, operation: str, size: Quantity) -> Answer:
    """The lower bound, and where curves were measured what is expected and they, at every size."""
    device = machines.get(machine)
    at = SIZE.of(size)
    sizes = sorted({*geometric(min(at, 1e3), max(at, 1e10), 22), at})
    times = [communication.time(operation, quantity(x, "byte"), devices, device) for x in sizes]
    rows = [("lower bound", x, TIME.of(time.lower)) for x, time in zip(sizes, times, strict=True)]
    rows += [
        ("expected", x, TIME.of(time.expected))
        for x, time in zip(sizes, times, strict=True)
        if time.expected is not None
    ]
    ends = [
        time.interval and tuple((x, TIME.of(end)) for end in time.interval)
        for x, time in zip(sizes, times, strict=True)
    ]
    here = communication.time(operation, size, devices, device)
    measured = [
        (f"measured, {curve.software}", x, TIME.of(quantity(seconds, "s")))
        for curve in here.measured
        if (curve.machine, curve.devices) == (device.key, devices)
        for x, seconds in zip(curve.sizes, curve.times, strict=True)
        if sizes[0] <= x <= sizes[-1]
    ]
    drawn = here.lower if here.expected is None else here.expected
    facts = {
        "At least": f"{here.lower}, by {here.algorithm}",
        "Expected": here.missing or str(here.expected),
        "Algorithm bandwidth": str(collectives.algorithm_bandwidth(size, drawn)),
    }
    if here.around:
        facts["80 % interval"] = here.around.told()
    if here.measured:
        facts["Measured"] = here.stands_on
    call = f"{operation!r}, {str(size)!r}, {devices}, {machine!r}"
    python = f"from calc import communication\n\nprint(communication.time({call}))"
    caption = (
        f"{size} among {devices} devices of {device.name}: the bound, what is expected where it was"
        f" measured, and at the dot {drawn}."
    )
    dots, bands = [(str(size), at, TIME.of(drawn))], band("expected", ends)
    return Answer(rows, facts, caption, python, dots=dots, bands=bands, measured=measured)


MODEL = Model("All-reduce", INPUTS, Drawing(SIZE, TIME), answer)
