"""Machines, or models, side by side: each on its fewest devices, at its best batch, and ranked.

`calc.compare` plans every pair as `calc.plan` does, and keeps limits by what is expected of each.
Ranks go by what is expected of all, or else by the upper bounds of all: a bound is never held
against an expectation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from calc.catalog import machines as known_machines, models as known_models
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import as_list, counted, one_of
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning import advice
from calc.planning.choice import linked_counts, with_tensor
from calc.planning.comparing.answer import BY, EXPECTED, UPPER, Comparison, Entry, known, value_of
from calc.planning.serving import Plan, plan
from calc.planning.setup import devices_text, memory_text, time_limit


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
    pue: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    grid: QuantityLike | None = None,
) -> Comparison:
    """Models on machines, each on the fewest devices that serve it, at its best batch, ranked.

    - `prompt`: tokens that each sequence reads
    - `generated`: tokens that each sequence writes
    - `ttft`: the longest time to the first token, "500 ms"; no limit where it is left out
    - `tpot`: the longest time per token, "20 ms" or "50 token/s"; no limit where it is left out
    - `price`: of a device, "3 USD/hour", or of that of each machine by its key; without it, no cost
    - `by`: what ranks: cost, energy, tpot, ttft or throughput; cost where it is left out and a
      price is given, or else energy
    - `weights`: format of the weights, or the size of one: "int8", "4.5 bit", 8 (bit); "released"
      where it is left out and the data say in what, or else bf16
    - `kv`: format of keys and values, or the size of one
    - `dtype`: what products are computed in; where it is left out and the device has it, what the
      released weights are made for, or bf16
    - `context`: the most tokens that a model reads, where that is not the published number
    - `software`: what serves, "sglang" or "vllm 0.19"; where it is left out, the newest vLLM that
      was measured on the device (on a Mac llama.cpp); "none" leaves out a program's own time
    - `pue`: energy of the building over that of its machines, 1.2; that of the machines alone where
      it is left out
    - `grid`: whose electricity it takes, "france", or what that emits, "57 g/kWh"

    >>> comparison = compare("llama-3-70b", ["dgx-h100", "dgx-h200"], prompt=1000, generated=200,
    ...                      price={"dgx-h100": "2 USD/hour", "dgx-h200": "3 USD/hour"},
    ...                      tpot="40 ms")
    >>> best = comparison.best
    >>> print(best.machine.key, best.devices, best.batch)
    dgx-h100 2 78
    """
    given = dict(locals())
    shapes = [known_models.transformer(model) for model in _several(models)]
    places = [known_machines.of(machine) for machine in _several(machines)]
    prices = prices_of(price, places)
    limits = {
        name: time_limit(name, longest, "20 ms")
        for name, longest in (("ttft", ttft), ("tpot", tpot))
        if longest is not None
    }
    if by is not None:
        one_of("compare(): by", by, BY)
    for name, length in (("prompt", prompt), ("generated", generated)):
        if quantity(counted(length)).ndim:
            raise InputError(f"compare(): {name} is one length; got {abbreviated(length)}")
    same = ("prompt", "generated", "weights", "kv", "dtype", "context", "software", "pue", "grid")
    options = {name: given[name] for name in same}
    groups: list[list[Plan] | Entry] = []
    refused: list[InputError] = []
    for model, (place, paid) in product(shapes, zip(places, prices, strict=True)):
        try:
            groups.append(_fitting(plan(model, place, devices=1, price=paid, **options)))
        except InputError as error:
            refused.append(error)
            groups.append(Entry(model, place, reason=f"is not planned: {error}"))
    if len(refused) == len(groups):
        raise refused[-1]
    entries = tuple(
        group if isinstance(group, Entry) else _entry(group, limits) for group in groups
    )
    points = [point for entry in entries for point in entry.curve]
    of_all = all(value_of(point, "throughput", EXPECTED) is not None for point in points)
    basis = EXPECTED if of_all else UPPER
    by = by or ("cost" if any(paid is not None for paid in prices) else "energy")
    unranked = Comparison(
        entries, by, basis, limits, given | {"models": shapes, "machines": places}
    )
    return replace(unranked, entries=tuple(sorted(entries, key=unranked.rank)))


def _several(given: Any) -> list[Any]:
    if isinstance(given, str | Path | Transformer | Machine | Accelerator):
        given = [given]
    compared = as_list("compare(): what is compared", given)
    if not compared:
        raise InputError("compare() needs a model and a machine at least; got an empty list")
    return compared


def prices_of(
    given: QuantityLike | Mapping[str, QuantityLike] | None, places: list[Machine]
) -> list[QuantityLike | None]:
    """A price for each machine: one for all, or those that are named by their machines."""
    if not isinstance(given, Mapping):
        return [given] * len(places)
    by_key = {known_machines.of(name).key: price for name, price in given.items()}
    compared = [place.key for place in places]
    for key in by_key:
        if key not in compared:
            raise InputError(
                f"price has one of {key}, which is not compared; compared are {', '.join(compared)}"
            )
    return [by_key.get(key) for key in compared]


def _fitting(start: Plan) -> list[Plan] | Entry:
    """A sequence on each number of devices that holds it, or by how much none does."""
    sizes = [with_tensor(start, count) for count in linked_counts(start)]
    if fitting := [size for size in sizes if size.fits]:
        return fitting
    ways = [way for way in advice.ways_to_fit(start) if advice.ONCE_LINKED not in way]
    return Entry(start.model, start.machine, reason=_lack(sizes[-1]), ways=tuple(ways))


def _entry(fitting: list[Plan], limits: Mapping[str, Quantity]) -> Entry:
    """A model on the fewest devices on which it keeps the limits, over its batches."""
    entry = Entry(fitting[0].model, fitting[0].machine)

    def spent(plan: Plan) -> float:
        """The time that is nearest to its limit, over it: up to 1 all are kept."""
        shares = [(known(plan, BY[name]) / limit).m_as("") for name, limit in limits.items()]
        return max(shares, default=0.0)

    def keeps(plan: Plan) -> bool:
        return spent(plan) <= 1

    first = next(filter(keeps, fitting), None)
    if first is None:
        return replace(entry, reason=_unkept(fitting, limits))
    return replace(entry, curve=tuple(_curve(first, spent)))


def _curve(first: Plan, spent: Callable[[Plan], float]) -> Iterator[Plan]:
    """Plans at batches that double, up to the largest that fits and keeps the limits."""
    most = int(first.largest_batch.magnitude)
    batches = sorted({*(2**power for power in range(most.bit_length())), most})
    yield first
    kept, below = first, spent(first)
    for many in batches[1:]:
        larger = advice.with_batch(first, many)
        if (above := spent(larger)) <= 1:
            kept, below = larger, above
            yield larger
            continue
        few, last = (int(plan.batch.magnitude) for plan in (kept, larger))
        best, steps = kept, 0
        while last - few > 1:
            # Times grow nearly in proportion to the batch, so that a line through both ends meets
            # the limit close to where they do; where they do not, each third step halves.
            steps += 1
            share = 0.5 if steps % 3 == 0 else (1 - below) / (above - below)
            middle = min(max(few + round((last - few) * share), few + 1), last - 1)
            tried = advice.with_batch(first, middle)
            if (now := spent(tried)) <= 1:
                few, below, best = middle, now, tried
            else:
                last, above = middle, now
        if best is not kept:
            yield best
        return


def _lack(plan: Plan) -> str:
    """By how much a model does not fit on the most devices that the machine's links join."""
    room = plan.device.memory_capacity
    lacking = (plan.memory - room) * plan.devices
    return (
        f"does not fit: {memory_text(lacking, room)} too little on {devices_text(plan.devices)}"
        f" with {room}{' each' if plan.devices > 1 else ''}"
    )


def _unkept(fitting: list[Plan], limits: Mapping[str, Quantity]) -> str:
    """Which limit no number of devices keeps, and the best that can be had."""
    reasons = []
    for name, limit in limits.items():
        times = {size.devices: known(size, BY[name]).m_as("ms") for size in fitting}
        devices = min(times, key=times.__getitem__)
        if times[devices] > limit.m_as("ms"):
            least = quantity(times[devices], "ms")
            reasons.append(f"{name} is {least} at least, on {devices_text(devices)}")
    both = " and ".join(f"{name} of {limit}" for name, limit in limits.items())
    return f"cannot keep {both}: {', and '.join(reasons) or 'each needs other devices'}"
