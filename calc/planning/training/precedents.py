"""What published runs have done: which choices of a layout no row of `calc.published` has made.

Kernels and messages were measured one by one, and a layout puts them together. Where somebody
published what it then reaches, the expectation was held to it; a choice that nobody has published
may be slow for a reason that no part shows.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calc.core.elementwise import where
from calc.planning.training.search import Cuts, Run
from calc.published.layouts import PublishedLayout, published_layouts

DEGREES = {  # of a layout, as they are written
    "data": "DP",
    "tensor": "TP",
    "pipeline": "PP",
    "context": "CP",
    "experts": "EP",
    "stages_per_device": "VP",
}
LIMITED = ("tensor", "pipeline", "context", "experts", "stages_per_device")


def precedents(job: Run) -> tuple[PublishedLayout, ...]:
    """The published layouts of such a model, dense or of experts, on the same device."""
    return tuple(
        each
        for each in published_layouts()
        if each.job.device.key == job.machine.device.key
        and (each.model.experts is None) == (job.model.experts is None)
    )


def within(cuts: Cuts) -> Any:
    """Whether each choice of a layout is one that a published row has made, an array of truths."""
    kept: Any = where(cuts.sequences > 0, True, False)
    for made, _ in _choices(cuts):
        kept = kept & made
    return kept


def beyond(cuts: Cuts) -> str:
    """The sentence that names the choices of one layout which no row has made; "" for none."""
    job = cuts.job
    of = "dense models" if job.model.experts is None else "mixtures of experts"
    unlike = [named for made, named in _choices(cuts) if not made]
    if not unlike:
        return ""
    *others, last = unlike
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"No published row of {of} on {job.machine.device.name} has {listed}."


def _choices(cuts: Cuts) -> Iterator[tuple[Any, str]]:
    """Whether a choice was made before, an array for arrays, and the choice in words."""
    job, layout, known = cuts.job, cuts.layout, precedents(cuts.job)
    length = job.length
    if not known:
        yield cuts.sequences < 0, "any layout at all"
        return
    formats = {each.job.formats.dtype for each in known}
    yield (
        cuts.sequences > (0 if job.dtype in formats else job.sequences),
        (f"products in {job.dtype.upper()}"),
    )
    yield (
        where(layout.schedule == "1f1b", cuts.sequences > 0, cuts.sequences < 0),
        (f"the schedule {layout.schedule}"),
    )
    for name in LIMITED:
        degree = getattr(layout, name)
        most = max(getattr(each.layout, name) for each in known)
        short = DEGREES[name]
        yield degree <= most, f"{short}{degree}" + (f" ({short}{most} at most)" if most > 1 else "")
    least: Any = 1
    for stages in sorted({each.layout.pipeline for each in known}):
        slices = min(each.layout.tensor for each in known if each.layout.pipeline >= stages)
        least = where(layout.pipeline >= stages, slices, least)
    yield (
        layout.tensor >= least,
        (f"PP{layout.pipeline} with TP{layout.tensor} (TP{least} at least)"),
    )
    parts = [
        each.microbatch.length // each.layout.context for each in known if each.layout.context > 1
    ]
    if parts:
        enough = (layout.context == 1) | (length >= min(parts) * layout.context)
        yield enough, (f"CP{layout.context} on {length} tokens (parts of {min(parts)} at least)")
    sharded = [each.layout.pipeline for each in known if each.layout.sharding > 1]
    yield (
        (layout.sharding < 2) | (layout.pipeline <= max(sharded, default=0)),
        (f"shared gradients with PP{layout.pipeline}"),
    )
    yield (layout.sharding == 0) | (layout.sharers == layout.copies), "hybrid sharding"
