"""The Pareto front: the rows of a table that no other row beats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy

from calc.core.arguments import number, one_of
from calc.core.arrays import Counts, Floats, Truths
from calc.core.errors import InputError, abbreviated
from calc.simulation.frames import frame_of

if TYPE_CHECKING:
    from polars import DataFrame

DIRECTIONS = {"max": -1, "min": 1}


def pareto_frontier(
    table: object, objectives: Mapping[str, str], margins: Mapping[str, float | str] | None = None
) -> DataFrame:
    """The rows of a table that no other row beats: at least as good in all, better in one.

    `objectives` gives each column that matters a direction, "max" or "min". Rows that tie in every
    objective stay together; rows and columns keep their order. A row without a value, or with NaN,
    in an objective is refused: it can be compared with none.

    `margins` gives an objective the difference below which it tells nothing: a number, or the name
    of a column with one for each row, such as a spread over seeds. Rows are then taken from the
    best in the other objectives on, and a row stays if no row that stayed beats it; one that is
    behind by no more than the margin of the row in question counts as no worse.

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
    >>> rows = [{"accuracy": 0.90, "bytes": 10}, {"accuracy": 0.91, "bytes": 40}]
    >>> pareto_frontier(
    ...     rows, {"accuracy": "max", "bytes": "min"}, {"accuracy": 0.02}
    ... )["bytes"].to_list()
    [10]
    """
    frame = frame_of(table)
    if margins is not None:
        return frame.filter(_beyond_margins(frame, _checked(objectives), margins))
    costs = numpy.column_stack(
        [_costs(frame, name, direction) for name, direction in _checked(objectives)]
    )
    left = numpy.ones(len(frame), dtype=bool)
    for row in range(len(frame)):
        if left[row]:  # what is beaten beats nothing that its own better would not
            no_better = (costs >= costs[row]).all(axis=1)
            left &= ~(no_better & (costs > costs[row]).any(axis=1))
    return frame.filter(left)


def _beyond_margins(
    frame: DataFrame, objectives: list[tuple[str, str]], margins: Mapping[str, float | str]
) -> Truths:
    """Return a mask of the rows that stay where a difference counts only beyond a margin."""
    directions = dict(objectives)
    if not isinstance(margins, Mapping) or not margins.keys() < directions.keys():
        raise InputError(
            "pareto_frontier(): margins must name objectives, and leave one without a margin to"
            f" begin from; got {abbreviated(margins)}"
        )
    doubted = [goal for goal in objectives if goal[0] in margins]
    certain = [goal for goal in objectives if goal[0] not in margins]
    ranks = numpy.column_stack([_costs(frame, *goal) for goal in certain])
    costs, margin = [], []
    for name, direction in doubted:
        _costs(frame, name, direction)  # refuses what is no number
        costs.append(DIRECTIONS[direction] * frame[name].to_numpy().astype(float))
        margin.append(_margin(frame, name, margins[name]))
    values, allowed = numpy.column_stack(costs), numpy.column_stack(margin)
    stays = numpy.zeros(len(frame), dtype=bool)
    for row in numpy.lexsort([*values.T[::-1], *ranks.T[::-1]]):
        no_worse = (ranks <= ranks[row]).all(axis=1)
        no_worse &= (values <= values[row] + allowed[row]).all(axis=1)
        better = (ranks < ranks[row]).any(axis=1)
        better |= (values < values[row] - allowed[row]).any(axis=1)
        stays[row] = not (stays & no_worse & better).any()
    return stays


def _margin(frame: DataFrame, objective: str, margin: float | str) -> Floats:
    """The margin of each row in an objective."""
    if not isinstance(margin, str):
        return numpy.full(len(frame), number(f"the margin of {objective}", margin))
    _costs(frame, margin, "min")  # refuses a column that there is not, or with gaps
    values = frame[margin].to_numpy().astype(float)
    if (values < 0).any():
        raise InputError(f"pareto_frontier(): the margins of column {margin} must be from 0")
    return values


def _checked(objectives: Mapping[str, str]) -> list[tuple[str, str]]:
    if not isinstance(objectives, Mapping) or not objectives:
        raise InputError(
            f"pareto_frontier(): objectives must name columns and their directions, as in"
            f' {{"accuracy": "max"}}; got {abbreviated(objectives)}'
        )
    for name, direction in objectives.items():
        one_of(f"pareto_frontier(): the direction of {name}", direction, DIRECTIONS)
    return list(objectives.items())


def _costs(frame: DataFrame, name: str, direction: str) -> Counts:
    """The rank of each row in one objective, the best first: exact for numbers of any size."""
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
    return DIRECTIONS[direction] * numpy.unique(column.to_numpy(), return_inverse=True)[1]
