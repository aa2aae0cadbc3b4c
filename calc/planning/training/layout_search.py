"""All legal layouts of a training run, each with its memory and its bounds: arrays throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from calc.catalog.machines import Machine
from calc.core.arrays import Counts, Floats, Truths, numpy
from calc.core.elementwise import at, divisors
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import Quantity, quantity
from calc.laws import layers
from calc.laws.training import Recipe
from calc.planning.setup import A_TOKEN
from calc.steps import device_memory, layouts
from calc.steps.expectation import Step
from calc.steps.finetuning import Adapters, loss_by
from calc.steps.job import Batch, Job, Layout
from calc.steps.layouts import DeviceMemory
from calc.steps.timing import step

MOST_LAYOUTS = 2_000_000  # beyond these a search would take a minute, and is asked to be told more
FREE = ("tensor", "pipeline", "context", "experts", "stages_per_device", "sharding", "sharing")
"""What a search chooses, and what may be fixed; the number of copies follows."""
PRINTED = {  # degrees of a layout, as they are written
    "data": "DP",
    "tensor": "TP",
    "pipeline": "PP",
    "context": "CP",
    "experts": "EP",
    "stages_per_device": "VP",
    "sharding": "ZeRO",
}
PUBLISHED = "published"  # a layout none of whose choices is beyond what published rows have made
THIN = 8
"""Thin stages of a device, at most: with more their messages grow beyond what a bubble saves."""


@dataclass(frozen=True)
class Task:
    """A task of training on so many devices: a job whose layout is the one thing to find."""

    job: Job
    """In no layout yet."""
    devices: int
    length: int
    sequences: int
    """Sequences of a step, on all devices together."""
    recomputations: tuple[str, ...]
    recipe: Recipe
    usable: float
    """Share of a device's memory that states and activations may fill."""
    schedule: str
    fixed: Mapping[str, int]
    as_published: bool = False
    """Whether each choice of its layout must be one that a published row has made."""

    @property
    def adapters(self) -> Adapters | None:
        """Return what is trained, where that is not all of the model."""
        return self.job.trained if isinstance(self.job.trained, Adapters) else None

    @property
    def machine(self) -> Machine:
        return self.job.measured_on

    @property
    def room(self) -> Quantity:
        """Memory of a device for states and activations."""
        return device_memory.room(self.job.device, self.usable)

    @property
    def tokens(self) -> Quantity:
        """Tokens of a step."""
        return A_TOKEN * layers.batch_tokens(self.length, self.sequences)

    @property
    def operations(self) -> Quantity:
        """Operations of a step, forward and backward."""
        return self.job.trained.work(self.job.model, self.length) * self.tokens


@dataclass(frozen=True)
class Cuts:
    """Layouts of a run that recompute alike, as arrays, with the memory of each."""

    run: Task
    layout: Layout
    sequences: Counts
    """Sequences of a microbatch."""
    recomputation: str
    memory: DeviceMemory
    """What the fullest device holds."""

    @classmethod
    def of(cls, run: Task, layout: Layout, sequences: Counts, recomputation: str) -> Cuts:
        sizes = run.length, quantity(sequences, ""), recomputation, run.recipe
        loss = loss_by(run.job.software, run.job.trained)
        dtype = run.job.formats.dtype
        memory = layouts.memory_per_device(run.job.model, layout, *sizes, loss=loss, dtype=dtype)
        return cls(run, layout, sequences, recomputation, memory)

    @cached_property
    def held(self) -> Floats:
        """Bytes of that memory."""
        held: Floats = self.memory.total.m_as("byte")
        return held

    @cached_property
    def step(self) -> Step:
        return self._step(self.layout, self.sequences)

    def _step(self, layout: Layout, sequences: Counts | int) -> Step:
        batch = Batch(self.run.length, quantity(sequences, ""), self.recomputation)
        return step(replace(self.run.job, layout=layout), batch)

    @cached_property
    def expected(self) -> Floats:
        """Seconds of a step as it is expected of each; NaN where a rate was not measured."""
        expected = self.step.expected
        return numpy.full(self.count, numpy.nan) if expected is None else expected.m_as("s")

    @property
    def seconds(self) -> Floats:
        """Return the expected seconds, or those without overlap where a rate was not measured."""
        return numpy.where(numpy.isnan(self.expected), self.step.upper.m_as("s"), self.expected)

    @property
    def count(self) -> int:
        """Return how many layouts there are."""
        return int(self.sequences.size)

    def where(self, wanted: Truths) -> Cuts:
        """Return the layouts that are wanted."""
        arrays = {
            name: at(getattr(self, name), wanted) for name in ("layout", "sequences", "memory")
        }
        return replace(self, **arrays)

    def step_of(self, index: int) -> Step:
        """The step of one of them, with the sentence on the rate that was not measured, if any."""
        if numpy.isnan(self.expected[index]):
            return self._step(at(self.layout, index), at(self.sequences, index))
        return self.step.at(index)


