"""The book's pages before judges that are not ours: Lighthouse, and a second browser.

Lighthouse's score for speed is no test, since the machine's load is in it: `python -m
benchmarks.page_speed` prints it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.page_speed import PAGES
from tests.book.rendered import rendered_book
from tests.npm import packages

PERFECT = {"accessibility": 100, "best-practices": 100, "seo": 100}

pytestmark = [pytest.mark.xdist_group("live figures"), pytest.mark.nightly]  # npm, and a browser


def judged(judge: Callable[[], Any]) -> Any:
    try:
        return judge()
    except packages.MissingError as missing:
        if os.environ.get("BROWSER_REQUIRED") == "1":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def test_lighthouse_finds_nothing() -> None:
    site = rendered_book()
    verdicts = judged(lambda: packages.lighthouse(site, PAGES, ",".join(PERFECT)))
    assert verdicts.keys() == {*PAGES}
    for page, verdict in verdicts.items():
        assert verdict["scores"] == PERFECT, (page, verdict["failed"])


def test_a_reader_with_firefox() -> None:
    site = rendered_book().as_uri()
    firefox = judged(lambda: packages.needed("firefox-esr", "try the pages in Firefox"))
    seen = judged(lambda: packages.run("firefox.mjs", firefox, site))
    assert seen["complaints"] == seen["wider"] == seen["flat"] == []
    assert "989" in seen["card"]
    assert "datasheet" in seen["card"]
    assert "3.35\N{NO-BREAK SPACE}TB/s" in seen["hit"]
    assert seen["answer"] == "1365 FLOP/byte"  # of a product of 4096
