"""Little's law, what a memory makes of it, and queues against tables and a simulation."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import optimize

from calc import quantity, queueing


@pytest.mark.parametrize(
    ("memory", "each", "whole"),
    [
        ("24 GB", "1 GB/request", 24),
        ("23.999 GB", "1 GB/request", 23),
        ("0.3 GB", "0.1 GB/request", 3),  # 2.9999999999999996 in floating point
        ("0.9 GB", "1 GB/request", 0),
        ("1e15 byte", "2 byte/request", 5e14),
        ("1000000000000001 byte", "2 byte/request", 5e14),
    ],
)
def test_requests_are_whole(memory: str, each: str, whole: float) -> None:
    assert queueing.max_requests_in_flight(memory, each).magnitude == whole
    array = queueing.max_requests_in_flight(quantity([quantity(memory).m_as("byte")], "byte"), each)
    np.testing.assert_array_equal(array.magnitude, [whole])


# Load in erlangs, servers, share that waits: a textbook's example, and one of call centres.
ERLANG_C = [(2, 3, 4 / 9), (6, 10, 0.1013), (8, 10, 0.4092), (10, 11, 0.6821), (10, 14, 0.1741)]


@pytest.mark.parametrize(("load", "servers", "share"), ERLANG_C)
def test_published_values_of_erlang_c(load: float, servers: int, share: float) -> None:
    probability = queueing.waiting_probability(load / servers, servers).magnitude
    assert probability == pytest.approx(share, abs=1e-4)


@given(st.floats(0.001, 0.999), st.integers(1, 300))
def test_erlang_c_against_scipy(busy: float, servers: int) -> None:
    from scipy.stats import poisson  # a second that only this test needs

    load = poisson(busy * servers)
    loss = load.pmf(servers) / load.cdf(servers)
    probability = queueing.waiting_probability(busy, servers).magnitude
    assert probability == pytest.approx(loss / (1 - busy * (1 - loss)), rel=1e-9)


def test_a_simulated_queue() -> None:
    """Four servers at 80 %: Lindley's recursion for many of them, two hundred thousand requests."""
    random = np.random.default_rng(5)
    servers, busy, count = 4, 0.8, 200_000
    arrivals = np.cumsum(random.exponential(1 / (servers * busy), count))
    free = [0.0] * servers
    waits = np.empty(count)
    for each, (arrival, service) in enumerate(
        zip(arrivals, random.exponential(1, count), strict=True)
    ):
        first = min(range(servers), key=free.__getitem__)
        start = max(arrival, free[first])
        free[first], waits[each] = start + service, start - arrival
    assert queueing.waiting_time("1 s", busy, servers).magnitude == pytest.approx(
        waits.mean(), rel=0.05
    )
    tail = queueing.waiting_tail("1 s", busy, servers, 0.01).magnitude
    assert tail == pytest.approx(np.quantile(waits, 0.99), rel=0.05)


@pytest.mark.parametrize(("busy", "even", "bursty"), [(0.8, 0.18, 0.037), (0.95, 0.036, 0.002)])
def test_bursts_against_exact_waits(busy: float, even: float, bursty: float) -> None:
    """Kleinrock's G/M/1: a share σ of the arrivals waits, which solves σ = A*(1 − σ)."""
    likely = (1 + math.sqrt(0.8)) / 2  # of the shorter of two exponential gaps, for a = 3
    short, long = 2 * likely * busy, 2 * (1 - likely) * busy
    transforms = {
        0: (even, lambda x: math.exp(-x / busy)),
        1: (0, lambda x: busy / (busy + x)),
        3: (bursty, lambda x: likely * short / (short + x) + (1 - likely) * long / (long + x)),
    }
    for burstiness, (error, transform) in transforms.items():
        share = optimize.brentq(lambda x, of=transform: of(1 - x) - x, 0, 1 - 1e-6)
        wait = queueing.bursty_wait("1 s", busy, burstiness).magnitude
        assert wait / (share / (1 - share)) - 1 == pytest.approx(error, abs=0.005)


# --- batches: one step serves all, so that each slows down the others ---

SHARES = st.floats(0.01, 100)  # of the own time, of the shared one


@given(st.floats(0.01, 0.6), st.integers(1, 12), SHARES)
def test_a_batch_against_the_generator_of_its_chain(
    busy: float, slots: int, own_time: float
) -> None:
    """The stationary distribution as the null vector of a matrix, cut off where nobody comes."""
    states = slots + 70
    present = np.minimum(np.arange(states), slots)
    leaving = present / (1 + present * own_time)
    coming = busy * leaving[slots]
    generator = np.diag(np.full(states - 1, coming), 1) + np.diag(leaving[1:], -1)
    generator -= np.diag(generator.sum(axis=1))
    equations = np.vstack([generator.T[1:], np.ones(states)])
    chances = np.linalg.solve(equations, np.eye(states)[-1])
    arguments = (busy, slots, "1 s", quantity(own_time, "s"))
    for law, right in (
        (queueing.batch_waiting_probability, chances[slots:].sum()),
        (queueing.batch_time, chances @ present / coming),
        (queueing.batch_waiting_time, chances @ (np.arange(states) - present) / coming),
    ):
        assert law(*arguments).magnitude == pytest.approx(right, rel=1e-6, abs=1e-12)


@given(st.floats(0, 0.999), st.integers(1, 300))
def test_a_batch_of_independent_requests_is_servers_of_their_own(busy: float, slots: int) -> None:
    alone = (busy, slots, "2 s", "0 s")
    chance = queueing.waiting_probability(busy, slots).magnitude
    assert queueing.batch_waiting_probability(*alone).magnitude == pytest.approx(chance)
    assert queueing.batch_time(*alone).magnitude == pytest.approx(2)
    wait = queueing.waiting_time("2 s", busy, slots).magnitude
    assert queueing.batch_waiting_time(*alone).magnitude == pytest.approx(wait)


@pytest.mark.parametrize("spread", ["none", "geometric", "two lengths"])
@pytest.mark.parametrize("busy", [0.8, 0.95])
def test_a_server_that_writes_token_by_token(busy: float, spread: str) -> None:
    """A large model on eight GPUs: prompts stop all steps, and of lengths the mean alone counts."""
    random, count, answer, slots = np.random.default_rng(2), 50_000, 512, 813
    prompt, reading, each = 27e-3, 5.2e-3, 25e-6  # s
    lengths = {
        "none": np.full(count, answer),
        "geometric": random.geometric(1 / answer, count),
        "two lengths": np.where(random.random(count) < 0.9, 192, 3392),
    }[spread]
    shared, own_time = answer * reading, prompt + answer * each
    rate = busy * slots / (shared + slots * own_time)
    arrivals = np.cumsum(random.exponential(1 / rate, count))
    now, step, come = 0.0, 0, 0
    batch: list[tuple[int, int]] = []
    left = np.empty(count)
    while come < count or batch:
        if not batch:
            now = max(now, arrivals[come])
        while come < count and arrivals[come] <= now and len(batch) < slots:
            heapq.heappush(batch, (step + lengths[come], come))
            now, come = now + prompt, come + 1
        now, step = now + reading + each * len(batch), step + 1
        while batch and batch[0][0] <= step:
            left[heapq.heappop(batch)[1]] = now
    inside = (left - arrivals)[count // 10 : -count // 10].mean()  # neither filling nor emptying
    time = queueing.batch_time(busy, slots, quantity(shared, "s"), quantity(own_time, "s"))
    assert inside == pytest.approx(time.magnitude, rel=0.05)
