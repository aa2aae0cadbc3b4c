"""Kernels: what a pass of a transformer launches, and how long each is expected to take.

A pass is a list of kernels: matrix products, attention, and passes over vectors. Each knows its
operations, its bytes and its shape, so that the rates that a machine was *measured* to reach say
how long it takes, where the bounds of `inference` and `parallelism` take published rates. The
lists hold the matrices and caches that the bounds count, and what these leave out: activations
that go to memory and back, and the time until a kernel runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from calc.catalog import intervals
from calc.catalog.hardware import dtype_of
from calc.catalog.kernel_shares import (
    Surface,
    bytes_of_chosen,
    bytes_of_experts,
    bytes_of_product,
    bytes_of_states,
)
from calc.catalog.machines import NO_TIME, Machine, NotMeasured, is_likely
from calc.catalog.models import Transformer
from calc.catalog.models.architecture import INDEXED, RECURRENT, Matrix
from calc.catalog.models.weights import Weights
from calc.catalog.software import UNKNOWN, Software
from calc.core.arguments import as_list, check_finite, check_shapes, number, truth, whole_number
from calc.core.arrays import Number
from calc.core.elementwise import maximum, of_each, smallest, where
from calc.core.errors import InputError, abbreviated
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, quantity
from calc.laws import attention, gemms
from calc.laws.experts import experts_used
from calc.laws.gemms import LARGEST_TILE, SMALLER_TILE, START, TILES, gemm_time
from calc.laws.layers import projection_flops
from calc.laws.roofline import StepTime, Workload
from calc.networks import transformer
from calc.steps.job import BYTE, NO_BYTES, NO_WORK, TWO_BYTES, Batch, Job, Tokens, input_size
from calc.steps.measured import (
    OF_CHOSEN,
    Measured,
    different_rates,
    formats_of_attention,
    formats_of_choosing,
    formats_of_product,
    surface,
)

LEAST_ROWS = min(rows for rows, _ in TILES)
FUSED = (  # matrices that one product multiplies with, since they have the same input
    ("query", "key", "value"),
    ("windowed query", "windowed key", "windowed value"),
    ("gate", "up"),
    ("shared gate", "shared up"),
    ("expert gate", "expert up"),
)
WHOLE = (  # matrices that every device has whole
    *("latent input", "latent output"),
    *("index query", "index key", "index weights"),
)
EXPERTS = (  # what the experts of a layer do
    *("expert gate+expert up", "expert up", "expert down"),
    *("activation of experts", "sorting by experts"),
)


@dataclass(frozen=True)
class Kernel:
    """Kernels alike of one pass: what a launch of one does, and how many launches there are.

    `kind` says at which measured rate it runs: "gemm" by its shape, "attention" by its operations
    or its bytes, "memory" by its bytes.
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
    sizes: tuple[Quantity, Quantity, Quantity] = (TWO_BYTES, TWO_BYTES, TWO_BYTES)
    """Of an element of a product's input, weights and output."""
    dtype: str = "bf16"
    direction: str = "forward"
    measured: Measured | None = None
    """Where measured rows of it may stand."""
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

    def expected(self, machine: Machine, software: Software = UNKNOWN) -> Quantity:
        """Time of all launches, as the software was measured to run them on the machine's device.

        Where it was not, at the best rates that the machine was measured to reach: a product by its
        shape, attention by its operations or its bytes, a pass over vectors by its bytes.
        """
        return self.timed(machine, software)[0]

    def timed(
        self, machine: Machine, software: Software = UNKNOWN
    ) -> tuple[Quantity, tuple[Quantity | Surface, ...]]:
        """Return that time with the measured rates, or the software's rows, that it stands on."""
        if (surface := self.surface(machine, software)) is not None:
            assert self.measured is not None
            each = of_each(surface.time, self.measured.length, self.roof(machine, surface))
            return quantity(each * self.launches, "s"), (surface,)
        if self.made_of:
            times = [part.expected(machine, software) for part in self.made_of]
            of_parts = [rate for part in self.made_of for rate in part.rates(machine, software)]
            return sum(times, NO_TIME), tuple(of_parts)
        bandwidth, rate = rates = self.rates(machine, software)
        if self.within is not None and self._rows(self.within, machine, software) is not None:
            return NO_TIME, rates
        if self.shape is not None:
            units = machine.processors
            # Kernels made for a single row have no tiles whose other rows are empty.
            own = where(self.shape[0] <= 1, float(LEAST_ROWS), 1.0)
            time = gemm_time(*self.shape, rate * own, bandwidth, units, *self.sizes, self.products)
        elif self.kind == "attention":
            compute = (self.operations / rate).m_as("s")
            time = quantity(maximum(compute, (self.traffic / bandwidth).m_as("s")), "s") + START
        else:
            time = self.traffic / bandwidth + rate
        return (time * self.launches).to("s"), rates

    def rates(self, machine: Machine, software: Software = UNKNOWN) -> tuple[Quantity, Quantity]:
        """The measured rates of `expected`: of memory, and of products, attention or launches."""
        if self.shape is not None:
            rate_of = machine.lasting if self.lasting else partial(machine.likely, "gemm")
            known = rate_of(self.dtype)
            # Of smaller weights the factors are integers, if the program can.
            faster = software.products_faster(machine.device, self.dtype)
            if self.sizes[1] < TWO_BYTES or faster == 1:
                return machine.memory_reached, known
            rate = known * faster
            rate.provenance = known.provenance
            return machine.memory_reached, rate
        if self.kind == "attention":
            attention = machine.attention_reached(self.direction, software.attention)
            return machine.memory_reached, attention
        return machine.memory_reached, machine.gap

    def surface(self, machine: Machine, software: Software) -> Surface | None:
        """What measured rows say of it; None where no rows are of such a program or device."""
        return None if self.measured is None else self._rows(self.measured, machine, software)

    def as_if_dense(self, machine: Machine, software: Software) -> bool:
        """Whether it chooses, and stands on rates of kernels that attend to all."""
        if not self.chooses:
            return False
        surface = self.surface(machine, software)
        return surface is None or surface.kernel not in OF_CHOSEN

    def _rows(self, named: Measured, machine: Machine, software: Software) -> Surface | None:
        if self.direction != "forward":
            return None
        return surface(named.kernel, named.formats, machine.device, software)

    def roof(self, machine: Machine, surface: Surface) -> Number:
        """Seconds of a launch at published peaks, of operations or bytes, whichever is longer."""
        device = machine.device
        dtype = surface.rate if surface.rate in device.dtypes else self.dtype
        peak = device.peak(dtype)
        own = surface.device != device.key and self.shape is not None
        if own and machine.has_reached("gemm", dtype):
            # Its kin may throttle where it does not: what it reached of its peak itself is known.
            peak = machine.reached("gemm", dtype) / surface.sustained
        worked = self.operations if self.worked is None else self.worked
        compute = worked.m_as("FLOP") / peak.m_as("FLOP/s")
        moved = (self.traffic if self.moved is None else self.moved).m_as(
            "byte"
        ) / device.memory_bandwidth.m_as("byte/s")
        longest: Number = maximum(compute, moved)
        return longest


