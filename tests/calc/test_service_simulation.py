"""The simulation of a service: against closed forms, against steps one by one, and its laws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, inference, models, quantity, queueing
from calc.planning.plan_nouns import Server
from calc.planning.service import Answers, Demand, Replica, Run, Steps, Trace, simulate
from calc.planning.service.load import poisson
from calc.planning.service.simulation import _until as until
from calc.planning.serving_plan import Plan
from calc.steps.job import Layout

T_999 = 3.883  # of Student's distribution with 19 degrees of freedom: 99.9 % of intervals
SLOTS = 64
TOKENS = 200


def steps(shared: float = 0.0, own: float = 0.0, read: float = 0.0, cached: float = 0.0) -> Steps:
    """Steps that take a time for all, a time for each sequence, and one for each token read."""
    count = np.arange(SLOTS + 1)
    apart = np.where(count, shared + own * count - read * count, 0.0)
    return Steps(read * np.arange(4096), apart, np.full(SLOTS + 1, cached), 0.0)


def replica(made: Steps, slots: int = SLOTS, memory: int = 10**9, chunk: int = 4000) -> Replica:
    return Replica(made, memory, chunk, slots)


def ran(
    rate: float, seed: int, spread: float = 1.0, slots: int = 1, count: int = 40_000, **times: float
) -> tuple[Trace, Run]:
    """Requests of so many tokens, and the steady part of their run in steps of these times."""
    trace = poisson(rate, count, 1, TOKENS, 0, spread, seed=seed)
    return trace, simulate(replica(steps(**times), slots), trace).steady()


def interval(values: Any) -> tuple[float, float]:
    """The mean of a run, and what it may be off by: from the means of twenty parts of it."""
    parts = np.array([each.mean() for each in np.array_split(values, 20)])
    return float(values.mean()), T_999 * float(parts.std(ddof=1)) / math.sqrt(20)


def test_one_server_is_m_m_1() -> None:
    step, rate = 0.01, 0.4
    _, run = ran(rate, 1, shared=step)
    service = quantity((TOKENS - 1) * step, "s")
    busy = queueing.server_utilization(quantity(rate, "request/s"), service)
    mean, error = interval(run.done - run.arrivals)
    assert error < 0.3 * mean
    assert abs(mean - queueing.single_server_time(service, busy).m_as("s")) < error
    late = np.quantile(run.done - run.arrivals, 0.99)
    assert late == pytest.approx(
        queueing.single_server_tail(service, busy, "1%").m_as("s"), rel=0.15
    )


def test_more_clients_than_requests_are_as_many_as_requests() -> None:
    trace = poisson(1, 20, 100, 50, 0.5, 1.0)
    many, all_ = (simulate(replica(steps(0.01)), trace, None, count) for count in (99, 20))
    assert many.done.tolist() == all_.done.tolist()
    assert not many.arrivals.any()


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.5])
def test_one_server_is_m_g_1(spread: float) -> None:
    """The queue before one server, by Pollaczek and Khinchine, whatever the lengths are."""
    step, rate = 0.01, 0.35
    trace, run = ran(rate, 2, spread, shared=step)
    services = (trace.answers - 1) * step
    service = quantity(float(services.mean()), "s")
    busy = queueing.server_utilization(quantity(rate, "request/s"), service)
    variation = float(services.std() / services.mean())
    expected = queueing.single_server_wait(service, busy, variation).m_as("s")
    mean, error = interval(run.first - run.arrivals)
    assert abs(mean - expected) < error


def test_places_are_servers_of_m_m_k() -> None:
    step, rate, places = 0.01, 3.2, 8
    _, run = ran(rate, 3, slots=places, count=60_000, shared=step)
    service = quantity((TOKENS - 1) * step, "s")
    busy = queueing.server_utilization(quantity(rate, "request/s"), service, places)
    expected = queueing.waiting_time(service, busy, places).m_as("s")
    mean, error = interval(run.first - run.arrivals)
    # An arrival waits for the end of the step that is under way, half of it, and reads in the next.
    assert abs(mean - expected - 1.5 * step) < error + 0.5 * step


@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_a_step_for_each_is_a_shared_processor(spread: float) -> None:
    """T_0 + n · T_1 with places for all: `batch_time`, for which of lengths the mean counts."""
    shared, own, rate = 0.004, 0.0005, 3.0
    trace, run = ran(rate, 4, spread, SLOTS, shared=shared, own=own)
    work = (TOKENS - 1) * quantity(1, "s")
    full = shared + SLOTS * own
    busy = rate * (TOKENS - 1) * full / SLOTS
    expected = queueing.batch_time(busy, SLOTS, shared * work, own * work).m_as("s")
    mean, error = interval(run.done - run.first)
    assert abs(mean - expected) < error
    load = replica(steps(shared, own)).under(rate, Demand.mean_of(trace), 0.9)
    assert load.batch == pytest.approx(rate * expected, rel=0.01)
    assert load.mean_tpot * (TOKENS - 1) == pytest.approx(expected, rel=0.01)


def test_places_that_are_few_make_requests_wait() -> None:
    shared, own, rate, places = 0.004, 0.0005, 4.8, 8
    _, run = ran(rate, 5, slots=places, count=60_000, shared=shared, own=own)
    work = (TOKENS - 1) * quantity(1, "s")
    busy = rate * (TOKENS - 1) * (shared + places * own) / places
    laws = busy, places, shared * work, own * work
    expected = queueing.batch_waiting_time(*laws).m_as("s")
    mean, error = interval(run.first - run.arrivals)
    assert abs(mean - expected - 1.5 * (shared + places * own)) < error + 0.01


def one_by_one(copy: Replica, trace: Trace) -> tuple[list[float], list[float], int]:
    """Simulate by the same rules, a step at a time, with nothing kept but what each request has."""
    made, count = copy.steps, len(trace)
    waiting: list[int] = []
    active: list[int] = []  # in the order in which they were let in
    whole, read = trace.prompts.tolist(), trace.cached.tolist()
    start = trace.cached.tolist()
    answers = trace.answers.tolist()
    written = [0] * count  # passes since it was last let in, of which the first writes one token
    kept = made.written

    def takes(each: int) -> float:
        passes = kept * max(0, written[each] - 1)
        return float(whole[each] + (answers[each] if copy.reserves else passes))

    left = [1 + math.ceil((answer - 1) / kept) for answer in answers]
    first, done = [math.nan] * count, [math.nan] * count
    clock, coming, preempted, passes = 0.0, 0, 0, 0
    while coming < count or waiting or active:
        if not waiting and not active:
            clock = max(clock, trace.arrivals[coming])
        while coming < count and trace.arrivals[coming] <= clock:
            waiting.append(coming)
            coming += 1
        while waiting and len(active) < copy.slots:
            writing = 0 if copy.reserves else kept * sum(1 for each in active if written[each])
            if sum(map(takes, [*active, waiting[0]])) + writing >= copy.memory:
                break
            active.append(waiting.pop(0))
        while True:
            writers = [each for each in active if written[each]]
            grown = 0 if copy.reserves else kept * len(writers)
            if sum(map(takes, active)) + grown <= copy.memory:
                break
            places = range(len(active))
            last = active.pop(max(places, key=lambda at: (active[at] not in writers, at)))
            if written[last]:
                whole[last] += kept * (written[last] - 1)
                start[last] = 0
            read[last], written[last] = start[last], 0
            preempted += 1
            waiting.insert(0, last)
        room, pieces, looked_at = copy.chunk - made.checked * len(writers), 0, 0.0
        finished = []
        reading = [one for one in active if one not in writers]
        if writers and reading and not read[reading[0]] and passes % copy.every:
            reading = []
        passes += 1
        for each in reading:
            piece = min(room - pieces, int(whole[each]) - read[each])
            if piece <= 0 and read[each] < int(whole[each]):
                break
            looked_at += piece * (read[each] + piece / 2)
            pieces += piece
            read[each] += piece
            if read[each] == int(whole[each]):
                finished.append(each)
        held = sum(whole[each] + kept * (written[each] - 1) for each in writers)
        clock += float(made.time(len(writers), held, pieces, looked_at))
        for each in writers:
            written[each] += 1
            left[each] -= 1
        for each in finished:
            written[each] = 1
            if math.isnan(first[each]):
                first[each] = clock
                left[each] -= 1
        for each in list(active):
            if written[each] and not left[each]:
                done[each] = clock
                active.remove(each)
    return first, done, preempted


@given(
    st.integers(0, 10**6),
    st.floats(0.5, 60.0),
    st.sampled_from([220, 400, 10**6]),
    st.integers(1, 12),
    st.sampled_from([16, 50, 400]),
    st.booleans(),
    st.sampled_from([(1, 1.0), (3, 2.0), (4, 3.0)]),
    st.sampled_from([1, 2, 9]),
)
def test_against_steps_one_by_one(
    seed: int,
    rate: float,
    memory: int,
    slots: int,
    chunk: int,
    reserves: bool,
    drafted: tuple[int, float],
    every: int,
) -> None:
    """Steps between two events are summed up, and must be what single ones are, to the digit."""
    trace = poisson(rate, 40, 60, 20, 0.5, 1.0, seed=seed)
    small = replace(
        trace, prompts=np.minimum(trace.prompts, 120), answers=np.minimum(trace.answers, 90)
    )
    checked, kept = drafted
    made = replace(steps(0.01, 0.001, 0.0002, 1e-6), checked=checked, written=kept)
    copy = Replica(made, memory, chunk, slots, every=every, reserves=reserves)
    run = simulate(copy, small)
    first, done, preempted = one_by_one(copy, small)
    np.testing.assert_allclose(run.first, first, rtol=1e-9)
    np.testing.assert_allclose(run.done, done, rtol=1e-9)
    assert run.preempted == preempted
    assert not (reserves and preempted)


@given(st.integers(0, 10**6), st.floats(0.1, 30.0), st.floats(0, 2), st.integers(2, SLOTS))
def test_laws_of_every_run(seed: int, rate: float, spread: float, slots: int) -> None:
    """All come and all leave; nobody is faster than its own work; Little's law."""
    trace = poisson(rate, 300, 100, 50, spread, spread, seed=seed)
    made = steps(0.004, 0.0005, 0.0001)
    run = simulate(Replica(made, 10**5, 512, slots), trace)
    assert len(run.done) == len(trace)
    assert np.isfinite(run.done).all()
    assert (run.done >= run.first).all()
    reading = made.together[np.minimum(trace.prompts, 512)]
    assert (run.ttft >= reading * (1 - 1e-9)).all()
    assert (run.done - run.first >= (trace.answers - 1) * (0.004 + 0.0005 - 0.0001) - 1e-9).all()
    times = np.concatenate([run.arrivals, run.done])
    change = np.concatenate([np.ones(len(trace)), -np.ones(len(trace))])
    order = np.argsort(times, kind="stable")
    inside = np.cumsum(change[order])[:-1]
    area = float((inside * np.diff(times[order])).sum())
    span = float(run.done.max() - run.arrivals[0])
    throughput = len(trace) / span
    mean = float((run.done - run.arrivals).mean())
    assert area / span == pytest.approx(throughput * mean)
    assert run.in_flight == pytest.approx(area / span)


