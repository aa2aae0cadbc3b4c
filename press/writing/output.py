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
        about = {"project": self._project(), "root": str(self.root), "pdf": pdf}
        try:
            self._mark(about)
            if only:
                about["pdf"] = last["pdf"] if only == "html" else pdf
                self._keep([f for f in last["files"] if (f == last["pdf"]) == (only == "html")])
            yield self.new
            self._mark(about | {"files": sorted(_files_below(self.new) - {MARKER})})
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
        elif foreign := sorted(_foreign(folder, marker)):
            first = f"{name}/{foreign[0]}"
            were = f"and {len(foreign) - 1} more were" if foreign[1:] else "was"
            self._stop(f"{first} {were} not made by press, {WHOLE}: move what is yours away.")

    def _stop(self, sentence: str) -> None:
        stop(sentence, "_quarto.yml" if self.line else "", self.line)

    def _marker(self, folder: Path) -> dict[str, Any] | None:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            marker: dict[str, Any] = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            if {"project", "root", "pdf"} <= marker.keys():
                return marker
        return None

    def _mark(self, about: dict[str, Any]) -> None:
        (self.new / MARKER).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    def _is_ours(self, marker: dict[str, Any] | None) -> bool:
        """Wherever the project has gone since; and at the same place without what it remembers."""
        return bool(marker) and (
            marker["project"] == self._project() or marker["root"] == str(self.root)
        )

    def _project(self) -> str:
        """What tells this project from others."""
        file = self.root / FOLDER / "project"
        if not file.is_file():
            file.write_text(secrets.token_hex(16), encoding="ascii")
        return file.read_text(encoding="ascii", errors="replace")

    def _keep(self, files: list[str]) -> None:
        for file in files:
            kept = self.new / file
            kept.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # somebody has removed it
                try:
                    os.link(self.folder / file, kept)
                except PermissionError:  # a file system without such links
                    shutil.copy2(self.folder / file, kept)


def _files_below(folder: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(here, name), folder)
        for here, _, names in os.walk(folder)
        for name in names
    }


def _foreign(folder: Path, marker: dict[str, Any] | None) -> Iterator[str]:
    """What lies in a folder that its marker does not list; a folder of such files as one."""
    if marker is None or "files" not in marker:  # empty, or a build was killed that made it
        return
    known = {*marker["files"], MARKER}
    homes = {str(home) for file in known for home in Path(file).parents}
    for here, folders, names in os.walk(folder):
        place = os.path.relpath(here, folder)
        inside = {name: os.path.normpath(os.path.join(place, name)) for name in folders + names}
        yield from (inside[name] for name in folders if inside[name] not in homes)
        yield from (inside[name] for name in names if inside[name] not in known)
        folders[:] = [name for name in folders if inside[name] in homes]


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
