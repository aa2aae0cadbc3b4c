"""Data files carry their sources: TOML tables become quantities that know where they come from.

A record is a table with `value`, `unit`, `kind`, `source`, `checked` and, where there is more to
say, `year`, `title` and `note`. Of an unpublished value only the note exists, and reading it raises
that note.
"""

from __future__ import annotations

import csv
import datetime
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar, cast

from calc.core.errors import InputError, abbreviated
from calc.core.files import read_text
from calc.core.fixed import fix_fields
from calc.core.parsing import read_float
from calc.core.provenance import Provenance
from calc.core.units import Quantity, quantity

KINDS = ("definition", "datasheet", "announced", "measured", "estimate", "unpublished")
FIELDS = {  # and what each must be
    "title": "text that says what it is",
    "value": "a number",
    "unit": 'text such as "TB/s" ("1" for a pure number)',
    "kind": f"one of {', '.join(KINDS)}",
    "source": "a key of references.bib",
    "year": "the year of the source, a whole number",
    "checked": "the day on which it was held against the source, as in 2024-05-06 without quotes",
    "note": "text",
    "direction": '"each way"',
}
INHERITED = ("kind", "source", "checked")  # by the numbers of a table
T = TypeVar("T")
OWN_FILE = re.compile(r"(.+?\.toml)(?::([^/\\]+))?")  # of devices of one's own, and the key of one
DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Record:
    """One value of a data file; `quantity` raises where the value is unpublished."""

    provenance: Provenance
    _published: Quantity | None

    @property
    def published(self) -> Quantity | None:
        """A copy: what a reader does to theirs does not reach the data."""
        return None if self._published is None else self._published.__copy__()

    @property
    def is_published(self) -> bool:
        return self._published is not None

    @property
    def quantity(self) -> Quantity:
        if (value := self.published) is None:
            raise InputError(f"{self.provenance.title} is unpublished: {self.provenance.note}")
        return value


