"""Claims of the chapter "Numbers to know"."""

from __future__ import annotations

from calc import attention, constants, energy, hardware, links, machines, training, transformer
from calc.core.units import quantity
from calc.derivations import examples
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.hardware_tables import AcceleratorTables, short_names
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Quoted, Row, Rows, approximately, between, show


def sixteen(device: hardware.Accelerator) -> str:
    """Return the format of 16 bits that a device has."""
    return "bf16" if "bf16" in device.dtypes else "fp16"


class RidgeOverYears(Claims):
    """Peaks grew twentyfold in seven years, and the ridge point little more than doubled."""

    keys = (
        *("v100", "a100", "tpu-v4", "h100", "tpu-v5p", "mi300x"),
        *("h200", "b200", "gb200", "mi355x", "tpu-v7", "gb300"),
    )
    devices = tuple(hardware.get(key) for key in keys)
    _peaks = tuple(device.peak(sixteen(device)) for device in devices)
    _ridges = tuple(device.ridge_point(sixteen(device)) for device in devices)
    _to_link = tuple(
        (device.memory_bandwidth / machines.of(device).bandwidth).to("")
        for device in devices
        if machines.of(device).publishes("bandwidth")
    )
    _to_host = tuple(
        (device.memory_bandwidth / machines.of(device).host_link).to("")
        for device in devices
        if machines.of(device).publishes("host_link")
    )

    growth = max(_peaks) / min(_peaks) | by_hand("2516.6 / 125")
    _bandwidths = tuple(device.memory_bandwidth for device in devices)
    memory_growth = max(_bandwidths) / min(_bandwidths) | by_hand("8 / 0.9")
    least_ridge = min(_ridges) | by_hand("(125 / 0.9) FLOP/byte")
    most_ridge = max(_ridges) | by_hand("(2516.6 / 8) FLOP/byte")
    least_link = min(_to_link) | by_hand("1.2 TB/s / 300 GB/s")
    most_link = max(_to_link) | by_hand("8 TB/s / 535.5 GB/s")
    least_host = min(_to_host) | by_hand("8 TB/s / 450 GB/s")
    most_host = max(_to_host) | by_hand("8 TB/s / 63 GB/s")

    @classmethod
    @row_by_hand("H200, 2024 | 989 | 4.8 | 206 | 11 | 76")
    def rows(cls) -> Rows:
        """Device and year; peak, bandwidth and ridge point; memory over link and over host."""
        lines: list[Row] = []
        for device in cls.devices:
            machine = machines.of(device)
            over = (
                show((device.memory_bandwidth / getattr(machine, link)).m_as(""), digits=2)
                if machine.publishes(link)
                else None
                for link in ("bandwidth", "host_link")
            )
            lines.append(
                (
                    f"{short_names([device])[device.key]}, {device.year}",
                    device.peak(sixteen(device)).m_as("TFLOP/s"),
                    device.memory_bandwidth.m_as("TB/s"),
                    show(device.ridge_point(sixteen(device)).m_as("FLOP/byte"), digits=3),
                    *over,
                )
            )
        return lines


class RidgeOfAll(Claims):
    """Ridge points of all accelerators of data centres lie further apart than those over years."""

    _ridges = tuple(device.ridge_point(sixteen(device)) for device in AcceleratorTables.data_centre)

    least = min(_ridges) | by_hand("(1101 / 8.6) FLOP/byte", "TPU 8i")
    most = max(_ridges) | by_hand("(918 / 1.638) FLOP/byte", "TPU v6e")


class LightInFibre(Claims):
    """No round trip is faster than light in the fibre of its path."""

    refractive_index = constants.refractive_index_fiber
    refractive_index_of_fiber = 1.468  # Corning 2021, at 1 550 nm
    speed = constants.speed_light_fiber
    campus_budget = constants.latency_budget_same_campus
    coast_to_coast = constants.length_coast_to_coast
    atlantic = constants.length_atlantic
    pacific = constants.length_pacific

    faster_in_fiber = (refractive_index / refractive_index_of_fiber - 1).to("%") | by_hand(
        "1.5 / 1.468 - 1"
    )
    share_of_vacuum = (1 / refractive_index).to("%") | by_hand("1 / 1.5")
    delay = quantity("1 km") / speed | by_hand("1 km / 200000 km/s")
    campus_reach = links.reach(campus_budget)
    coast_to_coast_round_trip = links.round_trip_time(coast_to_coast)
    atlantic_round_trip = links.round_trip_time(atlantic) | by_hand("2 * 6000 km / 200000 km/s")
    pacific_round_trip = links.round_trip_time(pacific) | by_hand("2 * 10000 km / 200000 km/s")

    rows = (
        ("A millisecond away, the budget of one campus", campus_reach, campus_budget),
        ("US coast to coast", coast_to_coast, coast_to_coast_round_trip),
        ("Across the Atlantic", atlantic, atlantic_round_trip),
        ("Across the Pacific", pacific, pacific_round_trip),
    ) | row_by_hand("US coast to coast | ≈ 4000 km | ≈ 40 ms")


