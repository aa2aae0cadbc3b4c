"""Files: read as text or refused in a sentence, and written in full or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
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


def _umask() -> int:
    """What a new file of this process may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
