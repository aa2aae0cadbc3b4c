"""Published rows, beside what calc says of what they measured."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain

from calc.core.errors import InputError
from calc.published import closed_loops, collective_rows, kernel_rows, serving_rows, training_rows
from calc.published.prediction import Comparison
from calc.published.reading import GROUPS, Row, rows

PREDICT = {
    "kernel": kernel_rows.predict,
    "collective": collective_rows.predict,
    "training": training_rows.predict,
    "serving": serving_rows.predict,
    closed_loops.GROUP: closed_loops.predict,
}


def compare(measurements: Iterable[Row] | None = None) -> tuple[Comparison, ...]:
    """Every row, beside its prediction.

    >>> from calc.published import compare, rows
    >>> [row] = [row for row in rows("training") if row.id == "llm-foundry"]
    >>> [found] = compare([row])
    >>> print(f"{found.share_of_bound:.2f}")
    0.54
    """
    if measurements is None:
        return tuple(chain.from_iterable(map(compared, GROUPS)))
    return tuple(map(predict, measurements))


@cache
def compared(group: str) -> tuple[Comparison, ...]:
    """The rows of a group, kept: some take seconds, and chapters and figures ask for them again.

    >>> len(compared("training")) == len(rows("training"))
    True
    """
    return tuple(map(predict, rows(group)))


def predict(row: Row) -> Comparison:
    """One row beside its prediction.

    >>> predict(rows("serving")[0]).machine
    'dgx-a100'
    """
    try:
        return PREDICT[row.group](row)
    except InputError as reason:  # a condition that is missing, or one that contradicts a machine
        return Comparison(row, reason=str(reason))
