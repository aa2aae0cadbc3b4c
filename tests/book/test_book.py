"""The book as a whole: no number typed, each figure from calc and fit for both grounds."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from pypdf import PdfReader

import figures
from calc import hardware, models, quantity
from calc.derivations.roofline import BatchSize
from figures import batch_size, style
from press.audit import allowed_words, typed_numbers
from tests.book.rendered import REPOSITORY, chapters

FIGURES = sorted(
    path.stem for path in Path(figures.__path__[0]).glob("[a-z]*.py") if path.stem != "style"
)
NAMES = allowed_words(REPOSITORY)
KEYS = {*hardware.names(), *models.names(), *hardware.DTYPES}
COLOUR = re.compile("#[0-9a-f]{6}")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")  # of str.format
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
    mend = "quote a number with show(); list a name in chapters/names-with-digits.txt"
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


def typed_in(source: str) -> list[str]:
    """The numbers that the texts of a program hold, but for docstrings, names, keys and colours."""
    found, read_already = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            read_already.add(node.body[0].value)
        elif isinstance(node, ast.FormattedValue) and node.format_spec:
            read_already.add(node.format_spec)
        elif isinstance(node, ast.JoinedStr) and node not in read_already:
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            found += typed_numbers("".join(parts), NAMES)
        if isinstance(node, ast.JoinedStr):
            read_already |= {part for part in node.values if isinstance(part, ast.Constant)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            held = node in read_already or node.value in KEYS or COLOUR.fullmatch(node.value)
            found += [] if held else typed_numbers(PLACEHOLDER.sub("…", node.value), NAMES)
    return [excerpt for _, excerpt in found]


@pytest.mark.parametrize(
    ("source", "typed"),
    [
        ('note("80 GiB")', ["80 GiB"]),
        ('note(f"{each} of 8 slices")', ["… of 8 slices"]),
        ('note(f"10{unit}")', ["10…"]),
        ('def draw():\n    """At 80 GiB."""', []),
        ('note(f"{time:.2f} ms")', []),
        ('note("{:.0f} ms".format(time))', []),
        ('note("an H100 in FP16", color="#1f2328", key="tpu-v5p", dtype="fp32")', []),
    ],
)
def test_typed_numbers_are_found(source: str, typed: list[str]) -> None:
    assert typed_in(source) == typed


@pytest.mark.parametrize("name", FIGURES)
def test_figures_type_no_numbers(name: str) -> None:
    source = (REPOSITORY / "figures" / f"{name}.py").read_text(encoding="utf-8")
    assert not typed_in(source), "take each from calc.derivations, by show()"


def test_an_alt_text_follows_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchSize, "critical_batch", quantity("123"))
    assert "at a batch of 123." in " ".join(batch_size.alt().split())


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
