"""Files that are stored beside the library, as derivations read them: measured, or computed once.

>>> settings("digits.toml")["layer_sizes"]
[64, 256, 256, 10]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from calc.core.records import DATA, read_rows, read_toml

FOLDERS = ("measured", "computed", "published", ".")
MEASURED = DATA / "measured"
Named: TypeAlias = dict[str, Any]
"""What a file of TOML or a row of a table says, by name."""


def file(name: str) -> Path | None:
    """Where a file of that name lies; None where there is none."""
    places = (DATA / folder / name for folder in FOLDERS)
    return next((place for place in places if place.is_file()), None)


def settings(name: str) -> Named:
    """What a file of TOML holds."""
    return read_toml(_place(name))


def rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a table, by the names of its columns."""
    return tuple(read_rows(_place(name)))


def _place(name: str) -> Path:
    return file(name) or MEASURED / name
