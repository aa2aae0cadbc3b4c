"""What users meet who ask again as soon as an answer is whole: bounds, and what is expected.

The expectation is the closed loop that published servers are held to. No program beats a prompt
that is read alone, a token of a sequence alone, nor for a whole request the work of all users'
requests on all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from calc.core.arrays import Floats, Number, numpy
from calc.core.elementwise import maximum
from calc.core.units import Quantity, quantity
from calc.laws.roofline import StepTime
from calc.planning.service.loops import PERCENTILES, Loop
from calc.planning.setup import ONE, Setup, is_array
from calc.steps.job import SECOND

COUNTS = ("devices", "copies", "prompt", "generated", "batch")
"""What may be an array of a plan, the batch last."""


def alone(setup: Setup) -> Setup:
    """The setup of one request, which meets nobody."""
    return replace(setup.one_copy, batch=ONE, users=None)


def together(setup: Setup, prompt: StepTime, written: StepTime) -> StepTime:
    """The average step in which all users write, and their share of prompts is read beside them.

    Weights are read for both at once.
    """
    of_copy = setup.batch * setup.one_copy.devices / setup.devices
    share = (of_copy / setup.generated).to("")
    parts = {
        name: part if name == "memory bandwidth" else part + share * prompt.parts[name]
        for name, part in written.parts.items()
    }
    return replace(written, parts=parts)


def least_answer(setup: Setup, lonely: Quantity, step: StepTime) -> Quantity:
    """The least mean time of a request: that of one alone, or as all users share the devices."""
    least: Number = maximum(lonely.m_as("s"), (setup.generated * step.lower).m_as("s"))
    return SECOND * least


def loops(setup: Setup, fits: Any, meet: Callable[..., Loop]) -> Quantity:
    """Times to first token, and of a token after it, of each point; NaN where it does not fit.

    A row of both for the mean of requests, and for each of PERCENTILES.
    """
    counts = {name: getattr(setup, name).magnitude for name in COUNTS}
    if not is_array(fits):
        return SECOND * _times(setup, counts, meet)
    found = numpy.full((1 + len(PERCENTILES), 2, *fits.shape), numpy.nan)
    spread = {name: numpy.broadcast_to(count, fits.shape) for name, count in counts.items()}
    for index in zip(*numpy.nonzero(fits), strict=True):
        here = {name: count[index].item() for name, count in spread.items()}
        found[(slice(None), slice(None), *index)] = _times(setup, here, meet)
    return SECOND * found


def _times(setup: Setup, counts: Mapping[str, float], meet: Callable[..., Loop]) -> Floats:
    assert setup.users is not None
    asked: dict[str, Any] = {name: quantity(count, "") for name, count in counts.items()}
    one = replace(setup, **asked)
    clients = replace(setup.users, count=counts["batch"])
    loop = meet(one.job, clients, counts["prompt"], counts["generated"])
    return numpy.array([(loop.ttft, loop.tpot), *loop.late.values()])
