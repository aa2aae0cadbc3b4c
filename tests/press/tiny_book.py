"""A tiny book's settings, a copy of the book of everything, and press as an author runs it."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from press.build import render
from press.problems import BookError

REPOSITORY = Path(__file__).parents[2]
EVERYTHING = Path(__file__).parent / "books" / "everything"

SETTINGS = """\
project:
  type: book
book:
  title: A tiny book
  author: A. Tester
  chapters:
    - index.qmd
format:
  html: default
  typst: default
"""

WITHOUT_PDF = SETTINGS.replace("  typst: default\n", "")

Write = Callable[..., Path]


def copy_of_everything(folder: Path) -> Path:
    hidden = shutil.ignore_patterns("_book", ".*")
    return Path(shutil.copytree(EVERYTHING, folder / "everything", ignore=hidden))


def refusal(root: Path) -> list[str]:
    """The sentences with which press refuses a book, of which it must then have written nothing."""
    with pytest.raises(BookError) as caught:
        render(root)
    assert not (root / "_book").exists()
    assert not list(root.glob("._book*"))
    return [str(problem) for problem in caught.value.problems]


def printed(root: Path) -> list[str]:
    """The words of each page of its PDF."""
    pages = PdfReader(root / "_book" / "A-tiny-book.pdf").pages
    return [" ".join(page.extract_text().split()) for page in pages]


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def search_entries(site: Path) -> list[dict[str, str]]:
    """The sections that the search box looks through."""
    entries: list[dict[str, str]] = search_index(site)["entries"]
    return entries


def search_index(site: Path) -> dict[str, Any]:
    """Return the index of the search box, unpacked as a page does it."""
    text = (site / "assets" / "search-index.js").read_text()
    packed = json.loads(text.removeprefix("window.searchIndex=").rstrip().rstrip(";"))
    index: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return index


def press(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs press as an author does, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "press", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def started(*arguments: str | Path, **streams: int) -> Iterator[subprocess.Popen[str]]:
    """Press while it works, in a process that ends with the test.

    Ctrl+C reaches it even where this process ignores it, as what a shell runs behind it does.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "press", *map(str, arguments)],
        cwd=REPOSITORY,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        **streams,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
