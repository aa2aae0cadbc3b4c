"""All legal layouts of a training run, each with its memory and its bounds: arrays throughout."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.software import Software
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity, quantity
from calc.laws.roofline import StepTime
from calc.laws.training import Recipe
from calc.networks import transformer
from calc.steps import layouts
from calc.steps.finetuning import Adapters
from calc.steps.job import ALL, Batch, Formats, Job, Layout, Training
from calc.steps.layouts import DeviceMemory
from calc.steps.timing import step

MOST_LAYOUTS = 2_000_000
"""Beyond these a search would take a minute, and is asked to be told more."""
FREE = ("tensor", "pipeline", "context", "experts", "stages_per_device", "sharding", "sharing")
"""What a search chooses, and what may be fixed; the number of copies follows."""
THIN = 8
"""Thin stages of a device, at most: with more their messages grow beyond what a bubble saves."""


@dataclass(frozen=True)
class Run:
    """What is to be trained, on what: all that layouts are judged by."""

    model: Transformer
    machine: Machine
    devices: int
    length: int
    sequences: int
    """Of a step, on all devices together."""
    recomputations: tuple[str, ...]
    recipe: Recipe
    tuned: Adapters | None
    """What is trained, where that is not all of the model."""
    dtype: str
    usable: float
    """Share of a device's memory that states and activations may fill."""
    software: Software
    schedule: str
    fixed: Mapping[str, int]

    @property
    def trained(self) -> Training:
        """All of the model, or adapters alone."""
        return ALL if self.tuned is None else self.tuned

    def cut(self, layout: Layout) -> Job:
        """The job in one layout, or in arrays of them."""
        sizes = Formats(self.dtype)
        return Job(self.model, self.machine, layout, sizes, self.software, self.trained)

    @property
    def room(self) -> Quantity:
        """Memory of a device for states and activations."""
        room: Quantity = self.usable * self.machine.device.memory_capacity
        return room


@dataclass(frozen=True)
class Cuts:
    """Layouts of a job that recompute alike, as arrays: microbatches, memory and bounds of each."""

    job: Run
    layout: Layout
    sequences: Any
    """Of a microbatch."""
    recomputation: str

    @cached_property
    def memory(self) -> DeviceMemory:
        """What the fullest device holds."""
        job = self.job
        sizes = job.length, quantity(self.sequences, ""), self.recomputation, job.recipe
        return layouts.memory_per_device(job.model, self.layout, *sizes)

    @cached_property
    def held(self) -> Any:
        """The same, in bytes."""
        return self.memory.total.m_as("byte")

    @cached_property
    def step(self) -> StepTime:
        """The parts of a step."""
        batch = Batch(self.job.length, quantity(self.sequences, ""), self.recomputation)
        return step(self.job.cut(self.layout), batch)

    @cached_property
    def expected(self) -> Any:
        """Seconds of a step as it is expected of each; NaN where a rate was not measured."""
        import numpy

        found = self.step.expected
        return numpy.full(self.count, numpy.nan) if found is None else found.m_as("s")

    @property
    def count(self) -> int:
        """How many layouts there are."""
        return int(self.sequences.size)

    def where(self, wanted: Any) -> Cuts:
        """Those of them that are wanted."""
        layout = _each(self.layout, lambda values: values[wanted])
        return replace(self, layout=layout, sequences=self.sequences[wanted])

    def one(self, place: int) -> Cuts:
        """One of them, in plain numbers."""
        layout = _each(self.layout, lambda values: int(values[place]))
        return replace(self, layout=layout, sequences=int(self.sequences[place]))


