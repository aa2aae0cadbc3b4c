"""The book's own sources, and one render of them for all tests that read pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def rendered_book(*options: str) -> Path:
    """The checkout's own `_book`, as `make book` leaves it, or as `press render` does with options.

    Who asks while it is rendered waits; where nothing has changed since, press says so at once.
    """
    run = subprocess.run(
        [sys.executable, "-m", "press", "render", *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return REPOSITORY / "_book"


def copy_tracked(source: Path, folder: Path) -> list[Path]:
    """Copies what a clone would hold of a folder of the repository; the files copied."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=source, capture_output=True, text=True, check=True
    )
    files = [Path(name) for name in listed.stdout.split("\0") if name and (source / name).exists()]
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / file, folder / file)
    return files
