"""A closed loop, as servers are benchmarked: each client asks again as soon as its answer is whole.

`calc.plan` and `calc.compare` with users, published loops and the fit of a server that was observed
all ask here. Clients of a benchmark all ask first at once, and keep in step where lengths are
alike: all of their requests count. Users are met in the middle of their answers, at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calc.catalog import engines
from calc.catalog.machines import NotMeasured
from calc.core.arrays import numpy
from calc.planning.service.load import Trace
from calc.planning.service.queue import Replica
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.step_tables import Answers
from calc.steps import device_memory
from calc.steps.expectation import Missing
from calc.steps.job import Job

ROUNDS = 10  # requests of each client of a benchmark, all of which count
MET = 4  # requests of each user, of which the first and the last are not counted
FEWEST = 200  # users, in as many runs as have so many, each from another moment
PERCENTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Clients:
    """The clients of a server, and what of their requests and its steps is not as usual."""

    count: Any
    """How many there are; of a plan an array too."""
    shortest: float = 1.0
    """Share of the lengths asked for from which on lengths are drawn; 1 where all are alike."""
    chunk: int = 0
    """Tokens of a step at most; 0 for those of the engine's own server."""
    waits: int = 0
    """Steps that prompts wait for others to be read with."""
    at_once: bool = False
    """Whether all ask first at once, as benchmarks do; users are met in the middle of answers."""

    def lengths(self, prompt: float, generated: float) -> tuple[float, float]:
        """Tokens of a prompt, and of it with its answer, in the mean."""
        mean = (1 + self.shortest) / 2
        return mean * prompt, mean * (prompt + generated)

    def of_copy(self, job: Job) -> int:
        """The clients that come to one copy of the model, which share them evenly."""
        return max(1, round(float(self.count) / int(job.layout.data)))


@dataclass(frozen=True)
class Loop:
    """Times that the clients of a loop meet, in seconds: the means of requests, and percentiles."""

    ttft: float
    tpot: float
    late: Mapping[float, tuple[float, float]]
    """Both times at each of PERCENTILES."""


def served(
    job: Job,
    lengths: tuple[float, float],
    sequences: int,
    chunk: int = 0,
    overlap: bool = True,
    slots: int = 0,
) -> Replica:
    """A copy of a job's server, with its engine's own limits and so many sequences at most.

    A script may set the tokens of a step, its `chunk`, and the sequences, its `slots`, itself.

    Its steps are as expected, where a rate that was not measured is refused with its sentence; or
    at published rates, their parts one after the other.

    >>> job = Job.of("llama-3-8b", "dgx-h100", software="vllm")
    >>> served(job, (1000, 1200), 64).chunk
    8192
    """
    tokens, limit = engines.largest_step(job.software.key, job.measured_on.device)
    tokens, most = chunk or tokens, int(min(slots or limit, sequences))
    answers = Answers(job, lengths, tokens + most, most)
    steps = answers.expected if overlap else answers.upper
    if isinstance(steps, Missing):
        raise NotMeasured(steps.reason)
    memory = device_memory.cache_tokens(job, None, sum(lengths) / 2)
    batches = int(job.layout.pipeline)
    return Replica(steps, memory, tokens, most, batches=batches).run_by(job.software)


def closed_loop(
    job: Job, clients: Clients, prompt: float, generated: float, overlap: bool = True
) -> Loop:
    """Simulate what so many clients of a job's servers meet, by one copy and its share.

    >>> job = Job.of("llama-3-8b", "dgx-h100", software="vllm")
    >>> for at_once in (True, False):
    ...     loop = closed_loop(job, Clients(32, at_once=at_once), 1000, 200)
    ...     print(f"{loop.ttft:.3f} s, {1e3 * loop.tpot:.1f} ms")
    0.431 s, 9.2 ms
    0.055 s, 10.4 ms
    """
    lengths, count = clients.lengths(prompt, generated), clients.of_copy(job)
    replica = served(job, lengths, count, clients.chunk, overlap)
    replica = replace(replica, waits=clients.waits)
    if clients.at_once:
        requests = uniform(ROUNDS * count, prompt, generated, clients.shortest)
        return of_runs([simulate(replica, requests, None, count)])
    runs = []
    for seed in range(-(-FEWEST // count)):
        requests = uniform(MET * count, prompt, generated, clients.shortest, seed)
        run = simulate(replica, under_way(requests, count, seed), None, count)
        runs.append(run.between(count, (MET - 1) * count))
    return of_runs(runs)


def uniform(
    count: int, prompt: float, answer: float, shortest: float = 1.0, seed: int = 0
) -> Trace:
    """Draw so many requests, all at the start, with lengths from a share of these on.

    >>> uniform(20, 100, 10).prompts.tolist() == [100] * 20
    True
    """
    random = numpy.random.default_rng(seed)
    prompts, answers = (
        random.integers(max(1, round(shortest * longest)), round(longest) + 1, count)
        for longest in (prompt, answer)
    )
    return Trace(numpy.zeros(count), prompts, answers, numpy.zeros_like(prompts))


def under_way(requests: Trace, count: int, seed: int) -> Trace:
    """Return requests of which so many have been read, with some of their answers written."""
    written = numpy.random.default_rng(seed).integers(0, requests.answers)
    written[count:] = 0
    prompts = requests.prompts + written
    read = numpy.where(numpy.arange(len(requests)) < count, prompts - 1, 0)
    return replace(requests, prompts=prompts, answers=requests.answers - written, cached=read)


def of_runs(runs: Sequence[Run]) -> Loop:
    """The means of the requests of runs, and their percentiles."""
    firsts = numpy.concatenate([run.ttft for run in runs])
    rest = numpy.concatenate([run.tpot for run in runs])
    rest = rest if len(rest) else numpy.zeros(1)
    both = (numpy.quantile(times, PERCENTILES).tolist() for times in (firsts, rest))
    late = dict(zip(PERCENTILES, zip(*both, strict=True), strict=True))
    return Loop(float(firsts.mean()), float(rest.mean()), late)
