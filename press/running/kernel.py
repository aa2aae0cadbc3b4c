"""The Python processes that run chapters, as Jupyter's kernel would: IPython without a screen.

One process waits for press, and makes a copy of itself for each chapter, so that what they all need
is imported once; what a book says that its chapters share too, in a process for those that import
it. A copy reads what to run from its connection and answers with a line for each cell
and inline value, then one with the files that the chapter read, and whether it has started another
process, so that its results count no longer than they do. The first process runs nothing of a book,
so that nothing keeps it from ending a chapter, with all that this has started, when press says so
or has ended. A chapter sees nothing of it but IPython, and for that all of it is one file: it
cannot import press, nor a file beside it.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import json
import logging
import os
import re
import resource
import shlex
import signal
import socket
import sys
import sysconfig
import tempfile
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.util import source_from_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import print_figure
from traitlets.config import Config

NARROW_PAGE = [3.5, 2.6]  # inches, as matplotlib's `figure.figsize`; what is tight adds a margin
PRINTING = {"bbox_inches": "tight", "metadata": {"Date": None}}

# Half a second for every chapter that draws or computes. No module of the book: those may change.
COMMON = ["matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_svg", "pint"]

outputs: list[dict[str, Any]] = []  # of the piece that is running
errors: list[tuple[str, str]] = []


class Stream(io.TextIOBase):
    """Stream of Python's prints to the outputs; other programs print to a file until then."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.descriptor = descriptor
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (the process ends it)
        os.dup2(self.file.fileno(), descriptor)

    def fileno(self) -> int:
        return self.descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        last = outputs[-1] if outputs else {}
        if last.get("output_type") == "stream" and last["name"] == self.name:
            last["text"].append(text)
        elif text:
            outputs.append({"output_type": "stream", "name": self.name, "text": [text]})
        return len(text)

    def collect(self) -> None:
        self.file.seek(0)
        self.write(self.file.read().decode(errors="replace"))
        self.file.seek(0)
        self.file.truncate()


class Shown(DisplayHook):
    """Takes the value of a cell's last line."""

    def write_output_prompt(self) -> None: ...
    def finish_displayhook(self) -> None: ...

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        metadata_of_svg = (md_dict or {}).get("image/svg+xml", {})
        outputs.append({"output_type": "execute_result", "data": format_dict, **metadata_of_svg})


class Displayed(DisplayPublisher):
    """Takes what a cell displays."""

    def publish(self, data: dict[str, Any], metadata: Any = None, *_: object, **__: object) -> None:
        metadata_of_svg = (metadata or {}).get("image/svg+xml", {})
        outputs.append({"output_type": "display_data", "data": data, **metadata_of_svg})

    def clear_output(self, wait: bool = False) -> None:
        outputs.clear()


class Shell(InteractiveShell):
    def var_expand(self, cmd: str, depth: int = 0, *formatter: Any) -> str:
        """Return the line that `!sort FILE` runs, and audit it, since its own terminal hides it."""
        line: str = super().var_expand(cmd, depth + 1, *formatter)  # type: ignore[no-untyped-call]
        sys.audit(COMMAND, line)
        return line

    def showtraceback(self, exc_tuple: Any = None, *_: object, **__: object) -> None:
        kind, error, _traceback = self._get_exc_info(exc_tuple)  # type: ignore[no-untyped-call]
        errors.append((kind.__name__, str(error)))  # laying out what is deep takes for ever

    def _showtraceback(self, kind: type, error: object, traceback: object) -> None:
        errors.append((kind.__name__, str(error)))


def drawings(figure: Any) -> tuple[str | None, dict[str, str | None]]:
    """A figure as SVG, and as it is drawn for a narrow page, where it says how: by `narrow()`."""
    if not (again := vars(figure).get("narrow")):
        return drawn(figure), {}
    wide = drawn(figure)
    with import_module("matplotlib").rc_context({"figure.figsize": NARROW_PAGE}):
        return wide, {"narrow": drawn(again())}


