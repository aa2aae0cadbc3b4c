"""Files: read as text or as JSON, or refused in a sentence; written in full or not at all."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from calc.core.errors import InputError, abbreviated

LARGEST_MB = 256
"""Megabytes that a person's file may have; the longest traces and logs that people publish have
fewer."""
DEEPEST = 50
"""Levels of objects and lists in JSON: no program's results have a tenth of them."""
CUT = re.compile(r"\.|[eE][+-]?|u[\da-fA-F]{0,4}|I[a-z]*")
"""What is left of a number, of an escape or of Infinity that a JSON text breaks off in."""


def opened(path: Path | str, most: float = LARGEST_MB) -> BinaryIO:
    """Return a file to read: a regular one, of so many MB at most.

    What waits for somebody who writes, as a pipe does, and what never ends, as /dev/zero does, is
    refused before it is read. All files that a person names are opened here.
    """
    name = _named(path)
    try:
        file = open(os.fspath(path), "rb", opener=_without_waiting)  # noqa: SIM115
    except TypeError:
        raise InputError(f"a file needs a path; got {abbreviated(path)}") from None
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a path that no system takes
        raise InputError(f"{name}: cannot be read: {error}") from None
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_size <= most * 1e6:
        return file
    file.close()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{name}: is a pipe or a device; a file is needed")
    raise InputError(f"{name}: is too large; a file may have {most:g} MB")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_bytes(path: Path | str) -> bytes:
    """Return what a file holds, which may still grow while it is read."""
    with opened(path) as file:
        try:
            held = file.read(int(LARGEST_MB * 1e6) + 1)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if len(held) > LARGEST_MB * 1e6:
        raise InputError(f"{path}: is too large; a file may have {LARGEST_MB} MB")
    return held


def read_text(path: Path | str) -> str:
    """Return the text of a file, without the mark that some editors begin it with."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _named(path: Path | str) -> Path | str:
    """Return a path as a sentence names it."""
    return path if str(path).isprintable() and len(str(path)) < 1000 else abbreviated(path)


def parse_json(text: str, source: object, finite: bool = True, line: int = 1) -> Any:
    """Return what a JSON text holds, of which `source` and `line` say where it stands.

    Refused are keys that are there twice, of which JSON itself would keep the last, numbers that
    are none or, where all must be `finite`, beyond all, and what is nested deeper than any result.
    """

    def refused(constant: str) -> float:
        if not finite:  # as a configuration has, of what is not limited
            return float(constant)
        raise InputError(f"{source}: {constant[:20]} is no number of JSON, or is too large")

    def number(kind: type, digits: str) -> Any:
        too_large = len(digits) > 400 or not math.isfinite(float(digits))
        return refused(digits) if too_large else kind(digits)

    try:
        value = json.loads(
            text,
            object_pairs_hook=partial(_once_each, source),
            parse_constant=refused,
            parse_int=partial(number, int),
            parse_float=partial(number, float),
        )
    except RecursionError:
        raise InputError(f"{source}: is nested too deeply") from None
    except json.JSONDecodeError as error:
        if text.strip() and _is_cut_off(error):
            last = line + text.rstrip().count("\n")
            raise InputError(f"{source}: ends in the middle of line {last}") from None
        where = f"line {line + error.lineno - 1} column {error.colno}"
        raise InputError(f"{source}: is not valid JSON: {error.msg}: {where}") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
    if level:
        raise InputError(f"{source}: is nested too deeply")
    return value


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Return whether a JSON text is right as far as it goes, and ends too early."""
    rest = error.doc[error.pos :].strip()
    begun = any(word.startswith(rest) for word in ("true", "false", "null", "NaN", "-Infinity"))
    return begun or bool(CUT.fullmatch(rest)) or error.msg.startswith("Unterminated string")


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _once_each(source: object, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ."""
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"{source}: {abbreviated(twice)[1:-1]} is there {names.count(twice)} times"
        )
    return table


def writable(path: Path | str) -> Path:
    """A path that a file can be put at; a folder or a device, as /dev/null, is never replaced."""
    import tempfile  # here, since reading a file, as a first answer does, needs none of it

    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {_named(target)}: it is there, and is no file")
        if not target.parent.is_dir():
            folder = _named(target.parent)
            raise InputError(f"cannot write {_named(target)}: there is no folder {folder}")
        with tempfile.NamedTemporaryFile(dir=target.parent):
            return target
    except TypeError:
        raise InputError(f"a file needs a path; got {abbreviated(path)}") from None
    except OSError as error:
        raise InputError(f"cannot write {_named(path)}: {error.strerror or error}") from None


def write_atomically(target: Path, write: Callable[[str], object]) -> None:
    """Let `write` fill a file beside the target, and then put it in the target's place."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        try:
            write(name)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None


def write_text(target: Path, text: str) -> None:
    """Put a file of this text in the target's place, whole or not at all."""
    write_atomically(target, lambda name: Path(name).write_text(text, encoding="utf-8"))


def append_line(path: Path, text: str) -> None:
    """Add a line to a file: whole, or not at all where the disk takes only a part of it."""
    line = f"{text}\n".encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            before = os.fstat(handle).st_size
            try:
                while line:
                    line = line[os.write(handle, line) :]
            except OSError:
                os.ftruncate(handle, before)
                raise
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep a file to this caller until the end, or refuse where another one has it.

    A lock ends with its process, however that ends. Where the system or the disk has none, nothing
    is locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{path} is being written by another sweep: wait for it, or give another file"
            ) from None
        except OSError:
            pass
        yield


def _umask() -> int:
    """Return the permissions that this process withholds from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
