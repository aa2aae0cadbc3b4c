"""Claims of the chapter "Devices"."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from calc import constants, energy, hardware, machines, roofline, training
from calc.catalog import kernel_shares
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, counted, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Cell, Quoted, Row, Rows, approximately, show

# How the key of a device begins tells its table; whatever begins otherwise is a GPU.
CLOUD = ("tpu", "trainium", "inferentia", "gaudi", "cerebras", "groq")
EDGE = ("jetson", "phone", "snapdragon", "apple", "xeon", "epyc", "ryzen")
DESK = ("rtx-4", "rtx-5", "gb10", "arc")
OLD = ("v100", "t4", "tpu-v4")  # which "How it was" has
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
    *("rtx-2080-ti", "p40", "rtx-4060", "rtx-4070", "rtx-5070", "rtx-5070-ti", "rtx-a5000"),
    *("l20", "rtx-pro-4500", "rtx-pro-4500-server", "rx-7900-xtx", "rx-7900-xt", "rx-9070-xt"),
    *("radeon-ai-pro-r9700", "arc-pro-b70", "mi308x", "ascend-910b", "ascend-910c"),
    *("apple-m5-pro",),
)
MEMORY = ("memory_capacity", "memory_bandwidth", "on_chip_memory", "link_bandwidth", "tdp")
PEAKS: dict[str, tuple[str, ...]] = {  # columns; formats that share one have one rate, or the best
    "TF32": ("tf32",),
    "16 bits": ("bf16", "fp16"),
    "FP8": ("fp8",),
    "FP6": ("fp6",),
    "FP4": ("fp4",),
    "INT8": ("int8",),
}
VECTOR = ("fp32", "fp64")  # all that a device without matrix units has


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
    """Return the vector units' FP32 peak, which is the peak of a device that has no others."""
    others = any(dtype not in VECTOR for dtype in device.dtypes)
    record = device.peaks["vector_peak" if others else "peak"].get("fp32")
    rate = None if record is None else record.published
    return None if rate is None else _number(rate, "TFLOP/s", 3, rate)


def _per_watt(device: Accelerator) -> Row:
    """Power, then what a joule does: in FP16, in INT8, and in bytes from memory."""
    power = device.tdp
    estimated = power.provenance is not None and power.provenance.kind == "estimate"
    mark, digits = (approximately, 2) if estimated else (show, 3)
    rates = [device.peak(dtype) if dtype in device.dtypes else None for dtype in ("fp16", "int8")]
    efficiencies = [
        rate and mark(energy.energy_efficiency(rate, power).to(unit), digits=digits)
        for rate, unit in zip(rates, ("TFLOP/J", "TOP/J"), strict=True)
    ]
    moved = mark((device.memory_bandwidth / power).to("GB/J"), digits=digits)
    return (device.name, power, *efficiencies, moved)


def _read_in(device: Accelerator) -> tuple[str, str | None]:
    """The source of most of its fields, and how many of all were read in accounts of theirs."""
    published = [record for record in device.all_records() if record.published is not None]
    sources = Counter(record.provenance.source for record in published)
    second_hand = sum("ccount of it" in record.provenance.note for record in published)
    words = f"{second_hand} of {len(published)}" if second_hand else None
    return f"[@{sources.most_common(1)[0][0]}]", words


def _memory_row(device: Accelerator, fields: Sequence[str] = MEMORY) -> Row:
    name, year, where = short_names([device])[device.key], device.year, _read_in(device)
    values = [getattr(device, field) if device.publishes(field) else None for field in fields]
    return (name, year, *values, *where)


def _peak_row(device: Accelerator) -> Row:
    """Dense peaks, FP32 without matrix units, and the ridge points of 16 bits, FP8 and FP4."""
    best = [
        max((device.peak(dtype) for dtype in dtypes if dtype in device.dtypes), default=None)
        for dtypes in PEAKS.values()
    ]
    peaks = [rate and _number(rate, "TFLOP/s", 3, rate) for rate in best]
    bandwidth = device.memory_bandwidth
    ridges = [
        rate and _number(rate / bandwidth, "FLOP/byte", 2, rate, bandwidth)
        for rate in (best[1], best[2], best[4])
    ]
    return (short_names([device])[device.key], *peaks, _vector_rate(device), *ridges)


