"""One build, from the settings to the folder of the finished book."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, astuple, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from press.book_files import FOLDER, FONTS, THEME, file_digest, files_below, room_for, unchanged
from press.build_memory import Memory, digest, keep, recall
from press.edition import Edition, read_edition
from press.problems import cannot_write, stop
from press.running.environment import installation
from press.writing.output import Output

if TYPE_CHECKING:
    from press.reading.project import Book

STAMP = f"{FOLDER}/last-build.json"
NEEDED = ["yaml", "pypandoc", "IPython", "matplotlib_inline", "jinja2", "typst"]


class Stamp(NamedTuple):
    """Record of the last build: its folder, and digests of what it read and wrote."""

    output: str  # its folder
    inputs: str  # the digest of what it was made from
    outputs: str
    read: list[tuple[str, str]]  # what it named, showed and read beside, each with its digest


def check_parts() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        stop(f'press needs {", ".join(missing)}; in the checkout: pip install ".[book]"')


def render(root: Path, only: str | None = None, runtime: bool = True) -> str:
    """Renders the book in `root`, or one of its formats; says in one sentence what came of it.

    Without the `runtime` its live figures stay as they are drawn.
    """
    if not (root / "_quarto.yml").is_file():
        stop(f"there is no _quarto.yml in {root}; press renders a Quarto book project.")
    try:
        (root / FOLDER).mkdir(exist_ok=True)
        with _alone(root / FOLDER / "lock"), _no_search_for_cycles():
            if last := last_build(root):
                Output(root, root / last.output).restore()
            installed, edition = installation(), read_edition(root)
            looks = [files_below(THEME), files_below(FONTS)]
            setting: list[Any] = [installed, looks, runtime, asdict(edition)]
            if last and _still_holds(last, root, setting, only):
                return f"Nothing has changed: {last.output} is up to date."
            check_parts()
            if sys.stderr.isatty():  # somebody waits
                print("Rendering the book (can take a minute) ...", file=sys.stderr)
            book, files, read = _build(root, only, runtime, edition, installed)
            outputs = digest(files_below(book.output))
            inputs = digest(files, setting, only)
            name = book.output.relative_to(root).as_posix()
            keep(root / STAMP, Stamp(name, inputs, outputs, read))
            return f"Rendered {len(book.chapters)} chapters into {book.output}."
    except OSError as error:
        cannot_write(error)


def _build(
    root: Path, only: str | None, runtime: bool, edition: Edition, installed: list[str]
) -> tuple[Book, dict[str, str], list[tuple[str, str]]]:
    """The book, and the digests of the files that it was made from: the project's and others."""
    # Imported here, so that a book in which nothing has changed does not wait for them.
    from press.document.page import PAGE
    from press.document.pandoc import pandoc_version
    from press.driver import Driver, Product
    from press.reading.project import read_book
    from press.running.execute import kernels
    from press.running.scripts import run_scripts
    from press.stages import DOCUMENT, OUTPUTS
    from press.writing.runtime import packed_runtime

    run_scripts(root)
    book = read_book(root)
    output = Output(root, book.output, book.lines.get(("project", "output-dir"), 0))
    output.restore()
    output.check()
    book = replace(book, formats=[only]) if only else book
    book = book if runtime else replace(book, live="")
    files = files_below(root, book.output)  # before anything is read, so never newer than it
    # Those of linked and of hidden folders too.
    named = [root / chapter.file for chapter in book.chapters]
    named += [*book.bibliography, *filter(None, [book.csl])]
    read = _contents(named + ([root / book.search_data] if book.search_data else []))
    typst_folder = root / FOLDER / "typst"
    shutil.rmtree(typst_folder, ignore_errors=True)
    typst_folder.mkdir()
    products = {
        "root": Product(root, str(root)),
        "files": Product(files, digest(_beside_cells(files))),
        "book": Product(book),
        "edition": Product(edition),
        "execute": Product(book.execute, book.execute),
        "formats": Product(book.shown),
        "in_project": Product(book.execute_in_project, book.execute_in_project),
        "timeout": Product(book.timeout, ""),  # no matter to what cells give
        "kernels": Product(partial(kernels, root, book.shared, digest(_code_and_data(files))), ""),
        "bibliography": Product(book.bibliography, _contents(book.bibliography)),
        "csl": Product(book.csl, _contents([book.csl] if book.csl else [])),
        "lang": Product(book.lang, book.lang),
        "folder": Product(output.new),
        "typst_folder": Product(typst_folder),
        "left_out": Product(book.left_out, book.left_out),
        "pdf_file": Product(output.new / book.pdf_name),
    }
    if "html" in book.formats:  # beside all that follows, since it waits for other programs
        products["packing"] = Product(ThreadPoolExecutor(1).submit(packed_runtime, book, edition))
    memory = Memory(root / FOLDER / "made")
    made_by = digest(installed, pandoc_version())
    chapters = [{"chapter": Product(chapter, astuple(chapter))} for chapter in book.chapters]
    driver = Driver(
        products, chapters, memory, made_by, lambda: files_below(root, book.output) == files
    )
    driver.drive(DOCUMENT)
    read += [file for result in driver.values("result") for file in result["read"]]
    places = {
        target for answers in driver.values("answers") for target in answers["addresses"].values()
    }
    read += _contents(
        [root / target.removeprefix(PAGE) for target in sorted(places) if ".qmd" not in target]
    )
    with output.replaced(book.pdf_name, only) as new:
        if "typst" in book.formats:
            sheets = [page.sheet for page in driver.values("page") if page.sheet]
            for pdf in [book.pdf_name, *sheets]:  # for the pages' links to them
                target = room_for(new, pdf)
                target.unlink(missing_ok=True)  # the last book may hold the same file
                target.touch()
        driver.drive_all(lane for form, lane in OUTPUTS.items() if form in book.formats)
    memory.forget_unused()
    return book, files, read


def end() -> None:
    """Ends all that builds of this process have started."""
    if "press.running.execute" in sys.modules:
        from press.document.pandoc import end_pandocs
        from press.running.execute import end_kernels
        from press.writing.runtime import end_packing

        end_packing()
        end_pandocs()
        end_kernels()


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


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Leaves it to counted references to free what a build makes.

    A search for cycles walks the documents of all pages again and again, and finds none: that took
    a fifth of press's own time.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def last_build(root: Path) -> Stamp | None:
    return next((Stamp(*stamp) for stamp in recall(root / STAMP)), None)


def _still_holds(last: Stamp, root: Path, setting: list[Any], only: str | None) -> bool:
    """Return whether the last build, of all formats or of this one, would give the same again."""
    files = files_below(root, root / last.output)
    enough = {digest(files, setting, formats) for formats in (only, None)}
    same = last.inputs in enough and unchanged(last.read)
    return same and last.outputs == digest(files_below(root / last.output))


def _beside_cells(files: dict[str, str]) -> list[tuple[str, str]]:
    """Return the files that cells may depend on unseen, with digests; of Python the names alone.

    A library that is no Python opens data unseen, so data count wherever they are. Python files
    count where they are imported or read, as the kernel says; here by their names, since a new one
    can take the place of another. The prose of other chapters is no matter.
    """
    return [(name, "" if name.endswith(".py") else value) for name, value in _code_and_data(files)]


def _code_and_data(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in files.items() if not name.endswith(".qmd")]


def _contents(files: list[Path]) -> list[tuple[str, str]]:
    return [(str(file), file_digest(file)) for file in files]
