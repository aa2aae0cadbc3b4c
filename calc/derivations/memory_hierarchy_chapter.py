"""Claims of the chapter "Latency and the memory hierarchy"."""

from __future__ import annotations

from math import log10
from typing import NamedTuple

from calc import constants, energy, hardware, machines, memory, roofline, training
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.numbers_to_know import AnchorBandwidths, AnchorLatencies, EnergyOfMovement
from calc.derivations.quoting import Quoted, Row, Rows, approximately, between, show


class Level(NamedTuple):
    """One level of a memory hierarchy; None where nobody has published or measured a value."""

    name: str
    capacity: Quantity
    latency: Quantity | None
    bandwidth: Quantity | None
    energy_per_word: Quantity | None


class MemoryHierarchy(Claims):
    """Away from the arithmetic, memory gets larger, and everything else about it gets worse."""

    sms = constants.count_sm_h100
    registers_of_sm = constants.size_register_file_sm_h100
    l1_of_sm = constants.size_l1_sm_h100
    l1_bytes_per_clock = constants.bytes_per_clock_shared_memory_sm
    clock = constants.frequency_h100_boost
    l2_bandwidth = constants.bandwidth_l2_h100
    h100 = hardware.get("h100")
    host_memory = constants.size_host_memory_dgx_h100
    drives = constants.size_nvme_dgx_h100

    registers = (sms * registers_of_sm).to("MiB") | by_hand("132 * 256 KiB")
    l1 = (sms * l1_of_sm).to("MiB")
    l1_bandwidth = (l1_bytes_per_clock * sms * clock).to("TB/s")
    _wait, _word = AnchorLatencies, EnergyOfMovement
    levels = (
        Level("Registers", registers, None, None, None),
        Level("L1 and shared memory", l1, _wait.hopper_l1, l1_bandwidth, _word.a100_l1_word),
        Level("L2 cache", h100.on_chip_memory, _wait.hopper_l2, l2_bandwidth, _word.a100_l2_word),
        Level(
            *("HBM", h100.memory_capacity, _wait.hopper_global_revised),
            *(h100.memory_bandwidth, _word.a100_hbm_word),
        ),
        Level("Host DRAM", host_memory, None, AnchorBandwidths.pcie_raw, None),
        Level("NVMe SSD", drives, _wait.ssd, AnchorBandwidths.nvme_gen4, _word.ssd_estimate),
    )
    latency_span = (AnchorLatencies.ssd / AnchorLatencies.hopper_l1).to("")
    bandwidth_span = (l1_bandwidth / AnchorBandwidths.nvme_gen4).to("")
    energy_span = (constants.energy_ssd_word_estimate / EnergyOfMovement.a100_l1_word).to("")


class HumanScale(Claims):
    """If a register took a second, memory would take twenty minutes and a disk nearly two days."""

    clock = constants.frequency_reference_core
    yardstick = constants.latency_register
    one_step = quantity("1 s")

    round_trip = (2 * constants.length_pacific / constants.speed_light_fiber).to("ms")
    scale = one_step / yardstick | by_hand("1 s / 0.3 ns")
    levels = (
        ("Register", yardstick),
        ("L1 of a CPU core", AnchorLatencies.l1_cpu),
        ("L2 of a CPU core", AnchorLatencies.l2_cpu),
        ("DRAM of a CPU", AnchorLatencies.dram),
        ("HBM of a GPU", AnchorLatencies.hbm3),
        ("A step by NVLink, as NCCL counts it", AnchorLatencies.nvlink),
        ("A step by PCIe Gen5, as NCCL counts it", AnchorLatencies.pcie),
        ("A step by InfiniBand, as NCCL counts it", AnchorLatencies.infiniband),
        ("NVMe SSD", AnchorLatencies.ssd),
        ("Pacific and back", round_trip),
    )

    @classmethod
    @row_by_hand("NVMe SSD | 45 µs | 135 000 | 42 h")
    def row(cls, name: str, latency: Quantity) -> tuple[str, Quoted, Quantity, Quoted]:
        """A latency, in cycles of the stated clock, and as people feel it, to two digits."""
        unit = next((unit for unit in ("ms", "us") if latency >= quantity(f"1 {unit}")), "ns")
        readable = latency.to(unit)
        estimate = latency.provenance is not None and latency.provenance.kind == "estimate"
        return (
            name,
            approximately(readable, 3) if estimate else show(readable, digits=3),
            memory.clock_cycles(latency, cls.clock),
            show(memory.human_time(latency, cls.yardstick, cls.one_step), digits=2),
        )


