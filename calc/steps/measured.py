"""Kernels and engines' own sums as they were measured: how long each takes, and by whose rows.

A `Kernel` knows its operations, its bytes and its shape, so that the rates that a machine was
measured to reach say how long it takes, or the rows of an engine that was measured to run it.
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias, cast

from calc.catalog import engine_sums, expert_exchanges, hardware, kernel_shares, machines
from calc.catalog.expert_exchanges import Exchange
from calc.catalog.hardware import Accelerator
from calc.catalog.kernel_shares import Surface
from calc.catalog.machines import Machine, NotMeasured
from calc.catalog.software import UNKNOWN, Software
from calc.core.arrays import Number
from calc.core.elementwise import kept, largest, maximum, minimum, smallest
from calc.core.units import Quantity, quantity
from calc.laws.gemms import START, TILES, gemm_time
from calc.steps import curves
from calc.steps.curves import Curve
from calc.steps.job import BYTE, NO_BYTES, NO_WORK

LEAST_ROWS = min(rows for rows, _ in TILES)
AMD = "AMD"  # a vendor
NARROW = 64  # numbers of a head, at most, whose attention is measured apart


@dataclass(frozen=True)
class Measured:
    """Under which names measured rows of a kernel may stand, and the length they are over."""

    kernel: str
    """A kernel of `kernel_shares.LENGTHS`."""
    formats: tuple[str, ...]
    """The nearest first."""
    length: Number


OF_CHOSEN = ("chosen", "choosing")  # kernels that score a context and attend to a part of it
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
        sorted(measured, key=lambda one: abs(math.log(one / count)))
        for measured, count in ((HEADS, heads), (INDEX_HEADS, index))
    )
    caches = formats_of_attention(kv, 0, latent=True)
    return tuple(f"{name}-{a}-{s}" for a in attending for s in scoring for name in caches)


@lru_cache(maxsize=2**10)
def sums(machine: Machine, software: Software, devices: int) -> Curve | None:
    """The curve of the engine's own sums in a domain; None where none were measured.

    Among as many as were never measured of a device behind a switch, those of the first other count
    whose links are as fast: a short sum waits for links, not for chips.

    >>> from calc import machines, software
    >>> sums(machines.get("dgx-h200"), software.get("sglang"), 8).devices
    8
    >>> sums(machines.get("gb200-nvl72"), software.get("tensorrt-llm"), 8).machine
    'dgx-b200'
    """
    measured, engine = kernel_shares.programs(), software.sums or software.key
    if engine not in measured or devices > machine.domain:
        return None
    for key in (machine.device.key, *_like_linked(machine)):
        for program in (engine, *(each for each in measured if each != engine)):
            version = software.version if program == software.key else ""
            rows = engine_sums.sums_of(key, program, devices, version)
            if rows is not None:
                return curves.of_engine(rows)
    return None


def _like_linked(machine: Machine) -> Iterator[str]:
    """Yield the devices whose sums were measured over a switch with links as fast."""
    if machine.fabric != "switch":
        return
    for key in engine_sums.devices():
        there = machines.of(hardware.get(key))
        if there.fabric == machine.fabric and there.bandwidth == machine.bandwidth:
            yield key


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
            rows = expert_exchanges.exchange_of(*of, software.version)
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
    different: dict[str, dict[str | tuple[str, ...], Quantity | Surface]] = {}
    for kind, rate in used:
        if isinstance(rate, Surface):
            rows = rate.program, rate.version, rate.device, rate.kernel, rate.format
            different.setdefault(kind, {})[rows] = rate
        elif rate.provenance is not None:
            different.setdefault(kind, {})[rate.provenance.key] = rate
    return {kind: tuple(by_key.values()) for kind, by_key in different.items()}


class Rates:
    """The rates that a machine was measured to reach with a program, each looked up once.

    >>> from calc import machines, software
    >>> rows = rates_of(machines.of("b200"), software.get("vllm")).surface("product", ("nvfp4",))
    >>> rows.program, rows.format
    ('vllm', 'nvfp4')
    """

    def __init__(self, machine: Machine, software: Software) -> None:
        self.machine, self.software = machine, software
        # Hashing a machine and a program takes longer than most of what follows from them.
        self.surface = cache(self._surface)
        self.of_kind = cache(self._of_kind)
        self.peaks = cache(self._peaks)
        self.lesser, self.better = cache(self._lesser), cache(self._better)
        self.unmeasured, self.has_own = cache(self._unmeasured), cache(self._has_own)
        self.with_faster_processors = cache(self._with_faster_processors)
        self.has_rows = software.key in kernel_shares.programs()
        """Whether kernels of the program were measured on any device."""

    def _surface(self, kernel: str, formats: tuple[str, ...]) -> Surface | None:
        """Return the nearest measured rows; None of a program none of whose kind were measured."""
        device, software, measured = self.machine.device, self.software, kernel_shares.programs()
        if not self.has_rows:
            return None
        others = [program for program in measured if program != software.key]
        for key in (device.key, device.measured_as):
            for format in formats:
                alone = kernel in EACH_ITS_OWN or format in EACH_ITS_OWN
                for program in (software.key, *([] if alone else others)):
                    version = software.version if program == software.key else ""
                    rows = kernel_shares.surface_of(kernel, key, program, format, version)
                    if rows is not None and rows.rate in device.dtypes:
                        return rows
        return None

    def _has_own(self, kernel: str, formats: tuple[str, ...]) -> bool:
        """Return whether the kernel was measured on the device itself."""
        surface = self.surface(kernel, formats)
        return surface is not None and surface.device == self.machine.device.key

    def _lesser(self, dtype: str, kernel: str, formats: tuple[str, ...]) -> tuple[Rates, ...]:
        """Return those of devices with rows of the kernel, of which this has no less of anything.

        What is asked for each kernel of a pass is found once of all alike.
        """
        devices = hardware.outdone(self.machine.device, dtype, _with_rows())
        return tuple(one for one in self._on(devices) if one.has_own(kernel, formats))

    def _better(self, dtype: str, kernel: str, formats: tuple[str, ...]) -> tuple[Rates, ...]:
        """Return those of devices with rows of the kernel that have no less than this one."""
        devices = hardware.outdoing(self.machine.device, dtype, _with_rows())
        return tuple(one for one in self._on(devices) if one.has_own(kernel, formats))

    def _unmeasured(self, dtype: str) -> tuple[Rates, ...]:
        """Return those of devices without rows, of which this has no less of anything."""
        others = _every() - _with_rows()
        return self._on(hardware.outdone(self.machine.device, dtype, others))

    def _with_faster_processors(self, dtype: str, lasting: bool, narrow: bool) -> tuple[Rates, ...]:
        """Return those of devices of which this has no less, but whose processors are faster.

        A product of few tiles would take longer here; libraries split it among idle processors.
        """

        def of_one(rates: Rates) -> Quantity:
            rate = rates.of_kind("gemm", dtype, lasting, narrow)[1]
            return rate / rates.machine.processors

        own, faster = of_one(self), []
        for lesser in self._on(hardware.outdone(self.machine.device, dtype, _every())):
            device = lesser.machine.device
            most = device.half_sums * device.peak(dtype) / lesser.machine.processors
            with suppress(NotMeasured):
                if most > own and of_one(lesser) > own:
                    faster.append(lesser)
        return tuple(faster)

    def _on(self, devices: Iterable[Accelerator]) -> tuple[Rates, ...]:
        return tuple(rates_of(machines.of(device), self.software) for device in devices)

    def _of_kind(
        self, kind: str, name: str, lasting: bool, narrow: bool
    ) -> tuple[Quantity, Quantity]:
        """Return the rate of memory, and that of products, of attention, or the gap of launches.

        None is below what a device that this one outdoes was measured to reach, and none that is
        likely alone above that of one which outdoes this, or below what is likely of a lesser one.
        """
        if kind == "gemm":
            return self.bandwidth, self._products(name, lasting, narrow)
        return self.bandwidth, self._attended(name) if kind == "attention" else self.gap

    @cached_property
    def bandwidth(self) -> Quantity:
        """Return that of the device's memory, as measured."""
        return self._within("memory", lambda machine: machine.memory_reached)

    @cached_property
    def gap(self) -> Quantity:
        """Time between launches; one that was not measured is no shorter than on better devices."""
        gap = self.machine.gap
        device = self.machine.device
        if gap.provenance is not None:
            return gap
        better = hardware.outdoing(device, device.usual_dtype, machines.measured())
        return max((gap, *(machines.of(more).gap for more in better)))

    def _products(self, dtype: str, lasting: bool, narrow: bool) -> Quantity:
        def reached(machine: Machine) -> Quantity:
            rate = machine.lasting(dtype) if lasting else machine.likely("gemm", dtype)
            faster = self.software.products_faster(machine.device, dtype, narrow)
            return rate if faster == 1 else _times(rate, faster)

        return self._within("gemm", reached, dtype)

    def _within(
        self, kind: str, of: Callable[[Machine], Quantity], dtype: str | None = None
    ) -> Quantity:
        """Return a rate of a kind, no smaller than what lesser devices were measured to reach.

        One that is likely alone is no smaller than what is likely of lesser ones either, and no
        larger than what better ones were measured to reach: of products, by as many processors.
        """
        rate, device = of(self.machine), self.machine.device
        format, measured = dtype or device.usual_dtype, machines.measured(kind)
        if machines.is_likely(rate):
            for _, theirs in _all_of(of, hardware.outdone(device, format, _every())):
                rate = max(rate, theirs)
            for more, theirs in _all_of(of, hardware.outdoing(device, format, measured)):
                if not machines.is_likely(theirs):
                    part = _part_of_processors(device, more) if dtype else 1.0
                    rate = min(rate, _times(theirs, part))
        for _, theirs in _all_of(of, hardware.outdone(device, format, measured)):
            if not machines.is_likely(theirs):
                rate = max(rate, theirs)
        return rate

    def _attended(self, direction: str) -> Quantity:
        """The rate of attention, or that of a program's own kernel on devices it is slower on."""
        device, software = self.machine.device, self.software

        def reached(machine: Machine) -> Quantity:
            return machine.attention_reached(direction, software.attention)

        rate = self._within("attention", reached)
        if device.vendor != AMD or device.usual_dtype not in device.dtypes:
            return rate
        own = software.attends_on_amd * device.peak(device.usual_dtype)
        if own >= rate:
            return rate
        own.provenance = rate.provenance
        return own

    def _peaks(self, dtype: str, sustained: float | None) -> tuple[float, float]:
        """Return the published operations and bytes a second of the device.

        Of a share that its kin `sustained`, the peak is what it reached itself over that, if
        measured.
        """
        machine = self.machine
        peak = machine.device.peak(dtype)
        if sustained is not None and machine.has_reached("gemm", dtype):  # its kin may throttle
            peak = machine.reached("gemm", dtype) / sustained
        return peak.m_as("FLOP/s"), machine.device.memory_bandwidth.m_as("byte/s")


