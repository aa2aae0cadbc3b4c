"""The busiest replica of a pool: what it is sent, what it finds, and how long it fetches."""

from __future__ import annotations

import math
from dataclasses import replace

from calc.catalog import constants
from calc.core.arrays import Floats, numpy
from calc.networks import transformer
from calc.planning.service.design import Pool
from calc.planning.service.load import Trace
from calc.planning.service.prefixes import MOST_ROUTED, routed


def of_replica(pool: Pool, rate: float, count: int) -> tuple[Trace, tuple[float, ...]]:
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
        *(size * devices / kept for size in (tiers.host, tiers.disk)),
    )
    blocks = tuple(int(size // trace.block) for size in sizes)
    mine, found = max(routed(trace, replicas, blocks, tiers.routing), key=_computed)
    host = float(job.measured_on.host_link.m_as("byte/s")) if max(sizes[1:]) else math.inf
    disk = constants.bandwidth_nvme_gen4.m_as("byte/s")
    seconds = numpy.array([0.0, kept / (host * devices), kept / (min(host, disk) * devices)])
    shares = tuple((found.sum(axis=0) / mine.prompts.sum()).tolist())
    return replace(mine, fetched=_one_by_one(mine.arrivals, found @ seconds)), shares


def _computed(of_one: tuple[Trace, Floats]) -> int:
    trace, _ = of_one
    return int((trace.prompts - trace.cached).sum())


def _one_by_one(arrivals: Floats, times: Floats) -> Floats:
    """Seconds after its arrival at which each is fetched, one after the other by the same link."""
    if not times.any():
        return numpy.zeros_like(arrivals)
    free, waits = 0.0, []
    for arrival, time in zip(arrivals.tolist(), times.tolist(), strict=True):
        free = max(free, arrival) + time if time else free
        waits.append(free - arrival if time else 0.0)
    return numpy.array(waits)