class PhysicalProperties(Claims):
    """From a register to another host, latency grows by five orders of magnitude."""

    register_latency = AnchorLatencies.register
    ssd_latency = AnchorLatencies.ssd

    latency_orders = log10(ssd_latency / register_latency) | by_hand("log10(45000 / 0.3)")
    bandwidth_orders = log10(MemoryHierarchy.bandwidth_span) | by_hand(
        "log10(128 * 132 * 1.83e9 / 7e9)"
    )


class TwoGenerations(Claims):
    """From Hopper to Blackwell the levels grew; what is nearest to the arithmetic did not."""

    b200 = hardware.get("b200")
    tensor_memory = (128 * 512 * quantity("4 byte")).to("KiB") | by_hand("128 * 512 * 4 byte")
    header = ("Level", "H100", "Latency", "Bandwidth", "B200", "Latency", "Bandwidth")

    per_sm_h100 = (MemoryHierarchy.h100.on_chip_memory / MemoryHierarchy.sms).to("KiB") | by_hand(
        "50 MiB / 132"
    )
    per_sm_b200 = (b200.on_chip_memory / b200.units).to("KiB") | by_hand("126.5 MiB / 148")
    _registers, _l1, _l2, _hbm = (level[:4] for level in MemoryHierarchy.levels[:4])
    _nvlink, _pcie = MemoryHierarchy.h100.link_bandwidth, AnchorBandwidths.pcie_raw
    rows = (
        (*_registers, (b200.units * MemoryHierarchy.registers_of_sm).to("MiB"), None, None),
        ("Tensor memory", None, None, None, (b200.units * tensor_memory).to("MiB"), None, None),
        (
            *_l1,
            (b200.units * MemoryHierarchy.l1_of_sm).to("MiB"),
            approximately(constants.latency_l1_b200, 3),
            (b200.units * MemoryHierarchy.l1_bytes_per_clock * b200.clock).to("TB/s"),
        ),
        (
            *_l2,
            show(b200.on_chip_memory, digits=4),
            approximately(constants.latency_l2_b200, 3),
            None,
        ),
        (*_hbm, b200.memory_capacity, None, b200.memory_bandwidth),
        ("Another GPU, NVLink", None, None, _nvlink, None, None, b200.link_bandwidth),
        ("The host, PCIe Gen5", None, None, _pcie, None, None, _pcie),
    ) | row_by_hand("L2 cache | 50 MiB | 147 ns | 6.65 TB/s | 126.5 MiB | ≈ 150 ns | –")


class AverageAccess(Claims):
    """One miss in a hundred doubles the time of an access to a CPU's first cache."""

    l1 = constants.latency_l1_cpu
    dram = constants.latency_dram
    gpu_l1 = AnchorLatencies.hopper_l1
    gpu_l2 = AnchorLatencies.hopper_l2
    gpu_memory = AnchorLatencies.hopper_global_revised
    hit_rate = quantity("99%")
    low_hit_rate = quantity("95%")
    l2_hit_rate = quantity("80%")

    one_in = (1 / (1 - hit_rate)).to("") | by_hand("1 / 1 %")
    gpu_penalty = gpu_memory - gpu_l1
    average = memory.average_access_time(l1, 1 - hit_rate, dram) | by_hand("1 ns + 100 ns / 100")
    low_average = memory.average_access_time(l1, 1 - low_hit_rate, dram) | by_hand(
        "1 ns + 5 / 100 * 100 ns"
    )
    behind_l1 = memory.average_access_time(
        constants.latency_l2_cpu, 1 - l2_hit_rate, dram
    ) | by_hand("4 ns + 100 ns / 5")
    low_average_with_l2 = memory.average_access_time(l1, 1 - low_hit_rate, behind_l1) | by_hand(
        "1 ns + 5 / 100 * 24 ns"
    )
    gpu_l2_per_l1 = gpu_l2 / gpu_l1 | by_hand("258.0 cycles / 34.2 cycles")
    gpu_l2_per_memory = (gpu_l2 / gpu_memory).to("%") | by_hand("258.0 cycles / 656 cycles")

    @classmethod
    @row_by_hand("95% | 6 ns | 6 | 37.2 ns | 1.91")
    def row(cls, hit_rate: Quantity) -> tuple[Quantity, Quantity, Quantity, Quantity, Quantity]:
        """Average access at that hit rate and how many hits it is worth: of a CPU, of a GPU."""
        cpu = memory.average_access_time(cls.l1, 1 - hit_rate, cls.dram)
        gpu = memory.average_access_time(cls.gpu_l1, 1 - hit_rate, cls.gpu_penalty)
        return hit_rate.to("%"), cpu, cpu / cls.l1, gpu, gpu / cls.gpu_l1


