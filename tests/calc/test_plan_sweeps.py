"""Sweeps of plans: rows here and in processes, a file that goes on, tasks that are lost."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from calc import InputError
from calc.planning import grid, run_plans, training_row
from tests.calc.executors import Loses

ASKED = {"model": "llama-3-8b", "hardware": "dgx-h100", "tokens": "1B", "length": 2048}
POINTS = [
    ASKED | {"sequences": 32, "layout": {"pipeline": 1, "context": 1}} | each
    for each in grid(devices=[8, 16, 3])
]
made: list[int] = []


def squared(number: int) -> dict[str, Any]:
    if number > 100:
        raise InputError(f"{number} is too large")
    made.append(number)
    return {"square": number**2}


def numbers(count: int) -> list[dict[str, Any]]:
    return grid(number=range(count))


def test_a_row_for_each_point() -> None:
    rows = run_plans(squared, [*numbers(3), {"number": 101}])
    assert rows[:3] == [{"number": each, "square": each**2} for each in range(3)]
    assert rows[3] == {"number": 101, "error": "101 is too large"}
    assert grid(a=[1, 2], b=["x"]) == [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]


def test_plans_of_a_layout() -> None:
    rows = run_plans(training_row, POINTS)
    assert [row["devices"] for row in rows] == [8, 16, 3]
    assert rows[0]["duration_days"] > rows[1]["duration_days"]
    assert "3 devices" in rows[2]["error"]


@pytest.mark.slow
def test_processes_make_the_same_plans() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        assert run_plans(training_row, POINTS, workers) == run_plans(training_row, POINTS)


def test_a_file_goes_on(tmp_path: Path) -> None:
    path, progress = tmp_path / "plans.jsonl", []
    made.clear()
    run_plans(squared, numbers(3), resume=path)
    rows = run_plans(
        squared,
        numbers(5),
        resume=path,
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert made == [0, 1, 2, 3, 4]
    assert [row["square"] for row in rows] == [0, 1, 4, 9, 16]
    assert progress == [(3, 5), (4, 5), (5, 5)]
    with pytest.raises(InputError, match="holds the rows of another sweep, which differs in plans"):
        run_plans(training_row, POINTS, resume=path)


def test_a_lost_task_is_given_once_more(tmp_path: Path) -> None:
    path = tmp_path / "plans.jsonl"
    assert len(run_plans(squared, numbers(4), Loses({2}))) == 4
    with pytest.raises(ValueError, match="too many values"):
        run_plans(squared, numbers(4), Loses({2, 5}), resume=path)
    made.clear()
    assert len(run_plans(squared, numbers(4), resume=path)) == 4
    assert 0 < len(made) < 4


@pytest.mark.nightly
def test_a_dask_cluster_makes_the_same_plans() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = run_plans(training_row, POINTS, client.get_executor())
    assert rows == run_plans(training_row, POINTS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"points": 3}, "points must be a list; got 3"),
        ({"points": [3]}, "a point is arguments by their names; got 3"),
        ({"points": [{"number": object}]}, "number of a point must be a word or a plain number"),
        ({"points": [], "executor": 2}, "executor must be one of concurrent.futures"),
    ],
)
def test_bad_input(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run_plans(squared, **arguments)