@dataclass(frozen=True)
class Gemm(Answer):
    """One matrix product (m × k) · (k × n) on a device: its bound, its waves, what is expected."""

    m: int
    n: int
    k: int
    machine: Machine
    dtype: str = "bf16"

    @property
    def kernel(self) -> Kernel:
        """The product as a pass launches it; its results have two bytes, or those of its inputs."""
        size = input_size(self.dtype)
        sizes = (size, size, maximum(size, TWO_BYTES))
        m, n, k = self.m, self.n, self.k
        work = quantity(2.0 * m * n * k, "FLOP")
        moved = (m * k + k * n) * size + m * n * sizes[2]
        return Kernel("product", "gemm", 1, work, moved, (m, n, k), sizes=sizes, dtype=self.dtype)

    @property
    def bound(self) -> StepTime:
        """Its operations and bytes at published rates."""
        kernel = self.kernel
        return Workload(kernel.operations, kernel.traffic).on(self.machine.device, self.dtype)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the tile of which the most is left, as `gemms.gemm_time` takes it."""
        return max(TILES, key=self._kept)

    @property
    def tiles(self) -> int:
        """How many of them cover the output."""
        return int(gemms.tiles(self.m, self.n, *self.tile).magnitude)

    @property
    def waves(self) -> int:
        """How often the processors compute a tile each."""
        return math.ceil(self.tiles / self.machine.processors)

    @property
    def tile_efficiency(self) -> Quantity:
        """Share of the tiles that is output."""
        return gemms.tile_efficiency(self.m, self.n, *self.tile).to("%")

    @property
    def wave_efficiency(self) -> Quantity:
        """Share of the processors that work, over all waves."""
        return gemms.wave_efficiency(self.tiles, self.machine.processors).to("%")

    @property
    def expected(self) -> Quantity | None:
        """Its time at the rates that the machine was measured to reach; None without one."""
        return None if self.not_expected else self.kernel.expected(self.machine)

    @property
    def not_expected(self) -> str:
        """Which rate was not measured."""
        try:
            self.kernel.rates(self.machine)
        except NotMeasured as missing:
            return str(missing)
        return ""

    def _kept(self, tile: tuple[int, int]) -> float:
        """Share of the best rate with a tile, of which smaller ones have less."""
        share = gemms.tile_efficiency(self.m, self.n, *tile) * gemms.wave_efficiency(
            gemms.tiles(self.m, self.n, *tile), self.machine.processors
        )
        return float(share.m_as("") * (tile[0] * tile[1] / LARGEST_TILE) ** SMALLER_TILE)

    @cached_property
    def facts(self) -> dict[str, object]:
        """The answer, by names that stay; tiles and waves where a device's processors are known."""
        bound, expected = self.bound, self.expected
        facts: dict[str, object] = {
            **self.headline,
            "device": self.machine.device.key,
            **values(self, "dtype m n k"),
            **values(bound, "operations traffic"),
            "intensity": Workload(bound.operations, bound.traffic).intensity,
            "time": {"perfect_overlap": bound.lower, "no_overlap": bound.upper},
            "bound": bound.bound,
        }
        if self.machine.device.publishes("units"):
            facts |= {
                **values(self, "tile tiles tile_efficiency"),
                "processors": self.machine.processors,
                **values(self, "waves wave_efficiency"),
            }
        if expected is None:
            return facts | {"expected": None, "not_expected": self.not_expected}
        rate = (bound.operations / expected).to("TFLOP/s")
        return facts | {
            "expected": expected,
            "expected_rate": rate,
            "share_of_peak": (rate / bound.peak).to("%"),
        }

    @property
    def answer(self) -> str:
        """Its shape, its device, and how long it takes."""
        shape = f"{self.m} × {self.n} × {self.k} in {self.dtype.upper()}"
        bound = self.bound
        time = f"at least {bound.lower}" if self.expected is None else f"{self.expected}"
        return f"{shape} on 1 {self.machine.device.name}: {time}, bound by {bound.bound}"

    @property
    def stands_on(self) -> str:
        """Which measured rates it stands on, or that it is a bound."""
        if self.not_expected:
            return f"BOUND ONLY, {intervals.PEAKS}: {self.not_expected.partition(': ')[0]}"
        return rates_of([self.kernel], self.machine)

    @cached_property
    def tables(self) -> list[Table]:
        """The answer for people, a line for each of its parts."""
        facts, bound = self.facts, self.bound
        rows = {
            "operations": str(bound.operations),
            "bytes": f"{bound.traffic}, each matrix once: {facts['intensity']}",
            "bound": f"{bound.lower} by {bound.bound}, at {bound.peak} and"
            f" {self.machine.device.memory_bandwidth} as published",
        }
        if "tile" in facts:
            rows["tiles"] = (
                f"{self.tiles} of {self.tile[0]} × {self.tile[1]}, {self.tile_efficiency} of which"
                " is output"
            )
            rows["waves"] = (
                f"{self.waves} of {facts['processors']} processors, {self.wave_efficiency} of"
                " which work on average"
            )
        if facts["expected"] is None:
            rows["not expected"] = self.not_expected
        else:
            share = f"{facts['share_of_peak']:.3g} of the peak"
            rows["expected"] = f"{facts['expected']}, {facts['expected_rate']}, {share}"
        return [Table([*rows.items()], head=("", "of the product"))]


