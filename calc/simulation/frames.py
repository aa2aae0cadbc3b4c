"""Tables of rows, as polars has them: made, read and written."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from calc.core.errors import InputError, abbreviated, extra
from calc.core.files import writable, write_atomically

if TYPE_CHECKING:
    from polars import DataFrame


def frame_of(table: object) -> DataFrame:
    """A table as a polars frame, of a frame or of whatever polars makes one of."""
    polars = imported()
    try:
        frame: DataFrame = table if isinstance(table, polars.DataFrame) else polars.DataFrame(table)
    except (TypeError, ValueError, polars.exceptions.PolarsError) as error:
        raise InputError(
            f"a table is needed: a polars frame, or rows that it can be made of;"
            f" got {abbreviated(table)}"
        ) from error
    return frame


def write_table(table: DataFrame, path: Path | str) -> None:
    """A table as a .csv or .parquet file, which is there in full or not at all.

    >>> from tempfile import TemporaryDirectory
    >>> import polars
    >>> table = polars.DataFrame({"pruning": [0.0, 0.5], "accuracy": [0.95, 0.94]})
    >>> with TemporaryDirectory() as folder:
    ...     write_table(table, f"{folder}/sweep.csv")
    ...     polars.read_csv(f"{folder}/sweep.csv").equals(table)
    True
    """
    target = checked_target(path)
    frame = frame_of(table)
    whole = io.BytesIO()  # polars has a way of its own to say that a disk is full
    (frame.write_csv if target.suffix == ".csv" else frame.write_parquet)(whole)
    write_atomically(target, lambda name: Path(name).write_bytes(whole.getbuffer()))


def checked_target(path: Path | str) -> Path:
    """Return the path for a table, and refuse one that cannot be written before work is done."""
    target = writable(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"a table is written as .csv or .parquet; got {target.name!r}")
    return target


def imported() -> ModuleType:
    """polars, or the sentence that says how to get it."""
    with extra("a table of rows", "polars", "simulation"):
        import polars
    return polars
