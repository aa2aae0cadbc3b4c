"""Records of services are what the planner and the simulation say today."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest

from calc import published
from calc.core.records import DATA
from calc.published import closed_loops, datasets
from calc.published.reading import Row

pytestmark = pytest.mark.xdist_group("derivations")

AGAIN = "python -m experiments.record_services"


def differences(recorded: Any, fresh: Any, path: str = "") -> list[str]:
    """Return the places where the two differ, other than in the last digits of a number."""
    if isinstance(recorded, dict) and isinstance(fresh, dict):
        keys = [*{**recorded, **fresh}]
        pairs = [(key, recorded.get(key), fresh.get(key)) for key in keys]
    elif isinstance(recorded, list) and isinstance(fresh, list) and len(recorded) == len(fresh):
        pairs = list(zip(range(len(fresh)), recorded, fresh, strict=True))
    elif isinstance(recorded, int | float) and isinstance(fresh, int | float):
        alike = math.isclose(recorded, fresh, rel_tol=1e-9)
        return [] if alike else [f"{path}: {recorded} recorded, {fresh} now"]
    else:
        return [] if recorded == fresh else [f"{path}: {recorded} recorded, {fresh} now"]
    return [line for key, *both in pairs for line in differences(*both, f"{path}/{key}")]


def recorded(name: str) -> Any:
    return tomllib.loads((DATA / "computed" / name).read_text(encoding="utf-8"))


def test_the_cheapest_of_the_plans_is_as_it_was_recorded() -> None:
    from calc.derivations.service_under_load import DesignedService
    from experiments import record_services

    plan = record_services.planned("dgx-h100", tpot=DesignedService.patient_tpot)
    assert plan.devices == recorded("services.toml")["devices"]["patient"], AGAIN


@pytest.mark.slow
def test_all_that_is_recorded_is_what_is_computed() -> None:
    from experiments import record_services

    assert not differences(recorded("services.toml"), record_services.services()), AGAIN


@pytest.mark.nightly
def test_closed_loops_are_recorded_as_they_are_compared() -> None:
    from experiments import record_closed_loops

    fresh = record_closed_loops.agreement()
    assert not differences(recorded("closed_loops.toml"), fresh), COMPARED_AGAIN


COMPARED_AGAIN = "python -m experiments.record_closed_loops"
A_MACHINE = {"sglang": "dgx-h100", "tensorrt-llm": "gb200-nvl72", "vllm": "dgx-h100"}


def loops_of_each_program() -> list[Row]:
    """Return the published closed loops of each program on one machine."""
    return [
        row
        for row in closed_loops.rows()
        if (row["software"].split()[0], row["machine"]) in A_MACHINE.items()
    ]


@pytest.mark.slow
def test_loops_of_each_program_are_recorded_as_they_are_compared() -> None:
    from experiments import record_closed_loops

    compared = published.compare(loops_of_each_program())
    fresh = record_closed_loops.of_systems([row for row in compared if row.error is not None])
    assert {each["software"] for each in fresh} == A_MACHINE.keys()
    kept = [
        each
        for each in recorded("closed_loops.toml")["systems"]
        if (each["software"], each["machine"]) in A_MACHINE.items()
    ]
    assert not differences(kept, fresh), COMPARED_AGAIN


@pytest.mark.nightly
def test_servers_under_load_are_recorded_as_they_are_simulated() -> None:
    from experiments import record_loads

    fresh = record_loads.agreement()
    assert not differences(recorded("loads.toml"), fresh), SIMULATED_AGAIN


SIMULATED_AGAIN = "python -m experiments.record_loads"


@pytest.mark.slow
def test_servers_of_each_program_are_recorded_as_they_are_simulated() -> None:
    """Clients of each program on one machine, one scenario, and all traces."""
    from experiments import record_loads, under_load

    recorded_loads = recorded("loads.toml")
    for mode, of_mode in recorded_loads["loops"].items():
        rows = [row for row in loops_of_each_program() if row["mode"] == mode]
        fresh = record_loads.of_loops([*map(under_load.closed_loop, rows)])["systems"]
        assert {each["of"][0] for each in fresh} == A_MACHINE.keys()
        kept = [each for each in of_mode["systems"] if tuple(each["of"][:2]) in A_MACHINE.items()]
        assert not differences(kept, fresh), SIMULATED_AGAIN
    at_rates = [row for row in datasets.mlperf_rows() if row["scenario"] == "Interactive"]
    rates = record_loads.summed(map(under_load.at_rate, at_rates))
    assert not differences(recorded_loads["rates"]["Interactive"], rates), SIMULATED_AGAIN
    traces = {name: record_loads.of_trace(name) for name in under_load.traces()}
    assert not differences(recorded_loads["traces"], traces), SIMULATED_AGAIN


def test_loads_are_those_that_are_drawn() -> None:
    from calc.derivations.service_under_load import GoodputByLoad

    for loads in (GoodputByLoad.pools, GoodputByLoad.replicas):
        assert tuple(load["rate"] for load in loads) == GoodputByLoad.rates
