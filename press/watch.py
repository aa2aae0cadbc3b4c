"""Renders a book again whenever one of its files changes, for the author who has a page open.

It is quicker than a render from the command line, because the process stays: typst sets again only
the pages that a change moves.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from press import book_files, build
from press.problems import BookError
from press.running.environment import installation
from press.running.scripts import run_scripts

PAUSE = 0.1  # seconds between two looks at the files


def watch(root: Path, only: str | None) -> NoReturn:
    """Goes on until the author ends it with Ctrl+C."""
    print(
        f"Watching {root}; Ctrl+C ends it. What is not rendered yet is rendered first.",
        file=sys.stderr,
        flush=True,
    )
    installed = installation()
    while True:
        seen = _stamps(root)
        start = time.perf_counter()
        try:
            run_scripts(root)
            seen = _stamps(root)  # with what they have written
            said = build.render(root, only, runtime=False)  # which takes longer than all else
            print(f"{said} {time.perf_counter() - start:.1f} s", flush=True)
        except BookError as error:
            print(error, file=sys.stderr)
        if _stamps(root) != seen:
            print("Files were saved meanwhile; rendering again.", file=sys.stderr, flush=True)
        while _stamps(root) == seen:
            time.sleep(PAUSE)
        if installation() != installed:  # press itself, or what it renders with
            os.execv(sys.executable, [sys.executable, "-m", "press", *sys.argv[1:]])


def _stamps(root: Path) -> dict[str, int]:
    """Return the time of the last write of each file that the book is made from."""
    last = build.last_build(root)
    stamps = {}
    below = book_files.paths_below(root, root / last.output if last else None)
    for path in {*below, *(name for name, _ in (last.read if last else ()))}:
        try:
            stamps[path] = os.stat(path).st_mtime_ns
        except OSError:  # an editor has just moved it
            stamps[path] = 0
    return stamps