@given(st.integers(0, 10**6), st.floats(1, 20))
def test_faster_steps_are_no_slower(seed: int, rate: float) -> None:
    trace = poisson(rate, 200, 100, 50, 1, 1, seed=seed)
    slow, fast = steps(0.008, 0.001, 0.0002), steps(0.004, 0.0005, 0.0001)
    runs = [simulate(Replica(each, 10**5, 512, SLOTS), trace) for each in (slow, fast)]
    assert runs[1].done.mean() <= runs[0].done.mean()
    assert runs[1].ttft.mean() <= runs[0].ttft.mean() * (1 + 1e-9)


def test_what_is_cached_is_not_read() -> None:
    trace = poisson(2, 500, 1000, 20, 0, 0, seed=1)
    made = steps(0.004, 0.0005, 0.0001)
    whole, hit = (
        simulate(replica(made), each).ttft.mean() for each in (trace, trace.with_hits(0.5))
    )
    assert hit == pytest.approx(whole / 2, rel=0.15)
    assert (trace.with_hits(1).cached == 999).all()  # the last token is read in any case


def test_a_memory_that_fills_makes_sequences_start_again() -> None:
    trace = poisson(20, 300, 100, 100, 0, 0, seed=1)
    made = steps(0.004, 0.0005, 0.0001)
    tight, wide = (simulate(replica(made, memory=each), trace) for each in (1000, 10**6))
    assert tight.preempted > 0 == wide.preempted
    assert tight.done.mean() > wide.done.mean()
    with pytest.raises(InputError, match=r"request 1 of the trace needs 201 .* holds 150"):
        simulate(replica(made, memory=150), trace)
    with pytest.raises(InputError, match="chunk must be above 1"):
        simulate(replica(made, chunk=1), trace)


