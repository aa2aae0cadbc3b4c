"""Kernels as engines were measured to run them: whose rows tell of one, and what they say.

`calc.kernel_shares` has the measurements, by device, program and version, as shares of published
peaks. Where a program was not measured to run a kernel on a device, the rows of another program
there count, since they call the same libraries; where none was, those of the device that the data
name as most like it, whose share is taken of the peaks of the device that is meant. Weights of
eight bits are widened by a kernel of each program: where a program's own was not measured, it is
taken to reach the share of its kernels of two bytes. Sparse attention of prompts is of each program
too: its own rows of the nearest number of heads count, and no other's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from calc.catalog import engine_sums, expert_exchanges, hardware, kernel_shares, machines
from calc.catalog.expert_exchanges import Exchange
from calc.catalog.hardware import Accelerator
from calc.catalog.kernel_shares import Surface
from calc.catalog.machines import Machine
from calc.catalog.software import Software
from calc.core.arrays import Number
from calc.core.units import Quantity
from calc.steps import curves
from calc.steps.curves import Curve

NARROW = 64  # numbers of a head, at most, whose attention is measured apart


@dataclass(frozen=True)
class Measured:
    """Under which names measured rows of a kernel may stand, and the length they are over."""

    kernel: str
    """Of `kernel_shares.LENGTHS`."""
    formats: tuple[str, ...]
    """The nearest first."""
    length: Number


OF_CHOSEN = ("chosen", "choosing")
"""Kernels that score a context and attend to a part of it."""
EACH_ITS_OWN = ("int8-weights", "choosing")
"""Formats and kernels that programs write themselves: those of one say nothing of another's."""
HEADS = (8, 16, 32, 64, 128)
INDEX_HEADS = (32, 64)
"""Heads of a device and of its index, by which sparse attention of prompts was measured."""


def formats_of_product(dtype: str, weight: float, experts: bool = False) -> tuple[str, ...]:
    """Names of a product's formats: that of its inputs, and bytes of a weight.

    FP8 of mixtures has scales of blocks, as their publishers keep them, else of a tensor.

    >>> formats_of_product("fp8", 1.0), formats_of_product("bf16", 0.53125)
    (('fp8', 'fp8-block'), ('mxfp4-weights', 'int4-weights'))
    """
    if dtype == "fp4":
        mx = ("mxfp4", "mxfp4-weights") if experts and weight < 0.55 else ()
        return (*mx, "nvfp4")
    if dtype == "fp8":
        if weight < 0.75:
            return "int4-weights-fp8", "mxfp4", "fp8", "fp8-block"
        return ("fp8-block", "fp8") if experts else ("fp8", "fp8-block")
    if dtype == "int8":
        return ("int8",)
    if weight < 0.75:
        return "mxfp4-weights", "int4-weights"
    return ("int8-weights", "bf16") if weight < 1.5 else ("bf16",)


def formats_of_attention(kv: float, width: float, latent: bool) -> tuple[str, ...]:
    """Names of attention's formats: bytes of a cached number, and the width of a head.

    >>> formats_of_attention(1.0, 128, latent=False)
    ('bf16-fp8', 'fp8', 'bf16')
    """
    small = kv <= 1
    if latent:
        return ("latent-fp8", "latent") if small else ("latent",)
    suffix = "-narrow" if width <= NARROW else ""
    names = ("bf16-fp8", "fp8", "bf16") if small else ("bf16",)
    return tuple(name + suffix for name in names)


def formats_of_choosing(kv: float, heads: float, index: float) -> tuple[str, ...]:
    """Names of sparse attention's formats for prompts: of caches, heads and heads of the index.

    >>> formats_of_choosing(1.0, 16, 64)[:3]
    ('latent-fp8-16-64', 'latent-16-64', 'latent-fp8-16-32')
    """
    attending, scoring = (
        sorted(measured, key=lambda one: abs(math.log(one / own)))
        for measured, own in ((HEADS, heads), (INDEX_HEADS, index))
    )
    caches = formats_of_attention(kv, 0, latent=True)
    return tuple(f"{name}-{a}-{s}" for a in attending for s in scoring for name in caches)


