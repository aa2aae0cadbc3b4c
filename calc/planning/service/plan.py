"""`plan_service`: the fewest devices that keep a service's limits, and in which pools and layouts.

Each group of devices is tried by the closed form first: the largest rate that one copy of the model
takes within the limits says how many copies there must be. Those that promise the fewest devices
are simulated, and get copies until the simulation keeps the limits too, until no group promises
less than was found. Pools that read and pools that write are looked for each by themselves.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from calc import cost, inference, models, transformer
from calc.core.arguments import number, one_of, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.law import AT_LEAST_ONE, FRACTION
from calc.core.units import Quantity, QuantityLike, quantity
from calc.hardware import Accelerator
from calc.machines import Machine
from calc.models import Transformer
from calc.planning.capacity import device_counts, with_devices
from calc.planning.service.load import Trace, poisson, read_trace
from calc.planning.service.queue import Demand, Load, Replica
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.steps import Answers, Group, with_draft
from calc.planning.setup import A_TOKEN, Setup

POOLS = ("mixed", "disaggregated")
JOBS = ("both", "read", "write")
CHUNKS = (512, 2048, 8192)
"""Tokens of a step that are tried where none is given; the first two are Sarathi-Serve's."""
MOST_COPIES = 8
"""Times the copies of the closed form at which a simulation that keeps no limit gives up."""
RESIDENCES = 20
"""Requests of a run for each sequence of the batch, so that it is full long before the end."""
LONGEST_RUN = 20_000
ALONE = 1e-6
"""Requests a second that meet nobody."""
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Service:
    """What is asked of a service: read and checked once."""

    setup: Setup
    rate: float
    """Requests a second."""
    trace: Trace
    recorded: bool
    """Whether the trace is that of a file."""
    ttft: float
    """The limit on the time to first token, in seconds."""
    tpot: float
    """The limit on the time of each token after it."""
    percentile: float
    """Share of requests that keep each limit."""
    pools: tuple[str, ...]
    chunk: int | None
    slots: int
    hit_rate: float
    draft: Setup | None
    drafted: int
    written: float
    """Tokens that a pass writes of each sequence, on average."""
    most_devices: int | None

    @cached_property
    def demand(self) -> Demand:
        """What its requests ask for on average."""
        return Demand.of(self.trace)

    @property
    def limits(self) -> str:
        """Both limits, in words."""
        kept = f"{100 * self.percentile:g} % of requests"
        return f"TTFT {seconds(self.ttft)} and TPOT {seconds(self.tpot)} for {kept}"


@dataclass(frozen=True, eq=False)
class Pool:
    """Copies of the model that do the same."""

    service: Service
    does: str
    """One of JOBS."""
    answers: Answers
    replica: Replica
    demand: Demand
    most: float
    """Requests a second that one copy takes within the limits, by the closed form."""
    count: int
    transfer: float = 0.0
    """Seconds that the cache of a mean prompt takes to get there."""
    run: Run | None = None
    """What the simulation made of one copy and its share of the requests."""

    @property
    def group(self) -> Group:
        """Devices of a copy."""
        return self.answers.group

    @property
    def devices(self) -> int:
        """Devices of all copies."""
        return self.count * self.group.devices

    @property
    def load(self) -> Load:
        """What requests meet by the closed form."""
        service = self.service
        return self.replica.under(service.rate / self.count, self.demand, service.percentile)

    @property
    def keeps(self) -> bool:
        """Whether the simulation kept the limits that are this pool's to keep."""
        if self.run is None:
            return False
        ttft, tpot = limits_of(self.service, self.does)
        first, rest = self.run.at(self.service.percentile)
        return first <= ttft and rest <= tpot

    def __str__(self) -> str:
        one = self.count == 1
        does = "" if self.does == "both" else f" that {self.does}{'s' if one else ''}"
        return f"{self.count} {'replica' if one else 'replicas'} of {self.group}{does}"


