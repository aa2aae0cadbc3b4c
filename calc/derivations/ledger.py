"""Classes of claims, whose lines are rows: a number that knows its name and how it was made.

    >>> from calc.derivations.roofline_chapter import A100Roofline
    >>> A100Roofline.ridge_point.row_name, A100Roofline.ridge_point.made_by.name
    ('A100Roofline.ridge_point', 'roofline.ridge_point')
    >>> A100Roofline.ridge_point.made_by.of[0].row_name, A100Roofline.ridge_point.witness.written
    ('A100Roofline.peak', '(312 / 2.039) FLOP/byte')

In a module of claims all that is `calc`'s is `Seen`, from its first class on. Who reads a claim
from elsewhere, as a figure does, gets the device or the model itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from calc.core.units import Quantity
from calc.derivations.by_hand import ROWS, by_hand
from calc.derivations.deferred import LINES, VALUES, Deferred, computing
from calc.derivations.traces import Seen, Traced, TracedRows, TracedTables, is_coming, kept, traced

__all__ = ["Claims", "by_hand", "claims"]

CLAIMS: dict[str, type] = {}
"""Every class of claims that has been imported, by its name."""


def claims(name: str) -> type:
    """The class of that name."""
    return CLAIMS[name]


class Lines(dict[str, Any]):
    """The names of a class while its lines are run: each becomes a row."""

    def __init__(self, owner: str, rows: bool) -> None:
        super().__init__()
        self.owner, self.rows = owner, rows
        self.before = computing.set(LINES)

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "__module__" and self.rows:
            see(value)
        if not name.startswith("__"):
            if isinstance(before := self.get(name), Traced | Deferred) and before.row_name:
                before.row_name += " before"  # what the name meant, and no row of its own
            value = row(f"{self.owner}.{name}", value)
            if getattr(value, "witness", None) is not None:
                ROWS[value.row_name] = value
        super().__setitem__(name, value)


class Ledger(type):
    """The kind of classes whose lines are rows."""

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], **_: Any) -> Lines:  # type: ignore[override]
        return Lines(name, bool(bases))

    def __new__(mcs, name: str, bases: tuple[type, ...], lines: Lines) -> Any:
        computing.reset(lines.before)
        made = super().__new__(mcs, name, bases, dict(lines))
        if bases:
            if (other := CLAIMS.get(name)) and other.__module__ != made.__module__:
                both = f"{other.__module__} and {made.__module__}"
                raise NameError(f"{both} have claims of one name, {name}: call one otherwise")
            CLAIMS[name] = made
        return made

    def __getattribute__(cls, name: str) -> Any:
        value = super().__getattribute__(name)
        if type(value) is Deferred and computing.get() != LINES:
            value = value.settled()
        if name.startswith("_"):
            return value
        if type(value) is Seen and not computing.get():
            return value.thing
        if isinstance(value, Traced) and value.row_name.partition(".")[0] != cls.__name__:
            return row(f"{cls.__name__}.{name}", value)  # of a class that it inherits from
        return value


class Claims(metaclass=Ledger):
    """A claim of a chapter, its inputs first and then what follows from them."""


@contextmanager
def _inside() -> Iterator[None]:
    before = computing.set(VALUES)
    try:
        yield
    finally:
        computing.reset(before)


def see(module: str) -> None:
    """Shows the code of a module what it has of `calc` so that it knows where numbers are from."""
    names = vars(sys.modules[module])
    for name, value in list(names.items()):
        plain = name.startswith("__") or isinstance(value, bool | int | float | str)
        if not plain and (seen := traced(value)) is not value:
            names[name] = seen


def row(name: str, value: Any) -> Any:
    """The value as the row of that name, whose witness is the one beside it."""
    if is_coming(value):
        coming: Deferred = Deferred(lambda found: row(coming.row_name, found), value)
        coming.row_name = name
        if type(value) is Deferred and not value.row_name:
            coming.witness = value.witness
        return coming
    if isinstance(value, bool | None | type | Callable) and not isinstance(value, Seen):
        return value
    if isinstance(value, classmethod | staticmethod):
        return _method(name, value)
    if isinstance(value, Quantity | int | float | str | Seen | TracedTables):
        return kept(value, name)
    if type(value) in (tuple, list, TracedRows):
        return _rows(name, value)
    return value


def _rows(name: str, rows: Any) -> Any:
    traced_rows = TracedRows(_part(f"{name} {i}", part) for i, part in enumerate(rows))
    traced_rows.row_name, traced_rows.witness = name, getattr(rows, "witness", None)
    return traced_rows


def _part(name: str, part: Any) -> Any:
    if isinstance(part, Quantity | float | int) and not isinstance(part, bool):
        return part if isinstance(part, Traced) and part.row_name else kept(part, name)
    return _rows(name, part) if type(part) in (tuple, list) else part


def _method(name: str, method: Any) -> Any:
    """A method of claims, whose rows know its name."""
    function = method.__func__
    kept = isinstance(method, classmethod)

    @wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        if is_coming(*args, *kwargs.values()):
            return Deferred(named, *args, **kwargs)
        outermost = not computing.get()
        with _inside():
            value = function(*args, **kwargs)
            if isinstance(value, Generator):
                value = list(value)
        row_name = f"{args[0].__name__}.{name.partition('.')[2]}" if kept else name
        if outermost and issubclass(type(value), list | tuple):
            rows = TracedRows(value)
            rows.row_name, rows.witness = row_name, getattr(function, "witnesses", None)
            return rows
        return value.thing if outermost and type(value) is Seen else value

    return type(method)(named)
