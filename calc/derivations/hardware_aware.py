"""Claims of the chapter "Your own machine": a stored measurement, and identities."""

from __future__ import annotations

from bisect import bisect_right

import polars
from polars import col

from calc import constants, formats, hardware, measure
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.by_hand import by_hand, counted, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import show
from calc.derivations.recorded import MEASURED, Named

KERNELS = polars.read_csv(MEASURED / "cpu_kernels.csv").with_columns(
    (col("measured_seconds") / col("predicted_seconds")).alias("ratio")
)
REASONS = polars.read_csv(MEASURED / "cpu_reasons.csv")
PAIRS = polars.read_csv(MEASURED / "cpu_pairs.csv").with_columns(
    (col("measured_seconds") / col("predicted_seconds")).alias("ratio")
)
(CPU,) = hardware.load(MEASURED / "cpu.toml").values()
MEASUREMENT = CPU.measurement
FUSED = (2, 12)  # times as fast, as fused kernels are advertised
EIGHT_ROWS = "GEMM, 8 rows"  # a kernel's name


def stored(table: str, name: str) -> Quantity:
    """A median of the record."""
    row = MEASUREMENT[table][name]
    return quantity(row["median"], row["unit"])


def kernel(name: str, dtype: str) -> Named:
    chosen = KERNELS.filter((col("name") == name) & (col("dtype") == dtype))
    kernel_row: Named = recorded.known(chosen.row(0, named=True), "cpu_kernels.csv")
    return kernel_row


def pair(lever: str) -> tuple[Named, Named]:
    fast, slow = recorded.known(PAIRS.filter(col("lever") == lever).to_dicts(), "cpu_pairs.csv")
    return fast, slow


def without(name: str, form: str, whole: str = "as in the suite") -> float:
    """Return how many times as long a kernel takes in one form as in another."""
    of_kernel = REASONS.filter(col("kernel") == name)
    seconds = dict(zip(of_kernel["form"], of_kernel["seconds"], strict=True))
    return float(seconds[whole] / seconds[form])


class OwnMachine(Claims):
    """One core of a server: its roofs by our own measurement."""

    day = f"{CPU.records['memory_bandwidth'].provenance.checked:%-d %B %Y}" | counted(
        "day of the CPU"
    )
    processor = MEASUREMENT["machine"]["processor"] | counted("CPU")
    h100 = hardware.get("h100")

    bandwidth = CPU.memory_bandwidth | by_hand("(5 / (2 / 23.7432 + 3 / 24.4449)) GB/s")
    fp32 = stored("peak", "fp32") | by_hand("98.2732 GFLOP/s", "a median of the stored record")
    fp64_ridge = CPU.ridge_point("fp64") | by_hand(
        "(51.8491 / (5 / (2 / 23.7432 + 3 / 24.4449))) FLOP/byte"
    )
    fp32_ridge = CPU.ridge_point("fp32") | by_hand(
        "(98.2732 / (5 / (2 / 23.7432 + 3 / 24.4449))) FLOP/byte"
    )
    bandwidth_ratio = (h100.memory_bandwidth / bandwidth).to("") | by_hand("3350 / 24.1593")
    peak_ratio = (h100.peak("fp16") / fp32).to("") | by_hand("989000 / 98.2732")
    ridge_ratio = (h100.ridge_point("fp16") / fp32_ridge).to("") | by_hand("295.2239 / 4.0677")
    l1_latency = stored("latency", "L1") | by_hand("1.92154 ns", "a median of the stored record")
    memory_latency = stored("latency", "memory") | by_hand(
        "163.675 ns", "a median of the stored record"
    )
    latency_ratio = (memory_latency / l1_latency).to("") | by_hand("163.675 / 1.92154")
    in_cache = stored("working_set", "16384")
    beyond = stored("working_set", str(max(int(size) for size in MEASUREMENT["working_set"])))
    in_cache_ratio = (in_cache / beyond).to("") | by_hand("268.037 / 24.8136")


class SameFlop(Claims):
    """Four pairs of the same FLOP, several-fold apart in time."""

    rows_of_batch = 8 | by_hand("8")

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
    ) | row_by_hand(
        "layout | both by rows → one by columns | 16.8 MFLOP | 15.7 ms | 141 ms | 8.95 | 3.33"
    )
    fusion = rows[2][-2] | by_hand("0.126681 / 0.0714362")
    fusion_predicted = rows[2][-1] | by_hand("41 / 2")
    least = min(row[-2] for row in rows) | by_hand("0.126681 / 0.0714362")
    most = max(row[-2] for row in rows) | by_hand("0.33999 / 0.0338683")


