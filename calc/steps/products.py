"""A matrix product on a device, or fused attention: its bound, and what is expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from calc.catalog import intervals
from calc.catalog.asking import understood
from calc.catalog.hardware import dtype_of
from calc.catalog.machines import Machine
from calc.core.arguments import truth, whole_number
from calc.core.elementwise import maximum
from calc.core.errors import InputError, abbreviated, marked
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity, quantity
from calc.laws import attention as laws, gemms
from calc.laws.gemms import LARGEST_TILE, SMALLER_TILE, TILES
from calc.laws.roofline import StepTime, Workload
from calc.steps.expectation import Missing, Parts, if_measured, of_kernels
from calc.steps.job import TWO_BYTES, input_size
from calc.steps.measured import Kernel

BACKWARD = 2.5  # five products, where the forward pass has two
SIXTEEN_BITS = ("bf16", "fp16")


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
        return Kernel.of_product("product", (m, n, k), sizes, self.dtype)

    @property
    def bound(self) -> StepTime:
        """Operations and bytes at published rates."""
        kernel = self.kernel
        return Workload(kernel.operations, kernel.traffic).on(self.machine.device, self.dtype)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the tile of which the most is left, as `gemms.gemm_time` takes it."""
        return max(TILES, key=self._kept)

    @property
    def tiles(self) -> int:
        """Return how many tiles cover the output."""
        return int(gemms.tiles(self.m, self.n, *self.tile).magnitude)

    @property
    def waves(self) -> int:
        """Return how often the processors compute a tile each."""
        return math.ceil(self.tiles / self.machine.processors)

    @property
    def tile_efficiency(self) -> Quantity:
        """Share of the tiles that is output."""
        return gemms.tile_efficiency(self.m, self.n, *self.tile).to("%")

    @property
    def wave_efficiency(self) -> Quantity:
        """Share of the processors that work, over all waves."""
        return gemms.wave_efficiency(self.tiles, self.machine.processors).to("%")

    @cached_property
    def expectation(self) -> Parts | Missing:
        """Return its time at the machine's measured rates, or which one was not measured."""
        return if_measured(lambda: of_kernels([self.kernel], self.machine))

    @property
    def expected(self) -> Quantity | None:
        """Return the expected time; None without a measured rate."""
        return self.expectation.total if isinstance(self.expectation, Parts) else None

    @property
    def not_expected(self) -> str:
        """Return which rate was not measured."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    def _kept(self, tile: tuple[int, int]) -> float:
        """Share of the best rate with a tile, of which smaller ones have less."""
        share = gemms.tile_efficiency(self.m, self.n, *tile) * gemms.wave_efficiency(
            gemms.tiles(self.m, self.n, *tile), self.machine.processors
        )
        return float(share.m_as("") * (tile[0] * tile[1] / LARGEST_TILE) ** SMALLER_TILE)

    @cached_property
    def facts(self) -> dict[str, object]:
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
        shape = f"{self.m} × {self.n} × {self.k} in {self.dtype.upper()}"
        bound = self.bound
        time = f"at least {bound.lower}" if self.expected is None else f"{self.expected}"
        return f"{shape} on 1 {self.machine.device.name}: {time}, bound by {bound.bound}"

    @property
    def stands_on(self) -> str:
        if isinstance(self.expectation, Missing):
            return f"BOUND ONLY, {intervals.PEAKS}: {self.not_expected.partition(': ')[0]}"
        return f"{self.expectation.basis} of {self.machine.name}"

    @cached_property
    def tables(self) -> list[Table]:
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


@understood
def gemm(m: int, n: int, k: int, machine: Machine, dtype: str | None = None) -> Gemm:
    """One matrix product (m × k) · (k × n) on a device of a machine.

    Parameters
    ----------
    dtype
        format of the inputs; bf16 where it is left out and the device has it

    Examples
    --------
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


