"""Parts of a GPU's record, for those who read one without torch."""

from __future__ import annotations

CONDITIONS = "conditions.json"
NAMES = (
    *("launches", "bandwidth", "host_copies", "latency", "gemms", "attention"),
    *("kernels", "loops", "levers", "resolvents", "power", "collectives"),
)
"""The tables in the order in which they are made: those first that others are compared with."""
BRIEF = ("bandwidth", "gemms", "attention", "launches", "loops", "power", "resolvents")
"""The tables of a record of a few minutes, in the order in which they are made."""
ONLY = {"bandwidth": ("kernel", ("copy",)), "gemms": ("dtype", ("bf16", "fp8-e4m3"))}
"""Cases of a brief record, where a part has others too: a label, and what it may be."""


def names_of(brief: bool) -> tuple[str, ...]:
    """The tables of a record, or of a brief one.

    >>> names_of(brief=True)[0], len(names_of(brief=False))
    ('bandwidth', 12)
    """
    return BRIEF if brief else NAMES