class EnergyOfArithmetic(Claims):
    """Half the bits cost less than half the energy, most of all in a multiplier."""

    fp16_multiply = constants.energy_fp16_multiply
    fp32_multiply = constants.energy_fp32_multiply
    int8_multiply = constants.energy_int8_multiply
    fp16_multiply_7nm = constants.energy_7nm_fp16_multiply
    int8_add = constants.energy_int8_add
    int8_add_7nm = constants.energy_7nm_int8_add
    int32_multiply = constants.energy_int32_multiply
    int32_multiply_7nm = constants.energy_7nm_int32_multiply

    fp32_per_int8_multiply = fp32_multiply / int8_multiply
    fp32_per_fp16_multiply = fp32_multiply / fp16_multiply

    rows = (
        ("INT8", int8_add, int8_multiply, int8_add_7nm, constants.energy_7nm_int8_multiply),
        (
            *("INT32", constants.energy_int32_add, int32_multiply),
            *(constants.energy_7nm_int32_add, int32_multiply_7nm),
        ),
        ("BF16", None, None, constants.energy_7nm_bf16_add, constants.energy_7nm_bf16_multiply),
        (
            *("FP16", constants.energy_fp16_add, fp16_multiply),
            *(constants.energy_7nm_fp16_add, fp16_multiply_7nm),
        ),
        (
            *("FP32", constants.energy_fp32_add, fp32_multiply),
            *(constants.energy_7nm_fp32_add, constants.energy_7nm_fp32_multiply),
        ),
    ) | row_by_hand("FP32 | 0.9 pJ | 3.7 pJ | ≈ 0.38 pJ | ≈ 1.31 pJ")