def drawn(figure: object) -> str | None:
    """A figure as SVG, without the half that no eye can see: names, blanks, millionths."""
    whole = print_figure(figure, "svg", **PRINTING)
    if whole is None:  # there is nothing in it
        return None
    svg = str(whole)
    # Numbered as they occur: matplotlib's own names are of another order in every process.
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    short = {name: f"p{number}" for number, name in enumerate(used)}
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{short[m[1]]}"' if m[1] in short else "", svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', lambda m: m[1] + short[m[2]], svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r'(?<= )(?:d|x|y|x1|x2|y1|y2|points)="[^"]*"', _shortened, svg)
    svg = re.sub(r"\n +<", "\n<", svg)
    svg = _ungrouped(svg)
    svg = re.sub(r'<path d=[^>]*style="fill: none(?:; opacity: 0)?"/>\n', "", svg)
    svg = re.sub(r'(?:^<path d="[^"]*"(.*)\n)(?:^<path d="[^"]*"\1\n)+', _joined, svg, flags=re.M)
    # A curve whose control point is its end is a straight line, which matplotlib writes for dots.
    svg = re.sub(r"Q (\S+ \S+) \1(?= |\")", r"L \1", svg)
    svg = re.sub(r' d="([^CQ"]*)"', _by_steps, svg)
    return re.sub(r' clip-path="([^"]*)" style="([^"]*)"', r' style="\2; clip-path: \1"', svg)


def _ungrouped(svg: str) -> str:
    """A drawing without the groups that say nothing."""
    kept: list[bool] = []

    def tag(match: re.Match[str]) -> str:
        if match[0].startswith("</"):
            return match[0] if kept.pop() else ""
        if match[0].rstrip().endswith("/>"):
            return ""
        kept.append(not match[0].startswith("<g>"))
        return match[0] if kept[-1] else ""

    return re.sub(r"</?g\b[^>]*>\n?", tag, svg)


def _joined(strokes: re.Match[str]) -> str:
    """Strokes that follow one another and look alike, as one; not where they shine through."""
    if "fill: none" not in strokes[1] or "opacity" in strokes[1]:
        return strokes[0]
    whole = " ".join(re.findall(r' d="([^"]*)"', strokes[0]))
    return f'<path d="{whole}"{strokes[1]}\n'


def _shortened(attribute: re.Match[str]) -> str:
    text = re.sub(
        r"\d+\.\d{3,}", lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), attribute[0]
    )
    return re.sub(r"\s+", " ", text).replace(' "', '"')


def _by_steps(path: re.Match[str]) -> str:
    """Straight lines, each from where the last one ended: half the digits.

    Counted in hundredths, so that no rounding adds up. Lines along an axis have one number.
    """
    x = y = 0
    text = ""
    for stroke in path[1].split("M")[1:]:
        numbers = [round(100 * float(number)) for number in re.findall(r"[\d.-]+", stroke)]
        last = ""
        for point in zip(numbers[::2], numbers[1::2], strict=True):
            across, down = f"{(point[0] - x) / 100:g}", f"{(point[1] - y) / 100:g}"
            x, y = point
            if not last:
                command, step = "m", f"{across} {down}"
            elif "0" in (across, down):
                command, step = ("h", across) if down == "0" else ("v", down)
            else:
                command, step = "l", f"{across} {down}"
            text += (" " if command == last or (last, command) == ("m", "l") else command) + step
            last = command
        if "z" in stroke:
            text += "z"
            x, y = numbers[:2]
    text = re.sub(r"(?<![0-9])0[.]", ".", text).replace(" -", "-")
    text = re.sub(r"([.][0-9]+) (?=[.])", r"\1", text)
    return f' d="{text}"'


class Chapter:
    """One chapter's shell."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        # The inline backend sets its own printer from these in the cell that starts pyplot.
        config.InlineBackend.figure_formats = {"svg"}
        config.InlineBackend.print_figure_kwargs = PRINTING
        self.shell: Any = Shell.instance(
            config=config, displayhook_class=Shown, display_pub_class=Displayed
        )
        self.process = os.getpid()
        self.streams = [Stream("stdout", 1), Stream("stderr", 2)]
        sys.stdout, sys.stderr = self.streams
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115

    def run(self, code: str) -> list[dict[str, Any]]:
        outputs.clear()
        if drawing := sys.modules.get("matplotlib.figure"):
            printer = self.shell.display_formatter.formatters["image/svg+xml"]
            printer.for_type(drawing.Figure, drawings)
        result: Any = self.shell.run_cell(code, store_history=True)
        self.end_if_forked()
        if not errors and not result.success:  # a cell that exits is no traceback to IPython
            errors.append((type(result.error_in_exec).__name__, str(result.error_in_exec)))
        for stream in self.streams:
            stream.collect()
        for output in outputs:
            if output["output_type"] == "stream":
                output["text"] = "".join(output["text"])
        return list(outputs)

    def value(self, expression: str) -> dict[str, Any]:
        """Evaluates an inline expression as Quarto does: with the kernel's `user_expressions`."""
        answer: dict[str, Any] = self.shell.user_expressions({"": expression})[""]
        self.end_if_forked()
        if answer["status"] == "error":
            errors.append((answer["ename"], answer["evalue"]))
        return answer

    def end_if_forked(self) -> None:
        """End this process if it is a fork by a cell, which must not go on as the chapter."""
        if os.getpid() != self.process:
            os._exit(0)