def _announced_row(device: Accelerator) -> Row:
    links = device.link_bandwidth if device.publishes("link_bandwidth") else None
    peaks = [device.peak(dtype) for dtype in ("bf16", "fp8", "fp4")]
    where = _read_in(device)
    return (device.name, device.memory_capacity, device.memory_bandwidth, links, *peaks, *where)


@deferred
def _of_registry() -> tuple[Accelerator, ...]:
    devices = [hardware.get(key) for key in hardware.names() if key not in IN_THE_LIBRARY_ALONE]
    return tuple(sorted(devices, key=lambda device: (device.year, device.memory_bandwidth)))


class AcceleratorTables(Claims):
    """Devices that readers meet: of data centres, of desks and the edge, and what is announced."""

    _devices = _of_registry()
    devices = len(hardware.names()) | counted("devices")

    cloud = deferred(tuple)(device for device in _devices if device.key.startswith(CLOUD))
    edge = deferred(tuple)(device for device in _devices if device.key.startswith(EDGE))
    gpus = deferred(tuple)(device for device in _devices if not device.key.startswith(CLOUD + EDGE))
    data_centre = deferred(tuple)(
        device for device in _devices if not device.key.startswith(DESK + EDGE + OLD)
    )
    small = deferred(tuple)(device for device in _devices if device.key.startswith(DESK + EDGE))

    header = (
        *("Device", "Year", "Capacity", "Bandwidth", "On chip", "Links", "Power"),
        *("Read in", "Second-hand"),
    )
    peak_header = ("Device", *PEAKS, "FP32, vector", "Ridge, 16 bits", "Ridge, FP8", "Ridge, FP4")
    small_header = ("Device", "Year", "Capacity", "Bandwidth", "Power", "Read in", "Second-hand")
    announced_header = (
        *("Device", "Capacity", "Bandwidth", "Links", "BF16", "FP8", "FP4"),
        *("Read in", "Second-hand"),
    )
    memory_rows: Rows = deferred(tuple)(map(_memory_row, data_centre)) | row_by_hand(
        "L4 | 2023 | 24 GiB | 300 GB/s | 48 MiB | – | 72 W | … | –"
    )
    peak_rows: Rows = deferred(tuple)(map(_peak_row, data_centre)) | row_by_hand(
        "H200 | 494.5 | 989 | 1979 | – | – | 1979 | 67 | 206 | 412 | –"
    )
    _old = deferred(tuple)(hardware.get(key) for key in (*OLD, "a100"))
    old_rows: Rows = deferred(tuple)(map(_memory_row, _old)) | row_by_hand(
        "T4 | 2018 | 16 GiB | 320 GB/s | 4 MiB | – | 70 W | … | –"
    )
    old_peak_rows: Rows = deferred(tuple)(map(_peak_row, _old)) | row_by_hand(
        "V100 | – | 125 | – | – | – | – | 15.7 | 139 | – | –"
    )
    small_rows: Rows = deferred(tuple)(
        _memory_row(device, ("memory_capacity", "memory_bandwidth", "tdp")) for device in small
    ) | row_by_hand("Xeon 8480+ | 2023 | 4 TiB | 307.2 GB/s | 350 W | … | –")
    small_peak_rows: Rows = deferred(tuple)(
        _peak_row(device) for device in small if device.dtypes
    ) | row_by_hand("AGX Orin | – | 42.5 | – | – | – | 85 | 5.32 | 208 | – | –")
    announced: Rows = deferred(tuple)(
        map(_announced_row, map(hardware.get, hardware.announced()))
    ) | row_by_hand(
        "AMD Instinct MI455X | 432 GB | 23.3 TB/s | 1800 GB/s | 5 PFLOP/s | 10 "
        "PFLOP/s | 20 PFLOP/s | … | 12 of 12"
    )


