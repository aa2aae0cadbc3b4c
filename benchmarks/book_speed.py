"""Time of the render step: from nothing, with nothing changed, with one chapter changed.

    python -m benchmarks.book_speed

Runs on a copy of the book, each build a process of its own. Two builds from nothing are compared
byte by byte. A change is timed for a process of its own, with the PDF and for the site alone, and
for `press watch`, which an author leaves running. Where Quarto is on PATH, it renders the same
copy once, for the ratio.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SOURCES = [
    "_quarto.yml",
    "index.qmd",
    "references.qmd",
    "references.bib",
    "workbench.qmd",
    "CHANGELOG.md",
    "pyproject.toml",
]
FOLDERS = ["chapters", "backmatter", "figures", "calc", "changelog.d", "tools"]
CHANGED = Path("chapters/roofline.qmd")
SITE = ["--to", "html"]
LINE = "\nChanged {}.\n"
CELL = '\n```{python}\n#| echo: true\nprint("changed", {})\n```\n'


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        book = copy_of_the_book(Path(folder) / "book")
        cold = [from_nothing(book) for _ in range(3)]
        kept = book.with_name("kept")
        shutil.move(book / "_book", kept)
        cold.append(from_nothing(book))
        unchanged = [press(book) for _ in range(7)]
        one_cell = [after_a_change(book, CELL, turn) for turn in range(5)]
        one_line = [after_a_change(book, LINE, turn) for turn in range(5)]
        site_line = [after_a_change(book, LINE, turn, *SITE) for turn in range(5)]
        site_cell = [after_a_change(book, CELL, turn, *SITE) for turn in range(5)]
        with watching(book) as rendered:
            watched_cell = [rendered(CELL, turn) for turn in range(5, 10)]
            watched_line = [rendered(LINE, turn) for turn in range(5, 10)]
        same = same_files(kept, cold_again(book))
        medians = {
            "from nothing": statistics.median(cold),
            "nothing changed": statistics.median(unchanged),
            "one cell changed": statistics.median(one_cell),
            "one line changed": statistics.median(one_line),
            "one cell, site alone": statistics.median(site_cell),
            "one line, site alone": statistics.median(site_line),
            "watched, one cell": statistics.median(watched_cell),
            "watched, one line": statistics.median(watched_line),
        }
        if shutil.which("quarto"):
            medians["Quarto, from nothing"] = timed(["quarto", "render", str(book)])
    print("\nThe render step, and its ratio to a build from nothing")
    for name, seconds in medians.items():
        print(f"  {name:<24}{seconds:8.2f} s {seconds / medians['from nothing']:8.2f}")
    print(f"  two builds from nothing {'are identical' if same else 'DIFFER'}, byte by byte")


def copy_of_the_book(folder: Path) -> Path:
    for name in SOURCES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    for name in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
    return folder


def from_nothing(book: Path) -> float:
    for name in ("_book", ".press-cache"):
        shutil.rmtree(book / name, ignore_errors=True)
    return press(book)


def cold_again(book: Path) -> Path:
    """The chapter as it was, built from nothing."""
    shutil.copy(REPOSITORY / CHANGED, book / CHANGED)
    from_nothing(book)
    return book / "_book"


@contextmanager
def watching(book: Path) -> Iterator[Callable[[str, int], float]]:
    """`press watch`, and what gives the seconds from a change's being saved to its book."""
    command = [sys.executable, "-m", "press", "watch", str(book)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout
        said = process.stdout.readline

        def rendered(more: str, turn: int) -> float:
            start = time.perf_counter()
            change(book, more, turn)
            if not said().startswith("Rendered"):
                sys.exit("press watch has ended")
            return time.perf_counter() - start

        said()  # that nothing has changed
        rendered(LINE, -1)  # the first time, typst sets all pages
        yield rendered
        process.terminate()


def after_a_change(book: Path, more: str, turn: int, *options: str) -> float:
    change(book, more, turn)
    return press(book, *options)


def change(book: Path, more: str, turn: int) -> None:
    """A cell more at the end of one chapter, so that its kernel has to run again, or a line."""
    original = (REPOSITORY / CHANGED).read_text(encoding="utf-8")
    (book / CHANGED).write_text(original + more.replace("{}", str(turn)), encoding="utf-8")


def press(book: Path, *options: str) -> float:
    return timed([sys.executable, "-m", "press", "render", *options, str(book)])


def timed(command: list[str]) -> float:
    environment = os.environ | {"QUARTO_PYTHON": sys.executable}
    start = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment)
    if run.returncode != 0:
        sys.exit(run.stdout + run.stderr)
    return time.perf_counter() - start


def same_files(first: Path, second: Path) -> bool:
    names = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    if names != {path.relative_to(second) for path in second.rglob("*") if path.is_file()}:
        return False
    return all(filecmp.cmp(first / name, second / name, shallow=False) for name in names)


if __name__ == "__main__":
    main()
