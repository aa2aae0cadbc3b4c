"""Access to the constants."""

from __future__ import annotations

import pytest

from calc import InputError, constants, quantity


def test_three_ways_to_one_constant() -> None:
    assert constants.energy_dram_word == constants.get("energy_dram_word") == quantity("640 pJ")
    assert "energy_dram_word" in constants.names()
    assert set(constants.names()) <= set(dir(constants))


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no constant 'energy_dram_wrd'.*energy_dram_word"):
        constants.get("energy_dram_wrd")
    with pytest.raises(AttributeError, match=r"no constant 'energy_dram_wrd'"):
        constants.energy_dram_wrd  # noqa: B018
    assert not hasattr(constants, "__wrapped__")


def test_derived_inputs_agree() -> None:
    """Rounded inputs beside what they are rounded from."""
    in_vacuum, index = constants.get("speed_light_vacuum"), constants.get("refractive_index_fiber")
    in_fiber = constants.get("speed_light_fiber")
    assert (in_vacuum / index / in_fiber).m_as("") == pytest.approx(1, abs=1e-3)