def gemm(m: int, n: int, k: int, machine: Machine, dtype: str | None = None) -> Gemm:
    """One matrix product (m × k) · (k × n) on a device of a machine.

    - `dtype`: format of the inputs; bf16 where it is left out and the device has it

    >>> from calc import machines
    >>> product = gemm(4097, 4096, 4096, machines.get("dgx-h100"))
    >>> print(product.bound.lower, product.tile, product.waves, product.expected)
    139.0 µs (128, 256) 4 192.9 µs
    """
    if not isinstance(machine, Machine):
        raise InputError(f"a machine of calc.machines is needed; got {abbreviated(machine)}")
    m, n, k = (
        whole_number(f"the size {x}", size) for x, size in zip("mnk", (m, n, k), strict=True)
    )
    dtype = machine.device.usual_dtype if dtype is None else dtype
    machine.device.peak(dtype)  # refuses a format in which the device does not compute
    return Gemm(m, n, k, machine, dtype_of(dtype)).settled()


def expected(
    kernels: Sequence[Kernel], machine: Machine, software: Software = UNKNOWN
) -> dict[str, Quantity]:
    """The expected time of a pass by kind of kernel, one kernel after the other.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> sorted(expected(step(job, Tokens(writing=1, context=1000)), job.machine))
    ['cache', 'gemm', 'memory']
    """
    parts: dict[str, Quantity] = {}
    for kernel in _checked(kernels, machine):
        time = kernel.expected(machine, software)
        parts[kernel.kind] = parts.get(kernel.kind, NO_TIME) + time
    return parts


