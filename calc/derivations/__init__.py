"""What the book quotes: one class for each claim, its inputs first and its results after them.

    >>> from calc.derivations import A100Roofline
    >>> print(A100Roofline.ridge_point)
    153.0 FLOP/byte

A class reads like the lines of a worked example. Chapters compute nothing: they quote with
`show()`, `math()` and `table()`. To add a derivation, write a class in the chapter's module and
list it here.
"""

from calc.derivations.numbers_to_know import (
    AcceleratorTable,
    AnchorBandwidths,
    AnchorLatencies,
    BrakingDistance,
    DatacentreAgainstPhone,
    EnergyOfArithmetic,
    EnergyOfMovement,
    LatencyBudgets,
    LightInFibre,
    MemoryHierarchy,
    MemoryPerParameter,
    NumbersToKnow,
    OpeningQuestions,
    WorkPerToken,
)
from calc.derivations.quoting import approximately, math, show, table
from calc.derivations.roofline import (
    A100Roofline,
    BatchSize,
    ComputeDoubled,
    DecodeStep,
    FusedMatmulRelu,
    IronLaw,
)

__all__ = [
    "A100Roofline",
    "AcceleratorTable",
    "AnchorBandwidths",
    "AnchorLatencies",
    "BatchSize",
    "BrakingDistance",
    "ComputeDoubled",
    "DatacentreAgainstPhone",
    "DecodeStep",
    "EnergyOfArithmetic",
    "EnergyOfMovement",
    "FusedMatmulRelu",
    "IronLaw",
    "LatencyBudgets",
    "LightInFibre",
    "MemoryHierarchy",
    "MemoryPerParameter",
    "NumbersToKnow",
    "OpeningQuestions",
    "WorkPerToken",
    "approximately",
    "math",
    "show",
    "table",
]
