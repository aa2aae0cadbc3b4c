"""Requests in flight: Little's law in its three forms, for bytes, and under a limit of memory."""

from __future__ import annotations

from typing import Annotated

from calc.elementwise import floor
from calc.law import NON_NEGATIVE, law
from calc.units import Quantity, QuantityLike


@law
def requests_in_flight(
    arrival_rate: Annotated[QuantityLike, "request/s", NON_NEGATIVE],
    time_in_system: Annotated[QuantityLike, "s", NON_NEGATIVE],
) -> Annotated[Quantity, "request"]:
    """Little's law: how many requests are in a system at a time, on average.

    Equation: L = λ · W

    Assumes a steady state, in which as many requests leave as arrive; no distribution is assumed.

    Source: little1961proof

    >>> print(requests_in_flight("1000 request/s", "50 ms"))
    50 request
    """
    return arrival_rate * time_in_system


@law
def arrival_rate(
    requests_in_flight: Annotated[QuantityLike, "request", NON_NEGATIVE],
    time_in_system: Annotated[QuantityLike, "s"],
) -> Annotated[Quantity, "request/s"]:
    """Little's law solved for the rate that keeps so many requests in flight.

    Equation: λ = L / W

    Source: little1961proof

    >>> print(arrival_rate(50, "50 ms"))
    1000 request/s
    """
    return requests_in_flight / time_in_system


@law
def time_in_system(
    requests_in_flight: Annotated[QuantityLike, "request", NON_NEGATIVE],
    arrival_rate: Annotated[QuantityLike, "request/s"],
) -> Annotated[Quantity, "s"]:
    """Little's law solved for the time from a request's arrival to its answer.

    Equation: W = L / λ

    Source: little1961proof

    >>> print(time_in_system(50, "1000 request/s"))
    50 ms
    """
    return requests_in_flight / arrival_rate


@law
def memory_in_flight(
    requests_in_flight: Annotated[QuantityLike, "request", NON_NEGATIVE],
    memory_per_request: Annotated[QuantityLike, "byte/request", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Memory that the requests in flight hold together.

    Equation: M = L · m

    Source: little1961proof

    >>> print(memory_in_flight(50, "1 GB/request"))
    50 GB
    """
    return requests_in_flight * memory_per_request


@law
def max_requests_in_flight(
    memory: Annotated[QuantityLike, "byte"],
    memory_per_request: Annotated[QuantityLike, "byte/request"],
) -> Annotated[Quantity, "request"]:
    """Whole requests that a memory holds at a time.

    Equation: L_max = ⌊M / m⌋

    Source: little1961proof

    >>> print(max_requests_in_flight("24 GB", "1 GB/request"))
    24 request
    """
    return floor(memory / memory_per_request)


@law
def max_throughput(
    memory: Annotated[QuantityLike, "byte"],
    memory_per_request: Annotated[QuantityLike, "byte/request"],
    time_in_system: Annotated[QuantityLike, "s"],
) -> Annotated[Quantity, "request/s"]:
    """Rate at which a memory of that size fills up with requests in flight.

    Equation: λ_max = ⌊M / m⌋ / W

    Source: little1961proof

    >>> print(max_throughput("24 GB", "1 GB/request", "50 ms"))
    480 request/s
    """
    return floor(memory / memory_per_request) / time_in_system


@law
def bytes_in_flight(
    bandwidth: Annotated[QuantityLike, "byte/s"],
    latency: Annotated[QuantityLike, "s", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Little's law for bytes: how much must be under way at a time to keep a memory or a link busy.

    Equation: D = BW · L

    Assumes the latency under this load; that of an idle memory makes it a floor.

    Source: little1961proof

    >>> print(bytes_in_flight("3.35 TB/s", "272.8 ns"))
    913.9 kB
    """
    return bandwidth * latency