class Tiles(Claims):
    """A tile that is b elements wide uses each loaded element b times."""

    h100 = hardware.get("h100")
    peak = h100.peak("fp16")
    bandwidth = h100.memory_bandwidth
    l2_bandwidth = constants.bandwidth_l2_h100
    registers = constants.size_register_file_sm_h100
    sms = constants.count_sm_h100
    element_size = quantity("2 byte")
    accumulator_size = quantity("4 byte")
    rows_of_sm = 128
    columns_of_sm = 256
    neighbours = 2

    ridge_point = h100.ridge_point("fp16")
    ridge_side = memory.tile_for_intensity(ridge_point, element_size) | by_hand("295.22 * 2")
    accumulators = (rows_of_sm * columns_of_sm * accumulator_size).to("KiB") | by_hand(
        "128 * 256 * 4 byte"
    )
    intensity = memory.result_tile_intensity(rows_of_sm, columns_of_sm, element_size)
    from_l2 = roofline.attainable(peak, l2_bandwidth, intensity) | by_hand("6.65 * 85.333 TFLOP/s")
    fastest_l2 = quantity("9.7 TB/s")  # read on another Hopper card, by the note of the constant
    from_fastest_l2 = roofline.attainable(peak, fastest_l2, intensity) | by_hand(
        "9.7 * 85.333 TFLOP/s"
    )
    best_product = machines.get("dgx-h100").reached("gemm", "bf16") | by_hand("794.5 TFLOP/s")
    # What all SMs work on at a time is a tile of the result, too: the square of the same area.
    device_side = (sms * rows_of_sm * columns_of_sm) ** 0.5
    single_intensity = memory.tile_intensity(1, element_size) | by_hand("(2 / (2 * 2)) FLOP/byte")
    single_attainable = roofline.attainable(peak, bandwidth, single_intensity) | by_hand(
        "3.35 TFLOP/s * 0.5"
    )

    @classmethod
    def row(cls, level: str, rows: Quantity | int, columns: Quantity | int) -> Row:
        """A tile of the result, its sums, its intensity, and what L2 and HBM allow with it."""
        intensity = memory.result_tile_intensity(rows, columns, cls.element_size)
        size = rows * columns * cls.accumulator_size
        unit = next(unit for unit in ("MiB", "KiB", "byte") if size >= quantity(1, unit))
        return (
            level,
            f"{show(rows, digits=4)} × {show(columns, digits=4)}",
            size.to(unit),
            intensity,
            roofline.attainable(cls.peak, cls.l2_bandwidth, intensity),
            roofline.attainable(cls.peak, cls.bandwidth, intensity),
        )

    @classmethod
    @row_by_hand("one SM | 128 × 256 | 128 KiB | 85.3 FLOP/byte | 567 TFLOP/s | 286 TFLOP/s")
    def rows(cls) -> Rows:
        """From no reuse to the tile of the whole device."""
        wide = cls.neighbours * cls.rows_of_sm
        return [
            cls.row("no reuse", 1, 1),
            cls.row("one SM", cls.rows_of_sm, cls.columns_of_sm),
            cls.row("two SMs that share loads", wide, cls.columns_of_sm),
            cls.row("what the ridge asks for", cls.ridge_side, cls.ridge_side),
            cls.row("all SMs", cls.device_side, cls.device_side),
        ]


