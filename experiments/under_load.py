"""Latencies of published servers under load, beside the simulation: TTFT and TPOT.

Closed loops of so many clients, MLPerf's scenarios at a rate, and two traces request by request.
How a server is set follows its benchmark's own scripts where these are published, else its engine;
`data/published/README.md` has the rules, which are the same for all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from calc.catalog import machines, models, software
from calc.core.arrays import numpy
from calc.core.errors import InputError
from calc.core.records import read_rows, read_toml
from calc.planning.service import loops
from calc.planning.service.design import made_for
from calc.planning.service.load import Trace, poisson, read_trace
from calc.planning.service.loops import Clients, Loop, of_runs, served, uniform
from calc.planning.service.queue import Replica
from calc.planning.service.simulation import Run, simulate
from calc.published import closed_loops, datasets
from calc.published.reading import FOLDER, Row, UnusableRowError
from calc.published.serving_rows import FULL_EXPERTS, weights_share
from calc.steps.job import Formats, Job, Layout

PERCENTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
REQUESTS = 2000  # of a run at a rate, at least
LEAST_TIME = 600.0  # seconds that a run of MLPerf lasts at least
SPREAD = 0.5  # of lengths about their mean, over it, where it is not published
TIMES = ("ttft", "tpot")
KEPT = 0.99  # of the requests of a run, which is else no result
LEAST_SHARE, HALVINGS = 0.1, 3  # of what is expected of steps, to which it is looked for
SEQUENCES = 1024  # of a copy, where no configuration is published
TURNS = 4  # times that two pools are asked in turn for what they leave each other


class Setting(NamedTuple):
    """Setting in which scripts start a server of a model, where it is not as engines start."""

    software: str
    model: str = ""
    chunk: int = 0
    """Tokens of a step; 0 where there is room for a prompt, a token of each client, and `room`."""
    room: int = 64
    waits: int = 0
    """Steps that prompts wait for others to be read with."""
    at: tuple[int, int] | None = None
    """Lengths for which alone it holds."""
    slices: int = 0
    """Slices below which alone it holds."""
    before: str = "9"
    """A day before which alone it holds."""
    machines: tuple[str, ...] = ()
    """Machines for which alone it holds."""
    format: str = ""
    """The format of weights for which alone it holds."""
    over: int = 0
    """Clients above which alone it holds."""


SETTINGS = (  # the first that holds [inferencex-scripts], files benchmarks/*_trt*, dsr1_fp4_b200*
    Setting("tensorrt-llm", "llama-3-1-70b", 16384, waits=20, at=(1024, 1024), slices=8),
    Setting("tensorrt-llm", "llama-3-1-70b", 16384),
    Setting("tensorrt-llm", "gpt-oss-120b", 20000),
    Setting("tensorrt-llm", "deepseek-v3", before="2026"),
    # On AMD's devices four steps write before prompts are read: half of that in the mean. Files
    # dsr1_*_mi*.sh.
    Setting("sglang", "deepseek-v3", 32768, waits=2, at=(8192, 1024), format="mxfp4", over=32),
    Setting("sglang", "deepseek-v3", 196608, waits=2, machines=("mi355x-8",)),
    Setting("sglang", "deepseek-v3", 131072, waits=2, machines=("mi300x-8", "mi325x-8")),
    # Requests are looked for at every 30th step: half of that in the mean.
    Setting("sglang", "deepseek-v3", 16384, waits=15),
)
PLANNED = (  # by aiconfigurator [nvidia-aiconfigurator-benchmark]
    Setting("vllm", room=1500),
    Setting("tensorrt-llm", room=1500),
    # In SGLang's steps it mixes prompts, which no row shows.
)


@dataclass(frozen=True)
class Met:
    """Times under load, measured and simulated, by name in seconds; or why nothing is expected."""

    id: str
    job: Job | None
    measured: Mapping[str, float]
    expected: Mapping[str, float]
    reason: str = ""
    kind: str = ""
    """What of: agg or disagg, a scenario, a trace."""
    factor: float = 1.0
    """Share of the expected times of steps that was taken, since a longer one is ruled out."""
    unshortened: Mapping[str, float] = field(default_factory=dict)
    """What would be expected if nothing were ruled out."""

    @property
    def errors(self) -> dict[str, float]:
        """Measured over expected, less one."""
        return {name: self.measured[name] / time - 1 for name, time in self.expected.items()}


def closed_loop(row: Row) -> Met:
    """A row of `calc.published.closed_loops` beside the simulation of its clients.

    >>> met = closed_loop(next(row for row in closed_loops.rows() if row["mode"] == "agg"))
    >>> sorted(met.expected), met.kind
    (['tpot', 'ttft'], 'agg')
    """
    try:
        job = closed_loops.job_of(row)
        run = _apart(row, job) if row["mode"] == "disagg" else together(row, job)
    except InputError as reason:
        return Met(row.id, None, row.measured, {}, str(reason), row["mode"])
    return Met(row.id, job, row.measured, run, kind=row["mode"])


def together(row: Row, job: Job) -> dict[str, float]:
    """Means of a row's clients, as `calc.plan` has them of its users.

    >>> row = next(row for row in closed_loops.rows() if row["mode"] == "agg")
    >>> sorted(together(row, closed_loops.job_of(row)))
    ['tpot', 'ttft']
    """
    loop = loops.closed_loop(job, clients_of(row, job), row["input"], row["output"])
    return _means(loop)


def _means(loop: Loop) -> dict[str, float]:
    return {"ttft": loop.ttft, "tpot": loop.tpot}


def clients_of(row: Row, job: Job) -> Clients:
    """The clients of a row, and how its benchmark's scripts start the server.

    >>> row = next(row for row in closed_loops.rows() if row["mode"] == "agg")
    >>> clients_of(row, closed_loops.job_of(row)).count
    16
    """
    chunk, setting = 0, _setting(row, job)
    if setting is not None:
        chunk = setting.chunk or row["clients"] + row["input"] + setting.room
    waits = 0 if setting is None else setting.waits
    return Clients(row["clients"], closed_loops.shortest(row), chunk, waits, at_once=True)


def _setting(row: Row, job: Job) -> Setting | None:
    for one in SETTINGS if closed_loops.of_inferencex(row) else PLANNED:
        if (
            one.software == job.software.key
            and one.model in ("", job.model.key)
            and one.at in (None, (row["input"], row["output"]))
            and (not one.slices or job.layout.tensor < one.slices)
            and row["day"] < one.before
            and (not one.machines or row["machine"] in one.machines)
            and one.format in ("", row["format"])
            and row["clients"] > one.over
        ):
            return one
    return None


def _apart(row: Row, job: Job) -> dict[str, float]:
    """Servers that read, and servers that write: each has the clients that the other leaves it.

    A client is with those that write for as many steps as its answer has tokens, and in between
    with one of those that read, which is simulated; both shares follow from one another.
    """
    readers, clients = closed_loops.job_of(row, "readers_"), clients_of(row, job)
    lengths = clients.lengths(row["input"], row["output"])
    copies = row["readers"] * readers.layout.data
    reading = max(1, round(row["clients"] / copies))
    reader = served(readers, lengths, reading)
    writer_copies = row["servers"] * job.layout.data
    writer = served(job, lengths, max(1, round(row["clients"] / writer_copies)))
    trace = uniform(loops.ROUNDS * reading, row["input"], row["output"], clients.shortest)
    trace = replace(trace, answers=numpy.ones_like(trace.answers))
    ttft, tpot = 0.0, float(writer.steps.time(1, lengths[0]))
    for _ in range(TURNS):
        away = (lengths[1] - lengths[0]) * tpot
        ttft = float(simulate(reader, trace, None, reading, away).ttft.mean())
        share = away / (away + ttft)
        writing = min(writer.slots, max(1, round(share * row["clients"] / writer_copies)))
        tpot = float(writer.steps.time(writing, writing * sum(lengths) / 2))
    return {"ttft": ttft, "tpot": tpot}


def at_rate(row: Mapping[str, str]) -> Met:
    """A result of MLPerf beside the simulation at the rate of requests that it completed.

    >>> at_rate(datasets.mlperf_rows()[0]).kind
    'Server'
    """
    measured = {
        f"{name} p{100 * share:g}": float(row[f"{name}_p{100 * share:g}"]) / 1e3
        for share in PERCENTILES
        for name in ("ttft", "tpot")
    }
    try:
        job, copies = _mlperf_job(row)
        pools = _mlperf_pools(row, job, copies)
    except InputError as reason:
        return Met(row["id"], None, measured, {}, str(reason), row["scenario"])
    factor, expected, unshortened = _within_limits(row, pools)
    kind = row["scenario"]
    return Met(row["id"], job, measured, expected, "", kind, factor, unshortened)


class Pool(NamedTuple):
    """One copy of some servers of a row, and the requests that come to it."""

    replica: Replica
    trace: Trace
    times: tuple[str, ...]
    """The times of which its run is."""


def _mlperf_pools(row: Mapping[str, str], job: Job, copies: int) -> list[Pool]:
    """The servers of a row: all alike, or those that read and those that write."""
    prompt, answer = float(row["prompt"]), float(row["answer"])
    spreads = {
        f"{part}_spread": float(row[f"{column}_spread"] or SPREAD)
        for part, column in (("prompt", "prompt"), ("generated", "answer"))
    }
    lengths, slots = (prompt, prompt + answer), int(row["sequences"] or SEQUENCES)

    def pool(one: Job, copies: int, chunk: str, does: str, times: tuple[str, ...]) -> Pool:
        rate = float(row["rate"]) / copies
        count = max(REQUESTS, round(LEAST_TIME * rate))
        trace = poisson(rate, count, prompt, answer, seed=0, **spreads)
        replica = served(one, lengths, slots, int(chunk or 0), slots=slots)
        # Submitters let TensorRT-LLM run as many as memory holds at the moment.
        if one.model.experts is not None and one.layout.tensor == 1:
            replica = replace(replica, steps=replica.steps.scaled(1 / FULL_EXPERTS))
        replica = replace(replica, every=int(row["every"] or 1), reserves=False)
        return Pool(replica, made_for(trace, does), times)

    if not row["readers"]:
        return [pool(job, copies, row["chunk"], "both", TIMES)]
    readers, writers = int(row["readers"]), int(row["servers"]) * int(job.layout.data)
    reader = replace(job, layout=Layout(tensor=int(row["readers_tensor"])))
    return [
        pool(reader, readers, row["readers_chunk"], "prefill", TIMES[:1]),
        pool(job, writers, row["chunk"], "decode", TIMES[1:]),
    ]


def _within_limits(
    row: Mapping[str, str], pools: list[Pool]
) -> tuple[float, dict[str, float], dict[str, float]]:
    """The share of the expected times of steps at which limits are kept, times there and without.

    A result is one where 99 of 100 requests kept the limits of their scenario. Steps at which these
    would not be kept were not as long as they are expected to be: they are taken to be as much
    shorter, all alike, as it needs.
    """
    data = datasets.named(row["id"])
    limits = data.limits.get(row["scenario"]) if data else None
    factor = 1.0
    expected: dict[str, float] = {}
    unshortened: dict[str, float] = {}
    for one in pools:
        most = [limits[TIMES.index(name)] if limits else math.inf for name in one.times]
        shorter, run, first = _kept(one, most)
        factor = min(factor, shorter)
        for times, of in ((expected, run), (unshortened, first)):
            for share in PERCENTILES:
                both = dict(zip(TIMES, of.at(share), strict=True))
                times |= {f"{name} p{100 * share:g}": both[name] for name in one.times}
    return factor, expected, unshortened


def _kept(pool: Pool, limits: Sequence[float]) -> tuple[float, Run, Run]:
    """The largest share of a step's time, 1 at most, at which limits are kept, and runs at both."""

    def run_of(factor: float) -> tuple[bool, Run]:
        replica = replace(pool.replica, steps=pool.replica.steps.scaled(factor))
        run = simulate(replica, pool.trace).steady()
        both = dict(zip(TIMES, run.at(KEPT), strict=True))
        return all(both[name] <= most for name, most in zip(pool.times, limits, strict=True)), run

    low, high = 1.0, 1.0
    holds, run = run_of(low)
    whole = run
    while not holds and low > LEAST_SHARE:
        low, high = 0.9 * low, low
        holds, run = run_of(low)
    for _ in range(HALVINGS if low < high else 0):
        middle = (low + high) / 2
        holds, other = run_of(middle)
        low, high, run = (middle, high, other) if holds else (low, middle, run)
    return low, run, whole


