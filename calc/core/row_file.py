"""The file of a sweep's finished rows: one line each, so that the same call goes on from there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from calc.core.errors import InputError
from calc.core.files import writable, write_text

Row = dict[str, Any]


def _refused(constant: str) -> None:
    """NaN and infinities are no values of a row, though Python's JSON has them."""
    raise ValueError(constant)


class RowFile:
    """Rows on disk. The first line says of which sweep; a row is appended in one write.

    A last line that was cut off by the end of a process is no row and is taken out; anything else
    that cannot be read is refused.
    """

    def __init__(self, path: Path | str, settings: Row, columns: dict[str, type]) -> None:
        self.path, self.settings, self.columns = writable(path), settings, columns

    def open(self) -> list[Row]:
        """The rows that are there; the file exists afterwards, and ends with a whole line."""
        found = self._text()
        text = found or json.dumps(self.settings) + "\n"
        whole = text[: text.rfind("\n") + 1]
        if not whole:
            raise self._corrupted("line 1 is cut off")
        first, *rows = [self._read(number, line) for number, line in enumerate(whole.splitlines())]
        self._check_settings(first)
        if whole != found:
            write_text(self.path, whole)
        return rows

    def append(self, row: Row) -> None:
        line = (json.dumps(row) + "\n").encode()
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from None

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except UnicodeDecodeError:
            raise self._corrupted("it is no text") from None
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from None

    def _read(self, number: int, line: str) -> Row:
        try:
            row: Row = json.loads(line, parse_constant=_refused)
        except ValueError:
            raise self._corrupted(f"line {number + 1} cannot be read") from None
        first = {name: type(value) for name, value in self.settings.items()}
        needed = self.columns if number else first
        kinds = {name: type(value) for name, value in row.items()} if type(row) is dict else {}
        if kinds != needed:
            raise self._corrupted(f"line {number + 1} does not belong there")
        return row

    def _check_settings(self, found: Row) -> None:
        other = [name for name, value in self.settings.items() if found[name] != value]
        if other:
            raise InputError(
                f"{self.path} holds the rows of another sweep, which differs in"
                f" {', '.join(other)}; give another file"
            )

    def _corrupted(self, why: str) -> InputError:
        return InputError(
            f"{self.path} is no file of finished rows, or is corrupted: {why};"
            f" take it away or give another file"
        )
