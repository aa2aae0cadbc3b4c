"""The author of what is not stated: which devices share a model, how, for how many sequences.

Candidates are the groups of devices that a model and a machine's links allow, and copies of them.
One rule says which is taken: the fewest devices that hold a batch, or the best by cost, energy,
time or throughput, at the batch that is best by the same within the limits, what the memory holds
and what the engine runs at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from calc.catalog import engines
from calc.core.arguments import counted, one_of, whole_number
from calc.core.arrays import numpy
from calc.core.elementwise import divisors, largest, smallest
from calc.core.errors import InputError, marked, marked_all
from calc.core.units import Quantity, QuantityLike, quantity
from calc.planning.capacity import joinable_slices, most_sequences, recut
from calc.planning.setup import S, Setup, layout_text
from calc.steps.job import Layout

if TYPE_CHECKING:
    from calc.planning.estimate import Estimate

E = TypeVar("E", bound="Estimate")


RULES = {
    "cost": "cost",
    "energy": "energy",
    "tpot": "time per token",
    "ttft": "time to the first token",
    "throughput": "throughput",
}
"""What a choice may go by beside the fewest devices, and what that is called."""
QUANTITIES = {
    "cost": "cost_per_token",
    "energy": "energy_per_token",
    "tpot": "time_per_token",
    "ttft": "time_to_first_token",
    "throughput": "throughput",
}
"""The field of a plan that each of them is."""
CANDIDATES = (
    "Candidates cut matrices and share out experts in every way that model and links allow, and"
    " layers to stages (PP) over PCIe and beyond a domain; other stages are as they are asked for."
)
OR_LINK = ', or give its bandwidth each way, link (--link "32 GB/s")'
EXPECTED, UPPER = "what is expected", "the bounds without overlap"


def rule(who: str, by: str, prices: Sequence[object]) -> str:
    """Return a rule by its name, refused where it goes by cost and no price is given.

    >>> rule("plan", "energy", [None])
    'energy'
    """
    one_of(f"{who}(): by", by, RULES)
    if by == "cost" and all(price is None for price in prices):
        raise InputError(
            f"{marked('by', by)} goes by what devices cost, of which nothing is known: it needs"
            f" {marked('price')}"
        )
    return by


def groups(setup: Setup) -> Iterator[Layout]:
    """Yield every layout of one group of devices that the model and the machine's links allow.

    Matrices are cut (TP); a mixture's experts whole as well (EP), by slices that have all of each
    token's attention, or by copies that have tokens of their own (DP). Stages (PP) of such groups
    share out the layers: as many as are said, or where slices would send their sums over links
    without a switch, or out of the domain, fewer slices.
    """
    linked = joinable_slices(setup)
    sliced = (replace(layout, pipeline=setup.stages) for layout in _in_slices(setup, linked))
    yield from (layout for layout in sliced if layout.legal(setup.model))
    if setup.stages == 1:
        yield from _in_stages(setup, linked)


def _in_slices(setup: Setup, counts: Sequence[int]) -> Iterator[Layout]:
    """Yield the layouts of so many devices that have all layers."""
    yield from (Layout(tensor=count) for count in counts)
    if setup.model.experts is None or setup.link is not None:
        return
    for count in counts[1:]:
        yield Layout(tensor=count, experts=count)
        yield Layout(data=count, experts=count)


def _in_stages(setup: Setup, linked: Sequence[int]) -> Iterator[Layout]:
    """Yield those of as many devices whose stages have fewer slices than the links could carry."""
    host = setup.machine.hosted
    near = [count for count in linked if count <= host.domain]
    for count in sorted({*divisors(host.domain), *linked}):
        for slices in near if host.fabric == "pcie" else near[-1:]:
            if count > slices and count % slices == 0:
                layout = Layout(tensor=slices, pipeline=count // slices)
                if layout.pipeline <= setup.model.layers and layout.legal(setup.model):
                    yield layout


def on_layout(setup: S, layout: Layout, copies: int = 1) -> S:
    """Return the setup cut like this; whole groups are copied where nothing else is."""
    data, tensor, shared = int(layout.data) * copies, int(layout.tensor), int(layout.experts)
    counts = quantity(tensor, ""), quantity(data, "")
    return recut(setup, *counts, shared, int(layout.pipeline))


def cut_otherwise(setup: S) -> Iterator[S]:
    """Yield the setup on the same devices, shared in other ways: copies of smaller groups."""
    for other in ways_on(replace(setup, stages=1), int(setup.devices.magnitude)):
        enough = setup.users is not None or other.copies <= setup.batch
        if enough and other.layout != setup.layout:
            yield other


def ways_on(setup: S, devices: int) -> Iterator[S]:
    """Yield the setup on so many devices, as copies of every group that divides them."""
    for layout in groups(setup):
        copies, left = divmod(devices, int(layout.devices))
        if not left and (copies == 1 or layout.experts == 1):
            yield on_layout(setup, layout, copies)


def candidates(
    setup: S,
    devices: int | None = None,
    tensor: int | None = None,
    copies: int | None = None,
    stages: int | None = None,
) -> list[S]:
    """Return the setup in every way that has as many devices and of each degree as are said.

    A group is taken once where neither all devices nor copies are said. Those with fewest devices
    come first.
    """
    if devices is None:
        counts = dict.fromkeys((1, copies or 1))
        sizes = [on_layout(setup, layout, count) for count in counts for layout in groups(setup)]
    else:
        sizes = list(ways_on(setup, devices))
    fitting = [
        size
        for size in sizes
        if tensor in (None, size.tensor.magnitude)
        and copies in (None, size.copies.magnitude)
        and stages in (None, size.stages)
    ]
    if not fitting:
        asked = {"devices": devices, "tensor": tensor, "copies": copies, "stages": stages}
        layouts = ", ".join(map(layout_text, groups(setup)))
        raise InputError(
            f"{setup.machine.name} and {setup.model.name} allow no layout with"
            f" {marked_all(asked)}; groups of"
            f" devices are {layouts}, and copies of them"
        )
    return sorted(fitting, key=lambda size: size.devices.magnitude)


def choose(
    sizes: Sequence[E], by: str, limits: Mapping[str, Quantity], batch_is_said: bool = False
) -> E | None:
    """Return the best of several deployments, each at its best batch; None where none keeps limits.

    Groups beyond a domain of the machine are taken where none within it keeps the limits, and one
    of which nothing is expected where nothing is of any.
    """
    for near in (True, False):
        tried = [
            best
            for size in sizes
            if (size.one_copy.devices.magnitude <= size.machine.hosted.domain) is near
            and (best := at_best_batch(size, by, limits, batch_is_said)) is not None
        ]
        if expected := [size for size in tried if size.expected is not None] or tried:
            return replace(min(expected, key=lambda size: place(size, by)), chosen_by=by)
    return None


def place(plan: Estimate, by: str, basis: str = "") -> float:
    """Return where a plan of one point stands by a rule among those of its machine, least first.

    Cost goes with the time of devices for a token, priced or not, and so does energy where no power
    is published.
    """
    basis = basis or (UPPER if plan.expected is None else EXPECTED)
    if by in ("tpot", "ttft"):
        time = value_of(plan, QUANTITIES[by], basis)
        return math.inf if time is None else float(time.m_as("s"))
    if by == "energy" and (taken := value_of(plan, QUANTITIES[by], basis)) is not None:
        return float(taken.m_as("J/token"))
    rate = value_of(plan, "throughput", basis)
    if rate is None:
        return math.inf
    devices = 1 if by == "throughput" else plan.devices.magnitude
    return float(devices / rate.m_as("token/s"))


def at_best_batch(
    size: E, by: str, limits: Mapping[str, Quantity], batch_is_said: bool = False
) -> E | None:
    """Return a deployment at the batch that is best by a rule within limits; None where none is.

    Users are as many as they are, as is a batch that is said. Times are least at a sequence of each
    copy, and rates at the largest batch, unless those of half of it are better.
    """
    if size.users is not None or batch_is_said:
        enough = size.users is not None or size.copies <= size.batch
        return size if enough and size.fits and spent(size, limits) <= 1 else None
    copies, most = int(size.copies.magnitude), most_at_once(size)
    if most < copies:
        return None
    if by in ("tpot", "ttft"):
        least = with_batch(size, copies)
        return least if spent(least, limits) <= 1 else None
    best = largest_kept(size, most, limits)
    while best is not None:
        half = with_batch(best, max(copies, best.batch.magnitude // 2 // copies * copies))
        if place(half, by) >= place(best, by):
            break
        best = half
    return best


def largest_kept(size: E, most: int, limits: Mapping[str, Quantity]) -> E | None:
    """Return a deployment at the largest batch up to one that keeps the limits; None where none is.

    Times grow nearly in proportion to the batch, so that a line through two batches meets the limit
    close to where they do; where they do not, each third step halves.
    """
    copies = int(size.copies.magnitude)
    last, above = most // copies, with_batch(size, most // copies * copies)
    if spent(above, limits) <= 1:
        return above
    few, best = 1, with_batch(size, copies)
    if spent(best, limits) > 1:
        return None
    steps = 0
    while last - few > 1:
        steps += 1
        low, high = spent(best, limits), spent(above, limits)
        share = 0.5 if steps % 3 == 0 else (1 - low) / (high - low)
        middle = min(max(few + round((last - few) * share), few + 1), last - 1)
        tried = with_batch(size, middle * copies)
        if spent(tried, limits) <= 1:
            few, best = middle, tried
        else:
            last, above = middle, tried
    return best


def most_at_once(size: Setup) -> int:
    """Return the largest batch that memory holds and the engine of each copy runs at once."""
    held = int(most_sequences(size).magnitude)
    _, running = engines.largest_step(size.software.key, size.device)
    return int(min(held, running * int(size.copies.magnitude)))


def spent(plan: Estimate, limits: Mapping[str, Quantity]) -> float:
    """Return the time that is nearest to its limit, over it: up to 1 all are kept."""
    shares = [(known(plan, QUANTITIES[name]) / limit).m_as("") for name, limit in limits.items()]
    return max(shares, default=0.0)


def known(plan: Estimate, name: str) -> Quantity:
    """Return what a limit is held to: what is expected, or else the bound without overlap."""
    value = value_of(plan, name, EXPECTED)
    if value is None:
        value = value_of(plan, name, UPPER)
    assert value is not None
    return value


def value_of(plan: Estimate, name: str, basis: str) -> Quantity | None:
    """Return what is compared of a plan on a basis; None where it is not known."""
    if basis == EXPECTED:
        return plan.likely(name)
    bounds = getattr(plan, name)
    if bounds is None:
        return None
    value: Quantity = bounds.lower if name == "throughput" else bounds.upper
    return value


OF_ANY_BATCH = ("job", "capacity")


def with_batch(size: E, batch: float) -> E:
    """Return a deployment at another batch, with what was found that no batch changes."""
    other = replace(size, batch=quantity(float(batch), ""))
    computed = {name: vars(size)[name] for name in OF_ANY_BATCH if name in vars(size)}
    vars(other).update(computed)
    return other


def chosen_by(
    plan: E, by: str, said: Sequence[QuantityLike | None], experts: int | None, stages: int | None
) -> E:
    """Return a plan in the layout that is best by a rule, of all with what is said of it."""
    counts = [None if count is None else quantity(counted(count)).m_as("") for count in said]
    if any(getattr(count, "ndim", 0) for count in (*counts, plan.fits)):
        raise InputError("by chooses the layout of one point: give one number of each, not several")
    devices, *degrees = (None if count is None else int(count) for count in (*counts, stages))
    sizes = candidates(plan, devices, *degrees)
    asked = [size for size in sizes if experts in (None, size.experts)]
    best = choose(asked, by, {}, batch_is_said=True)
    if best is None:
        raise InputError(
            f"{plan.model.name} with batch {plan.batch} fits on none of"
            f" {', '.join(layout_text(size.layout) for size in asked or sizes)} of"
            f" {plan.device.name}: leave by out to"
            " be told what would fit"
        )
    return best


def cut(setup: S, experts: int | None) -> S:
    """Return the setup with whole experts on so many devices; cut as all matrices where not said.

    A copy then has as many devices, if nothing says how many it has.
    """
    if setup.users is None and largest(setup.copies) > smallest(setup.batch):
        raise InputError(
            f"each of {marked('copies', setup.copies)} needs a sequence of the batch; got"
            f" {marked('batch', setup.batch)}"
        )
    if experts is None:
        return setup
    shared = whole_number("experts", experts)
    if setup.model.experts is None:
        raise InputError(f"{setup.model.name} has no experts that {shared} devices could share out")
    if "devices" in setup.left_out:
        left = setup.left_out - {"devices"}
        stage = setup.copies if largest(setup.copies) > 1 else quantity(shared, "")
        setup = replace(setup, devices=stage * setup.stages, left_out=left)
    return replace(setup, experts=shared)


def check_devices(setup: Setup) -> None:
    """Refuse devices that the model cannot be cut for, and several of a copy without a link."""
    linked = None if setup.link is not None else setup.machine
    if linked is not None:
        linked.check_joins(largest(setup.one_copy.devices), OR_LINK)
    counts = setup.tensor.magnitude
    for count in numpy.unique(counts).tolist() if setup.tensor.ndim else [counts]:
        Layout(tensor=int(count)).check(setup.model, linked)
    setup.job.layout.check(setup.model)