def with_copies(
    run: Task, layout: Layout, sequences: int, recomputation: str, several: Sequence[int]
) -> Cuts | None:
    """A layout with more copies or fewer, which share the same batch; None where none are legal.

    Copies that shared all states share them still.
    """
    copies = numpy.array([n for n in several if n and not run.sequences % (n * sequences)], int)
    shared = layout.sharing if layout.sharers < layout.copies else None
    microbatches = run.sequences // copies // sequences
    changed = replace(layout, data=copies, microbatches=microbatches, sharing=shared)
    legal = changed.legal(run.job.model) & (changed.devices <= run.machine.most_joined)
    if not legal.any():
        return None
    each = numpy.full(copies.size, sequences)[legal]
    return Cuts.of(run, at(changed, legal), each, recomputation)


def all_cuts(run: Task) -> list[Cuts]:
    """Every legal layout of a run, whether or not it fits, by what is recomputed."""
    if (cuts := _legal(run)) is None:
        fixed = ", ".join(f"{name} {degree}" for name, degree in run.fixed.items())
        raise InputError(
            f"no layout cuts {run.job.model.name} and {run.sequences} sequences for {run.devices}"
            f" devices of {run.job.machine.name}{f' with {fixed}' if fixed else ''}:"
            f" {_what_is_cut(run)}"
        )
    return [Cuts.of(run, *cuts, again) for again in run.recomputations]


def _legal(run: Task) -> tuple[Layout, Counts] | None:
    """The legal layouts of a run, with the sequences of a microbatch; None where there are none."""
    rows = _layouts(run)
    degrees = {name: getattr(rows, name) for name in ("data", "microbatches", *FREE)}
    layout = Layout(**degrees, schedule=run.schedule)
    legal = layout.legal(run.job.model)
    return (at(layout, legal), rows.sequences[legal]) if legal.any() else None


def _what_is_cut(run: Task) -> str:
    """The nearest change after which layouts cut a run, tried: free degrees, or other devices."""
    if run.fixed and _legal(replace(run, fixed={})) is not None:
        return "leave out some of these degrees"
    most = int(min(2 * run.devices, run.machine.most_joined))
    for count in sorted(_powers_of_two(most), key=lambda count: abs(count - run.devices)):
        if _legal(replace(run, devices=count, fixed={})) is not None:
            return f"take {count} device{'s' if count > 1 else ''}"
    return "take another number of devices or sequences"