rates_of = lru_cache(maxsize=2**10)(Rates)


@cache
def _every() -> frozenset[str]:
    return frozenset(hardware.names())


@cache
def _with_rows() -> frozenset[str]:
    return frozenset(kernel_shares.devices())


def _all_of(
    of: Callable[[Machine], Quantity], devices: Iterable[Accelerator]
) -> Iterator[tuple[Accelerator, Quantity]]:
    """Yield the devices that have a rate, and the rate."""
    for device in devices:
        with suppress(NotMeasured):
            yield device, of(machines.of(device))


def _times(rate: Quantity, factor: float) -> Quantity:
    """Return so many times a rate, which stands on what the rate stands on."""
    product = rate * factor
    product.provenance = rate.provenance
    return product


def _part_of_processors(less: Accelerator, more: Accelerator) -> float:
    """Return which part of a better device's processors one has, if those are no slower each.

    Few tiles occupy few processors: what the rate of one of them is decides then.
    """
    if not (more.publishes("units") and less.publishes("units")):
        return 1.0
    part, dtype = less.units / more.units, less.usual_dtype
    each = (more.peak(dtype) / less.peak(dtype)).m_as("") * part
    return part if part < 1 and each >= 1 - machines.SAME else 1.0


@dataclass(frozen=True)
class Kernel:
    """Kernels alike of one pass: what a launch of one does, and how many launches there are.

    `kind` says at which measured rate it runs: "gemm" by its shape, "attention" by its operations
    or its bytes, "memory" by its bytes after the gap between launches, and so "cache", what reads
    the caches of written tokens and stays on the device where weights come from its host.
    """

    name: str
    kind: str
    launches: float
    operations: Quantity = NO_WORK
    traffic: Quantity = NO_BYTES
    shape: tuple[Any, Any, Any] | None = None
    """m, n and k of a product."""
    products: Any = 1
    """Products of that shape in one launch: a mixture's experts."""
    sizes: tuple[Any, Any, Any] = (2.0, 2.0, 2.0)
    """Bytes of an element of a product's input, weights and output."""
    dtype: str = "bf16"
    direction: str = "forward"
    measured: Measured | None = None
    """Tables in which measured rows of it may stand."""
    worked: Quantity | None = None
    """Operations of a launch, as measured rows count them; its own where nothing is said."""
    moved: Quantity | None = None
    """All bytes of a launch, as measured rows count them; its traffic where nothing is said."""
    within: Measured | None = None
    """Measured rows that include it."""
    chooses: bool = False
    """Whether it is attention that scores a context and attends to a part of it."""
    made_of: tuple[Kernel, ...] = ()
    """The kernels of one launch that an engine fuses, and all others launch one by one."""
    lasting: bool = False
    """Whether it is one of a long row of products, in which power limits the clock."""

    @classmethod
    def of_product(
        cls,
        name: str,
        shape: tuple[Any, Any, Any],
        sizes: tuple[Quantity, Quantity, Quantity],
        dtype: str,
        launches: float = 1,
    ) -> Kernel:
        """A product (m × k) · (k × n), whose matrices go to memory, or come from it, once."""
        (m, n, k), (operand, weight, result) = shape, sizes
        moved = m * k * operand + k * n * weight + m * n * result
        work = quantity(2.0 * m * n * k, "FLOP")
        held = operand.m_as("byte"), weight.m_as("byte"), result.m_as("byte")
        return cls(name, "gemm", launches, work, moved, shape, sizes=held, dtype=dtype)

    def expected(self, machine: Machine, software: Software = UNKNOWN) -> Quantity:
        """Time of all launches, as the software was measured to run them on the machine's device.

        Where it was not, at the best rates that the machine was measured to reach: a product by its
        shape, attention by its operations or its bytes, a pass over vectors by its bytes.
        """
        return quantity(self.timed(rates_of(machine, software))[0], "s")

    def timed(self, rates: Rates) -> Timed:
        """Return its seconds with the measured rates, or the software's rows, it stands on.

        Rows may say that a device takes longer than one which it outdoes: then it takes what the
        rows of that one say. Where its own were not measured, it is no faster than one that outdoes
        it.
        """
        if self.measured is None or not rates.has_rows or self.direction != "forward":
            return self._timed(rates)
        timed = self._between(rates, self.measured)
        if not rates.has_own(self.measured.kernel, self.measured.formats):
            for lesser in rates.unmeasured(self.dtype):
                with suppress(NotMeasured):
                    timed = _chosen(minimum, timed, self._between(lesser, self.measured))
        return timed

    def _between(self, rates: Rates, measured: Measured) -> Timed:
        """Return its time, within those of measured devices with more and with less."""
        timed, rows = self._timed(rates), (measured.kernel, measured.formats)
        if not rates.has_own(*rows):
            for better in rates.better(self.dtype, *rows):
                timed = _chosen(maximum, timed, self._between(better, measured))
        for lesser in rates.lesser(self.dtype, *rows):
            timed = _chosen(minimum, timed, self._timed(lesser))
        return timed

    @cached_property
    def _times(self) -> dict[Rates, Timed]:
        """Return its times by rates, of which many are held to those of the same devices."""
        return {}

    def _timed(self, rates: Rates) -> Timed:
        if rates not in self._times:
            self._times[rates] = self._by(rates)
        return self._times[rates]

    def _by(self, rates: Rates) -> Timed:
        if (surface := self.surface(rates)) is not None:
            assert self.measured is not None
            each = surface.time(self.measured.length, self.roof(rates, surface))
            return each * self.launches, (surface,)
        if self.made_of:
            seconds: Number = sum(part._timed(rates)[0] for part in self.made_of)
            of_parts = [rate for part in self.made_of for rate in part.rates(rates)]
            return seconds, tuple(of_parts)
        bandwidth, rate = both = self.rates(rates)
        if self.within is not None and self._rows(self.within, rates) is not None:
            return 0.0, both
        if self.shape is not None:
            seconds = self._product(rates)
            for lesser in rates.with_faster_processors(self.dtype, self.lasting, self.is_narrow):
                seconds = minimum(seconds, self._product(lesser))
            return seconds * self.launches, both
        moved = self.traffic / bandwidth
        if self.kind != "attention":
            return ((moved + rate) * self.launches).m_as("s"), both
        longest: Number = maximum((self.operations / rate).m_as("s"), moved.m_as("s"))
        return (longest + START.m_as("s")) * self.launches, both

    def _product(self, rates: Rates) -> Any:
        """Seconds of a product in tiles, or row by row where that is sooner.

        Kernels made for a single row have no tiles whose other rows are empty, and run once for
        each of few rows. So no row of few takes longer than one alone.
        """
        assert self.shape is not None
        m, n, k = self.shape
        bandwidth, rate = self.rates(rates)
        of = bandwidth.m_as("byte/s"), rates.machine.processors, *self.sizes, self.products
        large = rate.m_as("FLOP/s")
        if smallest(m) >= LEAST_ROWS:
            return _in_tiles(m, n, k, large, *of)
        if largest(m) <= 1:
            return _in_tiles(m, n, k, LEAST_ROWS * large, *of)
        time = _in_tiles(m, n, k, large, *of)
        return minimum(time, _in_tiles(1.0, n, k, LEAST_ROWS * large, *of) * m)

    def rates(self, rates: Rates) -> tuple[Quantity, Quantity]:
        """The measured rates of `expected`: of memory, and of products, attention or launches."""
        name = self.direction if self.kind == "attention" else self.dtype
        return rates.of_kind(self.kind, name, self.lasting, self.is_narrow)

    @property
    def is_narrow(self) -> bool:
        """Return whether it is a product of weights of less than two bytes."""
        return self.shape is not None and bool(self.sizes[1] < 2)

    def surface(self, rates: Rates) -> Surface | None:
        """Return what measured rows say of it; None without rows of such a program or device."""
        return None if self.measured is None else self._rows(self.measured, rates)

    def as_if_dense(self, rates: Rates) -> bool:
        """Return whether it chooses, and stands on rates of kernels that attend to all."""
        if not self.chooses:
            return False
        surface = self.surface(rates)
        return surface is None or surface.kernel not in OF_CHOSEN

    def _rows(self, named: Measured, rates: Rates) -> Surface | None:
        return rates.surface(named.kernel, named.formats) if self.direction == "forward" else None

    def roof(self, rates: Rates, surface: Surface) -> Number:
        """Seconds of a launch at published peaks, of operations or bytes, whichever is longer."""
        device = rates.machine.device
        dtype = rate if (rate := surface.rate) in device.dtypes else self.dtype
        is_borrowed = surface.device != device.key and self.shape is not None
        peak, bandwidth = rates.peaks(dtype, surface.sustained if is_borrowed else None)
        operations, moved = self._as_rows_count
        longest: Number = maximum(operations / peak, moved / bandwidth)
        return longest

    @cached_property
    def _as_rows_count(self) -> tuple[Number, Number]:
        """Operations and bytes of a launch as measured rows count them, of whatever device."""
        worked = self.operations if self.worked is None else self.worked
        moved = self.traffic if self.moved is None else self.moved
        return worked.m_as("FLOP"), moved.m_as("byte")


Timed: TypeAlias = tuple[Number, tuple[Quantity | Surface, ...]]
"""Seconds, and the measured rates or rows that they stand on."""


def _chosen(which: Callable[[Number, Number], Number], one: Timed, other: Timed) -> Timed:
    """Return the shorter or the longer of two times, and what it stands on.

    It stands on the other where they differ by more than its own rows do from one another.
    """
    seconds = which(one[0], other[0])
    if seconds is one[0]:
        return one
    scatter = max((rate.own.median for rate in one[1] if isinstance(rate, Surface)), default=0.0)
    apart = cast("Number", abs(seconds - one[0]))
    differs = largest(apart - scatter * one[0]) > 0
    return seconds, other[1] if differs else one[1]


@kept(2**14)
def _in_tiles(
    m: Any, n: Any, k: Any, rate: float, bandwidth: float, units: int, *rest: Number
) -> Number:
    """Return the seconds of a product in tiles, kept, since passes alike launch the same ones."""
    *sizes, products = rest
    each: Any = [size * BYTE for size in sizes]
    of = quantity(bandwidth, "byte/s"), units, *each, products
    seconds: Number = gemm_time(m, n, k, quantity(rate, "FLOP/s"), *of).m_as("s")
    return seconds
