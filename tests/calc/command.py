"""The command `calc` as tests call it, in this process."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calc.commands import main

Written = Callable[..., Path]
"""The fixture that writes a file: of a text, under a name where that matters."""


class Command:
    """Runs command lines: the first argument is split as a shell does, and all others are words."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def prints(self, line: str, *words: str, status: int = 0) -> str:
        """Return the text that an answer prints; the status is 1 where nothing fits."""
        assert main([*shlex.split(line), *words]) == status
        printed = self.capsys.readouterr()
        assert printed.err == ""  # no terminal, no progress bar
        return printed.out

    def refuses(self, line: str, *words: str) -> str:
        """The one sentence of a refusal."""
        assert main([*shlex.split(line), *words]) == 1
        printed = self.capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("calc: ")
        assert printed.err.count("\n") == 1
        return printed.err

    def facts(self, line: str, *words: str) -> Any:
        """An answer for programs."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads(self.prints(line, *words, "--json"), parse_constant=refuse)

    def rows(self, line: str, *words: str) -> list[dict[str, str]]:
        """An answer as a table."""
        return list(csv.DictReader(io.StringIO(self.prints(line, *words, "--csv"))))
