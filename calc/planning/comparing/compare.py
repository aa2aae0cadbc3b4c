"""Machines, or models, side by side: each on its fewest devices, at its best batch, and ranked.

`calc.compare` plans every pair as `calc.plan` does. What is compared is what is expected of all of
them, or else the upper bounds of all: a bound is never held against an expectation.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from calc.catalog import machines as known_machines, models as known_models
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.models import Transformer
from calc.core.arguments import as_list, one_of
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import columns, html_table
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning import advice
from calc.planning.capacity import linked_counts, with_devices
from calc.planning.report import RANGES, memory_text
from calc.planning.serving import Plan, plan
from calc.planning.setup import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BY = {  # what a ranking may go by, and the field of a plan that it is
    "cost": "cost_per_token",
    "energy": "energy_per_token",
    "tpot": "time_per_token",
    "ttft": "time_to_first_token",
    "throughput": "throughput",
}
EXPECTED, UPPER = "what is expected", "the bounds without overlap"


@dataclass(frozen=True, eq=False)
class Entry:
    """A model on a machine: its plans, or why there is none."""

    model: Transformer
    machine: Machine
    curve: tuple[Plan, ...] = ()
    """Plans on the same devices at batches that double, as far as the limits are kept."""
    reason: str = ""
    """By how much it does not fit, or which limit it cannot keep."""
    ways: tuple[str, ...] = ()
    """What would make it fit."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Entries in the order of their ranks; `print` shows them, and `draw` their front.

    `basis` says whether what is expected of all is compared, or the upper bounds of all.
    """

    entries: tuple[Entry, ...]
    by: str
    basis: str
    limits: Mapping[str, Quantity]

    @property
    def planned(self) -> tuple[Entry, ...]:
        """The entries that have a plan."""
        return tuple(each for each in self.entries if each.curve)

    @property
    def best(self) -> Plan:
        """The plan of the first rank."""
        return self.plan_of(self.entries[0])

    def plan_of(self, entry: Entry) -> Plan:
        """The plan of an entry at its best batch, the one that writes most tokens a second."""
        if not entry.curve:
            raise InputError(f"{entry.model.name} on {entry.machine.name} {entry.reason}")
        return max(entry.curve, key=lambda each: self.value(each, "throughput"))

    def value(self, plan: Plan, name: str) -> Any:
        """What is compared of a plan: an expected quantity or a bound; None without a price."""
        return _value(plan, name, self.basis)

    def has(self, name: str) -> tuple[Entry, ...]:
        """The entries of which a quantity is known: a cost where there is a price."""
        return tuple(e for e in self.planned if self.value(e.curve[0], name) is not None)

    @property
    def paid(self) -> str:
        """What the front holds against latency: cost, or energy where no price was given."""
        return next((each for each in ("cost_per_token", "energy_per_token") if self.has(each)), "")

    @cached_property
    def front(self) -> dict[Entry, tuple[Plan, ...]]:
        """The plans of each entry to which no other is both cheaper and faster a token."""

        def place(point: tuple[Entry, Plan]) -> tuple[float, float]:
            return self.latency(point[1]), self.price(point[1])

        points = [(entry, each) for entry in self.has(self.paid) for each in entry.curve]
        found: dict[Entry, tuple[Plan, ...]] = {}
        least = math.inf
        for entry, point in sorted(points, key=place):
            if self.price(point) < least:
                least = self.price(point)
                found[entry] = (*found.get(entry, ()), point)
        return found

    def latency(self, plan: Plan) -> float:
        """Time per token in milliseconds."""
        return self.value(plan, "time_per_token").m_as("ms")

    def price(self, plan: Plan) -> float:
        """What a token costs, or takes of energy, in the unit of the table."""
        return self.value(plan, self.paid).m_as(RANGES[self.paid][1])

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        from calc.planning.comparing import report

        return tuple(report.assumptions(self))

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """Prices at which ranks change, what twice the devices do, and what would fit."""
        from calc.planning.comparing import report

        return tuple(report.changes(self))

    def rows(self) -> list[dict[str, Any]]:
        """An entry each, by its rank, with what its plan says, or the reason for none."""
        from calc.planning.comparing import report

        return report.rows(self)

    def draw(self) -> Figure:
        """The curve of each entry over its batches, and the front of all."""
        from calc.planning.comparing import drawing

        return drawing.draw(self)

    def table(self) -> str:
        """The ranks as lines of text, and below them the bounds."""
        from calc.planning.comparing import report

        title, *tables = report.tables(self)
        return "\n".join([title, *(line for rows in tables for line in ("", *columns(rows)))])

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from calc.planning.comparing import report

        title, *tables = report.tables(self)
        return "".join(html_table([title], rows) for rows in tables)

    def __repr__(self) -> str:
        return f"<{len(self.entries)} compared, {len(self.planned)} of them planned>"


def compare(
    models: Transformer | str | Iterable[Transformer | str],
    machines: Machine | Accelerator | Path | str | Iterable[Machine | Accelerator | Path | str],
    *,
    prompt: Annotated[QuantityLike, "", AT_LEAST_ONE],
    generated: Annotated[QuantityLike, "", AT_LEAST_ONE],
    ttft: Annotated[QuantityLike | None, "s"] = None,
    tpot: Annotated[QuantityLike | None, "s"] = None,
    price: QuantityLike | Mapping[str, QuantityLike] | None = None,
    by: str | None = None,
    weights: Annotated[QuantityLike | None, "byte"] = None,
    kv: Annotated[QuantityLike, "byte"] = "bf16",
    dtype: str | None = None,
    context: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    software: str | None = None,
) -> Comparison:
    """Models on machines, each on the fewest devices that serve it, at its best batch, ranked.

    - `prompt`: tokens that each sequence reads
    - `generated`: tokens that each sequence writes
    - `ttft`: the longest time to the first token, "500 ms"; no limit where it is left out
    - `tpot`: the longest time per token, "20 ms"; no limit where it is left out
    - `price`: of a device, "3 USD/hour", or of that of each machine by its key; without it, no cost
    - `by`: what ranks: cost, energy, tpot, ttft or throughput; cost where it is left out and a
      price is given, or else energy
    - `weights`: format of the weights, or the size of one: "int8", "4.5 bit", 8 (bit); "released"
      where it is left out and the data say in what, or else bf16
    - `kv`: format of keys and values, or the size of one
    - `dtype`: what products are computed in; where it is left out and the device has it, what the
      released weights are made for, or bf16
    - `context`: the most tokens that a model reads, where that is not the published number
    - `software`: whose own time the expectation counts: "vllm"; none where it is left out

    >>> found = compare("llama-3-70b", ["dgx-h100", "dgx-h200"], prompt=1000, generated=200,
    ...                 tpot="40 ms", price={"dgx-h100": "2 USD/hour", "dgx-h200": "3 USD/hour"})
    >>> print(found.best.machine.key, found.best.devices, found.best.batch)
    dgx-h100 2 78
    """
    asked = [known_models.transformer(each) for each in _several(models)]
    places = [known_machines.of(each) for each in _several(machines)]
    prices = _prices(price, places)
    limits = {
        name: amount("s", name, given, "20 ms")
        for name, given in (("ttft", ttft), ("tpot", tpot))
        if given is not None
    }
    if by is not None:
        one_of("compare(): by", by, BY)
    for name, length in (("prompt", prompt), ("generated", generated)):
        if quantity(length).ndim:
            raise InputError(f"compare(): {name} is one length; got {abbreviated(length)}")
    groups: list[list[Plan] | Entry] = []
    refused: list[InputError] = []
    for model in asked:
        for place, paid in zip(places, prices, strict=True):
            try:
                start = plan(
                    model,
                    place,
                    batch=1,
                    devices=1,
                    prompt=prompt,
                    generated=generated,
                    weights=weights,
                    kv=kv,
                    dtype=dtype,
                    price=paid,
                    context=context,
                    software=software,
                )
                groups.append(_fitting(start))
            except InputError as error:
                refused.append(error)
                groups.append(Entry(model, place, reason=f"is not planned: {error}"))
    if len(refused) == len(groups):
        raise refused[-1]
    basis = EXPECTED
    try:
        entries = _entries(groups, limits, basis)
    except NotMeasured:
        basis = UPPER
        entries = _entries(groups, limits, basis)
    by = by or ("cost" if any(each is not None for each in prices) else "energy")
    found = Comparison(entries, by, basis, limits)
    return replace(found, entries=tuple(sorted(found.entries, key=lambda e: _rank(found, e))))


def _several(given: Any) -> list[Any]:
    if isinstance(given, str | Path | Transformer | Machine | Accelerator):
        given = [given]
    held = as_list("compare(): what is compared", given)
    if not held:
        raise InputError("compare() needs a model and a machine at least; got an empty list")
    return held


def _prices(given: Any, places: list[Machine]) -> list[Any]:
    """A price for each machine: one for all, or those that are named by their machines."""
    if not isinstance(given, Mapping):
        return [given] * len(places)
    by_key = {known_machines.of(name).key: price for name, price in given.items()}
    compared = [each.key for each in places]
    for key in by_key:
        if key not in compared:
            raise InputError(
                f"price has one of {key}, which is not compared; compared are {', '.join(compared)}"
            )
    return [by_key.get(key) for key in compared]


def _value(plan: Plan, name: str, basis: str) -> Any:
    if basis == EXPECTED:
        return None if plan.expected is None else plan.expected.get(name)
    bounds = getattr(plan, name)
    if bounds is None:
        return None
    return bounds.lower if name == "throughput" else bounds.upper


def _fitting(start: Plan) -> list[Plan] | Entry:
    """A sequence on each number of devices that holds it, or by how much none does."""
    sizes = [with_devices(start, count) for count in linked_counts(start)]
    if fitting := [each for each in sizes if each.fits]:
        return fitting
    ways = [each for each in advice.ways_to_fit(start) if advice.ONCE_LINKED not in each]
    return Entry(start.model, start.machine, reason=_lack(sizes[-1]), ways=tuple(ways))


def _entries(
    groups: list[list[Plan] | Entry], limits: Mapping[str, Quantity], basis: str
) -> tuple[Entry, ...]:
    """An entry for each group of plans, unless one has no value of that basis."""
    for group in groups:
        if isinstance(group, list):
            _known(group[0], "throughput", basis)
    return tuple(
        group if isinstance(group, Entry) else _entry(group, limits, basis) for group in groups
    )


def _entry(fitting: list[Plan], limits: Mapping[str, Quantity], basis: str) -> Entry:
    """A model on the fewest devices on which it keeps the limits, over its batches."""
    entry = Entry(fitting[0].model, fitting[0].machine)

    def keeps(plan: Plan) -> bool:
        return all(_known(plan, BY[name], basis) <= limit for name, limit in limits.items())

    first = next(filter(keeps, fitting), None)
    if first is None:
        return replace(entry, reason=_unkept(fitting, limits, basis))
    curve = tuple(_curve(first, keeps))
    for each in curve:
        _known(each, "throughput", basis)
    return replace(entry, curve=curve)


def _known(plan: Plan, name: str, basis: str) -> Quantity:
    """A time or a rate; where nothing is expected of it, a refusal that names what is missing."""
    value = _value(plan, name, basis)
    if value is None:
        raise NotMeasured(plan.not_expected or "a pass is not expected")
    return value


def _curve(first: Plan, keeps: Callable[[Plan], bool]) -> Iterator[Plan]:
    """Plans at batches that double, up to the largest that fits and keeps the limits."""
    most = int(first.largest_batch.magnitude)
    batches = sorted({*(2**power for power in range(most.bit_length())), most})
    yield first
    for few, many in pairwise(batches):
        kept, broken = few, many
        found = advice.with_batch(first, many)
        if keeps(found):
            yield found
            continue
        while broken - kept > 1:
            middle = (kept + broken) // 2
            tried = advice.with_batch(first, middle)
            if keeps(tried):
                kept, found = middle, tried
            else:
                broken = middle
        if kept > few:
            yield found
        return


def _lack(plan: Plan) -> str:
    """By how much a model does not fit on the most devices that the machine's links join."""
    room = plan.device.memory_capacity
    lacking = (plan.memory - room) * plan.devices
    return (
        f"does not fit: {memory_text(lacking, room)} too little on {devices(plan)} with {room}"
        f"{' each' if plan.devices > 1 else ''}"
    )