def rates_of(kernels: Sequence[Kernel], machine: Machine) -> str:
    """Whether the rates of kernels were measured on a machine, or some are usual shares.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> rates_of(step(job, Tokens(writing=32, context=4096)), job.machine)
    'measured rates of NVIDIA DGX H100'
    """
    several = list(_checked(kernels, machine))
    likely = any(is_likely(rate) for kernel in several for rate in kernel.rates(machine))
    return f"{intervals.KIN if likely else intervals.MEASURED} of {machine.name}"


def rates(
    kernels: Sequence[Kernel], machine: Machine, software: Software = UNKNOWN
) -> dict[str, tuple[Quantity | Surface, ...]]:
    """What `expected` used for each kind of kernel: measured rates, or rows of the software.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> used = rates(step(job, Tokens(writing=32, context=4096)), job.machine)
    >>> print(*used["gemm"])
    3.18 TB/s 794.5 TFLOP/s
    """
    several = _checked(kernels, machine)
    return different_rates(
        (kernel.kind, rate) for kernel in several for rate in kernel.timed(machine, software)[1]
    )


def _checked(kernels: Sequence[Kernel], machine: Machine) -> Iterator[Kernel]:
    for kernel in as_list("kernels", kernels):
        if not isinstance(kernel, Kernel) or not isinstance(machine, Machine):
            raise InputError(
                "kernels of calc.kernels and a machine of calc.machines are needed; got"
                f" {abbreviated(kernel)} and {abbreviated(machine)}"
            )
        yield kernel


def step(job: Job, tokens: Tokens, shared_caches: bool = False) -> list[Kernel]:
    """The kernels of a pass of serving, as one device launches them.

    Each copy of the model (DP) has its own tokens, and cuts matrices into slices (TP); experts are
    shared out to as many devices as the layout says (EP): whole ones to the slices, or to more
    devices, whose tokens they then read too. Slices beyond the heads of keys and values read copies
    of the caches, or a part each of `shared_caches`. Drafted tokens are checked by the same reading
    of their sequence's cache. What devices say to each other is no kernel. What is written and read
    may be an array, for as many passes.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> print(sum(expected(step(job, Tokens(writing=32, context=4096)), job.machine).values()))
    10.95 ms
    """
    Job.check(job)
    load = _checked_tokens(tokens).of_one(job.layout.data)
    part = Slice(job.with_context(load.longest), job.weights)
    computed, outputs = load.computed, load.checked + load.prompts
    kernels = part.launched(computed, outputs)
    return [*kernels, *part.attention(load, truth("shared_caches", shared_caches))]


def _checked_tokens(tokens: Tokens) -> Tokens:
    """Numbers in their ranges, with something to do."""
    Tokens.check(tokens)
    writing, reading = _amount("writing", tokens.writing), _amount("reading", tokens.reading)
    check_shapes({"writing": quantity(writing, ""), "reading": quantity(reading, "")})
    if smallest(writing + reading) <= 0:
        raise InputError("writing and reading are both 0: a step has tokens to write or to read")
    return Tokens(
        writing,
        number("context", tokens.context),
        reading,
        number("prompt", tokens.prompt, 1),
        number("before", tokens.before),
        number("drafted", tokens.drafted),
    )


