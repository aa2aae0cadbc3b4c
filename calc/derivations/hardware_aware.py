"""What the chapter "Hardware-aware optimisation" quotes: a stored measurement, and identities."""

from __future__ import annotations

from bisect import bisect_right
from statistics import median

import polars
from polars import col

from calc import (
    constants,
    energy,
    formats,
    hardware,
    machines,
    measure,
    published,
    roofline,
    transformer,
)
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, quantity
from calc.derivations.recorded import MEASURED, Named
from calc.derivations.roofline import DecodeStep
from calc.measure.timing import NOISY

KERNELS = polars.read_csv(MEASURED / "cpu_kernels.csv").with_columns(
    (col("measured_seconds") / col("predicted_seconds")).alias("ratio")
)
REASONS = polars.read_csv(MEASURED / "cpu_reasons.csv")
PAIRS = polars.read_csv(MEASURED / "cpu_pairs.csv").with_columns(
    (col("measured_seconds") / col("predicted_seconds")).alias("ratio")
)
(CPU,) = hardware.load(MEASURED / "cpu.toml").values()
MEASUREMENT = CPU.measurement
EIGHT_ROWS = "GEMM, 8 rows"  # a kernel's name


def stored(table: str, name: str) -> Quantity:
    """A median of the record."""
    row = MEASUREMENT[table][name]
    return quantity(row["median"], row["unit"])


def kernel(name: str, dtype: str) -> Named:
    return KERNELS.filter((col("name") == name) & (col("dtype") == dtype)).row(0, named=True)


def pair(lever: str) -> tuple[Named, Named]:
    fast, slow = PAIRS.filter(col("lever") == lever).iter_rows(named=True)
    return fast, slow


def without(name: str, form: str, whole: str = "as in the suite") -> float:
    """How many times as long a kernel takes in one form as in another."""
    of_kernel = REASONS.filter(col("kernel") == name)
    seconds = dict(zip(of_kernel["form"], of_kernel["seconds"], strict=True))
    return float(seconds[whole] / seconds[form])


class OwnMachine:
    """One core of a server: its roofs by our own measurement."""

    day = f"{CPU.records['memory_bandwidth'].provenance.checked:%-d %B %Y}"
    processor = MEASUREMENT["machine"]["processor"]
    h100 = hardware.get("h100")

    bandwidth = CPU.memory_bandwidth
    fp32 = stored("peak", "fp32")
    fp64_ridge = CPU.ridge_point("fp64")
    fp32_ridge = CPU.ridge_point("fp32")
    h100_ridge = h100.ridge_point("fp16")
    bandwidth_ratio = (h100.memory_bandwidth / bandwidth).to("")
    peak_ratio = (h100.peak("fp16") / fp32).to("")
    ridge_ratio = (h100_ridge / fp32_ridge).to("")
    l1_latency = stored("latency", "L1")
    memory_latency = stored("latency", "memory")
    latency_ratio = (memory_latency / l1_latency).to("")
    in_cache = stored("working_set", "16384")
    beyond = stored("working_set", str(max(int(size) for size in MEASUREMENT["working_set"])))
    in_cache_ratio = (in_cache / beyond).to("")


class SameFlop:
    """Four pairs of the same FLOP, several-fold apart in time."""

    rows_of_batch = 8

    rows = tuple(
        (
            lever,
            f"{fast['name']} → {slow['name']}",
            quantity(fast["operations"], "FLOP"),
            quantity(fast["measured_seconds"], "s"),
            quantity(slow["measured_seconds"], "s"),
            quantity(slow["measured_seconds"] / fast["measured_seconds"], ""),
            quantity(slow["predicted_seconds"] / fast["predicted_seconds"], ""),
        )
        for lever in ("layout", "access pattern", "fusion", "shape")
        for fast, slow in (pair(lever),)
    )
    access, fusion = (row[-2] for row in rows[1:3])
    fusion_predicted = rows[2][-1]
    least = min(row[-2] for row in rows)
    most = max(row[-2] for row in rows)


class Validation:
    """Every kernel of the suite: the measured time over the roofline's."""

    kernels = len(KERNELS)
    median_error = quantity(measure.median_error(KERNELS["ratio"].to_list()), "").to("%")
    noisy = quantity(100 * NOISY, "%")
    band = 0.25
    threshold = 1 + band
    within = bisect_right(sorted(map(measure.error, KERNELS["ratio"])), band)
    worst = max(KERNELS["ratio"])
    best = min(KERNELS["ratio"])
    best_name = KERNELS.filter(col("ratio") == best)["name"][0]
    rows = tuple(
        (
            row["name"],
            row["dtype"].upper(),
            quantity(row["operations"] / row["traffic_bytes"], "FLOP/byte"),
            quantity(row["predicted_seconds"], "s"),
            quantity(row["measured_seconds"], "s"),
            quantity(row["ratio"], ""),
        )
        for row in KERNELS.sort("ratio").iter_rows(named=True)
    )
    transpose = kernel("transpose", "fp32")["ratio"]
    addition = kernel("add", "fp64")["ratio"]
    gather = kernel("gather elements", "fp32")["ratio"]
    resolvent = kernel("resolvent", "fp64")["ratio"]
    exponential = kernel("exp", "fp64")["ratio"]


