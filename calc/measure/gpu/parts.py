"""Parts of a GPU's record, for those who read one without torch."""

from __future__ import annotations

CONDITIONS = "conditions.json"
NAMES = (
    *("launches", "bandwidth", "host_copies", "latency", "gemms", "attention"),
    *("kernels", "loops", "levers", "resolvents", "power", "collectives"),
)
"""The tables in the order in which they are made: those first that others are compared with."""
