"""What tests of every part share: the browser, and how many examples a property is tried on.

A property is tried on few examples where one waits for them; `make test-slow` tries it on many,
with `--hypothesis-profile=long`.

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No worker is left with the longest test when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
