"""Machines, or models, side by side: each in its best layout, at its best batch, and ranked.

`calc.compare` plans every pair as `calc.plan` does, and keeps limits by what is expected of each.
Ranks go by what is expected of all, or else by the upper bounds of all: a bound is never held
against an expectation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from calc.catalog import (
    machines as known_machines,
    models as known_models,
    software as known_programs,
)
from calc.catalog.asking import understood
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.core.arguments import as_list, counted, whole_number, whole_numbers
from calc.core.errors import InputError, abbreviated, marked
from calc.core.law import AT_LEAST_ONE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning import advice, choice
from calc.planning.comparing.comparison import Comparison, Entry
from calc.planning.serving_plan import Plan, plan
from calc.planning.setup import devices_text, layout_text, memory_text, time_limit


@understood
def compare(
    models: Transformer | str | Iterable[Transformer | str],
    machines: Machine | Accelerator | Path | str | Iterable[Machine | Accelerator | Path | str],
    *,
    prompt: Annotated[QuantityLike, "", AT_LEAST_ONE],
    generated: Annotated[QuantityLike, "", AT_LEAST_ONE],
    users: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    devices: QuantityLike | Mapping[str, QuantityLike] | None = None,
    tensor: int | None = None,
    copies: int | None = None,
    stages: int | None = None,
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
    """Models on machines, each in the layout and at the batch that are best for it, ranked.

    Parameters
    ----------
    models
        models that are served, or their names; one or a list of them
    machines
        machines or devices, or their names; one or a list of them
    prompt
        tokens that each sequence reads
    generated
        tokens that each sequence writes
    users
        clients that ask again as soon as an answer is whole, in place of the best batch that is
        read at once
    devices
        how many there are of each machine, or of each by its key, as in dgx-h100=16; as many as are
        best where it is left out
    tensor
        devices that share each matrix (TP); the best where it is left out
    copies
        of the model, or of its attention (DP) where its experts are shared out; one, or what makes
        so many `devices`, where it is left out
    stages
        groups of a copy's devices that share out its layers (PP); the best where it is left out:
        several beyond a domain, and over links without a switch
    ttft
        the longest time to the first token, "500 ms"; no limit where it is left out
    tpot
        the longest time per token, "20 ms" or "50 token/s"; no limit where it is left out
    price
        as in `calc.Prices`
    by
        what ranks, and by what the layout and the batch of each are chosen: cost, energy, tpot,
        ttft or throughput; cost where it is left out and a price is given, or else energy
    weights
        as in `calc.Server`
    kv
        as in `calc.Server`
    dtype
        as in `calc.Server`
    context
        as in `calc.Server`
    software
        as in `calc.Server`; or several side by side, "vllm 0.25,vllm 0.26"
    pue
        energy of the building over that of its machines, 1.2; that of the machines alone where it
        is left out
    grid
        whose electricity it takes, "france", or what that emits, "57 g/kWh"

    Examples
    --------
    >>> comparison = compare("llama-3-70b", ["dgx-h100", "dgx-h200"], prompt=1000, generated=200,
    ...                      price={"dgx-h100": "2 USD/hour", "dgx-h200": "3 USD/hour"},
    ...                      tpot="40 ms")
    >>> best = comparison.best
    >>> print(best.machine.key, best.devices, best.batch)
    dgx-h100 4 378
    """
    single = {"prompt": prompt, "generated": generated, "users": users}
    options: dict[str, Any] = single | {"pue": pue, "grid": grid, "weights": weights, "kv": kv}
    options |= {"dtype": dtype, "context": context}
    is_text = isinstance(software, str)
    written = [part.strip() for part in str(software).split(",")] if is_text else [software]
    cut = {"tensor": tensor, "copies": copies, "stages": stages}
    shapes = [known_models.transformer(model) for model in _several(models)]
    named, said = _with_counts(_several(machines))
    places = [known_machines.of(machine) for machine in named]
    if said and devices is not None:
        raise InputError(
            f"the machines say how many devices there are, and {marked('devices')} is given beside"
            " them: leave one out"
        )
    devices = said if devices is None else devices
    prices, counts = prices_of(price, places), prices_of(devices, places, "devices")
    limits = {
        name: time_limit(name, longest, "20 ms")
        for name, longest in (("ttft", ttft), ("tpot", tpot))
        if longest is not None
    }
    if by is not None:
        choice.rule("compare", by, prices)
    by = by or ("cost" if any(paid is not None for paid in prices) else "energy")
    for name, number in (*single.items(), *(("devices", count) for count in counts)):
        if number is not None and quantity(counted(number)).ndim:
            raise InputError(f"compare(): {name} is one number; got {abbreviated(number)}")
    shared = [
        None if count is None else whole_number(f"compare(): {name}", count)
        for name, count in cut.items()
    ]
    entries: list[Entry] = []
    refused: list[InputError] = []
    hosts = zip(places, prices, counts, strict=True)
    for model, (host, paid, count), program in product(shapes, hosts, written):
        title = known_programs.meant(
            program, host.device.key, host.device.measured_as, host.device.name
        ).title()
        # Where one program serves all, what a machine usually has is no difference to be told.
        title = title if len(written) > 1 else ""
        try:
            start = plan(
                model, host, tensor=1, stages=stages, price=paid, software=program, **options
            )
            devices_of_it = None
            if count is not None:
                devices_of_it = int(
                    whole_numbers("compare(): devices", quantity(counted(count)).m_as(""))
                )
            entries.append(
                replace(
                    _entry(start, choice.candidates(start, devices_of_it, *shared), by, limits),
                    software=title,
                )
            )
        except InputError as error:
            refused.append(error)
            reason = f"is not planned: {error}"
            entries.append(Entry(model, host, reason=reason, software=title))
    if len(refused) == len(entries):
        raise refused[-1]
    points = [point for entry in entries for point in entry.curve]
    rates = [choice.value_of(point, "throughput", choice.EXPECTED) for point in points]
    basis = choice.UPPER if any(rate is None for rate in rates) else choice.EXPECTED
    asked = options | {
        "software": software,
        "models": shapes,
        "machines": places,
        "devices": devices,
        **cut,
    }
    asked |= {"ttft": ttft, "tpot": tpot, "price": price, "by": by}
    unranked = Comparison(tuple(entries), by, basis, limits, asked)
    return replace(unranked, entries=tuple(sorted(entries, key=unranked.rank))).settled()


def _several(value: Any) -> list[Any]:
    if isinstance(value, str | Path | Transformer | Machine | Accelerator):
        value = [value]
    compared = as_list("compare(): what is compared", value)
    if not compared:
        raise InputError("compare() needs a model and a machine at least; got an empty list")
    return compared


def _with_counts(entries: list[Any]) -> tuple[list[Any], dict[str, QuantityLike] | None]:
    """Machines without the numbers of devices that their names say, as in 8xh100, and these."""
    pairs = [
        known_machines.counted(each) if isinstance(each, str) else (each, None) for each in entries
    ]
    counts: dict[str, QuantityLike] = {name: count for name, count in pairs if count is not None}
    return [name for name, _ in pairs], counts or None


def prices_of(
    asked: QuantityLike | Mapping[str, QuantityLike] | None,
    places: list[Machine],
    what: str = "price",
) -> list[QuantityLike | None]:
    """A price, or another number, of each machine: one for all, or those named by machines."""
    if not isinstance(asked, Mapping):
        return [asked] * len(places)
    by_key = {known_machines.of(name).key: price for name, price in asked.items()}
    compared = [machine.key for machine in places]
    for key in by_key:
        if key not in compared:
            raise InputError(
                f"{what} has one of {key}, which is not compared; compared are"
                f" {', '.join(compared)}"
            )
    return [by_key.get(key) for key in compared]


def _entry(start: Plan, sizes: list[Plan], by: str, limits: Mapping[str, Quantity]) -> Entry:
    """A model on a machine in the way that is chosen of several, over the batches it may have."""
    entry = Entry(start.model, start.machine)
    fitting = [size for size in sizes if size.fits]
    if not fitting:
        ways = [way for way in advice.ways_to_fit(start) if advice.ONCE_LINKED not in way]
        nearest = min(sizes, key=lambda size: size.memory - size.room)
        [memory] = nearest.capacity.memories
        return replace(entry, reason=_lack(nearest), doubt=memory.doubt, ways=tuple(ways))
    best = choice.choose(fitting, by, limits)
    if best is None:
        return replace(entry, reason=_unkept(fitting, limits))
    if best.users is not None:
        return replace(entry, curve=(best,))
    last = choice.largest_kept(best, choice.most_at_once(best), limits)
    assert last is not None  # since the best keeps them
    copies, most = (int(count.magnitude) for count in (best.copies, last.batch))
    doubled = {copies * 2**power for power in range((most // copies).bit_length())}
    others = doubled - {best.batch.magnitude, most}
    curve = {count: choice.with_batch(best, count) for count in others}
    curve |= {most: last, int(best.batch.magnitude): best}
    return replace(entry, curve=tuple(curve[count] for count in sorted(curve)))


def _lack(plan: Plan) -> str:
    """Return by how much a model does not fit in the layout that lacks least."""
    lacking, room = (
        memory_text(amount, plan.device.memory_capacity)
        for amount in (plan.memory - plan.room, plan.room)
    )
    cut = f"each of {devices_text(plan.devices)} as {layout_text(plan.layout)}"
    return (
        f"does not fit: {lacking} too little on {cut if plan.devices > 1 else '1 device'}, where"
        f" {plan.software.name} may use {room}"
    )


def _unkept(fitting: list[Plan], limits: Mapping[str, Quantity]) -> str:
    """Return which limit no number of devices keeps, and the best that can be had."""
    reasons = []
    for name, limit in limits.items():
        times = [choice.known(size, choice.QUANTITIES[name]).to("ms") for size in fitting]
        least = min(times)
        if least > limit:
            devices = fitting[times.index(least)].devices
            reasons.append(f"{name} is {least} at least, on {devices_text(devices)}")
    both = " and ".join(f"{name} of {limit}" for name, limit in limits.items())
    return f"cannot keep {both}: {', and '.join(reasons) or 'each needs other devices'}"