class EnergyOfMovement(Claims):
    """Fetching an operand from memory costs tens to thousands of the multiplies that use it."""

    register = constants.energy_register_word
    sram = constants.energy_sram_word
    dram = constants.energy_dram_word
    register_estimate = constants.energy_register_word_estimate
    l1_estimate = constants.energy_l1_word_estimate
    l2_estimate = constants.energy_l2_word_estimate
    ssd_estimate = constants.energy_ssd_word_estimate
    network_estimate = constants.energy_network_word_estimate
    hbm2_bit = constants.energy_hbm2_bit
    a100_hbm_bit = constants.energy_a100_hbm_bit
    fp16_multiply = EnergyOfArithmetic.fp16_multiply
    fp32_multiply = EnergyOfArithmetic.fp32_multiply
    fp16_multiply_7nm = EnergyOfArithmetic.fp16_multiply_7nm
    word = quantity("32 bit")
    half_word = quantity("16 bit")
    access = quantity("64 bit")

    words_per_access = access / word
    sram_8kb_word = constants.energy_sram_8kb / words_per_access
    sram_32kb_word = constants.energy_sram_32kb / words_per_access
    sram_1mb_word = constants.energy_sram_1mb / words_per_access
    dram_word_per_fp16_multiply = dram / fp16_multiply
    dram_word_per_fp32_multiply = dram / fp32_multiply
    dram_half_word_per_fp16_multiply = dram * (half_word / word) / fp16_multiply
    hbm2_word = energy.movement_energy(word, hbm2_bit).to("pJ") | by_hand("32 * 3.97 pJ")
    hbm2_word_per_fp16_multiply = (hbm2_word / fp16_multiply_7nm).to("") | by_hand(
        "127.04 pJ / 0.34 pJ"
    )
    dram_per_hbm2 = dram / hbm2_word | by_hand("640 pJ / (32 * 3.97 pJ)")
    hbm2_word_low = constants.energy_7nm_hbm2_64bit_low / words_per_access
    hbm2_word_high = constants.energy_7nm_hbm2_64bit_high / words_per_access
    dram_word_high = constants.energy_dram_64bit_high / words_per_access
    ddr_word = constants.energy_7nm_ddr4_64bit / words_per_access
    ddr_word_per_fp16_multiply_7nm = ddr_word / fp16_multiply_7nm
    a100_l1_word = energy.movement_energy(word, constants.energy_a100_l1_bit).to("pJ")
    a100_l2_word = energy.movement_energy(word, constants.energy_a100_l2_bit).to("pJ")
    a100_hbm_word = energy.movement_energy(word, a100_hbm_bit).to("pJ")
    a100_hbm_word_per_fp16_multiply = (a100_hbm_word / fp16_multiply_7nm).to("") | by_hand(
        "32 * 13.11 / 0.34"
    )
    sram_8kb_word_7nm = constants.energy_7nm_sram_8kb / words_per_access
    sram_32kb_word_7nm = constants.energy_7nm_sram_32kb / words_per_access
    sram_1mb_word_7nm = constants.energy_7nm_sram_1mb / words_per_access
    a100_l1_per_array = a100_l1_word / sram_32kb_word_7nm | by_hand("32 * 1.59 / (8.5 / 2)")
    sram_per_register = sram / register
    register_over_estimate = register / register_estimate | by_hand("1 pJ / 0.1 pJ")

    word_rows = (
        ("DRAM, at 45 nm", dram, fp16_multiply, dram_word_per_fp16_multiply),
        ("HBM2, at 7 nm", hbm2_word, fp16_multiply_7nm, hbm2_word_per_fp16_multiply),
        (
            "HBM of an A100, at 7 nm",
            a100_hbm_word,
            fp16_multiply_7nm,
            a100_hbm_word_per_fp16_multiply,
        ),
        ("DDR, at 7 nm", ddr_word, fp16_multiply_7nm, ddr_word_per_fp16_multiply_7nm),
    ) | row_by_hand("HBM of an A100, at 7 nm | 420 pJ | ≈ 0.34 pJ | ≈ 1200")
    rows = (
        ("Register file", register, None, None, register_estimate),
        ("SRAM, 8 KB", sram_8kb_word, approximately(sram_8kb_word_7nm, 2), None, None),
        (
            "SRAM, 32 KB (L1)",
            sram_32kb_word,
            approximately(sram_32kb_word_7nm, 2),
            a100_l1_word,
            l1_estimate,
        ),
        (
            "SRAM, 1 MB (L2)",
            sram_1mb_word,
            approximately(sram_1mb_word_7nm),
            a100_l2_word,
            l2_estimate,
        ),
        (
            "HBM2",
            None,
            Quoted(f"≈ {between(hbm2_word_low, hbm2_word_high)}"),
            a100_hbm_word,
            approximately(hbm2_word, 2),
        ),
        ("DDR DRAM", between(dram, dram_word_high), approximately(ddr_word), None, None),
        ("SSD", None, None, None, ssd_estimate),
        ("Network", None, None, None, network_estimate),
    ) | row_by_hand("HBM2 | – | … | = 32 * 13.11 pJ | = 32 * 3.97 pJ")


