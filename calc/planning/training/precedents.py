"""What published runs have done: which choices of a layout no row of `calc.published` has made.

Kernels and messages were measured one by one, and a layout puts them together. Where somebody
published what it then reaches, the expectation was held to it; a choice that nobody has published
may be slow for a reason that no part shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from calc.core.arrays import Number, Truth, Truths
from calc.core.elementwise import where
from calc.planning.training.search import PRINTED, Cuts, Task
from calc.published.layouts import PublishedLayout, published_layouts

DEGREES = {name: short for name, short in PRINTED.items() if name != "sharding"}
LIMITED = ("tensor", "pipeline", "context", "experts", "stages_per_device")


def precedents(run: Task) -> tuple[PublishedLayout, ...]:
    """The published layouts of such a model, dense or of experts, on the same device."""
    job = run.job
    return tuple(
        row
        for row in published_layouts()
        if row.job.device.key == job.device.key
        and (row.model.experts is None) == (job.model.experts is None)
    )


def within(cuts: Cuts) -> Truths:
    """Whether each choice of a layout is one that a published row has made, an array of truths."""
    within: Truths = cuts.sequences > 0
    for known, _ in _choices(cuts):
        within = within & known
    return within


def beyond(cuts: Cuts) -> str:
    """The sentence that names the choices of one layout which no row has made; "" for none."""
    job = cuts.run.job
    of = "dense models" if job.model.experts is None else "mixtures of experts"
    unlike = [choice for known, choice in _choices(cuts) if not known]
    if not unlike:
        return ""
    *others, last = unlike
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"No published row of {of} on {job.device.name} has {listed}."


def _choices(cuts: Cuts) -> Iterator[tuple[Truth, str]]:
    """Whether a choice was made before, an array for arrays, and the choice in words."""
    run, layout, known = cuts.run, cuts.layout, precedents(cuts.run)
    every, none = cuts.sequences > 0, cuts.sequences < 0
    if not known:
        yield none, "any layout at all"
        return
    dtype, length = run.job.formats.dtype, run.length
    alike = dtype in {row.job.formats.dtype for row in known}
    yield every if alike else none, f"products in {dtype.upper()}"
    yield every if layout.schedule == "1f1b" else none, f"the schedule {layout.schedule}"
    for name in LIMITED:
        degree = getattr(layout, name)
        most = max(getattr(row.layout, name) for row in known)
        short = DEGREES[name]
        yield degree <= most, f"{short}{degree}" + (f" ({short}{most} at most)" if most > 1 else "")
    least: Number = 1
    for stages in sorted({row.layout.pipeline for row in known}):
        slices = min(row.layout.tensor for row in known if row.layout.pipeline >= stages)
        least = where(layout.pipeline >= stages, slices, least)
    yield (
        layout.tensor >= least,
        f"PP{layout.pipeline} with TP{layout.tensor} (TP{least} at least)",
    )
    parts = [row.microbatch.length // row.layout.context for row in known if row.layout.context > 1]
    if parts:
        enough = (layout.context == 1) | (length >= min(parts) * layout.context)
        yield enough, f"CP{layout.context} on {length} tokens (parts of {min(parts)} at least)"
    stages = max((row.layout.pipeline for row in known if row.layout.sharding > 1), default=0)
    yield (
        (layout.sharding < 2) | (layout.pipeline <= stages),
        f"shared gradients with PP{layout.pipeline}",
    )
    yield (layout.sharding == 0) | (layout.sharers == layout.copies), "hybrid sharding"
