"""Problems of a book, in the author's terms: a file, a line and one sentence."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn


@dataclass(frozen=True, order=True)
class Problem:
    file: str
    line: int  # 0 when the fault is the whole file's
    sentence: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: {self.sentence}"
            if self.line
            else (f"{self.file}: {self.sentence}" if self.file else self.sentence)
        )


class BookError(Exception):
    """Stops a build; carries every problem found up to then."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(cls, file: str, line: int, sentence: str) -> BookError:
        return cls([Problem(file, line, sentence)])


class Problems(list[Problem]):
    """Collects problems, so that an author sees all of a step's faults in one run."""

    def add(self, file: str, line: int, sentence: str) -> None:
        self.append(Problem(file, line, sentence))

    def stop_if_any(self) -> None:
        if self:
            raise BookError(self)


def stop(sentence: str, file: str = "", line: int = 0) -> NoReturn:
    raise BookError.of(file, line, sentence)


@contextmanager
def within(file: str) -> Iterator[None]:
    """Problems that name no file are of this one."""
    try:
        yield
    except BookError as error:
        raise BookError([replace(one, file=one.file or file) for one in error.problems]) from None


def cannot_write(error: OSError) -> NoReturn:
    """Says why: of several files, as when folders are copied, of the first."""
    name, why = error.filename, error.strerror
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        _, name, why = error.args[0][0]
        why = re.sub(r"^\[Errno \d+\] |: '.*'$", "", str(why))
    stop(f"press cannot write: {why or error}{f': {name}' if name else ''}.")