@pytest.mark.parametrize("written", [1.0, 1.7, 2.9])
def test_a_memory_that_fills_loses_no_part_of_a_token(written: float) -> None:
    """Cached tokens that alone take time make of all passes a sum that has no order."""
    trace = poisson(20, 60, 100, 100, 0.5, 0.5, seed=1)
    made = replace(steps(cached=1e-6), checked=3, written=written)
    run = simulate(replica(made, memory=1000), trace, clients=len(trace))
    passes = np.ceil((trace.answers - 1) / written)
    looked_at = passes * trace.prompts + written * passes * (passes - 1) / 2
    assert run.preempted > 20
    assert run.done.max() == pytest.approx(1e-6 * looked_at.sum(), rel=1e-9)


def test_what_kept_both_limits_is_counted() -> None:
    run = Run(
        arrivals=np.array([0.0, 1.0, 2.0]),
        first=np.array([0.5, 3.0, 2.5]),
        done=np.array([1.5, 4.0, 10.0]),
        answers=np.array([11, 11, 11]),
    )
    assert run.elapsed == 10
    assert run.kept(1.0, 0.2) == pytest.approx(1 / 3)
    assert run.kept(math.inf, 0.2) == pytest.approx(2 / 3)
    assert run.at(0.5) == pytest.approx((0.5, 0.1))