class AnchorLatencies(Claims):
    """Each level down waits longer, and a GPU's caches are not a CPU's."""

    register = constants.latency_register
    l1_cpu = constants.latency_l1_cpu
    l2_cpu = constants.latency_l2_cpu
    dram = constants.latency_dram
    hbm3 = constants.latency_hbm3
    nvlink = constants.latency_nvlink
    pcie = constants.latency_pcie_gen5
    infiniband = constants.latency_infiniband
    ssd = constants.latency_nvme_ssd
    clock = constants.frequency_h800_pcie
    shared_cycles = constants.cycles_shared_memory_hopper
    l1_cycles = constants.cycles_l1_hopper
    l2_near_cycles = constants.cycles_l2_near_hopper
    global_revised_cycles = constants.cycles_global_memory_hopper_revised

    hopper_shared = (shared_cycles / clock).to("ns")
    hopper_l1 = (l1_cycles / clock).to("ns") | by_hand(
        "34.2 / 1.755 GHz", "34.2 cycles at 1.755 GHz [Ernst 2024]"
    )
    hopper_global = (constants.cycles_global_memory_hopper / clock).to("ns") | by_hand(
        "478.8 / 1.755 GHz"
    )
    hopper_l2_near = (l2_near_cycles / clock).to("ns") | by_hand(
        "258 / 1.755 GHz", "258.0 cycles at 1.755 GHz [Luo et al. 2025]"
    )
    hopper_l2_far = (constants.cycles_l2_far_hopper / clock).to("ns") | by_hand("414.1 / 1.755 GHz")
    hopper_l2 = hopper_l2_near | by_hand(
        "258 / 1.755 GHz", "258.0 cycles at 1.755 GHz [Luo et al. 2025]"
    )
    hopper_global_revised = (global_revised_cycles / clock).to("ns") | by_hand("656 / 1.755 GHz")
    dram_per_l1 = dram / l1_cpu
    hbm_per_l1 = hbm3 / l1_cpu | by_hand("350 ns / 1 ns")
    hopper_global_per_l1 = hopper_global_revised / hopper_l1 | by_hand(
        "656 cycles / 34.2 cycles", "656 cycles [Luo et al. 2025] over 34.2 cycles [Ernst 2024]"
    )
    ssd_per_l1 = ssd / l1_cpu

    rows = (
        ("Register of a CPU", register, None, None),
        ("L1 cache (anchor: of a CPU core)", l1_cpu, l1_cycles, hopper_l1),
        ("Shared memory of a GPU", None, shared_cycles, hopper_shared),
        ("L2 cache (anchor: of a CPU core; GPU: its near half)", l2_cpu, l2_near_cycles, hopper_l2),
        ("DRAM, from its own CPU", dram, None, None),
        ("HBM, from its own GPU", hbm3, global_revised_cycles, hopper_global_revised),
        ("A step to another GPU by NVLink, as NCCL counts it", nvlink, None, None),
        ("A step over PCIe Gen5, as NCCL counts it", pcie, None, None),
        ("A step to another host by InfiniBand, as NCCL counts it", infiniband, None, None),
        ("NVMe SSD", ssd, None, None),
    ) | row_by_hand("Shared memory of a GPU | – | 29 | 17 ns")


class AnchorBandwidths(Claims):
    """Bandwidth falls by an order of magnitude when data leaves a package, a board, a box."""

    hbm3 = hardware.get("h100").memory_bandwidth
    nvlink = hardware.get("h100").link_bandwidth
    pcie_payload = constants.size_pcie_block_payload
    pcie_block = constants.size_pcie_block
    infiniband_bits = constants.bandwidth_infiniband_ndr
    nvme_gen4 = constants.bandwidth_nvme_gen4

    nvlink_both_ways = 2 * nvlink | by_hand("2 * 18 * 25 GB/s")
    pcie_raw = (constants.bandwidth_pcie5_lane * constants.lanes_pcie_x16).to("GB/s") | by_hand(
        "16 * 32 Gbit/s"
    )
    pcie_coded = pcie_raw * (pcie_payload / pcie_block) | by_hand(
        "64 GB/s * 128/130", "64 GB/s times 128/130; published tables print 63.0"
    )
    host_dram = constants.bandwidth_ddr4_3200_channel * constants.channels_host_dram
    server_channels = constants.count_sockets_dgx_h100 * constants.count_channels_dgx_h100_socket
    server_dram = constants.bandwidth_ddr5_4400_channel * server_channels
    infiniband = infiniband_bits.to("GB/s")
    hbm_per_pcie = (hbm3 / pcie_raw).to("") | by_hand("3350 GB/s / 64 GB/s")
    hbm_per_nvlink = (hbm3 / nvlink).to("") | by_hand("3350 GB/s / 450 GB/s")

    rows = (
        ("HBM3e of a B200", hardware.get("b200").memory_bandwidth),
        ("HBM3 of an H100", hbm3),
        ("NVLink 5, each way", constants.bandwidth_nvlink_5),
        (f"DRAM of a DGX H100, {show(server_channels)} channels of DDR5-4400", server_dram),
        ("NVLink 4, each way", nvlink),
        ("PCIe Gen6 x16, each way, after framing", constants.bandwidth_pcie6_x16),
        ("InfiniBand XDR, each way", constants.bandwidth_infiniband_xdr.to("GB/s")),
        ("PCIe Gen5 x16, each way, raw", pcie_raw),
        ("PCIe Gen5 x16, each way, after coding", pcie_coded),
        ("DRAM of a desktop, two channels of DDR4-3200", host_dram),
        (f"InfiniBand NDR ({show(infiniband_bits)}), each way", infiniband),
        ("NVMe SSD, Gen5, reading in sequence", constants.bandwidth_nvme_gen5),
        ("NVMe SSD, Gen4, reading in sequence", nvme_gen4),
        ("NVMe SSD, Gen3, reading in sequence", constants.bandwidth_nvme_gen3),
    ) | row_by_hand("InfiniBand NDR (400 Gbit/s), each way | 50 GB/s")


