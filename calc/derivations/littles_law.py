"""What the chapter "Little's law" quotes."""

from __future__ import annotations

from collections.abc import Sequence

from calc import caches, constants, hardware, queueing, training
from calc.core.units import quantity
from calc.derivations.numbers_to_know import AnchorBandwidths, AnchorLatencies
from calc.derivations.quoting import Rows


def number_over_time(
    arrivals: Sequence[float], departures: Sequence[float]
) -> tuple[list[float], list[int]]:
    """The moments at which the number in flight changes, and what it is from each of them on."""
    moments = sorted({*arrivals, *departures})
    come = [sum(arrival <= moment for arrival in arrivals) for moment in moments]
    gone = [sum(departure <= moment for departure in departures) for moment in moments]
    return moments, [here - left for here, left in zip(come, gone, strict=True)]


def area_below(moments: Sequence[float], numbers: Sequence[int]) -> float:
    """Requests in flight times seconds, slice by slice of time."""
    spans = zip(moments, moments[1:], numbers, strict=False)
    return sum((end - start) * number for start, end, number in spans)


class Service:
    """A thousand requests a second of 50 ms each are 50 in flight, and 50 GB."""

    rate = quantity("1000 request/s")
    time = quantity("50 ms")
    each = quantity("1 GB/request")
    memory = quantity("24 GB")

    in_flight = queueing.requests_in_flight(rate, time)
    held = queueing.memory_in_flight(in_flight, each)
    most_in_flight = queueing.max_requests_in_flight(memory, each)
    most_rate = queueing.max_throughput(memory, each, time)
    excess = rate - most_rate


class Picture:
    """Eight requests: the area between arrivals and departures, added up in both directions."""

    arrivals = (0, 1, 2, 3.5, 4, 6, 8.5, 9)
    departures = (2, 4.5, 5.5, 6.5, 7.5, 9, 11, 12)
    number = 8
    marked = 6  # the request whose time is drawn, from zero
    instant = 4.25  # the moment whose number in flight is drawn
    window = quantity("12 s")

    moments, numbers = number_over_time(arrivals, departures)
    by_request = quantity(sum(departures) - sum(arrivals), "request·s")
    by_moment = quantity(area_below(moments, numbers), "request·s")
    rate = quantity(number, "request") / window
    mean_time = (by_request / quantity(number, "request")).to("s")
    mean_in_flight = (by_moment / window).to("request")
    by_law = queueing.requests_in_flight(rate, mean_time)
    marked_time = quantity(departures[marked] - arrivals[marked], "s")
    at_instant = numbers[4]  # between the fifth arrival and the second departure


class Tails:
    """Two services with one mean: in the second, one request in twenty holds most of the memory."""

    rate = Service.rate
    mean = Service.time
    slow_share = quantity(5, "%")
    slow_time = quantity("620 ms")
    fast_time = quantity("20 ms")

    slow_rate = (rate * slow_share).to("request/s")
    fast_rate = rate - slow_rate
    slow_in_flight = queueing.requests_in_flight(slow_rate, slow_time)
    fast_in_flight = queueing.requests_in_flight(fast_rate, fast_time)
    in_flight = slow_in_flight + fast_in_flight
    mixed_mean = queueing.time_in_system(in_flight, rate)
    slow_of_in_flight = (slow_in_flight / in_flight).to("%")

    rows = (
        ("Fast", fast_rate, fast_time, fast_in_flight),
        ("Slow", slow_rate, slow_time, slow_in_flight),
        ("All", rate, mixed_mean, in_flight),
    )


class MemoryConcurrency:
    """An H100 must have over a megabyte of loads under way to keep its memory busy."""

    bandwidth = hardware.get("h100").memory_bandwidth
    threads = constants.count_threads_sm_h100
    word = quantity("4 byte")
    vector = quantity("16 byte")

    latency = AnchorLatencies.hopper_global_revised
    in_flight = queueing.bytes_in_flight(bandwidth, latency).to("kB")
    per_sm = (in_flight / constants.count_sm_h100).to("byte")
    words_per_sm = per_sm / word
    vectors_per_sm = per_sm / vector
    occupancy_by_vectors = (vectors_per_sm / threads).to("%")
    one_at_a_time = (word / latency).to("MB/s")


class Loader:
    """The work of feeding a trainer, and how many workers do it."""

    images = 2000  # a second
    time = quantity("40 ms")

    rate = quantity(images, "request/s")
    workers = queueing.requests_in_flight(rate, time)
    cores = workers.m_as("request")


class Conversations:
    """What is left beside the weights decides how many conversations a device can hold."""

    parameters = quantity("8B param")
    layers = 32
    heads = 8
    head_width = 128
    element_size = quantity("2 byte")
    context = quantity("4096 token")
    answer_time = quantity("10 s")
    many_context = quantity("32768 token")
    used = quantity("90%")

    weights = training.model_memory(
        parameters, training.recipe("inference-fp16").bytes_per_parameter
    )
    left = (used * hardware.get("h100").memory_capacity - weights).to("GB")
    per_token = caches.kv_bytes_per_token(layers, heads, head_width, head_width, element_size).to(
        "KiB/token"
    )
    per_conversation = (per_token * context).to("MB")
    held = queueing.max_requests_in_flight(left, per_conversation / quantity("1 request"))
    rate = queueing.arrival_rate(held, answer_time)
    long_held = queueing.max_requests_in_flight(
        left, per_token * many_context / quantity("1 request")
    )


class Everywhere:
    """One product, six systems."""

    link = AnchorBandwidths.infiniband
    link_latency = (constants.latency_rdma_round_trip / 2).to("µs")
    ssd = AnchorBandwidths.nvme_gen4
    ssd_latency = AnchorLatencies.ssd.to("µs")

    link_bytes = queueing.bytes_in_flight(link, link_latency).to("kB")
    ssd_bytes = queueing.bytes_in_flight(ssd, ssd_latency).to("kB")

    rows: Rows = (
        ("Service", "requests", Service.rate, Service.time, Service.in_flight),
        ("Data loader", "images", Loader.rate, Loader.time, Loader.workers),
        (
            "Conversations of a device",
            "answers",
            Conversations.rate,
            Conversations.answer_time,
            Conversations.held,
        ),
        (
            "Memory of an H100",
            "bytes",
            MemoryConcurrency.bandwidth,
            MemoryConcurrency.latency,
            MemoryConcurrency.in_flight,
        ),
        ("InfiniBand NDR link, each way", "bytes", link, link_latency, link_bytes),
        ("NVMe SSD", "bytes", ssd, ssd_latency, ssd_bytes),
    )


class FiveHundred:
    """500 requests a second of 100 ms each: 50 in flight, 100 GB at 2 GB each."""

    rate = quantity("500 request/s")
    time = quantity("100 ms")
    each = quantity("2 GB/request")

    in_flight = queueing.requests_in_flight(rate, time)
    memory = queueing.memory_in_flight(in_flight, each)
    each_memory = memory / in_flight.m_as("request")
    by_hand = quantity("50 request")


class HiddenTime:
    """A dashboard that shows two of the three numbers shows the third."""

    rate = quantity("200 request/s")
    in_flight = quantity("90 request")
    measured = quantity("150 ms")

    time = queueing.time_in_system(in_flight, rate)
    unseen = (time - measured).to("ms")
    by_hand = quantity("0.45 s")


class FasterOrLarger:
    """Half the time frees as much as twice the memory, and the users notice."""

    memory = Service.memory
    each = Service.each
    time = Service.time

    now = queueing.max_throughput(memory, each, time)
    larger = queueing.max_throughput(2 * memory, each, time)
