"""Links: time to move a message, where bandwidth takes over from latency, how far light gets."""

from __future__ import annotations

from typing import Annotated

from calc.catalog import constants
from calc.core.elementwise import minimum
from calc.core.law import NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike


@law
def transfer_time(
    size: Annotated[QuantityLike, "byte", "n", NON_NEGATIVE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time until the last byte of a message has arrived: the first byte's latency, then the stream.

    Equation: T = L + n / BW

    Source: hockney1994communication

    See also: links.effective_bandwidth

    >>> print(transfer_time("1 GB", "10 Gbit/s", "10 ms"))
    810 ms

    Parameters
    ----------
    size
        size of the message, or of the whole array
    bandwidth
        bytes that the memory or the link carries in a second
    latency
        time until the first byte arrives
    """
    return latency + size / bandwidth


@law
def effective_bandwidth(
    size: Annotated[QuantityLike, "byte", "n"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "byte/s"]:
    """Bandwidth that a message of this size sees, its latency included.

    Equation: BW_eff = n / (L + n / BW)

    Source: hockney1994communication

    >>> print(effective_bandwidth("12.5 MB", "10 Gbit/s", "10 ms").to("Gbit/s"))
    5 Gbit/s

    Parameters
    ----------
    size
        size of the message, or of the whole array
    bandwidth
        bytes that the memory or the link carries in a second
    latency
        time until the first byte arrives
    """
    return size / (latency + size / bandwidth)


@law
def half_performance_size(
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    latency: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Message size that reaches half of the bandwidth: as long on the wire as its latency.

    Equation: n½ = L · BW

    Source: hockney1994communication

    See also: links.bandwidth_delay_product, queueing.bytes_in_flight

    >>> print(half_performance_size("10 Gbit/s", "10 ms"))
    12.5 MB

    Parameters
    ----------
    bandwidth
        bytes that the memory or the link carries in a second
    latency
        time until the first byte arrives
    """
    return latency * bandwidth


@law
def bandwidth_delay_product(
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    round_trip: Annotated[QuantityLike, "s", "RTT", NON_NEGATIVE],
) -> Annotated[Quantity, "byte"]:
    """Bytes on their way, or not yet acknowledged, when a link is full: the window that fills it.

    Equation: W = BW · RTT

    Source: rfc7323

    See also: links.half_performance_size, links.windowed_bandwidth

    >>> print(bandwidth_delay_product("10 Gbit/s", "20 ms"))
    25 MB

    Parameters
    ----------
    bandwidth
        bytes that the memory or the link carries in a second
    round_trip
        time to the partner and back
    """
    return bandwidth * round_trip


@law
def windowed_bandwidth(
    window: Annotated[QuantityLike, "byte", "W"],
    round_trip: Annotated[QuantityLike, "s", "RTT"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
) -> Annotated[Quantity, "byte/s"]:
    """Rate of a sender that lets so many bytes out and then waits for an acknowledgement.

    Equation: R = min(BW, W / RTT)

    Assumes that nothing is lost. Whoever waits for each answer has a window of one message.

    Source: rfc7323

    >>> print(windowed_bandwidth("65535 byte", "20 ms", "10 Gbit/s"))
    3.277 MB/s

    Parameters
    ----------
    window
        bytes that may be on their way unacknowledged
    round_trip
        time to the partner and back
    bandwidth
        bytes that the memory or the link carries in a second
    """
    return minimum(bandwidth, window / round_trip)


@law
def round_trip_time(
    distance: Annotated[QuantityLike, "m", "d", NON_NEGATIVE],
    speed: Annotated[QuantityLike, "m/s", "v"] = constants.get("speed_light_fiber"),
) -> Annotated[Quantity, "s"]:
    """Time for light to go there and back, in optical fibre where no speed is given.

    Equation: T = 2 · d / v

    Assumes a straight path and nothing on the way: a floor that no engineering lowers.

    Source: corning2021smf28

    >>> print(round_trip_time("6000 km"))
    60 ms

    Parameters
    ----------
    distance
        length of the path
    speed
        speed of the signal on its way
    """
    return 2 * distance / speed


@law
def reach(
    round_trip: Annotated[QuantityLike, "s", "T", NON_NEGATIVE],
    speed: Annotated[QuantityLike, "m/s", "v"] = constants.get("speed_light_fiber"),
) -> Annotated[Quantity, "m"]:
    """Distance from which a partner can answer within this round-trip time.

    Equation: d = v · T / 2

    Source: corning2021smf28

    >>> print(reach("1 ms"))
    100 km

    Parameters
    ----------
    round_trip
        time to the partner and back
    speed
        speed of the signal on its way
    """
    return speed * round_trip / 2
