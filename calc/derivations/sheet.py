"""Rows of the page "Numbers on one page": values of other chapters, side by side."""

from __future__ import annotations

from calc import communication, constants, formats, hardware, links, machines, training, transformer
from calc.catalog.hardware import Accelerator
from calc.core.units import quantity
from calc.derivations import examples
from calc.derivations.bases import HalfBandwidth, HidingTokens, LinkLatency, Rent
from calc.derivations.by_hand import row_by_hand
from calc.derivations.decisions import (
    NAMES,
    Buckets,
    CachesOrWeights,
    CutsThatHide,
    PublishedCuts,
    rounded,
)
from calc.derivations.hardware_tables import short_names
from calc.derivations.ledger import Claims
from calc.derivations.numbers_to_know import (
    AnchorBandwidths,
    AnchorLatencies,
    LightInFibre,
    MemoryPerParameter,
)
from calc.derivations.quoting import Quoted, Row, Rows, show


class OnePage(Claims):
    """The numbers to have on the desk."""

    devices = tuple(
        map(hardware.get, ("h100", "h200", "b200", "gb200", "b300", "gb300", "mi355x", "tpu-v7"))
    )
    shown = ("bf16", "fp8", "fp4")
    bandwidths = (
        ("NVLink 4", AnchorBandwidths.nvlink),
        ("NVLink 5", constants.bandwidth_nvlink_5),
        ("MI355X, all links", machines.get("mi355x-8").bandwidth),
        ("TPU v7, all links", machines.get("tpu-v7-pod").bandwidth),
        ("PCIe Gen5 x16, raw", AnchorBandwidths.pcie_raw),
        ("PCIe Gen5 x16, coded", AnchorBandwidths.pcie_coded),
        ("InfiniBand NDR, a port", AnchorBandwidths.infiniband),
        ("InfiniBand XDR, a port", constants.bandwidth_infiniband_xdr.to("GB/s")),
        ("DRAM of a DGX H100", AnchorBandwidths.server_dram),
        ("NVMe SSD, Gen5, reading", constants.bandwidth_nvme_gen5),
    ) | row_by_hand("InfiniBand XDR, a port | 100 GB/s")
    latencies = (
        ("L1 of a GPU", AnchorLatencies.hopper_l1),
        ("L2 of a GPU, near", AnchorLatencies.hopper_l2),
        ("HBM, from a GPU", AnchorLatencies.hopper_global_revised),
        ("DRAM of a host", AnchorLatencies.dram),
        ("GPU to GPU over PCIe", LinkLatency.reached_pcie),
        ("Host to host, RDMA, there and back", constants.latency_rdma_round_trip),
        ("NVMe SSD", AnchorLatencies.ssd.to("µs")),
        ("Kernel of a CUDA graph", machines.get("dgx-h100").gap.to("µs")),
    ) | row_by_hand("HBM, from a GPU | 370 ns")
    four_bits = quantity("4.5 bit/param")  # of NVFP4, with a scale for each sixteen
    _held = MemoryPerParameter
    _in_four_bits = training.model_memory(MemoryPerParameter.parameters, four_bits)
    model = (
        ("Serve in NVFP4", four_bits.to("byte/param"), _in_four_bits),
        ("Serve in FP8", _held.int8_per_parameter, _held.int8_serving),
        ("Serve in BF16", _held.fp16_per_parameter, _held.fp16_serving),
        ("Train with Adam, mixed", _held.mixed_per_parameter, _held.mixed_training),
        ("with gradients in FP32", _held.wide_per_parameter, _held.wide_training),
    ) | row_by_hand("with gradients in FP32 | 18 bytes/param | 126 GB")
    kilometre = quantity("1 km")
    light = (
        ("A kilometre", kilometre, links.round_trip_time(kilometre)),
        ("US coast to coast", LightInFibre.coast_to_coast, LightInFibre.coast_to_coast_round_trip),
        ("Atlantic", LightInFibre.atlantic, LightInFibre.atlantic_round_trip),
        ("Pacific", LightInFibre.pacific, LightInFibre.pacific_round_trip),
    ) | row_by_hand("A kilometre | 1 km | 10 µs")
    prices = (
        ("H100", Rent.published_h100),
        ("H200", Rent.published_h200),
        ("B200", Rent.published_b200),
    ) | row_by_hand("H200 | ≈ 3.5 USD/h")
    runs = (
        ("dense, BF16, H100", "h100", False, "bf16"),
        ("dense, FP8, GB200", "gb200", False, "fp8"),
        ("mixture, FP8, GB200", "gb200", True, "fp8"),
        ("mixture, FP8, GB300", "gb300", True, "fp8"),
    )

    @staticmethod
    def name(device: Accelerator) -> str:
        """Return it as short as a column of three is narrow."""
        return short_names([device])[device.key].removesuffix(" NVL72")

    @classmethod
    @row_by_hand("B200 | 2250 | 4500 | 9000 | 1745")
    def device_rows(cls) -> list[tuple[Quoted | str | float | None, ...]]:
        """Dense peaks in TFLOP/s, and what the best GEMM in BF16 was measured to reach."""
        rows = []
        for device in cls.devices:
            peaks = [
                device.peak(dtype).m_as("TFLOP/s") if dtype in device.dtypes else None
                for dtype in cls.shown
            ]
            rates = machines.of(device).rates.get("gemm", {})
            reached = (
                rounded(rates["bf16"].quantity.m_as("TFLOP/s"), 4) if "bf16" in rates else None
            )
            rows.append((cls.name(device), *peaks, reached))
        return rows

    @classmethod
    @row_by_hand("H200 | 141 GiB | 4.8 | 206 | 450")
    def memory_rows(cls) -> list[tuple[Quoted | str | float | None, ...]]:
        """Memory, its bandwidth in TB/s, the ridge point at 16 bits, and the links each way."""
        return [
            (
                cls.name(device),
                show(device.memory_capacity),
                device.memory_bandwidth.m_as("TB/s"),
                show(device.ridge_point("bf16").m_as("FLOP/byte"), digits=3),
                machines.of(device).bandwidth.m_as("GB/s"),
            )
            for device in cls.devices
        ]

    @staticmethod
    @row_by_hand("DGX B200, 8 | 53 µs | 75 MB | 2100 tokens")
    def collective_rows() -> Rows:
        """All-reduces by machine and devices: the shortest, and what moves at half bandwidth."""
        rows: list[Row] = []
        for key, name in (("dgx-h200", "DGX H200"), ("dgx-b200", "DGX B200")):
            machine = machines.get(key)
            for devices in (8, 512):
                start = communication.time("all_reduce", Buckets.smallest, devices, machine).needed
                half = HalfBandwidth.planned(machine, devices)
                tokens = HidingTokens.planned(machine, devices)
                assert half is not None
                assert tokens is not None
                cells = (rounded(start.to("µs")), rounded(half), rounded(tokens))
                rows.append((f"{name}, {devices}", *cells))
        return rows

    @staticmethod
    @row_by_hand("DeepSeek-V3 | 671 Gparam | 37.6 Gparam | 70.3 kB/token")
    def cache_rows() -> Rows:
        """The running examples: parameters, those of a token, and the cache of a token."""
        named = (examples.HAND, examples.DENSE, examples.MIXTURE, examples.HYBRID)
        return [
            (
                model.name,
                rounded(model.parameters.to("Gparam"), 3),
                rounded(model.active_parameters.to("Gparam"), 3),
                rounded(transformer.kv_cache_per_token(model).to("kB/token"), 3),
            )
            for model in named
        ]

    @staticmethod
    @row_by_hand("DGX H200 | 23 / 19 | 0.26 / 1.2")
    def cut_rows() -> Rows:
        """Return rows by machine: devices up to which TP hides, and times of experts' messages."""
        return [
            (NAMES[machine.key], *(row[column] for column in (4, 5)))
            for machine, row in zip(examples.MACHINES, CutsThatHide.rows(), strict=True)
        ]

    @staticmethod
    @row_by_hand("Llama 3 8B | 0.082 Mtoken | 0.12 Mtoken")
    def flight_rows() -> Rows:
        """Return rows by model: tokens from which FP8 caches gain, and outweigh weights."""
        return [
            (name, *(rounded(tokens.to("Mtoken")) for tokens in (gains, outweighs)))
            for name, _, _, gains, outweighs in CachesOrWeights.thresholds()
        ]

    @classmethod
    @row_by_hand("dense, BF16, H100 | 36–53%")
    def plan_rows(cls) -> Rows:
        """Shares of the bound that published training reached."""
        return [
            (name, PublishedCuts.reached(device, mixture, dtype))
            for name, device, mixture, dtype in cls.runs
        ]

    @staticmethod
    @row_by_hand("FP16 | 65 504 | 0.0009766")
    def format_rows() -> Rows:
        """Largest value, and the step at one, by format."""
        names = ("fp32", "bf16", "fp16", "fp8-e5m2", "fp8-e4m3", "fp4-e2m1")
        forms = [formats.get(name) for name in names]
        return [
            (form.name, show(form.max, digits=5 if form.max < 1e6 else 2), show(form.epsilon))
            for form in forms
            if isinstance(form, formats.Float)
        ]
