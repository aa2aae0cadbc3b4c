"""Tables of rows, as polars has them: made, read and written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calc.errors import InputError, shown

if TYPE_CHECKING:
    from polars import DataFrame


def frame_of(table: Any) -> DataFrame:
    """A table as a polars frame, of a frame or of whatever polars makes one of."""
    polars = imported()
    try:
        frame: DataFrame = table if isinstance(table, polars.DataFrame) else polars.DataFrame(table)
    except (TypeError, ValueError, polars.exceptions.PolarsError) as error:
        raise InputError(
            f"a table is needed: a polars frame, or rows that it can be made of; got {shown(table)}"
        ) from error
    return frame


def write_table(table: DataFrame, path: Path | str) -> None:
    """A table as a .csv or .parquet file, which is there in full or not at all."""
    target = checked_target(path)
    frame = frame_of(table)
    with_whole_file(target, frame.write_csv if target.suffix == ".csv" else frame.write_parquet)


def checked_target(path: Path | str) -> Path:
    """Where a table can be written, so that one need not be made in vain."""
    target = writable(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"a table is written as .csv or .parquet; got {target.name!r}")
    return target


def writable(path: Path | str) -> Path:
    """A path that a file can be put at; a folder or a device, as /dev/null, is never replaced."""
    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {target}: it is there, and is no file")
        if not target.parent.is_dir():
            raise InputError(f"cannot write {target}: there is no folder {target.parent}")
        with tempfile.NamedTemporaryFile(dir=target.parent):
            return target
    except TypeError:
        raise InputError(f"a file needs a path; got {shown(path)}") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def with_whole_file(target: Path, write: Callable[[str], Any]) -> None:
    """Let `write` fill a file beside the target, and then put it in the target's place."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        try:
            write(name)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None


def imported() -> Any:
    """polars, or the sentence that says how to get it."""
    try:
        import polars
    except ImportError:
        raise InputError(
            "tables need polars, which is not installed: install machine-foundations[simulation]"
        ) from None
    return polars


def _umask() -> int:
    """What a new file of this process may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
