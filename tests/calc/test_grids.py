"""Grids: thirty intensities typed from the table of Our World in Data, names, options of plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from calc import InputError, plan, plan_training
from calc.catalog import grids
from tests.calc.flatly import flatly
from tests.calc.test_second_entries import ENTRIES

ROOT = Path(__file__).parents[2]
PRINTED: dict[str, float] = ENTRIES["grids"]


def test_intensities_are_those_that_the_site_prints() -> None:
    ours = {key: grids.get(key).m_as("g/kWh") for key in PRINTED}
    assert {key: value for key, value in ours.items() if abs(value - PRINTED[key]) > 0.51} == {}
    assert all(grids.get(key).provenance.cited for key in grids.names())


def test_all_grids_are_of_one_year_and_add_up_to_what_was_read() -> None:
    lines = (ROOT / "calc" / "data" / "grids.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.rsplit(",", 3) for line in lines[1:]]
    assert {year for *_, year in rows} == {"2023"}
    assert {grids.get(key).provenance.year for key in grids.names()} == {2025}, "as its source"
    assert all(len(code) == 3 and code.isupper() for _, code, _, _ in rows)
    assert sum(float(each) for _, _, each, _ in rows) == pytest.approx(28766.248, abs=1e-3)


def test_a_grid_is_a_country_or_a_number() -> None:
    assert grids.intensity("USA") == grids.get("united states")
    assert grids.intensity("57 g/kWh").m_as("g/kWh") == pytest.approx(57)
    for wrong in ("57", "57 GB", "-1 g/kWh"):
        with pytest.raises(InputError, match="grid must be a country"):
            grids.intensity(wrong)
    with pytest.raises(InputError, match="no grid 'frunce'; did you mean france"):
        plan("llama-3-8b", "h100", prompt=10, generated=10, grid="frunce")


def test_a_plan_counts_the_building_and_the_grid() -> None:
    asked = {"prompt": 1000, "generated": 200}
    alone, whole = (plan("llama-3-8b", "h100", **asked, **more) for more in ({}, {"pue": 1.25}))
    assert alone.carbon_per_token is None
    assert alone.expected is not None
    assert whole.expected is not None
    ratio = whole.expected.energy_per_token / alone.expected.energy_per_token
    assert ratio.m_as("") == pytest.approx(1.25)
    french = plan("llama-3-8b", "h100", **asked, pue=1.25, grid="france")
    assert french.expected is not None
    emitted = french.expected.carbon_per_token.m_as("g/J*J/token")
    assert emitted == pytest.approx(
        whole.expected.energy_per_token.m_as("J/token") * 56.039 / 3.6e6
    )
    with pytest.raises(InputError, match="pue is at least 1"):
        plan("llama-3-8b", "h100", **asked, pue=0.9)


def test_a_run_takes_its_grid() -> None:
    asked = {"tokens": "1B", "sequences": 64, "length": 4096, "devices": 8}
    world, france = (
        flatly(plan_training, "llama-3-8b", "dgx-h100", **asked, **more)
        for more in ({}, {"grid": "france", "pue": 1.54})
    )
    assert (france.carbon / world.carbon).m_as("") == pytest.approx(56.039 / 458, rel=1e-6)