def _amount(name: str, given: Any) -> Number:
    """A number, or an array of them: a table of steps is made in one pass."""
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    if type(given).__name__ != "ndarray" or kind not in ("i", "u", "f") or given.ndim != 1:
        return number(name, given)
    numbers: Number = given.astype(float)
    check_finite(name, numbers)
    number(name, smallest(numbers))
    return numbers


def training_step(job: Job, batch: Batch) -> list[Kernel]:
    """The kernels of a microbatch's forward and backward pass, as one device launches them.

    A product's backward pass is two products, for the gradients of its input and of its weights,
    which are left out of what is frozen; that of attention does five products where the forward
    pass does two. With full recomputation the forward pass runs twice, with an alternate one its
    passes and every other product. In few bits, what products multiply with is rounded first.
    Sequences, slices and experts may be arrays, a layout each.

    >>> job = Job.of("llama-3-8b", "dgx-h100")
    >>> print(sum(expected(training_step(job, Batch(8192)), job.machine).values()))
    676.0 ms
    """
    Job.check(job)
    Batch.check(batch)
    length, sequences = number("length", batch.length, 1), _amount("sequences", batch.sequences)
    number("sequences", smallest(sequences), above=0)
    weights = Weights.of(job.model, input_size(job.formats.dtype), "dtype")
    part = Slice(job.with_context(length), weights)
    count = length * sequences / job.layout.context
    load = Tokens(reading=count, prompt=length)
    forward = [*part.products(count, count), *part.passes(count), *part.prompts(load)]
    forward += part.sampling(count)
    runs = 2 if batch.recomputation == "full" else 1
    launched = [replace(kernel, launches=runs * kernel.launches) for kernel in forward]
    if batch.recomputation == "alternate":
        again = transformer.computed_again(job.model)
        launched += [*part.products(count, count, again), *part.passes(count)]
    frozen = job.trained.frozen
    backward = [back for kernel in forward for back in _backward(kernel, frozen)]
    rounded = [
        *(_rounded(kernel, "input", frozen) for kernel in launched if _is_in_few_bits(kernel)),
        *(_rounded(kernel, "gradient", frozen) for kernel in forward if _is_in_few_bits(kernel)),
    ]
    return [*(replace(kernel, lasting=True) for kernel in (*launched, *backward)), *rounded]


def _is_in_few_bits(kernel: Kernel) -> bool:
    return kernel.shape is not None and kernel.sizes[0] < TWO_BYTES


def _rounded(kernel: Kernel, side: str, frozen: bool) -> Kernel:
    """The pass that rounds a product's input, or the gradient of its output.

    It is read in two bytes, and for FP4 once more before, for the scale of the whole; it is written
    along its rows and, where gradients of weights multiply with it too, along its columns
    [nvidia-transformer-engine].
    """
    assert kernel.shape is not None
    m, n, k = kernel.shape
    reads, copies = (2 if kernel.dtype == "fp4" else 1), (1 if frozen else 2)
    each = reads * TWO_BYTES + copies * kernel.sizes[0]
    traffic = each * (kernel.products * m * (k if side == "input" else n))
    return Kernel(f"rounding of {kernel.name}, {side}", "memory", kernel.launches, traffic=traffic)


def _backward(kernel: Kernel, frozen: bool) -> Iterator[Kernel]:
    name = f"{kernel.name}, backward"
    if kernel.shape is None:
        factor = 2.5 if kernel.kind == "attention" else 2.0
        work, moved = kernel.operations * factor, kernel.traffic * factor
        yield replace(kernel, name=name, operations=work, traffic=moved, direction="backward")
        return
    m, n, k = kernel.shape
    yield replace(kernel, name=f"{name} to the input", shape=(m, k, n))
    if not frozen:
        yield replace(kernel, name=f"{name} to the weights", shape=(n, k, m))


