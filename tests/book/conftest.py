from pathlib import Path

import pytest

from tests.book.rendered import render_copy


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `_book` of a fresh render."""
    return render_copy(tmp_path_factory.mktemp("book"))
