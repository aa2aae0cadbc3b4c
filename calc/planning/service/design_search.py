"""The search for a design: by the closed form first, then by the simulation.

Each group of devices is tried by the closed form: the largest rate that one copy of the model takes
within the limits says how many copies there must be. Those that promise the fewest devices are
simulated, and get copies until the simulation keeps the limits too, until no group promises less
than was found. Pools that read and pools that write are looked for each by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from calc.catalog import constants
from calc.core.arrays import Floats, numpy
from calc.core.elementwise import largest
from calc.core.errors import InputError, marked
from calc.core.units import quantity
from calc.networks import transformer
from calc.planning import advice
from calc.planning.choice import groups
from calc.planning.service.asked import Service, seconds
from calc.planning.service.design import Design, Pool, limits_of, made_for
from calc.planning.service.load import Trace
from calc.planning.service.prefixes import MOST_ROUTED, routed
from calc.planning.service.queue import Demand, Replica
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.step_tables import Answers, answers_of, with_draft
from calc.planning.setup import Setup, layout_text
from calc.steps import communication, device_memory
from calc.steps.held_memory import Memory
from calc.steps.job import Layout

CHUNKS = (512, 2048, 8192)
"""Tokens of a step that are tried where none is given: from short steps to fast reading."""
MOST_COPIES = 8
"""Times the copies of the closed form at which a simulation that keeps no limit gives up."""
RESIDENCES = 20
"""Requests of a run for each sequence of the batch, so that it is full long before the end."""
LONGEST_RUN = 20_000
ALONE = 1e-6  # requests a second that meet nobody
Progress = Callable[[int, int], None]


def designs(service: Service, on_progress: Progress) -> tuple[list[Design], dict[str, str]]:
    """All designs that were found, the best first, and why groups that are in none are not."""
    refused: dict[str, str] = {}
    replicas = list(_replicas(service, refused))
    jobs = _jobs(service)
    pools = {job: _pools(service, job, replicas, refused) for job in jobs}
    designs: list[Design] = []
    fewest = math.inf
    if pools.get("both"):
        on_progress(0, len(jobs))
        designs += [Design((pool,)) for pool in _enough(pools["both"])]
        fewest = min((design.devices for design in designs if design.keeps), default=math.inf)
    if pools.get("prefill") and pools.get("decode"):
        on_progress(1, len(jobs))
        halves = [pools["prefill"], pools["decode"]]
        if sum(min(pool.devices for pool in half) for half in halves) < fewest:
            halves = [_enough(half) for half in halves]
        pair = (min(half, key=lambda pool: (not pool.keeps, pool.devices)) for half in halves)
        designs.append(Design(tuple(pair)))
    if not designs:
        raise InputError(_no_design(service, replicas, refused))
    on_progress(len(jobs), len(jobs))
    if not any(design.keeps for design in designs):
        raise InputError(
            f"no number of replicas keeps {service.limits} in the simulation, though the closed"
            f" form has {designs[0]} do so: longer limits are needed"
        )
    best, *others = sorted(
        designs, key=lambda design: (not design.keeps, design.devices, len(design.pools))
    )
    if service.most_devices is not None and best.devices > service.most_devices:
        fewest_of_copy = min(pool.size for several in pools.values() for pool in several)
        if fewest_of_copy > service.most_devices:
            reasons = (f"{layout}: {reason}" for layout, reason in refused.items())
            why = "; ".join(reasons) or "fewer do not hold it"
            raise InputError(
                f"the smallest copy of the model takes {fewest_of_copy} devices, at any rate, and"
                f" {marked('devices', service.most_devices)} allows no more: take as many, or"
                f" shorter requests ({why})"
            )
        could = service.rate * service.most_devices / best.devices
        raise InputError(
            f"{service.limits} at {quantity(service.rate, 'request/s')} take {best.devices}"
            f" devices, and {marked('devices', service.most_devices)} allows no more: take as many,"
            f" longer limits, or about {quantity(could, 'request/s'):.3g}"
        )
    return [best, *others], refused


def frontier(service: Service, tpots: Sequence[float]) -> Iterator[float]:
    """Devices for each request a second, the fewest by the closed form, for limits on TPOT.

    Copies are counted in parts, as a service of many has them; infinite where no design is left.
    """
    replicas, jobs = list(_replicas(service, {})), _jobs(service)
    for tpot in tpots:
        limited = replace(service, tpot=tpot)
        needed = {}
        for job in jobs:
            pools = _pools(limited, job, replicas, {})
            needed[job] = min((pool.size / pool.most for pool in pools), default=math.inf)
        both = needed.pop("both", math.inf)
        yield min(both, sum(needed.values()) if needed else math.inf)


def _jobs(service: Service) -> list[str]:
    """Return what pools may do: both, or, where a cache can be sent, one of the two."""
    jobs = ["both"] if "mixed" in service.pools else []
    sent = service.setup.machine.most_joined > 1 and service.trace.answers.max() > 1
    if "disaggregated" in service.pools and sent:
        jobs += ["prefill", "decode"]
    if not jobs:
        raise InputError(
            "two pools need a link between devices, which the data have to have, and answers of"
            " more than a token: take pools=mixed"
        )
    return jobs


def _pools(
    service: Service, job: str, replicas: list[tuple[Answers, Replica]], refused: dict[str, str]
) -> list[Pool]:
    """A pool of each group that can serve a request within the limits, by the closed form."""
    demand, pools = Demand.mean_of(made_for(service.trace, job)), []
    sent = _transfer(service, replicas) if job == "decode" else 0.0
    limits = service.percentile, *limits_of(service, job)
    for answers, replica in replicas:
        copies = [replace(replica, request=0.0)]  # where its prompt was read it was known already
        if job == "prefill":  # nobody waits for a token beside it
            copies = [replace(replica, writes=False, chunk=max(CHUNKS[-1], replica.chunk))]
        elif job == "both":
            copies = [replace(replica, chunk=chunk) for chunk in _chunks(service)]
        rates = [copy.most(demand, *limits) for copy in copies]
        copy = copies[rates.index(max(rates))]
        most = max(rates) * int(answers.group.data)
        if most > ALONE:
            count = max(1, math.ceil(service.rate / most))
            pools.append(Pool(service, job, answers, copy, demand, most, count, sent))
        elif job == "both":
            refused[layout_text(answers.group)] = _too_slow(service, replica)
    return pools


def _replicas(service: Service, refused: dict[str, str]) -> Iterator[tuple[Answers, Replica]]:
    """A copy of the model on each group of devices that holds it, with the smallest of chunks."""
    setup = service.setup
    lengths = float(setup.prompt.magnitude), float(setup.context.magnitude)
    longest = _longest(service)
    chunks = _chunks(service)
    checked = service.drafted + 1 if service.draft else 1
    for group in _groups(setup):
        job, beside = setup.job.cut(group), Layout(tensor=group.tensor)
        drafts = None if service.draft is None else service.draft.job.cut(beside)
        memory = device_memory.cache_tokens(job, drafts, float(setup.context.magnitude))
        if memory < longest:
            refused[layout_text(group)] = (
                f"its memory holds {memory} tokens of cache, and {_needs(service, longest)}"
            )
            continue
        slots = min(service.slots, memory)
        most = max(*chunks, CHUNKS[-1]) + checked * slots  # the last is that of a pool that reads
        answers = answers_of(job, lengths, most, checked * slots)
        steps = answers.decided_by
        if drafts is not None:
            drafting = answers_of(drafts, lengths, most, slots)
            steps = with_draft(steps, drafting.decided_by, service.drafted, service.written)
        replica = Replica(steps, memory, chunks[0], slots, batches=int(group.pipeline))
        yield answers, replica.run_by(setup.software)


def _longest(service: Service) -> int:
    """The tokens of cache that the longest of the requests needs."""
    return int((service.trace.prompts + service.trace.answers).max() + service.written) + 1


def _needs(service: Service, longest: int) -> str:
    """Return which request needs so many tokens of cache, and why it is longer than asked for."""
    if not service.trace.lengths_differ:
        return f"a request needs {longest}"
    asked = f"{service.trace.prompts.mean():.0f} + {service.trace.answers.mean():.0f}"
    spreads = f" ({marked('prompt_spread')} and {marked('generated_spread')})"
    spreads = "" if service.recorded else spreads
    return (
        f"the longest of {len(service.trace)} requests, whose lengths differ around"
        f" {asked}{spreads}, needs {longest}"
    )


def _chunks(service: Service) -> tuple[int, ...]:
    return CHUNKS if service.chunk is None else (service.chunk,)


def _groups(setup: Setup) -> list[Layout]:
    """Groups within a domain; where none holds a request, the smallest beyond one that do."""
    layouts = list(groups(setup))
    near = [group for group in layouts if group.devices <= setup.machine.hosted.domain]
    holding = [group for group in layouts if _memory(setup, group).fits]
    if not holding or any(group in near for group in holding):
        return near
    fewest = min(group.devices for group in holding)
    return [group for group in holding if group.devices == fewest]


def _memory(setup: Setup, group: Layout) -> Memory:
    return device_memory.of(setup.job.cut(group), math.ceil(largest(setup.context)))


def _transfer(service: Service, replicas: list[tuple[Answers, Replica]]) -> float:
    """Seconds in which the smallest group sends or gets the cache of a mean prompt.

    It goes out of the machine where it has ports, and else within it.
    """
    setup, machine = service.setup, service.setup.machine.hosted
    if machine.most_joined == 1:
        return 0.0
    cache = transformer.kv_cache(setup.model, service.demand.prompt, setup.job.formats.kv)
    devices = min((answers.job.cache_devices for answers, _ in replicas), default=1)
    link = communication.sending(min(machine.domain + 1, machine.most_joined), machine)
    return float((cache / (devices * link)).m_as("s"))


def _enough(pools: list[Pool]) -> list[Pool]:
    """Return the pools with as many copies as keep their limits in the simulation.

    Whatever promises fewer devices than were found is simulated; the rest is left as it is.
    """
    pools = sorted(pools, key=lambda pool: pool.devices)
    fewest = math.inf
    for index, pool in enumerate(pools):
        if pool.devices < fewest:
            tried = pools[index] = _fewest_copies(pool, fewest)
            fewest = min(fewest, tried.devices) if tried.keeps else fewest
    return pools


def _fewest_copies(pool: Pool, fewest: float) -> Pool:
    """The fewest copies that keep the limits; one that does not, where less than `fewest` do not.

    It stops at several times what the closed form has, and keeps no limit then either. Of thousands
    it is exact to a thousandth.
    """
    low, tried = 0, simulated(pool)
    while not tried.keeps:
        low = tried.count
        more = low + max(1, low // 4)
        if more * pool.size >= fewest or more > MOST_COPIES * pool.count:
            return tried
        tried = simulated(replace(pool, count=more))
    while not low and tried.count > 1:  # the closed form had enough, or more than that
        fewer = simulated(replace(pool, count=tried.count - max(1, tried.count // 8)))
        low, tried = (low, fewer) if fewer.keeps else (fewer.count, tried)
    while tried.count - low > max(1, tried.count // 1000):
        middle = simulated(replace(pool, count=(low + tried.count) // 2))
        low, tried = (low, middle) if middle.keeps else (middle.count, tried)
    return tried


def simulated(pool: Pool) -> Pool:
    """The pool with the run of one of its copies, which gets its share of the requests."""
    service, trace = pool.service, made_for(pool.service.trace, pool.does)
    rate = service.rate * len(trace) / len(service.trace)  # of those that come to the pool
    batch = pool.load.batch
    full = RESIDENCES * batch if math.isfinite(batch) else LONGEST_RUN
    wanted = max(len(trace), min(LONGEST_RUN, round(full)))
    prefixes = None
    if service.trace.blocks is not None and pool.does != "decode":
        mine, prefixes = _of_busiest(pool, service.rate, max(len(trace), wanted // 4))
        mine = made_for(mine.first(LONGEST_RUN), pool.does)
    elif service.recorded:
        mine = trace.at_rate(rate).turns(pool.queues)[0].first(LONGEST_RUN)
    else:
        mine = _longer(trace, wanted).at_rate(rate / pool.queues)
    run = _fetched(pool.replica, mine).steady()
    if pool.does == "decode":  # where the first token was written when the request was sent
        run = replace(run, first=run.arrivals - pool.transfer, answers=run.answers + 1)
    return replace(pool, run=run, found=prefixes)


def _of_busiest(pool: Pool, rate: float, count: int) -> tuple[Trace, tuple[float, ...]]:
    """The requests of the busiest replica, with what each finds and when it has been fetched."""
    service, job = pool.service, pool.answers.asked
    tiers = service.tiers
    if service.sessions is None:
        trace = service.trace.at_rate(rate)
        replicas = pool.queues
    elif tiers.routing == "prefix":  # a session stays where it began
        trace, replicas = service.sessions.draw(rate / pool.queues, count), 1
    else:
        replicas = pool.queues
        trace = service.sessions.draw(rate, min(MOST_ROUTED, count * replicas))
    demand, batch = service.demand, pool.load.batch
    running = batch * demand.length if math.isfinite(batch) else math.inf
    length = int(demand.prompt + demand.answer)
    kept = transformer.kv_cache(job.model, length, job.formats.kv).m_as("byte") / length
    devices = job.cache_devices
    sizes = (
        max(0.0, pool.replica.memory - running),
        *(size * devices / kept for size in (tiers.host_cache, tiers.disk)),
    )
    blocks = tuple(int(size // trace.block) for size in sizes)
    mine, prefixes = max(
        routed(trace, replicas, blocks, tiers.routing),
        key=lambda one: int((one[0].prompts - one[0].cached).sum()),
    )
    host = float(job.measured_on.host_link.m_as("byte/s")) if max(sizes[1:]) else math.inf
    disk = constants.bandwidth_nvme_gen4.m_as("byte/s")
    seconds = numpy.array([0.0, kept / (host * devices), kept / (min(host, disk) * devices)])
    shares = tuple((prefixes.sum(axis=0) / mine.prompts.sum()).tolist())
    return replace(mine, fetched=_one_by_one(mine.arrivals, prefixes @ seconds)), shares


def _one_by_one(arrivals: Floats, times: Floats) -> Floats:
    """Seconds after its arrival at which each is fetched, one after the other by the same link."""
    if not times.any():
        return numpy.zeros_like(arrivals)
    free, waits = 0.0, []
    for arrival, time in zip(arrivals.tolist(), times.tolist(), strict=True):
        free = max(free, arrival) + time if time else free
        waits.append(free - arrival if time else 0.0)
    return numpy.array(waits)


def _fetched(replica: Replica, trace: Trace) -> Run:
    """The run of requests that wait for what they found elsewhere, from their arrival on."""
    if trace.fetched is None or not trace.fetched.any():
        return simulate(replica, trace)
    ready = trace.arrivals + trace.fetched
    order = numpy.argsort(ready, kind="stable")
    mine = trace.at(order)
    run = simulate(replica, replace(mine, arrivals=ready[order]))
    return replace(run, arrivals=trace.arrivals[order])


def _longer(trace: Trace, count: int) -> Trace:
    """The requests again and again, one round after the other, until there are so many."""
    times = -(-count // len(trace))
    round_ = float(trace.arrivals[-1]) + 1 / trace.rate
    later = numpy.repeat(numpy.arange(times) * round_, len(trace))
    lengths = trace.prompts, trace.answers, trace.cached
    rest = (numpy.tile(tokens, times) for tokens in lengths)
    return Trace(numpy.tile(trace.arrivals, times) + later, *rest).first(count)


def _too_slow(service: Service, replica: Replica) -> str:
    """Return which limit a replica breaks for a single request, and by what."""
    alone = replica.under(ALONE, service.demand, service.percentile)
    reasons = []
    if alone.ttft > service.ttft:
        reasons.append(f"a request alone waits {seconds(alone.ttft)} for its first token")
    if alone.tpot > service.tpot:
        reasons.append(f"a request alone takes {seconds(alone.tpot)} a token")
    return " and ".join(reasons) or "no load that it can take keeps both limits"


def _no_design(
    service: Service, replicas: list[tuple[Answers, Replica]], refused: dict[str, str]
) -> str:
    """Return which limit no group keeps and the best that can be had, or what memory lacks."""
    setup = service.setup
    model, device = setup.model.name, setup.machine.device.name
    if not replicas:
        memories = (_memory(setup, group) for group in _groups(setup))
        memory = max(memories, key=lambda memory: memory.caches)
        group = layout_text(memory.start.layout)
        parts = ", ".join(f"{part.name} {part.memory}" for part in memory.parts)
        needed = math.ceil(_longest(service) / memory.context)
        return (
            f"{model} does not fit on {group} of {device}: {refused[group]}; of each,"
            f" {memory.program} may use {memory.room}, and takes {parts}."
            f" {' '.join(advice.own_ways(memory, needed))}".rstrip()
        )
    loads = {
        layout_text(answers.group): replica.under(ALONE, service.demand, service.percentile)
        for answers, replica in replicas
    }
    limits: list[str] = []
    best: list[str] = []
    reasons: list[str] = []
    for name in ("ttft", "tpot"):
        times = {group: getattr(load, name) for group, load in loads.items()}
        quickest, limit = min(times, key=times.__getitem__), getattr(service, name)
        limits.append(f"a {name.upper()} of {seconds(limit)}")
        best.append(f"{seconds(times[quickest])} on {quickest}")
        if times[quickest] > limit:
            reasons.append(f"{limits[-1]}, and the best that can be had is {best[-1]}")
    if not reasons:
        both, (first, rest) = " and ".join(limits), best
        reasons.append(f"both {both}: the best TTFT is {first}, the best TPOT {rest}")
    return f"no group of {device} serves {model} within {'; nor within '.join(reasons)}"
