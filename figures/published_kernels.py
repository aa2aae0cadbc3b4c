"""Published kernels beside what the others of their device let expect."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations.predicted_and_measured import device, expected_of
from calc.published import Comparison
from figures.published_training import strips, told

ROWS = expected_of("kernel")
KINDS = {"gemm": "GEMM", "attention": "attention", "memory_bandwidth": "memory"}


def draw() -> Figure:
    return strips(ROWS, _name)


def alt() -> str:
    return told(ROWS, _name, "kernels")


def _name(row: Comparison) -> str:
    return f"{KINDS[row.row['kind']]}, {device(row)}"
