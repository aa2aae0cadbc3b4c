"""The folder that a build replaces as a whole: one that press itself made, with what is in it.

The new book is made beside the old one, and the swap is two renames. A build that is killed between
them leaves the last good book beside its place, under a hidden name; the next build puts it back
first of all. A file in each of these folders says which project press made it for and what press
wrote into it; what else lies there is somebody's, is named, and stays.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from press.book_files import FOLDER, room_for
from press.problems import stop

MARKER = ".press.json"
PARTIAL = f"{MARKER}.partial"
FORMATS = {".pdf": "typst", ".epub": "epub"}  # what a file is of; any other is the site's


class Output:
    def __init__(self, root: Path, folder: Path, line: int = 0) -> None:
        self.root = root
        self.folder = folder
        self.place = root / FOLDER / "place"
        self.line = line  # of `_quarto.yml`, 0 if it does not name the folder
        self.new, self.old = (folder.with_name(f".{folder.name}.{w}") for w in ("new", "old"))

    def restore(self) -> None:
        """Undoes the first half of a swap that a killed build left without the second, and removes
        what it was making."""
        if not os.path.lexists(self.folder) and self._is_ours(self._marker(self.old)):
            self.old.rename(self.folder)
        for folder in (self.new, self.old):
            marker = self._marker(folder)
            if not self._is_anothers(marker) and not self._foreign(folder, marker):
                self._remove(folder)

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

        Where the book is made in one format only, what the others gave stays in it.
        """
        self.check()
        self._remove(self.new)
        self._remove(self.old)
        self.new.mkdir(parents=True)
        last = self._marker(self.folder) or {"files": [], "pdf": ""}
        about = {"project": str(self.root), "pdf": last["pdf"] if only in ("html", "epub") else pdf}
        try:
            self._mark(about | {"files": []})
            for file in _entries(self.folder) & set(last["files"]) if only else []:
                if (
                    FORMATS.get(Path(file).suffix, "html") != only
                    and (self.folder / file).is_file()
                ):
                    self._keep(file)
            yield self.new
            self._mark(about | {"files": sorted(_entries(self.new) - {MARKER})})
            self.check()  # again: somebody may have put something there meanwhile
            if self.folder.exists():
                self.folder.rename(self.old)
            self.new.rename(self.folder)
        finally:
            self._remove(self.new)
        self._remove(self.old)
        self.place.write_text(str(self.root), encoding="utf-8")

    def _remove(self, folder: Path) -> None:
        """Move a folder to press's own, and remove it there.

        So what an interrupted build still writes finds no folder, and one that is killed meanwhile
        leaves nothing that a later one does not know.
        """
        removed = self.root / FOLDER / "removed"
        shutil.rmtree(removed, ignore_errors=True)
        if folder.exists():
            removed.parent.mkdir(exist_ok=True)
            folder.rename(removed)
            shutil.rmtree(removed)

    def _check(self, folder: Path) -> None:
        marker = self._marker(folder)
        name = folder.relative_to(self.root).as_posix()
        if marker and self._is_anothers(marker):
            self._stop(f"press made {name} for the project in {marker['project']}: move it away.")
        if foreign := self._foreign(folder, marker):
            first = os.path.normpath(os.path.join(name, foreign[0]))
            were = f"and {len(foreign) - 1} more were" if foreign[1:] else "was"
            what = "not made by press, which replaces its output folder whole"
            how = "move what is yours away, or name another folder with `output-dir` in _quarto.yml"
            self._stop(f"{first} {were} {what}: {how}.")

    def _foreign(self, folder: Path, marker: dict[str, Any] | None) -> list[str]:
        """Return the entries of a folder that press has not made; "." where that is all of it."""
        if not os.path.lexists(folder):
            return []
        if folder.is_symlink() or not folder.is_dir():
            return ["."]
        entries = _entries(folder) - {MARKER, PARTIAL}
        if marker is None:
            return ["."] if entries else []
        if folder == self.new:  # which a build was making when it was killed
            return []
        entries_left = entries - set(marker["files"])
        return sorted(entry for entry in entries_left if os.path.dirname(entry) not in entries_left)

    def _stop(self, sentence: str) -> None:
        stop(sentence, "_quarto.yml" if self.line else "", self.line)

    def _marker(self, folder: Path) -> dict[str, Any] | None:
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            marker: dict[str, Any] = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            if {"project", "pdf"} <= marker.keys():
                return marker | {"files": [str(file) for file in marker["files"]]}
        return None

    def _mark(self, about: dict[str, Any]) -> None:
        partial = self.new / PARTIAL
        partial.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.new / MARKER)

    def _is_ours(self, marker: dict[str, Any] | None) -> bool:
        """A project goes by its place, now or when press rendered it last."""
        places = [str(self.root)]
        with suppress(OSError, ValueError):
            places.append(self.place.read_text(encoding="utf-8"))
        return marker is not None and marker["project"] in places

    def _is_anothers(self, marker: dict[str, Any] | None) -> bool:
        """Return whether it is the mark of another project."""
        return marker is not None and not self._is_ours(marker)

    def _keep(self, file: str) -> None:
        kept = room_for(self.new, file)
        try:
            os.link(self.folder / file, kept)
        except PermissionError:  # a file system without such links
            shutil.copy2(self.folder / file, kept)


def _entries(folder: Path) -> set[str]:
    """Return all files and folders in a folder, by their paths in it."""
    return {
        os.path.relpath(os.path.join(here, name), folder)
        for here, folders, names in os.walk(folder)
        for name in folders + names
    }
