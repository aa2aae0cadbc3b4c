"""Each field of a device against what its parts make, rather than its line of the datasheet.

Rates are cores times clock times operations of a core in a cycle, bandwidths the pins of the memory
times the transfers of each, links a number of lanes, capacities stacks of chips or what a driver
reports, caches what a program is told. Datasheets round, hence the tolerance.
"""

from __future__ import annotations

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
BLACKWELL = {"tf32": 4096, "fp16": 8192, "bf16": 8192} | dict.fromkeys(
    ("fp8", "fp6", "int8"), 16384
)
# Thor's tensor cores do what no other Blackwell's do: 65 536 sparse FP4 operations a cycle and SM.
BLACKWELL_FULL = {"fp16": 8192, "bf16": 8192, "fp8": 16384, "int8": 16384, "fp4": 32768}


def rates(cores: int, clock: float, operations: dict[str, int]) -> dict[str, float]:
    """TFLOP/s or TOP/s by data type."""
    return {dtype: cores * clock * each * GPU for dtype, each in operations.items()}


# Matrix units in cores at a clock; of a device without them, its vector units.
PEAKS = {
    "h100": rates(132, 1.83, HOPPER) | rates(132, 1.98, {"fp64": 256}),
    "h100-pcie": rates(114, 1.62, HOPPER) | rates(114, 1.755, {"fp64": 256}),
    "h200": rates(132, 1.83, HOPPER) | rates(132, 1.98, {"fp64": 256}),
    "a100": rates(108, 1.41, AMPERE),
    "a100-40gb": rates(108, 1.41, AMPERE),
    "v100": rates(80, 1.53, {"fp16": 1024}),
    "t4": rates(40, 1.59, {"fp16": 1024, "int8": 2048, "int4": 4096}),
    "l4": rates(58, 2.04, ADA),
    "l40s": rates(142, 2.52, ADA),
    "jetson-agx-orin": rates(16, 1.3, {"fp16": 2048, "int8": 4096}),
    "jetson-orin-nano": rates(8, 1.02, {"fp16": 2048, "int8": 4096}),
    "b200": rates(148, 1.85, BLACKWELL | {"fp4": 32768}) | rates(148, 1.965, {"fp64": 128}),
    # The rack's totals, most of them sparse, over its 72 GPUs.
    "gb200": {"fp64": 2880 / 72, "tf32": 180e3 / 2 / 72, "fp4": 1440e3 / 2 / 72}
    | dict.fromkeys(("fp16", "bf16"), 360e3 / 2 / 72)
    | dict.fromkeys(("fp8", "fp6", "int8"), 720e3 / 2 / 72),
    "b300": rates(148, 1.85, dict.fromkeys(("fp16", "bf16"), 8192))
    | rates(148, 1.85, dict.fromkeys(("fp8", "fp6"), 16384))
    | {"tf32": 2200 / 2, "fp4": 14e3, "int8": 307 / 2},
    "gb300": {"tf32": 180e3 / 2 / 72, "fp4": 1080e3 / 72, "int8": 24e3 / 2 / 72}
    | dict.fromkeys(("fp16", "bf16"), 360e3 / 2 / 72)
    | dict.fromkeys(("fp8", "fp6"), 720e3 / 2 / 72),
    "gh200": rates(132, 1.83, HOPPER),
    "rtx-4090": rates(128, 2.52, GEFORCE | {"int4": 4096}),
    "rtx-5090": rates(170, 2.407, GEFORCE | {"fp4": 4096}),
    "rtx-pro-6000": rates(188, 2.43, dict.fromkeys(("fp16", "bf16"), 1024))
    | rates(188, 2.43, {"fp8": 2048, "int8": 2048, "fp4": 4096}),
    "gb10": rates(48, 2.54, {"fp16": 512, "bf16": 512, "fp8": 2048, "fp4": 4096}),
    # Arrays of 128 × 128, of 256 × 256 from the v6e on; two operations in each cell.
    "tpu-v4": rates(2 * 4, 1.05, dict.fromkeys(("bf16", "int8"), 2 * 128**2)),
    "tpu-v5e": rates(4, 1.5, {"bf16": 2 * 128**2, "int8": 4 * 128**2}),
    "tpu-v5p": rates(2 * 4, 1.75, {"bf16": 2 * 128**2, "int8": 4 * 128**2}),
    "tpu-v6e": rates(4, 1.75, {"bf16": 2 * 256**2, "fp8": 2 * 256**2, "int8": 4 * 256**2}),
    "tpu-v7": {"bf16": 42.5e6 / 2 / 9216, "fp8": 42.5e6 / 9216},  # a pod's 42.5 EFLOP/s in FP8
    "mi300x": rates(304, 2.1, CDNA),
    "mi325x": rates(304, 2.1, CDNA),
    "mi355x": rates(256, 2.4, {"fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192})
    | rates(256, 2.4, {"fp6": 16384, "fp4": 16384}),
    "mi250x": rates(220, 1.7, {"fp16": 1024, "bf16": 1024, "int8": 1024}),
    # An instance of 16 chips: 20.8 PFLOP/s in FP8, 10.7 in BF16, 2.9 in FP32.
    "trainium2": {"fp8": 20.8e3 / 16, "fp32": 2.9e3 / 16}
    | dict.fromkeys(("bf16", "fp16", "tf32"), 10.7e3 / 16),
    "gaudi3": rates(8, 1.75, dict.fromkeys(("bf16", "fp8"), 2 * 256**2))
    | rates(8, 1.75, {"fp16": 256**2 // 2, "tf32": 256**2 // 2, "fp32": 256**2 // 4}),
    "phone-npu": {"int8": 2 * 17},  # twice the chip before it
    "xeon-8480": rates(56, 2, {"bf16": 1024, "int8": 2048}),
    "ryzen-7840u": rates(8, 3.3, {"fp64": 16, "fp32": 32}),
    "jetson-thor": rates(20, 1.57, BLACKWELL_FULL),
    "mi350x": rates(256, 2.2, {"fp16": 4096, "bf16": 4096, "fp8": 8192, "int8": 8192})
    | rates(256, 2.2, {"fp6": 16384, "fp4": 16384}),
    "arc-b580": rates(20, 2.67, {"fp16": 2048, "bf16": 2048, "int8": 4096, "int4": 8192}),
    "arc-pro-b60": rates(20, 2.4, {"bf16": 2048, "int8": 4096}),
    "inferentia2": {"int8": 2 * 190, "fp32": 190 / 4}
    | dict.fromkeys(("fp16", "bf16", "tf32", "fp8"), 4 * 47.5),
    # Typed a second time, as what no part is published of.
    "trainium3": {"fp32": 183, "fp8": 2517, "fp4": 2517}
    | dict.fromkeys(("bf16", "fp16", "tf32"), 671),
    "tpu-8t": {"bf16": 996.1, "int8": 996.1, "fp8": 6 * 996.1, "int4": 12 * 996.1, "fp4": 12.6e3},
    "tpu-8i": {"bf16": 1101, "fp8": 8 * 1101, "fp4": 10.1e3},
    "gaudi2": rates(2, 1.65, {"bf16": 2 * 256**2, "fp8": 4 * 256**2}),
    "groq-lpu": {"int8": 4 * 188, "fp16": 750 / 4},
    "apple-m1": rates(8, 1.278, {"fp32": 256}),
    "apple-m1-max": rates(32, 1.296, {"fp32": 256}),
    "apple-m2": {"fp32": 3.579},
    "apple-m4-max": rates(40, 1.38, {"fp32": 256}),
    "xeon-6980p": rates(128, 2, {"fp16": 1024, "bf16": 1024, "int8": 2048}),
    "epyc-9755": rates(128, 2.7, {"fp64": 32, "fp32": 64}),
    "rubin": {"tf32": 2e3, "fp16": 4e3, "bf16": 4e3, "int8": 2.5e3, "fp4": 2 * 17.5e3}
    | dict.fromkeys(("fp8", "fp6"), 17.5e3),
    "mi455x": {"fp16": 5e3, "bf16": 5e3, "int8": 5e3, "fp4": 40.3e3 / 2}
    | dict.fromkeys(("fp8", "fp6"), 20.1e3 / 2),
}
VECTOR_PEAKS = {
    "h100": rates(132, 1.98, {"fp64": 128, "fp32": 256, "fp16": 512, "bf16": 512}),
    "h100-pcie": rates(114, 1.755, {"fp64": 128, "fp32": 256}),
    "h200": rates(132, 1.98, {"fp64": 128, "fp32": 256}),
    "a100": rates(108, 1.41, AMPERE_VECTOR),
    "a100-40gb": rates(108, 1.41, AMPERE_VECTOR),
    "v100": rates(80, 1.53, {"fp64": 64, "fp32": 128, "fp16": 256}),
    "t4": rates(40, 1.59, {"fp32": 128}),
    "l4": rates(58, 2.04, {"fp32": 256}),
    "l40s": rates(142, 2.52, {"fp32": 256}),
    "jetson-agx-orin": rates(16, 1.3, {"fp32": 256, "fp16": 512}),
    "b200": rates(148, 1.965, {"fp64": 128, "fp32": 256}),
    "gb200": {"fp64": 2880 / 72, "fp32": 5760 / 72},
    "b300": rates(148, 1.965, {"fp32": 256}),
    "gb300": {"fp32": 5760 / 72},
    "gh200": rates(132, 1.98, {"fp32": 256}),
    "rtx-4090": rates(128, 2.52, {"fp64": 4, "fp32": 256}),
    "rtx-5090": rates(170, 2.407, {"fp32": 256}),
    "gb10": rates(48, 2.54, {"fp32": 256}),
    "mi355x": rates(256, 2.4, {"fp32": 256}),
    "mi250x": rates(220, 1.7, {"fp32": 128}),
    "mi300x": rates(304, 2.1, {"fp64": 128, "fp32": 256}),
    "mi325x": rates(304, 2.1, {"fp64": 128, "fp32": 256}),
    "gaudi3": rates(64, 1.75, {"bf16": 256}),
    "xeon-8480": rates(56, 2, {"fp64": 32, "fp32": 64}),
    "rtx-pro-6000": rates(188, 2.43, {"fp32": 256}),
    "mi350x": rates(256, 2.2, {"fp32": 256}),
    "arc-b580": rates(20, 2.67, {"fp32": 256}),
    "arc-pro-b60": rates(20, 2.4, {"fp32": 256}),
    "inferentia2": {"fp32": 2 * 2.3},
    "trainium3": {"fp32": 8 * 1.2},
    "rubin": {"fp32": 130},
    "mi455x": {"fp32": 315},
}
# Pins, and 10⁹ transfers a second on each.
BUSES = {
    "h100": (5 * 1024, 2 * 2.619),
    "h100-pcie": (5 * 1024, 2 * 1.593),
    "h200": (6 * 1024, 6.25),
    "a100": (5 * 1024, 2 * 1.593),
    "a100-40gb": (5 * 1024, 2 * 1.215),
    "v100": (4 * 1024, 2 * 0.877),
    "t4": (256, 2 * 5.001),
    "l4": (192, 2 * 6.251),
    "l40s": (384, 2 * 9.001),
    "jetson-agx-orin": (256, 6.4),
    "jetson-orin-nano": (128, 6.4),
    "b200": (7680, 2 * 3.996),
    "gb200": (7936, 2 * 3.996),
    "b300": (62e3 / 8 * 8, 1),  # the board's 62 TB/s
    "gb300": (7936, 2 * 3.996),
    "gh200": (6 * 1024, 6.25),
    "rtx-4090": (384, 21),
    "rtx-5090": (512, 28),
    "rtx-pro-6000": (512, 28),
    "gb10": (256, 8.533),
    "mi355x": (8 * 1024, 8),
    "mi250x": (8 * 1024, 3.2),
    "apple-m4-max": (512, 8.533),
    "tpu-v4": (4 * 1024, 2.4),
    "tpu-v5e": (2 * 1024, 3.2),
    "tpu-v5p": (6 * 1024, 3.6),
    "tpu-v6e": (4 * 1024, 3.2),
    "tpu-v7": (8 * 1024, 7.2),
    "mi300x": (8 * 1024, 5.2),
    "mi325x": (8 * 1024, 6),
    "trainium2": (4 * 1024, 46 / 16 / 4 / 0.128),  # an instance of 16 chips has 46 TB/s
    "gaudi3": (8 * 1024, 3.6),
    "phone-npu": (64, 6.4),
    "snapdragon-8-gen-3": (64, 2 * 4.8),
    "xeon-8480": (8 * 64, 4.8),
    "ryzen-7840u": (2 * 64, 7.5),
    "a10g": (384, 12.5),
    "jetson-thor": (256, 8.533),
    "mi350x": (8 * 1024, 8),
    "arc-b580": (192, 19),
    "arc-pro-b60": (192, 19),
    "inferentia2": (8, 820 * 2**30 / 1e9),  # printed in GiB/s
    "trainium3": (8, 1.7 * 2900),  # 1.7 times a Trainium2's
    "tpu-8t": (8, 6500),
    "tpu-8i": (8, 8600),
    "gaudi2": (6 * 1024, 3.2),
    "cerebras-wse-3": (8, 21e6),
    "groq-lpu": (8, 80e3),
    "snapdragon-8-elite": (64, 2 * 5.3),
    "apple-m1": (128, 4.266),
    "apple-m1-max": (8, 6 * 66.67),  # six times an M1's
    "apple-m2": (128, 6.4),
    "apple-m3-ultra": (8, 819),
    "apple-m5": (8, 153),
    "apple-m5-max": (8, 614),
    "xeon-6980p": (12 * 64, 8.8),
    "epyc-9755": (12 * 64, 6),
    "rubin": (8, 22e3),
    "rubin-cpx": (8, 2e3),
    "mi455x": (8, 23.3e3),
}
# Stacks or chips of so many GiB, or what a driver reports.
CAPACITIES = {
    "h100": 5 * 16,
    "h100-pcie": 5 * 16,
    "h200": 143771 / 1024,
    "a100": 81920 / 1024,
    "a100-40gb": 5 * 8,
    "v100": 34089926656 / 2**30,
    "t4": 8 * 2,
    "l4": 12 * 2,
    "l40s": 24 * 2,
    "jetson-agx-orin": 4 * 16,
    "jetson-orin-nano": 4 * 2,
    "b200": 183359 / 1024,
    "gb200": 197897748480 / 2**30,
    "b300": 275040 / 1024,
    "gb300": 284208 / 1024,
    "gh200": 143771 / 1024,
    "rtx-4090": 12 * 2,
    "rtx-5090": 16 * 2,
    "rtx-pro-6000": 97887 / 1024,
    "gb10": 8 * 16,
    "mi355x": 8 * 36,
    "mi250x": 8 * 16,
    "apple-m4-max": 4 * 32,
    "tpu-v4": 4 * 8,
    "tpu-v5e": 17.2e9 / 2**30,
    "tpu-v5p": 6 * 16,
    "tpu-v6e": 34.4e9 / 2**30,
    "tpu-v7": 206e9 / 2**30,
    "mi300x": 8 * 24,
    "mi325x": 8 * 32,
    "trainium2": 4 * 24,
    "gaudi3": 8 * 16e9 / 2**30,
    "phone-npu": 8,
    "snapdragon-8-gen-3": 24,
    "xeon-8480": 16 * 256,
    "ryzen-7840u": 4 * 64,
    "a10g": 12 * 2,
    "jetson-thor": 128,
    "mi350x": 8 * 36,
    "arc-b580": 6 * 2,
    "arc-pro-b60": 25769803776 / 2**30,
    "inferentia2": 32,
    "trainium3": 96 * 1.5,  # of a Trainium2
    "tpu-8t": 231e9 / 2**30,
    "tpu-8i": 309e9 / 2**30,
    "gaudi2": 6 * 16e9 / 2**30,
    "cerebras-wse-3": 44e9 / 2**30,
    "groq-lpu": 230e6 / 2**30,
    "snapdragon-8-elite": 24,
    "apple-m1": 16,
    "apple-m1-max": 64,
    "apple-m2": 24,
    "apple-m3-ultra": 512,
    "apple-m5": 32,
    "apple-m5-max": 128,
    "rubin": 288e9 / 2**30,
    "rubin-cpx": 128e9 / 2**30,
    "mi455x": 432e9 / 2**30,
}
# Bytes, as a program is told, or by the parts.
CACHES = {
    "h100": 52428800,
    "h100-pcie": 52428800,
    "h200": 62914560,
    "a100": 41943040,
    "a100-40gb": 41943040,
    "v100": 6144 * 1024,
    "t4": 4096 * 1024,
    "l4": 50331648,
    "l40s": 100663296,
    "jetson-agx-orin": 4194304,
    "jetson-orin-nano": 2097152,
    "b200": 132644864,
    "gb200": 135528448,
    "b300": 135528448,
    "gb300": 135528448,
    "gh200": 62914560,
    "rtx-4090": 73728 * 1024,
    "rtx-5090": 98304 * 1024,
    "rtx-pro-6000": 134217728,
    "gb10": 25165824,
    "mi355x": 128 * 2 * 2**20,
    "mi250x": 2 * 8 * 2**20,
    "tpu-v4": 128 * 2**20,
    "tpu-v5e": 128 * 2**20,
    "tpu-v5p": 2 * 64 * 2**20,
    "tpu-v6e": 128 * 2**20,
    "tpu-v7": 2 * 64 * 2**20,
    "mi300x": 128 * 2 * 2**20,
    "mi325x": 128 * 2 * 2**20,
    "trainium2": 8 * 28 * 2**20,
    "gaudi3": 4 * 24 * 2**20,
    "xeon-8480": 107520 * 1024,
    "ryzen-7840u": 8 * 2 * 2**20,
    "jetson-thor": 32 * 2**20,
    "mi350x": 128 * 2 * 2**20,
    "arc-b580": 18874368,
    "arc-pro-b60": 18874368,
    "trainium3": 8 * 32 * 2**20,
    "tpu-8t": 128 * 2**20,
    "tpu-8i": 2 * 192 * 2**20,
    "gaudi2": 48 * 2**20,
    "cerebras-wse-3": 44e9,
    "groq-lpu": 230e6,
    "xeon-6980p": 3 * 168 * 2**20,
    "epyc-9755": 16 * 32 * 2**20,
    "mi455x": 192e6,
}
# Links, and what each carries one way in GB/s.
LINKS = {
    "h100": (18, 25),
    "h100-pcie": (12, 25),
    "h200": (18, 25),
    "a100": (12, 25),
    "a100-40gb": (12, 25),
    "v100": (6, 25),
    "b200": (18, 50),
    "gb200": (18, 50),
    "b300": (18, 50),
    "gb300": (18, 50),
    "gh200": (18, 25),
    "mi355x": (7, 76.5),
    "mi250x": (7, 50),
    "tpu-v4": (6, 50),
    "tpu-v5e": (4, 50),
    "tpu-v5p": (6, 100),
    "tpu-v6e": (4, 100),
    "tpu-v7": (6, 100),
    "mi300x": (7, 64),
    "mi325x": (7, 64),
    "trainium2": (4, 160),
    "gaudi3": (24, 200 / 8),
    "mi350x": (7, 76.5),
    "inferentia2": (2, 48 * 2**30 / 1e9),
    "trainium3": (2, 640),
    "tpu-8t": (1, 19.2e3 / 8 / 2),
    "gaudi2": (24, 100 / 8),
    "rubin": (36, 50),
    "mi455x": (1, 3600 / 2),
}
# Cores over those of a unit, units over the dies, or what a program is told.
UNITS = {
    **dict.fromkeys(("h100", "h200"), 16896 / 128),
    **dict.fromkeys(("a100", "a100-40gb"), 6912 / 64),
    "h100-pcie": 14592 / 128,
    "v100": 5120 / 64,
    "t4": 2560 / 64,
    "l4": 7424 / 128,
    "l40s": 18176 / 128,
    "jetson-agx-orin": 2048 / 128,
    "b200": 148,
    "gb200": 152,
    "b300": 158,
    "gb300": 152,
    "rtx-4090": 16384 / 128,
    "rtx-5090": 21760 / 128,
    "rtx-pro-6000": 24064 / 128,
    "gb10": 6144 / 128,
    **dict.fromkeys(("mi300x", "mi325x"), 8 * 38),
    "mi355x": 8 * 32,
    "mi250x": 2 * 110,
    "apple-m4-max": 40,
    "xeon-8480": 56,
    "ryzen-7840u": 8,
    "jetson-thor": 2560 / 128,
    "mi350x": 8 * 32,
    **dict.fromkeys(("arc-b580", "arc-pro-b60"), 2560 / 128),
    "apple-m1": 8,
    "apple-m1-max": 32,
    "apple-m3-ultra": 2 * 40,
    "apple-m5": 10,
    "apple-m5-max": 40,
    "xeon-6980p": 128,
    "epyc-9755": 16 * 8,
}
# GHz, typed a second time, or what a rate of the datasheet makes of cores and operations.
CLOCKS = {
    **dict.fromkeys(("h100", "h200"), 989.4e3 / 132 / 4096),
    "h100-pcie": 756.5e3 / 114 / 4096,
    **dict.fromkeys(("a100", "a100-40gb"), 312e3 / 108 / 2048),
    "v100": 125e3 / 80 / 1024,
    "t4": 65e3 / 40 / 1024,
    "l40s": 733e3 / 2 / 142 / 1024,
    "jetson-thor": 1.570,
    "b200": 75e3 / 148 / 256,
    "gb200": 80e3 / 152 / 256,
    "b300": 75e3 / 148 / 256,
    "gb300": 80e3 / 152 / 256,
    "rtx-4090": 82.58e3 / 128 / 256,
    "rtx-5090": 104.8e3 / 170 / 256,
    "rtx-pro-6000": 467.8e3 / 188 / 1024,
    **dict.fromkeys(("mi300x", "mi325x"), 1307.4e3 / 304 / 2048),
    "mi355x": 157.3e3 / 256 / 256,
    "mi350x": 144.2e3 / 256 / 256,
    "mi250x": 383e3 / 220 / 1024,
    "mi455x": 2.400,
    "arc-b580": 13.67e3 / 20 / 256,
    "tpu-v4": 275e3 / 8 / 32768,
    "tpu-v5p": 459e3 / 8 / 32768,
    "gaudi2": 432e3 / 2 / 131072,
    "gaudi3": 1677e3 / 8 / 131072,
    "xeon-8480": 2.0,
    "xeon-6980p": 2.0,
    "epyc-9755": 2.7,
    "ryzen-7840u": 3.3,
}
# TFLOP/s: lanes of the special units times a clock, or typed a second time.
SPECIAL = {
    **dict.fromkeys(("h100", "h200"), 132 * 16 * 1.83e-3),
    "a100": 108 * 16 * 1.41e-3,
    **dict.fromkeys(("b200", "gb200"), 5.0),
    **dict.fromkeys(("b300", "gb300"), 10.7),
}
# Lanes to the host times 10⁹ transfers a second of each, in GB/s after coding.
HOST_LINKS = {
    **dict.fromkeys(("l4", "rtx-4090"), 16 * 16 / 8 * 128 / 130),
    **dict.fromkeys(("rtx-5090", "rtx-pro-6000"), 16 * 32 / 8 * 128 / 130),
    "arc-b580": 8 * 16 / 8 * 128 / 130,
    "arc-pro-b60": 8 * 32 / 8 * 128 / 130,
    "rubin": 1800 / 2,
}
# Typed a second time; no part gives a power limit.
WATTS = {
    "v100": 300,
    "t4": 70,
    "l4": 72,
    "gb200": 1200,
    "b300": 1100,
    "rtx-4090": 450,
    "rtx-5090": 575,
    "rtx-pro-6000": 600,
    "gb10": 140,
    "mi250x": 560,
    "tpu-v4": 192,
    "mi300x": 750,
    "jetson-agx-orin": 60,
    "jetson-orin-nano": 25,
    "gaudi3": 900,
    "ryzen-7840u": 28,
    **dict.fromkeys(("h100", "h200"), 700),
    **dict.fromkeys(("gb300", "mi355x"), 1400),
    **dict.fromkeys(("a100", "a100-40gb"), 400),
    **dict.fromkeys(("h100-pcie", "l40s", "xeon-8480"), 350),
    **dict.fromkeys(("phone-npu", "snapdragon-8-gen-3"), 4),
    **dict.fromkeys(("b200", "mi325x"), 1000),
    "jetson-thor": 130,
    "mi350x": 1000,
    "arc-b580": 190,
    "arc-pro-b60": 200,
    "gaudi2": 600,
    "cerebras-wse-3": 23e3,
    "groq-lpu": 300,
    "snapdragon-8-elite": 4,
    **dict.fromkeys(("xeon-6980p", "epyc-9755"), 500),
}


def fields() -> dict[tuple[str, str], Quantity]:
    """Every published field of every device, but sparse peaks: those are twice the dense ones."""
    found = {}
    for key in EVERY:
        device = hardware.get(key)
        for name, record in device.records.items():
            if record.provenance.kind != "unpublished":
                found[key, name] = record.quantity
        for table in ("peak", "vector_peak"):
            for dtype, record in device.peaks[table].items():
                if record.provenance.kind != "unpublished":
                    found[key, f"{table} {dtype}"] = record.quantity
    return found


def by_parts() -> dict[tuple[str, str], tuple[float, str]]:
    """The same fields, computed here, each with its unit."""
    gigabytes = {key: bits * rate / 8 for key, (bits, rate) in BUSES.items()}
    links = {key: count * each for key, (count, each) in LINKS.items()}
    whole = [
        ("memory_bandwidth", gigabytes, "GB/s"),
        ("memory_capacity", CAPACITIES, "GiB"),
        ("on_chip_memory", CACHES, "byte"),
        ("link_bandwidth", links, "GB/s"),
        ("units", UNITS, ""),
        ("clock", CLOCKS, "GHz"),
        ("special_functions", SPECIAL, "TFLOP/s"),
        ("host_link", HOST_LINKS, "GB/s"),
        ("tdp", WATTS, "W"),
    ]
    found = {(key, name): (value, unit) for name, of, unit in whole for key, value in of.items()}
    for table, peaks in (("peak", PEAKS), ("vector_peak", VECTOR_PEAKS)):
        for key, by_dtype in peaks.items():
            for dtype, value in by_dtype.items():
                unit = "TOP/s" if dtype.startswith("int") else "TFLOP/s"
                found[key, f"{table} {dtype}"] = (value, unit)
    return found


def test_every_field_has_its_parts() -> None:
    missing = {" ".join(name) for name in fields().keys() ^ by_parts().keys()}
    assert not missing, (
        "write in tests/calc/test_device_parts.py what each of these fields is made of"
    )


@pytest.mark.parametrize("key", EVERY)
def test_the_parts_make_the_device(key: str) -> None:
    parts = by_parts()
    missing = [name for device, name in fields() if device == key and (key, name) not in parts]
    assert not missing, (
        f"write in tests/calc/test_device_parts.py what makes these of {key}, each in the table of"
        f" its name: {', '.join(missing)}"
    )
    wrong = {
        name: (str(value), parts[key, name])
        for (device, name), value in fields().items()
        if device == key
        and value.m_as(parts[key, name][1]) != pytest.approx(parts[key, name][0], rel=ROUNDING)
    }
    assert not wrong
