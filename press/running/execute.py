"""Runs the cells and inline values of a chapter, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, TypedDict

from press.book_files import FOLDER, PRESS
from press.build_memory import digest
from press.problems import stop, within
from press.reading.source import Cell, Prose, Source
from press.running.environment import environment

# What the process is told, so that chapters find nothing of press by themselves.
KERNEL = """import sys; sys.path.insert(0, sys.argv[1])
from press.running.kernel import main; del sys.path[0]; main()"""
START_LIMIT = 60.0  # seconds, for a process that only imports
HALF = re.compile("[\ud800-\udfff]")  # of a character

Outputs = list[dict[str, Any]]


class Result(TypedDict):
    """Outputs of a chapter's pieces, in order, and the files that they depend on."""

    pieces: list[Outputs]
    read: list[tuple[str, str]]  # each file that it opened and each module, with its digest
    files: list[str]  # the project's modules that it imported, and what it read beside them


class Kernels(Popen[bytes]):
    """The process that becomes a chapter's by making a copy of itself; it ends with press."""

    def __init__(self, key: str, root: Path, shared: list[str]) -> None:
        self.key = key
        self.log = TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.control, its_end = socket.socketpair()
        command = [sys.executable, "-P", "-c", KERNEL, str(PRESS.parent), *shared]
        with its_end:
            super().__init__(
                command,
                cwd=root,
                env=environment(),
                stdin=its_end.fileno(),
                stdout=DEVNULL,
                stderr=self.log,
                start_new_session=True,  # Ctrl+C is for press
            )

    @contextmanager
    def chapter(self, request: dict[str, Any]) -> Iterator[Connection]:
        """The connection to a new process, which ends with it, and what it starts in its group."""
        connection, its_end = Pipe()
        with connection:
            with its_end, suppress(OSError):
                socket.send_fds(self.control, [b"."], [its_end.fileno()])
            try:
                connection.send(request)
                process = connection.poll(START_LIMIT) and json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                process = None
            if not process:
                stop(f"no Python kernel starts for this chapter: {self.last_words()}")
            try:
                yield connection
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process["output"], signal.SIGKILL)

    def end(self) -> None:
        """Ends every chapter, and what chapters have left."""
        self.control.close()
        self.terminate()  # it listens to that only as long as it imports
        try:
            self.wait(10)
        except TimeoutExpired:
            self.kill()

    def last_words(self) -> str:
        """Return the last line of a process that did not start, which says why."""
        self.end()
        said = os.pread(self.log.fileno(), 10_000, 0).decode(errors="replace").splitlines()
        return said[-1] if said else "?"


_running: list[Kernels] = []  # one at most
_starting = Lock()


def kernels(root: Path, shared: list[str], contents: str) -> Kernels:
    """Return what runs the chapters of a book, whose code and data have this digest.

    Which book that is matters only where its chapters share what they import.
    """
    key = digest(environment(), [str(root), shared, contents] if shared else [])
    with _starting:
        if not _running or _running[0].key != key or _running[0].poll() is not None:
            end_kernels()
            _running.append(Kernels(key, root, shared))
        return _running[0]


def end_kernels() -> None:
    """Ends all that this process has started; without it they end when this process does."""
    while _running:
        _running[0].end()
        _running.pop().log.close()


def run(
    source: Source,
    root: Path,
    in_project: bool,
    timeout: float,
    kernels: Callable[[], Kernels],
    files: dict[str, str],
) -> Result:
    """Run the cells and inline values of a chapter, in a process of its own."""
    asked = [_questions(piece) for piece in source.pieces]
    questions = [question for piece in asked for _, _, question in piece]
    if not questions:
        return {"pieces": [[] for _ in asked], "read": [], "files": []}
    folder = root if in_project else (root / source.file).parent
    request = {"pieces": questions, "memory": str(root / FOLDER), "folder": str(folder)}
    with within(source.file), kernels().chapter(request) as connection:

        def answer(line: int, what: str) -> Any:
            """Return the next answer, and stop the build where it is none."""
            try:
                if not connection.poll(timeout):
                    limit = f"{timeout:g} s, the limit that `execute.timeout` in _quarto.yml sets"
                    stop(f"{what} takes longer than {limit}.", source.file, line)
                result = json.loads(connection.recv_bytes())
            except (EOFError, OSError):
                stop(f"{what} ended its Python process.", source.file, line)
            for name, value in result["errors"]:
                last = value.strip().split("\n")[-1]
                stop(f"{what} fails with {name}{f': {last}' if last else '.'}", source.file, line)
            if sign := HALF.search(json.dumps(result["output"], ensure_ascii=False)):
                sentence = f"gives U+{ord(sign[0]):04X}, which no page can print."
                stop(f"{what} {sentence}", source.file, line)
            return result["output"]

        pieces = [[out for line, what, _ in piece for out in answer(line, what)] for piece in asked]
        read, started = answer(0, "this chapter")
    home = os.path.realpath(root) + os.sep
    known_here = [
        path[len(home) :] for path, _ in read if path.startswith(home) and os.path.isfile(path)
    ]
    folders = {os.path.dirname(name) for name in known_here if name.endswith(".py")} - {""}
    run_with = [
        name for name in known_here if name.endswith(".py") or os.path.dirname(name) in folders
    ]
    if started:  # nobody knows what another process read
        read += [(str(root / name), value) for name, value in files.items()]
    return {"pieces": pieces, "read": read, "files": run_with}


def _questions(piece: Cell | Prose) -> list[tuple[int, str, dict[str, str]]]:
    """Return what a piece asks of the kernel: its line, how it is named, and the question."""
    if isinstance(piece, Prose):
        return [(line, f"`{text}`", {"value": text}) for line, text in piece.inline_values()]
    return [(piece.line, "this cell", {"code": piece.code})] if piece.options["eval"] else []
