"""A tiny book's settings, copies of sample books, and press as an author runs it."""

from __future__ import annotations

import base64
import gzip
import json
import re
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
from tests.page_texts import page_texts

REPOSITORY = Path(__file__).parents[2]
BOOKS = Path(__file__).parent / "books"

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
IN_PROJECT = SETTINGS.replace("type: book", "type: book\n  execute-dir: project")
IN_TIME = SETTINGS + "execute:\n  timeout: 1.5\n"

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c63000100000500010d0a2db40000000049454e44ae426082"
)

Write = Callable[..., Path]


def copy_of(book: str, folder: Path) -> Path:
    hidden = shutil.ignore_patterns("_book", ".*")
    return Path(shutil.copytree(BOOKS / book, folder / book, ignore=hidden))


def cell(code: str, *options: str) -> str:
    """A cell whose code the page does not show."""
    return "\n".join(
        ["```{python}", "#| echo: false", *(f"#| {each}" for each in options), code, "```\n"]
    )


def in_format(form: str, text: str) -> str:
    return f'::: {{.content-visible when-format="{form}"}}\n{text}\n:::\n'


def rendered(root: Path, to: str | None = None) -> Path:
    render(root, to)
    return root


def refusals(root: Path, to: str | None = None) -> list[str]:
    """The sentences with which press refuses a book."""
    with pytest.raises(BookError) as caught:
        render(root, to)
    return [str(problem) for problem in caught.value.problems]


def refusal(root: Path, to: str | None = None) -> list[str]:
    """The sentences with which press refuses a book, of which it must then have written nothing."""
    sentences = refusals(root, to)
    assert not list(root.glob("*_book*"))
    return sentences


def page_of(root: Path, name: str = "index") -> str:
    return (root / "_book" / f"{name}.html").read_text(encoding="utf-8")


def said(root: Path, name: str = "index") -> list[str]:
    """The lines of the text of a page."""
    return page_texts(root / "_book")[f"{name}.html"].split("\n")


def pdf_of(root: Path) -> PdfReader:
    return PdfReader(root / "_book" / "A-tiny-book.pdf")


def printed(root: Path) -> list[str]:
    """The words of each page of its PDF."""
    return [" ".join(page.extract_text().split()) for page in pdf_of(root).pages]


def pieces(pdf: PdfReader) -> list[tuple[str, int, float, float]]:
    """Each piece of text of a PDF: its words, its page, its height on it, and its size."""
    texts = []
    for number, page in enumerate(pdf.pages):

        def note(
            text: str, to: list[float], at: list[float], _: object, size: float, on: int = number
        ) -> None:
            texts.append((text, on, at[4] * to[1] + at[5] * to[3] + to[5], abs(size * at[3])))

        page.extract_text(visitor_text=note)
    return texts


def wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def search_index(site: Path) -> dict[str, Any]:
    """Return the index of the search box, unpacked as a page does it."""
    return unpacked(site / "assets" / "search-index.js")


def unpacked(script: Path) -> dict[str, Any]:
    """Return what a script of the site holds for the page, as the page reads it."""
    packed = re.search('"(.*)"', script.read_text(encoding="utf-8"))
    assert packed
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return content


def press(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs press as an author does, in a process of its own."""
    command = [sys.executable, "-m", "press", *map(str, arguments)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, **options)


@contextmanager
def started(*arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Press while it works, in a process that ends with the test.

    Ctrl+C reaches it even where this process ignores it, as what a shell runs behind it does.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "press", *map(str, arguments)],
        cwd=REPOSITORY,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    ) as process:
        try:
            yield process
        finally:
            process.kill()
