"""Energy: of arithmetic, of data movement, of a run."""

from __future__ import annotations

import pytest

from calc import constants, energy, quantity


def test_values_by_hand() -> None:
    assert energy.arithmetic_energy("14 GFLOP", "1.1 pJ/FLOP").m_as("mJ") == pytest.approx(15.4)
    assert energy.movement_energy("4 byte", "3.97 pJ/bit").m_as("pJ") == pytest.approx(127.04)
    assert energy.energy_of_run("700 W", "1 h") == quantity("0.7 kWh")
    efficiency = energy.energy_efficiency("989 TFLOP/s", "700 W")
    assert efficiency.m_as("TFLOP/J") == pytest.approx(989 / 700)


def test_nothing_done_costs_nothing() -> None:
    assert energy.arithmetic_energy("0 FLOP", "1 pJ/FLOP").magnitude == 0
    assert energy.movement_energy("0 byte", "1 pJ/byte").magnitude == 0
    assert energy.energy_of_run("700 W", "0 s").magnitude == 0


def test_moving_a_word_costs_hundreds_of_multiplications() -> None:
    ratio = constants.get("energy_dram_word") / constants.get("energy_fp16_multiply")
    assert ratio.to("").magnitude == pytest.approx(640 / 1.1)
