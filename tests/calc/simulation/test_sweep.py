"""Sweeps: their rows, wherever they are made, and what is left of one that was interrupted."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import polars
import pytest

from calc import InputError, quantity
from calc.simulation import (
    Experiment,
    Grid,
    NeuralNetwork,
    Split,
    SweepStoppedError,
    digits,
    pareto_frontier,
    prune,
    run_sweep,
    summarize_sweep,
    write_table,
)
from tests.calc.command import Written
from tests.calc.executors import Dies, Loses

pytestmark = pytest.mark.xdist_group("sweeps")  # one table, and one pool of processes

NETWORK = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
BUDGETS = ["1300 byte", "2.5 kB", "10.0 kB"]
SWEEP: dict[str, Any] = {
    "model": NETWORK,
    "data": digits(),
    "pruning_levels": [0, 0.5, 0.9],
    "precisions": ["fp32", "int8"],
    "budgets": BUDGETS,
    "active_budget": "2.5 kB",
    "power": "15 W",
    "repeats": 3,
    "seeds": [0, 1],
    "epochs": 3,
}
KEY = ["seed", "kind", "pruning", "precision"]
UNTIMED = [*KEY, "accuracy", "memory_dense_bytes", "memory_csr_bytes", "memory_bitmask_bytes"]
UNTIMED += ["energy_model_joules", "accepted", "over_2.5_kB"]


def sweep(**changes: Any) -> polars.DataFrame:
    asked = {**SWEEP, **changes}
    measured, pruned = (
        {field.name: asked.pop(field.name) for field in fields(noun) if field.name in asked}
        for noun in (Experiment, Grid)
    )
    return run_sweep(Experiment(**measured), Grid(**pruned), **asked)


@pytest.fixture(scope="module")
def table() -> polars.DataFrame:
    return sweep()


@pytest.fixture(scope="module")
def one_seed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a sweep with one of its two seeds."""
    path = tmp_path_factory.mktemp("sweep") / "rows.jsonl"
    sweep(resume=path, seeds=[0])
    return path.read_text()


@pytest.fixture
def workers() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        yield pool


def spoiled(**changes: Any) -> Split:
    return digits()._replace(**changes)


# --- the rows ---


def test_a_row_for_each_variant_in_order(table: polars.DataFrame) -> None:
    assert table.select(KEY).rows() == [
        (seed, kind, level, precision)
        for seed in (0, 1)
        for kind, level in (("none", 0.0), ("unstructured", 0.5), ("unstructured", 0.9))
        for precision in ("fp32", "int8")
    ]


def test_rows_hold_what_a_variant_made_by_hand_has(table: polars.DataFrame) -> None:
    split = digits()
    network = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    network.fit(split.X_train, split.y_train, epochs=3, alpha=0.2, batch_size=32, seed=1)
    variant = prune(network, 0.9).with_precision("int8")
    row = table.row(11, named=True)
    assert row["accuracy"] == variant.score(split.X_test, split.y_test)
    assert row["memory_dense_bytes"] == 64 * 16 + 160 + 26
    assert row["energy_joules"] == pytest.approx(15 * row["latency_seconds"])


def test_accepted_is_what_the_active_budget_holds(table: polars.DataFrame) -> None:
    memory = table["memory_dense_bytes"]
    assert table["accepted"].equals(memory <= 2500, check_names=False)
    assert table["over_1300_byte"].equals(memory > 1300, check_names=False)
    assert not table["over_10_kB"].any()
    sparse = sweep(storage="bitmask", seeds=[0])
    assert sparse["accepted"].equals(sparse["memory_bitmask_bytes"] <= 2500, check_names=False)
    assert sparse["accepted"].sum() > table["accepted"].sum() / 2


def test_seeds_make_a_sweep_reproducible(table: polars.DataFrame) -> None:
    assert sweep().select(UNTIMED).equals(table.select(UNTIMED))
    assert sweep(seeds=[1]).select(UNTIMED).equals(table.select(UNTIMED)[6:])


def test_both_kinds_share_what_is_not_pruned() -> None:
    rows = sweep(kinds=["structured", "unstructured"], seeds=[0], precisions=["fp32"])
    assert rows["kind"].to_list() == ["none", *["structured"] * 2, *["unstructured"] * 2]
    memory = dict(
        zip(rows.select("kind", "pruning").rows(), rows["memory_dense_bytes"], strict=True)
    )
    assert memory["unstructured", 0.5] == memory["none", 0.0] > 1.8 * memory["structured", 0.5]


