"""Claims of the chapter "Little's law"."""

from __future__ import annotations

from collections.abc import Sequence

from calc import caches, constants, hardware, queueing, training
from calc.core.units import quantity
from calc.derivations.bases import LinkLatency, ServedMemory
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
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


class Service(Claims):
    """A thousand requests a second of 50 ms each are 50 in flight, and 50 GB."""

    rate = quantity("1000 request/s")
    time = quantity("50 ms")
    each = quantity("1 GB/request")
    memory = quantity("24 GB")

    in_flight = queueing.requests_in_flight(rate, time) | by_hand("1000 * 0.05 request")
    held = queueing.memory_in_flight(in_flight, each) | by_hand("50 GB")
    most_in_flight = queueing.max_requests_in_flight(memory, each) | by_hand("24 request")
    most_rate = queueing.max_throughput(memory, each, time) | by_hand("(24 / 0.05) request/s")
    excess = rate - most_rate | by_hand("(1000 - 480) request/s")


class Picture(Claims):
    """Eight requests: the area between arrivals and departures, added up in both directions."""

    arrivals = (0, 1, 2, 3.5, 4, 6, 8.5, 9)
    departures = (2, 4.5, 5.5, 6.5, 7.5, 9, 11, 12)
    number = 8
    marked = 6 | by_hand("6")  # the request whose time is drawn, from zero
    instant = 4.25 | by_hand("4.25")  # the moment whose number in flight is drawn
    window = quantity("12 s")

    moments, numbers = number_over_time(arrivals, departures)
    by_request = quantity(sum(departures) - sum(arrivals), "request·s") | by_hand(
        "(2 + 3.5 + 3.5 + 3 + 3.5 + 3 + 2.5 + 3) request·s"
    )
    by_moment = quantity(area_below(moments, numbers), "request·s") | by_hand(
        "(1 + 5 + 1.5 + 2 + 3 + 1 + 1.5 + 2 + 1 + 5 + 1) request·s"
    )
    rate = quantity(number, "request") / window | by_hand("(8 / 12) request/s")
    mean_time = (by_request / quantity(number, "request")).to("s") | by_hand(
        "((2 + 3.5 + 3.5 + 3 + 3.5 + 3 + 2.5 + 3) / 8) s"
    )
    mean_in_flight = (by_moment / window).to("request") | by_hand("(24 / 12) request")
    by_law = queueing.requests_in_flight(rate, mean_time) | by_hand("(8 / 12 * 3) request")
    marked_time = quantity(departures[marked] - arrivals[marked], "s")
    at_instant = numbers[4]  # between the fifth arrival and the second departure


class Tails(Claims):
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
    slow_of_in_flight = (slow_in_flight / in_flight).to("%") | by_hand("31 / 50")

    rows = (
        ("Fast", fast_rate, fast_time, fast_in_flight),
        ("Slow", slow_rate, slow_time, slow_in_flight),
        ("All", rate, mixed_mean, in_flight),
    ) | row_by_hand("Slow | 50 requests/s | 620 ms | 31 requests")


class MemoryConcurrency(Claims):
    """An H100 must have over a megabyte of loads under way to keep its memory busy."""

    bandwidth = hardware.get("h100").memory_bandwidth
    threads = constants.count_threads_sm_h100
    word = quantity("4 byte")
    vector = quantity("16 byte")

    latency = AnchorLatencies.hopper_global_revised
    in_flight = queueing.bytes_in_flight(bandwidth, latency).to("kB") | by_hand(
        "3.35e12 B/s * 656 / 1.755 GHz"
    )
    per_sm = (in_flight / constants.count_sm_h100).to("byte") | by_hand("(1252194 / 132) byte")
    words_per_sm = per_sm / word | by_hand("9486.316 / 4")
    vectors_per_sm = per_sm / vector
    occupancy_by_vectors = (vectors_per_sm / threads).to("%") | by_hand("592.8948 / 2048")
    one_at_a_time = (word / latency).to("MB/s") | by_hand("4 byte / (656 / 1.755 GHz)")


