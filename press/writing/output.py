"""The folder that a build replaces as a whole: one that press itself made, with what is in it.

The new book is made beside the old one, and the swap is two renames. A build that is killed between
them leaves the last good book beside its place, under a hidden name; the next build puts it back
first of all. A file in each of these folders says which project press made it for and what press
wrote into it; what else lies there is somebody's, is named, and stays.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from press.errors import stop
from press.files import FOLDER

MARKER = ".press.json"
WHOLE = "which replaces its output folder whole"


class Output:
    def __init__(self, root: Path, folder: Path, line: int = 0) -> None:
        self.root = root
        self.folder = folder
        self.line = line  # of `_quarto.yml`, 0 if it does not name the folder
        self.new, self.old = (folder.with_name(f".{folder.name}.{w}") for w in ("new", "old"))

    def restore(self) -> None:
        """Undoes the first half of a swap that a killed build left without the second."""
        if not os.path.lexists(self.folder) and self._is_ours(self._marker(self.old)):
            self.old.rename(self.folder)

    def check(self) -> None:
        """Stops if anything would be replaced that press did not make."""
        for folder in (self.folder, self.new, self.old):
            self._check(folder)
        for folder in (self.folder, self.folder.parent):
            if folder.exists() and not os.access(folder, os.W_OK):
                stop(f"press cannot write into {folder}: it is read-only.")

    @contextmanager
    def replaced(self, pdf: str, only: str | None) -> Iterator[Path]:
        """An empty folder that takes the place of the last one, unless making its contents fails.

        Where the book is made in one format only, what the other one gave stays in it.
        """
        self.check()
        _remove(self.new)
        _remove(self.old)
        self.new.mkdir(parents=True)
        last = self._marker(self.folder) or {"files": [], "pdf": ""}
        about = {"project": self._project(), "root": str(self.root)}
        about["pdf"] = last["pdf"] if only == "html" else pdf
        try:
            self._mark(about | {"files": []})
            for file in _entries(self.folder) & set(last["files"]) if only else []:
                if (file == last["pdf"]) == (only == "html") and (self.folder / file).is_file():
                    self._keep(file)
            yield self.new
            self._mark(about | {"files": sorted(_entries(self.new) - {MARKER})})
            self.check()  # again: somebody may have put something there meanwhile
            if self.folder.exists():
                self.folder.rename(self.old)
            self.new.rename(self.folder)
        finally:
            _remove(self.new)
        _remove(self.old)

    def _check(self, folder: Path) -> None:
        if not os.path.lexists(folder):
            return
        marker = self._marker(folder)
        name = folder.relative_to(self.root).as_posix()
        if folder.is_symlink() or not folder.is_dir() or (marker is None and os.listdir(folder)):
            other = "name another folder with `output-dir` in _quarto.yml, or move this one away"
            self._stop(f"{name} was not made by press, {WHOLE}: {other}.")
        elif marker and not self._is_ours(marker):
            self._stop(f"press made {name} for the project in {marker['root']}: move it away.")
        elif marker and folder != self.new:
            foreign = _entries(folder) - {*marker["files"], MARKER}
            self._stop_at(name, sorted(e for e in foreign if os.path.dirname(e) not in foreign))

    def _stop_at(self, folder: str, foreign: list[str]) -> None:
        if foreign:
            were = f"and {len(foreign) - 1} more were" if foreign[1:] else "was"
            sentence = f"{folder}/{foreign[0]} {were} not made by press, {WHOLE}"
            self._stop(f"{sentence}: move what is yours away.")

    def _stop(self, sentence: str) -> None:
        stop(sentence, "_quarto.yml" if self.line else "", self.line)

    def _marker(self, folder: Path) -> dict[str, Any] | None:
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            marker: dict[str, Any] = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            if {"project", "root", "pdf"} <= marker.keys():
                return marker | {"files": [str(file) for file in marker["files"]]}
        return None

    def _mark(self, about: dict[str, Any]) -> None:
        (self.new / MARKER).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def _is_ours(self, marker: dict[str, Any] | None) -> bool:
        """Wherever the project has gone since; and at the same place without what it remembers."""
        own = {"project": self._project(), "root": str(self.root)}
        return marker is not None and any(marker[key] == value for key, value in own.items())

    def _project(self) -> str:
        """What tells this project from others."""
        file = self.root / FOLDER / "project"
        if not file.is_file():
            file.write_text(secrets.token_hex(16), encoding="ascii")
        return file.read_text(encoding="ascii", errors="replace")

    def _keep(self, file: str) -> None:
        kept = self.new / file
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self.folder / file, kept)
        except PermissionError:  # a file system without such links
            shutil.copy2(self.folder / file, kept)


def _entries(folder: Path) -> set[str]:
    """All files and folders in a folder, by their paths in it."""
    return {
        os.path.relpath(os.path.join(here, name), folder)
        for here, folders, names in os.walk(folder)
        for name in folders + names
    }


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
