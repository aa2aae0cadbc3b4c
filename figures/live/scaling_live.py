"""Speedup by three laws: of a fixed problem, of one that grows, and of processors that agree."""

from __future__ import annotations

from collections.abc import Callable

from calc import scaling
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Count, Drawing, Model, geometric

PROCESSORS = Axis("Processors", log=True)
SPEEDUP = Axis("Speedup", log=True)
INPUTS = (
    Amount("serial", "Serial share", "0.05", "", 0, 1),
    Amount("coherency", "Work of a pair to agree, κ", "0.0001", "", 0, 1),
    Count("processors", "Processors", "64", 1, 10**7),
)


def answer(serial: Quantity, coherency: Quantity, processors: int) -> Answer:
    """Amdahl, Gustafson and Gunther with the same serial share."""
    laws: dict[str, Callable[[float], Quantity]] = {
        "Amdahl": lambda count: scaling.amdahl(serial, count),
        "Gustafson": lambda count: scaling.gustafson(serial, count),
        "universal": lambda count: scaling.universal_scalability(count, serial, coherency),
    }
    counts = sorted({*geometric(1, max(4096, processors), 25), float(processors)})
    rows = [(name, count, SPEEDUP.of(law(count))) for name, law in laws.items() for count in counts]
    facts = {name: str(law(processors)) for name, law in laws.items()}
    facts["Amdahl's limit"] = str(scaling.amdahl_limit(serial))
    facts["Most useful processors"] = str(scaling.most_useful_processors(serial, coherency))
    dots = [(name, float(processors), SPEEDUP.of(law(processors))) for name, law in laws.items()]
    share = repr(serial.m_as(""))
    python = (
        "from calc import scaling\n\n"
        f"print(scaling.amdahl({share}, {processors}))\n"
        f"print(scaling.gustafson({share}, {processors}))\n"
        f"print(scaling.universal_scalability({processors}, {share}, {coherency.m_as('')!r}))"
    )
    caption = (
        f"Speedup of work of which {serial.to('%')} is serial, by three laws; dots are at"
        f" {processors} processors."
    )
    return Answer(rows, facts, caption, python, dots=dots)


MODEL = Model(
    "Amdahl, Gustafson, universal scalability", INPUTS, Drawing(PROCESSORS, SPEEDUP), answer
)