def _generation_row(device: Accelerator) -> Row:
    name = short_names([device])[device.key]
    two = dtype_of_two_bytes(device) or ""
    narrow = next(dtype for dtype in ("fp4", "fp8", two) if dtype in device.dtypes)
    peaks = [device.peak(dtype).to("TFLOP/s") for dtype in (two, narrow)]
    ridges = [show(device.ridge_point(dtype), digits=2) for dtype in (two, narrow)]
    memory = (device.memory_bandwidth.to("TB/s"), device.memory_capacity.to("GiB"))
    return (name, device.year, *peaks, narrow.upper(), *memory, device.link_bandwidth, *ridges)


class Generations(Claims):
    """The largest modules of one vendor grew in some numbers and hardly moved in others."""

    _devices = tuple(
        hardware.get(key) for key in ("v100", "a100", "h100", "h200", "b200", "b300", "gb300")
    )
    _first, _last = _devices[0], _devices[-1]

    header = (
        *("Device", "Year", "Two bytes", "Narrowest", "which is", "Bandwidth", "Capacity"),
        *("Links", "Ridge, two bytes", "Ridge, narrowest"),
    )
    rows: Rows = tuple(map(_generation_row, _devices)) | row_by_hand(
        "H200 | 2024 | 989 TFLOP/s | 1979 TFLOP/s | FP8 | 4.8 TB/s | 141 GiB | "
        "450 GB/s | 210 FLOP/byte | 410 FLOP/byte"
    )
    peak = _last.peak("fp16") / _first.peak("fp16") | by_hand("2500 / 125")
    bandwidth = (_last.memory_bandwidth / _first.memory_bandwidth).to("") | by_hand("8 / 0.9")
    capacity = (_last.memory_capacity / _first.memory_capacity).to("") | by_hand("279 / 32")
    links = (_last.link_bandwidth / _first.link_bandwidth).to("") | by_hand("900 / 150")
    _ridges = tuple(device.ridge_point("fp16") for device in _devices)
    least_ridge = min(_ridges) | by_hand("(125 / 0.9) FLOP/byte")
    most_ridge = max(_ridges) | by_hand("(2500 / 8) FLOP/byte")
    ridge_span = most_ridge / least_ridge | by_hand("312.5 / 138.8889")


def own(machine: Machine, kind: str, name: str) -> Quantity | None:
    """A rate that was measured on a machine's device, and not on one that is like it."""
    record = machine.rates.get(kind, {}).get(name)
    if record is None or "easured on a" in record.provenance.note:
        return None
    measured = machines.get(record.provenance.key.partition(".")[0])
    return record.quantity if measured.device == machine.device else None


def surfaces_of_products(device: Accelerator, form: str) -> list[kernel_shares.Surface]:
    """Return the rates that engines reach whose products were measured on a device in a format."""
    surfaces = (
        kernel_shares.surface_of("product", device.key, program, form)
        for program in kernel_shares.programs()
    )
    return [surface for surface in surfaces if surface]


def largest_error(surfaces: Iterable[kernel_shares.Surface]) -> Quantity:
    """Return what half of the rows behind a surface are off it at most, of the worst of several."""
    return quantity(max(surface.own.median for surface in surfaces), "").to("%")


def _in_engines(device: Accelerator, form: str, size: int) -> Quantity | None:
    """The rate of a square product by the fastest kernel of the engines."""
    rate = kernel_shares.RATES.get(form, "bf16")
    if rate not in device.dtypes:
        return None
    peak = device.peak(rate)
    roof = (quantity(2 * size**3, "FLOP") / peak).m_as("s")
    shares = [surface.share(size, roof) for surface in surfaces_of_products(device, form)]
    return max(shares) * peak if shares else None


def _share(rate: Quantity | None, peak: Quantity | None) -> Quoted | None:
    return None if rate is None or peak is None else show((rate / peak).to("%"), digits=2)


