"""Each field of a device against what its parts make, rather than its line of the datasheet.

Rates are cores times clock times operations of a core in a cycle, bandwidths the pins of the memory
times the transfers of each, links a number of lanes, capacities stacks of chips or what a driver
reports, caches what a program is told. Datasheets round, hence the tolerance.
"""

from __future__ import annotations

from typing import Any

import pytest

from calc import hardware
from calc.core.units import Quantity

ROUNDING = 0.03
EVERY = (*hardware.names(), *hardware.announced())
GPU = 1e-3  # cores × GHz × operations, in TFLOP/s
HOPPER = {"tf32": 2048, "fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192}
AMPERE = {"fp64": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048, "int8": 4096, "int4": 8192}
AMPERE_VECTOR = {"fp64": 64, "fp32": 128, "fp16": 512, "bf16": 256}
ADA = {"tf32": 512, "fp16": 1024, "bf16": 1024, "fp8": 2048, "int8": 2048}
CDNA = {"fp64": 256, "fp32": 256, "tf32": 1024, "fp16": 2048, "bf16": 2048} | {
    "fp8": 4096,
    "int8": 4096,
}
GEFORCE = {"tf32": 256, "fp16": 512, "bf16": 512, "fp8": 1024, "int8": 2048}
GEFORCE_AMPERE = {"tf32": 256, "fp16": 512, "bf16": 512, "int8": 2048, "int4": 4096}
GA102 = {"tf32": 512, "fp16": 1024, "bf16": 1024, "int8": 2048, "int4": 4096}
BLACKWELL = {"tf32": 4096, "fp16": 8192, "bf16": 8192} | dict.fromkeys(
    ("fp8", "fp6", "int8"), 16384
)
# Thor's tensor cores do what no other Blackwell's do: 65 536 sparse FP4 operations a cycle and SM.
BLACKWELL_FULL = {"fp16": 8192, "bf16": 8192, "fp8": 16384, "int8": 16384, "fp4": 32768}


def rates(cores: int, clock: float, operations: dict[str, int]) -> dict[str, float]:
    """TFLOP/s or TOP/s by data type."""
    return {dtype: cores * clock * each * GPU for dtype, each in operations.items()}


def bus(pins: float, transfers: float) -> float:
    """GB/s of pins that do so many 10⁹ transfers a second each; 8 pins where no more is known."""
    return pins * transfers / 8


def links(count: int, each: float) -> float:
    """GB/s one way."""
    return count * each


TABLES = ("peak", "vector_peak")
MEASURED_IN = {
    "memory_bandwidth": "GB/s",
    "memory_capacity": "GiB",
    "on_chip_memory": "byte",
    "link_bandwidth": "GB/s",
    "units": "",
    "clock": "GHz",
    "registers": "KiB",
    "shared_memory": "KiB",
    "tensor_memory": "KiB",
    "special_functions": "TFLOP/s",
    "host_link": "GB/s",
    "tdp": "W",
}
# A row for each device, with the fields of accelerators.toml that it publishes. `peak` is that of
# the matrix units, cores at a clock; of a device without them, of its vector units. Capacities are
# stacks or chips of so many GiB, or what a driver reports; caches are bytes as a program is told,
# or by the parts; units are cores over those of a unit, units over the dies, or what a program is
# told; a clock is what a rate makes of cores and operations; special functions are lanes of these
# units times a clock; a host link is lanes times 10⁹ transfers a second, after coding. What no part
# gives, a power limit above all, is typed a second time.
PARTS: dict[str, dict[str, Any]] = {
    "h100": {
        "peak": rates(132, 1.83, HOPPER) | rates(132, 1.98, {"fp64": 256}),
        "vector_peak": rates(132, 1.98, {"fp64": 128, "fp32": 256, "fp16": 512, "bf16": 512}),
        "memory_bandwidth": bus(5 * 1024, 2 * 2.619),
        "memory_capacity": 5 * 16,
        "on_chip_memory": 52428800,
        "link_bandwidth": links(18, 25),
        "units": 16896 / 128,
        "clock": 989.4e3 / 132 / 4096,
        "special_functions": 132 * 16 * 1.83e-3,
        "tdp": 700,
    },
    "h800": {
        "peak": rates(132, 1.83, HOPPER),
        "vector_peak": rates(132, 1.98, {"fp32": 256}),
        "memory_bandwidth": bus(5 * 1024, 2 * 2.619),
        "memory_capacity": 5 * 16,
        "on_chip_memory": 52428800,
        "link_bandwidth": links(8, 25),
        "units": 16896 / 128,
        "tdp": 700,
    },
    "a100": {
        "peak": rates(108, 1.41, AMPERE),
        "vector_peak": rates(108, 1.41, AMPERE_VECTOR),
        "memory_bandwidth": bus(5 * 1024, 2 * 1.593),
        "memory_capacity": 81920 / 1024,
        "on_chip_memory": 41943040,
        "link_bandwidth": links(12, 25),
        "units": 6912 / 64,
        "clock": 312e3 / 108 / 2048,
        "special_functions": 108 * 16 * 1.41e-3,
        "tdp": 400,
    },
    "v100": {
        "peak": rates(80, 1.53, {"fp16": 1024}),
        "vector_peak": rates(80, 1.53, {"fp64": 64, "fp32": 128, "fp16": 256}),
        "memory_bandwidth": bus(4 * 1024, 2 * 0.877),
        "memory_capacity": 34089926656 / 2**30,
        "on_chip_memory": 6144 * 1024,
        "link_bandwidth": links(6, 25),
        "units": 5120 / 64,
        "clock": 125e3 / 80 / 1024,
        "tdp": 300,
    },
    "t4": {
        "peak": rates(40, 1.59, {"fp16": 1024, "int8": 2048, "int4": 4096}),
        "vector_peak": rates(40, 1.59, {"fp32": 128}),
        "memory_bandwidth": bus(256, 2 * 5.001),
        "memory_capacity": 8 * 2,
        "on_chip_memory": 4096 * 1024,
        "units": 2560 / 64,
        "clock": 65e3 / 40 / 1024,
        "tdp": 70,
    },
    "a100-40gb": {
        "peak": rates(108, 1.41, AMPERE),
        "vector_peak": rates(108, 1.41, AMPERE_VECTOR),
        "memory_bandwidth": bus(5 * 1024, 2 * 1.215),
        "memory_capacity": 5 * 8,
        "on_chip_memory": 41943040,
        "link_bandwidth": links(12, 25),
        "units": 6912 / 64,
        "clock": 312e3 / 108 / 2048,
        "tdp": 400,
    },
    "h100-pcie": {
        "peak": rates(114, 1.62, HOPPER) | rates(114, 1.755, {"fp64": 256}),
        "vector_peak": rates(114, 1.755, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(5 * 1024, 2 * 1.593),
        "memory_capacity": 5 * 16,
        "on_chip_memory": 52428800,
        "link_bandwidth": links(12, 25),
        "units": 14592 / 128,
        "clock": 756.5e3 / 114 / 4096,
        "tdp": 350,
    },
    "jetson-agx-orin": {
        "peak": rates(16, 1.3, {"fp16": 2048, "int8": 4096}),
        "vector_peak": rates(16, 1.3, {"fp32": 256, "fp16": 512}),
        "memory_bandwidth": bus(256, 6.4),
        "memory_capacity": 4 * 16,
        "on_chip_memory": 4194304,
        "units": 2048 / 128,
        "tdp": 60,
    },
    "l4": {
        "peak": rates(58, 2.04, ADA),
        "vector_peak": rates(58, 2.04, {"fp32": 256}),
        "memory_bandwidth": bus(192, 2 * 6.251),
        "memory_capacity": 12 * 2,
        "on_chip_memory": 50331648,
        "units": 7424 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "tdp": 72,
    },
    "l40s": {
        "peak": rates(142, 2.52, ADA),
        "vector_peak": rates(142, 2.52, {"fp32": 256}),
        "memory_bandwidth": bus(384, 2 * 9.001),
        "memory_capacity": 24 * 2,
        "on_chip_memory": 100663296,
        "units": 18176 / 128,
        "clock": 733e3 / 2 / 142 / 1024,
        "tdp": 350,
    },
    "h200": {
        "peak": rates(132, 1.83, HOPPER) | rates(132, 1.98, {"fp64": 256}),
        "vector_peak": rates(132, 1.98, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(6 * 1024, 6.25),
        "memory_capacity": 143771 / 1024,
        "on_chip_memory": 62914560,
        "link_bandwidth": links(18, 25),
        "units": 16896 / 128,
        "clock": 989.4e3 / 132 / 4096,
        "special_functions": 132 * 16 * 1.83e-3,
        "tdp": 700,
    },
    "b200": {
        "peak": rates(148, 1.85, BLACKWELL | {"fp4": 32768}) | rates(148, 1.965, {"fp64": 128}),
        "vector_peak": rates(148, 1.965, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(7680, 2 * 3.996),
        "memory_capacity": 183359 / 1024,
        "on_chip_memory": 132644864,
        "link_bandwidth": links(18, 50),
        "units": 148,
        "clock": 75e3 / 148 / 256,
        "special_functions": 5.0,
        "tdp": 1000,
    },
    # The rack's totals, most of them sparse, over its 72 GPUs.
    "gb200": {
        "peak": {"fp64": 2880 / 72, "tf32": 180e3 / 2 / 72, "fp4": 1440e3 / 2 / 72}
        | dict.fromkeys(("fp16", "bf16"), 360e3 / 2 / 72)
        | dict.fromkeys(("fp8", "fp6", "int8"), 720e3 / 2 / 72),
        "vector_peak": {"fp64": 2880 / 72, "fp32": 5760 / 72},
        "memory_bandwidth": bus(7936, 2 * 3.996),
        "memory_capacity": 197897748480 / 2**30,
        "on_chip_memory": 135528448,
        "link_bandwidth": links(18, 50),
        "units": 152,
        "clock": 80e3 / 152 / 256,
        "special_functions": 5.0,
        "tdp": 1200,
    },
    "b300": {
        "peak": rates(148, 1.85, dict.fromkeys(("fp16", "bf16"), 8192))
        | rates(148, 1.85, dict.fromkeys(("fp8", "fp6"), 16384))
        | {"tf32": 2200 / 2, "fp4": 14e3, "int8": 307 / 2},
        "vector_peak": rates(148, 1.965, {"fp32": 256}),
        "memory_bandwidth": bus(62e3 / 8 * 8, 1),  # the board's 62 TB/s
        "memory_capacity": 275040 / 1024,
        "on_chip_memory": 135528448,
        "link_bandwidth": links(18, 50),
        "units": 158,
        "clock": 75e3 / 148 / 256,
        "special_functions": 10.7,
        "tdp": 1100,
    },
    "gb300": {
        "peak": {"tf32": 180e3 / 2 / 72, "fp4": 1080e3 / 72, "int8": 24e3 / 2 / 72}
        | dict.fromkeys(("fp16", "bf16"), 360e3 / 2 / 72)
        | dict.fromkeys(("fp8", "fp6"), 720e3 / 2 / 72),
        "vector_peak": {"fp32": 5760 / 72},
        "memory_bandwidth": bus(7936, 2 * 3.996),
        "memory_capacity": 284208 / 1024,
        "on_chip_memory": 135528448,
        "link_bandwidth": links(18, 50),
        "units": 152,
        "clock": 80e3 / 152 / 256,
        "special_functions": 10.7,
        "tdp": 1400,
    },
    "gh200": {
        "peak": rates(132, 1.83, HOPPER),
        "vector_peak": rates(132, 1.98, {"fp32": 256}),
        "memory_bandwidth": bus(6 * 1024, 6.25),
        "memory_capacity": 143771 / 1024,
        "on_chip_memory": 62914560,
        "link_bandwidth": links(18, 25),
    },
    "rtx-4090": {
        "peak": rates(128, 2.52, GEFORCE | {"int4": 4096}),
        "vector_peak": rates(128, 2.52, {"fp64": 4, "fp32": 256}),
        "memory_bandwidth": bus(384, 21),
        "memory_capacity": 12 * 2,
        "on_chip_memory": 73728 * 1024,
        "units": 16384 / 128,
        "clock": 82.58e3 / 128 / 256,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "tdp": 450,
    },
    "rtx-5090": {
        "peak": rates(170, 2.407, GEFORCE | {"fp4": 4096}),
        "vector_peak": rates(170, 2.407, {"fp32": 256}),
        "memory_bandwidth": bus(512, 28),
        "memory_capacity": 16 * 2,
        "on_chip_memory": 98304 * 1024,
        "units": 21760 / 128,
        "clock": 104.8e3 / 170 / 256,
        "host_link": 16 * 32 / 8 * 128 / 130,
        "tdp": 575,
    },
    "rtx-pro-6000": {
        "peak": rates(188, 2.43, dict.fromkeys(("fp16", "bf16"), 1024))
        | rates(188, 2.43, {"fp8": 2048, "int8": 2048, "fp4": 4096}),
        "vector_peak": rates(188, 2.43, {"fp32": 256}),
        "memory_bandwidth": bus(512, 28),
        "memory_capacity": 97887 / 1024,
        "on_chip_memory": 134217728,
        "units": 24064 / 128,
        "clock": 467.8e3 / 188 / 1024,
        "host_link": 16 * 32 / 8 * 128 / 130,
        "tdp": 600,
    },
    "gb10": {
        "peak": rates(48, 2.54, {"fp16": 512, "bf16": 512, "fp8": 2048, "fp4": 4096}),
        "vector_peak": rates(48, 2.54, {"fp32": 256}),
        "memory_bandwidth": bus(256, 8.533),
        "memory_capacity": 8 * 16,
        "on_chip_memory": 25165824,
        "units": 6144 / 128,
        "tdp": 140,
    },
    "a10g": {"memory_bandwidth": bus(384, 12.5), "memory_capacity": 12 * 2},
    "jetson-thor": {
        "peak": rates(20, 1.57, BLACKWELL_FULL),
        "memory_bandwidth": bus(256, 8.533),
        "memory_capacity": 128,
        "on_chip_memory": 32 * 2**20,
        "units": 2560 / 128,
        "clock": 1.570,
        "tdp": 130,
    },
    "jetson-orin-nano": {
        "peak": rates(8, 1.02, {"fp16": 2048, "int8": 4096}),
        "memory_bandwidth": bus(128, 6.4),
        "memory_capacity": 4 * 2,
        "on_chip_memory": 2097152,
        "tdp": 25,
    },
    # Arrays of 128 × 128, of 256 × 256 from the v6e on; two operations in each cell.
    "tpu-v4": {
        "peak": rates(2 * 4, 1.05, dict.fromkeys(("bf16", "int8"), 2 * 128**2)),
        "memory_bandwidth": bus(4 * 1024, 2.4),
        "memory_capacity": 4 * 8,
        "on_chip_memory": 128 * 2**20,
        "link_bandwidth": links(6, 50),
        "clock": 275e3 / 8 / 32768,
        "tdp": 192,
    },
    "tpu-v5e": {
        "peak": rates(4, 1.5, {"bf16": 2 * 128**2, "int8": 4 * 128**2}),
        "memory_bandwidth": bus(2 * 1024, 3.2),
        "memory_capacity": 17.2e9 / 2**30,
        "on_chip_memory": 128 * 2**20,
        "link_bandwidth": links(4, 50),
    },
    "tpu-v5p": {
        "peak": rates(2 * 4, 1.75, {"bf16": 2 * 128**2, "int8": 4 * 128**2}),
        "memory_bandwidth": bus(6 * 1024, 3.6),
        "memory_capacity": 6 * 16,
        "on_chip_memory": 2 * 64 * 2**20,
        "link_bandwidth": links(6, 100),
        "clock": 459e3 / 8 / 32768,
    },
    "tpu-v6e": {
        "peak": rates(4, 1.75, {"bf16": 2 * 256**2, "fp8": 2 * 256**2, "int8": 4 * 256**2}),
        "memory_bandwidth": bus(4 * 1024, 3.2),
        "memory_capacity": 34.4e9 / 2**30,
        "on_chip_memory": 128 * 2**20,
        "link_bandwidth": links(4, 100),
    },
    "tpu-v7": {
        "peak": {"bf16": 42.5e6 / 2 / 9216, "fp8": 42.5e6 / 9216},  # a pod's 42.5 EFLOP/s in FP8
        "memory_bandwidth": bus(8 * 1024, 7.2),
        "memory_capacity": 206e9 / 2**30,
        "on_chip_memory": 2 * 64 * 2**20,
        "link_bandwidth": links(6, 100),
    },
    "mi300x": {
        "peak": rates(304, 2.1, CDNA),
        "vector_peak": rates(304, 2.1, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(8 * 1024, 5.2),
        "memory_capacity": 8 * 24,
        "on_chip_memory": 128 * 2 * 2**20,
        "link_bandwidth": links(7, 64),
        "units": 8 * 38,
        "clock": 1307.4e3 / 304 / 2048,
        "tdp": 750,
    },
    "mi325x": {
        "peak": rates(304, 2.1, CDNA),
        "vector_peak": rates(304, 2.1, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(8 * 1024, 6),
        "memory_capacity": 8 * 32,
        "on_chip_memory": 128 * 2 * 2**20,
        "link_bandwidth": links(7, 64),
        "units": 8 * 38,
        "clock": 1307.4e3 / 304 / 2048,
        "tdp": 1000,
    },
    "mi355x": {
        "peak": rates(256, 2.4, {"fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192})
        | rates(256, 2.4, {"fp6": 16384, "fp4": 16384}),
        "vector_peak": rates(256, 2.4, {"fp32": 256}),
        "memory_bandwidth": bus(8 * 1024, 8),
        "memory_capacity": 8 * 36,
        "on_chip_memory": 128 * 2 * 2**20,
        "link_bandwidth": links(7, 76.5),
        "units": 8 * 32,
        "clock": 157.3e3 / 256 / 256,
        "tdp": 1400,
    },
    "mi250x": {
        "peak": rates(220, 1.7, {"fp16": 1024, "bf16": 1024, "int8": 1024}),
        "vector_peak": rates(220, 1.7, {"fp32": 128}),
        "memory_bandwidth": bus(8 * 1024, 3.2),
        "memory_capacity": 8 * 16,
        "on_chip_memory": 2 * 8 * 2**20,
        "link_bandwidth": links(7, 50),
        "units": 2 * 110,
        "clock": 383e3 / 220 / 1024,
        "tdp": 560,
    },
    "mi350x": {
        "peak": rates(256, 2.2, {"fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192})
        | rates(256, 2.2, {"fp6": 16384, "fp4": 16384}),
        "vector_peak": rates(256, 2.2, {"fp32": 256}),
        "memory_bandwidth": bus(8 * 1024, 8),
        "memory_capacity": 8 * 36,
        "on_chip_memory": 128 * 2 * 2**20,
        "link_bandwidth": links(7, 76.5),
        "units": 8 * 32,
        "clock": 144.2e3 / 256 / 256,
        "tdp": 1000,
    },
    "arc-b580": {
        "peak": rates(20, 2.67, {"fp16": 2048, "bf16": 2048, "int8": 4096, "int4": 8192}),
        "vector_peak": rates(20, 2.67, {"fp32": 256}),
        "memory_bandwidth": bus(192, 19),
        "memory_capacity": 6 * 2,
        "on_chip_memory": 18874368,
        "units": 2560 / 128,
        "clock": 13.67e3 / 20 / 256,
        "host_link": 8 * 16 / 8 * 128 / 130,
        "tdp": 190,
    },
    "arc-pro-b60": {
        "peak": rates(20, 2.4, {"bf16": 2048, "int8": 4096}),
        "vector_peak": rates(20, 2.4, {"fp32": 256}),
        "memory_bandwidth": bus(192, 19),
        "memory_capacity": 25769803776 / 2**30,
        "on_chip_memory": 18874368,
        "units": 2560 / 128,
        "host_link": 8 * 32 / 8 * 128 / 130,
        "tdp": 200,
    },
    # An instance of 16 chips: 20.8 PFLOP/s in FP8, 10.7 in BF16, 2.9 in FP32, 46 TB/s.
    "trainium2": {
        "peak": {"fp8": 20.8e3 / 16, "fp32": 2.9e3 / 16}
        | dict.fromkeys(("bf16", "fp16", "tf32"), 10.7e3 / 16),
        "memory_bandwidth": bus(4 * 1024, 46 / 16 / 4 / 0.128),
        "memory_capacity": 4 * 24,
        "on_chip_memory": 8 * 28 * 2**20,
        "link_bandwidth": links(4, 160),
    },
    "inferentia2": {
        "peak": {"int8": 2 * 190, "fp32": 190 / 4}
        | dict.fromkeys(("fp16", "bf16", "tf32", "fp8"), 4 * 47.5),
        "vector_peak": {"fp32": 2 * 2.3},
        "memory_bandwidth": bus(8, 820 * 2**30 / 1e9),  # printed in GiB/s
        "memory_capacity": 32,
        "link_bandwidth": links(2, 48 * 2**30 / 1e9),
    },
    # Bandwidth and capacity are so many times a Trainium2's.
    "trainium3": {
        "peak": {"fp32": 183, "fp8": 2517, "fp4": 2517}
        | dict.fromkeys(("bf16", "fp16", "tf32"), 671),
        "vector_peak": {"fp32": 8 * 1.2},
        "memory_bandwidth": bus(8, 1.7 * 2900),
        "memory_capacity": 96 * 1.5,
        "on_chip_memory": 8 * 32 * 2**20,
        "link_bandwidth": links(2, 640),
    },
    "tpu-8t": {
        "peak": {"bf16": 996.1, "int8": 996.1, "fp8": 6 * 996.1, "int4": 12 * 996.1, "fp4": 12.6e3},
        "memory_bandwidth": bus(8, 6500),
        "memory_capacity": 231e9 / 2**30,
        "on_chip_memory": 128 * 2**20,
        "link_bandwidth": links(1, 19.2e3 / 8 / 2),
    },
    "tpu-8i": {
        "peak": {"bf16": 1101, "fp8": 8 * 1101, "fp4": 10.1e3},
        "memory_bandwidth": bus(8, 8600),
        "memory_capacity": 309e9 / 2**30,
        "on_chip_memory": 2 * 192 * 2**20,
    },
    "gaudi2": {
        "peak": rates(2, 1.65, {"bf16": 2 * 256**2, "fp8": 4 * 256**2}),
        "memory_bandwidth": bus(6 * 1024, 3.2),
        "memory_capacity": 6 * 16e9 / 2**30,
        "on_chip_memory": 48 * 2**20,
        "link_bandwidth": links(24, 100 / 8),
        "clock": 432e3 / 2 / 131072,
        "tdp": 600,
    },
    "cerebras-wse-3": {
        "memory_bandwidth": bus(8, 21e6),
        "memory_capacity": 44e9 / 2**30,
        "on_chip_memory": 44e9,
        "tdp": 23e3,
    },
    "groq-lpu": {
        "peak": {"int8": 4 * 188, "fp16": 750 / 4},
        "memory_bandwidth": bus(8, 80e3),
        "memory_capacity": 230e6 / 2**30,
        "on_chip_memory": 230e6,
        "tdp": 300,
    },
    "gaudi3": {
        "peak": rates(8, 1.75, dict.fromkeys(("bf16", "fp8"), 2 * 256**2))
        | rates(8, 1.75, {"fp16": 256**2 // 2, "tf32": 256**2 // 2, "fp32": 256**2 // 4}),
        "vector_peak": rates(64, 1.75, {"bf16": 256}),
        "memory_bandwidth": bus(8 * 1024, 3.6),
        "memory_capacity": 8 * 16e9 / 2**30,
        "on_chip_memory": 4 * 24 * 2**20,
        "link_bandwidth": links(24, 200 / 8),
        "clock": 1677e3 / 8 / 131072,
        "tdp": 900,
    },
    "phone-npu": {
        "peak": {"int8": 2 * 17},  # twice the chip before it
        "memory_bandwidth": bus(64, 6.4),
        "memory_capacity": 8,
        "tdp": 4,
    },
    "snapdragon-8-gen-3": {"memory_bandwidth": bus(64, 2 * 4.8), "memory_capacity": 24, "tdp": 4},
    "snapdragon-8-elite": {"memory_bandwidth": bus(64, 2 * 5.3), "memory_capacity": 24, "tdp": 4},
    "apple-m1": {
        "peak": rates(8, 1.278, {"fp32": 256}),
        "memory_bandwidth": bus(128, 4.266),
        "memory_capacity": 16,
        "units": 8,
    },
    "apple-m1-max": {
        "peak": rates(32, 1.296, {"fp32": 256}),
        "memory_bandwidth": bus(8, 6 * 66.67),  # six times an M1's
        "memory_capacity": 64,
        "units": 32,
    },
    "apple-m2": {"peak": {"fp32": 3.579}, "memory_bandwidth": bus(128, 6.4), "memory_capacity": 24},
    "apple-m3-ultra": {
        "peak": rates(80, 1.398, {"fp32": 256}),
        "memory_bandwidth": bus(8, 819),
        "memory_capacity": 512,
        "units": 2 * 40,
    },
    "apple-m5": {"memory_bandwidth": bus(8, 153), "memory_capacity": 32, "units": 10},
    "apple-m5-max": {"memory_bandwidth": bus(8, 614), "memory_capacity": 128, "units": 40},
    "apple-m4-max": {
        "peak": rates(40, 1.38, {"fp32": 256}),
        "memory_bandwidth": bus(512, 8.533),
        "memory_capacity": 4 * 32,
        "units": 40,
    },
    "rtx-3060": {
        "peak": rates(3584 // 128, 1.777, GEFORCE_AMPERE),
        "vector_peak": rates(3584 // 128, 1.777, {"fp32": 256}),
        "memory_bandwidth": bus(192, 15),
        "memory_capacity": 12,
        "on_chip_memory": 3 * 2**20,
        "units": 3584 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 12.74e3 / 28 / 256,
        "tdp": 170,
    },
    "rtx-3070": {
        "peak": rates(5888 // 128, 1.73, GEFORCE_AMPERE),
        "vector_peak": rates(5888 // 128, 1.73, {"fp32": 256}),
        "memory_bandwidth": bus(256, 14),
        "memory_capacity": 8,
        "on_chip_memory": 4 * 2**20,
        "units": 5888 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 20.4e3 / 46 / 256,
        "tdp": 220,
    },
    "rtx-3080": {
        "peak": rates(8704 // 128, 1.71, GEFORCE_AMPERE),
        "vector_peak": rates(8704 // 128, 1.71, {"fp32": 256}),
        "memory_bandwidth": bus(320, 19),
        "memory_capacity": 10,
        "on_chip_memory": 5 * 2**20,
        "units": 8704 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 29.8e3 / 68 / 256,
        "tdp": 320,
    },
    "rtx-3090": {
        "peak": rates(10496 // 128, 1.695, GEFORCE_AMPERE),
        "vector_peak": rates(10496 // 128, 1.695, {"fp32": 256}),
        "memory_bandwidth": bus(384, 19.5),
        "memory_capacity": 24,
        "on_chip_memory": 6 * 2**20,
        "units": 10496 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 35.6e3 / 82 / 256,
        "tdp": 350,
    },
    "rtx-3090-ti": {
        "peak": rates(10752 // 128, 1.86, GEFORCE_AMPERE),
        "vector_peak": rates(10752 // 128, 1.86, {"fp32": 256}),
        "memory_bandwidth": bus(384, 21),
        "memory_capacity": 24,
        "on_chip_memory": 6 * 2**20,
        "units": 10752 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 40.0e3 / 84 / 256,
        "tdp": 450,
    },
    "rtx-4060-ti": {
        "peak": rates(4352 // 128, 2.535, GEFORCE | {"int4": 4096}),
        "vector_peak": rates(4352 // 128, 2.535, {"fp32": 256}),
        "memory_bandwidth": bus(128, 18),
        "memory_capacity": 16,
        "on_chip_memory": 32 * 2**20,
        "units": 4352 / 128,
        "host_link": 8 * 16 / 8 * 128 / 130,
        "clock": 22.06e3 / 34 / 256,
        "tdp": 165,
    },
    "rtx-4070-ti": {
        "peak": rates(7680 // 128, 2.61, GEFORCE | {"int4": 4096}),
        "vector_peak": rates(7680 // 128, 2.61, {"fp32": 256}),
        "memory_bandwidth": bus(192, 21),
        "memory_capacity": 12,
        "on_chip_memory": 48 * 2**20,
        "units": 7680 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 40.09e3 / 60 / 256,
        "tdp": 285,
    },
    "rtx-4080": {
        "peak": rates(9728 // 128, 2.505, GEFORCE | {"int4": 4096}),
        "vector_peak": rates(9728 // 128, 2.505, {"fp32": 256}),
        "memory_bandwidth": bus(256, 22.4),
        "memory_capacity": 16,
        "on_chip_memory": 64 * 2**20,
        "units": 9728 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 48.7e3 / 76 / 256,
        "tdp": 320,
    },
    "rtx-5060-ti": {
        "peak": rates(4608 // 128, 2.572, GEFORCE | {"fp4": 4096}),
        "vector_peak": rates(4608 // 128, 2.572, {"fp32": 256}),
        "memory_bandwidth": bus(128, 28),
        "memory_capacity": 16,
        "units": 4608 / 128,
        "host_link": 16 * 32 / 8 * 128 / 130,
        "clock": 23.7e3 / 36 / 256,
        "tdp": 180,
    },
    "rtx-5080": {
        "peak": rates(10752 // 128, 2.617, GEFORCE | {"fp4": 4096}),
        "vector_peak": rates(10752 // 128, 2.617, {"fp32": 256}),
        "memory_bandwidth": bus(256, 30),
        "memory_capacity": 16,
        "on_chip_memory": 64 * 2**20,
        "units": 10752 / 128,
        "host_link": 16 * 32 / 8 * 128 / 130,
        "clock": 56.28e3 / 84 / 256,
        "tdp": 360,
    },
    "rtx-a6000": {
        "peak": rates(10752 // 128, 1.8, GA102),
        "vector_peak": rates(10752 // 128, 1.8, {"fp32": 256}),
        "memory_bandwidth": bus(384, 16),
        "memory_capacity": 48,
        "on_chip_memory": 6 * 2**20,
        "link_bandwidth": links(4, 56.25 / 4),
        "units": 10752 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 38.71e3 / 84 / 256,
        "tdp": 300,
    },
    "a40": {
        "peak": rates(10752 // 128, 1.74, GA102),
        "vector_peak": rates(10752 // 128, 1.74, {"fp32": 256}),
        "memory_bandwidth": bus(384, 14.5),
        "memory_capacity": 48,
        "on_chip_memory": 6 * 2**20,
        "link_bandwidth": links(4, 56.25 / 4),
        "units": 10752 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 37.42e3 / 84 / 256,
        "tdp": 300,
    },
    "a10": {
        "peak": rates(9216 // 128, 1.695, GA102),
        "vector_peak": rates(9216 // 128, 1.695, {"fp32": 256}),
        "memory_bandwidth": bus(384, 12.5),
        "memory_capacity": 24,
        "on_chip_memory": 6 * 2**20,
        "units": 9216 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 31.24e3 / 72 / 256,
        "tdp": 150,
    },
    "rtx-6000-ada": {
        "peak": rates(18176 // 128, 2.505, ADA),
        "vector_peak": rates(18176 // 128, 2.505, {"fp32": 256}),
        "memory_bandwidth": bus(384, 20),
        "memory_capacity": 48,
        "on_chip_memory": 96 * 2**20,
        "units": 18176 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 91.06e3 / 142 / 256,
        "tdp": 300,
    },
    "rtx-5000-ada": {
        "peak": rates(12800 // 128, 2.55, ADA | {"int4": 4096}),
        "vector_peak": rates(12800 // 128, 2.55, {"fp32": 256}),
        "memory_bandwidth": bus(256, 18),
        "memory_capacity": 32,
        "on_chip_memory": 72 * 2**20,
        "units": 12800 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 65.28e3 / 100 / 256,
        "tdp": 250,
    },
    "rtx-4000-ada": {
        "peak": rates(6144 // 128, 2.175, ADA | {"int4": 4096}),
        "vector_peak": rates(6144 // 128, 2.175, {"fp32": 256}),
        "memory_bandwidth": bus(160, 18),
        "memory_capacity": 20,
        "on_chip_memory": 48 * 2**20,
        "units": 6144 / 128,
        "host_link": 16 * 16 / 8 * 128 / 130,
        "clock": 26.73e3 / 48 / 256,
        "tdp": 130,
    },
    "a100-pcie": {
        "peak": {name: rate for name, rate in rates(108, 1.41, AMPERE).items() if name != "int4"},
        "vector_peak": rates(108, 1.41, {"fp32": 128}),
        "memory_bandwidth": bus(5 * 1024, 2 * 1.512),
        "memory_capacity": 5 * 16,
        "on_chip_memory": 41943040,
        "link_bandwidth": links(12, 25),
        "units": 6912 / 64,
        "clock": 312e3 / 108 / 2048,
        "tdp": 300,
    },
    "a30": {
        "peak": rates(56, 1.44, {"fp16": 2048, "bf16": 2048, "int8": 4096}),
        "memory_bandwidth": bus(3 * 1024, 2 * 1.215),
        "memory_capacity": 24,
        "tdp": 165,
    },
    "h200-nvl": {
        "peak": rates(132, 1.55, HOPPER) | rates(132, 1.785, {"fp64": 256}),
        "vector_peak": rates(132, 1.785, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(6 * 1024, 6.25),
        "memory_capacity": 143771 / 1024,
        "link_bandwidth": links(18, 25),
        "units": 132,
        "tdp": 600,
    },
    "h20": {
        "peak": {"tf32": 148 / 2, "int8": 2 * 148}
        | dict.fromkeys(("fp16", "bf16"), 148)
        | {"fp8": 296},
        "vector_peak": {"fp32": 44},
        "memory_bandwidth": bus(5 * 1024, 6.25),
        "memory_capacity": 6 * 16,
        "link_bandwidth": links(18, 25),
        "units": 78,
        "tdp": 400,
    },
    "mi210": {
        "peak": rates(
            104, 1.7, {"fp64": 256, "fp32": 256, "fp16": 1024, "bf16": 1024, "int8": 1024}
        ),
        "vector_peak": rates(104, 1.7, {"fp64": 128, "fp32": 128}),
        "memory_bandwidth": bus(4 * 1024, 3.2),
        "memory_capacity": 4 * 16,
        "units": 6656 / 64,
        "clock": 181.04e3 / 104 / 1024,
        "tdp": 300,
    },
    "mi300a": {
        "peak": rates(14592 // 64, 2.1, CDNA),
        "vector_peak": rates(14592 // 64, 2.1, {"fp64": 128, "fp32": 256}),
        "memory_bandwidth": bus(8 * 1024, 5.2),
        "memory_capacity": 8 * 16,
        "units": 14592 / 64,
    },
    "apple-m1-pro": {
        "peak": rates(16, 1.296, {"fp32": 256}),
        "memory_bandwidth": bus(256, 6.4),
        "memory_capacity": 32,
        "units": 16,
    },
    "apple-m1-ultra": {
        "peak": rates(2 * 32, 1.296, {"fp32": 256}),
        "memory_bandwidth": 2 * bus(512, 6.4),
        "memory_capacity": 128,
        "units": 64,
    },
    "apple-m2-pro": {
        "peak": {"fp32": 19 * 3.579 / 10},
        "memory_bandwidth": bus(256, 6.4),
        "memory_capacity": 32,
        "units": 19,
    },
    "apple-m2-max": {
        "peak": {"fp32": 38 * 3.579 / 10},
        "memory_bandwidth": bus(512, 6.4),
        "memory_capacity": 96,
        "units": 38,
    },
    "apple-m2-ultra": {
        "peak": {"fp32": 2 * 38 * 3.579 / 10},
        "memory_bandwidth": 2 * bus(512, 6.4),
        "memory_capacity": 192,
        "units": 76,
    },
    "apple-m3": {
        "peak": rates(10, 1.398, {"fp32": 256}),
        "memory_bandwidth": bus(128, 6.4),
        "memory_capacity": 24,
        "units": 10,
    },
    "apple-m3-pro": {
        "peak": rates(18, 1.398, {"fp32": 256}),
        "memory_bandwidth": bus(192, 6.4),
        "memory_capacity": 36,
        "units": 18,
    },
    "apple-m3-max": {
        "peak": rates(40, 1.398, {"fp32": 256}),
        "memory_bandwidth": bus(512, 6.4),
        "memory_capacity": 128,
        "units": 40,
    },
    "apple-m4": {
        "peak": rates(10, 1.38, {"fp32": 256}),
        "memory_bandwidth": bus(128, 7.5),
        "memory_capacity": 32,
        "units": 10,
    },
    "apple-m4-pro": {
        "peak": rates(20, 1.38, {"fp32": 256}),
        "memory_bandwidth": bus(256, 8.533),
        "memory_capacity": 64,
        "units": 20,
    },
    "ryzen-ai-max-395": {
        "peak": rates(40, 2.9, {"fp16": 512, "bf16": 512}),
        "vector_peak": rates(40, 2.9, {"fp32": 256}),
        "memory_bandwidth": bus(256, 8),
        "memory_capacity": 128,
        "units": 2 * 20,
        "clock": 2.900,
        "tdp": 55,
    },
    "xeon-8480": {
        "peak": rates(56, 2, {"bf16": 1024, "int8": 2048}),
        "vector_peak": rates(56, 2, {"fp64": 32, "fp32": 64}),
        "memory_bandwidth": bus(8 * 64, 4.8),
        "memory_capacity": 16 * 256,
        "on_chip_memory": 107520 * 1024,
        "units": 56,
        "clock": 2.0,
        "tdp": 350,
    },
    "ryzen-7840u": {
        "peak": rates(8, 3.3, {"fp64": 16, "fp32": 32}),
        "memory_bandwidth": bus(2 * 64, 7.5),
        "memory_capacity": 4 * 64,
        "on_chip_memory": 8 * 2 * 2**20,
        "units": 8,
        "clock": 3.3,
        "tdp": 28,
    },
    "xeon-6980p": {
        "peak": rates(128, 2, {"fp16": 1024, "bf16": 1024, "int8": 2048}),
        "memory_bandwidth": bus(12 * 64, 8.8),
        "on_chip_memory": 3 * 168 * 2**20,
        "units": 128,
        "clock": 2.0,
        "tdp": 500,
    },
    "epyc-9755": {
        "peak": rates(128, 2.7, {"fp64": 32, "fp32": 64}),
        "memory_bandwidth": bus(12 * 64, 6),
        "on_chip_memory": 16 * 32 * 2**20,
        "units": 16 * 8,
        "clock": 2.7,
        "tdp": 500,
    },
    "rubin": {
        "peak": {"tf32": 2e3, "fp16": 4e3, "bf16": 4e3, "int8": 2.5e3, "fp4": 2 * 17.5e3}
        | dict.fromkeys(("fp8", "fp6"), 17.5e3),
        "vector_peak": {"fp32": 130},
        "memory_bandwidth": bus(8, 22e3),
        "memory_capacity": 288e9 / 2**30,
        "link_bandwidth": links(36, 50),
        "host_link": 1800 / 2,
    },
    "mi455x": {
        "peak": {"fp16": 5e3, "bf16": 5e3, "int8": 5e3, "fp4": 40.3e3 / 2}
        | dict.fromkeys(("fp8", "fp6"), 20.1e3 / 2),
        "vector_peak": {"fp32": 315},
        "memory_bandwidth": bus(8, 23.3e3),
        "memory_capacity": 432e9 / 2**30,
        "on_chip_memory": 192e6,
        "link_bandwidth": links(1, 3600 / 2),
        "clock": 2.400,
    },
}
HOLDS = {  # KiB of each unit: what a program manages, and what matrix units add up in
    **dict.fromkeys(("a100",), (164, 0)),
    **dict.fromkeys(("h100", "h200"), (228, 0)),
    **dict.fromkeys(("b200", "gb200", "b300", "gb300"), (228, 128 * 512 * 4 / 1024)),
    **dict.fromkeys(("mi300x", "mi325x"), (64, 0)),
    "mi355x": (160, 0),
}
for key, (shared, tensor) in HOLDS.items():
    vectors = 4 * 128 if key.startswith("mi") else 65536 * 4 / 1024
    PARTS[key] |= {"registers": vectors, "shared_memory": shared}
    PARTS[key] |= {"tensor_memory": tensor} if tensor else {}
PARTS["b300"]["peak"]["fp64"] = 10 / 8  # of the board's eight


def fields() -> dict[tuple[str, str], Quantity]:
    """Every published field of every device, but sparse peaks: those are twice the dense ones."""
    found = {}
    for key in EVERY:
        device = hardware.get(key)
        for name, record in device.records.items():
            if record.provenance.kind != "unpublished":
                found[key, name] = record.quantity
        for table in TABLES:
            for dtype, record in device.peaks[table].items():
                if record.provenance.kind != "unpublished":
                    found[key, f"{table} {dtype}"] = record.quantity
    return found


def by_parts() -> dict[tuple[str, str], tuple[float, str]]:
    """The same fields, computed here, each with its unit."""
    found = {}
    for key, parts in PARTS.items():
        for name, value in parts.items():
            for dtype, peak in value.items() if name in TABLES else ():
                unit = "TOP/s" if dtype.startswith("int") else "TFLOP/s"
                found[key, f"{name} {dtype}"] = (peak, unit)
            if name not in TABLES:
                found[key, name] = (value, MEASURED_IN[name])
    return found


def test_every_field_has_its_parts() -> None:
    missing = {" ".join(name) for name in fields().keys() ^ by_parts().keys()}
    assert not missing, (
        "write in PARTS of tests/calc/test_device_parts.py what each of these fields is made of"
    )


@pytest.mark.parametrize("key", EVERY)
def test_the_parts_make_the_device(key: str) -> None:
    parts = by_parts()
    missing = [name for device, name in fields() if device == key and (key, name) not in parts]
    assert not missing, (
        f"write in PARTS of tests/calc/test_device_parts.py what makes these of {key}:"
        f" {', '.join(missing)}"
    )
    wrong = {
        name: (str(value), parts[key, name])
        for (device, name), value in fields().items()
        if device == key
        and value.m_as(parts[key, name][1]) != pytest.approx(parts[key, name][0], rel=ROUNDING)
    }
    assert not wrong