def all_cuts(job: Run) -> list[Cuts]:
    """Every legal layout of a job, whether or not it fits, by what is recomputed."""
    import numpy

    columns = numpy.array(list(_layouts(job)), dtype=numpy.int64).reshape(-1, 9)
    names = ("data", *FREE)
    *chosen, sequences = columns.T
    numbers: dict[str, Any] = dict(zip(names, chosen, strict=True))
    each = job.sequences // numbers["data"]
    numbers |= {"microbatches": each // sequences, "schedule": job.schedule}
    layout = Layout(**numbers) if columns.size else None
    if layout is None or not (legal := layout.legal(job.model)).any():
        raise InputError(
            f"no layout cuts {job.model.name} and {job.sequences} sequences for {job.devices}"
            f" devices of {job.machine.name}{_as_fixed(job)}: take another number of devices or"
            " sequences"
        )
    cuts = Cuts(job, layout, sequences, job.recomputations[0]).where(legal)
    return [replace(cuts, recomputation=each) for each in job.recomputations]


def _as_fixed(job: Run) -> str:
    fixed = ", ".join(f"{name} {value}" for name, value in job.fixed.items())
    return f" with {fixed}" if fixed else ""


def _layouts(job: Run) -> Iterator[tuple[int, ...]]:
    """Layouts that the counts allow; `Layout.legal` has the last word."""
    model, machine = job.model, job.machine
    heads, layers = model.heads, model.layers
    experts = model.experts or 1
    slices = [each for each in _divisors(heads) if each <= max(machine.domain, 1)]
    found = 0
    for tensor, pipeline in product(_wanted(job, "tensor", slices), _stages(job, layers)):
        if job.devices % (tensor * pipeline):
            continue
        copies = job.devices // (tensor * pipeline)
        for context in _wanted(job, "context", _powers_of_two(min(copies, job.length))):
            data = copies // context
            if copies % context or job.sequences % data:
                continue
            shared = [each for each in _divisors(experts) if copies * tensor % each == 0]
            states = _states(job, tensor, copies)
            each = job.sequences // data
            for sequences in _divisors(each):
                thin = _thin(job, layers, pipeline, each // sequences)
                for among, few, (stage, sharing) in product(
                    _wanted(job, "experts", shared), thin, states
                ):
                    found += 1
                    if found > MOST_LAYOUTS:
                        raise InputError(
                            f"more than {MOST_LAYOUTS:,} layouts of {model.name} on {job.devices}"
                            " devices are legal: fix one of " + ", ".join(FREE)
                        )
                    yield data, tensor, pipeline, context, among, few, stage, sharing, sequences


def _wanted(job: Run, name: str, free: list[int]) -> list[int]:
    return [job.fixed[name]] if name in job.fixed else free


def _stages(job: Run, layers: int) -> list[int]:
    if job.devices > job.machine.most_joined:
        return []
    return _wanted(job, "pipeline", [each for each in _divisors(job.devices) if each <= layers])


def _thin(job: Run, layers: int, pipeline: int, microbatches: int) -> list[int]:
    """Thin stages of a device: one, or as many as divide its layers; two for zb-v."""
    if job.schedule != "1f1b":
        return _wanted(
            job, "stages_per_device", [2 if job.schedule == "zb-v" and pipeline > 1 else 1]
        )
    if pipeline == 1 or microbatches % pipeline:
        return _wanted(job, "stages_per_device", [1])
    most = min(THIN, -(-layers // pipeline))
    return _wanted(job, "stages_per_device", list(range(1, most + 1)))


def _states(job: Run, tensor: int, copies: int) -> list[tuple[int, int]]:
    """Stages of ZeRO, with the devices that divide a state: all, or those of a domain."""
    stages = [job.fixed["sharding"]] if "sharding" in job.fixed else [0, 1, 2, 3]
    near = max(1, job.machine.domain // tensor)
    groups = {copies} | ({near} if 1 < near < copies and copies % near == 0 else set())
    if "sharing" in job.fixed:
        groups = {job.fixed["sharing"]}
    return [
        (stage, group) for stage in stages for group in sorted(groups) if stage or group == copies
    ]


@cache
def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _powers_of_two(most: int) -> list[int]:
    return [2**each for each in range(most.bit_length())]


def _each(layout: Layout, change: Callable[[Any], Any]) -> Layout:
    """A layout with its arrays changed, and its plain numbers as they are."""
    held = {each.name: getattr(layout, each.name) for each in fields(Layout)}
    arrays = {name: value for name, value in held.items() if getattr(value, "ndim", 0)}
    return replace(layout, **{name: change(value) for name, value in arrays.items()})


def check_fixed(given: Any) -> dict[str, int]:
    """The degrees that a caller fixed, by the names of a layout."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or (unknown := {*given} - {*FREE}):
        raise InputError(
            f"layout fixes some of {', '.join(FREE)}, as in {{'tensor': 8}}; got"
            f" {abbreviated(given if not isinstance(given, Mapping) else sorted(unknown))}"
        )
    Layout(**given)  # refuses what is no count
    return dict(given)


def tokens_of(job: Run) -> Quantity:
    """Tokens of a step."""
    return quantity(1, "token") * transformer.batch_tokens(job.length, job.sequences)


def operations_of(job: Run) -> Quantity:
    """Operations of a step, forward and backward."""
    return job.trained.work(job.model, job.length) * tokens_of(job)
