"""Records of services are what the planner and the simulation say today."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest

from calc.core.records import DATA

pytestmark = pytest.mark.xdist_group("derivations")

AGAIN = "python -m experiments.record_services"


def differences(recorded: Any, fresh: Any, place: str = "") -> list[str]:
    """Return the places where the two differ, other than in the last digits of a number."""
    if isinstance(recorded, dict) and isinstance(fresh, dict):
        keys = [*{**recorded, **fresh}]
        pairs = [(key, recorded.get(key), fresh.get(key)) for key in keys]
    elif isinstance(recorded, list) and isinstance(fresh, list) and len(recorded) == len(fresh):
        pairs = list(zip(range(len(fresh)), recorded, fresh, strict=True))
    elif isinstance(recorded, int | float) and isinstance(fresh, int | float):
        alike = math.isclose(recorded, fresh, rel_tol=1e-9)
        return [] if alike else [f"{place}: {recorded} recorded, {fresh} now"]
    else:
        return [] if recorded == fresh else [f"{place}: {recorded} recorded, {fresh} now"]
    return [line for key, *both in pairs for line in differences(*both, f"{place}/{key}")]


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


@pytest.mark.slow
def test_closed_loops_are_recorded_as_they_are_compared() -> None:
    from experiments import record_closed_loops

    fresh = record_closed_loops.agreement()
    again = "python -m experiments.record_closed_loops"
    assert not differences(recorded("closed_loops.toml"), fresh), again


@pytest.mark.slow
def test_servers_under_load_are_recorded_as_they_are_simulated() -> None:
    from experiments import record_loads

    again = "python -m experiments.record_loads"
    assert not differences(recorded("loads.toml"), record_loads.agreement()), again


def test_loads_are_those_that_are_drawn() -> None:
    from calc.derivations.service_under_load import GoodputByLoad

    for loads in (GoodputByLoad.pools, GoodputByLoad.replicas):
        assert tuple(load["rate"] for load in loads) == GoodputByLoad.rates