def published_share(kind: str, device: str) -> Quantity | None:
    """The median share of its bound that published kernels of a kind reach on a device."""
    shares = [
        compared.share_of_bound
        for compared in PUBLISHED
        if compared.row["kind"] == kind
        and compared.share_of_bound
        and machines.get(compared.machine).device.key == device
    ]
    return quantity(100 * median(shares), "%") if shares else None


PUBLISHED = published.compare(published.rows("kernel"))


GPUS = ("a100", "h100", "h200", "gb200", "mi300x")


class OtherKernels:
    """Kernels of the suite, and published ones of GPUs: shares of the roof."""

    header = ("Kernel", "One core", *map(str.upper, GPUS))
    rows = tuple(
        (
            name,
            quantity(100 / kernel(own, "fp32")["ratio"], "%"),
            *(published_share(kind, device) for device in GPUS),
        )
        for name, own, kind in (
            ("GEMM", "GEMM 1024³", "gemm"),
            ("attention in prefill", "attention, prefill", "attention"),
            ("passes over memory", "sum", "memory_bandwidth"),
        )
    )


class Reasons:
    """The outliers without what is suspected: how many times as long they take with it."""

    transpose_padded = without("transpose", "padded")
    transpose_in_tiles = without("transpose", "in tiles")
    transpose_left = without("transpose", "not transposed", "padded, in tiles")
    elements = without("gather elements", "in order")
    longer = 16
    longer_rows = without("gather rows", "longer rows")
    exponential = without("exp", "in cache")
    product_in_place = without("ReLU", "a product in place", "in place")
    eight_rows = without(EIGHT_ROWS, "in cache")
    product_of_convolution = quantity(without("convolution", "as in the suite", "product"), "")
    triad_of_add = without("add", "as in the suite", "triad")
    copy_of_ufunc = without("copy", "a ufunc", "as in the roof")


class FusedChain:
    """Fusing k passes over an array saves at most a factor of k."""

    low_claim = 2
    high_claim = 12


class FusedAttention:
    """What fusing attention can gain: its scores no longer move, then arithmetic binds."""

    width = 64
    wide = 128
    a100 = hardware.get("a100")
    h100 = hardware.get("h100")
    published = 7.6
    published_model = 3
    crossings = 4
    more_crossings = 8

    a100_bound = transformer.attention_fusion_gain(a100.ridge_point("fp16"), width, crossings)
    a100_more_bound = transformer.attention_fusion_gain(
        a100.ridge_point("fp16"), width, more_crossings
    )
    h100_bound = transformer.attention_fusion_gain(h100.ridge_point("fp16"), width, crossings)
    h100_wide_bound = transformer.attention_fusion_gain(h100.ridge_point("fp16"), wide, crossings)
    h100_by_hand = 2 * 300 / 130


class Exponentials:
    """The third roof of attention: units of their own, and few of them."""

    clock = constants.frequency_h100_boost
    sms = constants.count_sm_h100
    special = constants.count_special_per_clock_sm_h100
    peak = FusedAttention.h100.peak("fp16")

    rate = hardware.peak_from_clock(clock, sms, special * quantity("1 FLOP/cycle"))
    share = transformer.exponentials_over_products(peak, rate, FusedAttention.width).to("%")
    wide_share = transformer.exponentials_over_products(peak, rate, FusedAttention.wide).to("%")
    in_turn = (1 / (1 + share)).to("%")


class QuantizedDetector:
    """From FP16 to INT8: times and watts as told, frames and joules as they follow."""

    before_time = quantity("33 ms")
    after_time = quantity("16 ms")
    before_power = quantity("15 W")
    after_power = quantity("9 W")
    traffic_saved = quantity("40%")

    before_energy = (before_power * before_time).to("J")
    after_energy = (after_power * after_time).to("mJ")
    speedup = (before_time / after_time).to("")
    power_gain = (before_power / after_power).to("")
    energy_gain = (before_energy / after_energy).to("")
    traffic_gain = 1 / (1 - traffic_saved.m_as(""))


class MeasuredDetector:
    """YOLOX-S on a Jetson Orin Nano, FP16 and INT8: the network alone, and from frame to boxes."""

    before_rate = 97.8  # frames a second
    after_rate = 126.3
    before_whole = quantity("36.9 ms")
    after_whole = quantity("36.5 ms")


