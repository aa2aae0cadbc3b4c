"""Rollouts of reinforcement learning: how long answers are, and new weights on their way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from calc.core.arguments import as_list, number, whole_number
from calc.core.elementwise import at_least_once, minimum
from calc.core.errors import InputError
from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike

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

    Parameters
    ----------
    success
        probability that an answer is right
    group
        answers to one prompt
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

    Parameters
    ----------
    weights
        bytes of all weights
    bandwidth
        bytes that each device takes in a second
    slices
        devices that share an engine's weights, where each takes its own alone
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

    Parameters
    ----------
    in_flight
        answers that are being written, or wait for their step
    batch
        answers that a step trains on
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

    Parameters
    ----------
    generation
        time that generating takes on all devices
    training
        time that training takes on all devices
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
    share = [(rank / len(rising)) ** count for rank in range(len(rising) + 1)]
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
