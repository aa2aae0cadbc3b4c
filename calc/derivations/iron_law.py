"""What the chapter "The iron law" quotes."""

from __future__ import annotations

from calc import hardware, roofline
from calc.core.units import quantity
from calc.derivations.roofline import DecodeStep


class IronLaw:
    """The sum and the larger of the terms bound the truth, at most a factor of two apart."""

    peak = DecodeStep.peak
    bandwidth = DecodeStep.bandwidth
    weights = DecodeStep.weights
    batch = 256

    operations = DecodeStep.operations * batch
    memory_time = (weights / bandwidth).to("ms")
    arithmetic_time = (operations / peak).to("ms")
    step = roofline.Workload(operations, weights).between(peak, bandwidth)
    added = step.upper
    overlapped = step.lower
    added_per_overlapped = added / overlapped


class SmallLayer:
    """A narrow layer takes less time to run than to start."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    element_size = quantity("2 byte")
    launch = quantity("5 µs")
    width = 1024
    layers = 100

    layer = roofline.gemm(1, width, width, element_size)
    memory_time = (layer.traffic / bandwidth).to("µs")
    arithmetic_time = (layer.operations / peak).to("ns")
    time = roofline.execution_time_overlapped(
        layer.traffic, bandwidth, layer.operations, peak, latency=launch
    )
    share_of_launch = (launch / time).to("%")
    network_time = (layers * time).to("µs")
    network_time_launched_once = (launch + layers * memory_time).to("µs")
    gain = network_time / network_time_launched_once


class Regimes:
    """Which term of the iron law is the largest, for a layer of any width and batch."""

    peak = SmallLayer.peak
    bandwidth = SmallLayer.bandwidth
    element_size = SmallLayer.element_size
    launch = SmallLayer.launch
    decode_width = 4096
    decode_batch = 1
    prefill_batch = 2048
    small_width = SmallLayer.width
    small_batch = 32

    ridge_point = roofline.ridge_point(peak, bandwidth)
    bytes_in_a_launch = (launch * bandwidth).to("MB")
    operations_in_a_launch = (launch * peak).to("GFLOP")
    # The square layer whose weights take a launch to read; and one that takes it to compute.
    width_of_memory = ((bytes_in_a_launch / element_size).to("") ** 0.5).to("")


class SlowKernel:
    """Half of the peak while it computes: what that costs depends on what overlaps."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    efficiency = 0.5
    n = 4096
    element_size = SmallLayer.element_size

    product = roofline.gemm(n, n, n, element_size)
    ideal = product.on(h100, "fp16").lower
    overlapped = product.between(efficiency * peak, bandwidth).lower
    added = product.between(efficiency * peak, bandwidth).upper


class ThreeRepairs:
    """Of three repairs to one slow step, the one that touches the largest term is worth most."""

    bandwidth = SmallLayer.bandwidth
    peak = SmallLayer.peak
    kernels = 200
    launch = SmallLayer.launch
    traffic = quantity("1 GB")
    operations = quantity("100 GFLOP")

    launches = (kernels * launch).to("µs")
    memory_time = (traffic / bandwidth).to("µs")
    arithmetic_time = (operations / peak).to("µs")
    now = roofline.execution_time(traffic, bandwidth, operations, peak, latency=launches)
    faster_arithmetic = roofline.execution_time(
        traffic, bandwidth, operations, 2 * peak, latency=launches
    )
    smaller_numbers = roofline.execution_time(
        traffic / 2, bandwidth, operations, peak, latency=launches
    )
    one_graph = roofline.execution_time(traffic, bandwidth, operations, peak, latency=launch)
    gain_of_faster_arithmetic = now / faster_arithmetic
    gain_of_smaller_numbers = now / smaller_numbers
    gain_of_one_graph = now / one_graph