# ---- The files that a chapter reads

# What it opened, and its digest just before; None for what it wrote itself. A module counts by its
# source, wherever Python kept it compiled.
opened: dict[str, str | None] = {}

# How its cells started other processes, of which nobody knows what they read.
started: list[str] = []
COMMAND = "press.command"  # which IPython runs for a line that begins with !
STARTS = re.compile(r"os\.(?:exec|fork|posix_spawn|spawn|system)|pty\.|subprocess\.")


def digest(path: str) -> str:
    """Return the digest of a file's bytes or a folder's names, as `file_digest` of press does."""
    try:
        if os.path.isdir(path):
            names = sorted(set(os.listdir(path)) - {"__pycache__"})
            return hashlib.sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def watch() -> None:
    """Notes each file that this process opens from now on in Python, each folder that it lists,
    each file that it looks for in vain, and each start of another process."""
    not_read = (".ttf", ".ttc", ".otf", ".afm")  # no font
    homes = (sys.prefix, sys.base_prefix, "/proc", "/sys", "/dev")
    skipped = tuple(os.path.realpath(home) + os.sep for home in homes)

    busy: list[object] = []  # with what is noted, for which files are looked for too

    def note(name: object) -> None:
        if busy:
            return
        busy.append(name)
        try:
            path = os.path.realpath(os.fsdecode(name))  # type: ignore[arg-type]
            if path.endswith(".pyc"):
                path = source_from_cache(path)
            note_path(path)
        except (OSError, TypeError, ValueError):
            return
        finally:
            busy.clear()

    def note_path(path: str) -> None:
        if path in opened or path.startswith(skipped) or path.endswith(not_read):
            return
        if os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path):
            opened[path] = digest(path)

    def note_own(name: Any) -> None:
        """Note a file that the chapter itself makes."""
        if not busy:
            busy.append(name)
            with suppress(OSError, TypeError, ValueError):
                opened.setdefault(os.path.realpath(os.fsdecode(name)), None)
            busy.clear()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == COMMAND or STARTS.match(event):
            if event != COMMAND:
                started.append(event)
            for word in words_of(arguments):
                if os.path.isfile(word):
                    note(word)
        elif event in ("os.listdir", "os.scandir"):
            # What imports look through is no matter: modules count by themselves.
            if "importlib" not in sys._getframe(1).f_code.co_filename:
                note("." if arguments[0] is None else arguments[0])
        elif event == "os.mkdir":
            note_own(arguments[0])
        elif event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            flags = arguments[2] if isinstance(arguments[2], int) else 0
            if flags & (os.O_TRUNC | os.O_EXCL):
                note_own(arguments[0])
            elif flags & os.O_ACCMODE != os.O_WRONLY:
                note(arguments[0])

    def looking(look: Any) -> Any:
        @wraps(look)
        def looked(path: Any, *more: Any, **named: Any) -> Any:
            try:
                return look(path, *more, **named)
            except FileNotFoundError:
                if named.get("dir_fd") is None:
                    note(path)
                raise

        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if look in able:
                able.add(looked)
        return looked

    sys.addaudithook(hook)
    os.stat, os.lstat = looking(os.stat), looking(os.lstat)


def words_of(command: tuple[Any, ...]) -> list[str]:
    """Return the words in another process's command that may be names of files."""
    words: list[str] = []
    for part in command[:2]:
        for text in part if isinstance(part, list | tuple) else [part]:
            if isinstance(text, str | bytes):
                words.append(os.fsdecode(text))
                with suppress(ValueError):  # of quotes that are not closed
                    words += shlex.split(words[-1])
    return [part for word in words for part in re.split("[<>=;|&()]", word) if part]


