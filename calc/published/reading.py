"""The rows of published measurements: read from TOML, each with its conditions and its source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from calc.core.errors import InputError, abbreviated
from calc.core.records import DATA, read_toml

FOLDER = DATA / "published"
GROUPS = {  # the name of a table of each, and its file
    "kernel": "kernels",
    "collective": "collectives",
    "training": "training",
    "serving": "serving",
}
NEEDED = ("id", "device", "software", "measured", "source_key")
CURVE = ("size_bytes", "time_us")  # of the same length


@dataclass(frozen=True, eq=False)
class Row:
    """One measurement: what was run, on what, and what was measured."""

    group: str
    id: str
    conditions: dict[str, Any] = field(repr=False)
    """All that the source says, by the names that data/published/README.md explains."""
    measured: dict[str, float] = field(repr=False)
    """What was measured, by name; units are in the names of data/published/README.md."""

    def __getitem__(self, name: str) -> Any:
        return self.conditions.get(name)

    @property
    def device(self) -> str:
        """The device as the source writes it."""
        return str(self.conditions["device"])

    @property
    def software(self) -> str:
        """The software as the source writes it, with its version."""
        return str(self.conditions["software"])

    @property
    def source(self) -> str:
        """The key of its source in references.bib."""
        return str(self.conditions["source_key"])

    def number(self, name: str) -> float | None:
        """A condition that is a number; what is not stated, or stated in words, is None."""
        value = self.conditions.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            return None
        return float(value)


def rows(group: str | None = None) -> tuple[Row, ...]:
    """The rows of a group, or all.

    >>> [row] = [row for row in rows("training") if row.id == "llama3-405b"]
    >>> row.measured["mfu"]
    43.0
    """
    if group is not None and group not in GROUPS:
        raise InputError(f"a group is one of {', '.join(GROUPS)}; got {abbreviated(group)}")
    return tuple(row for name in GROUPS if group in (None, name) for row in _rows_of(name))


@cache
def _rows_of(group: str) -> tuple[Row, ...]:
    return load(FOLDER / f"{GROUPS[group]}.toml")


def load(path: Path | str) -> tuple[Row, ...]:
    """The rows of a file in the same form, checked: tables [[kernel]], [[training]] and so on.

    >>> load(FOLDER / "kernels.toml")[0].group
    'kernel'
    """
    found = []
    for group, tables in read_toml(path).items():
        if group not in GROUPS or not isinstance(tables, list):
            known = ", ".join(f"[[{name}]]" for name in GROUPS)
            raise InputError(f"{path}: a measurement is a table {known}; got {abbreviated(group)}")
        for place, table in enumerate(tables, 1):
            found += _parts(_row(group, table, f"{path}: {group} {place}"))
    if not found:
        raise InputError(f"{path}: holds no measurement")
    return tuple(found)


def _parts(row: Row) -> list[Row]:
    """A curve point by point, a row of prefill and decode as two, and any other by itself."""
    sizes, times = (row[name] for name in CURVE)
    if sizes is not None:
        return [
            replace(
                row,
                id=f"{row.id} at {size} B",
                conditions=row.conditions | {"size": size},
                measured={"time": time * 1e-6},
            )
            for size, time in zip(sizes, times, strict=True)
        ]
    prefill = {name: value for name, value in row.measured.items() if name.startswith("prefill")}
    others = {name: value for name, value in row.measured.items() if name not in prefill}
    if prefill and others:
        return [
            replace(row, id=f"{row.id} prefill", measured=prefill),
            replace(row, measured=others),
        ]
    return [row]


def _row(group: str, table: Any, place: str) -> Row:
    if not isinstance(table, dict):
        raise InputError(f"{place}: a measurement is a table; got {abbreviated(table)}")
    place = f"{place}, {table.get('id', 'without an id')}"
    for name in NEEDED:
        if name not in table and not (name == "measured" and "time_us" in table):
            raise InputError(f"{place}: has no {name}; a measurement needs {', '.join(NEEDED)}")
    measured = {}
    listed = table.get("measured", [])
    for each in listed if isinstance(listed, list) else [listed]:
        value = each.get("value") if isinstance(each, dict) else None
        if not _is_positive(value) or not isinstance(each.get("name"), str):
            raise InputError(
                f"{place}: measured must be a list of tables with name, a positive value and unit;"
                f" got {abbreviated(each)}"
            )
        measured[each["name"]] = float(each["value"])
    curve = [table.get(name, []) for name in CURVE]
    if not all(isinstance(side, list) and all(map(_is_positive, side)) for side in curve):
        raise InputError(f"{place}: {' and '.join(CURVE)} must be lists of positive numbers")
    if len(set(map(len, curve))) > 1:
        raise InputError(
            f"{place}: a curve has a time for each size; got {len(curve[0])} in {CURVE[0]} and"
            f" {len(curve[1])} in {CURVE[1]}"
        )
    return Row(group, str(table["id"]), table, measured)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < inf
