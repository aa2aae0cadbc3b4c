"""The entries of `tests/published.toml`, by their names: each published number or table."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.book.rendered import REPOSITORY

ENTRIES: dict[str, dict[str, Any]] = {
    name: entry
    for chapter in tomllib.loads(
        (REPOSITORY / "tests" / "published.toml").read_text(encoding="utf-8")
    ).values()
    for name, entry in chapter.items()
}
