"""The rendered book in Chromium, for the benchmarks of what a reader waits for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

BOOK = Path(__file__).parents[1] / "_book"


@contextmanager
def chromium(benchmark: str, needed: Path = BOOK) -> Iterator[Browser]:
    """The browser; a sentence instead where it, or what the benchmark reads, is not there."""
    executable = shutil.which("chromium")
    if executable is None or not needed.exists():
        sys.exit(
            f"{benchmark} needs `chromium` on PATH and the book in _book; `make book` renders it"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
