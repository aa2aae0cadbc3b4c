"""The book's ledger: the rows of `calc.derivations` and what stands beside them."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from calc import derivations
from calc.derivations.by_hand import ROWS, row_by_hand
from calc.derivations.cards import line_of
from calc.derivations.deferred import settled
from calc.derivations.ledger import CLAIMS


@cache
def derived() -> dict[str, type]:
    """All derivations by their names, whose modules compute for seconds when they are imported."""
    for module in iter_modules(derivations.__path__):
        import_module(f"calc.derivations.{module.name}")
    return CLAIMS


def value_of(name: str) -> Any:
    owner, _, attribute = name.partition(".")
    return getattr(derived()[owner], attribute)


@cache
def numbers() -> dict[str, Any]:
    """The numbers and texts that have a witness, by the names of their rows."""
    derived()
    rows = {name: settled(row) for name, row in ROWS.items()}
    return {name: row for name, row in rows.items() if not isinstance(row.witness, tuple)}


def witnesses_of_rows(name: str) -> tuple[row_by_hand, ...]:
    """Return the witnesses beside the rows of a table, or above the method that makes them."""
    rows = value_of(name)
    return getattr(rows, "witnesses", ()) or getattr(rows, "witness", None) or ()


def place_of(name: str) -> str:
    """The file and the line of a row."""
    owner = derived()[name.partition(".")[0]]
    file = inspect.getsourcefile(owner) or ""
    return f"calc/derivations/{file.rpartition('/')[2]}:{line_of(name)}"
