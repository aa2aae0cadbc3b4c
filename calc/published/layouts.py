"""The layouts of published training steps, as `calc.layouts` has them.

A row has one where it says how its model is cut, and of how many sequences: degrees that make the
number of its devices, and a batch of whole microbatches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.software import Software, software_of
from calc.core.errors import InputError
from calc.laws.roofline import StepTime
from calc.published import conditions
from calc.published.prediction import UnusableRowError
from calc.published.reading import Row, rows
from calc.published.training import cut, is_frozen, recomputed
from calc.steps import kernels, layouts
from calc.steps.layouts import DeviceMemory, Layout


@dataclass(frozen=True)
class PublishedLayout:
    """A row's layout, and what it cuts."""

    row: Row
    model: Transformer
    machine: Machine
    software: Software
    dtype: str
    length: int
    sequences: int
    """Of a microbatch."""
    recomputation: str
    layout: Layout

    @property
    def batch(self) -> int:
        """Sequences of a step."""
        return int(self.sequences * self.layout.microbatches * self.layout.data)

    @property
    def memory(self) -> DeviceMemory:
        """What the fullest device holds, by the recipe of the software."""
        sizes = self.length, self.sequences, self.recomputation, self.software.recipe
        return layouts.memory_per_device(self.model, self.layout, *sizes)

    @property
    def step(self) -> StepTime:
        """A step of it."""
        return layouts.training_step(
            self.model,
            self.layout,
            self.length,
            self.sequences,
            self.machine,
            recomputation=self.recomputation,
            dtype=self.dtype,
            software=self.software.key or None,
        )


@cache
def published_layouts() -> tuple[PublishedLayout, ...]:
    """All rows of training that state a layout; those that train adapters alone are left out.

    >>> [found] = [each for each in published_layouts() if each.row.id == "nemo-24.07-15"]
    >>> found.layout.tensor, found.layout.pipeline, found.layout.microbatches
    (4, 4, 32)
    """
    found = []
    for row in rows("training"):
        try:
            found.append(layout_of(row))
        except InputError:  # a condition that is missing or not known, which `compare` lists
            continue
    return tuple(found)


def layout_of(row: Row) -> PublishedLayout:
    """The layout of one row."""
    machine, model, stated = conditions.machine(row), conditions.model(row), cut(row)
    if is_frozen(row):
        raise UnusableRowError("it trains adapters alone")
    if not conditions.layout(row) and stated.sharding == 1:
        raise UnusableRowError("it does not say how its model is cut")
    length = row.number("seq_len")
    if length is None:
        raise UnusableRowError("the length of its sequences is not stated")
    if stated.microbatches % 1 or stated.sequences % 1:
        raise UnusableRowError(f"its batch makes {stated.microbatches} microbatches")
    layout = Layout(
        data=stated.data,
        tensor=stated.tensor,
        pipeline=stated.stages,
        microbatches=int(stated.microbatches),
        sharding=stated.sharding,
        context=stated.contexts,
        experts=stated.experts,
        stages_per_device=stated.thin_stages if stated.stages > 1 else 1,
    )
    if layout.devices != conditions.devices(row):
        raise UnusableRowError(f"its degrees make {layout.devices} devices, not as many as it has")
    return PublishedLayout(
        row,
        kernels.reaching(model, length),
        machine,
        software_of(row.software),
        conditions.dtype(row) or "bf16",
        int(length),
        int(stated.sequences),
        "full" if recomputed(row) else "selective",
        layout,
    )
