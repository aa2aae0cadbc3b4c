"""One matrix product on a device: its bound, its tiles and waves, and what is expected of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from calc.catalog import intervals
from calc.catalog.asking import understood
from calc.catalog.hardware import dtype_of
from calc.catalog.machines import Machine
from calc.core.arguments import whole_number
from calc.core.elementwise import maximum
from calc.core.errors import InputError, abbreviated
from calc.core.report import Answer, Table, values
from calc.core.units import Quantity
from calc.laws import gemms
from calc.laws.gemms import LARGEST_TILE, SMALLER_TILE, TILES
from calc.laws.roofline import StepTime, Workload
from calc.steps.expectation import Missing, Parts, if_measured, of_kernels
from calc.steps.job import TWO_BYTES, input_size
from calc.steps.measured import Kernel


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