@lru_cache(maxsize=2**12)
def surface(
    kernel: str, formats: tuple[str, ...], device: Accelerator, software: Software
) -> Surface | None:
    """What was measured that is nearest; None for a program none of whose kind were measured.

    >>> from calc import hardware, software
    >>> rows = surface("product", ("nvfp4",), hardware.get("b200"), software.get("vllm"))
    >>> rows.program, rows.format
    ('vllm', 'nvfp4')
    """
    measured = kernel_shares.programs()
    if software.key not in measured:
        return None
    others = [program for program in measured if program != software.key]
    for key in (device.key, device.measured_as):
        for format in formats:
            alone = kernel in EACH_ITS_OWN or format in EACH_ITS_OWN
            for program in (software.key, *([] if alone else others)):
                version = software.version if program == software.key else ""
                rows = kernel_shares.of(kernel, key, program, format, version)
                if rows is not None and rows.rate in device.dtypes:
                    return rows
    return None


@lru_cache(maxsize=2**10)
def sums(machine: Machine, software: Software, devices: int) -> Curve | None:
    """The curve of the engine's own sums in a domain; None where none were measured.

    >>> from calc import machines, software
    >>> sums(machines.get("dgx-h200"), software.get("sglang"), 8).devices
    8
    """
    measured, own = kernel_shares.programs(), software.sums or software.key
    if own not in measured or devices > machine.domain:
        return None
    for program in (own, *(each for each in measured if each != own)):
        version = software.version if program == software.key else ""
        rows = engine_sums.of(machine.device.key, program, devices, version)
        if rows is not None:
            return curves.of_engine(rows)
    return None


BETWEEN_SERVERS = "h100"
"""The device whose exchanges were measured across domains, where ports decide."""


@lru_cache(maxsize=2**10)
def exchange(
    machine: Machine, software: Software, way: str, devices: int, reads: bool
) -> Exchange | None:
    """The program's own kernels for experts' exchange, as measured nearest to it; None without any.

    A pass that `reads` prompts uses those for many tokens. Across domains rows count if the ports
    are as fast as where they were measured. Those of another program say nothing: which library is
    called differs from program to program.

    >>> from calc import machines, software
    >>> own = software.get("tensorrt-llm")
    >>> print(exchange(machines.get("gb200-nvl72"), own, "combine", 16, reads=False))
    combine of tensorrt-llm 1.3.0rc10 among 16 gb200
    """
    domains, device = curves.domains_of(devices, machine), machine.device
    likely = (device.key, device.measured_as) if domains == 1 else (device.key, BETWEEN_SERVERS)
    for kernels in ("all", "prompts" if reads else "decode"):
        for key in likely:
            of = key, software.key, kernels, way, devices, domains
            rows = expert_exchanges.of(*of, software.version)
            there = machines.of(hardware.get(key)) if rows is not None else machine
            if rows is not None and (domains == 1 or machine.ports == there.ports):
                return rows
    return None


def different_rates(
    used: Iterable[tuple[str, Quantity | Surface]],
) -> dict[str, tuple[Quantity | Surface, ...]]:
    """Return each rate once, by the kind of kernel, without launches that were not measured.

    >>> from calc import quantity
    >>> different_rates([("gemm", quantity("600 TFLOP/s"))])
    {}
    """
    different: dict[str, dict[str, Quantity | Surface]] = {}
    for kind, rate in used:
        if isinstance(rate, Surface):
            different.setdefault(kind, {})[str(rate)] = rate
        elif rate.provenance is not None:
            different.setdefault(kind, {})[rate.provenance.key] = rate
    return {kind: tuple(by_key.values()) for kind, by_key in different.items()}