class MemoriesOfToday(Claims):
    """A bit is cheap where the wires are short, and no memory answers in less than 100 ns."""

    lpddr5x_idle = constants.latency_dram_gb10_idle
    lpddr5x_loaded = constants.latency_dram_gb10_loaded
    gddr7_pins = 512  # of an RTX 5090
    hbm3e_bit = constants.energy_hbm3e_bit
    hbm3e_stack = constants.bandwidth_hbm3e_stack

    gddr7 = (gddr7_pins * constants.bandwidth_gddr7_pin).to("GB/s")
    hbm3e_power = (hbm3e_stack * hbm3e_bit).to("W") | by_hand("1.2e12 * 8 * 3.44 pJ / 1 s")
    rows = (
        (
            "DDR5-6400, a channel",
            constants.bandwidth_ddr5_6400_channel,
            between(constants.latency_dram_epyc_nps1, constants.latency_dram_epyc_nps0),
            None,
        ),
        ("MRDIMM-8800, a channel", constants.bandwidth_mrdimm_8800_channel, None, None),
        (
            "LPDDR5X, of a GB10",
            constants.bandwidth_lpddr5x_gb10,
            between(lpddr5x_idle, lpddr5x_loaded),
            None,
        ),
        (
            "GDDR6, of an L40 or L40S",
            hardware.get("l40s").memory_bandwidth,
            constants.latency_memory_l40,
            constants.energy_gddr6_bit,
        ),
        ("GDDR7, of an RTX 5090", gddr7, None, constants.energy_gddr7_bit),
        (
            "HBM2e, a stack",
            constants.bandwidth_hbm2e_stack,
            between(constants.latency_memory_h100_pcie, constants.latency_memory_a100),
            constants.energy_hbm2e_bit,
        ),
        ("HBM3, a stack", constants.bandwidth_hbm3_stack, None, None),
        ("HBM3e, a stack", hbm3e_stack, None, hbm3e_bit),
        ("HBM4, a stack", constants.bandwidth_hbm4_stack, None, None),
        (
            "Memory behind CXL, sixteen lanes",
            constants.bandwidth_cxl_x16,
            constants.latency_cxl_memory,
            None,
        ),
        ("SSD on PCIe Gen4", AnchorBandwidths.nvme_gen4, AnchorLatencies.ssd, None),
        ("SSD on PCIe Gen5", constants.bandwidth_nvme_gen5, None, None),
    ) | row_by_hand("HBM2e, a stack | 410 GB/s | 373–405 ns | 4.3 pJ/bit")


class EnergyBudget(Claims):
    """A matrix product's parts take power, at the rate that an A100 reached."""

    rate = machines.get("dgx-a100").reached("gemm", "bf16") | by_hand("271.2 TFLOP/s")
    rows_of_product = 1024  # Bekman's best shape
    columns_of_product = 10240
    depth = 5120
    warp_side = 64  # of CUTLASS, for a tile of 128 by 256
    element_size = quantity("2 byte")
    pair = quantity("2 FLOP")  # a multiplication and an addition
    add = constants.energy_7nm_fp32_add
    l1_bit = constants.energy_a100_l1_bit
    l2_bit = constants.energy_a100_l2_bit
    hbm_bit = constants.energy_a100_hbm_bit
    tdp = hardware.get("a100").tdp

    operation = ((constants.energy_7nm_bf16_multiply + add) / pair).to("pJ/FLOP")
    operations = (pair * rows_of_product * columns_of_product * depth).to("GFLOP")
    time = (operations / rate).to("µs")
    warp_intensity = memory.result_tile_intensity(warp_side, warp_side, element_size)
    sm_intensity = memory.result_tile_intensity(Tiles.rows_of_sm, Tiles.columns_of_sm, element_size)
    l1_traffic = (operations / warp_intensity).to("GB")
    l2_traffic = (operations / sm_intensity).to("GB")
    hbm_traffic = (
        (
            rows_of_product * depth
            + depth * columns_of_product
            + rows_of_product * columns_of_product
        )
        * element_size
    ).to("MB")
    arithmetic = (energy.arithmetic_energy(operations, operation) / time).to("W") | by_hand(
        "271.2e12 * 0.295 pJ / 1 s"
    )
    near = (energy.movement_energy(l1_traffic, l1_bit) / time).to("W") | by_hand(
        "271.2e12 / 32 * 8 * 1.59 pJ / 1 s"
    )
    across = (energy.movement_energy(l2_traffic, l2_bit) / time).to("W") | by_hand(
        "271.2e12 / (256/3) * 8 * 4.71 pJ / 1 s"
    )
    far = (energy.movement_energy(hbm_traffic, hbm_bit) / time).to("W") | by_hand(
        "(1024 * 5120 + 5120 * 10240 + 1024 * 10240) * 2 * 8 * 13.11 pJ / (2 * "
        "1024 * 10240 * 5120 / 271.2e12) / 1 s"
    )
    counted = arithmetic + near + across + far | by_hand("{arithmetic} + {near} + {across} + {far}")


