"""Choices of a layout that rows of `calc.published` have made, and those that none has.

Kernels and messages were measured one by one, and a layout puts them together. Where somebody
published what it then reaches, the expectation was held to it; a choice that nobody has published
may be slow for a reason that no part shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from calc.core.arrays import Number, Truth, Truths
from calc.core.elementwise import where
from calc.planning.training.layout_search import PRINTED, Cuts, Task
from calc.published.layout_rows import published_layouts
from calc.steps.job import Layout

DEGREES = {name: short for name, short in PRINTED.items() if name != "sharding"}
LIMITED = ("tensor", "pipeline", "context", "experts", "stages_per_device")


@dataclass(frozen=True)
class Precedents:
    """The reach of the published layouts of such models, dense or of experts, on a device."""

    dtypes: frozenset[str]
    most: tuple[tuple[str, int], ...]
    """The largest of each degree."""
    slices: tuple[tuple[int, int], ...]
    """From so many stages on there are so many slices at least."""
    part: int
    """The shortest part of a sequence, in tokens; 0 where none was cut."""
    stages: int
    """The most of those that share gradients; 0 where none do."""


@cache
def precedents(device: str, mixture: bool) -> Precedents | None:
    """Return the reach of the layouts published of a device; None where there are none.

    >>> dict(precedents("h100", mixture=False).most)["context"]
    32
    """
    rows = [
        row
        for row in published_layouts()
        if row.job.device.key == device and (row.model.experts is not None) is mixture
    ]
    layouts: list[Any] = [row.layout for row in rows]  # whose degrees are plain numbers
    if not rows:
        return None
    parts = [row.microbatch.length // row.layout.context for row in rows if row.layout.context > 1]
    return Precedents(
        frozenset(row.job.formats.dtype for row in rows),
        tuple((name, max(getattr(layout, name) for layout in layouts)) for name in LIMITED),
        tuple(
            (stages, min(layout.tensor for layout in layouts if layout.pipeline >= stages))
            for stages in sorted({layout.pipeline for layout in layouts})
        ),
        min(parts, default=0),
        max((layout.pipeline for layout in layouts if layout.sharding > 1), default=0),
    )


def within(cuts: Cuts) -> Truths:
    """Return whether each choice of a layout is one that a published row has made, as truths."""
    within: Truths = cuts.sequences > 0
    for is_known, _ in _choices(cuts.run, cuts.layout):
        within = within & is_known
    return within


def beyond(run: Task, layout: Layout) -> str:
    """The sentence that names the choices of one layout which no row has made; "" for none."""
    job = run.job
    of = "dense models" if job.model.experts is None else "mixtures of experts"
    unlike = [choice.format(layout) for is_known, choice in _choices(run, layout) if not is_known]
    if not unlike:
        return ""
    *others, last = unlike
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"No published row of {of} on {job.device.name} has {listed}."


def _choices(run: Task, layout: Layout) -> Iterator[tuple[Truth, str]]:
    """Yield whether a choice was made before, an array for arrays, and the choice as words."""
    job, length = run.job, run.length
    rows = precedents(job.device.key, job.model.experts is not None)
    if rows is None:
        yield False, "any layout at all"
        return
    dtype = job.formats.dtype
    yield dtype in rows.dtypes, f"products in {dtype.upper()}"
    yield layout.schedule == "1f1b", f"the schedule {layout.schedule}"
    for name, most in rows.most:
        limit = f" ({DEGREES[name]}{most} at most)" if most > 1 else ""
        yield getattr(layout, name) <= most, f"{DEGREES[name]}{{0.{name}}}{limit}"
    least: Number = 1
    for stages, slices in rows.slices:
        least = where(layout.pipeline >= stages, slices, least)
    enough = layout.tensor >= least
    yield enough, f"PP{{0.pipeline}} with TP{{0.tensor}} (TP{least} at least)"
    if rows.part:
        enough = (layout.context == 1) | (length >= rows.part * layout.context)
        yield enough, f"CP{{0.context}} on {length} tokens (parts of {rows.part} at least)"
    enough = (layout.sharding < 2) | (layout.pipeline <= rows.stages)
    yield enough, "shared gradients with PP{0.pipeline}"
    yield (layout.sharding == 0) | (layout.sharers == layout.copies), "hybrid sharding"