class Validation(Claims):
    """Every kernel of the suite: the measured time over the roofline's."""

    kernels = len(KERNELS) | by_hand("6 + 2 + 4 + 3 + 2 + 3 + 2 + 1 + 1")
    median_error = quantity(measure.median_error(KERNELS["ratio"].to_list()), "").to("%") | by_hand(
        "mean(0.0772551 / 0.0659265, 0.0166666 / 0.014143) - 1"
    )
    band = 0.25
    threshold = 1 + band | by_hand("1 + 1/4")
    within = bisect_right(sorted(map(measure.error, KERNELS["ratio"])), band) | by_hand(
        "3 + 2 + 4 + 2 + 2 + 0 + 1 + 0 + 0"
    )
    worst = max(KERNELS["ratio"]) | by_hand("0.252551 / 0.0111111")
    best = min(KERNELS["ratio"]) | by_hand("0.00884746 / 0.0111111")
    best_name = KERNELS.filter(col("ratio") == best)["name"][0] | counted("best kernel of the CPU")
    rows = tuple(
        (
            row["name"],
            row["dtype"].upper(),
            quantity(row["operations"] / row["traffic_bytes"], "FLOP/byte"),
            quantity(row["predicted_seconds"], "s"),
            quantity(row["measured_seconds"], "s"),
            quantity(row["ratio"], ""),
        )
        for row in recorded.known(KERNELS.sort("ratio").to_dicts(), "cpu_kernels.csv")
    ) | row_by_hand("add | FP64 | 0.0417 FLOP/byte | 16.7 ms | 14.1 ms | 0.849")
    transpose = kernel("transpose", "fp32")["ratio"] | by_hand("0.252551 / 0.0111111")
    gather = kernel("gather elements", "fp32")["ratio"] | by_hand("0.280019 / 0.0222221")
    resolvent = kernel("resolvent", "fp64")["ratio"] | by_hand("0.00816235 / 0.000434026")
    exponential = kernel("exp", "fp64")["ratio"] | by_hand("0.0136483 / 0.0111111")


class Reasons(Claims):
    """The outliers without what is suspected: how many times as long they take with it."""

    transpose_padded = without("transpose", "padded") | by_hand("0.2518 s / 0.1248 s")
    transpose_in_tiles = without("transpose", "in tiles") | by_hand("0.2518 s / 0.1041 s")
    transpose_left = without("transpose", "not transposed", "padded, in tiles") | by_hand(
        "0.05436 s / 0.01272 s"
    )
    elements = without("gather elements", "in order") | by_hand("0.2734 s / 0.02498 s")
    exponential = without("exp", "in cache") | by_hand("0.014 s / 0.01468 s")
    eight_rows = without(EIGHT_ROWS, "in cache") | by_hand("0.02 s / 0.005804 s")
    product_of_convolution = quantity(
        without("convolution", "as in the suite", "product"), ""
    ) | by_hand("0.01549 s / 0.01721 s")


class QuantizedDetector(Claims):
    """From FP16 to INT8: times and watts as told, frames and joules as they follow."""

    before_time = quantity("33 ms")
    after_time = quantity("16 ms")
    before_power = quantity("15 W")
    after_power = quantity("9 W")
    traffic_saved = quantity("40%")

    before_energy = (before_power * before_time).to("J")
    after_energy = (after_power * after_time).to("mJ")
    speedup = (before_time / after_time).to("")
    energy_gain = (before_energy / after_energy).to("")
    traffic_gain = 1 / (1 - traffic_saved.m_as(""))
    before_rate = quantity(1 / before_time.m_as("s"), "")
    after_rate = quantity(1 / after_time.m_as("s"), "")


class IntegersOnT4(Claims):
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


class CostAndThroughput(Claims):
    """At equal price per hour, cost for each token is one over throughput."""

    low_cut = quantity("30%")
    high_cut = quantity("60%")

    low_gain = 1 / (1 - low_cut.m_as(""))
    high_gain = 1 / (1 - high_cut.m_as(""))