class Entry:
    """An entry of the data, or one of a reader's own: it equals another by what both say.

    Which object it is decides nothing: an entry that is copied, unpickled, or read by two threads
    at once answers as the first does.
    """

    key: str

    def __post_init__(self) -> None:
        fix_fields(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        kind: Any = type(self)
        said = _all_said(kind)
        return bool(said(self) == said(other))

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        return _entry, (type(self), _said(self))


E = TypeVar("E", bound=Entry)
_shared: dict[Entry, Any] = {}
_sharing = Lock()


def shared(entry: E) -> E:
    """The one object that all share who read this entry of the data, at once or later."""
    with _sharing:
        kept: E = _shared.setdefault(entry, entry)
    return kept


def _entry(kind: type[E], said: dict[str, Any]) -> E:
    """An entry that was copied or pickled: that of the data, where they say the same."""
    made = kind(**said)
    kept: E = _shared.get(made, made)
    return kept


@cache
def _all_said(kind: Any) -> attrgetter[Any]:
    """Return what reads all that entries of a kind say, of which the key comes first."""
    return attrgetter(*(field.name for field in fields(kind)))


def _said(entry: Any) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


class Published:
    """An attribute of what is `Recorded`: its number of that name, or an error that says why."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, thing: Recorded, owner: type) -> Quantity:
        return thing._read(self.name)


class Recorded(Entry):
    """A thing of a data file, whose numbers are its records."""

    name: str
    records: dict[str, Record]

    def publishes(self, name: str) -> bool:
        """Return whether a number such as "tdp" has a value."""
        record = self._record(name) if isinstance(name, str) else None
        return record is not None and record.is_published

    def _read(self, name: str) -> Quantity:
        if (record := self._record(name)) is None:
            raise InputError(self._lacks(name))
        return record.quantity

    def _record(self, name: str) -> Record | None:
        return self.records.get(name)

    def _lacks(self, name: str) -> str:
        return f"{self.name} has no {name} in its data"


class Count(int):
    """A whole number of a data file, which knows where it comes from."""

    provenance: Provenance | None = None

    @classmethod
    def from_quantity(cls, number: Quantity) -> int:
        """The number of a quantity that has no unit, with the same source."""
        count = cls(number.m_as(""))
        count.provenance = number.provenance
        return count


Datum: TypeAlias = Quantity | Count


def source(value: Quantity | int) -> str:
    """The citation of a value that was read from a data file.

    >>> import calc
    >>> print(calc.source(calc.constants.energy_dram_word))  # doctest: +ELLIPSIS
    DRAM access, one 32-bit word: measured, Han et al. (2015), Learning...
    """
    if not isinstance(value, Datum):
        raise InputError(
            f"source() needs a quantity of calc, such as calc.hardware.H100.tdp; got"
            f" {abbreviated(value)}"
        )
    if value.provenance is None:
        raise InputError(f"{value} was computed, so it has no source; ask for that of its inputs")
    return str(value.provenance)


def attribute(get: Callable[[str], T], name: str) -> T:
    """Return what a module's `__getattr__` does: by name what its `get` finds."""
    if name == "__all__":  # for `from … import *`
        return cast(T, dir(sys.modules[get.__module__]))
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return get(name)
    except InputError as error:
        raise AttributeError(str(error)) from None


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a data file; a malformed one is named with the line at fault."""
    return parse_toml(read_text(path), path)


def parse_toml(text: str, path: Path | str) -> dict[str, Any]:
    """The tables of a text that stands in this file."""
    try:
        return tomllib.loads(text, parse_float=read_float)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: is not valid TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply") from None


def read_tables(path: Path | str) -> dict[str, Any]:
    """The tables of a file of devices, whose keys are written as all are."""
    tables = read_toml(path)
    for key in tables:
        if key != (needed := key.lower().replace("_", "-")):
            raise InputError(f"{path}: [{key}] must be written [{needed}]: small letters and -")
    return tables


def read_file(name: str) -> tuple[str, str | None, dict[str, Any]]:
    """The file of a name such as "machine.toml:mine", the key after it, and the file's tables."""
    file, key = match.groups() if (match := OWN_FILE.fullmatch(name)) else (name, None)
    if not Path(file).exists():
        raise InputError(f"{file}: there is no such file; `calc measure` writes one")
    tables = read_tables(file)
    if not tables:
        raise InputError(f"{file}: it holds no device; one begins with its key, as in [my-device]")
    return file, key, tables


def one_of_file(what: str, file: str, key: str | None, names: Sequence[str]) -> str:
    """The key that is asked for, or the only one of the file where none is.

    >>> one_of_file("device", "machine.toml", None, ["mine"])
    'mine'
    """
    if key is None and len(names) == 1:
        return names[0]
    if key is None or key not in names:
        needed = f"no {what} {key!r}" if key else f"not one {what} alone"
        holds = f"it holds {', '.join(names)}" if names else f"it holds no {what} at all"
        raise InputError(f"{file}: {needed}; {holds}: ask for one as in {file}:KEY")
    return key


def check_fields(owner: str, table: Iterable[str], allowed: Iterable[str]) -> None:
    """Refuse a field of a data file that means nothing there."""
    if unknown := [name for name in table if name not in allowed]:
        raise InputError(
            f"{owner} has an unknown field {unknown[0]}; known are {', '.join(allowed)}"
        )


def check_positive(owner: str, record: Record, unit: str) -> None:
    """Refuse a published value that is not above zero, or of another kind than the unit's."""
    value = record.published
    if value is None or (value.is_compatible_with(unit) and value.magnitude > 0):
        return
    raise InputError(
        f"{owner} must be positive and measured in {unit or 'no unit'} or its like; got {value}"
    )


def check_each_way(owner: str, table: Mapping[str, Any]) -> None:
    """Refuse a bandwidth of a link that does not say that it is one direction's."""
    if table.get("direction") != "each way":
        raise InputError(f'{owner} must be given for one way and say so: direction = "each way"')


def read_records(
    key: str, table: Mapping[str, Any], titles: Mapping[str, str], path: Path | str
) -> dict[str, Record]:
    """The records of a table by their titles, those that it has; it has kind, source and day."""
    inherited = {name: table[name] for name in INHERITED if name in table}
    return {
        name: read_record(
            table[name], f"{key}.{name}", path, inherited | {"title": f"{title} of {table['name']}"}
        )
        for name, title in titles.items()
        if name in table
    }


def read_rows(path: Path | str, columns: tuple[str, ...] = ()) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, whose columns are these where they are given."""
    rows = csv.DictReader(read_text(path).splitlines())
    if columns and tuple(rows.fieldnames or ()) != columns:
        raise InputError(f"{path}: its columns must be {', '.join(columns)}")
    return rows


def read_record(
    table: object, key: str, path: Path | str, inherited: dict[str, Any] | None = None
) -> Record:
    """One checked record; fields that it does not have come from `inherited`."""
    if not isinstance(table, dict):
        raise InputError(
            f"{path}: {key} must be a table with value, unit and source; got {abbreviated(table)}"
        )
    check_fields(f"{path}: {key}", table, FIELDS)
    fields = {**(inherited or {}), **table}

    def field(name: str, kind: type | tuple[type, ...], default: object = ...) -> Any:
        value = fields.get(name, default)
        if value is ...:
            raise InputError(f"{path}: {key} has no {name}; it must be {FIELDS[name]}")
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InputError(
                f"{path}: {key}: {name} must be {FIELDS[name]}; got {abbreviated(value)}"
            )
        return value

    provenance = Provenance(
        key=key,
        title=field("title", str, key),
        kind=field("kind", str),
        source=field("source", str),
        year=field("year", int, None),
        checked=field("checked", datetime.date),
        note=field("note", str, ""),
    )
    if provenance.kind not in KINDS:
        raise InputError(
            f"{path}: {key}: kind must be one of {', '.join(KINDS)}; got {provenance.kind!r}"
        )
    if provenance.kind == "unpublished":
        if "value" in fields or not provenance.note:
            raise InputError(
                f"{path}: {key}: an unpublished field has a note on who was asked, and no value"
            )
        return Record(provenance, None)
    number, unit = field("value", (int, float)), field("unit", str)
    try:
        value = quantity(number, unit)
    except InputError as error:
        raise InputError(f"{path}: {key}: {error}") from None
    if not math.isfinite(value.magnitude):
        raise InputError(f"{path}: {key}: value must be a finite number; got {number}")
    value.provenance = provenance
    return Record(provenance, value)
