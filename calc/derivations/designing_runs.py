"""What the section "Designing a run" of the chapter "Training at scale" quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calc import hardware, machines, models, plan_training, runs, training
from calc.core.units import quantity
from calc.derivations.quoting import Row, Rows
from calc.planning.training import Candidate, all_cuts
from calc.published.layouts import published_layouts

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


class DesignedRun:
    """A search finds the published layout of Llama 3.1 405B, and some that nobody has published."""

    run = runs.get("llama-3-1-405b")
    reported = run.mfu
    devices = 16384
    sequences = 2048
    length = 8192

    plan = plan_training(
        models.get("llama-3-405b"),
        machines.get("dgx-h100"),
        tokens=run.tokens,
        sequences=sequences,
        length=length,
        devices=devices,
        software="megatron-26-04",
        recipe="adam-mixed-fp32-gradients",
    )
    searched = plan.searched
    published = next(
        candidate
        for candidate in plan.candidates
        if (candidate.layout.tensor, candidate.layout.pipeline, candidate.layout.context)
        == (8, 16, 1)
    )
    time = published.time
    mfu = published.mfu.to("%")
    of_expected = (reported / mfu).to("%")
    usable = (plan.run.usable * hardware.get("h100").memory_capacity).to("GB")

    @staticmethod
    def row(candidate: Candidate) -> Row:
        """A layout: what its fullest device holds, its bound, what is expected, and its like."""
        alike = "no" if candidate.beyond_published else "yes"
        memory, step = candidate.memory.total.to("GB"), candidate.step
        return str(candidate), memory, step.lower, candidate.time, candidate.mfu.to("%"), alike

    @classmethod
    def rows(cls) -> Rows:
        """The best of each way to cut."""
        return [cls.row(candidate) for candidate in cls.plan.candidates]

    @classmethod
    def frontiers(cls) -> dict[str, tuple[NDArray[numpy.float64], NDArray[numpy.float64]]]:
        """By recomputation, memory in rising order and the least time that so much buys."""
        import numpy

        frontiers = {}
        for cuts in all_cuts(cls.plan.run):
            times, order = cuts.step.upper.m_as("s"), numpy.argsort(cuts.held, kind="stable")
            least = numpy.minimum.accumulate(times[order])
            steps = numpy.flatnonzero(numpy.diff(least, prepend=numpy.inf))
            frontiers[cuts.recomputation] = cuts.held[order][steps] / 1e9, least[steps]
        return frontiers


class PublishedLayouts:
    """Published steps that say how their models are cut, and those that memory holds."""

    found = published_layouts()
    count = len(found)
    fit = sum(bool(layout.memory.total <= layout.job.device.memory_capacity) for layout in found)


class RentFor70B:
    """Problem 6: how many devices train a model of 70 billion parameters in a month."""

    parameters = quantity("70B param")
    tokens = quantity("2T token")
    sequences = 1024
    fewer = 512
    more = 2 * fewer
    utilization = quantity(40, "%")
    deadline = quantity("30 day")
    peak = machines.get("dgx-h100").device.peak("bf16")

    by_fewer = training.training_time(parameters, tokens, fewer, peak, utilization).to("day")
    by_more = training.training_time(parameters, tokens, more, peak, utilization).to("day")
    by_hand = (quantity("8.4e23 FLOP") / (500 * quantity("400 TFLOP/s"))).to("day")
