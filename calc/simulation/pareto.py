"""The Pareto front: the rows of a table that no other row beats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calc.core.arguments import one_of
from calc.core.errors import InputError, abbreviated
from calc.simulation.frames import frame_of

if TYPE_CHECKING:
    from polars import DataFrame

DIRECTIONS = {"max": -1, "min": 1}


def pareto_frontier(table: Any, objectives: Mapping[str, str]) -> DataFrame:
    """The rows of a table that no other row beats: at least as good in all, better in one.

    `objectives` gives each column that matters a direction, "max" or "min". Rows that tie in every
    objective stay together; rows and columns keep their order. A row without a value, or with NaN,
    in an objective is refused: it can be compared with none.

    >>> front = pareto_frontier(
    ...     [
    ...         {"name": "small", "accuracy": 0.90, "bytes": 10},
    ...         {"name": "large", "accuracy": 0.95, "bytes": 40},
    ...         {"name": "worse", "accuracy": 0.90, "bytes": 20},
    ...     ],
    ...     {"accuracy": "max", "bytes": "min"},
    ... )
    >>> front["name"].to_list()
    ['small', 'large']
    """
    import numpy

    frame = frame_of(table)
    costs = numpy.column_stack(
        [_costs(frame, name, direction) for name, direction in _checked(objectives)]
    )
    left = numpy.ones(len(frame), dtype=bool)
    for row in range(len(frame)):
        if left[row]:  # what is beaten beats nothing that its own better would not
            no_better = (costs >= costs[row]).all(axis=1)
            left &= ~(no_better & (costs > costs[row]).any(axis=1))
    return frame.filter(left)


def _checked(objectives: Mapping[str, str]) -> list[tuple[str, str]]:
    if not isinstance(objectives, Mapping) or not objectives:
        raise InputError(
            f"pareto_frontier(): objectives must name columns and their directions, as in"
            f' {{"accuracy": "max"}}; got {abbreviated(objectives)}'
        )
    for name, direction in objectives.items():
        one_of(f"pareto_frontier(): the direction of {name}", direction, DIRECTIONS)
    return list(objectives.items())


def _costs(frame: DataFrame, name: str, direction: str) -> Any:
    """The rank of each row in one objective, the best first: exact for numbers of any size."""
    import numpy

    if name not in frame.columns:
        raise InputError(
            f"pareto_frontier(): there is no column {name!r}; the table has"
            f" {', '.join(frame.columns) or 'none'}"
        )
    column = frame[name]
    if not column.dtype.is_numeric() and len(column) > column.null_count():
        raise InputError(
            f"pareto_frontier(): column {name} must hold numbers; it is {column.dtype}"
        )
    missing = column.is_null() | (column.is_nan() if column.dtype.is_float() else False)
    if missing.any():
        rows = missing.arg_true().to_list()
        raise InputError(
            f"pareto_frontier(): {name} has no number in {len(rows)} of {len(frame)} rows, the"
            f" first of them row {rows[0]}; take these rows out, or mend them"
        )
    ranks = numpy.unique(column.to_numpy(), return_inverse=True)[1]
    return DIRECTIONS[direction] * ranks
