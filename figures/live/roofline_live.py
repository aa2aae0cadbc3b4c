"""The roofline of a device, and where a matrix product or an intensity stands on it."""

from __future__ import annotations

from functools import cache

from calc import formats, hardware, machines, quantity, roofline
from calc.core.units import Quantity
from calc.published import product_rows
from figures.live.model import Amount, Answer, Axis, Choice, Count, Drawing, Model, geometric

INTENSITY = Axis("Arithmetic intensity", "FLOP/byte", log=True)
RATE = Axis("Attainable rate", "TFLOP/s", log=True)
REACHED = "what kernels reached"
LARGE = 4096  # a side of the weights that no L2 cache holds, as in the book's figure
INPUTS = (
    Choice("device", "Device", "h100", hardware.names()),
    Choice("dtype", "Format", "bf16", tuple(hardware.DTYPES)),
    Count("m", "Rows of the result, M", "4096", 1, 10**7),
    Count("n", "Columns of the result, N", "4096", 1, 10**7),
    Count("k", "Length of the sums, K", "4096", 1, 10**7),
    Amount("intensity", "Or an intensity", "", "FLOP/byte", 1e-3, 1e6, optional=True),
)


def answer(device: str, dtype: str, m: int, n: int, k: int, intensity: Quantity | None) -> Answer:
    """Both roofs, the ridge where they meet, the work, and under the roofs what was measured."""
    chip = hardware.get(device)
    peak, bandwidth, ridge = chip.peak(dtype), chip.memory_bandwidth, chip.ridge_point(dtype)
    product = roofline.gemm(m, n, k, formats.element_size("dtype", dtype))
    time = product.on(chip, dtype)
    work = product.intensity if intensity is None else intensity
    reached = roofline.attainable(peak, bandwidth, work)
    at, bend = INTENSITY.of(work), INTENSITY.of(ridge)
    ends = min(at, bend, 0.1), max(at, bend, 1e4)
    rows = [
        (chip.name, x, RATE.of(roofline.attainable(peak, bandwidth, quantity(x, "FLOP/byte"))))
        for x in sorted({*geometric(*ends, 25), bend})
    ]
    machine, measured = machines.of(chip), []
    if machine.has_reached("gemm", dtype) and machine.rates.get("memory"):
        kept = machine.reached("gemm", dtype), machine.memory_reached
        corners = sorted({*ends, INTENSITY.of(roofline.ridge_point(*kept))})
        rates = [roofline.attainable(*kept, quantity(x, "FLOP/byte")) for x in corners]
        rows += [(REACHED, x, RATE.of(y)) for x, y in zip(corners, rates, strict=True)]
    if dtype == "bf16":
        measured = [("measured GEMMs", *dot) for dot in _measured(machine.key)]
    facts = {
        "Intensity": str(work),
        "Ridge point": str(ridge),
        "Attainable": str(reached),
        "Share of the peak": str(roofline.utilization(peak, bandwidth, work).to("%")),
        "Bound": str(roofline.bound(peak, bandwidth, work)),
    }
    head = f"from calc import hardware, roofline\n\ndevice = hardware.get({device!r})\n"
    if intensity is None:
        facts["Least time"] = str(time.lower)
        size = f"formats.element_size('dtype', {dtype!r})"
        head = head.replace("import hardware", "import formats, hardware")
        python = f"{head}print(roofline.gemm({m}, {n}, {k}, {size}).on(device, {dtype!r}))"
        command = f"calc gemm {m} {n} {k} {device} --dtype {dtype}"
    else:
        roofs = f"device.peak({dtype!r}), device.memory_bandwidth"
        python, command = f"{head}print(roofline.attainable({roofs}, {str(work)!r}))", ""
    dots = [("ridge", bend, RATE.of(peak)), ("the work", at, RATE.of(reached))]
    caption = (
        f"The roof of {chip.name} in {dtype.upper()}; the work, at {work}, can reach {reached} and"
        f" is bound by {facts['Bound']}."
    )
    return Answer(rows, facts, caption, python, command, dots, measured=measured)


@cache
def _measured(machine: str) -> list[tuple[float, float]]:
    """Large products in BF16, as in the book's figure; none where nobody measured any."""
    return product_rows.large(machine, LARGE) if machine in product_rows.names() else []


MODEL = Model("Roofline", INPUTS, Drawing(INTENSITY, RATE), answer)
