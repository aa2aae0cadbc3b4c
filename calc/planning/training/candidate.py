"""Layouts that fit, each with its memory and the time of its step, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from calc.core.arrays import Truths, numpy
from calc.core.elementwise import at, different
from calc.core.units import Quantity
from calc.laws import parallelism, training
from calc.networks import transformer
from calc.planning.training import precedents
from calc.planning.training.layout_search import Cuts, Task
from calc.planning.training.precedents import DEGREES
from calc.steps.expectation import Step
from calc.steps.job import Layout
from calc.steps.layouts import DeviceMemory

SHOWN = 10  # layouts of a plan, the best of each way to cut
WAYS = ("tensor", "pipeline", "context", "experts")  # by which layouts differ in a plan


@dataclass(frozen=True)
class Candidate:
    """One layout that fits: its memory, and the time of its step."""

    run: Task
    layout: Layout
    sequences: int
    """Sequences of a microbatch."""
    recomputation: str
    memory: DeviceMemory
    step: Step
    beyond_published: str
    """The sentence that names its choices which no published row has made; "" for none."""

    @classmethod
    def at_index(cls, cuts: Cuts, index: int) -> Candidate:
        layout, run = at(cuts.layout, index), cuts.run
        sequences, memory = int(cuts.sequences[index]), at(cuts.memory, index)
        step, beyond = cuts.step_of(index), precedents.beyond(run, layout)
        return cls(run, layout, sequences, cuts.recomputation, memory, step, beyond)

    @cached_property
    def time(self) -> Quantity:
        """Return what a step is expected to take, or its upper bound where nothing is."""
        expected = self.step.expected
        return self.step.upper if expected is None else expected

    @property
    def mfu(self) -> Quantity:
        """Utilisation of the peak by the model's own operations, attention too, in that time."""
        return training.mfu_of_operations(self.step.operations, 1, self.step.peak, self.time)

    @property
    def hfu(self) -> Quantity:
        """Return the utilisation with what is computed again."""
        model, length = self.run.job.model, self.run.length
        again = transformer.recomputed_flops(model, length, self.recomputation)
        forward = transformer.causal_flops(model, length)
        return parallelism.hfu(self.mfu, again / forward)

    @property
    def throughput(self) -> Quantity:
        """Tokens per second of each device."""
        return (self.step.tokens / self.time / self.layout.devices).to("token/s")

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of each part of a step, as expected, or at published rates."""
        times = self.step.expected_parts or self.step.parts
        return {name: time.m_as("s") for name, time in times.items()}

    def __str__(self) -> str:
        """Return its degrees in a word; what is not cut is left out."""
        layout = self.layout
        degrees = ((short, getattr(layout, name)) for name, short in DEGREES.items())
        words = [f"{short}{degree}" for short, degree in degrees if degree > 1]
        if layout.sharding:
            group = "" if layout.sharers == layout.copies else f" in {layout.sharers}"
            words.append(f"ZeRO{layout.sharding}{group}")
        return " ".join(words) or "one device"


class Ranking:
    """Layouts that fit, by what is expected of each, of which some are taken.

    Where messages hide, layouts are equal: then that comes first whose parts are shortest in sum,
    and of such the one that holds least. What was not measured of a rate comes last, by its bound.
    """

    def __init__(self, fitting: Sequence[Cuts]) -> None:
        self.fitting, together = fitting, numpy.concatenate
        times = together([cuts.expected for cuts in fitting])
        bounds = together([cuts.step.upper.m_as("s") for cuts in fitting])
        held = together([cuts.held for cuts in fitting])
        degrees = [together([getattr(cuts.layout, name) for cuts in fitting]) for name in WAYS]
        _, self.ways = different(*degrees)
        self.order = numpy.lexsort((held, bounds, times))  # of which NaN is the last
        self.starts = numpy.cumsum([0, *(cuts.count for cuts in fitting)])

    def best(self, most: int, wanted: Sequence[Truths] | None = None) -> list[Candidate]:
        """Return so many at most of those that are wanted, one for each way to cut."""
        order = self.order
        if wanted is not None:
            order = order[numpy.concatenate(wanted)[order]]
        _, first = numpy.unique(numpy.asarray(self.ways)[order], return_index=True)
        return [self._one(int(index)) for index in order[numpy.sort(first)[:most]]]

    def _one(self, index: int) -> Candidate:
        owner = int(numpy.searchsorted(self.starts, index, side="right")) - 1
        return Candidate.at_index(self.fitting[owner], index - int(self.starts[owner]))
