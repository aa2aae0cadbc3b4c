"""The layouts of published training steps, as `calc.layouts` has them.

A row has one where it says how its model is cut, and of how many sequences: degrees that make the
number of its devices, and a batch of whole microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from calc.catalog.models import Transformer
from calc.core.errors import InputError
from calc.core.units import Quantity, quantity
from calc.published import conditions, training_rows
from calc.published.reading import Row, UnusableRowError, rows
from calc.steps import layouts
from calc.steps.expectation import Step
from calc.steps.job import Batch, Job, Layout
from calc.steps.layouts import DeviceMemory
from calc.steps.timing import step


@dataclass(frozen=True)
class PublishedLayout:
    """A row's job, and the batch of a step."""

    row: Row
    job: Job
    microbatch: Batch

    @property
    def layout(self) -> Layout:
        """The layout by which the model is cut."""
        return self.job.layout

    @property
    def model(self) -> Transformer:
        """The part of the model that is trained."""
        return self.job.model

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return int(self.microbatch.sequences * self.layout.microbatches * self.layout.data)

    @property
    def memory(self) -> DeviceMemory:
        """The memory that the fullest device holds, by the recipe of the row or of its software."""
        one = self.microbatch
        program, dtype = self.job.software, self.job.formats.dtype
        sizes = one.length, one.sequences, one.recomputation, self.row["recipe"] or program.recipe
        whole = layouts.memory_per_device(
            self.model, self.layout, *sizes, loss=program.loss, dtype=dtype
        )
        here = 1 - (self.row.number("offloaded_layers") or 0) / self.model.layers
        return replace(whole, activations=here * whole.activations)

    @property
    def measured_memory(self) -> Quantity | None:
        """The peak that a device reserved, where the source says it."""
        measured = self.row.measured
        peak = measured.get("peak_memory", measured.get("memory"))
        return None if peak is None else quantity(peak, "GiB")

    @property
    def step(self) -> Step:
        """A step of it."""
        return step(self.job, self.microbatch)


@cache
def published_layouts() -> tuple[PublishedLayout, ...]:
    """All rows of training that state a layout; those that train adapters alone are left out.

    >>> [stated] = [layout for layout in published_layouts() if layout.row.id == "nemo-24.07-15"]
    >>> stated.layout.tensor, stated.layout.pipeline, stated.layout.microbatches
    (4, 4, 32)
    """
    stated = []
    for row in rows("training"):
        try:
            stated.append(layout_of(row))
        except InputError:  # a condition that is missing or not known, which `compare` lists
            continue
    return tuple(stated)


def layout_of(row: Row) -> PublishedLayout:
    """The layout of one row."""
    if training_rows.is_frozen(row):
        raise UnusableRowError("it trains adapters alone")
    job, batch = training_rows.job_of(row), training_rows.batch_of(row)
    if not conditions.layout(row) and job.layout.sharding == 1:
        raise UnusableRowError("it does not say how its model is cut")
    if job.layout.devices != conditions.devices(row):
        raise UnusableRowError(
            f"its degrees make {job.layout.devices} devices, not as many as it has"
        )
    return PublishedLayout(row, job, batch)
