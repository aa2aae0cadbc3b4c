"""Settings that tests share: the browser, and how many examples a property is tried on.

A property is tried on few examples where one waits for them; `make test-nightly` tries it on many,
with `--hypothesis-profile=long`, of which `tests/draws.py` makes the share of other draws.

Each worker computes on one thread: there is one for each core, and threads of linear algebra that
wait for one another beside them take several times the processor time of what they compute.
"""

import os

import pytest
from hypothesis import settings

from tests.in_browser import browser, context

__all__ = ["browser", "context"]

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy or torch is imported, later

SECONDS = 5  # for one example: a slow machine is no failure, a hang still is one
settings.register_profile("short", deadline=1000 * SECONDS, max_examples=15)
settings.register_profile("long", deadline=1000 * SECONDS, max_examples=100)
settings.load_profile("short")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not ask for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that read the rendered book as slow, and begin with the longest, so that no
    worker is left with one of these when the others are done."""
    for item in items:
        if reads_the_book(item):
            item.add_marker("slow")
    items.sort(key=turn)


def reads_the_book(item: pytest.Item) -> bool:
    return "book" in getattr(item, "fixturenames", ())


def turn(item: pytest.Item) -> int:
    """The file that renders the book is first, since another worker computes the derivations
    meanwhile; whoever else reads its pages comes when they are there."""
    group = next((mark.args[0] for mark in item.iter_markers("xdist_group")), "")
    if group == "pages":
        return 0
    if reads_the_book(item):
        return 2
    if group == "derivations":
        return 1
    return 3 if item.get_closest_marker("first") else 4
