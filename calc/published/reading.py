"""The rows of published measurements: read from TOML, each with its conditions and its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from pint import DimensionalityError

from calc.core.errors import InputError, abbreviated, did_you_mean
from calc.core.names import resolve, squeezed
from calc.core.records import DATA, read_toml
from calc.core.units import quantity

FOLDER = DATA / "published"
GROUPS = {  # the name of a table of each, and its file
    "kernel": "kernels",
    "collective": "collectives",
    "training": "training",
    "serving": "serving",
}
NEEDED = ("id", "device", "software", "measured", "source_key")
CURVE = ("size_bytes", "time_us")  # of the same length
WORDS = read_toml(FOLDER / "words.toml")
NUMBERS, TEXTS, OTHERS = (WORDS["conditions"][kind] for kind in ("numbers", "texts", "others"))
FIELDS = (*NUMBERS, *TEXTS, *OTHERS, *CURVE, "measured")
LARGEST, MOST = 1e15, 1e100  # that a count and a measured value may be: above what anybody runs
LONGEST = 10_000  # characters of a text
EACH = r"(device|gpu|chip|user|node)"  # what a rate may be of, where it is not of the whole


class UnusableRowError(InputError):
    """A row whose conditions do not say what is needed to predict it."""


@dataclass(frozen=True, eq=False)
class Row:
    """One measurement: what was run, on what, and what was measured."""

    group: str
    id: str
    conditions: dict[str, Any] = field(repr=False)
    """All that the source says, by the names that data/published/README.md explains."""
    measured: dict[str, float] = field(repr=False)
    """What was measured, by name, in the units that data/published/README.md states."""

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

    def number(self, name: str) -> Any:
        """A condition that is a number; what is not stated, or stated in words, is None.

        Of several rows that differ in numbers alone it is the array that stands for them.
        """
        value = self.conditions.get(name)
        if getattr(value, "ndim", 0):
            return value
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


def row(name: str) -> Row:
    """The row of that id.

    >>> row("llama3-405b").group
    'training'
    """
    for group in GROUPS:  # one at a time, since each is a file, and the last ones are long
        for published in _rows_of(group):
            if published.id == name:
                return published
    by_id = {row.id: row for row in rows()}
    keys = {squeezed(name): name for name in by_id}
    return by_id[resolve("row", name, keys, "`rows()` has them all")]


@cache
def _rows_of(group: str) -> tuple[Row, ...]:
    return load(FOLDER / f"{GROUPS[group]}.toml")


def load(path: Path | str) -> tuple[Row, ...]:
    """The rows of a file in the same form, checked: tables `[[kernel]]`, `[[training]]` and so on.

    >>> load(FOLDER / "kernels.toml")[0].group
    'kernel'
    """
    all_rows = []
    for group, tables in read_toml(path).items():
        if group not in GROUPS or not isinstance(tables, list):
            groups = ", ".join(f"[[{name}]]" for name in GROUPS)
            raise InputError(f"{path}: a measurement is a table {groups}; got {abbreviated(group)}")
        for number, table in enumerate(tables, 1):
            all_rows += _parts(_row(group, table, f"{path}: {group} {number}"))
    if not all_rows:
        raise InputError(f"{path}: holds no measurement")
    names = [row.id for row in all_rows]
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise InputError(
            f"{path}: two rows have the id {abbreviated(twice[0])}; each needs its own"
        )
    return tuple(all_rows)


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


def _row(group: str, table: object, place: str) -> Row:
    if not isinstance(table, dict):
        raise InputError(f"{place}: a measurement is a table; got {abbreviated(table)}")
    place = f"{place}, {table.get('id', 'without an id')}"
    for name in NEEDED:
        if name not in table and not (name == "measured" and "time_us" in table):
            raise InputError(f"{place}: has no {name}; a measurement needs {', '.join(NEEDED)}")
    for name in table:
        if name not in FIELDS:
            near = did_you_mean(name, FIELDS) or "what else is to be said goes into notes"
            raise InputError(f"{place}: has an unknown field {name}; {near.strip()}")
    for name in (*NUMBERS, *TEXTS):
        check_condition(table, name, place)
    measured: dict[str, float] = {}
    listed = table.get("measured", [])
    for figure in listed if isinstance(listed, list) else [listed]:
        value = figure.get("value") if isinstance(figure, dict) else None
        if not _is_positive(value) or not isinstance(figure.get("name"), str):
            raise InputError(
                f"{place}: measured must be a list of tables with name, a positive value and unit;"
                f" got {abbreviated(figure)}"
            )
        if figure["name"] in measured:
            raise InputError(f"{place}: measured has {figure['name']} twice; a row is one run")
        measured[figure["name"]] = _in_the_unit_read(figure, place)
    curve = [table.get(name, []) for name in CURVE]
    if not all(isinstance(side, list) and all(map(_is_positive, side)) for side in curve):
        raise InputError(f"{place}: {' and '.join(CURVE)} must be lists of positive numbers")
    if len(set(map(len, curve))) > 1:
        raise InputError(
            f"{place}: a curve has a time for each size; got {len(curve[0])} in {CURVE[0]} and"
            f" {len(curve[1])} in {CURVE[1]}"
        )
    if any(later <= earlier for earlier, later in pairwise(curve[0])):
        raise InputError(f"{place}: the sizes of size_bytes must rise, each with its time")
    if not measured and not curve[0]:
        raise InputError(f"{place}: measured is empty; a row has something that was measured")
    return Row(group, str(table["id"]), table, measured)


def check_condition(table: Mapping[str, object], name: str, place: str) -> None:
    """Refuse a condition that is not what its name says; where a source has no number are words.

    >>> check_condition({"batch": "Offline scenario"}, "batch", "row 1")
    """
    value = table.get(name)
    if value is None:
        return
    if name in TEXTS:
        need = f"text of up to {LONGEST:,} characters"
        good = isinstance(value, str) and len(value) <= LONGEST
        good = good and bool(str(value).strip() or name not in NEEDED)
    elif name == "num_devices":
        need = "a whole number from 1 on"
        good = isinstance(value, int) and _is_count(value)
    elif name == "output_len" and value == 0:  # prompts are read and nothing is written
        return
    else:
        need = "a number from 1 on, or words where the source has none"
        words = isinstance(value, str) and bool(re.search(r"[^\W\d_]{2}", value))
        good = _is_count(value) or words
    if not good:
        raise InputError(f"{place}: {name} must be {need}; got {abbreviated(value)}", given=value)


def _in_the_unit_read(measured: dict[str, Any], place: str) -> float:
    """Return what was measured in the unit that is read, from the one beside it, if any.

    What follows a comma, a bracket or "of" explains the unit. A rate of one device, or of one user,
    says so in its name, as in output_tokens_per_s_per_gpu: its unit may repeat it, and not
    contradict it.
    """
    name, value = measured["name"], float(measured["value"])
    read = next(
        (unit for pattern, unit in WORDS["units"].items() if re.fullmatch(pattern, name)), None
    )
    if read is None or "unit" not in measured:
        return value
    written = str(measured["unit"])
    text = re.split(r"[,(]| of | as ", written)[0].strip()
    of_unit = re.search(f"/{EACH}$", text, re.IGNORECASE)
    of_name = re.search(f"_per_{EACH}(_|$)", name) or re.search("^decode_(tokens)", name)
    if of_unit and not (of_name and _of_one(of_unit[1]) == _of_one(of_name[1])):
        raise InputError(
            f"{place}: {name} is measured in {read}, and not for each {of_unit[1]}; got the unit"
            f" {abbreviated(written)}"
        )
    text = text.removesuffix(of_unit[0]) if of_unit else text
    try:
        return float(quantity(value, text).m_as(read))
    except (InputError, DimensionalityError):
        raise InputError(
            f"{place}: {name} must be in {read} or a unit like it; got the unit"
            f" {abbreviated(written)}"
        ) from None


def _of_one(owner: str) -> str:
    """Return of whom a rate is: a GPU and a chip are devices, decoded tokens one user's."""
    return {"gpu": "device", "chip": "device", "tokens": "user"}.get(owner.lower(), owner.lower())


def _is_count(value: object) -> bool:
    return _is_positive(value) and 1 <= value <= LARGEST


def _is_positive(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and 1 / MOST < value < MOST
    )