class IntegersOnT4:
    """On a T4, INT8 has twice the rate and half the bytes of FP16: a factor of 2 by either roof."""

    t4 = hardware.get("t4")
    low_claim = 2
    high_claim = 4
    language_low_claim = 1.5
    language_high_claim = 3
    measured_low = 2.4
    measured_high = 4.0

    rate_gain = (t4.peak("int8") / t4.peak("fp16")).to("")
    bytes_gain = formats.FP16.bits / formats.INT8.bits


class CostAndThroughput:
    """At equal price per hour, cost for each token is one over throughput."""

    low_cut = quantity("30%")
    high_cut = quantity("60%")
    low_claim = 1.5
    high_claim = 4
    other_cut = quantity("40%")

    low_gain = 1 / (1 - low_cut.m_as(""))
    high_gain = 1 / (1 - high_cut.m_as(""))
    cut_of_high_claim = quantity(1 - 1 / high_claim, "").to("%")
    other_gain = 1 / (1 - other_cut.m_as(""))
    by_hand = 10 / 6


class CameraBudget:
    """What a frame may cost in a camera."""

    rate = 30  # frames a second
    power = quantity("4 W")
    picture = quantity("6.22 MB")
    small_power = quantity("2 W")
    small_rate = 15
    network = quantity("400 MB")

    per_frame = (power * quantity("1 s") / rate).to("mJ")
    per_byte = constants.energy_lpddr4_bit.to("pJ/byte")
    sram_per_byte = (constants.energy_7nm_sram_1mb / quantity("8 byte")).to("pJ/byte")
    bytes_per_frame = (per_frame / per_byte).to("MB")
    multiply_add = constants.energy_7nm_int8_multiply + constants.energy_7nm_int8_add
    pairs_per_frame = (per_frame / multiply_add).to("") / 1e12
    per_picture = (picture * per_byte).to("mJ")
    picture_share = (per_picture / per_frame).to("%")
    small_per_frame = (small_power * quantity("1 s") / small_rate).to("mJ")
    network_energy = (network * per_byte).to("mJ")
    network_share = (network_energy / small_per_frame).to("%")
    network_by_hand = (quantity("0.4 GB") * quantity("60 pJ/byte")).to("mJ")


class EnergyPerToken:
    """A token costs the joules of its step, shared by whoever is in the batch."""

    tdp = DecodeStep.h100.tdp
    large_batch = DecodeStep.large_batch

    alone = (energy.energy_of_run(tdp, DecodeStep.step_time) / quantity("1 token")).to("J/token")
    shared = (
        energy.energy_of_run(tdp, DecodeStep.large_step_time) / quantity(large_batch, "token")
    ).to("mJ/token")


def memory_beside_the_chip(device: Accelerator) -> bool:
    """Whether it publishes a memory that is not the one on its chip."""
    if not device.publishes("memory_capacity"):
        return False
    on_chip = device.on_chip_memory if device.publishes("on_chip_memory") else None
    return on_chip is None or bool(on_chip != device.memory_capacity)


class Envelope:
    """From a phone to a rack: what the registry's devices span."""

    devices = tuple(filter(memory_beside_the_chip, map(hardware.get, hardware.names())))
    bandwidths = tuple(
        device.memory_bandwidth for device in devices if device.publishes("memory_bandwidth")
    )
    powers = tuple(device.tdp for device in devices if device.publishes("tdp"))

    least_bandwidth = min(bandwidths)
    most_bandwidth = max(bandwidths)
    least_power = min(powers)
    most_power = max(powers)


class OwnQuestions:
    """The problems' own inputs."""

    cut = CostAndThroughput.other_cut
    passes = 5
    line = quantity("64 byte")
    element = quantity("8 byte")
    gathered = quantity("4 byte")
    reduction_bytes = quantity("1 GB")
    before_time = quantity("20 ms")
    after_time = quantity("12 ms")
    before_power = quantity("10 W")
    after_power = quantity("12 W")

    waste = (line / element).to("")
    fusion_gain = (
        roofline.elementwise_traffic(2**24, 2 * passes, "2 byte")
        / roofline.elementwise_traffic(2**24, 2, "2 byte")
    ).to("")
    fusion_by_hand = 10 / 2
    reduction_by_hand = (quantity("1 GB") / quantity("25 GB/s")).to("ms")
    energy_by_hand = 5 / 3 * 5 / 6
    reduction_time = (reduction_bytes / OwnMachine.bandwidth).to("ms")
    before_energy = (before_power * before_time).to("mJ")
    after_energy = (after_power * after_time).to("mJ")
    energy_gain = (before_energy / after_energy).to("")