def _layouts(run: Task) -> _Rows:
    """Layouts that the counts allow, degree by degree; `Layout.legal` has the last word."""
    model, domain, fixed = run.job.model, max(run.machine.hosted.domain, 1), run.fixed
    joined = [run.devices] if run.devices <= run.machine.most_joined else []
    rows = _Rows(copies=numpy.array(joined, dtype=numpy.int64))

    def choose(name: str, free: Iterable[int], allowed: Callable[[Any, Counts], Any]) -> None:
        rows.cross(name, [fixed[name]] if name in fixed else list(free), allowed)
        if rows.copies.size > MOST_LAYOUTS:
            raise InputError(
                f"more than {MOST_LAYOUTS:,} layouts of {model.name} on {run.devices}"
                " devices are legal: fix one of " + ", ".join(FREE)
            )

    slices = (count for count in divisors(model.heads) if count <= domain)
    choose("tensor", slices, lambda row, tensor: row.copies % tensor == 0)
    rows.copies //= rows.tensor
    stages = (count for count in divisors(run.devices) if count <= model.layers)
    choose("pipeline", stages, lambda row, pipeline: row.copies % pipeline == 0)
    rows.copies //= rows.pipeline

    def is_cut(row: Any, context: Counts) -> Any:
        data = numpy.maximum(row.copies // context, 1)
        wanted = data == fixed.get("data", data)
        return (row.copies % context == 0) & (run.sequences % data == 0) & wanted

    choose("context", _powers_of_two(min(run.devices, run.length)), is_cut)
    rows.data = rows.copies // rows.context
    each = divisors(run.sequences)
    choose("sequences", each, lambda row, each: run.sequences // row.data % each == 0)
    rows.microbatches = run.sequences // rows.data // rows.sequences
    sharers = divisors(model.experts or 1)
    choose("experts", sharers, lambda row, sharers: row.copies * row.tensor % sharers == 0)

    def is_thin(row: Any, thin: Counts) -> Any:
        rounds = (row.pipeline > 1) & (row.microbatches % row.pipeline == 0)
        free = run.schedule == "1f1b" and "stages_per_device" not in fixed
        return (thin == 1) | (rounds & (thin <= -(-model.layers // row.pipeline))) | (not free)

    thin = range(1, THIN + 1) if run.schedule == "1f1b" else (1, 2)
    choose("stages_per_device", thin, is_thin)
    choose("sharding", range(4), lambda row, sharding: sharding >= 0)
    # A state is divided among the devices of a domain, which come first, or among all.
    near = numpy.maximum(1, domain // rows.tensor)
    rows.near = numpy.where((near > 1) & (rows.copies % near == 0), near, rows.copies)
    choose("sharing", (0, 1), lambda row, all_of_them: all_of_them | (row.near < row.copies))
    if "sharing" not in fixed:
        rows.sharing = numpy.where(rows.sharing, rows.copies, rows.near)
    rows.keep((rows.sharding > 0) | (rows.sharing == rows.copies))
    return rows


class _Rows(SimpleNamespace):
    """Columns of counts, in which each row is a layout as far as it is chosen."""

    def cross(
        self, name: str, options: Sequence[int], allowed: Callable[[Any, Counts], Any]
    ) -> None:
        """Take each row with each of the options that it allows, as one more column."""
        counts = numpy.array(options, dtype=numpy.int64)
        beside = SimpleNamespace(**{each: column[:, None] for each, column in vars(self).items()})
        shape = self.copies.size, counts.size
        places, chosen = numpy.nonzero(numpy.broadcast_to(allowed(beside, counts), shape))
        self.keep(places)
        vars(self)[name] = counts[chosen]

    def keep(self, wanted: Any) -> None:
        """Take the rows that are wanted, or those at such places."""
        vars(self).update({name: column[wanted] for name, column in vars(self).items()})


def _powers_of_two(most: int) -> list[int]:
    return [2**power for power in range(most.bit_length())]


def check_fixed(layout: Any) -> dict[str, int]:
    """The degrees that a caller fixed, by the names of a layout or those that a plan prints.

    >>> check_fixed("TP=8,PP=16"), check_fixed({"tensor": 8})
    ({'tensor': 8, 'pipeline': 16}, {'tensor': 8})
    """
    if layout is None or layout == PUBLISHED:
        return {}
    named = dict(_degrees(layout)) if isinstance(layout, str) else layout
    degrees = {name.lower(): name for name in ("data", *FREE)}
    degrees |= {short.lower(): name for name, short in PRINTED.items()}
    if not isinstance(named, Mapping) or (unknown := {*map(str.lower, named)} - {*degrees}):
        raise InputError(
            f"layout fixes some of {', '.join(PRINTED.values())} or {', '.join(FREE)}, as in"
            f" {{'TP': 8}}, or is {PUBLISHED!r}; got"
            f" {abbreviated(named if not isinstance(named, Mapping) else sorted(unknown))}"
        )
    fixed: dict[str, Any] = {degrees[name.lower()]: degree for name, degree in named.items()}
    Layout(**fixed)  # refuses what is no count
    return fixed


def _degrees(text: str) -> Iterator[tuple[str, int]]:
    """Degrees as a shell has them, TP=8,PP=16, or as Python writes them."""
    for part in text.strip("{} ").split(","):
        name, equals, degree = part.replace(":", "=").partition("=")
        if not equals or not degree.strip().isdigit():
            raise InputError(
                f"{marked('layout')} needs degrees by their names, as in TP=8,PP=16, or"
                f" {PUBLISHED}; got"
                f" {part!r}"
            )
        yield name.strip(" \"'"), int(degree)
