"""Tiny books for the tests of press, written where a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from press.build import end
from tests.press.tiny_book import SETTINGS, Write, copy_of_everything


@pytest.fixture(scope="session", autouse=True)
def _what_serves_ends() -> Iterator[None]:
    """Books that are rendered in this process share what runs their cells and reads their text."""
    yield
    end()


@pytest.fixture
def write_book(tmp_path: Path) -> Write:
    """Writes a book: `index.qmd`, further files by name, and `_quarto.yml` if it is not given."""

    def write(index: str, files: dict[str, str] | None = None, settings: str = SETTINGS) -> Path:
        root = tmp_path / "book"
        for name, text in {"_quarto.yml": settings, "index.qmd": index, **(files or {})}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    """A copy of the book that shows every construct, not yet rendered."""
    return copy_of_everything(tmp_path)
