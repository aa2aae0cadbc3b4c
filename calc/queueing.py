"""Requests in flight and in queues: Little's law, limits of memory, and waiting under load."""

# Long for its docstrings: laws, each with its equation and example.
# mypy: disable-error-code="operator, return-value, no-any-return"

from __future__ import annotations

from typing import Annotated, Any

from calc.core.elementwise import divide_or_infinity, floor, log, maximum, where
from calc.core.law import (
    AT_LEAST_ONE,
    FRACTION,
    MAY_BE_INFINITE,
    NON_NEGATIVE,
    POSITIVE_FRACTION,
    SERVERS,
    law,
)
from calc.core.units import Quantity, QuantityLike


@law
def requests_in_flight(
    arrival_rate: Annotated[QuantityLike, "request/s", "λ", NON_NEGATIVE],
    time_in_system: Annotated[QuantityLike, "s", "W", NON_NEGATIVE],
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
    requests_in_flight: Annotated[QuantityLike, "request", "L", NON_NEGATIVE],
    time_in_system: Annotated[QuantityLike, "s", "W"],
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
    requests_in_flight: Annotated[QuantityLike, "request", "L", NON_NEGATIVE],
    arrival_rate: Annotated[QuantityLike, "request/s", "λ"],
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
    requests_in_flight: Annotated[QuantityLike, "request", "L", NON_NEGATIVE],
    memory_per_request: Annotated[QuantityLike, "byte/request", "m", NON_NEGATIVE],
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
    memory: Annotated[QuantityLike, "byte", "M"],
    memory_per_request: Annotated[QuantityLike, "byte/request", "m"],
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
    memory: Annotated[QuantityLike, "byte", "M"],
    memory_per_request: Annotated[QuantityLike, "byte/request", "m"],
    time_in_system: Annotated[QuantityLike, "s", "W"],
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
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Little's law for bytes: how much must be under way at a time to keep a memory or a link busy.

    Equation: D = BW · L

    Assumes the latency under this load; that of an idle memory makes it a floor.

    Source: little1961proof

    >>> print(bytes_in_flight("3.35 TB/s", "272.8 ns"))
    913.9 kB
    """
    return bandwidth * latency


@law
def server_utilization(
    arrival_rate: Annotated[QuantityLike, "request/s", "λ", NON_NEGATIVE],
    service_time: Annotated[QuantityLike, "s", "S"],
    servers: Annotated[QuantityLike, "request", "c", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, ""]:
    """Share of the time in which a server is busy, of those that serve a request each.

    Equation: ρ = λ · S / c

    Above 1 the queue grows without end.

    Source: kleinrock1975queueing

    >>> print(server_utilization("8 request/s", "100 ms"))
    0.8
    """
    return arrival_rate * service_time / servers


@law
def single_server_time(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time from arrival to answer with one server: M/M/1.

    Equation: W = S / (1 − ρ)

    Assumes arrivals at random (Poisson) and service times that are distributed exponentially.

    Source: kleinrock1975queueing

    >>> print(single_server_time("100 ms", 0.8))
    500 ms
    """
    return divide_or_infinity(service_time, 1 - utilization)


@law
def single_server_tail(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    beyond: Annotated[QuantityLike, "", "q", POSITIVE_FRACTION],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Time from arrival to answer that this share of the requests exceeds: M/M/1.

    Equation: W_q = S / (1 − ρ) · ln(1 / q)

    The 99th percentile has q = 1%. First come, first served; assumes what single_server_time does.

    Source: kleinrock1975queueing

    >>> print(single_server_tail("100 ms", 0.8, "1%"))
    2.303 s
    """
    return divide_or_infinity(service_time, 1 - utilization) * log(1 / beyond)


@law
def single_server_wait(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    variation: Annotated[QuantityLike, "", "v", NON_NEGATIVE] = 1,
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time in the queue of one server whose service times vary in any way: M/G/1.

    Equation: W = ρ · S · (1 + v²) / (2 · (1 − ρ))

    v is the standard deviation of the service time over its mean: 0 where all are alike, 1 where
    they are exponential, more where a few answers are very long (Pollaczek and Khinchine).

    Source: kleinrock1975queueing

    >>> print(single_server_wait("100 ms", 0.8, 0))
    200 ms
    """
    return divide_or_infinity(
        utilization * service_time * (1 + variation**2), 2 * (1 - utilization)
    )


@law
def waiting_probability(
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
) -> Annotated[Quantity, ""]:
    """Erlang's C formula: the share of requests that find all servers busy, M/M/c.

    Equation: C = B / (1 − ρ + ρ · B)

    B is the loss that the same load would see without a queue (Erlang's B formula), from
    1 / B_c = 1 + c / (a · B_{c−1}) with a = ρ · c and B_0 = 1. A fraction of a server counts for
    nothing. Assumes arrivals at random, service times distributed exponentially, and one queue.

    Source: kleinrock1975queueing

    >>> print(waiting_probability(0.8, 10))
    0.4092
    """
    return _erlang_c(utilization, servers)


@law
def waiting_time(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time in the one queue of several servers, M/M/c; service comes on top.

    Equation: W = C · S / (c · (1 − ρ))

    C is the waiting_probability, whose assumptions hold here too.

    Source: kleinrock1975queueing

    >>> print(waiting_time("100 ms", 0.8, 10))
    20.46 ms
    """
    busy = _erlang_c(utilization, servers) * service_time
    return divide_or_infinity(busy, floor(servers) * (1 - utilization))


@law
def waiting_tail(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
    beyond: Annotated[QuantityLike, "", "q", POSITIVE_FRACTION],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Time in the one queue of several servers that this share of the requests exceeds: M/M/c.

    Equation: W_q = S / (c · (1 − ρ)) · max(0, ln(C / q))

    Zero where fewer than that share wait at all. First come, first served; C is the
    waiting_probability, whose assumptions hold here too.

    Source: kleinrock1975queueing

    >>> print(waiting_tail("100 ms", 0.8, 10, "1%"))
    185.6 ms
    """
    excess = maximum(_erlang_c(utilization, servers) / beyond, 1.0)
    return divide_or_infinity(service_time, floor(servers) * (1 - utilization)) * log(excess)


def _erlang_c(utilization: Any, servers: Any) -> Any:
    """Erlang's C formula by the recursion of his B, which neither overflows nor cancels."""
    if hasattr(utilization, "units"):
        return _erlang_c(utilization.m_as(""), servers.m_as(""))
    count = floor(servers)
    load, most = utilization * count, count.max(initial=0) if _sized(count) else count
    loss = 1 + 0 * load
    for number in range(1, int(most) + 1):
        loss = where(number <= count + 0 * load, load * loss / (number + load * loss), loss)
    return loss / (1 - utilization + utilization * loss)


def _sized(value: Any) -> bool:
    return hasattr(value, "max")
