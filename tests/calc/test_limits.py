"""Limits of size and time: what just keeps one keeps it, the next number beyond does not, and
what is shared out adds up to what there was."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calc import InputError, compare, hardware, layouts, plan, quantity
from calc.core.device import Device
from calc.planning import ServicePlan, plan_service
from calc.planning.service import Demand, Run, simulate
from calc.planning.service.load import poisson
from calc.published import closed_loops
from calc.steps import device_memory
from calc.steps.job import Layout
from tests.calc.flatly import flatly
from tests.calc.test_service_simulation import replica, steps
from tests.rows import each_row

MADE = steps(0.004, 0.0005, 0.0001)
SERVED: dict[str, Any] = {
    "prompt": 1000,
    "generated": 200,
    "ttft": "1 s",
    "tpot": "50 ms",
    "requests": 400,
    "software": "vllm",
}


RATE = 150  # requests a second, which take several copies


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


def test_a_replica_that_just_holds_a_request_serves_it() -> None:
    trace = poisson(2, 40, 100, 100, 0, 0, seed=1)
    assert np.isfinite(simulate(replica(MADE, memory=201), trace).done).all()
    with pytest.raises(InputError, match="needs 201 tokens of cache, and a replica holds 200"):
        simulate(replica(MADE, memory=200), trace)
    with pytest.raises(InputError, match="chunk must be above 1"):
        simulate(replica(MADE, chunk=1), trace)
    assert np.isfinite(simulate(replica(MADE, chunk=2), trace).done).all()


def test_a_request_that_takes_as_long_as_it_may_is_kept() -> None:
    run = Run(np.zeros(2), np.array([0.5, 1.0]), np.array([1.5, 3.0]), np.array([11, 11]))
    assert run.kept(1.0, 0.2) == 1
    assert run.kept(below(1.0), 0.2) == run.kept(1.0, below(0.2)) == 0.5


def test_a_closed_form_keeps_the_limits_that_it_just_meets() -> None:
    demand = Demand.mean_of(poisson(2, 400, 100, 100, 1, 1, seed=1))
    server = replica(MADE)
    load = server.under(2, demand, 0.9)
    assert 0 < load.busy < 1
    assert server.under(2, demand, 0.9, load.ttft, load.mean_tpot) == load
    assert server.under(2, demand, 0.9, below(load.ttft)).busy >= 1
    assert server.under(2, demand, 0.9, tpot=below(load.mean_tpot)).busy >= 1
    most = server.most(demand, 0.9, load.ttft, load.tpot)
    assert most == pytest.approx(2, rel=1e-3)


@pytest.fixture(scope="module")
def served() -> ServicePlan:
    """Two pools, one of which reads prompts."""
    asked = SERVED | {"pools": "disaggregated", "rate": RATE}
    return flatly(plan_service, "llama-3-8b", "dgx-h100", **asked)


def test_a_pool_keeps_the_limits_that_its_slowest_requests_just_meet(served: ServicePlan) -> None:
    for pool in served.design.pools:
        assert pool.run is not None
        first, rest = pool.run.at(pool.service.percentile)
        just = replace(pool.service, ttft=first, tpot=rest)
        assert replace(pool, service=just).keeps
        if pool.does != "decode":
            assert not replace(pool, service=replace(just, ttft=below(first))).keeps
        if pool.does != "prefill":
            assert not replace(pool, service=replace(just, tpot=below(rest))).keeps


def test_copies_of_a_pool_share_its_requests_evenly(served: ServicePlan) -> None:
    for pool in served.design.pools:
        assert pool.run is not None
        seconds = float(np.ptp(pool.run.arrivals))
        each = (len(pool.run.arrivals) - 1) / seconds
        assert each * pool.queues == pytest.approx(RATE, rel=0.2), pool.does
        assert pool.devices == pool.count * pool.size
    assert max(pool.count for pool in served.design.pools) > 1
    assert served.devices == sum(pool.devices for pool in served.design.pools)


@pytest.mark.parametrize("name", ["ttft", "tpot"])
@pytest.mark.parametrize("said", ["nothing", "the rule", "users"])
def test_a_plan_that_just_keeps_a_limit_is_compared(name: str, said: str) -> None:
    """At the batch that is best by cost, at the least, and at as many users as there are."""
    asked: dict[str, Any] = {"prompt": 1000, "generated": 200}
    load = {"users": 1} if said == "users" else {"batch": 1}
    one = flatly(plan, "llama-3-8b", "h100", devices=1, **asked, **load)
    asked |= {"the rule": {"by": name}, "users": load}.get(said, {})
    [entry] = flatly(compare, "llama-3-8b", ["h100"], devices=1, **asked).entries
    assert one.expected is not None
    least = getattr(one.expected, {"ttft": "time_to_first_token", "tpot": "time_per_token"}[name])
    at, under = (
        flatly(compare, "llama-3-8b", ["h100"], devices=1, **asked, **{name: limit}).entries[0]
        for limit in (least, least * (1 - 1e-9))
    )
    assert entry.reason == at.reason == ""
    assert under.reason.startswith("cannot keep")


def test_a_device_that_holds_a_step_to_the_byte_is_large_enough() -> None:
    held = layouts.memory_per_device("llama-3-8b", Layout(data=8, sharding=3), 4096)
    device = hardware.get("h100")

    def of(capacity: float) -> Device:
        record = replace(device.records["memory_capacity"], _published=quantity(capacity, "byte"))
        return replace(device, records=device.records | {"memory_capacity": record})

    total = float(held.total.m_as("byte"))
    held.check(of(total))
    with pytest.raises(InputError, match="a device needs"):
        held.check(of(total - 1))


def test_clients_of_a_closed_loop_are_shared_out_once() -> None:
    """Servers share the clients, and copies of attention those of a server; none counts twice."""
    with each_row() as row:
        for loop in closed_loops.rows()[::25]:
            if loop["mode"] == "disagg" and not loop["servers"]:
                continue
            with row(loop.id):
                load = closed_loops.load_of(loop)
                assert load.writing * (loop["servers"] or 1) == pytest.approx(loop["clients"])


@pytest.mark.parametrize(("key", "tokens"), [("llama-3-8b", 8192), ("llama-3-1-70b", 20_000)])
def test_a_sequence_takes_the_cache_of_all_its_tokens(key: str, tokens: int) -> None:
    """Sequences that are held at once, each with its whole context, leave no room for one more."""
    made = flatly(plan, key, "dgx-h100", prompt=tokens - 100, generated=100, devices=8)
    held = device_memory.of(made.job, tokens)
    one = 2 * made.job.model.layers * 8 * 128 * 2 * tokens / 8  # of a device
    caches = held.caches.m_as("byte")
    assert held.sequences * one <= caches < (held.sequences + 1) * one * 1.01
