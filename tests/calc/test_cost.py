"""Costs, energy and carbon against runs whose authors published theirs."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import constants, cost, energy, quantity, runs

# Hours, watts and tonnes of CO2 of Llama 2, by size [Touvron et al. 2023, table 2].
LLAMA_2 = (
    (184320, 400, 31.22),
    (368640, 400, 62.44),
    (1038336, 350, 153.90),
    (1720320, 400, 291.42),
)


def test_the_cost_that_deepseek_published() -> None:
    """2.788 million hours at two dollars: 5.576 million [DeepSeek-AI 2024]."""
    assert cost.run_cost(1, "2.788e6 h", "2 USD/h").m_as("USD") == pytest.approx(5.576e6)


def test_the_energy_and_carbon_of_gpt_3() -> None:
    """10 000 V100 at 330 W for 14.8 days, PUE 1.1, 0.429 kg/kWh: 1 287 MWh and 552 t [Patterson et
    al. 2021, table 4]."""
    used = energy.energy_of_run("330 W", "14.8 day") * 10_000
    facility = cost.facility_energy(used, 1.1)
    assert facility.m_as("MWh") == pytest.approx(1287, rel=0.003)
    assert cost.carbon(facility, "0.429 kg/kWh").m_as("kg") == pytest.approx(552.1e3, rel=0.003)


@pytest.mark.parametrize(("hours", "power", "tonnes"), LLAMA_2, ids=["7B", "13B", "34B", "70B"])
def test_the_carbon_of_llama_2(hours: float, power: float, tonnes: float) -> None:
    """The paper's table follows from the PUE and the grid of the first LLaMA's paper."""
    run = runs.get("llama-2-70b")
    used = energy.energy_of_run(quantity(power, "W"), quantity(hours, "h"))
    carbon = cost.carbon(cost.facility_energy(used, run.pue), run.carbon_intensity)
    assert carbon.m_as("t") == pytest.approx(tonnes, abs=0.011)  # two of its numbers are cut off


def test_accounts_of_carbon_that_state_their_factors() -> None:
    for run in (runs.get("llama-2-70b"), runs.get("bloom-176b")):
        used = cost.facility_energy(
            energy.energy_of_run(run.device_power, run.device_time), run.pue
        )
        carbon = cost.carbon(used, run.carbon_intensity)
        assert (carbon / run.carbon).m_as("") == pytest.approx(1, abs=2e-4)


def test_llama_3_1_emitted_as_much_for_its_energy_as_llama_2() -> None:
    """1.46, 7.0 and 30.84 million hours of 700 W are 420, 2 040 and 8 930 t [Meta 2024]."""
    earlier, run = runs.get("llama-2-70b"), runs.get("llama-3-1-405b")
    for hours, tonnes in ((1.46e6, 420), (7.0e6, 2040), (30.84e6, 8930)):
        used = energy.energy_of_run(run.device_power, quantity(hours, "h"))
        carbon = cost.carbon(cost.facility_energy(used, earlier.pue), earlier.carbon_intensity)
        assert carbon.m_as("t") == pytest.approx(tonnes, rel=0.035)
    assert run.carbon == quantity("8930 t")


@given(st.floats(1, 1e5), st.floats(0.01, 100), st.floats(1, 1e6), st.floats(0.01, 1))
def test_a_token_costs_what_the_run_does(
    devices: float, price: float, rate: float, busy: float
) -> None:
    """An hour's tokens cost what the hour does."""
    hourly, per_second = quantity(price, "USD/h"), quantity(rate, "token/s")
    paid = cost.run_cost(devices, "1 h", hourly).m_as("USD")
    each = cost.cost_per_token(devices, hourly, per_second, busy).m_as("USD/token")
    assert each * rate * busy * 3600 == pytest.approx(paid)
    assert cost.cost_per_token(devices, hourly, 2 * per_second, busy).m_as(
        "USD/token"
    ) == pytest.approx(each / 2)


def test_defaults_say_whose_they_are() -> None:
    overhead = constants.get("pue_average").magnitude
    assert cost.facility_energy("1 kWh").m_as("kWh") == pytest.approx(overhead)
    for name in ("pue_average", "carbon_intensity_world"):
        provenance = constants.get(name).provenance
        assert provenance is not None
        assert provenance.kind == "measured"