def _unkept(fitting: list[Plan], limits: Mapping[str, Quantity], basis: str) -> str:
    """Which limit no number of devices keeps, and the best that can be had."""
    told = []
    for name, limit in limits.items():
        times = [(_known(each, BY[name], basis).m_as("ms"), each) for each in fitting]
        least, where = min(times, key=lambda each: each[0])
        if least > limit.m_as("ms"):
            told.append(f"{name} is {quantity(least, 'ms')} at least, on {devices(where)}")
    both = " and ".join(f"{name} of {limit}" for name, limit in limits.items())
    return f"cannot keep {both}: {', and '.join(told) or 'each needs other devices'}"


def devices(plan: Plan) -> str:
    """How many there are, in words."""
    return "1 device" if plan.devices == 1 else f"{plan.devices} devices"


def _rank(found: Comparison, entry: Entry) -> tuple[float, ...]:
    """First what was asked for; entries without it go by cost, energy and time per token."""
    if not entry.curve:
        return (1.0,)
    plan, keys = found.plan_of(entry), []
    for name in (BY[found.by], "cost_per_token", "energy_per_token", "time_per_token"):
        value = found.value(plan, name)
        size = math.inf if value is None else value.m_as(RANGES[name][1])
        keys.append(-size if name == "throughput" else size)
    return (0.0, *keys)
