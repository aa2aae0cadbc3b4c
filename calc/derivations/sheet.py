"""What the page "Numbers on one page" lists: values of other chapters, side by side."""

from __future__ import annotations

from calc import constants, formats, hardware, links, transformer
from calc.core.units import quantity
from calc.derivations.hardware_tables import short_names
from calc.derivations.memory_hierarchy import HumanScale
from calc.derivations.numbers_to_know import (
    AnchorBandwidths,
    AnchorLatencies,
    EnergyOfArithmetic,
    EnergyOfMovement,
    LightInFibre,
    MemoryPerParameter,
    WorkPerToken,
)
from calc.derivations.quoting import Quoted, approximately, show


class OnePage:
    """The numbers to have on the desk."""

    arithmetic = (
        ("INT8 add", constants.energy_int8_add),
        ("INT8 multiply", EnergyOfArithmetic.int8_multiply),
        ("INT32 add", constants.energy_int32_add),
        ("FP16 add", constants.energy_fp16_add),
        ("FP16 multiply", EnergyOfArithmetic.fp16_multiply),
        ("FP32 add", constants.energy_fp32_add),
        ("FP32 multiply", EnergyOfArithmetic.fp32_multiply),
    )
    words = (
        ("register file", EnergyOfMovement.register),
        ("SRAM, 8 KB", EnergyOfMovement.sram_8kb_word),
        ("SRAM, 1 MB", EnergyOfMovement.sram_1mb_word),
        ("HBM2, 7 nm", approximately(EnergyOfMovement.hbm2_word, 3)),
        ("DRAM", EnergyOfMovement.dram),
        ("SSD, by its power", EnergyOfMovement.ssd_estimate),
        ("network, by its optics", EnergyOfMovement.network_estimate),
    )
    energies = tuple(
        (operation, energy, place, fetch)
        for (operation, energy), (place, fetch) in zip(arithmetic, words, strict=True)
    )
    latencies = (
        ("Register", AnchorLatencies.register),
        ("L1 of a CPU core", AnchorLatencies.l1_cpu),
        ("L2 of a CPU core", AnchorLatencies.l2_cpu),
        ("L1 of a GPU", AnchorLatencies.hopper_l1),
        ("DRAM of a host", AnchorLatencies.dram),
        ("L2 of a GPU", AnchorLatencies.hopper_l2),
        ("HBM, round figure", AnchorLatencies.hbm3),
        ("HBM, measured on Hopper", AnchorLatencies.hopper_global_revised),
        ("NVLink", AnchorLatencies.nvlink),
        ("PCIe Gen5", AnchorLatencies.pcie),
        ("InfiniBand, GPU to GPU", AnchorLatencies.infiniband),
        ("NVMe SSD", AnchorLatencies.ssd),
    )
    devices = ("a100", "h100", "h200", "b200", "mi300x", "tpu-v5p")
    ratios = (
        (
            "Energy: HBM word / FP16 multiply, on an A100",
            EnergyOfMovement.a100_hbm_word_per_fp16_multiply,
        ),
        ("Energy: HBM2 word / FP16 multiply, 7 nm", EnergyOfMovement.hbm2_word_per_fp16_multiply),
        ("Latency: HBM / L1 of a GPU, measured", AnchorLatencies.hopper_global_per_l1),
        ("Latency: another host / HBM, round figures", AnchorLatencies.network_per_hbm),
        ("Latency: SSD / L1 of a CPU", AnchorLatencies.ssd_per_l1),
        ("Bandwidth: HBM / NVLink", AnchorBandwidths.hbm_per_nvlink),
        ("Bandwidth: HBM / PCIe", AnchorBandwidths.hbm_per_pcie),
    )
    bandwidths = (
        ("NVLink 4, of an H100", AnchorBandwidths.nvlink),
        ("NVLink 5, of a B200", constants.bandwidth_nvlink_5),
        ("PCIe Gen5 x16, raw", AnchorBandwidths.pcie_raw),
        ("PCIe Gen6 x16, net", constants.bandwidth_pcie6_x16),
        ("InfiniBand NDR, a port", AnchorBandwidths.infiniband),
        ("InfiniBand XDR, a port", constants.bandwidth_infiniband_xdr.to("GB/s")),
        ("DRAM of a DGX H100", AnchorBandwidths.server_dram),
        ("NVMe SSD, Gen4, reading", AnchorBandwidths.nvme_gen4),
        ("NVMe SSD, Gen5, reading", constants.bandwidth_nvme_gen5),
    )
    model = (
        ("Serve in INT8", MemoryPerParameter.int8_per_parameter, MemoryPerParameter.int8_serving),
        ("Serve in FP16", MemoryPerParameter.fp16_per_parameter, MemoryPerParameter.fp16_serving),
        (
            "Train with Adam",
            MemoryPerParameter.mixed_per_parameter,
            MemoryPerParameter.mixed_training,
        ),
        ("Forward", constants.work_inference, WorkPerToken.inference_per_token),
        ("Train", constants.work_training, WorkPerToken.training_per_token),
    )
    cache = transformer.kv_cache_per_token("llama-3-70b").to("KiB/token")
    context = quantity("8192 token")
    cache_in_context = (cache * context).to("GiB")
    kilometre = quantity("1 km")
    light = (
        ("A kilometre", kilometre, links.round_trip_time(kilometre)),
        ("A millisecond", LightInFibre.campus_reach, LightInFibre.campus_budget),
        ("US coast to coast", LightInFibre.coast_to_coast, LightInFibre.coast_to_coast_round_trip),
        ("Atlantic", LightInFibre.atlantic, LightInFibre.atlantic_round_trip),
        ("Pacific", LightInFibre.pacific, LightInFibre.pacific_round_trip),
    )

    @classmethod
    def latency_rows(cls) -> list[tuple[str, Quoted, Quoted]]:
        """Latency and the human scale, by level."""
        rows = (HumanScale.row(name, latency) for name, latency in cls.latencies)
        return [(name, latency, felt) for name, latency, _, felt in rows]

    @classmethod
    def device_rows(cls) -> list[tuple[Quoted | str | float | None, ...]]:
        """Dense peaks in TFLOP/s, memory, its bandwidth in TB/s, and the ridge point at 16 bits."""
        rows = []
        for device in map(hardware.get, cls.devices):
            half = "bf16" if "bf16" in device.dtypes else "fp16"
            peaks = [
                device.peak(dtype).m_as("TFLOP/s") if dtype in device.dtypes else None
                for dtype in (half, "fp8")
            ]
            vector = device.peaks["vector_peak"].get("fp32")
            rows.append(
                (
                    short_names([device])[device.key],
                    *peaks,
                    vector and vector.quantity.m_as("TFLOP/s"),
                    show(device.memory_capacity),
                    device.memory_bandwidth.m_as("TB/s"),
                    show(device.ridge_point(half).m_as("FLOP/byte"), digits=3),
                )
            )
        return rows

    @staticmethod
    def format_rows() -> list[tuple[str, float, float, float]]:
        """Largest value, smallest normal one, and the step at one, by format."""
        names = ("fp32", "tf32", "bf16", "fp16", "fp8-e5m2", "fp8-e4m3", "fp4-e2m1")
        forms = [formats.get(name) for name in names]
        return [
            (form.name, form.max, form.smallest_normal, form.epsilon)
            for form in forms
            if isinstance(form, formats.Float)
        ]
