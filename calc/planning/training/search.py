"""All legal layouts of a training run, each with its memory and its bounds: arrays throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

from calc.catalog.machines import Machine
from calc.core.arrays import Counts, Floats, Truths, numpy
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import Quantity, quantity
from calc.laws import layers
from calc.laws.training import Recipe
from calc.planning.setup import A_TOKEN, is_array
from calc.steps import device_memory, layouts
from calc.steps.expectation import Step
from calc.steps.finetuning import Adapters, loss_by
from calc.steps.job import Batch, Job, Layout
from calc.steps.layouts import DeviceMemory
from calc.steps.timing import step

MOST_LAYOUTS = 2_000_000
"""Beyond these a search would take a minute, and is asked to be told more."""
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
PUBLISHED = "published"
"""A layout none of whose choices is beyond what published rows have made."""
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
    """Of a step, on all devices together."""
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
        """What is trained, where that is not all of the model."""
        return self.job.trained if isinstance(self.job.trained, Adapters) else None

    @property
    def machine(self) -> Machine:
        """The machine whose devices train."""
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
    """Layouts of a run that recompute alike, as arrays: microbatches, memory and bounds of each."""

    run: Task
    layout: Layout
    sequences: Any
    """Of a microbatch: an array, or the number of one layout."""
    recomputation: str

    @cached_property
    def memory(self) -> DeviceMemory:
        """What the fullest device holds."""
        run = self.run
        sizes = run.length, quantity(self.sequences, ""), self.recomputation, run.recipe
        loss = loss_by(run.job.software, run.job.trained)
        dtype = run.job.formats.dtype
        return layouts.memory_per_device(run.job.model, self.layout, *sizes, loss=loss, dtype=dtype)

    @cached_property
    def held(self) -> Floats:
        """The same, in bytes."""
        held: Floats = self.memory.total.m_as("byte")
        return held

    @cached_property
    def step(self) -> Step:
        """The parts of a step."""
        batch = Batch(self.run.length, quantity(self.sequences, ""), self.recomputation)
        return step(replace(self.run.job, layout=self.layout), batch)

    @cached_property
    def expected(self) -> Floats:
        """Seconds of a step as it is expected of each; NaN where a rate was not measured."""
        expected = self.step.expected
        return numpy.full(self.count, numpy.nan) if expected is None else expected.m_as("s")

    @property
    def count(self) -> int:
        """How many layouts there are."""
        return int(self.sequences.size)

    def where(self, wanted: Truths) -> Cuts:
        """Those of them that are wanted."""
        layout = _changed(self.layout, lambda values: values[wanted])
        chosen = replace(self, layout=layout, sequences=self.sequences[wanted])
        if "held" in vars(self):  # each layout holds what it held among the others
            vars(chosen)["held"] = self.held[wanted]
        return chosen

    def one(self, place: int) -> Cuts:
        """One of them, in plain numbers."""
        layout = _changed(self.layout, lambda values: int(values[place]))
        return replace(self, layout=layout, sequences=int(self.sequences[place]))

    def with_copies(self, copies: int) -> Cuts | None:
        """One layout with more copies or fewer, which share the same batch; None if none is legal.

        Copies that shared all states share them still.
        """
        run, layout = self.run, self.layout
        if copies < 1 or run.sequences % (copies * self.sequences):
            return None
        shared = layout.sharing if layout.sharers < layout.copies else None
        changed = replace(
            layout,
            data=copies,
            microbatches=run.sequences // copies // self.sequences,
            sharing=shared,
        )
        if changed.devices > run.machine.most_joined or not changed.legal(run.job.model):
            return None
        return replace(self, run=replace(run, devices=int(changed.devices)), layout=changed)


def all_cuts(run: Task) -> list[Cuts]:
    """Every legal layout of a run, whether or not it fits, by what is recomputed."""
    if (cuts := _legal(run)) is None:
        fixed = ", ".join(f"{name} {degree}" for name, degree in run.fixed.items())
        raise InputError(
            f"no layout cuts {run.job.model.name} and {run.sequences} sequences for {run.devices}"
            f" devices of {run.job.machine.name}{f' with {fixed}' if fixed else ''}:"
            f" {_what_is_cut(run)}"
        )
    return [replace(cuts, recomputation=again) for again in run.recomputations]


def _legal(run: Task) -> Cuts | None:
    """The legal layouts of a run; None where there are none."""
    columns = numpy.array(list(_layouts(run)), dtype=numpy.int64).reshape(-1, 9)
    *degrees, sequences = columns.T
    numbers: dict[str, Any] = dict(zip(("data", *FREE), degrees, strict=True))
    microbatches = run.sequences // numbers["data"] // sequences
    numbers |= {"microbatches": microbatches, "schedule": run.schedule}
    layout = Layout(**numbers) if columns.size else None
    if layout is None or not (legal := layout.legal(run.job.model)).any():
        return None
    return Cuts(run, layout, sequences, run.recomputations[0]).where(legal)


def _what_is_cut(run: Task) -> str:
    """The nearest change after which layouts cut a run, tried: free degrees, or other devices."""
    if run.fixed and _legal(replace(run, fixed={})) is not None:
        return "leave out some of these degrees"
    most = int(min(2 * run.devices, run.machine.most_joined))
    for count in sorted(_powers_of_two(most), key=lambda count: abs(count - run.devices)):
        if _legal(replace(run, devices=count, fixed={})) is not None:
            return f"take {count} device{'s' if count > 1 else ''}"
    return "take another number of devices or sequences"


def _layouts(run: Task) -> Iterator[tuple[int, ...]]:
    """Layouts that the counts allow; `Layout.legal` has the last word."""
    model, machine = run.job.model, run.machine
    heads, layers = model.heads, model.layers
    experts = model.experts or 1
    slices = [count for count in _divisors(heads) if count <= max(machine.domain, 1)]
    stages = [count for count in _divisors(run.devices) if count <= layers]
    cuts = product(_wanted(run, "tensor", slices), _wanted(run, "pipeline", stages))
    total = 0
    for tensor, pipeline in cuts if run.devices <= machine.most_joined else ():
        if run.devices % (tensor * pipeline):
            continue
        copies = run.devices // (tensor * pipeline)
        for context in _wanted(run, "context", _powers_of_two(min(copies, run.length))):
            data = copies // context
            if copies % context or run.sequences % data or run.fixed.get("data", data) != data:
                continue
            sharers = [count for count in _divisors(experts) if copies * tensor % count == 0]
            states = _states(run, tensor, copies)
            of_a_copy = run.sequences // data
            for sequences in _divisors(of_a_copy):
                thin = _thin(run, layers, pipeline, of_a_copy // sequences)
                for among, few, (stage, sharing) in product(
                    _wanted(run, "experts", sharers), thin, states
                ):
                    total += 1
                    if total > MOST_LAYOUTS:
                        raise InputError(
                            f"more than {MOST_LAYOUTS:,} layouts of {model.name} on {run.devices}"
                            " devices are legal: fix one of " + ", ".join(FREE)
                        )
                    yield data, tensor, pipeline, context, among, few, stage, sharing, sequences


def _wanted(run: Task, name: str, free: list[int]) -> list[int]:
    return [run.fixed[name]] if name in run.fixed else free


def _thin(run: Task, layers: int, pipeline: int, microbatches: int) -> list[int]:
    """Thin stages of a device: one, or as many as divide its layers; two for zb-v."""
    if run.schedule != "1f1b":
        free = [2 if run.schedule == "zb-v" and pipeline > 1 else 1]
    elif pipeline == 1 or microbatches % pipeline:
        free = [1]
    else:
        free = list(range(1, min(THIN, -(-layers // pipeline)) + 1))
    return _wanted(run, "stages_per_device", free)


def _states(run: Task, tensor: int, copies: int) -> list[tuple[int, int]]:
    """Stages of ZeRO, with the devices that divide a state: all, or those of a domain."""
    near = max(1, run.machine.domain // tensor)
    groups = sorted({copies} | ({near} if 1 < near < copies and copies % near == 0 else set()))
    return [
        (stage, group)
        for stage in _wanted(run, "sharding", [0, 1, 2, 3])
        for group in _wanted(run, "sharing", groups)
        if stage or group == copies
    ]


@cache
def _divisors(number: int) -> list[int]:
    return [count for count in range(1, number + 1) if number % count == 0]


def _powers_of_two(most: int) -> list[int]:
    return [2**power for power in range(most.bit_length())]


def _changed(layout: Layout, change: Callable[[Counts], Counts | int]) -> Layout:
    """A layout with its arrays changed, and its plain numbers as they are."""
    numbers = {part.name: getattr(layout, part.name) for part in fields(Layout)}
    changed: dict[str, Any] = {
        name: change(value) for name, value in numbers.items() if is_array(value)
    }
    return replace(layout, **changed)


def check_fixed(given: Any) -> dict[str, int]:
    """The degrees that a caller fixed, by the names of a layout or those that a plan prints.

    >>> check_fixed("TP=8,PP=16"), check_fixed({"tensor": 8})
    ({'tensor': 8, 'pipeline': 16}, {'tensor': 8})
    """
    if given is None or given == PUBLISHED:
        return {}
    named = dict(_degrees(given)) if isinstance(given, str) else given
    known = {name.lower(): name for name in ("data", *FREE)}
    known |= {short.lower(): name for name, short in PRINTED.items()}
    if not isinstance(named, Mapping) or (unknown := {*map(str.lower, named)} - {*known}):
        raise InputError(
            f"layout fixes some of {', '.join(PRINTED.values())} or {', '.join(FREE)}, as in"
            f" {{'TP': 8}}, or is {PUBLISHED!r}; got"
            f" {abbreviated(named if not isinstance(named, Mapping) else sorted(unknown))}"
        )
    fixed: dict[str, Any] = {known[name.lower()]: degree for name, degree in named.items()}
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