class MemoryPerParameter(Claims):
    """Training holds eight times the bytes that serving does, for the same model."""

    parameters = quantity("7B param")
    inference_fp16 = training.recipe("inference-fp16")
    inference_int8 = training.recipe("inference-int8")
    adam_mixed = training.recipe("adam-mixed")
    adam_fp32 = training.recipe("adam-fp32")
    adam_wide = training.recipe("adam-mixed-fp32-gradients")

    fp16_per_parameter = inference_fp16.bytes_per_parameter
    int8_per_parameter = inference_int8.bytes_per_parameter
    mixed_per_parameter = adam_mixed.bytes_per_parameter | by_hand(
        "16 byte/param", "Rajbhandari et al. 2020: 16 bytes for each parameter"
    )
    fp32_per_parameter = adam_fp32.bytes_per_parameter
    wide_per_parameter = adam_wide.bytes_per_parameter | by_hand("(16 - 2 + 4) byte/param")
    wide_training = training.model_memory(parameters, wide_per_parameter)
    fp16_serving = training.model_memory(parameters, fp16_per_parameter)
    int8_serving = training.model_memory(parameters, int8_per_parameter)
    mixed_training = training.model_memory(parameters, mixed_per_parameter)
    fp32_training = training.model_memory(parameters, fp32_per_parameter)
    training_per_serving = (mixed_training / fp16_serving).to("")
    without_gradients = mixed_per_parameter - adam_mixed.parts["gradient"] | by_hand(
        "(16 - 2) byte/param"
    )

    rows = (
        ("Serve in FP16", inference_fp16.breakdown, fp16_per_parameter, fp16_serving),
        ("Serve in INT8", inference_int8.breakdown, int8_per_parameter, int8_serving),
        ("Train with Adam, mixed", adam_mixed.breakdown, mixed_per_parameter, mixed_training),
        ("The same, gradients in FP32", adam_wide.breakdown, wide_per_parameter, wide_training),
        ("Train with Adam, FP32", adam_fp32.breakdown, fp32_per_parameter, fp32_training),
    ) | row_by_hand("Serve in INT8 | 1 weight | 1 byte/param | 7 GB")


class WorkPerToken(Claims):
    """Two operations for each parameter and token forward, six to train."""

    parameters = MemoryPerParameter.parameters
    tokens = quantity("1T token")

    inference_per_token = training.inference_flops(parameters) | by_hand("2 * 7e9 FLOP")
    training_run = training.training_flops(parameters, tokens) | by_hand("6 * 7e9 * 1e12 FLOP")
    training_per_inference = constants.work_training / constants.work_inference


class DatacentreAgainstPhone(Claims):
    """A data-centre GPU does tens of times a phone's arithmetic, at a hundred times its power."""

    h100 = hardware.get("h100")
    phone = hardware.get("phone-npu")
    phone_power_high = constants.power_phone_high
    h100_fp16 = h100.peak("fp16")
    h100_int8 = h100.peak("int8")
    phone_int8 = phone.peak("int8")

    fp16_against_int8 = (h100.peak("fp16") / phone.peak("int8")).to("") | by_hand("989 / 35")
    int8_against_int8 = (h100.peak("int8") / phone.peak("int8")).to("") | by_hand("1979 / 35")
    bandwidth_against_bandwidth = (h100.memory_bandwidth / phone.memory_bandwidth).to("") | by_hand(
        "3350 GB/s / 51.2 GB/s"
    )
    power_against_high = (h100.tdp / phone_power_high).to("") | by_hand("700 W / 5 W")
    h100_per_watt = energy.energy_efficiency(h100_int8, h100.tdp).to("TOP/J") | by_hand(
        "1979 TOP/s / 700 W"
    )
    phone_per_watt_low = energy.energy_efficiency(phone_int8, phone_power_high).to(
        "TOP/J"
    ) | by_hand("35 TOP/s / 5 W")