def test_a_summary_draws_seeds_together(table: polars.DataFrame) -> None:
    summary = summarize_sweep(table)
    assert len(summary) == 6
    both = table.filter((table["pruning"] == 0.9) & (table["precision"] == "int8"))["accuracy"]
    row = summary.row(5, named=True)
    assert (row["kind"], row["pruning"], row["seeds"]) == ("unstructured", 0.9, 2)
    assert row["accuracy"] == pytest.approx(numpy.mean(both.to_list()))
    assert row["accuracy_std"] == pytest.approx(numpy.std(both.to_list(), ddof=1))


def test_when_everything_is_rejected_the_front_is_empty_and_keeps_its_columns() -> None:
    rows = sweep(budgets=["10 byte"], active_budget="10 byte", seeds=[0])
    accepted = rows.filter("accepted")
    front = pareto_frontier(accepted, {"accuracy": "max", "memory_dense_bytes": "min"})
    assert len(front) == 0
    assert front.columns == rows.columns


def test_progress_is_told() -> None:
    progress: list[tuple[int, int]] = []
    sweep(seeds=[0], on_progress=lambda done, total: progress.append((done, total)))
    assert progress == [(done, 6) for done in range(7)]


# --- files ---


def test_rows_as_csv_and_parquet(table: polars.DataFrame, tmp_path: Path) -> None:
    for name, read in (("rows.csv", polars.read_csv), ("rows.parquet", polars.read_parquet)):
        write_table(table, tmp_path / name)
        assert read(tmp_path / name).equals(table)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.csv", "rows.parquet"]


def test_tables_that_cannot_be_written(table: polars.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"written as .csv or .parquet; got 'rows.xlsx'"):
        write_table(table, tmp_path / "rows.xlsx")
    with pytest.raises(InputError, match=r"cannot write .*there is no folder"):
        write_table(table, tmp_path / "nowhere" / "rows.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"cannot write .*folder.csv: it is there, and is no file"):
        write_table(table, tmp_path / "folder.csv")
    with pytest.raises(InputError, match="a table is needed"):
        write_table(5, tmp_path / "rows.csv")  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["folder.csv"]


# --- going on ---


def stop_after(rows: int) -> Any:
    def told(done: int, _: int) -> None:
        if done == rows:
            raise KeyboardInterrupt

    return told


def test_an_interrupted_sweep_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sweep(resume=path, on_progress=stop_after(7))
    first = path.read_text().splitlines()
    assert len(first) == 1 + 7
    trained = []
    fit = NeuralNetwork.fit
    monkeypatch.setattr(
        NeuralNetwork, "fit", lambda *arguments: trained.append(arguments[-1]) or fit(*arguments)
    )
    rows = sweep(resume=path)
    assert trained == [1]  # the rows of seed 0 were all there
    assert len(rows) == 12
    assert path.read_text().splitlines()[:8] == first
    # Budgets are no part of a row on disk, and a longer sweep goes on from a shorter one.
    more = sweep(resume=path, seeds=[0, 1, 2], budgets=["1 kB"], active_budget="1 kB")
    assert trained == [1, 2]
    assert more["latency_seconds"][:12].equals(rows["latency_seconds"])


def test_a_line_that_was_cut_off_is_made_again(tmp_path: Path, table: polars.DataFrame) -> None:
    path = tmp_path / "rows.jsonl"
    sweep(resume=path)
    whole = path.read_text().splitlines()
    path.write_text("\n".join(whole)[:-40])  # in the middle of the last row
    done: list[int] = []
    rows = sweep(resume=path, on_progress=lambda finished, of: done.append(finished))
    assert (done[0], done[-1]) == (11, 12), "all rows but the last were there"
    assert rows.select(UNTIMED).equals(table.select(UNTIMED))
    again = path.read_text().splitlines()
    assert len(again) == 13
    assert again[:-1] == whole[:-1], "the rows before stay as they were"
    assert json.loads(again[-1]).keys() == json.loads(whole[-1]).keys(), "nothing is left of it"


WRONG_VALUES: list[tuple[str, Any]] = [
    *(("accuracy", value) for value in ("high", None, math.nan, True, [0, 0])),
    ("seed", 0.5),
    ("kind", 1),
]


def with_value(name: str, value: Any, text: str) -> str:
    """The file with another value in its first row."""
    head, row, *rest = text.splitlines()
    return "\n".join([head, json.dumps({**json.loads(row), name: value}), *rest, ""])


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda text: text.replace('"kind"', '"sort"', 1), "corrupted: line 2 does not belong"),
        (lambda text: "x" + text, "corrupted: line 1 cannot be read"),
        (lambda text: text[:40] + "\n" + text[40:], "corrupted: line 1 cannot be read"),
        (lambda text: "5\n" + text, "corrupted: line 1 does not belong"),
        (lambda text: text.replace('"accuracy": 0', '"accuracy": "0', 1), "corrupted: line 2"),
        *((partial(with_value, *each), "corrupted: line 2") for each in WRONG_VALUES),
    ],
)
def test_a_corrupted_file_is_left_as_it_is(
    tmp_path: Path, one_seed: str, spoil: Any, sentence: str
) -> None:
    path = tmp_path / "rows.jsonl"
    spoiled = spoil(one_seed)
    path.write_text(spoiled)
    with pytest.raises(InputError, match=sentence) as refusal:
        sweep(resume=path)
    assert "\n" not in str(refusal.value)
    assert path.read_text() == spoiled


