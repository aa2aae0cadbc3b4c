"""`calc sweep`: its table, its files, and a mistake in one sentence."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import polars
import pytest

from calc import simulation
from calc.commands import main
from tests.calc.command import Command

SHORT = ["sweep", "--epochs", "2", "--seeds", "2", "--pruning", "0,0.5", "--repeats", "2"]


def test_the_table(command: Command) -> None:
    lines = command.prints(*SHORT, "--budgets", "3 kB,10 kB", "--kinds", "structured").splitlines()
    titles = ["pruning", "precision", "accuracy", "latency", "memory"]
    assert re.split(" {2,}", lines[0]) == [*titles, "within 3 kB", "within 10 kB"]
    assert [line.split()[0] for line in lines[1:]] == ["none", "none", "50%", "50%"]
    assert re.search("9640 byte +no +yes$", lines[1])
    assert re.search("2410 byte +yes +yes$", lines[2])
    assert "±" in lines[1]
    assert len({line.index("byte") for line in lines[1:]}) == 1


def test_json_csv_and_parquet_hold_all_rows(command: Command, tmp_path: Path) -> None:
    csv, parquet = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    rows = command.facts(*SHORT, "--csv", str(csv), "--parquet", str(parquet))["rows"]
    assert len(rows) == 8
    assert polars.read_csv(csv).to_dicts() == polars.read_parquet(parquet).to_dicts() == rows


def test_workers_and_a_file_to_go_on_from(command: Command, tmp_path: Path) -> None:
    kept = tmp_path / "rows.jsonl"
    first = command.prints(*SHORT, "--resume", str(kept))
    assert len(kept.read_text().splitlines()) == 9
    again = command.prints(*SHORT, "--resume", str(kept), "--workers", "2")
    assert first.endswith(f"\n0 of 8 rows were in {kept} already\n")
    assert again == first.replace("0 of 8 rows", "8 of 8 rows")
    kept.write_text("".join(kept.read_text().splitlines(keepends=True)[:4]))
    assert command.facts(*SHORT, "--resume", str(kept))["reused"] == 3


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--pruning", "0,x"], "--pruning needs numbers, as in 0,0.5,0.9; got '0,x'"),
        (["--pruning", "1"], "a pruning level must be below 1"),
        (["--precisions", "int7"], "there is no precision 'int7'"),
        (["--budgets", "1 kB,1.0 kB"], "each budget may be given once"),
        (["--active", "9 kB"], "--active must be one of the budgets"),
        (["--power", "nan W"], "nan"),
        (["--power", "-1 W"], "calc: --power must be"),
        (["--repeats", "0"], "calc: --repeats must be"),
        (["--batch", "0"], "calc: --batch must be"),
        (["--seeds", "0"], "--seeds must be a whole number from 1"),
        (["--workers", "0"], "--workers must be a whole number from 1"),
        (["--layers", "64-a"], "--layers needs whole numbers"),
        (["--workers", "2"], "--workers 2 needs --resume FILE"),
        (["--csv", ""], "cannot write .: it is there, and is no file"),
        (["--csv", "rows.parquet"], "--csv needs a name that ends in .csv; got 'rows.parquet'"),
        (
            ["--csv", "r.csv", "--resume", "r.csv"],
            "--csv would overwrite r.csv, which is given as resume",
        ),
        (["--resume", ""], "cannot write .: it is there, and is no file"),
        (["--csv", "rows.txt"], "--csv needs a name that ends in .csv; got 'rows.txt'"),
        (["--parquet", "nowhere/rows.parquet"], "there is no folder nowhere"),
    ],
)
def test_mistakes(
    more: list[str],
    sentence: str,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    error = command.refuses(*SHORT, *more)
    assert sentence in error
    assert not list(tmp_path.iterdir())


def test_an_interrupt_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @functools.wraps(simulation.run_sweep)
    def interrupted(*arguments: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("calc.simulation.run_sweep", interrupted)
    assert main(SHORT) == 130
    assert capsys.readouterr().err == "calc: interrupted\n"
    kept = tmp_path / "rows.jsonl"
    assert main([*SHORT, "--resume", str(kept)]) == 130  # before there is a row
    assert capsys.readouterr().err == "calc: interrupted\n"
    kept.touch()
    assert main([*SHORT, "--resume", str(kept)]) == 130
    said = capsys.readouterr().err
    assert said.startswith(f"calc: interrupted; finished rows are kept in {kept}, and the same")
