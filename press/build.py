"""One build: makes the site and the PDF beside the old ones, and swaps them at the end.

The swap is two renames. A build that is killed between them leaves the last good book beside its
place, under a hidden name; the next build puts it back first of all.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from press import cache
from press.edition import Edition, read_edition
from press.errors import BookError, Problems, stop
from press.memory import Memory, digest

if TYPE_CHECKING:
    from press.reading.project import Book

STAMP = f"{cache.FOLDER}/last-build.json"
NEEDED = ["yaml", "pypandoc", "IPython", "matplotlib_inline", "jinja2", "typst"]


def check_parts() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        stop(f'press needs {", ".join(missing)}; in the checkout: pip install ".[book]"')


def render(root: Path, only: str | None = None) -> str:
    """Renders the book in `root`, or one of its formats; says in one sentence what came of it."""
    if not (root / "_quarto.yml").is_file():
        stop(f"there is no _quarto.yml in {root}; press renders a Quarto book project.")
    try:
        (root / cache.FOLDER).mkdir(exist_ok=True)
        with _alone(root / cache.FOLDER / "lock"):
            if last := last_build(root):
                _restore(root / last[0])
            installed, edition = cache.installation(), read_edition(root)
            setting: list[Any] = [installed, cache.files_below(cache.THEME), only, asdict(edition)]
            if last and _still_holds(*last, root, setting):
                return f"Nothing has changed: {last[0]} is up to date."
            check_parts()
            if sys.stderr.isatty():  # somebody waits
                print("Rendering the book (can take a minute) ...", file=sys.stderr)
            book, files = _build(root, only, edition, installed)
            outputs = digest(cache.files_below(book.output))
            inputs = digest(files, setting)
            name = book.output.relative_to(root).as_posix()
            stamp = json.dumps([name, inputs, outputs])
            (root / STAMP).write_text(stamp, encoding="utf-8")
            return f"Rendered {len(book.chapters)} chapters into {book.output}."
    except OSError as error:
        stop(f"press cannot write: {error.strerror}: {error.filename}.")


def _build(
    root: Path, only: str | None, edition: Edition, installed: list[str]
) -> tuple[Book, dict[str, str]]:
    """The book, and the digests of the files that it was made from."""
    # Imported here, so that a book in which nothing has changed does not wait for them.
    from press.document.citations import cite
    from press.document.pages import collect, read_pages
    from press.document.references import References
    from press.document.showing import check_page
    from press.reading.project import read_book
    from press.running.execute import kernels
    from press.writing.check import check_site
    from press.writing.html import write_site
    from press.writing.notebooks import write_notebooks
    from press.writing.pdf import write_pdf

    book = read_book(root)
    kernels()  # they take a second to start, in which the chapters are read
    book = replace(book, formats=[only]) if only else book
    output = book.output
    new, old = (output.with_name(f".{output.name}.{word}") for word in ("new", "old"))
    _restore(output)
    _remove(new)
    _remove(old)
    for folder in (output, output.parent):
        if folder.exists() and not os.access(folder, os.W_OK):
            stop(f"press cannot write into {folder}: it is read-only.")
    files = cache.files_below(root, output)  # before anything is read, so never newer than it
    memory = Memory(root / cache.FOLDER / "pages")
    pages = read_pages(book, files, installed, memory)
    references = References(pages, root)
    references.resolve()
    problems = Problems(references.problems)
    try:
        cite(book, pages, memory)
    except BookError as error:
        problems += error.problems
    problems.stop_if_any()
    for page in pages:
        page.settle(files)
    collect(
        lambda page: memory.remember(lambda: check_page(book, page), "checked", page.key),
        zip(pages),
    )
    try:
        new.mkdir(parents=True)
        with ThreadPoolExecutor() as pool:  # typst sets the PDF while the pages are written
            if "typst" in book.formats:
                sources = root / cache.FOLDER / "typst"
                _remove(sources)
                sources.mkdir()
                (new / book.pdf_name).touch()  # for the pages' link to it
                target = new / book.pdf_name
                pdf = pool.submit(write_pdf, book, pages, memory, edition, sources, target)
            if "html" in book.formats:
                write_site(book, pages, memory, edition, new)
                write_notebooks(book, pages, memory, edition, new)
                check_site(new)
            if "typst" in book.formats:
                pdf.result()
        if output.exists():
            output.rename(old)
        new.rename(output)
    finally:
        _remove(new)
    _remove(old)
    memory.forget_unused()
    return book, files


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Waits until no other build of this book runs; the lock ends with its process."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another build of this book is running; waiting for it.", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def last_build(root: Path) -> tuple[str, str, str] | None:
    """The output folder of the last build, and the digests of its inputs and outputs."""
    try:
        name, inputs, outputs = json.loads((root / STAMP).read_text(encoding="utf-8"))
        return str(name), inputs, outputs
    except (OSError, ValueError, TypeError):
        return None  # not there, or torn


def _still_holds(name: str, inputs: str, outputs: str, root: Path, setting: list[Any]) -> bool:
    """Whether doing the last build again would give the same."""
    files = cache.files_below(root, root / name)
    same = inputs == digest(files, setting) and cache.still_same(cache.files_read(root))
    return same and outputs == digest(cache.files_below(root / name))


def _restore(output: Path) -> None:
    """Undoes the first half of a swap that a killed build left without the second."""
    old = output.with_name(f".{output.name}.old")
    if old.exists() and not output.exists():
        old.rename(output)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
