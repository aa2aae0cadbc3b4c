"""The book as a whole: no number typed, each figure from calc and fit for both grounds."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from pypdf import PdfReader

import figures
from figures import style
from tests.book.rendered import REPOSITORY, chapters

FIGURES = sorted(
    path.stem for path in Path(figures.__path__[0]).glob("[a-z]*.py") if path.stem != "style"
)
GROUNDS = {"light": "#fefdfb", "dark": "#15171a"}


def test_no_chapter_types_a_number() -> None:
    audit = subprocess.run(
        [sys.executable, "-m", "press", "audit", "."],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    found = audit.stdout + audit.stderr
    mend = "quote a number with show() or words(); see CONTRIBUTING.md"
    assert not found, f"{found}{mend}"
    assert audit.returncode == 0


def test_every_chapter_is_listed() -> None:
    listed = (REPOSITORY / "_quarto.yml").read_text(encoding="utf-8")
    for chapter in chapters():
        name = chapter.relative_to(REPOSITORY).as_posix()
        assert re.search(rf"^\s*- {re.escape(name)}$", listed, re.MULTILINE), (
            f"{name} is not listed in _quarto.yml, so nobody can read it"
        )


@pytest.mark.parametrize("name", FIGURES)
def test_figures_keep_their_text_and_take_the_page_s_ink(name: str, tmp_path: Path) -> None:
    drawn = importlib.import_module(f"figures.{name}").draw()
    path = tmp_path / f"{name}.svg"
    drawn.savefig(path, metadata={"Date": None})
    svg = path.read_text(encoding="utf-8")
    assert len(re.findall(r"<text\b", svg)) >= 10
    assert "Inter" in svg
    assert style.INK in svg
    assert "#000000" not in svg, "neutral ink must be style.INK, which the page recolours"
    sizes = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", svg)]
    assert min(sizes) >= 7.5


@pytest.mark.parametrize("name", FIGURES)
def test_figures_fit_a_phone(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.svg"
    with matplotlib.rc_context({"figure.figsize": [3.5, 2.6]}):  # as press does for phones
        importlib.import_module(f"figures.{name}").draw().savefig(path, bbox_inches="tight")
    found = re.search(r'<svg [^>]*width="([\d.]+)pt"', path.read_text(encoding="utf-8"))
    assert found
    assert float(found[1]) <= 264, "wider than 3.5 in: what hangs out at the sides goes elsewhere"


@pytest.mark.parametrize("name", FIGURES)
def test_figures_hold_no_numbers_of_their_own(name: str) -> None:
    """A measured or published value would need decimals or a unit; layout numbers stay small."""
    source = (REPOSITORY / "figures" / f"{name}.py").read_text(encoding="utf-8")
    text = re.findall(r"\"[^\"]*\d+(?:\.\d+)?\s*(?:TB|GB|TFLOP|ns|pJ|W)\b[^\"]*\"", source)
    assert not text
    assert "from calc" in source


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_used(name: str) -> None:
    assert any(f"figures.{name}.draw()" in path.read_text(encoding="utf-8") for path in chapters())


def test_the_pdf_has_text_on_every_page_and_bookmarks(book: Path) -> None:
    (path,) = book.glob("*.pdf")
    reader = PdfReader(path)
    assert all(re.search(r"[A-Za-z]{3}", page.extract_text()) for page in reader.pages)
    assert reader.outline


def test_the_book_is_light(book: Path) -> None:
    (pdf,) = book.glob("*.pdf")
    assert pdf.stat().st_size < 3e6
    files = [path for path in book.rglob("*") if path.is_file() and path.suffix != ".zip"]
    assert sum(path.stat().st_size for path in files if path != pdf) < 4e6
    for page in book.rglob("*.html"):
        text = re.sub(r"<svg\b.*?</svg>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert len(text.encode()) < 600e3, page.name


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", ["BLUE", "ORANGE", "GREEN", "PURPLE", "RED"])
def test_colours_stand_out_on_both_grounds(colour: str, ground: str) -> None:
    first, second = luminance(getattr(style, colour)), luminance(GROUNDS[ground])
    contrast = (max(first, second) + 0.05) / (min(first, second) + 0.05)
    assert contrast >= 4


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
