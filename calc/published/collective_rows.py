"""Published collectives: each point of a curve held to its bound, and to the curves of others.

What is expected of a point comes from the curves of others: of the same machine and operation where
there is one, else of the machine most like it. A row's own curve would predict itself.
"""

from __future__ import annotations

from typing import Any

from calc.catalog.machines import NotMeasured
from calc.core.units import quantity
from calc.published import conditions
from calc.published.prediction import Comparison, if_measured
from calc.published.reading import Row, UnusableRowError
from calc.steps import communication, curves

OPERATIONS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "sendrecv": "send",
}
GIGABYTE = 1e9


def predict(row: Row) -> Comparison:
    """A point beside its prediction."""
    operation = OPERATIONS.get(str(row["collective"]))
    if operation is None:
        listing = ", ".join(OPERATIONS)
        if row["collective"] is None:
            raise UnusableRowError(f"its collective is not stated: one of {listing}")
        raise UnusableRowError(f"the collective {row['collective']} is not known; {listing} are")
    machine, count = conditions.machine(row), conditions.devices(row)
    if count == 1:
        raise UnusableRowError("one device alone sends nothing")
    size, time = _size(row), row.measured.get("time")
    if size is None:
        raise UnusableRowError("its size is not stated")
    if time is None:
        rate = next((row.measured[name] for name in row.measured if name.startswith("busbw")), None)
        if rate is None:
            raise UnusableRowError("it gives no time and no bus bandwidth of one size")
        time = curves.traffic(operation, count) * size / (rate * GIGABYTE)
    lower = communication.least_time(operation, quantity(size, "byte"), count, machine).m_as("s")

    def parts() -> tuple[dict[str, float], float]:
        if size < curves.COMPARED_FROM:
            raise NotMeasured("below 64 kB what is compared is latency alone")
        name = row.id.split(" at ")[0]
        times = curves.times(operation, size, count, machine, without=name)
        return {operation: sum(times) / len(times)}, 0.0

    return Comparison(row, machine.key, "", time, if_measured(lower, parts))


def _size(row: Row) -> Any:
    return row.number("size") or row.number("message_bytes")
