"""Files: read as text or refused in a sentence, and written in full or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from calc.core.errors import InputError, abbreviated


def read_text(path: Path | str) -> str:
    """The text of a file; what cannot be read as one is told in a sentence."""
    name = path if str(path).isprintable() else abbreviated(path)
    try:
        return Path(path).read_text(encoding="utf-8")
    except TypeError:
        raise InputError(f"a file needs a path; got {abbreviated(path)}") from None
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: is not UTF-8 text") from None
    except ValueError as error:  # a path that no system takes
        raise InputError(f"{name}: cannot be read: {error}") from None


def writable(path: Path | str) -> Path:
    """A path that a file can be put at; a folder or a device, as /dev/null, is never replaced."""
    import tempfile  # here, since reading a file, as a first answer does, needs none of it

    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {target}: it is there, and is no file")
        if not target.parent.is_dir():
            raise InputError(f"cannot write {target}: there is no folder {target.parent}")
        with tempfile.NamedTemporaryFile(dir=target.parent):
            return target
    except TypeError:
        raise InputError(f"a file needs a path; got {abbreviated(path)}") from None
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


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
    """What a new file of this process may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
