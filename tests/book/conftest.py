from pathlib import Path

import pytest

from tests.book.rendered import rendered_book


@pytest.fixture(scope="session")
def book(request: pytest.FixtureRequest) -> Path:
    """The `_book` of today's sources; its PDF is of today's only where a test of this run reads it.

    All workers ask for the same, so that none replaces the folder that another reads.
    """
    printed = any("pdf" in getattr(item, "fixturenames", ()) for item in request.session.items)
    return rendered_book(*([] if printed else ["--to", "html"]))


@pytest.fixture(scope="session")
def pdf(book: Path) -> Path:
    (path,) = book.glob("*.pdf")
    return path
