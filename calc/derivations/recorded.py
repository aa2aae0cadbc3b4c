"""Files that are stored beside the library, as derivations read them: measured, or computed once.

>>> settings("digits.toml")["layer_sizes"]
[64, 256, 256, 10]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from calc.core.records import DATA, read_rows, read_toml
from calc.derivations.traces import Made, Seen, text, traced

FOLDERS = ("measured", "computed", "published", ".")
MEASURED = DATA / "measured"
Named: TypeAlias = dict[str, Any]
"""What a file of TOML or a row of a table says, by name."""


class File:
    """A file that is stored beside the library."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(DATA.parent.parent).as_posix()
        self.kind = "measured" if path.parent.name == "measured" else "data file"


def settings(name: str) -> Named:
    """Return the contents of a file of TOML."""
    table: Named = known(read_toml(_place(name)), name)
    return table


def rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a table, by the names of its columns."""
    return tuple(
        {column: known(text, name) for column, text in row.items()}
        for row in read_rows(_place(name))
    )


def known(values: Any, name: str) -> Any:
    """Values that were read from a file of that name, which know it."""
    made = Made("call", "recorded", (Seen(File(_place(name)), None),))
    return text(values, made) if isinstance(values, str) else traced(values, made)


def _place(name: str) -> Path:
    places = (DATA / folder / name for folder in FOLDERS)
    return next((path for path in places if path.is_file()), MEASURED / name)
