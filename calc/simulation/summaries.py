"""Summaries of several seeds: a row for each variant, with its spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calc.core.errors import InputError
from calc.simulation.frames import frame_of, imported

if TYPE_CHECKING:
    from polars import DataFrame

VARIANT = ("kind", "pruning", "precision")


def summarize_sweep(table: DataFrame) -> DataFrame:
    """The table of a sweep with its seeds drawn together: a row for each variant, in their order.

    `accuracy` is the mean over the seeds and `accuracy_std` their sample standard deviation (none,
    for a single seed); `latency_seconds` and `latency_spread_seconds` are medians. What does not
    depend on the seed stays as it is, memory of sparse storage and energies are means, and a
    variant is accepted if it is accepted from every seed.

    >>> import polars
    >>> table = polars.DataFrame({
    ...     "kind": "unstructured", "pruning": [0.5, 0.5], "precision": "int8", "seed": [0, 1],
    ...     "accuracy": [0.94, 0.96], "accepted": [True, True],
    ... })
    >>> summarize_sweep(table).select("seeds", "accuracy", "accepted").rows()
    [(2, 0.95, True)]
    """
    polars = imported()
    column = polars.col
    frame = frame_of(table)
    lacking = [name for name in (*VARIANT, "accuracy", "accepted") if name not in frame.columns]
    if lacking:
        raise InputError(f"summarize_sweep() needs rows of run_sweep(), which hold {lacking[0]}")
    flags = [name for name in frame.columns if name.startswith("over_")]
    return frame.group_by(VARIANT, maintain_order=True).agg(
        polars.len().alias("seeds"),
        column("accuracy").mean(),
        column("accuracy").std().alias("accuracy_std"),
        column("^latency_.*$").median(),
        column("^memory_.*$").mean(),
        column("^energy_.*$").mean(),
        column("accepted").all(),
        *[column(name).any() for name in flags],
    )
