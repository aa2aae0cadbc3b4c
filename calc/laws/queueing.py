"""Requests in flight and in queues: Little's law, limits of memory, and waiting under load."""

from __future__ import annotations

from typing import Annotated

from calc.core.arrays import Number
from calc.core.elementwise import (
    divide_or_infinity,
    floor,
    is_quantity,
    largest,
    log,
    maximum,
    pure,
    where,
)
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

    Parameters
    ----------
    arrival_rate
        requests that arrive in a second
    time_in_system
        mean time from a request's arrival to its answer
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

    Parameters
    ----------
    requests_in_flight
        requests in the system at a time, on average
    time_in_system
        mean time from a request's arrival to its answer
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

    Parameters
    ----------
    requests_in_flight
        requests in the system at a time, on average
    arrival_rate
        requests that arrive in a second
    """
    return requests_in_flight / arrival_rate


@law
def memory_in_flight(
    requests_in_flight: Annotated[QuantityLike, "request", "L", NON_NEGATIVE],
    memory_per_request: Annotated[QuantityLike, "byte/request", "M_req", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Memory that the requests in flight hold together.

    Equation: M = L · M_req

    Source: little1961proof

    >>> print(memory_in_flight(50, "1 GB/request"))
    50 GB

    Parameters
    ----------
    requests_in_flight
        requests in the system at a time, on average
    memory_per_request
        memory that a request holds while it is in the system
    """
    return requests_in_flight * memory_per_request


@law
def max_requests_in_flight(
    memory: Annotated[QuantityLike, "byte", "M"],
    memory_per_request: Annotated[QuantityLike, "byte/request", "M_req"],
) -> Annotated[Quantity, "request"]:
    """Whole requests that a memory holds at a time.

    Equation: L_max = ⌊M / M_req⌋

    Source: little1961proof

    >>> print(max_requests_in_flight("24 GB", "1 GB/request"))
    24 request

    Parameters
    ----------
    memory
        memory that may be filled
    memory_per_request
        memory that a request holds while it is in the system
    """
    return floor(memory / memory_per_request)


@law
def max_throughput(
    memory: Annotated[QuantityLike, "byte", "M"],
    memory_per_request: Annotated[QuantityLike, "byte/request", "M_req"],
    time_in_system: Annotated[QuantityLike, "s", "W"],
) -> Annotated[Quantity, "request/s"]:
    """Rate at which a memory of that size fills up with requests in flight.

    Equation: λ_max = ⌊M / M_req⌋ / W

    Source: little1961proof

    >>> print(max_throughput("24 GB", "1 GB/request", "50 ms"))
    480 request/s

    Parameters
    ----------
    memory
        memory that may be filled
    memory_per_request
        memory that a request holds while it is in the system
    time_in_system
        mean time from a request's arrival to its answer
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

    See also: links.bandwidth_delay_product, recommenders.rows_in_flight

    >>> print(bytes_in_flight("3.35 TB/s", "272.8 ns"))
    913.9 kB

    Parameters
    ----------
    bandwidth
        bytes that the memory or the link carries in a second
    latency
        time from asking for a byte to having it, under this load
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

    See also: queueing.waiting_time

    >>> print(server_utilization("8 request/s", "100 ms"))
    0.8

    Parameters
    ----------
    arrival_rate
        requests that arrive in a second
    service_time
        mean time in which a server answers a request
    servers
        servers that each serve a request at a time
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

    See also: queueing.single_server_wait, queueing.waiting_time

    >>> print(single_server_time("100 ms", 0.8))
    500 ms

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
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

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
    beyond
        share of the requests that takes longer: 1% for the 99th percentile
    """
    return divide_or_infinity(service_time, 1 - utilization) * log(1 / beyond)


