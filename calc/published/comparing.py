"""What calc says of published rows, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from calc.core.errors import InputError
from calc.published import closed_loops, collectives, kernels, serving, training
from calc.published.prediction import Comparison
from calc.published.reading import Row, rows

PREDICT = {
    "kernel": kernels.predict,
    "collective": collectives.predict,
    "training": training.predict,
    "serving": serving.predict,
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
    return _of_all() if measurements is None else tuple(map(predict, measurements))


@cache
def _of_all() -> tuple[Comparison, ...]:
    """Kept, since it takes some seconds, and chapters and figures ask for it again."""
    return tuple(map(predict, rows()))


def predict(row: Row) -> Comparison:
    """One row beside its prediction.

    >>> predict(rows("serving")[0]).machine
    'dgx-a100'
    """
    try:
        return PREDICT[row.group](row)
    except InputError as reason:  # a condition that is missing, or one that contradicts a machine
        return Comparison(row, reason=str(reason))