@dataclass(frozen=True, eq=False)
class Design:
    """Pools that together serve all requests: one, or one that reads and one that writes."""

    pools: tuple[Pool, ...]

    @property
    def devices(self) -> int:
        """Devices of all pools."""
        return sum(pool.devices for pool in self.pools)

    @property
    def load(self) -> Load:
        """What requests meet by the closed form: their first token in one pool, the rest in one."""
        first, rest = self.pools[0].load, self.pools[-1].load
        busy = max(first.busy, rest.busy)
        return replace(rest, ttft=first.ttft, mean_ttft=first.mean_ttft, busy=busy)

    @property
    def most(self) -> float:
        """Requests a second that all copies take within the limits, by the closed form."""
        return min(pool.count * pool.most for pool in self.pools)

    @cached_property
    def run(self) -> Run | None:
        """What the simulation made of the requests; None where it was not asked."""
        first, rest = self.pools[0].run, self.pools[-1].run
        if first is None or rest is None or first is rest:
            return first
        return _joined(first, rest)

    @property
    def keeps(self) -> bool:
        """Whether the simulation kept both limits."""
        return all(pool.keeps for pool in self.pools)

    @property
    def simulated(self) -> tuple[float, float] | None:
        """Time to first token and of a token at the percentile, as simulated."""
        return None if self.run is None else self.run.at(self.pools[0].service.percentile)

    def __str__(self) -> str:
        return " and ".join(map(str, self.pools))


@dataclass(frozen=True, eq=False, repr=False)
class ServicePlan:
    """The pools of a service, what its requests meet, and what it costs; `print` shows it.

    `load` is by the closed form, from the times of steps that are expected; `design.run` is the
    simulation that decided. `least` and `most` are the closed form at published rates, with all
    parts of a step at once and with none.
    """

    service: Service
    design: Design
    designs: tuple[Design, ...]
    """All that were found, the one that is taken first."""
    refused: dict[str, str] = field(default_factory=dict)
    """Groups of devices that can serve no request within the limits, and why."""
    price: Quantity | None = None

    @property
    def devices(self) -> int:
        """How many there are."""
        return self.design.devices

    @property
    def load(self) -> Load:
        """What requests meet, by the closed form."""
        return self.design.load

    @property
    def ttft(self) -> Quantity:
        """Time to first token at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[0], "s")

    @property
    def tpot(self) -> Quantity:
        """Time of each token after the first at the percentile, as simulated."""
        assert self.design.simulated is not None
        return quantity(self.design.simulated[1], "s")

    @property
    def most_requests(self) -> Quantity:
        """The largest rate that these devices take within the limits, by the closed form."""
        return quantity(self.design.most, "request/s")

    @property
    def least_devices(self) -> int:
        """The fewest devices with which any program could keep the limits, at published rates."""
        return min(
            sum(_least(pool) * pool.group.devices for pool in each.pools) for each in self.designs
        )

    @property
    def throughput(self) -> Quantity:
        """Tokens that all answers together have in a second."""
        return quantity(self.service.rate * self.service.demand.answer, "token/s")

    @property
    def cost_per_token(self) -> Quantity | None:
        """Price of a written token at this rate; None where no price was given."""
        if self.price is None:
            return None
        return cost.cost_per_token(self.devices, self.price, self.throughput).to("USD/Mtoken")

    @property
    def energy_per_token(self) -> Quantity | None:
        """Energy of a written token at this rate; None where no power is published."""
        power = self.service.setup.power
        if power is None:
            return None
        return cost.energy_per_token(self.devices, power, self.throughput).to("J/token")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the numbers stand on, a sentence each."""
        from calc.planning.service import report

        return tuple(report.assumptions(self))

    @property
    def what_would_change(self) -> tuple[str, ...]:
        """What would make this another answer, a sentence each, by the closed form."""
        from calc.planning.service import report

        return tuple(report.changes(self))

    @property
    def why_not_others(self) -> tuple[str, ...]:
        """Why the other groups and pools lose, a sentence each."""
        from calc.planning.service import report

        return tuple(report.why_not_others(self))

    def rows(self) -> list[dict[str, Any]]:
        """The designs, a row each, with plain keys."""
        from calc.planning.service import report

        return report.rows(self)

    def draw(self) -> Any:
        """A figure of matplotlib: both times against the rate, by the closed form, with limits."""
        from calc.planning.service import report

        return report.draw(self)

    def table(self) -> str:
        """The plan as lines of text, with the designs below it."""
        from calc.planning.service import report

        return report.table(self)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        from calc.planning.service import report

        return report.html(self)

    def __repr__(self) -> str:
        setup = self.service.setup
        return f"<{setup.model.name} served by {self.devices} {setup.device.name}: {self.design}>"


