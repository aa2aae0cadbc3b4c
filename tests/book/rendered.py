"""The book's own sources, and one fresh render of them for the tests that read pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
SOURCES = [
    "_quarto.yml",
    "pyproject.toml",
    "index.qmd",
    "references.qmd",
    "references.bib",
    "chapters",
    "backmatter",
    "library",
    "figures",
    "calc",
    "fonts",
]
INLINE = re.compile(r"`\{python\} ([^`]*)`")


def render_copy(folder: Path) -> Path:
    """Renders a copy of the sources, so that the checkout's own `_book` is left alone."""
    for name in SOURCES:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    run = subprocess.run(
        [sys.executable, "-m", "press", "render", str(folder)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "_book"


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


def chapters() -> list[Path]:
    """Every page that prose is written for; the generated ones are not quoted from."""
    return [
        REPOSITORY / "index.qmd",
        *sorted((REPOSITORY / "chapters").glob("*.qmd")),
        *sorted((REPOSITORY / "backmatter").glob("*.qmd")),
    ]


@dataclass(frozen=True)
class Quote:
    """An inline value of a chapter, such as show(A100Roofline.ridge_point, digits=3)."""

    chapter: Path
    expression: str

    @property
    def names(self) -> list[str]:
        """The derivations that it quotes: ["A100Roofline.ridge_point"]."""
        return re.findall(r"\b([A-Z]\w*\.[a-z]\w*)", self.expression)

    @property
    def page(self) -> str:
        return self.chapter.relative_to(REPOSITORY).with_suffix(".html").as_posix()


def quotes() -> list[Quote]:
    return [
        Quote(chapter, expression)
        for chapter in chapters()
        for expression in INLINE.findall(chapter.read_text(encoding="utf-8"))
    ]