def _mlperf_job(row: Mapping[str, str]) -> tuple[Job, int]:
    """Return what a row runs, and how many copies of it share its requests.

    Where no configuration of its submitter is published, a copy takes as few devices as its weights
    fill to half at most.
    """
    if row["unread"]:
        raise UnusableRowError(row["unread"])
    machine, devices = machines.get(row["machine"]), int(row["devices"])
    program = software.get(row["software"])
    dtype = closed_loops.DTYPES[row["format"]]
    if dtype not in machine.device.dtypes:
        dtype = "bf16"
    sizes = Formats(dtype, row["format"], row["kv"] or "fp8")
    job = Job(models.get(row["model"]), machine, Layout(), sizes, program)
    if row["tensor"]:
        slices = int(row["tensor"])
        data, experts = (int(row[name] or 1) for name in ("data", "experts"))
        job = replace(job, layout=Layout(data, slices, experts=experts))
    else:
        slices = 1
        while slices < devices and weights_share(job) > 1 / 2:
            slices *= 2
            job = replace(job, layout=Layout(tensor=slices))
    return job, max(1, devices // slices)


@cache
def _traces() -> dict[str, dict[str, str]]:
    return read_toml(FOLDER / "traces.toml")


def traces() -> tuple[str, ...]:
    """The names of the runs whose requests were recorded one by one.

    >>> traces()
    ('rtx-4090', 'rtx-pro-6000')
    """
    return tuple(_traces())


def replayed(name: str) -> tuple[Met, Run, Run]:
    """A recorded run: the means of its requests beside the simulation's, and both one by one.

    >>> met, measured, expected = replayed("rtx-4090")
    >>> len(measured.first) == len(expected.first) == 300
    True
    """
    about = _traces()[name]
    path = FOLDER / f"trace_{name}.csv"
    trace = read_trace(path)
    table = list(read_rows(path))
    first, done = (numpy.array([float(line[at]) for line in table]) for at in ("first", "done"))
    measured = Run(trace.arrivals, first, done, trace.answers)
    layout = Layout(tensor=int(about["tensor"]))
    job = Job.of(about["model"], about["machine"], layout, software=about["software"])
    lengths = float(trace.prompts.mean()), float((trace.prompts + trace.answers).mean())
    replica = served(job, lengths, int(about["sequences"]), int(about["chunk"]))
    if "cache" in about:
        replica = replace(replica, memory=int(about["cache"]))
    run = simulate(replica, trace)
    met, expected = (_means(of_runs([each])) for each in (measured, run))
    return Met(name, job, met, expected, kind="trace"), measured, run
