"""What the chapter "The iron law" quotes."""

from __future__ import annotations

from calc import constants, hardware, roofline
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
    added_by_hand = quantity(14 / 3.3 + 3.5, "ms")
    overlapped = step.lower
    added_per_overlapped = added / overlapped
    capacity = DecodeStep.h100.memory_capacity
    room = ((capacity - weights) / batch / DecodeStep.cache_per_token).to("token")
    full_memory_time = (capacity / bandwidth).to("ms")
    token_arithmetic = (DecodeStep.operations / peak).to("µs")
    token_by_hand = quantity(14, "µs")


class LaunchedKernels:
    """Eighty tiny kernels, one by one and as a graph, which keeps a gap at each node."""

    kernels = constants.count_kernels_cuda_jl
    one_by_one = constants.latency_launches_cuda_jl
    as_graph = constants.latency_graph_cuda_jl

    node = (as_graph / kernels).to("µs")


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
    time = roofline.execution_time_overlapped(
        layer.traffic, bandwidth, layer.operations, peak, latency=launch
    )
    share_of_launch = (launch / time).to("%")
    network_time = roofline.launched_time(layers, memory_time, launch).to("µs")
    node = LaunchedKernels.node
    network_time_launched_once = (
        launch + roofline.launched_time(layers, memory_time, "0 s", node)
    ).to("µs")
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
    width_by_hand = (16e6 / 2) ** 0.5
    # What changes move: one graph leaves the gap alone, and smaller weights are read faster.
    gap = LaunchedKernels.node
    width_of_gap = ((gap * bandwidth / element_size).to("") ** 0.5).to("")
    small_element = quantity("1 byte")
    small_ridge = ridge_point * (small_element / element_size).to("")


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
    """Where the host cannot launch fast enough, only the repair of the launches has an effect."""

    bandwidth = SmallLayer.bandwidth
    peak = SmallLayer.peak
    kernels = 200
    launch = SmallLayer.launch
    traffic = quantity("1 GB")
    operations = quantity("100 GFLOP")

    node = LaunchedKernels.node

    launches = (kernels * launch).to("µs")
    memory_time = (traffic / bandwidth).to("µs")
    arithmetic_time = (operations / peak).to("µs")
    nodes = (kernels * node).to("µs")
    device = memory_time + arithmetic_time + nodes
    now = roofline.launched_time(kernels, (device - nodes) / kernels, launch, node)
    one_graph = launch + device
    gain_of_one_graph = now / one_graph
    then_smaller_numbers = one_graph / (one_graph - memory_time / 2)
    then_faster_arithmetic = one_graph / (one_graph - arithmetic_time / 2)
    gain_by_hand = 1000 / (300 + 100 + 200)
