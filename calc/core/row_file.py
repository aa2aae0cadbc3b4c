"""The file of a sweep's finished rows: one line each, so that the same call goes on from there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calc.core.errors import InputError
from calc.core.files import append_line, locked, parse_json, read_bytes, writable

Row = dict[str, Any]


class RowFile:
    """Rows on disk, of one sweep at a time. The first line says of which; each row is a line.

    A last line that was cut off by the end of a process is no row and is taken out; anything else
    that cannot be read is refused.
    """

    def __init__(self, path: Path | str, settings: Row, columns: dict[str, type]) -> None:
        self.path, self.settings, self.columns = writable(path), settings, columns

    @contextmanager
    def open(self) -> Iterator[list[Row]]:
        """The rows that are there; until the end no other sweep may have the file, which exists
        then, and ends with a whole line."""
        try:
            self.path.touch()
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}") from None
        with locked(self.path):
            yield self._rows()

    def _rows(self) -> list[Row]:
        text = self._text()
        if not text:
            append_line(self.path, json.dumps(self.settings))
            return []
        whole = text[: text.rfind("\n") + 1]
        if not whole:
            raise self._corrupted("line 1 is cut off")
        first, *rows = [self._read(number, line) for number, line in enumerate(whole.splitlines())]
        self._check_settings(first)
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        return rows

    def append(self, row: Row) -> None:
        """A row more, whole or not at all."""
        append_line(self.path, json.dumps(row))

    def _text(self) -> str:
        try:
            return read_bytes(self.path).decode()
        except UnicodeDecodeError:
            raise self._corrupted("it is no text") from None

    def _read(self, number: int, line: str) -> Row:
        try:
            row: Row = parse_json(line, "")
        except InputError:
            raise self._corrupted(f"line {number + 1} cannot be read") from None
        first = {name: type(value) for name, value in self.settings.items()}
        needed = self.columns if number else first
        kinds = {name: type(value) for name, value in row.items()} if type(row) is dict else {}
        if kinds != needed:
            raise self._corrupted(f"line {number + 1} does not belong there")
        return row

    def _check_settings(self, row: Row) -> None:
        other = [name for name, value in self.settings.items() if row[name] != value]
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
