"""What the chapter "Numbers to know" quotes."""

from __future__ import annotations

from calc import constants, energy, hardware, links, machines, training, transformer
from calc.core.units import quantity
from calc.derivations import examples
from calc.derivations.hardware_tables import short_names
from calc.derivations.quoting import Quoted, Row, Rows, approximately, between, show


def sixteen(device: hardware.Accelerator) -> str:
    """Its format of 16 bits."""
    return "bf16" if "bf16" in device.dtypes else "fp16"


class RidgeOverYears:
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

    growth = max(_peaks) / min(_peaks)
    _bandwidths = tuple(device.memory_bandwidth for device in devices)
    memory_growth = max(_bandwidths) / min(_bandwidths)
    least_ridge = min(_ridges)
    most_ridge = max(_ridges)
    least_link = min(_to_link)
    most_link = max(_to_link)
    least_host = min(_to_host)
    most_host = max(_to_host)

    @classmethod
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


class LightInFibre:
    """No round trip is faster than light in the fibre of its path."""

    refractive_index = constants.refractive_index_fiber
    refractive_index_of_fiber = 1.468  # Corning 2021, at 1 550 nm
    speed = constants.speed_light_fiber
    campus_budget = constants.latency_budget_same_campus
    coast_to_coast = constants.length_coast_to_coast
    atlantic = constants.length_atlantic
    pacific = constants.length_pacific

    faster_in_fiber = (refractive_index / refractive_index_of_fiber - 1).to("%")
    share_of_vacuum = (1 / refractive_index).to("%")
    delay = quantity("1 km") / speed
    campus_reach = links.reach(campus_budget)
    coast_to_coast_round_trip = links.round_trip_time(coast_to_coast)
    atlantic_round_trip = links.round_trip_time(atlantic)
    pacific_round_trip = links.round_trip_time(pacific)

    rows = (
        ("A millisecond away, the budget of one campus", campus_reach, campus_budget),
        ("US coast to coast", coast_to_coast, coast_to_coast_round_trip),
        ("Across the Atlantic", atlantic, atlantic_round_trip),
        ("Across the Pacific", pacific, pacific_round_trip),
    )


class EnergyOfArithmetic:
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
    )


class EnergyOfMovement:
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
    hbm2_word = energy.movement_energy(word, hbm2_bit).to("pJ")
    hbm2_word_per_fp16_multiply = (hbm2_word / fp16_multiply_7nm).to("")
    dram_per_hbm2 = dram / hbm2_word
    hbm2_word_low = constants.energy_7nm_hbm2_64bit_low / words_per_access
    hbm2_word_high = constants.energy_7nm_hbm2_64bit_high / words_per_access
    dram_word_high = constants.energy_dram_64bit_high / words_per_access
    ddr_word = constants.energy_7nm_ddr4_64bit / words_per_access
    ddr_word_per_fp16_multiply_7nm = ddr_word / fp16_multiply_7nm
    a100_l1_word = energy.movement_energy(word, constants.energy_a100_l1_bit).to("pJ")
    a100_l2_word = energy.movement_energy(word, constants.energy_a100_l2_bit).to("pJ")
    a100_hbm_word = energy.movement_energy(word, a100_hbm_bit).to("pJ")
    a100_hbm_word_per_fp16_multiply = (a100_hbm_word / fp16_multiply_7nm).to("")
    sram_8kb_word_7nm = constants.energy_7nm_sram_8kb / words_per_access
    sram_32kb_word_7nm = constants.energy_7nm_sram_32kb / words_per_access
    sram_1mb_word_7nm = constants.energy_7nm_sram_1mb / words_per_access
    a100_l1_per_array = a100_l1_word / sram_32kb_word_7nm
    sram_per_register = sram / register
    register_over_estimate = register / register_estimate

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
    )
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
    )