@law
def utilization_within(
    service_time: Annotated[QuantityLike, "s", "S"],
    limit: Annotated[QuantityLike, "s", "W"],
    beyond: Annotated[QuantityLike, "", "q", POSITIVE_FRACTION],
) -> Annotated[Quantity, ""]:
    """Utilization of one server at which all but this share of requests finish within a limit.

    Equation: ρ = max(0, 1 − S · ln(1 / q) / W)

    The single_server_tail solved for the load, whose assumptions hold here too: the goodput of a
    pool that reads prompts is ρ / S, with W for the limit on the time to first token. Nothing
    keeps a limit below ln(1 / q) service times.

    Source: kleinrock1975queueing

    >>> print(utilization_within("100 ms", "2 s", "1%"))
    0.7697

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    limit
        time that all but a share of the requests shall keep
    beyond
        share of the requests that takes longer: 1% for the 99th percentile
    """
    room = 1 - service_time * log(1 / beyond) / limit
    return maximum(room, 0 * room)


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

    See also: queueing.single_server_time, queueing.bursty_wait

    >>> print(single_server_wait("100 ms", 0.8, 0))
    200 ms

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
    variation
        standard deviation of the service time over its mean
    """
    return divide_or_infinity(
        utilization * service_time * (1 + variation**2), 2 * (1 - utilization)
    )


@law
def bursty_wait(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    burstiness: Annotated[QuantityLike, "", "a", NON_NEGATIVE],
    variation: Annotated[QuantityLike, "", "v", NON_NEGATIVE] = 1,
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time in the queue of one busy server whose arrivals vary in any way: G/G/1.

    Equation: W = ρ · S · (a² + v²) / (2 · (1 − ρ))

    a is the standard deviation of the time between arrivals over its mean, and v that of the
    service time. An approximation for a server that is nearly always busy (Kingman), and exact
    for Poisson arrivals: then a is 1, and this is single_server_wait. For exponential service and
    even arrivals it is 18 % too long at ρ = 0.8, for arrivals in bursts with a = 3 it is 4 %.

    Source: kingman1961heavy

    >>> print(bursty_wait("100 ms", 0.8, 3))
    2 s

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
    burstiness
        standard deviation of the time between arrivals over its mean: 1 for Poisson arrivals, more
        in bursts
    variation
        standard deviation of the service time over its mean
    """
    return divide_or_infinity(
        utilization * service_time * (burstiness**2 + variation**2), 2 * (1 - utilization)
    )


@law
def waiting_probability(
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
) -> Annotated[Quantity, ""]:
    """Erlang's C formula: the share of requests that find all servers busy, M/M/c.

    Equation: C = B / (1 − ρ + ρ · B)

    B = B_{⌊c⌋} is the loss that the same load would see without a queue (Erlang's B formula), from
    1 / B_n = 1 + n / (a · B_{n−1}) with a = ρ · ⌊c⌋ and B_0 = 1. A fraction of a server counts for
    nothing. Assumes arrivals at random, service times distributed exponentially, and one queue.

    Source: kleinrock1975queueing

    >>> print(waiting_probability(0.8, 10))
    0.4092

    Parameters
    ----------
    utilization
        share of the time in which a server is busy
    servers
        servers that each serve a request at a time
    """
    return _all_busy(utilization, servers)


