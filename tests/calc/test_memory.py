"""Memories in levels: waiting for them, missing them, and tiles that live in them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import hardware, memory, quantity


@given(st.integers(1, 4096), st.sampled_from([1, 2, 4, 8]))
def test_the_largest_tile_fits_and_a_larger_one_does_not(side: int, size: int) -> None:
    element = quantity(size, "byte")
    capacity = memory.working_set(side, element)
    assert memory.largest_tile(capacity, element) == quantity(side, "")
    assert memory.largest_tile(capacity - quantity("1 bit"), element).magnitude == side - 1


def test_the_ridge_of_an_h100_needs_tiles_that_its_l2_holds() -> None:
    h100 = hardware.H100
    side = memory.tile_for_intensity(h100.ridge_point("fp16"), "2 byte")
    assert side.magnitude == pytest.approx(989 / 3.35 * 2)
    assert memory.tile_intensity(side, "2 byte").m_as("FLOP/byte") == pytest.approx(989 / 3.35)
    assert quantity("228 KiB") < memory.working_set(side, "2 byte") < h100.on_chip_memory


def test_a_tile_of_the_result_loads_its_inputs_step_by_step() -> None:
    """128 by 256 sums, as cuBLAS prefers them [NVIDIA 2023], over an inner dimension of 4096."""
    loaded = 4096 * (128 + 256) * 2
    operations = 2 * 128 * 256 * 4096
    intensity = memory.result_tile_intensity(128, 256, "2 byte")
    assert intensity.m_as("FLOP/byte") == pytest.approx(operations / loaded)
    assert memory.result_tile_intensity(64, 64, "2 byte") == memory.tile_intensity(64, "2 byte")
