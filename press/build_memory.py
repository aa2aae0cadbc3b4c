"""Memory of builds: what stages made, kept in files for the next under the digest of what it was
made from."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def recall(path: Path) -> list[Any]:
    """Return the value kept in this file, in a list; an empty one if it is gone or altered."""
    try:
        seal, text = path.read_text(encoding="utf-8").split("\n", 1)
    except (OSError, ValueError):
        return []
    return [json.loads(text)] if seal == _seal(path, text) else []


def keep(path: Path, value: object) -> None:
    """Writes what JSON holds to a file, or nothing at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value)
    partial = path.with_suffix(".partial")
    partial.write_text(f"{_seal(path, text)}\n{text}", encoding="utf-8")
    partial.replace(path)


def _seal(path: Path, text: str) -> str:
    return hashlib.sha256(f"{path.name}\n{text}".encode()).hexdigest()


class Memory:
    """Holds anything that JSON does, but for the names in dictionaries, which are text again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used: dict[str, set[str]] = {}  # the names of files, by stage

    def _path(self, stage: str, key: str) -> Path:
        name = f"{key}.json"
        self.used.setdefault(stage, set()).add(name)
        return self.folder / stage / name

    def recall(self, stage: str, key: str) -> list[Any]:
        """Return what the stage made of the same before, in a list; an empty one if unknown."""
        return recall(self._path(stage, key))

    def keep(self, stage: str, key: str, value: object) -> None:
        keep(self._path(stage, key), value)

    def forget_unused(self) -> None:
        """Delete what was not used by the stages that took part; other formats keep theirs."""
        for stage, names in self.used.items():
            folder = self.folder / stage  # not there where each file changed while it was read
            for name in set(os.listdir(folder) if folder.is_dir() else ()) - names:
                (folder / name).unlink()