def plan_service(
    model: Transformer | str,
    hardware: Machine | Accelerator | Path | str,
    *,
    ttft: Annotated[QuantityLike, "s"],
    tpot: Annotated[QuantityLike, "s"],
    percentile: float = 99,
    rate: Annotated[QuantityLike | None, "request/s"] = None,
    prompt: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    generated: Annotated[QuantityLike | None, "", AT_LEAST_ONE] = None,
    prompt_spread: float = 1.0,
    generated_spread: float = 1.0,
    trace: Path | str | None = None,
    pools: str | None = None,
    chunk: int | None = None,
    slots: int = 1024,
    hit_rate: Annotated[QuantityLike, "", FRACTION] = 0,
    draft: Transformer | str | None = None,
    drafted: int = 4,
    acceptance: Annotated[QuantityLike | None, "", FRACTION] = None,
    devices: int | None = None,
    weights: Annotated[QuantityLike, "byte"] = "bf16",
    kv: Annotated[QuantityLike, "byte"] = "bf16",
    dtype: str | None = None,
    price: Annotated[QuantityLike | None, "USD/s"] = None,
    software: str | None = None,
    requests: int = 3000,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> ServicePlan:
    """The fewest devices of a machine that serve requests within limits, and how they share them.

    Requests come at random, or as a trace has them. Devices within a domain of the machine are
    tried in all groups that cut the model (TP, and EP of a mixture), as replicas that read and
    write, and as two pools of which one reads prompts and sends their caches to the other.

    - `ttft`: the longest time to first token, "1 s"
    - `tpot`: the longest time of each token after it, "50 ms", the mean of an answer
    - `percentile`: of the requests that must keep each limit, in per cent
    - `rate`: requests a second; that of the trace where it is left out
    - `prompt`: tokens that a request reads, on average
    - `generated`: tokens that a request writes, on average
    - `prompt_spread`: standard deviation of the lengths of prompts over their mean
    - `generated_spread`: standard deviation of the lengths of answers over their mean
    - `trace`: a file of requests, .csv or .parquet, in place of lengths
    - `pools`: mixed or disaggregated; the better one where it is left out
    - `chunk`: tokens of a step at most; the best of a few where it is left out
    - `slots`: sequences of a batch at most
    - `hit_rate`: share of each prompt that a prefix cache holds
    - `draft`: a small model that drafts, with `acceptance`
    - `drafted`: tokens that it drafts for each pass of the model
    - `acceptance`: probability that a drafted token is accepted
    - `devices`: the most that may be taken
    - `weights`: format of the weights, or the size of one: "int8", "4.5 bit", 8 (bit)
    - `kv`: format of keys and values, or the size of one
    - `dtype`: what products are computed in; bf16 where it is left out and the device has it
    - `price`: of a device, "3 USD/hour"; without it, no cost
    - `software`: whose own time the expectation counts: "vllm"; none where it is left out
    - `requests`: requests of a simulation, or more where batches are large
    - `seed`: of what is drawn

    `on_progress` is told how many designs were simulated, and how many there will be.

    >>> found = plan_service("llama-3-8b", "h100", rate="10 request/s", prompt=1000, generated=200,
    ...                      ttft="1 s", tpot="50 ms", software="vllm", pools="mixed")
    >>> print(found.design, found.least_devices)
    1 replica of TP1 1
    """
    asked = transformer_of(model)
    share = _share("percentile", percentile)
    requested = _trace(
        trace, rate, prompt, generated, prompt_spread, generated_spread, seed, requests
    )
    hits = number("hit_rate", quantity(hit_rate).m_as(""))
    if hits > 1:
        raise InputError(f"hit_rate is a share, at most 1; got {abbreviated(hit_rate)}")
    lengths: dict[str, QuantityLike] = {
        "prompt": max(1.0, float(round(requested.prompts.mean()))),
        "generated": max(2.0, float(round(requested.answers.mean()))),
        "batch": 1,
    }
    options = weights, kv, dtype, None, price, None, software
    setup = Setup.read(asked, hardware, lengths, *options)
    requested = _within(requested, asked, trace)
    written, drafting = _draft(draft, drafted, acceptance, hardware, lengths, options)
    service = Service(
        setup=setup,
        rate=requested.rate if rate is None else _rate(rate),
        trace=requested.with_hits(hits),
        recorded=trace is not None,
        ttft=_time("ttft", ttft, "1 s"),
        tpot=_time("tpot", tpot, "50 ms"),
        percentile=share,
        pools=POOLS if pools is None else (one_of("pools", pools, POOLS),),
        chunk=None if chunk is None else whole_number("chunk", chunk, 16),
        slots=whole_number("slots", slots),
        hit_rate=hits,
        draft=drafting,
        drafted=whole_number("drafted", drafted),
        written=written,
        most_devices=None if devices is None else whole_number("devices", devices),
    )
    if not (on_progress is None or callable(on_progress)):
        raise InputError(f"on_progress must be a function; got {abbreviated(on_progress)}")
    tell = (lambda done, total: None) if on_progress is None else on_progress
    return _planned(service, setup.price, tell)


def transformer_of(model: Transformer | str) -> Transformer:
    """The model that is meant, which must write tokens."""
    asked = models.transformer(model)
    transformer.forward_flops(asked, 1)
    return asked


def _planned(service: Service, price: Quantity | None, on_progress: Progress) -> ServicePlan:
    refused: dict[str, str] = {}
    replicas = list(_replicas(service, refused))
    jobs = ["both"] if "mixed" in service.pools else []
    if "disaggregated" in service.pools and _between_pools(service.setup.machine) is not None:
        jobs += ["read", "write"]
    pools = {job: _pools(service, job, replicas, refused) for job in jobs}
    found: list[Design] = []
    fewest = math.inf
    if pools.get("both"):
        on_progress(0, len(jobs))
        found += [Design((each,)) for each in _enough(pools["both"])]
        fewest = min((each.devices for each in found if each.keeps), default=math.inf)
    if pools.get("read") and pools.get("write"):
        on_progress(1, len(jobs))
        halves = [pools["read"], pools["write"]]
        if sum(min(each.devices for each in half) for half in halves) < fewest:
            halves = [_enough(half) for half in halves]
        found.append(Design(tuple(min(half, key=_order) for half in halves)))
    if not found:
        raise InputError(_no_design(service, replicas, refused))
    on_progress(len(jobs), len(jobs))
    kept = [each for each in found if each.keeps]
    if not kept:
        raise InputError(
            f"no number of replicas keeps {service.limits} in the simulation, though the closed"
            f" form has {found[0]} do so: longer limits are needed"
        )
    best, *others = sorted(found, key=lambda each: (not each.keeps, each.devices, len(each.pools)))
    if service.most_devices is not None and best.devices > service.most_devices:
        could = service.rate * service.most_devices / best.devices
        raise InputError(
            f"{service.limits} at {quantity(service.rate, 'request/s')} take {best.devices}"
            f" devices, and devices={service.most_devices} allows no more: take as many, longer"
            f" limits, or about {quantity(could, 'request/s'):.3g}"
        )
    return ServicePlan(service, best, (best, *others), refused, price)


def _order(pool: Pool) -> tuple[bool, int]:
    """Of several the one with the fewest devices, of those that keep their limits if any does."""
    return not pool.keeps, pool.devices


def limits_of(service: Service, job: str) -> tuple[float, float]:
    """The limits that a pool with this job must keep, in seconds."""
    ttft = math.inf if job == "write" else service.ttft
    return ttft, math.inf if job == "read" else service.tpot


def _requests(service: Service, job: str) -> Trace:
    """What a pool with this job is asked for.

    The first token comes of reading. A pool that writes gets the keys and values of a prompt, and
    makes those of the first token; a request that wants no more never gets there.
    """
    import numpy

    trace = service.trace
    if job == "both":
        return trace
    if job == "read":
        return replace(trace, answers=numpy.ones_like(trace.answers))
    more = trace.answers > 1
    prompts = trace.prompts[more]
    return Trace(trace.arrivals[more], prompts + 1, trace.answers[more] - 1, prompts)


def _pools(
    service: Service, job: str, replicas: list[tuple[Answers, Replica]], refused: dict[str, str]
) -> list[Pool]:
    """A pool of each group that can serve a request within the limits, by the closed form."""
    demand, pools = Demand.of(_requests(service, job)), []
    sent = _transfer(service, replicas) if job == "write" else 0.0
    for answers, replica in replicas:
        copy = replica
        if job == "read":  # nobody waits for a token beside it
            copy = replace(replica, writes=False, chunk=max(CHUNKS[-1], replica.chunk))
        most = copy.most(demand, service.percentile, *limits_of(service, job))
        if most > ALONE:
            count = max(1, math.ceil(service.rate / most))
            pools.append(Pool(service, job, answers, copy, demand, most, count, sent))
        elif job == "both":
            refused[str(answers.group)] = _too_slow(service, replica)
    return pools


def _replicas(service: Service, refused: dict[str, str]) -> Iterator[tuple[Answers, Replica]]:
    """A copy of the model on each group of devices that holds it, with the best of the chunks."""
    setup = service.setup
    longest = int((service.trace.prompts + service.trace.answers).max() + service.written) + 1
    chunks = CHUNKS if service.chunk is None else (service.chunk,)
    checked = service.drafted + 1 if service.draft else 1
    for group in _groups(setup):
        here = with_devices(setup, group.devices)
        memory = _memory(here, service)
        if memory < longest:
            refused[str(group)] = (
                f"its memory holds {memory} tokens of cache, and a request needs {longest}"
            )
            continue
        slots = min(service.slots, memory)
        most = max(*chunks, CHUNKS[-1]) + checked * slots  # the last is that of a pool that reads
        answers = Answers(here, group, most, checked * slots)
        steps = answers.decided_by
        if service.draft is not None:
            drafting = Answers(with_devices(service.draft, group.devices), group, most, slots)
            steps = with_draft(steps, drafting.decided_by, service.drafted, service.written)
        copies = [Replica(steps, memory, chunk, slots) for chunk in chunks]
        limits = service.percentile, service.ttft, service.tpot
        yield answers, max(copies, key=lambda each: each.most(service.demand, *limits))


def _groups(setup: Setup) -> list[Group]:
    """Groups within a domain that cut the model; beyond it where none within would hold it."""
    machine = setup.machine
    counts = [each for each in device_counts(setup.model) if each <= machine.domain]
    if not machine.publishes("bandwidth"):
        counts = [1]
    groups = [Group(each) for each in counts]
    if setup.model.experts is not None:
        shared = [each for each in counts if each > 1 and setup.model.experts.magnitude % each == 0]
        groups += [Group(each, each) for each in shared]
    return groups


def _memory(setup: Setup, service: Service) -> int:
    """Tokens of cache that a group holds: of requests of the mean length, windows counted."""
    share = setup.software.memory_share
    devices = int(setup.devices.magnitude)
    room = share * setup.device.memory_capacity.m_as("byte") * devices
    tokens = 0.0
    for each in (setup, service.draft):
        if each is None:
            continue
        room -= each.model_memory.m_as("byte")
        length = each.context
        held = transformer.kv_cache(each.model, length, each.kv_size)
        held = held + transformer.state_memory(each.model)
        copies = max(1.0, devices / each.model.cache_heads)
        tokens += copies * held.m_as("byte") / float(length.magnitude)
    return max(0, math.floor(room / tokens))


def _least(pool: Pool) -> int:
    """Copies that any program needs: each part of a step alone, at its published rate."""
    service = pool.service
    limits = service.percentile, *limits_of(service, pool.does)
    fastest = min(
        replace(pool.replica, steps=steps).most(pool.demand, *limits)
        for steps in pool.answers.published.values()
    )
    return max(1, math.ceil(service.rate / fastest))


def _transfer(service: Service, replicas: list[tuple[Answers, Replica]]) -> float:
    """Seconds in which the smallest group sends or gets the cache of a mean prompt."""
    setup = service.setup
    cache = transformer.kv_cache(setup.model, service.demand.prompt, setup.kv_size)
    devices = min((answers.group.devices for answers, _ in replicas), default=1)
    return cache.m_as("byte") / (devices * (_between_pools(setup.machine) or math.inf))


def _between_pools(machine: Machine) -> float | None:
    """Bytes a second at which a device sends caches: out of the machine, or within it."""
    for name in ("ports", "bandwidth"):
        if machine.publishes(name):
            return getattr(machine, name).m_as("byte/s")
    return None


def _enough(pools: list[Pool]) -> list[Pool]:
    """The same pools, with as many copies as keep their limits in the simulation.

    Whatever promises fewer devices than were found is simulated; the rest is left as it is.
    """
    pools = sorted(pools, key=lambda each: each.devices)
    fewest = math.inf
    for place, pool in enumerate(pools):
        if pool.devices < fewest:
            found = pools[place] = _fewest_copies(pool, fewest)
            fewest = min(fewest, found.devices) if found.keeps else fewest
    return pools


def _fewest_copies(pool: Pool, fewest: float) -> Pool:
    """The fewest copies that keep the limits; one that does not, where less than `fewest` do not.

    It stops at several times what the closed form has, and keeps no limit then either.
    """
    low, tried = 0, _simulated(pool)
    while not tried.keeps:
        low = tried.count
        more = low + max(1, low // 4)
        if more * pool.group.devices >= fewest or more > MOST_COPIES * pool.count:
            return tried
        tried = _simulated(replace(pool, count=more))
    while not low and tried.count > 1:  # the closed form had enough, or more than that
        fewer = _simulated(replace(pool, count=tried.count - max(1, tried.count // 8)))
        low, tried = (low, fewer) if fewer.keeps else (fewer.count, tried)
    while tried.count - low > 1:
        middle = _simulated(replace(pool, count=(low + tried.count) // 2))
        low, tried = (low, middle) if middle.keeps else (middle.count, tried)
    return tried


def _simulated(pool: Pool) -> Pool:
    """The pool with the run of one of its copies, which gets its share of the requests."""
    service, trace = pool.service, _requests(pool.service, pool.does)
    rate = service.rate * len(trace) / len(service.trace)  # of those that come to the pool
    if service.recorded:
        mine = trace.at_rate(rate).turns(pool.count)[0].first(LONGEST_RUN)
    else:
        batch = pool.load.batch
        full = RESIDENCES * batch if math.isfinite(batch) else LONGEST_RUN
        wanted = max(len(trace), min(LONGEST_RUN, round(full)))
        mine = _longer(trace, wanted).at_rate(rate / pool.count)
    run = simulate(pool.replica, mine).steady()
    if pool.does == "write":  # where the first token was written when the request was sent
        run = replace(run, first=run.arrivals - pool.transfer, answers=run.answers + 1)
    return replace(pool, run=run)


def _longer(trace: Trace, count: int) -> Trace:
    """The requests again and again, one round after the other, until there are so many."""
    import numpy

    times = -(-count // len(trace))
    round_ = float(trace.arrivals[-1]) + 1 / trace.rate
    later = numpy.repeat(numpy.arange(times) * round_, len(trace))
    rest = (numpy.tile(each, times) for each in (trace.prompts, trace.answers, trace.cached))
    return Trace(numpy.tile(trace.arrivals, times) + later, *rest).first(count)


def _joined(read: Run, written: Run) -> Run:
    """The first tokens of one pool with what the other made of their answers."""
    count = min(len(read.arrivals), len(written.arrivals))
    first = read.first[:count]
    return Run(
        arrivals=read.arrivals[:count],
        first=first,
        done=first + (written.done - written.first)[:count],
        answers=written.answers[:count],
        preempted=written.preempted,
        in_flight=read.in_flight + written.in_flight,
    )


def _too_slow(service: Service, replica: Replica) -> str:
    """Which limit a replica breaks for a single request, and by what."""
    alone = replica.under(ALONE, service.demand, service.percentile)
    told = []
    if alone.ttft > service.ttft:
        told.append(f"a request alone waits {seconds(alone.ttft)} for its first token")
    if alone.tpot > service.tpot:
        told.append(f"a request alone takes {seconds(alone.tpot)} a token")
    return " and ".join(told) or "no load that it can take keeps both limits"


def _no_design(
    service: Service, replicas: list[tuple[Answers, Replica]], refused: dict[str, str]
) -> str:
    """Which limit no group keeps, and the best that can be had; what is missing, if memory is."""
    setup = service.setup
    name, device = setup.model.name, setup.machine.device.name
    if not replicas:
        group, why = list(refused.items())[-1]
        weights = setup.model_memory
        each = setup.software.memory_share * setup.device.memory_capacity
        least = math.ceil((weights / each).m_as(""))
        return (
            f"{name} does not fit on {group} of {device}: {why}; its weights alone,"
            f" {weights.to('GB'):.3g}, take {least} such devices: take a machine that joins as"
            ' many, or smaller weights (weights="int4")'
        )
    loads = {
        str(answers.group): replica.under(ALONE, service.demand, service.percentile)
        for answers, replica in replicas
    }
    first = min(loads, key=lambda each: loads[each].ttft)
    each = min(loads, key=lambda one: loads[one].tpot)
    told = []
    if loads[first].ttft > service.ttft:
        best = f"{seconds(loads[first].ttft)} on {first}"
        told.append(f"a TTFT of {seconds(service.ttft)}, and the best that can be had is {best}")
    if loads[each].tpot > service.tpot:
        best = f"{seconds(loads[each].tpot)} on {each}"
        told.append(f"a TPOT of {seconds(service.tpot)}, and the best that can be had is {best}")
    if not told:
        told.append(
            f"both a TTFT of {seconds(service.ttft)} and a TPOT of {seconds(service.tpot)}: the"
            f" best TTFT is {seconds(loads[first].ttft)} on {first}, the best TPOT"
            f" {seconds(loads[each].tpot)} on {each}"
        )
    return f"no group of {device} serves {name} within {'; nor within '.join(told)}"


def _draft(
    draft: Transformer | str | None,
    drafted: int,
    acceptance: QuantityLike | None,
    hardware: Machine | Accelerator | Path | str,
    lengths: dict[str, QuantityLike],
    options: tuple[Any, ...],
) -> tuple[float, Setup | None]:
    """What a pass writes on average, and the draft model with its formats."""
    if (draft is None) != (acceptance is None):
        given, needed = ("acceptance", "draft") if draft is None else ("draft", "acceptance")
        raise InputError(f"plan_service() takes {given} together with {needed}, which is missing")
    if draft is None or acceptance is None:
        return 1.0, None
    count = whole_number("drafted", drafted)
    written = inference.speculative_tokens(acceptance, count).m_as("")
    return float(written), Setup.read(transformer_of(draft), hardware, lengths, *options)


def _trace(
    path: Path | str | None,
    rate: QuantityLike | None,
    prompt: QuantityLike | None,
    generated: QuantityLike | None,
    prompt_spread: float,
    generated_spread: float,
    seed: int,
    requests: int,
) -> Trace:
    if path is not None:
        if prompt is not None or generated is not None:
            raise InputError(
                "plan_service() takes the lengths of its trace, and prompt and generated are given"
                " too: leave the trace or the lengths out"
            )
        return read_trace(path)
    needed = {"rate": rate, "prompt": prompt, "generated": generated}
    if missing := [name for name, given in needed.items() if given is None]:
        raise InputError(
            "plan_service() needs a trace, or rate, prompt and generated; what is left out:"
            f" {', '.join(missing)}"
        )
    means = [_length(name, needed[name]) for name in ("prompt", "generated")]
    count = whole_number("requests", requests, 100)
    return poisson(_rate(rate), count, means[0], means[1], prompt_spread, generated_spread, seed)


def _within(trace: Trace, model: Transformer, path: Path | str | None) -> Trace:
    """Requests that the model can read: drawn ones are cut, and a recorded one that is too long
    is an error."""
    import numpy

    most = int(model.context.magnitude)
    long = trace.prompts + trace.answers > most
    if not long.any():
        return trace
    if path is not None:
        place = int(long.argmax())
        needed = int((trace.prompts + trace.answers)[place])
        raise InputError(
            f"{path}: request {place + 1} has {needed} tokens, and {model.name} reads at most"
            f" {most}"
        )
    prompts = numpy.minimum(trace.prompts, most - 1)
    return replace(trace, prompts=prompts, answers=numpy.minimum(trace.answers, most - prompts))


def _rate(given: Any) -> float:
    amount = quantity(given)
    if amount.unitless:
        amount = amount * quantity(1, "request/s")
    return _positive("rate", amount, given, "request/s", "10 request/s")


def _time(name: str, given: Any, example: str) -> float:
    return _positive(name, quantity(given), given, "s", example)


def _length(name: str, given: Any) -> float:
    amount = quantity(given)
    if amount.is_compatible_with("token"):
        amount = amount / A_TOKEN
    return max(1.0, _positive(name, amount, given, "", "1000"))


def _positive(name: str, amount: Quantity, given: Any, unit: str, example: str) -> float:
    if not amount.is_compatible_with(unit) or amount.ndim or not 0 < amount.m_as(unit) < math.inf:
        needed = f"in {unit} " if unit else ""
        raise InputError(
            f'{name} must be one positive quantity {needed}or the like, as in "{example}"; got'
            f" {abbreviated(given)}"
        )
    return float(amount.m_as(unit))


def _share(name: str, given: Any) -> float:
    value = number(name, given, above=0.0)
    if not 1 <= value < 100:
        raise InputError(
            f"{name} must be in per cent, from 1 to below 100; got {abbreviated(given)}"
        )
    return value / 100


def seconds(time: float) -> str:
    """A time as people read it."""
    return f"{quantity(time, 's'):.3g}" if time >= 1 else str(quantity(float(f"{time:.3g}"), "s"))
