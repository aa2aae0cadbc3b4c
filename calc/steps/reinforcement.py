"""Reinforcement learning of language models: answers are generated, and trained on.

`rollouts.Lengths` says how long answers are, and `step` puts generation, training and the new
weights of the engines together for a job of `calc.Job`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from calc.core.arguments import check_is, number, truth, whole_number
from calc.core.report import Reported, Table
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.rollouts import Lengths, weight_update_time
from calc.networks import transformer
from calc.steps import timing
from calc.steps.job import Job, Tokens

GRID = 16  # parts of a generation in which batch and context are taken as constant
HALVINGS = 200


@dataclass(frozen=True)
class RolloutStep(Reported):
    """One step of reinforcement learning, part after part on the same devices."""

    generation: Quantity
    """Until the longest answer of all engines is complete."""
    even: Quantity
    """What generation would take if all answers were of the average length."""
    scoring: Quantity
    """Forward passes over the answers, for the probabilities of their tokens."""
    training: Quantity
    update: Quantity
    """Until the engines have the new weights."""
    tokens: Quantity
    """Tokens of all answers."""
    devices: int

    @cached_property
    def tables(self) -> list[Table]:
        names = "generation", "scoring", "training", "update", "total", "tail", "throughput"
        return [Table([(name, str(getattr(self, name))) for name in names], head=("", "step"))]

    @property
    def total(self) -> Quantity:
        return self.generation + self.scoring + self.training + self.update

    @property
    def tail(self) -> Quantity:
        """Share of the generation that the unequal lengths cost."""
        return (1 - self.even / self.generation).to("%")

    @property
    def generating(self) -> Quantity:
        """Share of the step that is generation."""
        return (self.generation / self.total).to("%")

    @property
    def throughput(self) -> Quantity:
        """Tokens of answers for each device and second."""
        return (self.tokens / self.total / self.devices).to("token/s")


def writing_times(
    job: Job, lengths: Lengths, answers: int, measured: bool = True, among: int = 1
) -> tuple[list[float], list[float]]:
    """Return how long an engine's answers are in tokens, and the seconds after which they are.

    Equation: T(n) = Σ T_step(B(t), c + t), t < n

    B(t) answers are still being written, each with its prompt of c tokens, and T_step is the time
    of a pass of the job, which is one engine: what is expected by measured rates, or else the lower
    bound. Prompts are read at once, and take little. Of engines that are waited for together, the
    slowest counts: `among` is the number of their answers, the longest of which is this engine's.

    Source: pope2023efficiently

    >>> engine = Job.of("llama-3-8b", "dgx-h100")
    >>> tokens, seconds = writing_times(engine, Lengths(1000, 4096), 64)
    >>> round(tokens[-1]), round(seconds[-1], 1)
    (3926, 24.6)
    """
    Job.check(job)
    _check_lengths(lengths)
    count = whole_number("writing_times(): answers", answers)
    truth("writing_times(): measured", measured)
    whole_number("writing_times(): among", among)
    part = lengths.longest(max(count, among)) / GRID
    tokens, seconds = [0.0], [0.0]
    for index in range(GRID):
        middle = (index + 0.5) * part
        writing = count * lengths.unfinished(middle)
        tokens.append(tokens[-1] + part)
        seconds.append(seconds[-1] + part * _pass(job, writing, lengths.prompt + middle, measured))
    return tokens, seconds


def _pass(job: Job, writing: float, context: float, measured: bool) -> float:
    """Seconds of the pass that writes a token of each answer."""
    load = Tokens(writing=max(1.0, round(writing)), context=float(round(context)))
    time = timing.step(job, load).expected if measured else None
    return float((time or timing.bounds(job, load).lower).m_as("s"))


def step(
    job: Job,
    lengths: Lengths,
    answers: int,
    *,
    mfu: Annotated[QuantityLike, ""] = 0.3,
    scored: int = 1,
    recomputed: bool = True,
    update_bandwidth: Annotated[QuantityLike, "byte/s"] = "60 GB/s",
    measured: bool = True,
) -> RolloutStep:
    """A synchronous step: all devices generate in engines, score, train, and take new weights.

    Equation: T = T_g + (s + 3 + r) · F · D / (N · R_peak · U) + W / BW

    The layout has an engine for each copy (DP), with as many devices as slices (TP): the engines
    share `answers` out evenly and all wait for the longest of them. D tokens of F operations are
    scored s times and trained on once by all N devices, with the forward pass again where layers
    are `recomputed`, at an assumed utilisation U. W are the weights.

    Source: nemorl2026performance, moonshot2025checkpoint

    >>> from calc import Layout
    >>> job = Job.of("qwen-3-30b-a3b", "dgx-h100", Layout(data=16, tensor=2))
    >>> found = step(job, Lengths(3203, 4096), 2048)
    >>> print(found.total, found.generating, found.tail)
    100.3 s 71.82% 19.48%

    Parameters
    ----------
    job
        the model on its machine, with an engine for each copy: a `calc.Job`
    lengths
        how long answers are: `Lengths`
    answers
        answers that are written at once
    mfu
        share of the peak that the model's own operations account for (MFU)
    scored
        forward passes over the answers before they are trained on
    recomputed
        whether layers are computed again on the way back
    update_bandwidth
        bytes of new weights that a device sees in a second
    measured
        whether rates are measured ones; else published peaks
    """
    Job.check(job)
    _check_lengths(lengths)
    count = whole_number("step(): answers", answers)
    used = number("step(): mfu", quantity(mfu).m_as(""), above=0.0)
    whole_number("step(): scored", scored, 0)
    truth("step(): recomputed", recomputed)
    engine = replace(job, layout=replace(job.layout, data=1))
    share = max(1, round(count / int(job.layout.data)))
    _, written = writing_times(engine, lengths, share, measured, count)
    middle = lengths.prompt + lengths.average / 2
    even = lengths.average * _pass(engine, share, middle, measured)
    whole = lengths.average + lengths.prompt
    forward = transformer.causal_flops(job.model, round(whole)) * quantity(count * whole, "token")
    rate = job.device.peak(job.formats.dtype) * job.layout.devices * used
    return RolloutStep(
        quantity(written[-1], "s"),
        quantity(even, "s"),
        (forward * scored / rate).to("s"),
        (forward * (4 if recomputed else 3) / rate).to("s"),
        weight_update_time(job.weights.memory, update_bandwidth),
        quantity(count * lengths.average, "token"),
        int(job.layout.devices),
    )


def _check_lengths(lengths: object) -> None:
    check_is(Lengths, "lengths", lengths, "those of answers, as Lengths(1000, 4096) is")
