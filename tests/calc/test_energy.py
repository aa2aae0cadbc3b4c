"""Energy: what moving data costs beside computing with them."""

from __future__ import annotations

import pytest

from calc import constants


def test_moving_a_word_costs_hundreds_of_multiplications() -> None:
    ratio = constants.get("energy_dram_word") / constants.get("energy_fp16_multiply")
    assert ratio.to("").magnitude == pytest.approx(640 / 1.1)
