"""The Python processes that run chapters, as Jupyter's kernel would: IPython without a screen.

One process imports what chapters share, and becomes each chapter's by making a copy of itself, so
that none sees anything of another. It runs nothing of a book, so that nothing keeps it from ending,
when press does, all that chapters have started.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import re
import resource
import signal
import socket
import sys
from contextlib import suppress
from importlib.util import source_from_cache
from multiprocessing.connection import Connection
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryFile
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from press.book_files import PRESS, file_digest
from press.drawings import PRINTING, drawings

# Half a second for every chapter that draws or computes. No module of the book: those may change.
COMMON = ["matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_svg", "pint"]
MOST_MEMORY = 8 << 30  # bytes that a chapter, and each process that it starts, may hold
PR_SET_CHILD_SUBREAPER = 36
LISTS = ("os.listdir", "os.scandir")
STARTS = re.compile(r"os\.(?:exec|fork|posix_spawn|spawn|system)|pty\.|subprocess\.")
NOT_READ = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (sys.prefix, sys.base_prefix, PRESS, "/proc", "/sys", "/dev")
)

# What was opened or listed, with its digest just before; None for what a chapter made itself.
opened: dict[str, str | None] = {}
started: list[str] = []  # how other processes were, of which nobody knows what they read
errors: list[tuple[str, str]] = []  # of the piece that is running


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes a file that is opened, a folder that is listed or made, and a process that starts."""
    if STARTS.match(event):
        started.append(event)
    # What imports look through is no matter: modules count by themselves.
    if event in LISTS and "importlib" not in sys._getframe(1).f_code.co_filename:
        note_path(arguments[0] or ".", made=False)
    elif event == "os.mkdir":
        note_path(arguments[0], made=True)
    elif event == "open":
        flags = arguments[2] or 0
        made = bool(flags & (os.O_TRUNC | os.O_EXCL))
        if made or flags & os.O_ACCMODE != os.O_WRONLY:
            note_path(arguments[0], made)


def note_path(name: Any, made: bool) -> None:
    with suppress(OSError, TypeError, ValueError):
        path = os.path.realpath(os.fsdecode(name))
        # A module counts by its source, wherever Python kept it compiled.
        path = source_from_cache(path) if path.endswith(".pyc") else path
        if path not in opened and not path.startswith(NOT_READ):
            opened[path] = None  # while its digest opens it again
            opened[path] = None if made else file_digest(path)


class Shown(DisplayHook):
    """Takes the value of a cell's last line."""

    def write_output_prompt(self) -> None: ...
    def finish_displayhook(self) -> None: ...

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        value = {"output_type": "execute_result", "data": format_dict, "metadata": md_dict}
        self.shell.display_pub.outputs.append(value)  # type: ignore[union-attr]


class Shell(InteractiveShell):
    def showtraceback(self, exc_tuple: Any = None, *_: object, **__: object) -> None:
        kind, error, _traceback = self._get_exc_info(exc_tuple)  # type: ignore[no-untyped-call]
        errors.append((kind.__name__, str(error)))  # laying out what is deep takes for ever

    showsyntaxerror = showtraceback  # type: ignore[assignment]


def run_cell(shell: Any, code: str) -> None:
    shell.display_pub.outputs = []
    if drawing := sys.modules.get("matplotlib.figure"):
        printer = shell.display_formatter.formatters["image/svg+xml"]
        printer.for_type(drawing.Figure, drawings)
    result = shell.run_cell(code, store_history=True)
    if not errors and not result.success:  # a cell that exits is no traceback to IPython
        errors.append((type(result.error_in_exec).__name__, str(result.error_in_exec)))


def cell_outputs(shell: Any) -> list[dict[str, Any]]:
    """Return what a cell has printed and shown, as Jupyter has it, and keep none of it."""
    outputs = []
    for descriptor, name in enumerate(("stdout", "stderr"), start=1):
        getattr(sys, name).flush()
        if size := os.lseek(descriptor, 0, os.SEEK_CUR):
            text = os.pread(descriptor, size, 0).decode(errors="replace")
            outputs.append({"output_type": "stream", "name": name, "text": text})
            os.truncate(descriptor, os.lseek(descriptor, 0, os.SEEK_SET))
    for shown in shell.display_pub.outputs:
        kind = shown.get("output_type", "display_data")
        of_drawing = (shown["metadata"] or {}).get("image/svg+xml", {})
        outputs.append({"output_type": kind, "data": shown["data"], **of_drawing})
    return outputs


def run(connection: Connection) -> None:
    """Runs a chapter, and answers with each cell's and inline value's output, and what it read."""
    process = os.getpid()
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    request = connection.recv()
    os.chdir(request["folder"])
    os.environ["IPYTHONDIR"] = request["memory"] + "/ipython"  # none of the author's settings
    config = Config()
    config.HistoryManager.enabled = False
    # The inline backend sets its own printer from these in the cell that starts pyplot.
    config.InlineBackend.figure_formats = {"svg"}
    config.InlineBackend.print_figure_kwargs = PRINTING
    shell: Any = Shell.instance(
        config=config, displayhook_class=Shown, display_pub_class=CapturingDisplayPublisher
    )
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (1, 2):  # of Python, and of other programs
        with TemporaryFile() as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdout.reconfigure(line_buffering=True, errors="strict")  # type: ignore[union-attr]

    def answer(output: object) -> None:
        said = json.dumps({"output": output, "errors": errors}, default=repr)
        connection.send_bytes(said.encode())

    answer(process)
    for piece in request["pieces"]:
        value = {}
        if "code" in piece:
            run_cell(shell, piece["code"])
        else:  # as Quarto does
            value = shell.user_expressions({"": piece["value"]})[""]
        if os.getpid() != process:  # a fork by a cell, which must not go on as the chapter
            return
        if value.get("status") == "error":
            errors.append((value["ename"], value["evalue"]))
        outputs = cell_outputs(shell)
        answer([value] if value else outputs)
        if errors:
            return
    remembered = os.path.realpath(request["memory"]) + os.sep
    read = [
        item for item in sorted(opened.items()) if item[1] and not item[0].startswith(remembered)
    ]
    answer([read, bool(started)])


def main() -> None:
    """Imports what chapters do, then makes a copy of itself for each connection that comes in."""
    # On a new machine matplotlib reports that it lists the fonts: not a matter for the page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for name in COMMON:
        with suppress(ImportError):
            resolve_name(name)
    sys.addaudithook(note)
    sys.path.insert(0, "")
    for name in sys.argv[2:]:
        with suppress(Exception):  # which a chapter that imports it meets again
            resolve_name(name)
    # Searches for cycles took a tenth of a chapter's time: few are left, none in what all share.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    if sys.platform == "linux":  # the parent of what chapters leave behind
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which before now ends it while it imports
    control = socket.socket(fileno=0)
    chapters: set[int] = set()
    while descriptors := socket.recv_fds(control, 1, 1)[1]:
        chapters = {pid for pid in chapters if os.waitpid(pid, os.WNOHANG) == (0, 0)}
        if not chapters:
            end_children()
        os.set_inheritable(descriptors[0], False)  # to the programs that a chapter starts
        with Connection(descriptors[0]) as connection:
            chapters.add(os.fork())
            started.pop()  # that, which is no chapter's
            if 0 in chapters:
                run(connection)
                os._exit(0)  # no thread or exit handler of a chapter can hold press up
    end_children()


def end_children() -> None:
    """Ends chapters, and what they started in groups of their own, which is ours once they end."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(OSError):
        while pids := children.read_text("ascii").split():
            for pid in map(int, pids):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
