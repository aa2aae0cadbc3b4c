"""Published serving beside what is expected of it, and beside its bounds."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations.predicted_and_measured import expected_of, system
from calc.published import Comparison
from figures.published_training import strips, told

ROWS = expected_of("serving")


def draw() -> Figure:
    return strips(ROWS, _name)


def alt() -> str:
    return told(ROWS, _name, "rows of serving")


def _name(row: Comparison) -> str:
    return ", ".join(system(row))
