"""Remembers what each chapter's cells gave, for as long as nothing that they can depend on changes.

A chapter's results are kept under a digest of its cells with their options, its inline values,
every file of the project (the chapters' prose apart), the installed distributions, the Python and
press itself; and they count only while every other file that they read (a hidden one, a chapter,
one of another folder, a module) is unchanged too. What stays out: files that a subprocess or a
library's compiled code opens, what a folder lists, fonts, the clock and the network.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

from press.errors import BookError, Problems
from press.memory import digest, keep
from press.reading.project import Book
from press.reading.source import Cell, Source
from press.running.execute import MEMORY, Result, environment, execute

FOLDER = MEMORY
PRESS = Path(__file__).parent
THEME = PRESS / "theme"


def file_digest(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def files_below(root: Path, output: Path | None = None) -> dict[str, str]:
    """The digest of each file of a folder, but for what is hidden, rendered or installed."""
    return {os.path.relpath(path, root): file_digest(path) for path in paths_below(root, output)}


def paths_below(root: Path, output: Path | None = None) -> Iterator[str]:
    seen: set[str] = set()
    for here, folders, names in os.walk(root, followlinks=True):
        if os.path.realpath(here) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(here))
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith(".")
            and name != "__pycache__"
            and Path(here, name) != output
            and not os.path.exists(os.path.join(here, name, "pyvenv.cfg"))
        ]
        for name in sorted(names):
            if not name.startswith("."):
                yield os.path.join(here, name)


def installation() -> list[str]:
    """The Python, press, and every installed distribution with the time of its installation."""
    found = [sys.version, sys.executable, json.dumps(environment(), sort_keys=True)]
    found += [f"{name} {value}" for name, value in files_below(PRESS, THEME).items()]
    for folder in filter(os.path.isdir, sys.path):
        for item in sorted(os.scandir(folder), key=lambda item: item.name):
            if item.name.endswith((".dist-info", ".egg-link", ".pth")):
                record = os.path.join(item.path, "RECORD")
                changed = os.stat(record if os.path.exists(record) else item.path).st_mtime_ns
                found.append(f"{item.name} {changed}")
    return found


def results(
    book: Book, sources: list[Source], files: dict[str, str], installed: list[str]
) -> Generator[tuple[Source, Result], None, None]:
    """Every source with its result: at once where it is remembered, else when it has been run."""
    folder = book.root / FOLDER / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {name: value for name, value in files.items() if not name.endswith(".qmd")}
    kept = {
        source.file: folder / f"{_key(book, source, inputs, installed)}.json" for source in sources
    }
    known = {file: result for file, path in kept.items() if (result := _recall(path))}
    missing = [source for source in sources if source.file not in known]
    problems = Problems()
    made = {}
    with execute(missing, book.root, book.execute_in_project) as outcomes:
        for source in sources:
            if source.file in known:
                yield source, known[source.file]
        for source, outcome in outcomes:
            if isinstance(outcome, BookError):
                problems += outcome.problems
            else:
                made[kept[source.file]] = outcome
                yield source, outcome
    # Where something changed meanwhile nobody can say what the cells saw.
    if made and files_below(book.root, book.output) == files:
        for path, result in made.items():
            keep(path, [result.pieces, result.read, result.files])
    problems.stop_if_any()
    for path in set(folder.iterdir()) - set(kept.values()):
        path.unlink()


def files_read(root: Path) -> list[tuple[str, str]]:
    """Each file that the chapters read, with its digest as it was when they did."""
    kept = [_load(path) for path in sorted((root / FOLDER / "cells").glob("*.json"))]
    return [file for result in kept if result for file in result.read]


def _key(book: Book, source: Source, inputs: dict[str, str], installed: list[str]) -> str:
    pieces = [
        [piece.code, piece.options]
        if isinstance(piece, Cell)
        else [expression for _, expression in piece.inline_values()]
        for piece in source.pieces
    ]
    return digest(pieces, source.file, book.execute_in_project, inputs, installed)


def _recall(path: Path) -> Result | None:
    result = _load(path)
    return result if result and still_same(result.read) else None


def still_same(files: list[tuple[str, str]]) -> bool:
    return all(file_digest(name) == value for name, value in files)


def _load(path: Path) -> Result | None:
    try:
        pieces, read, own = json.loads(path.read_text(encoding="utf-8"))
        return Result(pieces, [(name, value) for name, value in read], own)
    except (OSError, ValueError, TypeError):
        return None  # not there, or torn: it is made again
