"""Memories in levels: waiting for them, missing them, and tiles that live in them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import hardware, memory, quantity

CLOCK = quantity("3e9 Hz")


@pytest.mark.parametrize(("latency", "cycles"), [("1 ns", 3), ("4 ns", 12), ("100 us", 300_000)])
def test_cycles_of_a_three_gigahertz_core(latency: str, cycles: float) -> None:
    assert memory.clock_cycles(latency, CLOCK).magnitude == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("latency", "felt"), [("0.3 ns", "1 s"), ("300 ns", "1000 s"), ("100 us", "333333.33 s")]
)
def test_one_register_access_as_one_second(latency: str, felt: str) -> None:
    time = memory.human_time(latency, yardstick="0.3 ns")
    assert time.m_as("s") == pytest.approx(quantity(felt).m_as("s"))
    ten = memory.human_time(latency, yardstick="0.3 ns", one_step="10 s")
    assert ten.m_as("s") == pytest.approx(10 * time.m_as("s"))


def test_one_miss_in_a_hundred_doubles_the_access() -> None:
    assert memory.average_access_time("1 ns", 0.01, "100 ns") == quantity("2 ns")
    assert memory.average_access_time("1 ns", 0, "100 ns") == quantity("1 ns")
    assert memory.average_access_time("1 ns", 1, "100 ns") == quantity("101 ns")


def test_two_caches_nest() -> None:
    behind = memory.average_access_time("4 ns", 0.2, "100 ns")
    assert memory.average_access_time("1 ns", 0.05, behind).m_as("ns") == pytest.approx(2.2)


@given(st.integers(1, 4096), st.sampled_from([1, 2, 4, 8]))
def test_the_largest_tile_fits_and_a_larger_one_does_not(side: int, size: int) -> None:
    element = quantity(size, "byte")
    capacity = memory.working_set(side, element)
    assert memory.largest_tile(capacity, element) == quantity(side, "")
    assert memory.largest_tile(capacity - quantity("1 bit"), element).magnitude == side - 1


def test_a_memory_below_one_element_each_holds_no_tile() -> None:
    assert memory.largest_tile("5 byte", "2 byte").magnitude == 0


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
    found = memory.result_tile_intensity(128, 256, "2 byte")
    assert found.m_as("FLOP/byte") == pytest.approx(operations / loaded)
    assert memory.result_tile_intensity(64, 64, "2 byte") == memory.tile_intensity(64, "2 byte")