def _reached_row(key: str) -> Row:
    """Rates that were measured, each with its share of the published peak."""
    machine = machines.get(key)
    device = machine.device
    bf16, fp8 = (own(machine, "gemm", dtype) for dtype in ("bf16", "fp8"))
    fp4 = _in_engines(device, "nvfp4", ReachedRates.size)
    memory = [own(machine, "memory", name) for name in ("read", "copy", "add", "triad")]
    fastest = max((rate for rate in memory if rate is not None), default=None)
    measured = {"BF16": bf16, "FP8": fp8, "FP4": fp4}
    cells: list[Cell] = []
    for form, rate in measured.items():
        peak = device.peak(form) if form.lower() in device.dtypes else None
        if rate is not None and form == "FP4":  # read off a surface
            cells += [approximately(rate.to("TFLOP/s"), 2), _share(rate, peak)]
        else:
            cells += [rate and rate.to("TFLOP/s"), _share(rate, peak)]
    cells += [fastest and fastest.to("TB/s"), _share(fastest, device.memory_bandwidth)]
    sources = dict.fromkeys(
        record.provenance.source
        for kind in ("gemm", "memory")
        for name, record in machine.rates.get(kind, {}).items()
        if own(machine, kind, name) is not None
    )
    if fp4 is not None:
        sources[kernel_shares.SOURCE] = None
    name = short_names([device])[device.key]
    return (name, *cells, " ".join(f"[@{source}]" for source in sources))


class ReachedRates(Claims):
    """Programs were measured to reach these rates: products by format, and memory."""

    size = 8192
    """Side of the square product at which engines' kernels are read."""
    header = (
        *("Device", "BF16", "of peak", "FP8", "of peak", "NVFP4", "of peak"),
        *("Memory", "of peak", "Read in"),
    )
    keys = (
        *("dgx-a100", "dgx-h100", "gh200-1", "dgx-h200", "dgx-b200", "gb200-nvl72", "hgx-b300"),
        *("gb300-nvl72", "rtx-pro-6000-8", "mi300x-8", "mi325x-8", "mi355x-8"),
        *("gaudi3-8", "tpu-v6e-pod", "tpu-v7-pod"),
    )


class ReachedTable(Claims):
    """The rows of what is reached, and their ends."""

    rows: Rows = deferred(tuple)(map(_reached_row, ReachedRates.keys)) | row_by_hand(
        "H100 | 794.5 TFLOP/s | 80% | 1403 TFLOP/s | 71% | – | – | 3.18 TB/s | 95% | …"
    )
    _products = deferred(tuple)(
        (own(machine, "gemm", "bf16"), machine.device.peak("bf16"))
        for machine in map(machines.get, ReachedRates.keys)
    )
    _shares = deferred(tuple)((rate / peak).to("%") for rate, peak in _products if rate is not None)

    devices = deferred(len)(_shares) | by_hand("6 + 3 + 1 + 2")
    least = deferred(min)(_shares) | by_hand("668.4 / 1307.4")
    most = deferred(max)(_shares) | by_hand("827.5 / 918")
    _b200 = machines.get("dgx-b200")
    b200_add = _b200.reached("memory", "add").to("TB/s") | by_hand("7245 GB/s")
    b200_copy = _b200.reached("memory", "copy").to("TB/s") | by_hand("6 TB/s")


def _inside_row(device: Accelerator) -> Row:
    name = short_names([device])[device.key]
    fields = [
        getattr(device, field) if device.publishes(field) else None
        for field in (*hardware.INSIDE, "on_chip_memory")
    ]
    units, clock = fields[:2]
    per_clock = None
    if units and clock:
        per_clock = (device.peak("bf16") / quantity(1, "FLOP") / clock / units).m_as("")
    return (name, *fields[:5], per_clock and float(f"{per_clock:.3g}"), *fields[5:])


class InsideDevices(Claims):
    """A device is made of units, and each of them holds and does so much."""

    header = (
        *("Device", "Units", "Clock", "Registers", "Shared memory", "Tensor memory"),
        *("BF16 FLOP a clock", "Exponentials", "Last level"),
    )
    rows: Rows = tuple(
        _inside_row(hardware.get(key))
        for key in (
            *("a100", "h100", "h200", "b200", "gb200", "b300", "gb300"),
            *("mi300x", "mi325x", "mi355x"),
        )
    ) | row_by_hand("MI355X | 256 | 2.4 GHz | 512 KiB | 160 KiB | – | 4100 | – | 256 MiB")


JOINED_BY = ("bandwidth", "ports", "host_link")


