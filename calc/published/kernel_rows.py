"""Published kernels: each held to its bound, and to the rates of other rows of its device.

A kernel's own rate would predict itself, so that it is left out: what is expected of a product
comes from the best rate of the other products of that device and format.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from calc.catalog.machines import Machine, NotMeasured
from calc.core.units import Quantity, quantity
from calc.laws import gemms
from calc.published import conditions
from calc.published.prediction import Comparison, if_measured
from calc.published.reading import Row, UnusableRowError, rows
from calc.steps.job import input_size

RATES = ("mean_tflops", "tflops", "tflops_fa3", "tflops_forward", "tflops_per_device")


def predict(row: Row) -> Comparison:
    """A row beside its prediction."""
    if row["kind"] == "gemm":
        return _gemm(row)
    if row["kind"] == "memory_bandwidth":
        return _bandwidth(row)
    if row["kind"] == "attention":
        return _attention(row)
    if row["kind"] is None:
        raise UnusableRowError("its kind is not stated: gemm, memory_bandwidth or attention")
    raise UnusableRowError(
        f"its kind, {row['kind']}, is not predicted; gemm, memory_bandwidth and attention are"
    )


def _gemm(row: Row) -> Comparison:
    shape = [row.number(name) for name in "mnk"]
    if None in shape or row["groups"] is not None:
        raise UnusableRowError("its shape is not stated, or that of a group of products")
    machine, dtype, rate = (
        conditions.machine(row),
        conditions.dtype(row) or "bf16",
        measured_rate(row),
    )
    m, n, k = (float(side) for side in shape if side is not None)
    size = input_size(dtype)
    work = 2 * m * n * k
    measured = work / rate
    peak = machine.device.peak(dtype).m_as("FLOP/s")
    moved = size.m_as("byte") * (m * k + n * k) + 2 * m * n
    lower = max(work / peak, moved / machine.device.memory_bandwidth.m_as("byte/s"))

    def parts() -> tuple[dict[str, float], float]:
        best = _best(row, machine, dtype)
        time = gemms.gemm_time(
            m, n, k, best, machine.memory_reached, machine.processors, size, size
        )
        return {"gemm": time.m_as("s")}, 0.0

    return Comparison(row, machine.key, "", measured, if_measured(lower, parts))


def _bandwidth(row: Row) -> Comparison:
    machine = conditions.machine(row)
    bandwidth = row.measured.get("bandwidth", row.measured.get("triad"))
    if bandwidth is None or "CPU" in row.device:
        raise UnusableRowError("it gives no bandwidth of a device's memory")
    lower = 1 / machine.device.memory_bandwidth.m_as("byte/s")
    others = [
        other.measured.get("bandwidth", other.measured.get("triad"))
        for other in _others(row, machine)
    ]
    return _of_others(row, machine, 1 / (bandwidth * 1e9), lower, others, 1e9)


def _attention(row: Row) -> Comparison:
    machine = conditions.machine(row)
    if "Standard" in str(row["kernel"]) or "sparse" in str(row["kernel"]):
        raise UnusableRowError("it is of a kernel that is not fused, or skips scores")
    others = [
        measured_rate(other) / 1e12
        for other in _others(row, machine)
        if any(name in other.measured for name in RATES) and "Standard" not in str(other["kernel"])
    ]
    lower = 1 / machine.device.peak("bf16").m_as("FLOP/s")
    return _of_others(row, machine, 1 / measured_rate(row), lower, others, 1e12)


def _of_others(
    row: Row,
    machine: Machine,
    measured: float,
    lower: float,
    others: Sequence[float | None],
    unit: float,
) -> Comparison:
    """Return what is expected by the median of the other rows of the same kind and device."""
    rates = sorted(rate for rate in others if rate is not None)

    def parts() -> tuple[dict[str, float], float]:
        if not rates:
            raise NotMeasured(f"no other row of {machine.device.name} is of this kind")
        return {"memory": 1 / (rates[len(rates) // 2] * unit)}, 0.0

    return Comparison(row, machine.key, "", measured, if_measured(lower, parts))


def measured_rate(row: Row) -> float:
    """Operations a second that a row gives, in whichever of its fields."""
    for name in RATES:
        if name in row.measured:
            return row.measured[name] * 1e12
    raise UnusableRowError("it gives no rate of operations")


def _best(row: Row, machine: Machine, dtype: str) -> Quantity:
    """The best rate of the other products in a format."""
    rates = [
        measured_rate(other)
        for other in _others(row, machine)
        if (conditions.dtype(other) or "bf16") == dtype
        and any(name in other.measured for name in RATES)
    ]
    if not rates:
        raise NotMeasured(f"no other product in {dtype} was measured on {machine.device.name}")
    return quantity(max(rates), "FLOP/s")


def _others(row: Row, machine: Machine) -> list[Row]:
    """The other rows of the same kind of kernel that were measured on the same device."""
    return [other for other in _alike().get((row["kind"], machine.key), ()) if other.id != row.id]


@cache
def _alike() -> dict[tuple[Any, str], list[Row]]:
    """Return the rows of each kind of kernel on each machine."""
    alike: dict[tuple[Any, str], list[Row]] = {}
    for row in rows("kernel"):
        alike.setdefault((row["kind"], _machine_of(row.device)), []).append(row)
    return alike


@cache
def _machine_of(device: str) -> str:
    try:
        return conditions.machine(Row("kernel", "", {"device": device}, {})).key
    except UnusableRowError:
        return ""