def test_a_file_of_bytes_is_corrupted(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="corrupted: it is no text"):
        sweep(resume=path)


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path, one_seed: str) -> None:
    path = tmp_path / "notes.txt"
    for text in ("one line, which does not end", "[1]\nhalf a"):
        path.write_text(text)
        with pytest.raises(InputError, match="corrupted: line 1"):
            sweep(resume=path)
        assert path.read_text() == text
    path.write_text(one_seed[:-40])
    with pytest.raises(InputError, match="another sweep"):
        sweep(resume=path, epochs=4)
    assert path.read_text() == one_seed[:-40]


def test_rows_of_another_sweep_are_refused(written: Written, one_seed: str) -> None:
    path = written(one_seed, "rows.jsonl")
    with pytest.raises(InputError, match="another sweep, which differs in epochs, power;"):
        sweep(resume=path, epochs=4, power="16 W")
    with pytest.raises(InputError, match="another sweep, which differs in data;"):
        sweep(resume=path, data=digits(seed=1))
    assert path.read_text() == one_seed


def test_a_file_that_cannot_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        sweep(resume=tmp_path / "nowhere" / "rows.jsonl")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for other in (tmp_path, pipe):
        with pytest.raises(InputError, match=r"cannot write .*: it is there, and is no file"):
            sweep(resume=other)
    assert pipe.is_fifo()
    with pytest.raises(InputError, match="a file needs a path; got 5"):
        sweep(resume=5)


# --- other processes ---


@pytest.mark.slow
def test_any_executor_gives_the_same_rows(
    table: polars.DataFrame, workers: ProcessPoolExecutor
) -> None:
    assert sweep(executor=workers).select(UNTIMED).equals(table.select(UNTIMED))
    with ThreadPoolExecutor(2) as threads:
        assert sweep(executor=threads).select(UNTIMED).equals(table.select(UNTIMED))