class StalledWarp(Claims):
    """A measured wait in cycles is a time only at the clock of the card that was measured."""

    cycles = constants.cycles_global_memory_hopper_revised
    clock = constants.frequency_h800_pcie
    yardstick = HumanScale.yardstick

    time = (cycles / clock).to("ns") | by_hand("656 / 1.755 GHz")
    felt = memory.human_time(time, yardstick) | by_hand("656 / 1.755 / 0.3 * 1 s")
    cycles_at_reference = memory.clock_cycles(time, HumanScale.clock) | by_hand("373.79 * 3")


class HitRateWanted(Claims):
    """A second cache lets the first one miss four times as often."""

    target = quantity("1.5 ns")

    slack = target - AverageAccess.l1
    miss_rate = (slack / AverageAccess.dram).to("%")
    hit_rate = 1 - miss_rate | by_hand("1 - 0.5 / 100")
    miss_rate_with_l2 = (slack / AverageAccess.behind_l1).to("%")
    hit_rate_with_l2 = 1 - miss_rate_with_l2 | by_hand("1 - 0.5/24")


class Overflow(Claims):
    """Bytes that do not fit into HBM set the pace, however few they are."""

    h100 = hardware.get("h100")
    parameters = quantity("50B param")
    bandwidth = h100.memory_bandwidth
    nvlink = h100.link_bandwidth

    capacity = h100.memory_capacity.to("GB") | by_hand("80 * 2**30 bytes")
    weights = training.model_memory(
        parameters, training.recipe("inference-fp16").bytes_per_parameter
    ) | by_hand("50e9 * 2 byte")
    small_weights = training.model_memory(
        parameters, training.recipe("inference-int8").bytes_per_parameter
    )
    spilled = weights - capacity | by_hand("(100 - 85.899) GB")
    spilled_share = (spilled / weights).to("%") | by_hand("14.10 / 100")
    local_time = (capacity / bandwidth).to("ms") | by_hand("85.899 GB / 3.35 TB/s")
    host_time = (spilled / AnchorBandwidths.pcie_coded).to("ms") | by_hand(
        "14.10065 GB / 63.01538 GB/s"
    )
    nvlink_time = (spilled / nvlink).to("ms") | by_hand("14.10065 GB / 450 GB/s")
    ssd_time = (spilled / constants.bandwidth_nvme_gen4).to("s") | by_hand("14.10065 GB / 7 GB/s")
    small_time = (small_weights / bandwidth).to("ms") | by_hand("50 GB / 3.35 TB/s")
    half_time = (weights / 2 / bandwidth).to("ms") | by_hand("0.5 * 100 GB / 3.35 TB/s")
    host_per_small = host_time / small_time | by_hand("223.77 / 14.925")
    layers = 64
    sum_time = constants.latency_nccl_base_ring + 2 * constants.latency_nccl_step_nvlink | by_hand(
        "6.6 us + 2 * 0.6 us"
    )
    sums_time = (2 * layers * sum_time).to("ms") | by_hand("128 * 7.8 us")
    two_time = half_time + sums_time | by_hand("50 GB / 3.35 TB/s + 0.9984 ms")
