"""A survey of a machine that is made up."""

from __future__ import annotations

import datetime

from calc import quantity
from calc.measure import Measured, Survey

MACHINE = {"processor": "Made Up 9000", "cores": 2, "packages": {"numpy": "2.0"}}


def measured(text: str) -> Measured:
    return Measured(quantity(text), 0.0123, 9, "a test")


def made_up(memory: float = 1.0, fp64: str = "48 GFLOP/s") -> Survey:
    """A copy of 16 and a triad of 36 GB/s, 24 together, or so many times as much."""
    return Survey(
        machine=MACHINE,
        name='Made Up 9000 "X", 1 core',
        memory_bytes=2**34,
        cache=quantity("32 MiB"),
        threads=1,
        day=datetime.date(2026, 1, 2),
        bandwidths={
            "copy": measured(f"{16 * memory} GB/s"),
            "triad": measured(f"{36 * memory} GB/s"),
        },
        peaks={"fp64": measured(fp64), "fp32": measured("96 GFLOP/s")},
        latencies={"memory": measured("160 ns")},
        working_sets={2**13: measured("90 GB/s"), 2**27: measured("24 GB/s")},
    )
