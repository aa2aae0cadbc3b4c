"""The data sets that benchmarks name in place of lengths, from `data/published/datasets.toml`, and
the servers that submitters ran on those of MLPerf, from `mlperf_loads.csv` beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from calc.core.records import read_record, read_rows, read_toml
from calc.published.reading import FOLDER, Row
from calc.steps.job import Layout

FILE = FOLDER / "datasets.toml"
PARTS = {
    "prompt": "token",
    "answer": "token",
    "prompt_spread": "1",
    "answer_spread": "1",
    "beams": "1",
}
SPREAD = 0.5
"""Standard deviation of lengths over their mean, where it is not published."""


@dataclass(frozen=True)
class DataSet:
    """Tokens of a benchmark's prompts and answers, in the mean and about it, and its limits."""

    prompt: float | None
    """None where its mean is not published."""
    answer: float
    limits: dict[str, tuple[float, float]]
    """Seconds to the first token, and for each after it."""
    prompt_spread: float = SPREAD
    answer_spread: float = SPREAD
    beams: float = 1.0
    """Sequences that are written for each answer."""


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
    870.73
    """
    return next((data for pattern, data in _all().items() if re.search(pattern, benchmark)), None)


def get(name: str) -> DataSet:
    """The data set of that benchmark.

    >>> get("llama2-70b").limits["Server"]
    (2.0, 0.2)
    """
    return _all()[name]


@cache
def mlperf_rows() -> tuple[dict[str, str], ...]:
    """Results of MLPerf Inference v6.0 in Server and Interactive, with percentiles in ms.

    >>> mlperf_rows()[0]["scenario"]
    'Server'
    """
    return tuple(read_rows(FOLDER / "mlperf_loads.csv"))


@cache
def layouts(benchmark: str, devices: int) -> tuple[Layout, ...]:
    """The layouts of so many devices in which submitters published servers of its data set.

    >>> [(one.data, one.tensor) for one in layouts("llama2-70b-99", 8)]
    [(8, 1)]
    """
    cuts = {
        tuple(int(row[name] or 1) for name in ("tensor", "data", "experts"))
        for row in mlperf_rows()
        if named(row["id"]) is named(benchmark) and row["tensor"] and not row["readers"]
    }
    return tuple(
        Layout(devices // tensor, tensor, experts=experts)
        for tensor, data, experts in sorted(cuts)
        if devices % (tensor * data) == 0
    )


@cache
def _all() -> dict[str, DataSet]:
    by_name = {}
    for name, table in read_toml(FILE).items():
        numbers = {
            part: read_record(table[part], f"{name}.{part}", FILE).quantity.m_as(unit)
            for part, unit in PARTS.items()
            if part in table
        }
        limits = {scenario: tuple(pair) for scenario, pair in table["limits"].items()}
        by_name[name] = DataSet(numbers.pop("prompt", None), limits=limits, **numbers)
    return by_name
