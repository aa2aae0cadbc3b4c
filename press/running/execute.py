"""Runs the cells and inline values of a chapter, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypedDict

from press.errors import BookError, stop
from press.files import FOLDER
from press.reading.source import Cell, Prose, Source
from press.running.environment import environment

KERNEL = Path(__file__).with_name("kernel.py")
CORES = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1

Outputs = list[dict[str, Any]]


class Result(TypedDict):
    """What a chapter's pieces gave, in order, and the files that they depend on."""

    pieces: list[Outputs]
    read: list[tuple[str, str]]  # each file that it opened and each foreign module, with its digest
    files: list[str]  # the project's modules that it imported, and what it read beside them


class Kernels:
    """The process that becomes a chapter's by making a copy of itself; it ends with press."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.control, its_end = socket.socketpair()
        self.errors = TemporaryFile()  # noqa: SIM115 (the process ends it)
        with its_end:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(KERNEL)],
                env=environment,
                stdin=its_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=self.errors,
                start_new_session=True,  # Ctrl+C is for press
            )

    def chapter(self) -> socket.socket:
        """The connection to a new process, which lives as long."""
        connection, its_end = socket.socketpair()
        with its_end, suppress(BrokenPipeError):
            socket.send_fds(self.control, [b"c"], [its_end.fileno()])
        return connection

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        _kernels.cache_clear()

    def last_words(self) -> str:
        """What a process that did not start has said why."""
        self.kill()
        self.process.wait()
        said = os.pread(self.errors.fileno(), 10_000, 0).decode(errors="replace").splitlines()
        return said[-1] if said else "?"


@cache
def _kernels(environment: tuple[tuple[str, str], ...]) -> Kernels:
    return Kernels(dict(environment))


def kernels() -> Kernels:
    """Those of this process, for the environment as it is now."""
    return _kernels(tuple(environment().items()))


def run(source: Source, root: Path, in_project: bool) -> Result:
    """What the cells and inline values of a chapter give, in a process of its own."""
    if not any(isinstance(piece, Cell) or piece.inline_values() for piece in source.pieces):
        return {"pieces": [[] for _ in source.pieces], "read": [], "files": []}
    own = kernels()
    folder = root if in_project else (root / source.file).parent
    with own.chapter() as connection:
        try:
            return _results(source, folder, root, connection)
        except (EOFError, ConnectionError):
            sentence = "no Python kernel starts for this chapter"
            stop(f"{sentence}: {own.last_words()}", source.file)


def _results(source: Source, folder: Path, root: Path, connection: socket.socket) -> Result:
    pieces = [_asked(piece) for piece in source.pieces]
    request = {"pieces": pieces, "root": str(root), "memory": str(root / FOLDER)}
    connection.sendall(json.dumps(request | {"folder": str(folder)}).encode() + b"\n")
    with connection.makefile("rb") as answers:
        if not answers.readline():
            raise EOFError
        found = [_checked(source, piece, answers.readline()) for piece in source.pieces]
        read, files = json.loads(answers.readline())
        return {"pieces": found, "read": read, "files": files}


def _asked(piece: Cell | Prose) -> str | list[str]:
    """The code of a cell, or the expressions in a stretch of prose."""
    if isinstance(piece, Prose):
        return [expression for _, expression in piece.inline_values()]
    return piece.code if piece.options["eval"] else []


def _checked(source: Source, piece: Cell | Prose, line: bytes) -> Outputs:
    """What the kernel answered for one piece, unless that failed."""

    def failure(line: int, what: str, name: str, value: str) -> BookError:
        lines = value.strip().splitlines()
        said = f"{name}: {lines[-1]}" if lines else f"{name}."
        return BookError.of(source.file, line, f"{what} fails with {said}")

    values = piece.inline_values() if isinstance(piece, Prose) else []
    first = piece.line if isinstance(piece, Cell) else values[0][0] if values else 1
    if not line:
        raise BookError.of(source.file, first, "this cell ended its Python process.")
    answer = json.loads(line)
    outputs: Outputs = answer["outputs"]
    for number, expression in enumerate(values):
        value = outputs[number]
        if value["status"] == "error":
            raise failure(expression[0], f"`{expression[1]}`", value["ename"], value["evalue"])
    for name, value in answer["errors"]:
        raise failure(first, "this cell", name, value)
    return outputs