@dataclass(frozen=True)
class Attention(Answer):
    """Fused attention on a device: its bound, and what is expected of its best measured kernel."""

    length: int
    """Positions that there are in all."""
    queries: int
    """The last of them, whose tokens look at all before."""
    heads: int
    kv_heads: int
    head_width: int
    sequences: int
    machine: Machine
    causal: bool = False
    backward: bool = False
    dtype: str = "bf16"

    @property
    def kernel(self) -> Kernel:
        """The attention as a pass launches it: queries, keys, values and results move once."""
        seen: Any = self.length
        if self.causal:
            seen = self.length - self.queries + laws.causal_context(self.queries).m_as("")
        each = laws.attention_flops(seen, 1, self.heads, self.head_width, self.head_width)
        work = each * quantity(self.queries * self.sequences, "token")
        rows = self.queries * self.heads + self.length * self.kv_heads
        moved = 2 * rows * self.head_width * self.sequences * input_size(self.dtype)
        if self.backward:  # with the gradients of all four, and five products in place of two
            work, moved = BACKWARD * work, 2 * moved
        direction = "backward" if self.backward else "forward"
        return Kernel(
            "attention", "attention", 1, work, moved, dtype=self.dtype, direction=direction
        )

    @property
    def bound(self) -> StepTime:
        """Operations and bytes at published rates."""
        kernel = self.kernel
        return Workload(kernel.operations, kernel.traffic).on(self.machine.device, self.dtype)

    @cached_property
    def expectation(self) -> Parts | Missing:
        """Return its time at the machine's measured rates, or which one was not measured."""
        if self.dtype not in SIXTEEN_BITS:
            return Missing(f"attention in {self.dtype.upper()} was not measured apart")
        return if_measured(lambda: of_kernels([self.kernel], self.machine))

    @property
    def expected(self) -> Quantity | None:
        """Return the expected time; None without a measured rate."""
        return self.expectation.total if isinstance(self.expectation, Parts) else None

    @property
    def not_expected(self) -> str:
        """Return which rate was not measured."""
        return self.expectation.reason if isinstance(self.expectation, Missing) else ""

    @property
    def rate(self) -> Quantity | None:
        """Return its operations over the expected time."""
        if self.expected is None:
            return None
        return (self.bound.operations / self.expected).to("TFLOP/s")

    @cached_property
    def facts(self) -> dict[str, object]:
        bound, expected = self.bound, self.expected
        facts: dict[str, object] = {
            **self.headline,
            "device": self.machine.device.key,
            **values(self, "dtype length queries heads kv_heads head_width sequences"),
            **values(self, "causal backward"),
            **values(bound, "operations traffic"),
            "intensity": Workload(bound.operations, bound.traffic).intensity,
            "time": {"perfect_overlap": bound.lower, "no_overlap": bound.upper},
            "bound": bound.bound,
        }
        if (rate := self.rate) is None:
            return facts | {"expected": None, "not_expected": self.not_expected}
        share = (rate / bound.peak).to("%")
        return facts | {"expected": expected, "expected_rate": rate, "share_of_peak": share}

    @property
    def answer(self) -> str:
        shape = f"attention of {self.sequences} × {self.length}, {self.heads} heads of"
        which = f"{' causal' * self.causal}{' backward' * self.backward}"
        bound = self.bound
        time = f"at least {bound.lower}"
        if self.expected is not None:
            time = f"{self.expected}, {self.rate:.3g}"
        name = self.machine.device.name
        return (
            f"{shape} {self.head_width} in {self.dtype.upper()}{which} on 1 {name}: {time}, bound"
            f" by {bound.bound}"
        )

    @property
    def stands_on(self) -> str:
        if isinstance(self.expectation, Missing):
            return f"BOUND ONLY, {intervals.PEAKS}: {self.not_expected.partition(': ')[0]}"
        return f"{self.expectation.basis} of {self.machine.name}, that of its best kernel"

    @property
    def caveats(self) -> tuple[str, ...]:
        if self.expected is None:
            return ()
        return (
            "The rate is that of its best kernel on long sequences: published ones of 512 tokens"
            " reach about two thirds of it, and of causal masks on few tokens none was read.",
        )

    @cached_property
    def tables(self) -> list[Table]:
        facts, bound = self.facts, self.bound
        rows = {
            "operations": str(bound.operations),
            "bytes": f"{bound.traffic}, each vector once: {facts['intensity']}",
            "bound": f"{bound.lower} by {bound.bound}, at {bound.peak} and"
            f" {self.machine.device.memory_bandwidth} as published",
        }
        if facts["expected"] is None:
            rows["not expected"] = self.not_expected
        else:
            share = f"{facts['share_of_peak']:.3g} of the peak"
            rows["expected"] = f"{facts['expected']}, {facts['expected_rate']}, {share}"
        return [Table([*rows.items()], head=("", "of the attention"))]


@understood
def attention(
    length: int,
    machine: Machine,
    heads: int = 32,
    kv_heads: int | None = None,
    head_width: int = 128,
    sequences: int = 1,
    queries: int | None = None,
    causal: bool = False,
    backward: bool = False,
    dtype: str | None = None,
) -> Attention:
    """Fused attention, as FlashAttention computes it, on a device of a machine.

    Parameters
    ----------
    heads
        heads of queries
    kv_heads
        heads of keys and values; as many where it is left out
    head_width
        numbers of a head
    sequences
        sequences of a batch
    queries
        tokens that look, the last of each sequence: 1 while it is written; all where it is left out
    causal
        whether a token looks at those before it alone
    backward
        the pass back, with its five products, in place of the forward one
    dtype
        format of what goes in; bf16 where it is left out and the device has it

    Examples
    --------
    >>> from calc import machines
    >>> long = attention(16384, machines.get("dgx-h100"), heads=16)
    >>> print(long.bound.lower, long.expected, long.facts["expected_rate"])
    2.223 ms 3.398 ms 647.2 TFLOP/s
    """
    if not isinstance(machine, Machine):
        raise InputError(f"a machine of calc.machines is needed; got {abbreviated(machine)}")
    length, heads = whole_number("length", length), whole_number("heads", heads)
    groups = heads if kv_heads is None else whole_number("kv_heads", kv_heads)
    if heads % groups:
        raise InputError(
            f"{marked('kv_heads')} must divide {marked('heads')}, {heads}; got {groups}"
        )
    looking = length if queries is None else whole_number("queries", queries)
    if looking > length:
        raise InputError(f"{marked('queries')} are at most the length, {length}; got {looking}")
    dtype = machine.device.usual_dtype if dtype is None else dtype
    machine.device.peak(dtype)  # refuses a format in which the device does not compute
    shape = whole_number("head_width", head_width), whole_number("sequences", sequences)
    ways = truth("causal", causal), truth("backward", backward)
    return Attention(
        length, looking, heads, groups, *shape, machine, *ways, dtype=dtype_of(dtype)
    ).settled()
