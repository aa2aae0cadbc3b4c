"""Intervals of expectations: the file, its classes, and rows that were kept back."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks import intervals as benchmark
from calc.catalog import intervals
from calc.core.errors import InputError
from tests.calc.command import Written

SOURCES = 0.77, 0.85  # of rows of sources kept back that lie inside, where 80 % are claimed


def test_a_class_of_few_rows_has_the_interval_of_the_next_wider_one() -> None:
    fine, wide = intervals.of("serving", "vllm", True), intervals.of("serving", "abacus", True)
    assert (fine.software, wide.software) == ("vllm", "")
    assert fine.rows < wide.rows
    with pytest.raises(InputError, match="work is one of training, serving; got 'cooking'"):
        intervals.of("cooking", "vllm", True)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("serving,vllm,dense,measured,many,2,0.1,0.9,1.1", "must be numbers"),
        ("serving,vllm,dense,measured,30,2,0.1,1.2,1.1", "low must be positive, and high above it"),
    ],
)
def test_a_malformed_class_is_refused(written: Written, row: str, sentence: str) -> None:
    path = written(f"{','.join(intervals.COLUMNS)}\n{row}\n", "intervals.csv")
    with pytest.raises(InputError, match=sentence):
        list(intervals.load(path))


@pytest.mark.slow
def test_intervals_are_those_of_the_published_rows_and_hold_of_sources_kept_back() -> None:
    known = benchmark.residuals()
    made = {
        names: (each.rows, each.low, each.high) for names, each in benchmark.made(known).items()
    }
    stored = {
        (each.work, each.software, each.model, each.basis): (each.rows, each.low, each.high)
        for each in intervals.load()
    }
    assert made.keys() == stored.keys()
    for names, numbers in made.items():
        assert numbers == pytest.approx(stored[names], abs=0.001), names
    _, sources = benchmark.coverage(known)
    inside = mean(holds for of_class in sources.values() for holds in of_class)
    assert SOURCES[0] <= inside <= SOURCES[1]