class CameraBudget(Claims):
    """A camera leaves a frame so much time and energy."""

    rate = 30  # frames a second
    power = quantity("4 W")
    small_power = quantity("2 W")
    small_rate = 15
    network = quantity("400 MB")

    per_frame = (power * quantity("1 s") / rate).to("mJ") | by_hand("4 W * 1 s / 30")
    per_byte = constants.energy_lpddr4_bit.to("pJ/byte") | by_hand("8 * 8 pJ/byte")
    sram_per_byte = (constants.energy_7nm_sram_1mb / quantity("8 byte")).to("pJ/byte") | by_hand(
        "14 pJ / 8 bytes"
    )
    bytes_per_frame = (per_frame / per_byte).to("MB") | by_hand("(133.33 / 64) GB")
    multiply_add = constants.energy_7nm_int8_multiply + constants.energy_7nm_int8_add
    pairs_per_frame = (per_frame / multiply_add).to("") / 1e12 | by_hand(
        "4 / 30 / ((0.07 + 0.007) * 1e-12) / 1e12"
    )
    small_per_frame = (small_power * quantity("1 s") / small_rate).to("mJ") | by_hand(
        "2 W * 1 s / 15"
    )
    network_energy = (network * per_byte).to("mJ") | by_hand("400e6 * 64 pJ")
    network_share = (network_energy / small_per_frame).to("%") | by_hand("25.6 / 133.33")


def memory_beside_the_chip(device: Accelerator) -> bool:
    """Return whether it publishes a memory that is not the one on its chip."""
    if not device.publishes("memory_capacity"):
        return False
    on_chip = device.on_chip_memory if device.publishes("on_chip_memory") else None
    return on_chip is None or bool(on_chip != device.memory_capacity)


class Envelope(Claims):
    """From a phone to a rack: what the registry's devices span."""

    devices = tuple(filter(memory_beside_the_chip, map(hardware.get, hardware.names())))
    bandwidths = tuple(
        device.memory_bandwidth for device in devices if device.publishes("memory_bandwidth")
    )
    powers = tuple(device.tdp for device in devices if device.publishes("tdp"))

    least_bandwidth = min(bandwidths) | by_hand("51.2 GB/s")
    most_bandwidth = max(bandwidths) | by_hand("8600 GB/s")
    least_power = min(powers) | by_hand("4 W")
    most_power = max(powers) | by_hand("1400 W")


class AdvertisedGains(Claims):
    """Numbers in circulation, beside what they imply and what bounds it."""

    rows = (
        (
            f"A detector on a Jetson, FP16 to INT8: {show(QuantizedDetector.before_time)} to"
            f" {show(QuantizedDetector.after_time)}, {show(QuantizedDetector.before_power)} to"
            f" {show(QuantizedDetector.after_power)},"
            f" {show(QuantizedDetector.traffic_saved, '%')} less DRAM traffic",
            f"{show(QuantizedDetector.before_rate, digits=3)} to"
            f" {show(QuantizedDetector.after_rate, digits=3)} frames/s,"
            f" {show(QuantizedDetector.before_energy, 'mJ', 3)} to"
            f" {show(QuantizedDetector.after_energy, 'mJ', 3)} a frame,"
            f" {show(QuantizedDetector.energy_gain, digits=3)} times less energy",
            f"bytes fell by a factor of {show(QuantizedDetector.traffic_gain, digits=3)}, time by"
            f" {show(QuantizedDetector.speedup, digits=3)}: memory was not the only roof, or the"
            " numbers were not measured together",
        ),
        (
            f"INT8 on a T4: CNNs {IntegersOnT4.low_claim} to {IntegersOnT4.high_claim} times,"
            f" BERT {IntegersOnT4.language_low_claim} to {IntegersOnT4.language_high_claim} times",
            "–",
            f"at most {show(IntegersOnT4.rate_gain, digits=2)} times FP16 by rate,"
            f" {show(IntegersOnT4.bytes_gain, digits=2)} times by bytes; a BERT was measured at"
            f" {IntegersOnT4.measured_low} to {show(IntegersOnT4.measured_high, digits=2)} times"
            " FP32",
        ),
        (
            f"A token costs {show(CostAndThroughput.low_cut, '%')} to"
            f" {show(CostAndThroughput.high_cut, '%')} less",
            f"{show(CostAndThroughput.low_gain, digits=3)} to"
            f" {show(CostAndThroughput.high_gain, digits=2)} times the throughput",
            "an identity at equal price per hour",
        ),
        (
            f"Fused kernels are {FUSED[0]} to {FUSED[1]} times as fast",
            "as many passes over memory, fused into one",
            "@eq-fusion-chain, if both versions run at the memory roof",
        ),
    ) | row_by_hand(
        "A token costs 30% to 60% less | 1.43 to 2.5 times the throughput | an "
        "identity at equal price per hour"
    )


class OwnQuestions(Claims):
    """The problems' own inputs."""

    line = quantity("64 byte")
    element = quantity("8 byte")
    gathered = quantity("4 byte") | by_hand("32 bit")
    reduction_bytes = quantity("1 GB")

    waste = (line / element).to("") | by_hand("64 / 8")
    reduction_time = (reduction_bytes / OwnMachine.bandwidth).to("ms") | by_hand(
        "1 GB / 24.1593 GB/s"
    )