@pytest.mark.slow
def test_a_process_pool_that_loses_a_worker(
    table: polars.DataFrame, workers: ProcessPoolExecutor, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"

    def kill_after_three(done: int, _: int) -> None:
        if done == 3:
            os.kill(next(iter(workers._processes)), signal.SIGKILL)

    with pytest.raises(SweepStoppedError) as stopped:
        sweep(executor=workers, resume=path, seeds=range(6), on_progress=kill_after_three)
    sentence = str(stopped.value)
    assert "\n" not in sentence
    rows = stopped.value.rows
    assert 3 <= len(rows) < 36
    assert f"stopped after {len(rows)} of 36 rows (they are in {path}" in sentence
    assert len(path.read_text().splitlines()) == 1 + len(rows)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as others:
        whole = sweep(executor=others, resume=path, seeds=range(6))
    assert len(whole) == 36
    assert whole.select(UNTIMED)[:12].equals(table.select(UNTIMED))
    both = whole.join(rows, on=KEY)
    assert both["latency_seconds"].equals(both["latency_seconds_right"], check_names=False)


def test_an_executor_that_takes_no_more_tasks(table: polars.DataFrame) -> None:
    with pytest.raises(SweepStoppedError, match=r"after 3 of 12 rows.*cannot schedule") as stopped:
        sweep(executor=Dies(2 + 3))
    assert stopped.value.rows.select(UNTIMED).equals(table.select(UNTIMED)[:3])


def test_a_task_that_an_executor_loses_is_given_to_it_once_more(table: polars.DataFrame) -> None:
    executor = Loses({1, 4, 15})  # a training, and two rows
    assert sweep(executor=executor).select(UNTIMED).equals(table.select(UNTIMED))
    assert executor.submitted == 2 + 12 + 3
    with pytest.raises(SweepStoppedError, match=r"after 0 of 12 rows.*too many values to unpack"):
        sweep(executor=Loses(set(range(1, 100))))


def test_a_task_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    executor = Loses(set())
    huge = spoiled(X_train=digits().X_train * 1e30)
    for where in ({"executor": executor}, {"resume": tmp_path / "rows.jsonl"}):
        with pytest.raises(SweepStoppedError, match=r"after 0 of 12 rows.*fit.*loss"):
            sweep(data=huge, **where)
    assert executor.submitted == 2


@pytest.mark.nightly
def test_a_dask_cluster_loses_no_row_with_a_worker(table: polars.DataFrame, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    path = tmp_path / "rows.jsonl"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill_after_three(done: int, _: int) -> None:
            if done == 3:
                os.kill(pids[0], signal.SIGKILL)

        rows = sweep(
            executor=client.get_executor(),
            resume=path,
            seeds=range(6),
            on_progress=kill_after_three,
        )
    assert len(rows) == 36
    assert rows.select(UNTIMED)[:12].equals(table.select(UNTIMED))
    assert len(path.read_text().splitlines()) == 37


# --- what is refused, before anything is trained ---


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pruning_levels": [-0.1]}, "a pruning level must be a number from 0"),
        ({"pruning_levels": [0, 1]}, "a pruning level must be below 1"),
        ({"pruning_levels": [math.nan]}, "a pruning level must be a number from 0"),
        ({"pruning_levels": []}, "pruning_levels must be at least one, each given once"),
        ({"pruning_levels": [0.5, 0.5]}, "pruning_levels must be at least one, each given once"),
        ({"pruning_levels": 0.5}, "pruning_levels must be a list"),
        ({"precisions": ["float64"]}, "there is no precision 'float64'"),
        ({"precisions": "int8"}, "precisions must be a list"),
        ({"precisions": ["int8", "int8"]}, "precisions must be at least one, each given once"),
        ({"kinds": ["random"]}, "a kind of pruning must be one of unstructured, 2:4, structured"),
        ({"seeds": [0, -1]}, "a seed must be a whole number from 0"),
        ({"seeds": [1.5]}, "a seed must be a whole number from 0"),
        ({"budgets": ["10 MB", "10.0 MB"]}, "each budget may be given once"),
        ({"budgets": ["nan MB"]}, "nan"),
        ({"budgets": 5}, "budgets must be a list; got 5"),
        ({"storage": ["dense"]}, "storage must be one of dense, csr, bitmask"),
        ({"budgets": []}, "active_budget must be one of the budgets"),
        ({"active_budget": "3 kB"}, "active_budget must be one of the budgets, .*; got '3 kB'"),
        ({"active_budget": quantity(math.nan, "kB")}, "a budget must be positive and finite"),
        ({"power": "-1 W"}, "power must be positive and finite"),
        ({"latency_multiplier": 0}, "latency_multiplier must be a number above 0"),
        ({"latency_multiplier": math.nan}, "latency_multiplier must be a number above 0"),
        ({"kinds": ["2:4"], "pruning_levels": [0.3]}, r"2:4 has the level 0.5 alone.*got \[0.3\]"),
        ({"fine_tuning": -1}, "fine_tuning must be a whole number from 0"),
        ({"repeats": 0}, "repeats must be a whole number from 1"),
        ({"repeats": 2.9}, "repeats must be a whole number from 1"),
        ({"epochs": 0}, "epochs must be a whole number from 1"),
        ({"alpha": 0}, "alpha must be a number above 0"),
        ({"batch_size": -1}, "batch_size must be a whole number from 1"),
        ({"latency_batch": 0}, "latency_batch must be a whole number from 1"),
        ({"storage": "coo"}, "storage must be one of dense, csr, bitmask"),
        ({"executor": 2}, "executor must be one of concurrent.futures"),
        ({"model": "net"}, "a sweep trains and prunes a NeuralNetwork"),
        ({"data": (1, 2)}, "data must be four arrays"),
        ({"data": spoiled(X_train=numpy.zeros((0, 64)))}, "X must hold at least one sample"),
        ({"data": spoiled(X_test=numpy.full((360, 64), math.nan))}, "X must be finite"),
        ({"data": spoiled(X_test=numpy.zeros((360, 63)))}, "X must be rows of 64 numbers"),
        ({"data": spoiled(y_train=numpy.zeros(1437, int))}, "at least two classes"),
        ({"data": spoiled(y_test=numpy.full(360, 10))}, "labels from 0 to 9"),
    ],
)
def test_refusals(changes: Any, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with pytest.raises(InputError, match=sentence) as refusal:
        sweep(resume=path, **changes)
    assert "\n" not in str(refusal.value)
    assert not isinstance(refusal.value, SweepStoppedError)
    assert not path.exists()


def test_a_label_beyond_the_outputs_is_refused() -> None:
    """Ten outputs have the labels 0 to 9, however wide the layers before are."""
    labels = numpy.array(digits()[3])
    labels[0] = 10
    with pytest.raises(InputError, match="labels"):
        Experiment(NETWORK, Split(*digits()[:3], labels), "15 W")
