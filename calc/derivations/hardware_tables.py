"""What the chapter "Hardware cheat sheet" quotes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from calc import constants, energy, hardware, roofline, training
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, quantity
from calc.derivations.quoting import Quoted, Row, approximately, show

# How the key of a device begins tells its table; whatever begins otherwise is a GPU.
CLOUD = ("tpu", "trainium", "inferentia", "gaudi", "cerebras", "groq")
EDGE = ("jetson", "phone", "snapdragon", "apple", "xeon", "epyc", "ryzen")
# What a reader of these tables seldom meets, or what has no rates: the library's page has all.
IN_THE_LIBRARY_ALONE = (
    *("a100-40gb", "gh200", "a10g", "mi250x", "mi350x", "arc-pro-b60"),
    *("inferentia2", "gaudi2", "cerebras-wse-3", "groq-lpu"),
    *("rtx-3060", "rtx-3070", "rtx-3080", "rtx-3090", "rtx-3090-ti"),
    *("rtx-4060-ti", "rtx-4070-ti", "rtx-4080", "rtx-5060-ti", "rtx-5080"),
    *("rtx-a6000", "a40", "a10", "rtx-6000-ada", "rtx-5000-ada"),
    *("rtx-4000-ada", "a100-pcie", "a30", "h200-nvl", "h20"),
    *("mi210", "mi300a", "apple-m1-pro", "apple-m1-ultra", "apple-m2-pro"),
    *("apple-m2-max", "apple-m2-ultra", "apple-m3", "apple-m3-pro", "apple-m3-max"),
    *("apple-m4", "apple-m4-pro", "ryzen-ai-max-395"),
    *("apple-m1", "apple-m1-max", "apple-m2", "apple-m5", "snapdragon-8-gen-3"),
)
MEMORY_FIELDS = ("memory_capacity", "memory_bandwidth", "on_chip_memory", "link_bandwidth", "tdp")


def short_names(devices: Sequence[Accelerator]) -> dict[str, str]:
    """Names by key, without vendor or module, and with the memory only where two differ by it."""
    left_out = (
        r"^(NVIDIA|AMD|Google|AWS|Intel|Apple|Qualcomm)|,.*|\(.*\)|"
        r"Instinct|Jetson|GeForce| T5000|Grace Hopper|Blackwell Server Edition|SXM\d?|Platinum|"
        r"Neural Engine|Hexagon NPU"
    )
    names = {device.key: " ".join(re.sub(left_out, "", device.name).split()) for device in devices}
    bare = {key: re.sub(r" \d+ GB$", "", name) for key, name in names.items()}
    count = Counter(bare.values())
    return {key: bare[key] if count[bare[key]] == 1 else names[key] for key in names}


def dtype_of_two_bytes(device: Accelerator) -> str | None:
    """The format of two bytes that a device is fastest in, where it has one."""
    dtypes = [dtype for dtype in ("bf16", "fp16") if dtype in device.dtypes]
    return max(dtypes, key=device.peak, default=None)


def _number(value: Quantity, unit: str, digits: int, *inputs: Quantity) -> float | Quoted:
    """A cell under a caption that states the unit; what follows from an estimate is one, to so
    many digits."""
    magnitude: float = value.m_as(unit)
    kinds = {datum.provenance.kind for datum in inputs if datum.provenance}
    return approximately(quantity(magnitude, ""), digits) if "estimate" in kinds else magnitude


def _vector_rate(device: Accelerator) -> float | Quoted | None:
    """What the vector units do in FP32; where there are no others, that is the peak before it."""
    record = device.peaks["vector_peak"].get("fp32")
    rate = None if record is None else record.published
    return None if rate is None else _number(rate, "TFLOP/s", 3, rate)


def _per_watt(device: Accelerator) -> Row:
    """Power, then what a joule does: in FP16, in INT8, and in bytes from memory."""
    power = device.tdp
    estimated = power.provenance is not None and power.provenance.kind == "estimate"
    mark, digits = (approximately, 2) if estimated else (show, 3)
    rates = [device.peak(dtype) if dtype in device.dtypes else None for dtype in ("fp16", "int8")]
    efficiencies = [rate and energy.energy_efficiency(rate, power) for rate in rates]
    return (
        device.name,
        power,
        efficiencies[0] and mark(efficiencies[0].to("TFLOP/J"), digits=digits),
        efficiencies[1] and mark(efficiencies[1].to("TOP/J"), digits=digits),
        mark((device.memory_bandwidth / power).to("GB/J"), digits=digits),
    )


class _Group:
    """Devices of one kind, by year: what each holds, moves and draws, its peaks, its ridges."""

    def __init__(self, devices: Sequence[Accelerator]) -> None:
        self.devices = sorted(devices, key=lambda device: (device.year, device.memory_bandwidth))
        columns = self._columns()
        self.names = short_names(self.devices)
        self.header = ["Device", *columns]
        self.peak_header = [*self.header, "FP32, vector"]
        self.memory_rows = [
            (
                self.names[device.key],
                device.year,
                *(
                    getattr(device, field) if device.publishes(field) else None
                    for field in MEMORY_FIELDS
                ),
            )
            for device in self.devices
        ]
        self.peak_rows: list[Row] = []
        self.ridge_rows: list[Row] = []
        for device in self.devices:
            dtypes = [
                next((dtype for dtype in shared if dtype in device.dtypes), None)
                for shared in columns.values()
            ]
            rates = [dtype and device.peak(dtype) for dtype in dtypes]
            bandwidth = device.memory_bandwidth
            if not any(rates):  # of a device whose rates nobody publishes
                continue
            peaks = [rate and _number(rate, "TFLOP/s", 3, rate) for rate in rates]
            ridges = [
                rate and _number(rate / bandwidth, "FLOP/byte", 2, rate, bandwidth)
                for rate in rates
            ]
            self.peak_rows.append((self.names[device.key], *peaks, _vector_rate(device)))
            self.ridge_rows.append((self.names[device.key], *ridges))

    def _columns(self) -> dict[str, tuple[str, ...]]:
        """Data types that any device has; two share a column where no device tells them apart."""
        dtypes = [d for d in hardware.DTYPES if any(d in device.dtypes for device in self.devices)]
        columns: dict[str, tuple[str, tuple[str, ...]]]
        columns = {dtype: (dtype.upper(), (dtype,)) for dtype in dtypes}
        for title, pair in (("16 bits", ("fp16", "bf16")), ("FP8, FP6", ("fp8", "fp6"))):
            both = [device for device in self.devices if set(pair) <= set(device.dtypes)]
            if both and all(device.peak(pair[0]) == device.peak(pair[1]) for device in both):
                columns |= dict.fromkeys(pair, (title, pair))
        return dict(columns.values())


class AcceleratorTables:
    """Devices that readers meet stand in three groups of tables, what is announced in a fourth."""

    _devices = tuple(
        hardware.get(key) for key in hardware.names() if key not in IN_THE_LIBRARY_ALONE
    )
    devices = len(hardware.names())

    header = ("Device", "Year", "Capacity", "Bandwidth", "On chip", "Links", "Power")
    gpus = _Group([device for device in _devices if not device.key.startswith(CLOUD + EDGE)])
    cloud = _Group([device for device in _devices if device.key.startswith(CLOUD)])
    edge = _Group([device for device in _devices if device.key.startswith(EDGE)])
    announced_header = ("Device", "Capacity", "Bandwidth", "Links", "BF16, dense", "FP8", "FP4")
    announced = tuple(
        (
            device.name,
            device.memory_capacity,
            device.memory_bandwidth,
            device.link_bandwidth if device.publishes("link_bandwidth") else None,
            *(
                device.peak(dtype) if dtype in device.dtypes else None
                for dtype in ("bf16", "fp8", "fp4")
            ),
        )
        for device in map(hardware.get, hardware.announced())
    )


class AdvertisedAgainstServed:
    """A sparse FP8 rate beside a dense FP16 rate promises a factor that no program sees."""

    a100 = hardware.get("a100")
    h100 = hardware.get("h100")

    advertised = h100.sparse_peak("fp8")
    before = a100.peak("fp16")
    promised = advertised / before
    like_with_like = h100.peak("fp16") / before
    memory_bound = h100.memory_bandwidth / a100.memory_bandwidth


class CheatSheet:
    """The TPU v5p against the H100: less than half the arithmetic, most of the bandwidth."""

    h100 = hardware.get("h100")
    tpu = hardware.get("tpu-v5p")
    tpu_links = constants.count_links_tpu_v5p

    h100_peak = h100.peak("bf16")
    tpu_peak = tpu.peak("bf16")
    h100_link = h100.link_bandwidth
    tpu_link = tpu.link_bandwidth
    peak_ratio = tpu_peak / h100_peak
    peak_gap = h100_peak / tpu_peak
    bandwidth_ratio = tpu.memory_bandwidth / h100.memory_bandwidth
    h100_ridge = h100.ridge_point("bf16")
    tpu_ridge = tpu.ridge_point("bf16")
    reuse = (tpu_ridge / h100_ridge).to("%")
    h100_both_ways = 2 * h100_link
    tpu_both_ways = 2 * tpu_link
    tpu_link_in_bits = tpu_link.to("Gbit/s")
    link_ratio = tpu_link / h100_link
    link_ratio_by_hand = (4800 / 8) / (900 / 2)
    link_ratio_mixed = tpu_link / h100_both_ways
    link_ratio_bits_as_bytes = quantity(tpu_link_in_bits.magnitude, "GB/s") / h100_both_ways
    tpu_one_link = tpu_link / tpu_links
    one_peer_ratio = h100_link / tpu_one_link

    rows = tuple(
        (title, first, second, show((second / first).m_as(""), digits=3))
        for title, first, second in (
            ("Peak, BF16, dense", h100_peak, tpu_peak),
            ("Memory bandwidth", h100.memory_bandwidth, tpu.memory_bandwidth),
            ("Memory capacity", h100.memory_capacity, tpu.memory_capacity),
            ("On chip: L2 or vector memory", h100.on_chip_memory, tpu.on_chip_memory),
            ("All links, each way", h100_link, tpu_link),
            ("All links, both ways summed", h100_both_ways, tpu_both_ways),
            ("To one neighbour, each way", h100_link, tpu_one_link),
            ("Ridge point, BF16", h100_ridge, tpu_ridge),
        )
    )


class TunedProducts:
    """The best products that a search over shapes found, as shares of the peak in BF16."""

    # Bekman 2026, its table of MAMF: an MI300X and a Gaudi 2.
    least = quantity("51.4%")
    most = quantity("96.9%")


class HalfPrecisionOfGaudi:
    """Gaudi 3 is made for BF16; FP16 it does at a fraction of that rate."""

    gaudi = hardware.get("gaudi3")

    share = (gaudi.peak("fp16") / gaudi.peak("bf16")).to("%")


class OnePeer:
    """Without a switch, each of the other GPUs has its share of the links and no more."""

    links = hardware.get("mi300x").link_bandwidth

    to_one_peer = links / constants.count_peers_mi300x


class RoundedPeak:
    """The printed peak of the H100 is rounded, which moves its ridge point in the fourth digit."""

    h100 = hardware.get("h100")
    printed = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    sms = constants.count_sm_h100
    operations_per_clock = constants.count_flop_per_clock_sm_h100
    clock = constants.frequency_h100_boost

    from_clock = (sms * operations_per_clock * clock * quantity("1 FLOP")).to("TFLOP/s")
    in_white_paper = quantity(round(from_clock.magnitude, 1), "TFLOP/s")
    ridge_printed = roofline.ridge_point(printed, bandwidth)


class SoldCapacity:
    """An "80 GB" H100 holds 80 GiB, of which a program can have nearly all."""

    capacity = hardware.get("h100").memory_capacity
    reported = constants.size_memory_h100_driver

    decimal = capacity.to("GB")
    kept_back = (capacity - reported).to("MiB")


class PeakPerWatt:
    """A peak over a power says what a joule of arithmetic costs at best, and nothing of memory."""

    h100 = hardware.get("h100")
    h200 = hardware.get("h200")
    l4 = hardware.get("l4")
    pcie = hardware.get("h100-pcie")

    pcie_power = pcie.tdp
    h100_power = h100.tdp
    h100_efficiency = energy.energy_efficiency(h100.peak("fp16"), h100.tdp).to("TFLOP/J")
    l4_efficiency = energy.energy_efficiency(l4.peak("fp16"), l4.tdp).to("TFLOP/J")
    pcie_efficiency = energy.energy_efficiency(pcie.peak("fp16"), pcie.tdp).to("TFLOP/J")
    h100_energy_of_flop = (h100.tdp / h100.peak("fp16")).to("pJ/FLOP")
    h100_bytes = (h100.memory_bandwidth / h100.tdp).to("GB/J")
    h200_bytes = (h200.memory_bandwidth / h200.tdp).to("GB/J")
    l4_bytes = (l4.memory_bandwidth / l4.tdp).to("GB/J")
    h200_gain = h200_bytes / h100_bytes

    rows = tuple(
        _per_watt(hardware.get(key))
        for key in ("v100", "t4", "a100", "h100", "h100-pcie", "l4", "h200", "b200", "phone-npu")
    )


class Spread:
    """Bandwidth and peak grow together: ridge points in two bytes stay within one decade."""

    slow = hardware.get("jetson-orin-nano")
    fast = hardware.get("gb200")

    bandwidth_span = fast.memory_bandwidth / slow.memory_bandwidth
    peak_span = fast.peak("fp16") / slow.peak("fp16")
    slow_ridge = slow.ridge_point("fp16")
    fast_ridge = fast.ridge_point("fp16")
    old_ridge = hardware.get("v100").ridge_point("fp16")
    fast_ridge_fp4 = fast.ridge_point("fp4")
    ridge_growth = fast_ridge / old_ridge
    ridge_growth_smallest = fast_ridge_fp4 / old_ridge


class WholeRack:
    """A rack is its GPUs, summed: all totals grow, the ridge point does not."""

    gpu = hardware.get("gb200")
    gpus = constants.count_gpu_nvl72

    peak = (gpus * gpu.peak("fp4")).to("PFLOP/s")
    bandwidth = (gpus * gpu.memory_bandwidth).to("TB/s")
    links_both_ways = (gpus * 2 * gpu.link_bandwidth).to("TB/s")


class AdvertisedL4:
    """With a sparse peak the ridge point of an L4 doubles on paper."""

    l4 = hardware.get("l4")
    bandwidth = l4.memory_bandwidth

    advertised = l4.sparse_peak("fp16")
    ridge_advertised = roofline.ridge_point(advertised, bandwidth)
    ridge = l4.ridge_point("fp16")
    by_hand = quantity(240 / 2 / 0.3, "FLOP/byte")


class SparseUnlike:
    """A sparse rate need not be twice the dense one, nor what stands beside it dense."""

    l40s = hardware.get("l40s")
    trainium2_sparse = quantity("2563 TFLOP/s")
    l40s_printed = quantity("362.05 TFLOP/s")
    trainium2_dense = hardware.get("trainium2").peak("bf16")
    l40s_sparse = l40s.sparse_peak("fp16")
    l40s_dense = l40s.peak("fp16")

    trainium2_ratio = trainium2_sparse / trainium2_dense


class AdvertisedOrin:
    """Of the 275 TOPS of a Jetson AGX Orin, its GPU does 85 on dense matrices."""

    orin = hardware.get("jetson-agx-orin")
    advertised = quantity("275 TOP/s")
    dense = orin.peak("int8")

    sparse = orin.sparse_peak("int8")
    of_other_units = advertised - sparse
    overstated = advertised / dense
    ridge = orin.ridge_point("int8")
    by_hand = quantity((275 - 105) / 2, "TOP/s")


class MoreMemory:
    """The H200 adds memory and no arithmetic: it speeds up decoding and not prefill."""

    h100 = hardware.get("h100")
    h200 = hardware.get("h200")
    parameters = quantity("70B param")

    weights = training.model_memory(parameters, quantity("2 byte/param"))
    h100_capacity = h100.memory_capacity.to("GB")
    h200_capacity = h200.memory_capacity.to("GB")
    left = (h200_capacity - weights).to("GB")
    decode_gain = h200.memory_bandwidth / h100.memory_bandwidth
    decode_gain_by_hand = 4.8 / 3.4
    one_for_two = (h200.memory_bandwidth / (2 * h100.memory_bandwidth)).to("%")
    prefill_gain = h200.peak("fp16") / h100.peak("fp16")
    h100_ridge = h100.ridge_point("fp16")
    h200_ridge = h200.ridge_point("fp16")
    a100_ridge = hardware.get("a100").ridge_point("fp16")


class OneKilowatt:
    """For a kilowatt many small cards give as much, but each token takes long."""

    budget = quantity("1 kW")
    parameters = quantity("8B param")
    l4 = hardware.get("l4")
    b200 = hardware.get("b200")

    weights = training.model_memory(parameters, quantity("1 byte/param"))
    l4_cards = math.floor((budget / l4.tdp).m_as(""))
    l4_bandwidth = (l4_cards * l4.memory_bandwidth).to("TB/s")
    l4_peak = (l4_cards * l4.peak("fp8")).to("TFLOP/s")
    h200_bandwidth = hardware.get("h200").memory_bandwidth
    b200_bandwidth = b200.memory_bandwidth
    b200_peak = b200.peak("fp8").to("TFLOP/s")
    l4_token = (weights / l4.memory_bandwidth).to("ms")
    b200_token = (weights / b200.memory_bandwidth).to("ms")
    token_ratio = l4_token / b200_token
    token_ratio_by_hand = 8 / 0.3
