"""Published matrix products by shape, and what the laws of `calc.gemms` say of each.

NVIDIA's are rows of `data/measured/gemms.csv`: times in BF16, of SGLang 0.5.10 and therefore of
cuBLAS, replayed as CUDA graphs with weights that the L2 cache does not hold. Of its table they are
all products with n and k of 1024, 4096 or 16384, and with one row or from 16 rows on; the smallest
product of each device, whose time is the `start` of all others, is none of them. Azure's and
DeepGEMM's are rows of `data/published/kernels.toml`. Rates are the best of a search by others, and
nothing is fitted to any of these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from calc.catalog import machines
from calc.core.elementwise import maximum
from calc.core.errors import InputError, abbreviated
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity, quantity
from calc.laws import gemms, roofline
from calc.published import conditions
from calc.published.kernel_rows import measured_rate
from calc.published.reading import Row, rows
from calc.steps.job import TWO_BYTES, input_size

FILE = DATA / "measured" / "gemms.csv"
SOURCE = "nvidia-aiconfigurator"
TILE = (256, 128)  # the one tile of "waves of one tile"
SMALLEST = 32  # columns of the smallest product, whose time is the start
CHIPS = {  # machines with the chip of one whose start was measured
    "dgx-a100": "dgx-a100",
    "dgx-h100": "dgx-h100",
    "dgx-h200": "dgx-h100",
    "dgx-b200": "dgx-b200",
    "gb200-nvl72": "dgx-b200",
}
LISTED = {"azure": "cuBLAS by Azure, {}", "deepgemm": "DeepGEMM, {}"}
WAYS = (
    "roofline, published",
    "roofline, measured",
    "roofline, measured, and start",
    "waves of one tile",
    "best tile and split",
    "two numbers fitted",
)


@dataclass(frozen=True)
class Product:
    """Matrix products (m × k) · (k × n) in one kernel, and how long they were measured to take."""

    machine: str
    m: float
    n: float
    k: float
    time: Quantity
    dtype: str = "bf16"
    products: float = 1

    @property
    def rate(self) -> Quantity:
        """The operations of the product over its time."""
        operations = quantity(2 * self.products * self.m * self.n * self.k, "FLOP")
        return quantity((operations / self.time).m_as("TFLOP/s"), "TFLOP/s")


def sets() -> dict[str, tuple[Product, ...]]:
    """The published products, by program and chip.

    >>> {name: len(products) for name, products in sets().items()}["cuBLAS by NVIDIA, H100"]
    540
    """
    of_programs = {f"cuBLAS by NVIDIA, {chip(machine)}": measured(machine) for machine in names()}
    for row in rows("kernel"):
        written = next((LISTED[name] for name in LISTED if row.source.startswith(name)), None)
        product = None if written is None or row["kind"] != "gemm" else _listed(row)
        if written and product:
            name = written.format(chip(product.machine))
            name += ", grouped" if row["groups"] else ""
            of_programs[name] = (*of_programs.get(name, ()), product)
    return of_programs


def chip(machine: str) -> str:
    """The short name of a machine's device.

    >>> chip("dgx-h100")
    'H100'
    """
    return machines.get(machine).device.key.split("-")[0].upper()


def names() -> tuple[str, ...]:
    """The machines whose products NVIDIA measured.

    >>> names()
    ('dgx-a100', 'dgx-h100', 'dgx-b200')
    """
    return tuple(_by_machine())


def measured(machine: str) -> tuple[Product, ...]:
    """NVIDIA's products of a machine, but for the smallest.

    >>> products = measured("dgx-h100")
    >>> print(len(products), max(product.rate for product in products))
    540 824.0 TFLOP/s
    """
    return tuple(product for product in _of(machine) if product.n > SMALLEST)


def large(machine: str, side: int) -> list[tuple[float, float]]:
    """Intensities and rates, in FLOP/byte and TFLOP/s, of products with weights of that side.

    >>> intensity, rate = large("dgx-h100", 4096)[-1]
    >>> print(f"{intensity:.0f} {rate:.0f}")
    6554 701
    """
    points = []
    for product in measured(machine):
        if min(product.n, product.k) >= side:
            work = roofline.gemm(product.m, product.n, product.k, TWO_BYTES)
            points.append((work.intensity.m_as("FLOP/byte"), product.rate.m_as("TFLOP/s")))
    return points


def start(machine: str) -> Quantity:
    """The time of the smallest product, one row by 32 by 32: that of running a product at all.

    >>> print(start("dgx-h100"))
    2.558 µs
    """
    return next(product.time for product in _of(machine) if product.n == SMALLEST)


def predictions(product: Product) -> dict[str, Quantity]:
    """The time of the product by each of the `WAYS` of predicting it.

    >>> product = measured("dgx-h100")[-1]
    >>> print(product.time.to("ms"), predictions(product)["best tile and split"].to("ms"))
    25.1 ms 22.15 ms
    """
    if not isinstance(product, Product):
        raise InputError(
            f"a product of `measured` or `sets` is needed here; got {abbreviated(product)}"
        )
    machine, shape = machines.get(product.machine), (product.m, product.n, product.k)
    rate, bandwidth = machine.reached("gemm", product.dtype), machine.memory_reached
    size = input_size(product.dtype)
    begin, units = start(CHIPS[product.machine]), machine.processors
    how = (size, TWO_BYTES, product.products, begin)
    peak = machine.device.peak(product.dtype)
    published = _overlapped(product, size, peak, machine.device.memory_bandwidth)
    reached = _overlapped(product, size, rate, bandwidth)
    times = (
        published,
        reached,
        reached + begin,
        gemms.time_in_tiles(*shape, rate, bandwidth, units, *TILE, 1, *how),
        gemms.fastest_time(*shape, rate, bandwidth, units, *how),
        gemms.gemm_time(*shape, rate, bandwidth, units, size, size, products=product.products),
    )
    return {way: time.to("us") for way, time in zip(WAYS, times, strict=True)}


def errors(name: str, way: str) -> tuple[float, ...]:
    """|predicted / measured − 1| of each product of a set, rising.

    >>> found = errors("cuBLAS by NVIDIA, H100", "best tile and split")
    >>> print(f"{found[len(found) // 2]:.1%}")
    10.6%
    """
    if not isinstance(way, str) or way not in WAYS:
        raise InputError(f"a way of predicting is one of {', '.join(WAYS)}; got {abbreviated(way)}")
    table = _errors()
    if not isinstance(name, str) or name not in table:
        raise InputError(f"a set is one of {'; '.join(table)}; got {abbreviated(name)}")
    return tuple(sorted(table[name][way]))


@cache
def _errors() -> dict[str, dict[str, list[float]]]:
    errors_of_sets: dict[str, dict[str, list[float]]] = {}
    for name, products in sets().items():
        errors_of_sets[name] = {way: [] for way in WAYS}
        for several in _alike(products):
            for way, time in predictions(several).items():
                errors_of_sets[name][way] += abs((time / several.time).m_as("") - 1).tolist()
    return errors_of_sets


def _alike(products: Iterable[Product]) -> Iterator[Product]:
    """Products of one machine and data type together, with arrays for their shapes and times."""
    alike: dict[tuple[str, str], list[Product]] = {}
    for product in products:
        alike.setdefault((product.machine, product.dtype), []).append(product)
    for (machine, dtype), several in alike.items():
        rows = [
            (product.m, product.n, product.k, product.products, product.time.m_as("us"))
            for product in several
        ]
        m, n, k, count, time = (
            quantity(column, "").magnitude for column in zip(*rows, strict=True)
        )
        yield Product(machine, m, n, k, quantity(time, "us"), dtype, count)


def _overlapped(product: Product, size: Quantity, rate: Quantity, bandwidth: Quantity) -> Quantity:
    """The roofline's time, each matrix moved once and results in two bytes."""
    m, n, k = product.m, product.n, product.k
    operations = quantity(2 * m * n * k, "FLOP") * product.products
    moved = (k * (m + n) * size + m * n * TWO_BYTES) * product.products
    seconds = (operations / rate).m_as("s"), (moved / bandwidth).m_as("s")
    return quantity(maximum(*seconds), "s")


