"""Images and videos as others made them, beside how long they are expected to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from calc.catalog import software
from calc.core.records import DATA, read_rows
from calc.core.units import Quantity, quantity
from calc.steps import throughput

FILE = DATA / "published" / "images.csv"
COLUMNS = (
    *("id", "device", "model", "software", "dtype", "batch", "devices", "together", "steps"),
    *("rows", "columns", "frames", "seconds", "items_per_s", "watts", "joules_per_item", "source"),
)


@dataclass(frozen=True)
class Run:
    """One run: a batch on one device, on several that make it together, or on copies."""

    row: Mapping[str, str]

    @property
    def id(self) -> str:
        return self.row["id"]

    @property
    def source(self) -> str:
        return self.row["source"]

    def count(self, name: str) -> int:
        """A condition that is a whole number.

        >>> runs()[0].count("steps")
        50
        """
        return int(self.row[name])

    @property
    def copies(self) -> float:
        """Groups of devices, each of which makes a batch."""
        return self.count("devices") / self.count("together")

    @property
    def time(self) -> Quantity:
        """Time of a batch, as measured, or of the rate of all copies."""
        if self.row["seconds"]:
            return quantity(float(self.row["seconds"]), "s")
        rate = float(self.row["items_per_s"])
        return quantity(self.count("batch") * self.copies / rate, "s")

    @cached_property
    def answer(self) -> throughput.Throughput:
        """The answer that expects it."""
        frames = self.row["frames"]
        conditions: dict[str, Any] = {"frames": int(frames)} if frames else {}
        counts: dict[str, Any] = {
            name: self.count(name) for name in ("batch", "devices", "together", "steps")
        }
        return throughput.of(
            self.row["model"],
            self.row["device"],
            dtype=self.row["dtype"],
            pixels=(self.count("rows"), self.count("columns")),
            software=software.software_of(self.row["software"]).key,
            **counts,
            **conditions,
        )

    @property
    def expected(self) -> Quantity:
        """Time of a batch, as expected."""
        assert self.answer.expected is not None
        return self.answer.expected

    @property
    def factor(self) -> float:
        """Measured over expected: above 1 where it was slower than expected."""
        return float((self.time / self.expected).m_as(""))


@cache
def runs() -> tuple[Run, ...]:
    """All runs, in the order of the file.

    >>> run = next(run for run in runs() if run.id == "torchao-flux-1-dev-1")
    >>> print(run.time, run.expected)
    4.209 s 4.130 s
    """
    return tuple(map(Run, read_rows(FILE, COLUMNS)))
