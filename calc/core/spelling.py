"""Spelling of units: which prefix goes with which, and what reading and printing need of them.

The registry of `units.py` is the one table of units; `parsing.py` and `formatting.py` know it by
the few questions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

# Units of what is counted: they take the suffixes below, and laws accept bare numbers of them.
COUNTED = frozenset({"parameter", "token", "request", "sample"})

SMALL_PREFIXES = frozenset({"femto", "pico", "nano", "micro", "milli", "centi"})
BINARY_PREFIXES = frozenset({"kibi", "mebi", "gibi", "tebi", "pebi", "exbi"})
CONTINUOUS = frozenset({"meter", "second", "gram", "watt", "joule", "hertz", "watt_hour"})
WITHOUT_LARGE_PREFIX = frozenset(
    {"second", "minute", "hour", "day", "week", "month", "year", "percent"}
)


class UnitTable(Protocol):
    """Questions that parsing and formatting ask of the registry of units."""

    @property
    def unit_names(self) -> Mapping[str, tuple[str, str]]:
        """Every spelling that is read, with its prefix and unit."""

    def symbol(self, name: str) -> str:
        """Return how a unit is printed: GB of gigabyte."""

    def factor_between(self, source: Mapping[str, Any], target: Mapping[str, Any]) -> float | None:
        """Return the factor from one unit to another; None where dimensions differ."""


class Written(Protocol):
    """A quantity, as the formatter reads it."""

    _REGISTRY: ClassVar[Any]

    @property
    def magnitude(self) -> Any: ...

    @property
    def _units(self) -> Mapping[str, Any]: ...


def unit_names(
    units: Iterable[tuple[str, str]], prefixes: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Every spelling that is read, with its canonical (prefix, unit): {"GB": ("giga", "byte")}.

    Units and prefixes are given by their spellings, each with its canonical name.
    """
    spellings = {spelling: unit for spelling, unit in units if spelling}
    names = {spelling: ("", unit) for spelling, unit in spellings.items()}
    for before, prefix in prefixes:
        for spelling, unit in spellings.items():
            written_out = before == prefix
            if before and _takes_prefix(unit, prefix) and not (written_out and len(spelling) < 3):
                names.setdefault(before + spelling, (prefix, unit))  # but no gigaB
    return names


def _takes_prefix(unit: str, prefix: str) -> bool:
    if prefix in BINARY_PREFIXES:
        return unit in ("bit", "byte")
    if prefix == "centi":
        return unit == "meter"
    if prefix in SMALL_PREFIXES:
        return unit in CONTINUOUS
    return unit not in WITHOUT_LARGE_PREFIX
