"""Second counts, by another route, of the rows of derivations that grow with the data.

A row names one of these as `counted`. Another device changes them, and nobody copies a number
for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from statistics import median
from typing import Any

from calc import published
from tests.book.rendered import REPOSITORY

NO_LENGTHS = "the lengths of its prompts and answers are not stated"


def devices() -> int:
    data = REPOSITORY / "calc" / "data" / "accelerators.toml"
    tables = tomllib.loads(data.read_text(encoding="utf-8")).values()
    return sum(table["kind"] != "announced" for table in tables)


def bounded() -> list[Any]:
    return [row for row in published.compare() if row.prediction]


def share_of_serving() -> int:
    serving = [row for row in bounded() if row.row.group == "serving"]
    stated = [row for row in serving if NO_LENGTHS not in row.prediction.missing]
    return round(100 * median(row.share_of_bound for row in stated))


COUNTS: dict[str, Callable[[], float]] = {
    "devices": devices,
    "rows with a bound": lambda: len(bounded()),
    "rows without a bound": lambda: len(published.compare()) - len(bounded()),
    "median share of serving": share_of_serving,
    "one over the median share of serving": lambda: 100 / share_of_serving(),
}
