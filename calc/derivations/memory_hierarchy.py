"""What the chapter "Latency and the memory hierarchy" quotes."""

from __future__ import annotations

from typing import NamedTuple

from calc import constants, hardware
from calc.derivations.numbers_to_know import AnchorBandwidths, AnchorLatencies, EnergyOfMovement
from calc.units import Quantity


class Level(NamedTuple):
    """One level of a memory hierarchy; None where nobody has published or measured a value."""

    name: str
    capacity: Quantity
    latency: Quantity | None
    bandwidth: Quantity | None
    energy_per_word: Quantity | None


class MemoryHierarchy:
    """Away from the arithmetic, memory gets larger, and everything else about it gets worse."""

    sms = constants.get("count_sm_h100")
    registers_of_sm = constants.get("size_register_file_sm_h100")
    l1_of_sm = constants.get("size_l1_sm_h100")
    l1_bytes_per_clock = constants.get("bytes_per_clock_shared_memory_sm")
    clock = constants.get("frequency_h100_boost")
    l2_bandwidth = constants.get("bandwidth_l2_h100")
    h100 = hardware.get("h100")
    host_memory = constants.get("size_host_memory_dgx_h100")
    drives = constants.get("size_nvme_dgx_h100")

    registers = (sms * registers_of_sm).to("MiB")
    l1 = (sms * l1_of_sm).to("MiB")
    l1_bandwidth = (l1_bytes_per_clock * sms * clock).to("TB/s")
    levels = (
        Level("Registers", registers, None, None, None),
        Level(
            "L1 and shared memory",
            l1,
            AnchorLatencies.hopper_l1,
            l1_bandwidth,
            EnergyOfMovement.a100_l1_word,
        ),
        Level(
            "L2 cache",
            h100.on_chip_memory,
            AnchorLatencies.hopper_l2,
            l2_bandwidth,
            EnergyOfMovement.a100_l2_word,
        ),
        Level(
            "HBM",
            h100.memory_capacity,
            AnchorLatencies.hopper_global,
            h100.memory_bandwidth,
            EnergyOfMovement.a100_hbm_word,
        ),
        Level(
            "Host DRAM",
            host_memory,
            AnchorLatencies.pcie,
            AnchorBandwidths.pcie_raw,
            None,
        ),
        Level(
            "NVMe SSD",
            drives,
            AnchorLatencies.ssd,
            AnchorBandwidths.nvme_gen4,
            constants.get("energy_ssd_word_estimate"),
        ),
    )
    latency_span = (AnchorLatencies.ssd / AnchorLatencies.hopper_l1).to("")
    bandwidth_span = (l1_bandwidth / AnchorBandwidths.nvme_gen4).to("")
    energy_span = (constants.get("energy_ssd_word_estimate") / EnergyOfMovement.a100_l1_word).to("")