def _listed(row: Row) -> Product | None:
    """A row of kernels.toml, where its shape, its rate and its machine's start are known."""
    shape = [row.number(side) for side in "mnk"]
    machine, dtype = conditions.machine(row), conditions.dtype(row) or "bf16"
    dtype = "bf16" if dtype == "fp16" else dtype  # at the same rate, and measured more often
    if None in shape or machine.key not in CHIPS or not machine.has_reached("gemm", dtype):
        return None
    m, n, k = (side for side in shape if side is not None)
    products = float(row["groups"] or 1)
    time = quantity(2 * products * m * n * k / measured_rate(row), "s").to("us")
    return Product(machine.key, m, n, k, time, dtype, products)


def _of(machine: str) -> tuple[Product, ...]:
    if not isinstance(machine, str) or machine not in names():
        raise InputError(
            f"products were measured on {', '.join(names())}; got {abbreviated(machine)}"
        )
    return _by_machine()[machine]


@cache
def _by_machine() -> dict[str, tuple[Product, ...]]:
    of_machines: dict[str, tuple[Product, ...]] = {}
    for product in _products():
        of_machines[product.machine] = (*of_machines.get(product.machine, ()), product)
    return of_machines


def _products() -> Iterator[Product]:
    for row in read_rows(FILE):
        m, n, k = (int(row[side]) for side in "mnk")
        yield Product(row["machine"], m, n, k, quantity(float(row["time_microseconds"]), "us"))