class Slice:
    """What one of the devices that share a model's matrices launches, layer by layer."""

    def __init__(self, job: Job, weights: Weights) -> None:
        self.model, self.weights = job.model, weights
        self.slices, self.experts = job.layout.tensor, job.layout.experts
        self.dtype, self.kv = job.formats.dtype, job.formats.kv
        self.input_size = input_size(self.dtype)

    def launched(self, tokens: Number, outputs: Number) -> Iterator[Kernel]:
        """All but attention, as engines fuse it: what a layer's experts do is one launch."""
        kernels = [*self.products(tokens, outputs), *self.passes(tokens), *self.rounding(tokens)]
        kernels += self.sampling(outputs)
        inside = tuple(kernel for kernel in kernels if kernel.name in EXPERTS)
        yield from (kernel for kernel in kernels if kernel.name not in EXPERTS)
        if inside:
            yield self._experts(inside, tokens)

    def _experts(self, parts: tuple[Kernel, ...], tokens: Number) -> Kernel:
        """One launch of what the experts of a layer do."""
        first = next(matrix for matrix in self.model.matrices if matrix.used < matrix.copies)
        seen = tokens * maximum(1.0, self.experts / (1.0 * self.slices))
        products = [part for part in parts if part.shape is not None]
        routed = products[0].products * products[0].shape[0] if products[0].shape else 0.0
        hidden = first.outputs / maximum(1.0, self.slices / self.experts)
        weights = sum((part.traffic for part in products), NO_BYTES).m_as("byte")
        moved = bytes_of_experts(seen, routed, first.inputs, hidden, weights)
        formats = formats_of_product(
            self.dtype, self.weights.size(first).m_as("byte"), experts=True
        )
        return Kernel(
            "experts",
            "gemm",
            first.layers,
            operations=sum((part.operations for part in products), NO_WORK),
            traffic=quantity(weights, "byte"),
            dtype=self.dtype,
            measured=Measured("experts", formats, seen * first.used / first.copies),
            moved=quantity(moved, "byte"),
            made_of=parts,
        )

    def products(
        self, tokens: Number, outputs: Number, of: Sequence[Matrix] | None = None
    ) -> Iterator[Kernel]:
        """The products of the weights with so many tokens, and of the output with so few."""
        matrices = list(self.model.matrices if of is None else of)
        while matrices:
            first = matrices.pop(0)
            group = next((names for names in FUSED if first.name in names), ())
            alike = [first, *(matrix for matrix in matrices if matrix.name in group)]
            matrices = [matrix for matrix in matrices if matrix not in alike]
            yield self._product(alike, outputs if first.part == "output" else tokens)

    def _product(self, alike: Sequence[Matrix], tokens: Number) -> Kernel:
        first, columns = alike[0], sum(matrix.outputs for matrix in alike)
        met, rows, slices = 1.0, tokens, 1.0 * self.slices
        sizes, dtype = (self.input_size, self.weights.size(first), TWO_BYTES), self.dtype
        if first.used < first.copies:  # a mixture's experts, each with its share of the tokens
            # Devices that share out experts read the tokens of all who cut the other matrices.
            tokens = tokens * maximum(1.0, self.experts / slices)
            slices = maximum(1.0, slices / self.experts)
            share = first.used / first.copies
            met = experts_used(first.copies, share, maximum(tokens, 1.0)).magnitude
            rows = tokens * first.used / met
            met = met / self.experts
        if first.part == "router" or first.name in WHOLE:  # which every device has whole
            slices = 1.0
        # The second matrix of a block is cut by its rows, so that results are added up.
        by_rows = first.name.endswith((" output", "down"))
        k = first.inputs / slices if by_rows else first.inputs
        n = columns if by_rows else maximum(columns / slices, 1.0)  # a column is never cut
        if first.part in ("output", "router"):  # kept in two bytes by all recipes
            sizes = (TWO_BYTES,) * 3
        if sizes[1] >= TWO_BYTES:
            sizes, dtype = (TWO_BYTES, sizes[1], TWO_BYTES), "bf16"
        work = quantity(2.0 * rows * n * k * met, "FLOP")
        given, weight, result = (size.m_as("byte") for size in sizes)
        formats = formats_of_product(dtype, weight)
        moved = bytes_of_product(rows, n, k, given, weight, result)
        return Kernel(
            "+".join(matrix.name for matrix in alike),
            "gemm",
            first.layers,
            operations=work,
            traffic=sizes[1] * (met * n * k),
            shape=(rows, n, k),
            products=met,
            sizes=sizes,
            dtype=dtype,
            measured=None if first.used < first.copies else Measured("product", formats, rows),
            moved=quantity(moved, "byte"),
        )

    def passes(self, tokens: Number) -> Iterator[Kernel]:
        """The passes over vectors between products, fused as compilers and engines fuse them."""
        model = self.model
        vectors = TWO_BYTES * tokens
        width = model.width
        attending = model.caching_layers
        rotated = _rotated(model) / attending / self.slices
        yield Kernel("residuals and norms", "memory", model.blocks, traffic=4 * width * vectors)
        yield Kernel("rotation", "memory", attending, traffic=vectors * (2 * rotated))
        for up in (matrix for matrix in model.matrices if matrix.name.endswith("up")):
            if up.part == "feed-forward":
                hidden = (3 if model.gated else 2) * up.outputs * up.used / self.slices
                name = "activation of experts" if up.used < up.copies else "activation"
                yield Kernel(name, "memory", up.layers, traffic=vectors * hidden)
        for router in (matrix for matrix in model.matrices if matrix.part == "router"):
            chosen = model.active_experts or 1
            sent = 4 * model.expert_inputs * chosen * vectors  # there and back
            yield Kernel("sorting by experts", "memory", 2 * router.layers, traffic=sent / 2)

    def rounding(self, tokens: Number) -> Iterator[Kernel]:
        """The passes that round a block's input for its products, with the scales."""
        if self.input_size < TWO_BYTES:
            model = self.model
            rounded = (TWO_BYTES + self.input_size) * tokens
            products = Measured("product", formats_of_product(self.dtype, 1.0), tokens)
            yield Kernel(
                "rounding", "memory", model.blocks, traffic=model.width * rounded, within=products
            )

    def sampling(self, outputs: Number) -> Iterator[Kernel]:
        """The passes over logits, of a model that has any: their softmax, in four bytes each, there
        and back."""
        for rows in (each.outputs for each in self.model.matrices if each.part == "output"):
            traffic = BYTE * (outputs * rows * 8) / self.slices
            yield Kernel("softmax of logits", "memory", 1, traffic=traffic)

    @property
    def attention_formats(self) -> tuple[str, ...]:
        latent = self.model.kv_latent is not None
        width = float(self.model.head_width)
        return formats_of_attention(quantity(self.kv).m_as("byte"), width, latent)

    def attention(self, load: Tokens, shared_caches: bool = False) -> Iterator[Kernel]:
        """Attention of written tokens to caches, and of prompts to themselves."""
        if load.writes:
            yield from self.caches(load, shared_caches)
        if load.reads:
            yield from self.prompts(load)

    def caches(self, load: Tokens, shared: bool) -> Iterator[Kernel]:
        """Attention of written tokens to caches, and states that they change."""
        model, sequences, tokens = self.model, load.writing, max(load.context, 1.0)
        cached = transformer.cache_read(model, tokens, self.kv)
        seen = transformer.attended_context(model, tokens).magnitude
        parts = self.slices if shared else min(self.slices, model.cache_heads)
        read = sequences * cached.m_as("byte") / model.caching_layers / parts
        attended = transformer.attended_per_token(model, BYTE).m_as("byte/token")
        work = 2 * sequences * seen * attended / self.slices
        if sparse := model.layers_with(*INDEXED):
            scored = attention.index_flops(
                tokens, sparse, model.index_heads or 1, model.index_head_width or 1
            )
            work += sequences * scored.m_as("FLOP/token") / model.caching_layers
        measured, moved = Measured("caches", self.attention_formats, seen), None
        if sparse and sparse == model.caching_layers and model.kv_latent is not None:
            measured = Measured("chosen", self.attention_formats, tokens)
            widths = model.kv_latent, (model.rotary_width or 0), (model.index_head_width or 0)
            shape = sequences, tokens, seen, model.heads / self.slices
            cached_size = quantity(self.kv).m_as("byte")
            moved = quantity(bytes_of_chosen(*shape, cached_size, widths), "byte")
        yield Kernel(
            "attention to caches",
            "cache",
            model.caching_layers,
            operations=quantity(work, "FLOP"),
            traffic=quantity(read, "byte"),
            measured=measured,
            moved=moved,
            chooses=sparse > 0,
        )
        if layers := model.layers_with(*RECURRENT):
            changed = 2 * transformer.state_memory(model) / layers / self.slices
            yield Kernel(
                "states",
                "memory",
                layers,
                traffic=changed * sequences,
                measured=self._of_states("states", sequences),
                moved=self._moved_by_states(sequences, sequences),
            )

    def _of_states(self, kernel: str, length: Number) -> Measured | None:
        """Rows of the delta rule, with a decay for each head or for each of its numbers."""
        if not self.model.layers_with("linear"):
            return None
        rule = "delta" if self.model.decay_rank is None else "kda"
        return Measured(kernel, (rule,), length)

    def _moved_by_states(self, sequences: Number, tokens: Number) -> Quantity:
        """Bytes of a layer of linear attention, as rows of the delta rule count them."""
        model, slices = self.model, self.slices
        results = (model.linear_value_heads or 0) * (model.linear_value_width or 0)
        state = 4 * results * (model.linear_key_width or 0)
        channels = model.convolved("linear")
        moved = bytes_of_states(
            sequences, tokens, channels / slices, results / slices, state / slices
        )
        return quantity(moved, "byte")

    def prompts(self, load: Tokens) -> Iterator[Kernel]:
        """Causal attention of what is read to its own prompt, windows counted, and its states."""
        model, layers = self.model, self.model.caching_layers
        if recurrent := model.layers_with(*RECURRENT):
            each = transformer.state_flops(model, load.prompt).m_as("FLOP/token")
            changed = 2 * transformer.state_memory(model) * load.prompts
            yield Kernel(
                "states of prompts",
                "attention",
                recurrent,
                operations=quantity(load.reading * each / recurrent / self.slices, "FLOP"),
                traffic=changed / recurrent / self.slices,
                measured=self._of_states("chunks", load.prompt),
                moved=self._moved_by_states(load.prompts, load.reading),
            )
        work = load.prompts * _attention_of_prompt(model, load.prompt, load.before)
        scored: Number = 0.0
        if sparse := model.layers_with(*INDEXED):  # which every device does whole
            context = load.before + attention.causal_context(load.prompt).magnitude
            each = attention.index_flops(
                context, sparse, model.index_heads or 1, model.index_head_width or 1
            )
            scored = load.reading * each.m_as("FLOP/token")
        measured = Measured("prompts", self.attention_formats, load.prompt)
        worked = moved = None
        if sparse and sparse == layers and model.kv_latent is not None:
            last, heads = load.before + load.prompt, model.heads / self.slices
            size = quantity(self.kv).m_as("byte")
            formats = formats_of_choosing(size, smallest(heads), model.index_heads or 1)
            measured = Measured("choosing", formats, last)
            widths = model.kv_latent, (model.rotary_width or 0), (model.index_head_width or 0)
            shape = load.prompts, last, last, heads * load.prompt
            moved = quantity(bytes_of_chosen(*shape, size, widths), "byte")
            own = model.head_width + widths[1] + (model.value_width or model.head_width)
            latents = (work - scored) * (2 * widths[0] + widths[1]) / own  # of each head
            worked = quantity((latents / self.slices + scored) / layers, "FLOP")
        cached = NO_BYTES
        if load.before:
            cached = transformer.cache_read(model, load.before, self.kv) * load.prompts
        yield Kernel(
            "attention",
            "attention",
            layers,
            operations=quantity(((work - scored) / self.slices + scored) / layers, "FLOP"),
            traffic=cached / layers / self.slices,
            measured=measured,
            worked=worked,
            moved=moved,
            chooses=sparse > 0,
        )


def _rotated(model: Transformer) -> int:
    """Numbers of a token's queries and keys that are rotated, of all layers."""
    layers, windowed = model.layers_with("window"), model.heads_of("window")
    others = (model.heads + model.kv_heads) * model.head_width
    rotated = (windowed.queries + windowed.keys) * windowed.key_width
    return (model.caching_layers - layers) * others + layers * rotated


def _attention_of_prompt(model: Transformer, tokens: Number, before: Number = 0) -> Number:
    """Operations of attention in which so many tokens look at those before them, and themselves."""

    def whole(length: Number) -> Number:
        others = projection_flops(model.multiplied_parameters)
        others = others + transformer.state_flops(model, length)
        of_a_token: Number = (transformer.causal_flops(model, length) - others).m_as("FLOP/token")
        return length * of_a_token

    return whole(before + tokens) - (whole(before) if before else 0.0)
