"""Runs the cells and inline values of a chapter, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypedDict

from press.book_files import FOLDER, file_digest, paths_below
from press.build_memory import digest
from press.problems import stop
from press.reading.source import Cell, Prose, Source
from press.running.environment import environment

KERNEL = Path(__file__).with_name("kernel.py")
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
START_LIMIT = 60.0  # seconds, for a process that only imports
NO_CHARACTER = re.compile(rb"\\u(?:0000|d[89a-f])")  # may stand here, as JSON spells it

Outputs = list[dict[str, Any]]


class Result(TypedDict):
    """Outputs of a chapter's pieces, in order, and the files that they depend on."""

    pieces: list[Outputs]
    read: list[tuple[str, str]]  # each file that it opened and each foreign module, with its digest
    files: list[str]  # the project's modules that it imported, and what it read beside them


class Kernels:
    """The process that becomes a chapter's by making a copy of itself; it ends with press."""

    def __init__(
        self, environment: dict[str, str], folder: Path | None = None, shared: tuple[str, ...] = ()
    ) -> None:
        self.control, its_end = socket.socketpair()
        self.errors = TemporaryFile()  # noqa: SIM115 (the process ends it)
        self.numbers = count()
        self.packages = {name.partition(".")[0] for name in shared}
        with its_end:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(KERNEL), *shared],
                cwd=folder,
                env=environment,
                stdin=its_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                start_new_session=True,  # Ctrl+C is for press
            )

    @contextmanager
    def chapter(self) -> Iterator[socket.socket]:
        """The connection to a new process, which ends with it, and all that it has started too."""
        number = next(self.numbers).to_bytes(4, "big")
        connection, its_end = socket.socketpair()
        with connection:
            try:
                with its_end, suppress(OSError):
                    socket.send_fds(self.control, [number], [its_end.fileno()])
                yield connection
            finally:
                with suppress(OSError):
                    self.control.send(number)

    def end(self) -> None:
        """Ends every chapter."""
        for started in (_STARTED, _SHARED):
            for key in [key for key, each in started.items() if each is self]:
                del started[key]  # type: ignore[arg-type]
        self.control.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def last_words(self) -> str:
        """Return the last line of a process that did not start, which says why."""
        self.end()
        said = os.pread(self.errors.fileno(), 10_000, 0).decode(errors="replace").splitlines()
        return said[-1] if said else "?"


_STARTED: dict[tuple[tuple[str, str], ...], Kernels] = {}  # by the environment of each
_SHARED: dict[tuple[Path, str], Kernels] = {}  # by the project, and the digest of its code and data


def kernels() -> Kernels:
    """Return the kernels of this process, for the environment as it is now."""
    variables = environment()
    return _STARTED.get(key := tuple(variables.items())) or _STARTED.setdefault(
        key, Kernels(variables)
    )


def share(root: Path, names: list[str], contents: str) -> None:
    """Start what chapters of a project are copies of that import what these names are of.

    It holds them as they were when it began, so that it ends once code or data have changed.
    """
    key = root, digest(environment(), names, contents)
    if key not in _SHARED:
        for (of, _), started in list(_SHARED.items()):
            if of == root:
                started.end()
                started.errors.close()
        _SHARED[key] = Kernels(environment(), root, tuple(names))


def _kernels_of(source: Source, root: Path) -> Kernels:
    """Return those that share what the chapter imports, or else those that hold nothing of it."""
    code = "\n".join(piece.code for piece in source.pieces if isinstance(piece, Cell))
    for (of, _), started in _SHARED.items():
        if of == root and any(re.search(rf"\b{name}\b", code) for name in started.packages):
            return started
    return kernels()


def end_kernels() -> None:
    """Ends all that this process has started; without it they end when this process does."""
    for started in [*_STARTED.values(), *_SHARED.values()]:
        started.end()
        started.errors.close()


def run(source: Source, root: Path, in_project: bool, timeout: float) -> Result:
    """Run the cells and inline values of a chapter, in a process of its own."""
    if not any(isinstance(piece, Cell) or piece.inline_values() for piece in source.pieces):
        return {"pieces": [[] for _ in source.pieces], "read": [], "files": []}
    started = _kernels_of(source, root)
    folder = root if in_project else (root / source.file).parent
    request = {
        "pieces": [question for piece in source.pieces for question in _questions(piece)],
        "root": str(root),
        "memory": str(root / FOLDER),
        "folder": str(folder),
    }
    with started.chapter() as connection:
        try:
            connection.settimeout(START_LIMIT)
            connection.sendall(json.dumps(request).encode() + b"\n")
            answers = connection.makefile("rb")
            if not answers.readline():
                raise EOFError
        except (EOFError, OSError):
            sentence = "no Python kernel starts for this chapter"
            stop(f"{sentence}: {started.last_words()}", source.file)
        connection.settimeout(timeout)
        with answers:
            return _result(source, answers, timeout, root)


def _questions(piece: Cell | Prose) -> list[dict[str, Any]]:
    """Return the questions about a piece for the kernel, one for each answer."""
    if isinstance(piece, Prose):
        return [{"value": expression} for _, expression in piece.inline_values()]
    return [{"code": piece.code}] if piece.options["eval"] else []


def _result(source: Source, answers: BinaryIO, timeout: float, root: Path) -> Result:
    """Return the kernel's answers, and stop the build where one fails."""

    def answer(line: int, what: str) -> Any:
        try:
            said = answers.readline()
        except TimeoutError:
            limit = f"{timeout:g} s, the limit that `execute.timeout` in _quarto.yml sets"
            stop(f"{what} takes longer than {limit}.", source.file, line)
        if not said:
            stop(f"{what} ended its Python process.", source.file, line)
        result = json.loads(said)
        for name, value in result["errors"]:
            last = value.strip().split("\n")[-1]
            stop(f"{what} fails with {name}{f': {last}' if last else '.'}", source.file, line)
        if NO_CHARACTER.search(said) and (sign := _no_character(result["output"])):
            stop(f"{what} gives U+{ord(sign):04X}, which no page can print.", source.file, line)
        return result["output"]

    def answers_to(piece: Cell | Prose) -> Outputs:
        if isinstance(piece, Prose):
            return [answer(line, f"`{expression}`") for line, expression in piece.inline_values()]
        if not piece.options["eval"]:
            return []
        outputs: Outputs = answer(piece.line, "this cell")
        return outputs

    pieces = list(map(answers_to, source.pieces))
    read, files, started = answer(0, "this chapter")
    if started:  # nobody knows what another process imported
        modules = (path for path in paths_below(root.resolve()) if path.endswith(".py"))
        read += [(path, file_digest(path)) for path in modules]
    return {"pieces": pieces, "read": read, "files": files}


def _no_character(output: object) -> str:
    """The first NUL or lone half of a character in it, as text."""
    match = re.search("[\0\ud800-\udfff]", json.dumps(output, ensure_ascii=False))
    return match[0] if match else ""