def joined_by(machine: Machine) -> tuple[list[Quantity | None], str]:
    """Return what joins one device to others, to the network and to its host, with sources."""
    values = [
        getattr(machine, field).to("GB/s") if machine.publishes(field) else None
        for field in JOINED_BY
    ]
    records = [machine.records[field] for field in JOINED_BY if machine.publishes(field)]
    sources = dict.fromkeys(record.provenance.source for record in records)
    return values, " ".join(f"[@{source}]" for source in sources)


def _joined_row(key: str) -> Row:
    machine = machines.get(key)
    values, read_in = joined_by(machine)
    sums = "yes" if machine.sums_in_switch else "no"
    return (machine.name, machine.domain, machine.fabric, *values, sums, read_in)


class JoinedDevices(Claims):
    """Devices are joined to each other, to the network and to their host at these rates."""

    header = (
        *("Machine", "Devices", "Fabric", "To others", "Port", "Host link", "Sums in switch"),
        "Read in",
    )
    rows: Rows = tuple(
        _joined_row(key)
        for key in (
            *("dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "hgx-b300", "gb200-nvl72"),
            *("gb300-nvl72", "mi300x-8", "mi325x-8", "mi355x-8", "gaudi3-8", "trn2", "trn3"),
            *("tpu-v5p-pod", "tpu-v6e-pod", "tpu-v7-pod"),
        )
    ) | row_by_hand("NVIDIA HGX B300 | 8 | switch | 900 GB/s | 100 GB/s | 121 GB/s | yes | …")


class AdvertisedAgainstServed(Claims):
    """A sparse FP8 rate beside a dense FP16 rate promises a factor that no program sees."""

    a100 = hardware.get("a100")
    h100 = hardware.get("h100")

    advertised = h100.sparse_peak("fp8") | by_hand(
        "3958 TFLOP/s", "printed in the datasheet of the H100, with sparsity"
    )
    before = a100.peak("fp16")
    promised = advertised / before | by_hand("3958 / 312")
    like_with_like = h100.peak("fp16") / before | by_hand("989 / 312")
    memory_bound = h100.memory_bandwidth / a100.memory_bandwidth | by_hand("3.35 / 2.039")


class CheatSheet(Claims):
    """The TPU v5p against the H100: less than half the arithmetic, most of the bandwidth."""

    h100 = hardware.get("h100")
    tpu = hardware.get("tpu-v5p")
    tpu_links = constants.count_links_tpu_v5p

    h100_link = h100.link_bandwidth
    tpu_link = tpu.link_bandwidth
    bandwidth_ratio = tpu.memory_bandwidth / h100.memory_bandwidth | by_hand("2.765 / 3.35")
    h100_ridge = h100.ridge_point("bf16")
    tpu_ridge = tpu.ridge_point("bf16")
    h100_both_ways = 2 * h100_link
    tpu_link_in_bits = tpu_link.to("Gbit/s")
    link_ratio = tpu_link / h100_link | by_hand("600 / 450")
    link_ratio_mixed = tpu_link / h100_both_ways | by_hand("600 / 900")
    link_ratio_bits_as_bytes = quantity(
        tpu_link_in_bits.magnitude, "GB/s"
    ) / h100_both_ways | by_hand("4800 / 900")
    tpu_one_link = tpu_link / tpu_links | by_hand("600 GB/s / 6")

    rows = tuple(
        (title, first, second, show((second / first).m_as(""), digits=3))
        for title, first, second in (
            ("Peak, BF16, dense", h100.peak("bf16"), tpu.peak("bf16")),
            ("Memory bandwidth", h100.memory_bandwidth, tpu.memory_bandwidth),
            ("Memory capacity", h100.memory_capacity, tpu.memory_capacity),
            ("On chip: L2 or vector memory", h100.on_chip_memory, tpu.on_chip_memory),
            ("All links, each way", h100_link, tpu_link),
            ("All links, both ways summed", h100_both_ways, 2 * tpu_link),
            ("To one neighbour, each way", h100_link, tpu_one_link),
            ("Ridge point, BF16", h100_ridge, tpu_ridge),
        )
    ) | row_by_hand("To one neighbour, each way | 450 GB/s | 100 GB/s | 0.222")


class OddCells(Claims):
    """Published rates on which pages differ, or that look like slips."""

    _b300 = hardware.get("b300")
    _gaudi = hardware.get("gaudi3")
    _tpu_train = hardware.get("tpu-8t")
    _tpu_serve = hardware.get("tpu-8i")

    b300_fp4 = _b300.peak("fp4").to("PFLOP/s") | by_hand(
        "14 PFLOP/s", "the system file of AIConfigurator, from the datasheet"
    )
    board_fp4 = quantity("105 PFLOP/s")
    gaudi_clock = quantity("1.75 GHz")

    board_each = board_fp4 / 8 | by_hand("105 PFLOP/s / 8")
    gaudi_bf16 = _gaudi.peak("bf16")
    gaudi_reported = _gaudi.clock
    gaudi_fp16 = (_gaudi.peak("fp16") / gaudi_bf16).to("%") | by_hand("459 / 1835")
    tpu_train = round((_tpu_train.peak("fp8") / _tpu_train.peak("bf16")).m_as("")) | by_hand(
        "5976.9 / 996.1"
    )
    tpu_serve = round((_tpu_serve.peak("fp8") / _tpu_serve.peak("bf16")).m_as("")) | by_hand(
        "8808 / 1101"
    )


class OnePeer(Claims):
    """A GPU without a switch gives each of the others its share of the links and no more."""

    links = hardware.get("mi300x").link_bandwidth

    to_one_peer = links / constants.count_peers_mi300x | by_hand("16 * 32 Gbit/s")


class SoldCapacity(Claims):
    """An "80 GB" H100 holds 80 GiB, of which a program can have nearly all."""

    capacity = hardware.get("h100").memory_capacity
    reported = constants.size_memory_h100_driver

    decimal = capacity.to("GB") | by_hand("80 * 2**30 bytes")
    kept_back = (capacity - reported).to("MiB") | by_hand("(81920 - 81559) MiB")


class Spread(Claims):
    """Bandwidth and peak grow together: ridge points in two bytes stay within one decade."""

    slow = hardware.get("jetson-orin-nano")
    fast = hardware.get("gb200")

    bandwidth_span = fast.memory_bandwidth / slow.memory_bandwidth | by_hand("8000 / 102")
    peak_span = fast.peak("fp16") / slow.peak("fp16") | by_hand("2500 / 17")
    slow_ridge = slow.ridge_point("fp16") | by_hand("(17000 / 102) FLOP/byte")
    fast_ridge = fast.ridge_point("fp16") | by_hand("(2500 / 8) FLOP/byte")
    old_ridge = hardware.get("v100").ridge_point("fp16") | by_hand("(125 / 0.9) FLOP/byte")
    fast_ridge_fp4 = fast.ridge_point("fp4") | by_hand("(10000 / 8) FLOP/byte")
    ridge_growth = fast_ridge / old_ridge | by_hand("312.5 / 138.9")


class WholeRack(Claims):
    """A rack is its GPUs, summed: all totals grow, the ridge point does not."""

    gpu = hardware.get("gb200")
    gpus = constants.count_gpu_nvl72
    gpu_bandwidth = gpu.memory_bandwidth
    link = gpu.link_bandwidth

    peak = (gpus * gpu.peak("fp4")).to("PFLOP/s") | by_hand(
        "0.5 * 1440 PFLOP/s", "half of the sparse 1 440 PFLOP/s that NVIDIA prints for the rack"
    )
    bandwidth = (gpus * gpu.memory_bandwidth).to("TB/s") | by_hand("72 * 8 TB/s")


class AdvertisedL4(Claims):
    """A sparse peak doubles the ridge point of an L4 on paper."""

    l4 = hardware.get("l4")
    bandwidth = l4.memory_bandwidth

    advertised = l4.sparse_peak("fp16") | by_hand(
        "242 TFLOP/s", "printed in the datasheet of the L4, with sparsity"
    )
    ridge_advertised = roofline.ridge_point(advertised, bandwidth) | by_hand(
        "(242 / 0.3) FLOP/byte"
    )
    ridge = l4.ridge_point("fp16") | by_hand("(121 / 0.3) FLOP/byte")
    by_hand = quantity(240 / 2 / 0.3, "FLOP/byte") | by_hand("(120 / 0.3) FLOP/byte")


class SparseUnlike(Claims):
    """A sparse rate need not be twice the dense one, nor what stands beside it dense."""

    l40s = hardware.get("l40s")
    trainium2_sparse = quantity("2563 TFLOP/s")
    l40s_printed = quantity("362.05 TFLOP/s") | by_hand(
        "362.05 TFLOP/s", "the datasheet of the L40S"
    )
    trainium2_dense = hardware.get("trainium2").peak("bf16")
    l40s_sparse = l40s.sparse_peak("fp16")
    l40s_dense = l40s.peak("fp16")

    trainium2_ratio = trainium2_sparse / trainium2_dense | by_hand("2563 / 667")


class AdvertisedOrin(Claims):
    """A Jetson AGX Orin's GPU does 85 of its 275 TOPS on dense matrices."""

    orin = hardware.get("jetson-agx-orin")
    advertised = quantity("275 TOP/s")
    dense = orin.peak("int8")

    sparse = orin.sparse_peak("int8")
    of_other_units = advertised - sparse | by_hand(
        "105 TOP/s", "printed in the data sheet for the two DLAs"
    )


class MoreMemory(Claims):
    """The H200 adds memory and no arithmetic: it speeds up decoding and not prefill."""

    h100 = hardware.get("h100")
    h200 = hardware.get("h200")
    parameters = quantity("70B param")

    weights = training.model_memory(parameters, quantity("2 byte/param"))
    h200_capacity = h200.memory_capacity.to("GB") | by_hand("141 * 2**30 bytes")
    left = (h200_capacity - weights).to("GB") | by_hand("141 * 2**30 byte - 140 GB")
    decode_gain = h200.memory_bandwidth / h100.memory_bandwidth | by_hand("4.8 / 3.35")
    decode_gain_by_hand = 4.8 / 3.4 | by_hand("4.8 / 3.4")
    one_for_two = (h200.memory_bandwidth / (2 * h100.memory_bandwidth)).to("%") | by_hand(
        "4.8 / 6.7"
    )
    h200_ridge = h200.ridge_point("fp16") | by_hand("(989 / 4.8) FLOP/byte")
    a100_ridge = hardware.get("a100").ridge_point("fp16") | by_hand("(312 / 2.039) FLOP/byte")


class OneKilowatt(Claims):
    """For a kilowatt many small cards give less than a large one, and each token takes long."""

    budget = quantity("1 kW")
    parameters = quantity("8B param")
    l4 = hardware.get("l4")
    b200 = hardware.get("b200")

    weights = training.model_memory(parameters, quantity("1 byte/param")) | by_hand("8e9 * 1 byte")
    l4_cards = math.floor((budget / l4.tdp).m_as("")) | by_hand("floor(1000 / 72)")
    l4_peak = (l4_cards * l4.peak("fp8")).to("TFLOP/s") | by_hand("13 * 242.5 TFLOP/s")
    b200_peak = b200.peak("fp8").to("TFLOP/s") | by_hand(
        "9 PFLOP/s / 2", "half of the sparse 9 PFLOP/s that NVIDIA prints"
    )
    l4_token = (weights / l4.memory_bandwidth).to("ms") | by_hand("8 GB / 300 GB/s")
    b200_token = (weights / b200.memory_bandwidth).to("ms") | by_hand("8 GB / 7700 GB/s")
    h200_peak = hardware.get("h200").peak("fp8").to("TFLOP/s")
    more_arithmetic = (b200_peak / l4_peak).to("") | by_hand("{b200_peak} / {l4_peak}")
    more_bandwidth = (b200.memory_bandwidth / (l4_cards * l4.memory_bandwidth)).to("") | by_hand(
        "7700 / (13 * 300)"
    )
    worth = (l4_peak / b200_peak).to("%") | by_hand("{l4_peak} / {b200_peak}")


class PeakPerWatt(Claims):
    """A peak over a power says what a joule of arithmetic costs at best, and nothing of memory."""

    rows = tuple(
        _per_watt(hardware.get(key))
        for key in ("a100", "h100", "l4", "h200", "b200", "mi355x", "phone-npu")
    ) | row_by_hand("NVIDIA L4 | 72 W | 1.68 TFLOP/J | 3.37 TOP/J | 4.17 GB/J")
