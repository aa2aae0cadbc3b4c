"""The constants of `data/constants.toml`, by name: `calc.constants.energy_dram_word`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from calc.core.docstrings import public_names
from calc.core.names import resolve, spellings, squeezed
from calc.core.records import DATA, Record, attribute, read_record, read_toml
from calc.core.units import Quantity


def load(path: Path) -> dict[str, Record]:
    """Every constant of a file, checked.

    >>> print(load(DATA / "constants.toml")["energy_dram_word"].quantity)
    640 pJ
    """
    return {name: read_record(table, name, path) for name, table in read_toml(path).items()}


@cache
def _records() -> dict[str, Record]:
    return load(DATA / "constants.toml")


def names() -> tuple[str, ...]:
    """The names of all constants.

    >>> "energy_dram_word" in names()
    True
    """
    return tuple(_records())


def get(name: str) -> Quantity:
    """The constant of that name.

    >>> print(get("energy_dram_word"))
    640 pJ
    """
    key = resolve("constant", name, _spellings(), "`calc list constants` prints them all")
    return _records()[key].quantity


def key_of(name: str) -> str | None:
    """The key for a name as people write it; None where no constant has it.

    >>> key_of("Energy DRAM word"), key_of("abacus")
    ('energy_dram_word', None)
    """
    return _spellings().get(squeezed(name))


@cache
def _spellings() -> dict[str, str]:
    return spellings(dict.fromkeys(_records(), ()))


def __getattr__(name: str) -> Quantity:
    return attribute(get, name)


def __dir__() -> list[str]:
    return [*public_names(sys.modules[__name__]), *names()]
