"""A design of a service: pools of replicas, what each does, and what its requests meet."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from calc.core.arrays import numpy
from calc.planning.service.asked import Service
from calc.planning.service.load import Trace
from calc.planning.service.queue import Demand, Replica, UnderLoad
from calc.planning.service.simulation import Run
from calc.planning.service.step_tables import Answers, Steps
from calc.planning.setup import layout_text
from calc.steps import device_power
from calc.steps.device_power import Power
from calc.steps.job import Layout


@dataclass(frozen=True, eq=False)
class Pool:
    """Copies of the model that do the same.

    Each is a group of devices. Copies of attention in it, which share experts out (DP), have queues
    of their own and get even shares of its requests.
    """

    service: Service
    does: str
    """One of both, prefill and decode."""
    answers: Answers
    replica: Replica
    """A queue of one copy."""
    demand: Demand
    most: float
    """Requests a second that one copy takes within the limits, by the closed form."""
    count: int
    transfer: float = 0.0
    """Seconds that the cache of a mean prompt takes to get there."""
    run: Run | None = None
    """What the simulation made of one copy and its share of the requests."""
    found: tuple[float, ...] | None = None
    """Shares of prompts' tokens found in the memory of devices, of hosts, and on disks.

    None where the content of requests is not known.
    """

    @property
    def group(self) -> Layout:
        return self.answers.group

    @property
    def size(self) -> int:
        """Devices of a copy."""
        return int(self.group.devices)

    @property
    def devices(self) -> int:
        return self.count * self.size

    @property
    def queues(self) -> int:
        """Queues of all copies, of which each has its share of the requests."""
        return self.count * int(self.group.data)

    def with_steps(self, steps: Steps) -> Pool:
        """Return the pool with other steps, which nothing has simulated."""
        replica, limits = replace(self.replica, steps=steps), limits_of(self.service, self.does)
        most = replica.most(self.demand, self.service.percentile, *limits)
        return replace(self, replica=replica, most=most * int(self.group.data), run=None)

    def at_pace(self, factor: float) -> Pool:
        """Return the pool with steps that take so many times as long."""
        return self.with_steps(self.replica.steps.scaled(factor))

    @cached_property
    def at_peaks(self) -> list[Pool]:
        """Return the pool for each part of a step alone at its published rate: the least."""
        return [self.with_steps(steps) for steps in self.answers.published.values()]

    def copies(self, most: float) -> int | None:
        """Copies that are needed, each of which takes so many requests; None where it takes none.

        As many times those of the closed form as the simulation took here.
        """
        if not most:
            return None
        asked = self.service.rate
        more = self.count / max(1, math.ceil(asked / self.most))
        return math.ceil(more * math.ceil(asked / most))

    @property
    def load(self) -> UnderLoad:
        """Return what requests meet by the closed form."""
        service = self.service
        return self.replica.under(service.rate / self.queues, self.demand, service.percentile)

    @property
    def least_copies(self) -> int:
        """Copies that any program needs."""
        return max(1, math.ceil(self.service.rate / min(pool.most for pool in self.at_peaks)))

    @property
    def kept(self) -> float:
        """Share of requests that keep the limits that are this pool's to keep, in closed form."""
        rate = self.service.rate / self.queues
        return self.replica.kept(rate, self.demand, *limits_of(self.service, self.does))

    @property
    def keeps(self) -> bool:
        """Return whether the simulation kept the limits that are this pool's to keep."""
        if self.run is None:
            return False
        ttft, tpot = limits_of(self.service, self.does)
        first, rest = self.run.at(self.service.percentile)
        return first <= ttft and rest <= tpot

    @cached_property
    def power(self) -> Power | None:
        """The mean of what a device draws and its share of the machine; None where unpublished.

        It is at work as its mean step uses it while any request is there, and else idle.
        """
        machine, whole = self.service.setup.machine, self.service.setup.in_machine
        idle, demand, steps = device_power.idle(machine), self.demand, self.replica.steps
        if idle is None:
            return None
        batch = min(self.load.batch, float(steps.most_sequences))
        count = max(1, round(batch)) if self.replica.writes else 0
        read = demand.computed * (count / demand.answer if count else 1)
        read = min(round(read), steps.most_tokens - count * steps.checked)
        step = count, count * demand.length, read, read * demand.looked_at / demand.computed
        taken = float(steps.time(*step))
        parts = self.answers.published  # without compute where no peak is published
        memory, compute = (
            float(parts[part].time(*step)) / taken if part in parts else 0.0
            for part in ("memory", "compute")
        )
        power = device_power.at_work(machine, memory, compute, whole)
        assert power is not None
        there = max(min(self.load.busy, 1.0), -math.expm1(-batch))
        return replace(power, device=idle.device + there * (power.device - idle.device))

    def __str__(self) -> str:
        does = "" if self.does == "both" else f" for {self.does}"
        several = "replica" if self.count == 1 else "replicas"
        return f"{self.count} {several} of {layout_text(self.group)}{does}"


