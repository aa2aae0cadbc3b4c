"""Links: a message's time, the size where bandwidth takes over, and how far light gets."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import constants, links, quantity

positive = st.floats(1e-6, 1e12)


@given(positive, positive)
def test_half_the_size_means_half_the_bandwidth(bandwidth: float, latency: float) -> None:
    link = quantity(bandwidth, "byte/s"), quantity(latency, "s")
    half = links.effective_bandwidth(links.half_performance_size(*link), *link)
    assert half.magnitude == pytest.approx(bandwidth / 2)


@given(positive, positive, positive)
def test_a_window_of_the_product_fills_the_link(
    bandwidth: float, round_trip: float, part: float
) -> None:
    link, time = quantity(bandwidth, "byte/s"), quantity(round_trip, "s")
    window = links.bandwidth_delay_product(link, time)
    assert links.windowed_bandwidth(window, time, link).magnitude == pytest.approx(bandwidth)
    assert links.windowed_bandwidth(window * (1 + part), time, link) == link
    half = links.windowed_bandwidth(window / 2, time, link)
    assert half.magnitude == pytest.approx(bandwidth / 2)


@pytest.mark.parametrize(("distance", "floor"), [(4000, 40), (6000, 60), (10_000, 100)])
def test_round_trips_in_fibre(distance: float, floor: float) -> None:
    assert links.round_trip_time(quantity(distance, "km")) == quantity(floor, "ms")
    assert links.reach(quantity(floor, "ms")) == quantity(distance, "km")


def test_another_speed() -> None:
    vacuum = constants.get("speed_light_vacuum")
    assert links.reach("2 s", speed=vacuum) == quantity(299_792_458, "m")


def test_no_latency_needs_no_argument() -> None:
    assert links.transfer_time("1 GB", "1 GB/s") == quantity("1 s")
    assert links.effective_bandwidth("1 GB", "1 GB/s") == quantity("1 GB/s")
