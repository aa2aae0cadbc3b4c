from pathlib import Path

import pytest

from tests.book.rendered import rendered_book


@pytest.fixture(scope="session")
def book() -> Path:
    """The `_book` of today's sources, whose PDF may be of yesterday's, or not be there."""
    return rendered_book("--to", "html")


@pytest.fixture(scope="session")
def pdf() -> Path:
    """The PDF of today's sources, beside the pages of the whole `_book`."""
    (path,) = rendered_book().glob("*.pdf")
    return path
