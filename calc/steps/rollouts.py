"""Reinforcement learning of language models: answers are generated, and trained on.

The laws take numbers. `Lengths` says how long answers are, and `step` puts generation, training and
the new weights of the engines together for a job of `calc.Job`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from calc.core.arguments import as_list, check_is, number, truth, whole_number
from calc.core.elementwise import at_least_once, minimum
from calc.core.errors import InputError
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.report import Reported, Table
from calc.core.units import Quantity, QuantityLike, quantity
from calc.networks import transformer
from calc.steps.job import Job, Tokens
from calc.steps.timing import bounds, serving_step

GRID = 16  # parts of a generation in which batch and context are taken as constant
HALVINGS = 200


@law
def informative_share(
    success: Annotated[QuantityLike, "", "p", FRACTION],
    group: Annotated[QuantityLike, "", "G", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Share of the prompts whose group of answers is neither all right nor all wrong.

    Equation: s = 1 − p^G − (1 − p)^G

    The rest has no advantage over its own mean, and teaches nothing where that is the baseline.
    Assumes answers right or wrong at random, each with probability p. A token that is trained costs
    1 / s tokens that are generated, where the rest is thrown away.

    Source: nemorl2026performance

    >>> print(informative_share(0.05, 16).to("%"))
    55.99%
    """
    rarer = minimum(success, 1 - success)
    return at_least_once(rarer, group) - rarer**group


@law
def weight_update_time(
    weights: Annotated[QuantityLike, "byte", "W"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    slices: Annotated[QuantityLike, "", "t", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "s"]:
    """Time until all engines have new weights: each device takes them all, or its slice alone.

    Equation: T = W / (t · BW)

    A broadcast has t = 1: all engines get all bytes and keep theirs. Point to point, each of the t
    devices of an engine gets its own. Assumes that all are sent to at once, and that nobody waits
    to begin.

    Source: moonshot2025checkpoint

    >>> print(weight_update_time("1.03 TB", "50 GB/s"))
    20.6 s
    >>> print(weight_update_time("1.03 TB", "50 GB/s", 16))
    1.288 s
    """
    return weights / (slices * bandwidth)


@law
def staleness(
    in_flight: Annotated[QuantityLike, "", "n", NON_NEGATIVE],
    batch: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Updates that pass between the first token of an answer and the step that trains on it.

    Equation: η = n / B

    By Little's law: n answers are being written or wait, and each step takes B of them. A mean;
    long answers are staler.

    Source: little1961proof

    >>> print(staleness(4096, 512))
    8
    """
    return in_flight / batch


@law
def generating_share(
    generation: Annotated[QuantityLike, "s", "T_g"], training: Annotated[QuantityLike, "s", "T_t"]
) -> Annotated[Quantity, ""]:
    """Share of the devices that generates while the others train, so that neither waits.

    Equation: x = T_g / (T_g + T_t)

    T_g and T_t are the times that each takes on all devices. Assumes that both go as well on fewer:
    then a step takes T_g + T_t, as where all devices do one after the other.

    Source: amdahl1967validity

    >>> print(generating_share("120 s", "40 s").to("%"))
    75%
    """
    return generation / (generation + training)


def expected_maximum(lengths: Iterable[float], answers: int) -> float:
    """The mean of the longest of so many answers, each as long as one of these, at random.

    Equation: E = Σ x_i · ((i / N)^n − ((i − 1) / N)^n)

    The N lengths x_i are in rising order; exact for them.

    >>> expected_maximum([100, 200, 300], 2)
    244.44444444444446
    """
    rising = sorted(number("a length", length) for length in as_list("lengths", lengths))
    count = whole_number("expected_maximum(): answers", answers)
    if not rising:
        raise InputError("expected_maximum() needs at least one length")
    share = [(place / len(rising)) ** count for place in range(len(rising) + 1)]
    return sum(x * (share[i + 1] - share[i]) for i, x in enumerate(rising))


@dataclass(frozen=True)
class Lengths:
    """Answers that end at any token with one probability, and are cut at a limit.

    `average` is that of the answers as they come, cut ones too, in tokens; each follows a `prompt`.

    >>> answers = Lengths(3203, 4096)
    >>> round(answers.longest(128)), f"{answers.cut:.2f}"
    (4096, '0.60')
    """

    average: float
    limit: float
    prompt: float = 200

    def __post_init__(self) -> None:
        limit = number("Lengths(): limit", self.limit, 1.0)
        number("Lengths(): prompt", self.prompt)
        if not number("Lengths(): average", self.average, 1.0) < limit:
            raise InputError(
                f"the average of {self.average:g} tokens must be below the limit of {limit:g}"
            )

    @cached_property
    def scale(self) -> float:
        """The mean that answers would have without the limit."""
        low, high = 0.0, 1e9 * self.limit
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if -middle * math.expm1(-self.limit / middle) < self.average:
                low = middle
            else:
                high = middle
        return high

    @property
    def cut(self) -> float:
        """The share that reaches the limit."""
        return self.unfinished(self.limit)

    def unfinished(self, tokens: float) -> float:
        """The share that is longer than so many tokens, or as long."""
        return math.exp(-tokens / self.scale)

    def longest(self, answers: int) -> float:
        """The mean of the longest of so many, exactly: μ · Σ (1 − e^(−c / μ))^k / k, k = 1 … n."""
        scale = self.scale
        ended, power, total = -math.expm1(-self.limit / scale), 1.0, 0.0
        for k in range(1, whole_number("longest(): answers", answers) + 1):
            power *= ended
            total += power / k
            if power < 1e-18:
                break
        return scale * total


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
    """Of all answers."""
    devices: int

    @cached_property
    def tables(self) -> list[Table]:
        """Its parts, and what they make."""
        names = "generation", "scoring", "training", "update", "total", "tail", "throughput"
        return [Table([(name, str(getattr(self, name))) for name in names], head=("", "step"))]

    @property
    def total(self) -> Quantity:
        """The time of the step."""
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
    """How many tokens long an engine's answers are, and the seconds after which they are.

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
    for place in range(GRID):
        middle = (place + 0.5) * part
        writing = count * lengths.unfinished(middle)
        tokens.append(tokens[-1] + part)
        seconds.append(seconds[-1] + part * _pass(job, writing, lengths.prompt + middle, measured))
    return tokens, seconds


def _pass(job: Job, writing: float, context: float, measured: bool) -> float:
    """Seconds of the pass that writes a token of each answer."""
    load = Tokens(writing=max(1.0, round(writing)), context=float(round(context)))
    time = serving_step(job, load).expected if measured else None
    return float((time or bounds(job, load).lower).m_as("s"))


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


def _check_lengths(given: object) -> None:
    check_is(Lengths, "lengths", given, "those of answers, as Lengths(1000, 4096) is")
