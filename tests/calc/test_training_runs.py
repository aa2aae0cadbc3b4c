"""The laws of training against runs that others have published (training_runs.toml)."""

from __future__ import annotations

from pathlib import Path

import pytest

from calc import training
from calc.records import Record, read_record, read_toml
from calc.units import Quantity

PATH = Path(__file__).with_name("training_runs.toml")
RUNS = read_toml(PATH)
INHERITED = ("kind", "source", "checked")


def record(run: str, field: str) -> Record:
    inherited = {name: RUNS[run][name] for name in INHERITED}
    return read_record(RUNS[run][field], f"{run}.{field}", PATH, inherited)


def having(*fields: str) -> list[str]:
    return [run for run in RUNS if all(record(run, field).published for field in fields)]


def value(run: str, field: str) -> Quantity:
    return record(run, field).quantity


@pytest.mark.parametrize("run", having("work"))
def test_six_operations_make_the_reported_work(run: str) -> None:
    """PaLM's report counts attention too, which adds a percent or two."""
    work = training.training_flops(value(run, "parameters"), value(run, "tokens"))
    assert (work / value(run, "work")).m_as("") == pytest.approx(1, abs=0.025)


@pytest.mark.parametrize("run", having("device_time"))
def test_utilization_over_the_whole_run_is_plausible(run: str) -> None:
    """Hours with downtime and repeated steps in them stay below the rate of steady state."""
    time = value(run, "device_time")
    overall = training.mfu(
        value(run, "parameters"), value(run, "tokens"), 1, value(run, "device_peak"), time
    )
    steady = record(run, "mfu").published
    assert 0.3 < overall.m_as("") < (steady.m_as("") if steady else 0.5)
