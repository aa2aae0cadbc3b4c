"""Tiny books for the tests of press, written where a test wants them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from press.build import end
from tests.press.tiny_book import SETTINGS, Write, copy_of, rendered


@pytest.fixture(scope="session", autouse=True)
def _what_serves_ends() -> Iterator[None]:
    """Books that are rendered in this process share what runs their cells and reads their text."""
    yield
    end()


@pytest.fixture
def write_book(tmp_path: Path) -> Write:
    """Writes a book: `index.qmd`, further files by name, and `_quarto.yml` if it is not given.

    A further `.qmd` that the settings do not name is a chapter too.
    """

    def write(index: str, files: dict[str, str] | None = None, settings: str = SETTINGS) -> Path:
        root, files = tmp_path / "book", files or {}
        chapters = [name for name in files if name.endswith(".qmd") and name not in settings]
        listed = "".join(f"    - {name}\n" for name in ("index.qmd", *chapters))
        settings = settings.replace("    - index.qmd\n", listed)
        for name, text in {"_quarto.yml": settings, "index.qmd": index, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    """A copy of the book that shows every construct, not yet rendered."""
    return copy_of("everything", tmp_path)


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the book that is looked at in a browser for its tables and its cards."""
    return rendered(copy_of("reader", tmp_path_factory.mktemp("reader"))) / "_book"