class AnchorLatencies:
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
    hopper_l1 = (l1_cycles / clock).to("ns")
    hopper_global = (constants.cycles_global_memory_hopper / clock).to("ns")
    hopper_l2_near = (l2_near_cycles / clock).to("ns")
    hopper_l2_far = (constants.cycles_l2_far_hopper / clock).to("ns")
    hopper_l2 = hopper_l2_near
    hopper_global_revised = (global_revised_cycles / clock).to("ns")
    dram_per_l1 = dram / l1_cpu
    hbm_per_l1 = hbm3 / l1_cpu
    hopper_global_per_l1 = hopper_global_revised / hopper_l1
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
    )


class AnchorBandwidths:
    """Bandwidth falls by an order of magnitude when data leaves a package, a board, a box."""

    hbm3 = hardware.get("h100").memory_bandwidth
    nvlink = hardware.get("h100").link_bandwidth
    pcie_payload = constants.size_pcie_block_payload
    pcie_block = constants.size_pcie_block
    infiniband_bits = constants.bandwidth_infiniband_ndr
    nvme_gen4 = constants.bandwidth_nvme_gen4

    nvlink_both_ways = 2 * nvlink
    pcie_raw = (constants.bandwidth_pcie5_lane * constants.lanes_pcie_x16).to("GB/s")
    pcie_coded = pcie_raw * (pcie_payload / pcie_block)
    host_dram = constants.bandwidth_ddr4_3200_channel * constants.channels_host_dram
    server_channels = constants.count_sockets_dgx_h100 * constants.count_channels_dgx_h100_socket
    server_dram = constants.bandwidth_ddr5_4400_channel * server_channels
    infiniband = infiniband_bits.to("GB/s")
    hbm_per_pcie = (hbm3 / pcie_raw).to("")
    hbm_per_nvlink = (hbm3 / nvlink).to("")

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
    )


class MemoryPerParameter:
    """Training holds eight times the bytes that serving does, for the same model."""

    parameters = quantity("7B param")
    inference_fp16 = training.recipe("inference-fp16")
    inference_int8 = training.recipe("inference-int8")
    adam_mixed = training.recipe("adam-mixed")
    adam_fp32 = training.recipe("adam-fp32")
    adam_wide = training.recipe("adam-mixed-fp32-gradients")

    fp16_per_parameter = inference_fp16.bytes_per_parameter
    int8_per_parameter = inference_int8.bytes_per_parameter
    mixed_per_parameter = adam_mixed.bytes_per_parameter
    fp32_per_parameter = adam_fp32.bytes_per_parameter
    wide_per_parameter = adam_wide.bytes_per_parameter
    wide_training = training.model_memory(parameters, wide_per_parameter)
    fp16_serving = training.model_memory(parameters, fp16_per_parameter)
    int8_serving = training.model_memory(parameters, int8_per_parameter)
    mixed_training = training.model_memory(parameters, mixed_per_parameter)
    fp32_training = training.model_memory(parameters, fp32_per_parameter)
    training_per_serving = (mixed_training / fp16_serving).to("")
    without_gradients = mixed_per_parameter - adam_mixed.parts["gradient"]

    rows = (
        ("Serve in FP16", inference_fp16.breakdown, fp16_per_parameter, fp16_serving),
        ("Serve in INT8", inference_int8.breakdown, int8_per_parameter, int8_serving),
        ("Train with Adam, mixed", adam_mixed.breakdown, mixed_per_parameter, mixed_training),
        ("The same, gradients in FP32", adam_wide.breakdown, wide_per_parameter, wide_training),
        ("Train with Adam, FP32", adam_fp32.breakdown, fp32_per_parameter, fp32_training),
    )


class WorkPerToken:
    """Two operations for each parameter and token forward, six to train."""

    parameters = MemoryPerParameter.parameters
    tokens = quantity("1T token")

    inference_per_token = training.inference_flops(parameters)
    training_run = training.training_flops(parameters, tokens)
    training_per_inference = constants.work_training / constants.work_inference