class Loader(Claims):
    """The work of feeding a trainer, and how many workers do it."""

    images = 2000  # a second
    time = quantity("40 ms")

    rate = quantity(images, "request/s")
    workers = queueing.requests_in_flight(rate, time)
    cores = workers.m_as("request") | by_hand("2000 * 0.04")


class Conversations(Claims):
    """Memory that weights leave decides how many conversations a device can hold."""

    parameters = quantity("8B param")
    layers = 32
    heads = 8
    head_width = 128
    element_size = quantity("2 byte")
    context = quantity("4096 token")
    answer_time = quantity("10 s")
    many_context = quantity("32768 token")
    used = ServedMemory.share | by_hand("90 %", "the default of vLLM 0.19")
    used_by_newer = ServedMemory.share_of_newer | by_hand("92 %", "the default of vLLM 0.21")

    weights = training.model_memory(
        parameters, training.recipe("inference-fp16").bytes_per_parameter
    )
    left = (ServedMemory.planned(hardware.get("h100")) - weights).to("GB") | by_hand(
        "0.9 * 80 * 2**30 byte - 16 GB"
    )
    per_token = caches.kv_bytes_per_token(layers, heads, head_width, head_width, element_size).to(
        "KiB/token"
    ) | by_hand("2 * 32 * 8 * 128 * 2 byte/token")
    per_conversation = (per_token * context).to("MB") | by_hand("2**17 * 2**12 * 1 byte")
    held = queueing.max_requests_in_flight(
        left, per_conversation / quantity("1 request")
    ) | by_hand("(floor((0.9 * 80 * 2**30 - 16e9) / 2**29)) request")
    rate = queueing.arrival_rate(held, answer_time) | by_hand("(114 / 10) request/s")
    long_held = queueing.max_requests_in_flight(
        left, per_token * many_context / quantity("1 request")
    ) | by_hand("(floor((0.9 * 80 * 2**30 - 16e9) / 2**32)) request")


class Everywhere(Claims):
    """One product, six systems."""

    link = AnchorBandwidths.infiniband
    link_latency = LinkLatency.reached_infiniband.to("µs")
    ssd = AnchorBandwidths.nvme_gen4
    ssd_latency = AnchorLatencies.ssd.to("µs")

    link_bytes = queueing.bytes_in_flight(link, link_latency).to("kB")
    ssd_bytes = queueing.bytes_in_flight(ssd, ssd_latency).to("kB") | by_hand("7 GB/s * 45 us")

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
    ) | row_by_hand("InfiniBand NDR link, each way | bytes | 50 GB/s | ≈ 1 µs | ≈ 50 kB")


class FiveHundred(Claims):
    """500 requests a second of 100 ms each: 50 in flight, 100 GB at 2 GB each."""

    rate = quantity("500 request/s")
    time = quantity("100 ms")
    each = quantity("2 GB/request")

    in_flight = queueing.requests_in_flight(rate, time) | by_hand("500 * 0.1 request")
    memory = queueing.memory_in_flight(in_flight, each) | by_hand("50 * 2 GB")
    each_memory = memory / in_flight.m_as("request") | by_hand("2 GB")
    by_hand = quantity("50 request") | by_hand("(500 / 10) request")


class HiddenTime(Claims):
    """A dashboard that shows two of the three numbers shows the third."""

    rate = quantity("200 request/s")
    in_flight = quantity("90 request")
    measured = quantity("150 ms")

    time = queueing.time_in_system(in_flight, rate) | by_hand("90 / 200 * 1 s")
    unseen = (time - measured).to("ms") | by_hand("(450 - 150) ms")
    by_hand = quantity("0.45 s") | by_hand("(90 / 200) s")


class FasterOrLarger(Claims):
    """Half the time frees as much as twice the memory, and the users notice."""

    memory = Service.memory
    each = Service.each
    time = Service.time

    now = queueing.max_throughput(memory, each, time) | by_hand("(24 / 0.05) request/s")
    larger = queueing.max_throughput(2 * memory, each, time) | by_hand("(48 / 0.05) request/s")