def answers(per_doubling: int, key: str = "llama-3-8b", devices: int = 1) -> Answers:
    counts = {"batch": 1, "prompt": 1000, "generated": 200, "devices": devices}
    options = Server("bf16", software="vllm")
    setup = Plan.read(models.get(key), "dgx-h100", counts, options)
    job = replace(setup.job, layout=Layout(tensor=devices))
    return Answers(job, (1000.0, 1200.0), 4096, 512, per_doubling)


@pytest.mark.parametrize(
    ("key", "devices"), [("llama-3-8b", 1), ("mixtral-8x7b", 4), ("granite-4-h-small", 1)]
)
def test_tables_are_the_laws(key: str, devices: int) -> None:
    """Tables hold for steps that read and write, and between points, where tiles make waves."""
    from calc import expectation, machines
    from calc.steps.job import Job, Layout, Tokens

    made = answers(2, key, devices)
    assert isinstance(made.expected, Steps)
    for writing, context, reading, before in [
        (1, 1100, 0, 0),
        (64, 1100, 0, 0),
        (100, 1500, 0, 0),
        (64, 1100, 512, 0),
        (30, 1100, 700, 1024),
        (0, 1, 1024, 0),
    ]:
        load = Tokens(writing, context, reading, max(reading, 1), before)
        job = Job.of(key, "dgx-h100", Layout(tensor=devices), software="vllm")
        law = expectation.serving_pass(job, load)
        step = writing, writing * context, reading, reading * (before + reading / 2)
        least = made.expected.launched if reading else 0.0  # a pass by itself is not held up by it
        by_law = max(law.total.m_as("s"), least)
        assert made.expected.time(*step) == pytest.approx(by_law, rel=0.08)
        assert made.lower(*step) <= made.expected.time(*step)
        assert made.lower(*step) <= made.upper.time(*step)
    for tokens in (512, 2048):
        law = inference.prefill(models.get(key), machines.get("dgx-h100"), tokens, 1, devices)
        assert made.lower(0, 0, tokens, tokens**2 / 2) == pytest.approx(
            law.lower.m_as("s"), rel=0.03
        )


@pytest.mark.parametrize("key", ["deepseek-v3-2", "deepseek-v3", "gpt-oss-120b", "llama-3-70b"])
def test_pieces_of_a_long_prompt_take_as_long_as_passes_that_read_them(key: str) -> None:
    """Chosen positions and windows, too, whose attention grows ever less with what came before."""
    from calc import expectation
    from calc.steps.job import Job, Layout, Tokens

    piece, prompt = 8192, 32768
    job = Job.of(key, "dgx-b200", Layout(tensor=4), software="sglang").with_context(prompt)
    made = Answers(job, (float(prompt), prompt + 200.0), piece, 4).expected
    assert isinstance(made, Steps)
    times, laws = 0.0, 0.0
    for before in range(0, prompt, piece):
        times += float(made.time(0, 0, piece, piece * (before + piece / 2)))
        load = Tokens(reading=piece, prompt=piece, before=before)
        laws += expectation.serving_pass(job, load).total.m_as("s")
    assert times == pytest.approx(laws, rel=0.12)


