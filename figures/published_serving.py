"""Published serving beside what is expected of it, and beside its bounds."""

from __future__ import annotations

from collections import Counter

from matplotlib.figure import Figure

from calc.derivations.predicted_and_measured import expected_of, system
from calc.published import Comparison
from figures import style
from figures.published_training import short, strips, told

ROWS = expected_of("serving")
FEW = 3  # a system of fewer rows shares a line with others of its program
COUNTS = Counter(system(row) for row in ROWS)


@style.drawn_twice
def draw() -> Figure:
    return strips(ROWS, _name)


def alt() -> str:
    return told(ROWS, _name, "rows of serving")


def _name(row: Comparison) -> str:
    program, device = system(row)
    return short(program, device if COUNTS[system(row)] >= FEW else "others")
