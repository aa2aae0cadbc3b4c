"""Little's law in its three forms, and what a memory makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calc import links, quantity, queueing


def test_the_example_of_the_book() -> None:
    in_flight = queueing.requests_in_flight("1000 request/s", "50 ms")
    assert in_flight == quantity("50 request")
    assert queueing.memory_in_flight(in_flight, "1 GB/request") == quantity("50 GB")
    assert queueing.max_requests_in_flight("24 GB", "1 GB/request") == quantity("24 request")
    most = queueing.max_throughput("24 GB", "1 GB/request", "50 ms")
    assert most == quantity("480 request/s")


@given(st.floats(1e-3, 1e6), st.floats(1e-6, 1e3))
def test_the_three_forms_close(rate: float, time: float) -> None:
    in_flight = queueing.requests_in_flight(quantity(rate, "request/s"), quantity(time, "s"))
    assert queueing.arrival_rate(in_flight, quantity(time, "s")).magnitude == pytest.approx(rate)
    found = queueing.time_in_system(in_flight, quantity(rate, "request/s"))
    assert found.magnitude == pytest.approx(time)


def test_bytes_in_flight_are_the_half_performance_size() -> None:
    """Both are the product of bandwidth and latency."""
    assert queueing.bytes_in_flight("10 Gbit/s", "10 ms") == links.half_performance_size(
        "10 Gbit/s", "10 ms"
    )


def test_an_idle_system_is_legal() -> None:
    assert queueing.requests_in_flight("0 request/s", "50 ms").magnitude == 0
    assert queueing.requests_in_flight("5 request/s", "0 s").magnitude == 0
    assert queueing.arrival_rate(0, "50 ms").magnitude == 0


@pytest.mark.parametrize(
    ("memory", "each", "whole"),
    [
        ("24 GB", "1 GB/request", 24),
        ("23.999 GB", "1 GB/request", 23),
        ("0.3 GB", "0.1 GB/request", 3),  # 2.9999999999999996 in floating point
        ("0.9 GB", "1 GB/request", 0),
        ("1e15 byte", "2 byte/request", 5e14),
        ("1000000000000001 byte", "2 byte/request", 5e14),
    ],
)
def test_requests_are_whole(memory: str, each: str, whole: float) -> None:
    assert queueing.max_requests_in_flight(memory, each).magnitude == whole
    array = queueing.max_requests_in_flight(quantity([quantity(memory).m_as("byte")], "byte"), each)
    np.testing.assert_array_equal(array.magnitude, [whole])
