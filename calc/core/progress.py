"""A line that says how far a long command is, on a terminal; a file or a pipe gets none of it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

WIDTH = 24


class ProgressBar:
    """`with ProgressBar(40, "training") as bar: … bar.advance("loss 0.12")`."""

    def __init__(self, total: int, title: str, stream: TextIO | None = None) -> None:
        self.total, self.title, self.done = total, title, 0
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty()

    def __enter__(self) -> Self:
        self._draw("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:  # the line is empty again for whatever is printed next
            self._stream.write("\r\033[K")
            self._stream.flush()

    def advance(self, note: str = "") -> None:
        """Count one more step as done, and draw the bar."""
        self.done += 1
        self._draw(note)

    def update(self, done: int, total: int) -> None:
        """Set how many steps are done, and of how many, for work that counts both itself."""
        self.done, self.total = done, total
        self._draw("")

    def _draw(self, note: str) -> None:
        if self._shown:
            full = WIDTH * self.done // self.total
            bar = "#" * full + "." * (WIDTH - full)
            line = f"\r\033[K{self.title} [{bar}] {self.done}/{self.total} {note}"
            self._stream.write(line.rstrip())
            self._stream.flush()