def test_against_itself_with_half_the_step_of_its_tables() -> None:
    trace = poisson(8, 3000, 1000, 200, 1, 1, seed=7)
    means = []
    for per_doubling in (2, 4):
        made = answers(per_doubling).expected
        assert isinstance(made, Steps)
        run = simulate(Replica(made, 300_000, 2048, 512), trace).steady()
        means.append((run.ttft.mean(), run.tpot.mean()))
    assert means[0] == pytest.approx(means[1], rel=0.03)


@pytest.mark.parametrize("first", [1e-4, 0.01, 3.0])
@pytest.mark.parametrize("more", [0.0, 1e-12, 1e-5, 0.02])
def test_so_many_steps_pass_before_a_time_and_one_fewer_do_not(first: float, more: float) -> None:
    """The first takes a time, and each after it so much more than the one before."""
    for time in (0.5 * first, first, 1.5 * first, 17 * first, 1234.5 * first):
        steps = until(time, first, more)
        assert steps >= 1
        assert steps * first + more * steps * (steps - 1) / 2 >= time * (1 - 1e-6)
        fewer = steps - 1
        assert fewer == 0 or fewer * first + more * fewer * (fewer - 1) / 2 < time * (1 + 1e-6)


def test_the_share_that_is_kept_is_the_percentile_of_the_limit() -> None:
    """A limit that is the time at a percentile is kept by that share, and none is kept by all."""
    copy = replica(steps(0.004, 0.0005, 0.0001))
    demand = Demand.mean_of(poisson(1, 3000, 100, 50, 1, 1))
    for percentile in (0.8, 0.99):
        late = copy.under(4, demand, percentile)
        assert copy.kept(4, demand, late.ttft, math.inf) == pytest.approx(percentile, abs=0.01)
        assert copy.kept(4, demand, math.inf, late.tpot) == pytest.approx(percentile, abs=0.02)
    assert copy.kept(4, demand, math.inf, math.inf) == pytest.approx(1, abs=1e-3)
    assert copy.kept(1e5, demand, math.inf, math.inf) == 0


@pytest.mark.slow
def test_the_closed_form_against_the_simulation() -> None:
    """Means within a tenth and late first tokens within a fifth, up to two thirds of the most.

    The time of a late token is that of answers of a few tokens, and is within three tenths.
    """
    made = answers(2).expected
    assert isinstance(made, Steps)
    copy = Replica(made, 300_000, 2048, 512)
    for spread in (0.0, 1.0):
        demand = Demand.mean_of(poisson(1, 20_000, 1000, 200, spread, spread))
        most = copy.most(demand, 0.99, math.inf, 0.2)
        for part in (0.1, 0.4, 0.66):
            rate = part * most
            load = copy.under(rate, demand, 0.99)
            run = simulate(copy, poisson(rate, 20_000, 1000, 200, spread, spread)).steady()
            late = run.at(0.99)
            assert load.mean_tpot == pytest.approx(run.tpot.mean(), rel=0.1)
            assert load.ttft == pytest.approx(late[0], rel=0.25)
            assert load.tpot == pytest.approx(late[1], rel=0.35)


def test_rarer_waits_are_longer_where_all_requests_are_alike() -> None:
    """Prompts of one length differ by their wait alone, whose tail is that of one server."""
    copy, rate = replica(steps(0.004, 0.0005, 0.0004)), 4.0
    demand = Demand.mean_of(poisson(1, 100, 500, 50, 0, 0))
    shares = (0.5, 0.8, 0.9, 0.99, 0.999)
    times = [copy.under(rate, demand, share).ttft for share in shares]
    assert times[0] < times[1] < times[2] < times[3] < times[4]
    service = quantity(500 * 0.0004, "s")
    busy = queueing.server_utilization(quantity(rate, "request/s"), service)
    # Of fixed lengths the tail is that of half the mean wait of lengths that vary as their mean.
    tail = queueing.single_server_wait(service, busy, 0.0).m_as("s") / busy.m_as("")
    assert times[4] - times[3] == pytest.approx(tail * math.log(10), rel=0.1)
