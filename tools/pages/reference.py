"""Writer of `reference/`, which makes again only what comes of something that has changed.

A stamp says of each part of it which modules made it, and the digest of all that it came from.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tools.pages import ROOT, answers, changes, indexed, listing, uses

REFERENCE = ROOT / "reference"
STAMP = REFERENCE / ".made.json"
READ = ("calc/data/**/*.*", "calc/**/*.pyi", "calc/core/*.txt", "backmatter/glossary.qmd")


class Part(NamedTuple):
    """Pages that one process makes, and what they came from."""

    texts: dict[str, str]  # by their paths in the repository
    by: list[str]  # the files of modules
    names: list[tuple[str, str]]  # with keys, for which chapters were searched

    def digest(self) -> str:
        """Return the digest of the texts made and of the files they came from, as they are now."""
        files = {*self.by, *(str(path) for each in READ for path in ROOT.glob(each))}
        source = {file: _sha256(Path(file)) for file in files}
        text = json.dumps([self.texts, source, uses.counts(self.names)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def catalogue() -> Part:
    """Make the pages of devices, machines and models, and what the search finds of them."""
    from tools.pages import catalog, search

    texts = catalog.pages() | search.data()
    every = [thing for of_kind in catalog.things().values() for thing in of_kind]
    return Part(texts, _imported(), [(thing.name, thing.key) for thing in every])


def library() -> Part:
    """Make the pages of the library's modules."""
    from tools.pages import library as of_library

    texts = of_library.pages()
    return Part(texts, [*_imported(), *of_library.files()], [])


PARTS = {make.__name__: make for make in (catalogue, library)}


def _imported() -> list[str]:
    files = (getattr(module, "__file__", None) for module in [*sys.modules.values()])
    return [file for file in files if file and Path(file).is_relative_to(ROOT)]


def _make(name: str) -> Part:
    return PARTS[name]()


def parts() -> tuple[dict[str, Part], dict[str, str]]:
    """Return each part as it is to be, made or read, with the digests of those that still hold."""
    try:
        stamped = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stamped = {}
    parts, digests = dict[str, Part](), dict[str, str]()
    for name, (paths, by, names, digest) in stamped.items():
        part = Part({path: _text(path) for path in paths}, by, names)
        if part.digest() == digest:
            parts[name], digests[name] = part, digest
    missing = [name for name in PARTS if name not in parts]
    if missing:
        with ProcessPoolExecutor(mp_context=get_context("fork")) as processes:
            parts |= zip(missing, processes.map(_make, missing), strict=True)
    return {name: parts[name] for name in PARTS}, digests


def pages(made: Iterable[Part]) -> dict[str, str]:
    """Return the text of each file of `reference/` but the stamp, by its path."""
    texts = {
        "reference/answers.qmd": answers.page(),
        "reference/changes.qmd": changes.page(),
        "reference/index-of-terms.qmd": indexed.page(),
        **{path: text for part in made for path, text in part.texts.items()},
    }
    return texts | {listing.PATH: listing.text(texts)}


def write() -> None:
    """Write what has changed, remove what nothing makes any more, and stamp it."""
    begun = time.time()
    try:
        made, digests = parts()
    except ModuleNotFoundError as missing:
        sys.exit(f"the pages of reference/ need {missing.name}; `make set-up-book` brings it")
    except SystemExit as refused:  # of another process, from which comes no code
        sys.exit(str(refused))
    texts = pages(made.values())
    REFERENCE.mkdir(exist_ok=True)
    there = {path.relative_to(ROOT).as_posix() for path in REFERENCE.rglob("*") if path.is_file()}
    for stale in there - texts.keys() - {STAMP.relative_to(ROOT).as_posix()}:
        (ROOT / stale).unlink()
    changed = {path: text for path, text in texts.items() if _text(path) != text}
    for path, text in changed.items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    if changed:
        print(f"wrote {len(changed)} of the {len(texts)} files of reference/")
    for name, part in made.items():
        if name not in digests and all(Path(file).stat().st_mtime < begun for file in part.by):
            digests[name] = part.digest()
    stamp = {name: [[*made[name].texts], *made[name][1:], digests[name]] for name in digests}
    STAMP.write_text(json.dumps(stamp), encoding="utf-8")


def _text(path: str) -> str:
    """Return the text of a file of the repository; "" where there is none."""
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
