from pathlib import Path

import pytest

from tests.book.rendered import rendered_book


@pytest.fixture(scope="session")
def book() -> Path:
    """The `_book` of today's sources."""
    return rendered_book()