@law
def waiting_time(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time in the one queue of several servers, M/M/c; service comes on top.

    Equation: W = C · S / (⌊c⌋ · (1 − ρ))

    C is the waiting_probability, whose assumptions hold here too.

    Source: kleinrock1975queueing

    See also: queueing.waiting_tail, queueing.single_server_wait

    >>> print(waiting_time("100 ms", 0.8, 10))
    20.46 ms

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
    servers
        servers that each serve a request at a time
    """
    busy = _all_busy(utilization, servers) * service_time
    return divide_or_infinity(busy, floor(servers) * (1 - utilization))


@law
def waiting_tail(
    service_time: Annotated[QuantityLike, "s", "S"],
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    servers: Annotated[QuantityLike, "", "c", SERVERS],
    beyond: Annotated[QuantityLike, "", "q", POSITIVE_FRACTION],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Time in the one queue of several servers that this share of the requests exceeds: M/M/c.

    Equation: W_q = S / (⌊c⌋ · (1 − ρ)) · max(0, ln(C / q))

    Zero where fewer than that share wait at all. First come, first served; C is the
    waiting_probability, whose assumptions hold here too.

    Source: kleinrock1975queueing

    >>> print(waiting_tail("100 ms", 0.8, 10, "1%"))
    185.6 ms

    Parameters
    ----------
    service_time
        mean time in which a server answers a request
    utilization
        share of the time in which a server is busy
    servers
        servers that each serve a request at a time
    beyond
        share of the requests that takes longer: 1% for the 99th percentile
    """
    excess = maximum(_all_busy(utilization, servers) / beyond, 1.0)
    return divide_or_infinity(service_time, floor(servers) * (1 - utilization)) * log(excess)


@law
def batch_waiting_probability(
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    slots: Annotated[QuantityLike, "", "k", SERVERS],
    shared_time: Annotated[QuantityLike, "s", "T_0"],
    own_time: Annotated[QuantityLike, "s", "T_1", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """Share of requests that find a batch full, where one step serves all that are in it.

    Equation: C = B / (1 − ρ + ρ · B)

    A request takes T_0 + n · T_1 while n are in the batch, so that they leave at n times its
    inverse: a birth-death chain. Beyond ⌊k⌋ requests wait in one queue. B = B_{⌊k⌋} is what would
    be lost without a queue, from 1 / B_n = 1 + n / (λ · (T_0 + n · T_1) · B_{n−1}) with B_0 = 1 and
    the rate of arrivals λ = ρ · ⌊k⌋ / (T_0 + ⌊k⌋ · T_1). Without T_1 this is Erlang's C formula.

    Assumes arrivals at random. Up to k, requests share a processor, and of their lengths the mean
    alone counts (insensitivity); lengths of those that wait are assumed to be exponential.

    Source: kelly1979reversibility

    >>> print(batch_waiting_probability(0.95, 64, "2.7 s", "40 ms"))
    0.4836

    Parameters
    ----------
    utilization
        share of the time in which a server is busy
    slots
        requests that the batch holds
    shared_time
        time of a request's steps that the batch takes together, however many they are: reading
        weights
    own_time
        time that a request adds to all in the batch: its prompt, and its part of all steps of its
        answer
    """
    return _all_busy(utilization, slots, shared_time, own_time)


@law
def batch_time(
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    slots: Annotated[QuantityLike, "", "k", SERVERS],
    shared_time: Annotated[QuantityLike, "s", "T_0"],
    own_time: Annotated[QuantityLike, "s", "T_1", NON_NEGATIVE],
) -> Annotated[Quantity, "s"]:
    """Mean time that a request is in a batch, where one step serves all that are in it.

    Equation: T = (T_0 + (1 − C) · T_1) / (1 − λ · T_1)

    C is the batch_waiting_probability, whose assumptions hold here too, and the rate of arrivals is
    λ = ρ · ⌊k⌋ / (T_0 + ⌊k⌋ · T_1). Where none wait, it is the time of a request alone over the
    share of the server that the requests' own work leaves; without T_0 that is M/G/1 processor
    sharing.

    Source: kelly1979reversibility

    >>> print(batch_time(0.8, 64, "2.7 s", "40 ms"))
    4.486 s

    Parameters
    ----------
    utilization
        share of the time in which a server is busy
    slots
        requests that the batch holds
    shared_time
        time of a request's steps that the batch takes together, however many they are: reading
        weights
    own_time
        time that a request adds to all in the batch: its prompt, and its part of all steps of its
        answer
    """
    own_of_all = floor(slots) * own_time
    mean = shared_time + (1 - _all_busy(utilization, slots, shared_time, own_time)) * own_time
    return mean * (shared_time + own_of_all) / (shared_time + (1 - utilization) * own_of_all)


@law
def batch_waiting_time(
    utilization: Annotated[QuantityLike, "", "ρ", FRACTION],
    slots: Annotated[QuantityLike, "", "k", SERVERS],
    shared_time: Annotated[QuantityLike, "s", "T_0"],
    own_time: Annotated[QuantityLike, "s", "T_1", NON_NEGATIVE],
) -> Annotated[Quantity, "s", MAY_BE_INFINITE]:
    """Mean time in the queue for a place in a batch; the batch_time comes on top.

    Equation: W = C · (T_0 + ⌊k⌋ · T_1) / (⌊k⌋ · (1 − ρ))

    C is the batch_waiting_probability, whose assumptions hold here too.

    Source: kleinrock1975queueing

    >>> print(batch_waiting_time(0.95, 64, "2.7 s", "40 ms"))
    795.0 ms

    Parameters
    ----------
    utilization
        share of the time in which a server is busy
    slots
        requests that the batch holds
    shared_time
        time of a request's steps that the batch takes together, however many they are: reading
        weights
    own_time
        time that a request adds to all in the batch: its prompt, and its part of all steps of its
        answer
    """
    full = shared_time + floor(slots) * own_time
    busy = _all_busy(utilization, slots, shared_time, own_time) * full
    return divide_or_infinity(busy, floor(slots) * (1 - utilization))


def _all_busy(
    utilization: Number, servers: Number, shared: Number = 1.0, alone: Number = 0.0
) -> Number:
    """Erlang's C formula by the recursion of his B, which neither overflows nor cancels.

    Servers that slow one another down take the time `shared`, and `alone` for each that is busy.
    """
    if is_quantity(alone):
        shared, alone = 1.0, pure(alone / shared)
    utilization, count = pure(utilization), floor(pure(servers))
    load = utilization * count / (shared + count * alone)
    loss = 1 + 0 * load
    for number in range(1, 1 + int(max(largest(count), 0))):
        offered = load * (shared + number * alone) * loss
        loss = where(number <= count + 0 * load, offered / (number + offered), loss)
    return loss / (1 - utilization + utilization * loss)