class LatencyBudgets(Claims):
    """A person, or a car, allows so much time before an answer is late."""

    search_delay = constants.latency_delay_web_search
    rows = (
        ("Emergency braking", constants.latency_budget_braking),
        ("Answer to a click that feels instantaneous", constants.latency_budget_instant),
        ("Gap between two turns of a conversation", constants.latency_budget_voice),
        ("First words of a streamed answer", constants.latency_budget_streaming),
        ("Batch training, at the short end", constants.latency_budget_batch_training_low),
        ("Batch training, at the long end", constants.latency_budget_batch_training_high),
    ) | row_by_hand("Answer to a click that feels instantaneous | ≈ 100 ms")


class BrakingDistance(Claims):
    """A car's latency budget is a distance."""

    speed = constants.speed_braking
    budget = constants.latency_budget_braking

    distance = (speed * budget).to("cm") | by_hand("100 km/h * 10 ms")
    reach_of_light = links.reach(budget) | by_hand("200000 km/s * 10 ms / 2")


class LastingRatios(Claims):
    """Ratios of one generation last, and this chapter computes them as one list."""

    _word, _multiply = EnergyOfMovement, EnergyOfArithmetic
    _state = MemoryPerParameter

    rows = (
        (
            "A word of DDR / an FP16 multiply at 7 nm",
            "energy",
            _word.ddr_word_per_fp16_multiply_7nm,
        ),
        ("A word of DRAM / an FP16 multiply at 45 nm", "energy", _word.dram_word_per_fp16_multiply),
        (
            "The same with 16 bits of DRAM, at 45 nm",
            "energy",
            _word.dram_half_word_per_fp16_multiply,
        ),
        ("A word of DRAM / an FP32 multiply at 45 nm", "energy", _word.dram_word_per_fp32_multiply),
        ("A word of HBM2 / an FP16 multiply at 7 nm", "energy", _word.hbm2_word_per_fp16_multiply),
        ("An FP32 multiply / an INT8 one, at 45 nm", "energy", _multiply.fp32_per_int8_multiply),
        ("An FP32 multiply / an FP16 one, at 45 nm", "energy", _multiply.fp32_per_fp16_multiply),
        ("A word of SRAM / of a register, at 45 nm", "energy", _word.sram_per_register),
        ("DRAM / the L1 of a CPU core", "latency", AnchorLatencies.dram_per_l1),
        ("HBM / the L1 of its own GPU", "latency", AnchorLatencies.hopper_global_per_l1),
        ("SSD / the L1 of a CPU core", "latency", AnchorLatencies.ssd_per_l1),
        ("HBM / NVLink", "bandwidth", AnchorBandwidths.hbm_per_nvlink),
        ("HBM / PCIe Gen5, raw", "bandwidth", AnchorBandwidths.hbm_per_pcie),
        (
            "Training with Adam / serving in FP16",
            "bytes per parameter",
            _state.training_per_serving,
        ),
        ("Training / serving, per token", "operations", WorkPerToken.training_per_inference),
    ) | row_by_hand("HBM / PCIe Gen5, raw | bandwidth | 52.3")


class ServersOverseas(Claims):
    """Distance spends a budget before any server has started."""

    distance = LightInFibre.atlantic
    click = constants.latency_budget_instant
    voice = constants.latency_budget_voice

    round_trip = links.round_trip_time(distance)
    left_of_click = click - round_trip | by_hand("(100 - 60) ms")
    two_round_trips = 2 * round_trip | by_hand("2 * 60 ms")
    left_of_voice = voice - two_round_trips | by_hand("(200 - 120) ms")


