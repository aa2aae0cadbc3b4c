"""What a build made, kept in files for the next one under the digest of what it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def keep(path: Path, value: object) -> None:
    """Writes what JSON holds to a file, or nothing at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(path)


class Memory:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.used: set[Path] = set()

    def remember(self, make: Callable[[], Any], *made_from: object) -> Any:
        """What `make` gives, or gave of the same before: anything that JSON holds."""
        kept = self.folder / f"{digest(*made_from)}.json"
        self.used.add(kept)
        try:
            (value,) = json.loads(kept.read_text(encoding="utf-8"))
        except (OSError, ValueError, TypeError):  # not there, or torn: it is made again
            value = make()
            keep(kept, [value])
        return value

    def forget_unused(self) -> None:
        for kept in set(self.folder.iterdir()) - self.used:
            kept.unlink()