@dataclass(frozen=True, eq=False)
class Design:
    """Pools that together serve all requests: one, or one for prefill and one for decode."""

    pools: tuple[Pool, ...]

    @property
    def devices(self) -> int:
        return sum(pool.devices for pool in self.pools)

    @property
    def load(self) -> UnderLoad:
        """Return what requests meet by the closed form: first tokens in one pool, others in one."""
        first, rest = self.pools[0].load, self.pools[-1].load
        busy, batch = max(first.busy, rest.busy), rest.batch * int(self.pools[-1].group.data)
        return replace(rest, ttft=first.ttft, mean_ttft=first.mean_ttft, busy=busy, batch=batch)

    @property
    def most(self) -> float:
        """Requests a second that all copies take within the limits, by the closed form."""
        return min(pool.count * pool.most for pool in self.pools)

    @cached_property
    def run(self) -> Run | None:
        """Return what the simulation made of the requests; None where it was not asked."""
        first, rest = self.pools[0].run, self.pools[-1].run
        if first is None or rest is None or first is rest:
            return first
        return _joined(first, rest)

    def at_rate(self, rate: float) -> Design:
        """Return the pools under another load, which nothing has simulated."""
        return self.for_service(replace(self.pools[0].service, rate=rate))

    def for_service(self, service: Service) -> Design:
        """Return the pools, of which something else is asked, which nothing has simulated."""
        return Design(tuple(replace(pool, service=service, run=None) for pool in self.pools))

    def at_pace(self, factor: float) -> Design:
        """Return the pools with steps that take so many times as long."""
        return Design(tuple(pool.at_pace(factor) for pool in self.pools))

    def devices_at_pace(self, factor: float) -> int | None:
        """Devices that keep the limits then, in the same groups; None where no number does."""
        needed = 0
        for pool in self.pools:
            copies = pool.copies(pool.at_pace(factor).most)
            if copies is None:
                return None
            needed += copies * pool.size
        return needed

    @property
    def goodput(self) -> float:
        """Requests a second that keep both limits, by the closed form."""
        return self.pools[0].service.rate * math.prod(pool.kept for pool in self.pools)

    @property
    def simulated_goodput(self) -> float | None:
        """Return the goodput by the simulation; None where it was not asked."""
        service = self.pools[0].service
        return (
            None if self.run is None else service.rate * self.run.kept(service.ttft, service.tpot)
        )

    @property
    def keeps(self) -> bool:
        """Return whether the simulation kept both limits."""
        return all(pool.keeps for pool in self.pools)

    @property
    def simulated(self) -> tuple[float, float] | None:
        """Time to first token and of a token at the percentile, as simulated."""
        return None if self.run is None else self.run.at(self.pools[0].service.percentile)

    def __str__(self) -> str:
        return " and ".join(map(str, self.pools))


def limits_of(service: Service, job: str) -> tuple[float, float]:
    """The limits that a pool with this job must keep, in seconds."""
    ttft = math.inf if job == "decode" else service.ttft
    return ttft, math.inf if job == "prefill" else service.tpot


def made_for(trace: Trace, job: str) -> Trace:
    """Return what requests ask of a pool with this job.

    The first token comes of prefill. A pool for decode gets the keys and values of a prompt, and
    makes those of the first token; a request that wants no more never gets there.
    """
    if job == "both":
        return trace
    if job == "prefill":
        return replace(trace, answers=numpy.ones_like(trace.answers))
    more = trace.answers > 1
    prompts = trace.prompts[more]
    return Trace(trace.arrivals[more], prompts + 1, trace.answers[more] - 1, prompts)


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