class CachedTokens(Claims):
    """A token's keys and values in BF16, by model: formula, and what it gives."""

    context = quantity("131072 token")
    models = (
        (examples.HAND, "2 · 32 layers · 8 heads · 128 · 2 bytes"),
        (examples.DENSE, "2 · 80 layers · 8 heads · 128 · 2 bytes"),
        (examples.MIXTURE, "61 layers · (512 + 64) · 2 bytes"),
        (examples.HYBRID, "2 · 4 layers · 8 heads · 128 · 2 bytes"),
    )

    @classmethod
    @row_by_hand(
        "Llama 3 8B | 8.03 Gparam | 8.03 Gparam | 2 · 32 layers · 8 heads · 128"
        " · 2 bytes | 131 kB/token | 17.2 GB"
    )
    def rows(cls) -> Rows:
        """Model, parameters in all and of a token, the formula, and bytes."""
        lines: list[Row] = []
        for model, formula in cls.models:
            token = transformer.kv_cache_per_token(model)
            lines.append(
                (
                    model.name,
                    show(model.parameters.to("Gparam"), digits=3),
                    show(model.active_parameters.to("Gparam"), digits=3),
                    formula,
                    show(token.to("kB/token"), digits=3),
                    show((token * cls.context).to("GB"), digits=3),
                )
            )
        return lines


class TrainingAMixture(Claims):
    """Problem 3: all of its parameters are held, and few of them work."""

    model = examples.MIXTURE
    tokens = quantity("14.8T token")
    device = hardware.get("h200").memory_capacity.to("GB")
    total = model.parameters.to("Gparam") | by_hand(
        "61 * (7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + "
        "128 * 128 * 7168) * 1 param + 3 * 3 * 7168 * 18432 param + 58 * (257 *"
        " 3 * 7168 * 2048 + 7168 * 256) * 1 param + 2 * 129280 * 7168 param + "
        "(61 * (1536 + 512 + 2 * 7168) + 7168 + 58 * 256) * 1 param",
        "the matrices of the published configuration, summed",
    )
    active = model.active_parameters.to("Gparam")

    state = training.model_memory(total, MemoryPerParameter.wide_per_parameter).to("TB") | by_hand(
        "{total} * 18 byte/param"
    )
    devices = (state / device).to("") | by_hand("12.0785 TB / 141 GiB")
    work = training.training_flops(active, tokens) | by_hand("6 * 37.553e9 * 14.8e12 FLOP")
    if_dense = (total / active).to("") | by_hand("671.03 / 37.5525")


class AgentSessions(Claims):
    """Problem 3: an agent's long context decides otherwise than a short chat."""

    dense, mixture = examples.DENSE, examples.MIXTURE
    context = quantity(examples.AGENT.context, "token") | by_hand("(8192 + 30 * 1280) token")

    weights = training.model_memory(dense.parameters, "1 byte/param").to("GB") | by_hand(
        "70553706496 * 1 byte"
    )
    weights_mixture = training.model_memory(mixture.parameters, "1 byte/param").to("GB") | by_hand(
        "{TrainingAMixture.total} * 1 byte/param"
    )
    work = training.inference_flops(dense.active_parameters) | by_hand("2 * 70553706496 FLOP")
    work_mixture = training.inference_flops(mixture.active_parameters) | by_hand(
        "2 * 37552297472 FLOP"
    )
    over_context = attention.attention_flops(
        *(context.m_as("token"), dense.layers, dense.heads, dense.head_width, dense.head_width)
    ).to("GFLOP/token") * quantity("1 token") | by_hand("46592 * 80 * 64 * 4 * 128 * 1 FLOP")
    # Absorbed: a key is a latent and its rotary part, a value the latent.
    over_context_mixture = attention.attention_flops(
        *(context.m_as("token"), mixture.layers, mixture.heads),
        *(mixture.kv_latent + mixture.rotary_width, mixture.kv_latent),
    ).to("GFLOP/token") * quantity("1 token") | by_hand(
        "46592 * 61 * 128 * 2 * (576 + 512) * 1 FLOP"
    )
    whole = (work + over_context).to("GFLOP") | by_hand("{work} + {over_context}")
    whole_mixture = (work_mixture + over_context_mixture).to("GFLOP") | by_hand(
        "{work_mixture} + {over_context_mixture}"
    )
    cache = (transformer.kv_cache_per_token(dense) * context).to("GB") | by_hand(
        "46592 * 327680 byte"
    )
    cache_mixture = (transformer.kv_cache_per_token(mixture) * context).to("GB") | by_hand(
        "46592 * 70272 byte"
    )
    sessions = (weights_mixture - weights) / (cache - cache_mixture) | by_hand(
        "600.4727 / 11.99315"
    )
