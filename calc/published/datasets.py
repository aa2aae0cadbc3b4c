"""The data sets that benchmarks name in place of lengths, from `data/published/datasets.toml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from calc.core.records import read_record, read_toml
from calc.published.reading import FOLDER, Row

FILE = FOLDER / "datasets.toml"


@dataclass(frozen=True)
class DataSet:
    """Mean tokens of a benchmark's prompts and answers, and the limits of its scenarios."""

    prompt: float | None
    """None where its mean is not published."""
    answer: float
    limits: dict[str, tuple[float, float]]
    """Seconds to the first token, and for each after it."""


def data_set_of(row: Row) -> DataSet | None:
    """The data set of a row that states no lengths of its own.

    >>> stated = {"model": "llama2-70b-99.9", "input_len": "data set"}
    >>> data_set_of(Row("serving", "", stated, {})).answer
    294.45
    """
    if row.number("output_len") is not None or "data set" not in str(row["input_len"]):
        return None
    return named(str(row["model"]))


def named(benchmark: str) -> DataSet | None:
    """The data set of what names its benchmark; None of one that has lengths of its own.

    >>> named("6.0-0002-llama3.1-8b-server").prompt
    778.0
    """
    return next((data for pattern, data in _all().items() if re.search(pattern, benchmark)), None)


def get(name: str) -> DataSet:
    """The data set of that benchmark.

    >>> get("llama2-70b").limits["Server"]
    (2.0, 0.2)
    """
    return _all()[name]


@cache
def _all() -> dict[str, DataSet]:
    by_name = {}
    for name, table in read_toml(FILE).items():
        means = {
            part: read_record(table[part], f"{name}.{part}", FILE).quantity.m_as("token")
            for part in ("prompt", "answer")
            if part in table
        }
        limits = {scenario: tuple(pair) for scenario, pair in table["limits"].items()}
        by_name[name] = DataSet(means.get("prompt"), means["answer"], limits)
    return by_name
