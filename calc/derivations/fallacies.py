"""What the chapter "Fallacies and pitfalls" quotes, but for what other chapters have computed."""

from __future__ import annotations

from calc import collectives, constants, hardware, links, machines, memory, roofline, training
from calc.core.units import quantity
from calc.derivations.collectives import Overlap
from calc.derivations.numbers_to_know import AnchorLatencies
from calc.derivations.roofline import BatchSize, DecodeStep


class DoubledDevices:
    """Twice the devices halve the arithmetic of a step, not its communication."""

    machine = machines.get("dgx-h100")
    parameters = DecodeStep.parameters
    batch = quantity("1M token")
    mfu = 0.4
    before = 512
    after = 1024
    backward = Overlap.backward

    gradients = (parameters * constants.size_gradient_fp16).to("GB")
    arithmetic = training.training_time(
        parameters, batch, (before, after), machine.device.peak("bf16"), mfu
    ).to("ms")
    arithmetic_before, arithmetic_after = arithmetic
    exchange_before = collectives.time("all_reduce", gradients, before, machine)
    exchange_after = collectives.time("all_reduce", gradients, after, machine)
    communication_before = exchange_before.needed.to("ms")
    communication_after = exchange_after.needed.to("ms")
    measured_devices = exchange_after.measured[0].devices
    added_before = collectives.step_time(arithmetic_before, communication_before, 0)
    added_after = collectives.step_time(arithmetic_after, communication_after, 0)
    gain_without_overlap = (added_before / added_after).to("")
    hidden_before = collectives.step_time(arithmetic_before, communication_before, 1, backward)
    hidden_after = collectives.step_time(arithmetic_after, communication_after, 1, backward)
    gain_with_overlap = (hidden_before / hidden_after).to("")
    backward_after = (backward * arithmetic_after).to("ms")
    tokens_per_device = (batch / after).to("token")


class PeakAgainstSpeed:
    """Peaks differ by more than the speed of what memory binds."""

    h100 = hardware.get("h100")
    a100 = hardware.get("a100")

    peak_ratio = h100.peak("fp16") / a100.peak("fp16")
    bandwidth_ratio = h100.memory_bandwidth / a100.memory_bandwidth
    a100_tokens_per_second = DecodeStep.tokens_per_second / bandwidth_ratio


class BusyGpu:
    """A GPU that is always busy may use a third of a percent of its peak."""

    tokens_per_second = quantity("200 token/s")
    weights = DecodeStep.weights
    operations_per_token = DecodeStep.operations / quantity("1 token")
    bandwidth = DecodeStep.bandwidth
    peak = DecodeStep.peak

    bytes_moved = (tokens_per_second * weights / quantity("1 token")).to("TB/s")
    share_of_bandwidth = (bytes_moved / bandwidth).to("%")
    rate = (tokens_per_second * operations_per_token).to("TFLOP/s")
    share_of_peak = (rate / peak).to("%")
    by_hand = quantity(100 * 0.2 * 14 / 3.3, "%")


class SinglePrecision:
    """FP32 costs twice the bytes, and far more than twice the arithmetic."""

    h100 = hardware.get("h100")

    energy_ratio = constants.energy_fp32_multiply / constants.energy_fp16_multiply
    fp32_slowdown = h100.peak("fp16") / h100.vector_peak("fp32")


class SoldAndUsable:
    """What an advertisement adds up is halved by the first program that uses it."""

    h100 = hardware.get("h100")
    sparse_peak = h100.sparse_peak("fp16")
    dense_peak = h100.peak("fp16")
    link = h100.link_bandwidth
    gradients = quantity("14 GB")

    sparse_ridge_point = roofline.ridge_point(sparse_peak, h100.memory_bandwidth)
    dense_ridge_point = h100.ridge_point("fp16")
    link_both_ways = 2 * link
    time_one_way = (gradients / link).to("ms")
    time_promised = (gradients / link_both_ways).to("ms")
    by_hand = quantity(1000 / 3.3, "FLOP/byte")


class Gigabytes:
    """A disk's terabyte is smaller than a program's, an H100's gigabyte is larger."""

    disk = quantity("1 TB")
    large_disk = quantity("2 TB")
    h100_memory = hardware.get("h100").memory_capacity

    disk_in_binary = disk.to("GiB")
    large_disk_in_binary = large_disk.to("TiB")
    h100_memory_in_decimal = h100_memory.to("GB")
    difference = (quantity("1 GiB") / quantity("1 GB") - 1).to("%")
    by_hand = quantity(2 / 1.1, "TiB")


class CacheHit:
    """On a GPU a hit in the cache costs more than a CPU's fetch from its second cache."""

    l1_cpu = AnchorLatencies.l1_cpu
    l2_cpu = AnchorLatencies.l2_cpu
    hit_rate = 0.9

    l1_gpu = AnchorLatencies.hopper_l1
    l2_gpu = AnchorLatencies.hopper_l2
    # The L2 was measured from the start of the access, the look into L1 included.
    average = memory.average_access_time(l1_gpu, 1 - hit_rate, l2_gpu - l1_gpu)


class FasterLink:
    """Forty times the bandwidth changes nothing for a small message across an ocean."""

    message = quantity("1 kB")
    slow = quantity("10 Gbit/s")
    fast = quantity("400 Gbit/s")

    latency = (links.round_trip_time(constants.length_pacific) / 2).to("ms")
    slow_time = links.transfer_time(message, slow, latency)
    fast_time = links.transfer_time(message, fast, latency)
    gain = (slow_time - fast_time).to("µs")


class FreeBatch:
    """Left of the ridge a larger batch is nearly free; right of it each input pays in full."""

    width = BatchSize.width
    small = 16
    medium = 128
    large = 1024
    peak = BatchSize.peak
    bandwidth = BatchSize.bandwidth
    element_size = BatchSize.element_size

    small_layer = roofline.gemm(small, width, width, element_size)
    medium_layer = roofline.gemm(medium, width, width, element_size)
    large_layer = roofline.gemm(large, width, width, element_size)
    small_time = small_layer.between(peak, bandwidth).lower
    medium_time = medium_layer.between(peak, bandwidth).lower
    large_time = large_layer.between(peak, bandwidth).lower
    large_per_medium = large_time / medium_time


class WhichToRent:
    """The dearer device is the cheaper one for what its peak binds, and only for that."""

    price_ratio = 2

    decode_gain = PeakAgainstSpeed.bandwidth_ratio
    training_gain = PeakAgainstSpeed.peak_ratio
    decode_per_dollar = decode_gain / price_ratio
    training_per_dollar = training_gain / price_ratio
    training_by_hand = 3 / 2
