"""Tables of measurements, written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from calc.core.files import write_atomically


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    def write(name: str) -> None:
        with Path(name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([columns, *rows])

    write_atomically(path, write)
