"""A closed loop, as servers are benchmarked: each client asks again as soon as its answer is whole.

`calc.plan` and `calc.compare` with users, published loops and the fit of a server that was observed
all ask here. All clients ask first at once, as benchmarks do, and all requests of a run count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from calc.catalog import engines
from calc.catalog.machines import NotMeasured
from calc.core.arrays import numpy
from calc.planning.service.load import Trace
from calc.planning.service.queue import Replica
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.steps import Answers, Steps
from calc.steps import device_memory
from calc.steps.expectation import Missing
from calc.steps.job import Job

ROUNDS = 10  # requests of each client, all of which count
CHUNK = 8192
"""Tokens of a step at most by a program whose limits are not in the data: those of most engines."""


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

    def lengths(self, prompt: float, generated: float) -> tuple[float, float]:
        """Tokens of a prompt, and of it with its answer, in the mean."""
        mean = (1 + self.shortest) / 2
        return mean * prompt, mean * (prompt + generated)

    def of_copy(self, job: Job) -> int:
        """The clients that come to one copy of the model, which share them evenly."""
        return max(1, round(float(self.count) / int(job.layout.data)))


@dataclass(frozen=True)
class Loop:
    """Times that the clients of a loop meet, in seconds, the means of all requests."""

    ttft: float
    tpot: float


def served(job: Job, lengths: tuple[float, float], sequences: int, chunk: int = 0) -> Replica:
    """A copy of a job's server, with its engine's own limits and so many sequences at most.

    Its steps are as expected, and a rate that was not measured is refused with its sentence.

    >>> job = Job.of("llama-3-8b", "dgx-h100", software="vllm")
    >>> served(job, (1000, 1200), 64).chunk
    8192
    """
    answers, chunk, slots = _answers(job, lengths, sequences, chunk)
    steps = answers.expected
    if isinstance(steps, Missing):
        raise NotMeasured(steps.reason)
    return _replica(job, lengths, steps, chunk, slots)


def closed_loop(job: Job, clients: Clients, prompt: float, generated: float) -> Loop:
    """Simulate what so many clients of a job's servers meet, by one copy and its share.

    >>> job = Job.of("llama-3-8b", "dgx-h100", software="vllm")
    >>> loop = closed_loop(job, Clients(32), 1000, 200)
    >>> f"{loop.ttft:.3f} s, {1e3 * loop.tpot:.1f} ms"
    '0.432 s, 10.3 ms'
    """
    lengths, count = clients.lengths(prompt, generated), clients.of_copy(job)
    replica = served(job, lengths, count, clients.chunk)
    return _simulated(replica, clients, uniform(count, prompt, generated, clients.shortest))


def without_overlap(job: Job, clients: Clients, prompt: float, generated: float) -> Loop:
    """Return the same at published rates, the parts of each step one after the other."""
    lengths, count = clients.lengths(prompt, generated), clients.of_copy(job)
    answers, chunk, slots = _answers(job, lengths, count, clients.chunk)
    replica = _replica(job, lengths, answers.upper, chunk, slots)
    return _simulated(replica, clients, uniform(count, prompt, generated, clients.shortest))


def uniform(clients: int, prompt: float, answer: float, shortest: float = 1.0) -> Trace:
    """Requests of so many clients, all at the start, with lengths drawn from a share of these on.

    >>> uniform(2, 100, 10).prompts.tolist() == [100] * 20
    True
    """
    random, count = numpy.random.default_rng(0), ROUNDS * clients
    prompts, answers = (
        random.integers(max(1, round(shortest * longest)), round(longest) + 1, count)
        for longest in (prompt, answer)
    )
    return Trace(numpy.zeros(count), prompts, answers, numpy.zeros_like(prompts))


def _answers(
    job: Job, lengths: tuple[float, float], sequences: int, chunk: int
) -> tuple[Answers, int, int]:
    """The steps of a copy, and the most tokens and sequences of one by its engine."""
    device = job.measured_on.device
    tokens, most = CHUNK, sequences
    if job.software.key in engines.names():
        tokens, most = engines.get(job.software.key).largest_step(device, engines.visible(device))
    tokens, most = chunk or tokens, min(most, sequences)
    return Answers(job, lengths, tokens + most, most), tokens, most


def _replica(
    job: Job, lengths: tuple[float, float], steps: Steps, chunk: int, slots: int
) -> Replica:
    memory = device_memory.cache_tokens(job, None, sum(lengths) / 2)
    return Replica(steps, memory, chunk, slots).run_by(job.software)


def _simulated(replica: Replica, clients: Clients, requests: Trace) -> Loop:
    count = len(requests) // ROUNDS
    return means(simulate(replace(replica, waits=clients.waits), requests, None, count))


def means(run: Run) -> Loop:
    """The means of a run's requests."""
    several = run.tpot
    return Loop(float(run.ttft.mean()), float(several.mean()) if len(several) else 0.0)