class DatacentreAgainstPhone:
    """A data-centre GPU does tens of times a phone's arithmetic, at hundreds of times its power."""

    h100 = hardware.get("h100")
    phone = hardware.get("phone-npu")
    phone_power_high = constants.power_phone_high
    h100_fp16 = h100.peak("fp16")
    h100_int8 = h100.peak("int8")
    phone_int8 = phone.peak("int8")

    fp16_against_int8 = (h100.peak("fp16") / phone.peak("int8")).to("")
    int8_against_int8 = (h100.peak("int8") / phone.peak("int8")).to("")
    bandwidth_against_bandwidth = (h100.memory_bandwidth / phone.memory_bandwidth).to("")
    power_against_high = (h100.tdp / phone_power_high).to("")
    h100_per_watt = energy.energy_efficiency(h100_int8, h100.tdp).to("TOP/J")
    phone_per_watt_low = energy.energy_efficiency(phone_int8, phone_power_high).to("TOP/J")


class LatencyBudgets:
    """What a person, or a car, allows before an answer is late."""

    search_delay = constants.latency_delay_web_search
    rows = (
        ("Emergency braking", constants.latency_budget_braking),
        ("Answer to a click that feels instantaneous", constants.latency_budget_instant),
        ("Gap between two turns of a conversation", constants.latency_budget_voice),
        ("First words of a streamed answer", constants.latency_budget_streaming),
        ("Batch training, at the short end", constants.latency_budget_batch_training_low),
        ("Batch training, at the long end", constants.latency_budget_batch_training_high),
    )


class BrakingDistance:
    """A car's latency budget is a distance."""

    speed = constants.speed_braking
    budget = constants.latency_budget_braking

    distance = (speed * budget).to("cm")
    reach_of_light = links.reach(budget)


class LastingRatios:
    """What this chapter computes, as one list: ratios of one generation."""

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
    )


class ServersOverseas:
    """Distance spends a budget before any server has started."""

    distance = LightInFibre.atlantic
    click = constants.latency_budget_instant
    voice = constants.latency_budget_voice

    round_trip = links.round_trip_time(distance)
    left_of_click = click - round_trip
    two_round_trips = 2 * round_trip
    left_of_voice = voice - two_round_trips


class CachedTokens:
    """A token's keys and values in BF16, by model: formula, and what it gives."""

    context = quantity("131072 token")
    models = (
        (examples.HAND, "2 · 32 layers · 8 heads · 128 · 2 bytes"),
        (examples.DENSE, "2 · 80 layers · 8 heads · 128 · 2 bytes"),
        (examples.MIXTURE, "61 layers · (512 + 64) · 2 bytes"),
        (examples.HYBRID, "2 · 4 layers · 8 heads · 128 · 2 bytes"),
    )

    @classmethod
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


class TrainingAMixture:
    """Problem 3: all of its parameters are held, and few of them work."""

    model = examples.MIXTURE
    tokens = quantity("14.8T token")
    device = hardware.get("h200").memory_capacity.to("GB")
    total = model.parameters.to("Gparam")
    active = model.active_parameters.to("Gparam")

    state = training.model_memory(total, MemoryPerParameter.wide_per_parameter).to("TB")
    devices = (state / device).to("")
    work = training.training_flops(active, tokens)
    if_dense = (total / active).to("")


class AgentSessions:
    """Problem 4: an agent's long context decides otherwise than a short chat."""

    dense, mixture = examples.DENSE, examples.MIXTURE
    context = quantity(examples.AGENT.context, "token")

    weights = training.model_memory(dense.parameters, "1 byte/param").to("GB")
    weights_mixture = training.model_memory(mixture.parameters, "1 byte/param").to("GB")
    work = training.inference_flops(dense.active_parameters)
    work_mixture = training.inference_flops(mixture.active_parameters)
    cache = (transformer.kv_cache_per_token(dense) * context).to("GB")
    cache_mixture = (transformer.kv_cache_per_token(mixture) * context).to("GB")
    sessions = (weights_mixture - weights) / (cache - cache_mixture)