def files_read(root: str, memory: str) -> list[tuple[str, str]]:
    """The digest of each file that the chapter read and each module from outside `root`.

    Not what an installation or `memory` holds, nor the list of fonts that matplotlib keeps.
    """
    homes = [sys.prefix, *sysconfig.get_paths().values(), memory, __file__]
    if drawing := sys.modules.get("matplotlib"):
        homes.append(drawing.get_cachedir())
    installed = tuple(home + os.sep for home in {*homes, *map(os.path.realpath, homes)})
    digests = {path: value for path, value in opened.items() if value}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(installed):
            path = os.path.realpath(file)
            if not path.startswith((os.path.realpath(root) + os.sep, *installed)):
                digests.setdefault(path, digest(path))
    return [
        item for item in sorted(digests.items()) if not (item[0] + os.sep).startswith(installed)
    ]


def _was_read(file: str) -> bool:
    return bool(opened[file]) and os.path.isfile(file)


def files_run_with(root: str) -> list[str]:
    """The project's modules that the chapter imported, and what it opened beside them."""
    home = os.path.realpath(root) + os.sep
    module_files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    project_files = {
        os.path.realpath(file) for file in module_files if file and not file.startswith(sys.prefix)
    }
    project_files = {file for file in project_files if file.startswith(home)}
    folders = {os.path.dirname(file) for file in project_files} - {home.rstrip(os.sep)}
    project_files |= {
        file for file in opened if os.path.dirname(file) in folders and _was_read(file)
    }
    return sorted(file.removeprefix(home) for file in project_files)


# ---- The talk with press


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
MOST_MEMORY = 8 << 30  # bytes that a chapter, and each process that it starts, may hold


def prctl(*arguments: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(*arguments)


def main() -> None:
    """Imports what most chapters do, then waits at its input, a socket, for what press says.

    That is the number of a chapter, with its connection, or by itself to end it.
    """
    # On a new machine matplotlib reports that it lists the fonts: not a matter for the page.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    for name in COMMON:
        with suppress(ImportError):
            import_module(name)
    if shared := sys.argv[1:]:
        sys.path.insert(0, "")
        watch()
        for name in shared:
            with suppress(Exception):  # which a chapter that imports it meets again
                resolve_name(name)
    before = list(started)
    # Searches for cycles took a tenth of a chapter's time: few are left, none in what all share.
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # the parent of what chapters leave behind
    control = socket.socket(fileno=0)
    chapters: dict[bytes, int] = {}
    while True:
        number, descriptors, _, _ = socket.recv_fds(control, 4, 1)
        if not number:  # press has ended
            break
        if not descriptors:
            end(chapters.pop(number))
        elif chapter := os.fork():
            chapters[number] = chapter
            os.close(descriptors[0])
        else:
            started[:] = before  # and not that this process became a chapter's
            run(socket.socket(fileno=descriptors[0]))
        if not chapters:
            end_orphans()
    for chapter in chapters.values():
        end(chapter)
    end_orphans()


def end(chapter: int) -> None:
    for kill in (os.killpg, os.kill):  # it may not have come to have a group yet
        with suppress(ProcessLookupError):
            kill(chapter, signal.SIGKILL)
    os.waitpid(chapter, 0)


def end_orphans() -> None:
    """Ends what chapters have started in groups of their own: once they have ended it is ours."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(OSError):
        while pids := children.read_text("ascii").split():
            for pid in map(int, pids):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def run(connection: socket.socket) -> NoReturn:
    os.setpgid(0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    connection.set_inheritable(False)  # to the programs that a chapter starts
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    answers = connection.makefile("w", encoding="utf-8")

    def answer(value: object) -> None:
        answers.write(json.dumps(value, default=repr) + "\n")
        answers.flush()

    request = json.loads(connection.makefile("r", encoding="utf-8").readline())
    os.chdir(request["folder"])
    if not sys.argv[1:]:
        sys.path.insert(0, "")
    os.environ["IPYTHONDIR"] = request["memory"] + "/ipython"  # none of the author's settings
    chapter = Chapter()
    if not sys.argv[1:]:
        watch()
    answer("ready")
    for piece in request["pieces"]:
        if "value" in piece:
            answer({"output": chapter.value(piece["value"]), "errors": errors})
        else:
            answer({"output": chapter.run(piece["code"]), "errors": errors})
        if errors:
            break
    else:
        root = request["root"]
        files = [files_read(root, request["memory"]), files_run_with(root), bool(started)]
        answer({"output": files, "errors": []})
    os._exit(0)  # no thread or exit handler of a chapter can hold press up


if __name__ == "__main__":
    main()
