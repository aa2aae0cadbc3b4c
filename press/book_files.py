"""The files of a book and of press, each with its digest."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from press.problems import stop

FOLDER = ".press-cache"  # what press remembers of a book, in the book's folder
PRESS = Path(__file__).parent
THEME = PRESS / "theme"
# Of the PDF, and of figures that want to look like its text.
FONTS = PRESS.parent / "figures" / "fonts"


def text_of(path: Path, name: str) -> str:
    """Return the text of a file; of one that holds no text the line is told where it ends."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        stop("this file is not UTF-8 text.", name, line)


def room_for(folder: Path, name: str | Path) -> Path:
    """Make the folders of a file within a folder, and return its path.

    Never the folder itself: one that an interrupt has removed stays away, whoever still writes.
    """
    path = folder / name
    for around in reversed(Path(name).parents):
        if around.parts:
            (folder / around).mkdir(exist_ok=True)
    return path


def copy_folder(source: Path, target: Path) -> None:
    """Copy a folder with all in it to a place whose own folder is there."""
    target.mkdir()
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_folder(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)


def file_digest(path: str | Path) -> str:
    """Return the digest of a file's bytes or of the names in a folder."""
    try:
        if os.path.isdir(path):
            names = sorted(set(os.listdir(path)) - {"__pycache__"})
            return hashlib.sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()
        if os.path.isfile(path):  # a pipe would keep press waiting, a device never end
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        pass
    return "unreadable"


def files_below(root: Path, output: Path | None = None) -> dict[str, str]:
    """The digest of each file of a folder, but for what is hidden, rendered, installed or, by a
    link, of another folder."""
    return {os.path.relpath(path, root): file_digest(path) for path in paths_below(root, output)}


def paths_below(root: Path, output: Path | None = None) -> Iterator[str]:
    seen: set[str] = set()
    home = os.path.realpath(root)
    for here, folders, names in os.walk(root, followlinks=True):
        real_path = os.path.realpath(here)
        if real_path in seen or os.path.commonpath([home, real_path]) != home:
            folders.clear()
            continue
        seen.add(real_path)
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".")
            and name != "__pycache__"
            and Path(here, name) != output
            and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
        ]
        for name in sorted(names):
            if not name.startswith("."):
                yield os.path.join(here, name)


def unchanged(files: list[tuple[str, str]]) -> bool:
    """Return whether each file has the digest that it had."""
    return all(file_digest(name) == digest for name, digest in files)
