"""The book as a whole: no number typed, each figure from calc and fit for both grounds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

import figures
from calc import hardware, machines, models, quantity
from press.audit import allowed_words, audit, typed_numbers
from tests.book.rendered import REPOSITORY
from tests.rows import each_row
from tools.ledger.quotes import chapters

pytestmark = pytest.mark.xdist_group("pages")  # whose worker renders the book for all

FIGURES = sorted(
    path.stem
    for path in Path(figures.__path__[0]).glob("[a-z]*.py")
    if path.stem not in ("style", "preview")
)
# A cell, and the label of the block that it stands first in, where its caption is computed.
CELL = re.compile(
    r"^(?:::: \{#(fig-[\w-]+)\}\n\n)?```\{python\}\n(.*?)^```", re.MULTILINE | re.DOTALL
)
NAMES = allowed_words(REPOSITORY)
KEYS = {*hardware.names(), *machines.names(), *models.names(), *hardware.DTYPES}
FENCED = re.compile(r"^(`{3,})\{?.*?^\1$", re.MULTILINE | re.DOTALL)
COLOUR = re.compile("#[0-9a-f]{6}")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")  # of str.format
GROUNDS = {"light": "#fefdfb", "dark": "#15171a"}


@pytest.mark.slow
def test_no_chapter_types_a_number() -> None:
    """Rows and captions, of which `press audit` tells too, are held by tests of their own."""
    assert audit(REPOSITORY) == [], (
        "quote a number with show() or words(); see docs/adding-a-number.md"
    )


def test_every_chapter_is_listed() -> None:
    listed = (REPOSITORY / "_quarto.yml").read_text(encoding="utf-8")
    for chapter in chapters():
        name = chapter.relative_to(REPOSITORY).as_posix()
        assert re.search(rf"^\s*- {re.escape(name)}$", listed, re.MULTILINE), (
            f"{name} is not listed in _quarto.yml, so nobody can read it"
        )


def test_a_label_names_one_thing_in_the_whole_book(book: Path) -> None:
    """A heading without a label gets one from its words, and Quarto's PDF is one document."""
    labels: dict[str, str] = {}
    words: dict[str, str] = {}
    assert book.is_dir()  # which has been rendered with the pages that nobody writes
    for path in [*chapters(), *sorted((REPOSITORY / "reference").rglob("*.qmd"))]:
        prose = FENCED.sub("", path.read_text(encoding="utf-8"))
        labels |= dict.fromkeys(re.findall(r"\{#([\w-]+)", prose), path.name)
        for heading in re.findall(r"^#+ ((?!.*\{#)[^{\n]*)", prose, re.MULTILINE):
            words[slug(heading)] = path.name
    assert not [
        f"{word}: the label of something in {labels[word]}, and a heading in {words[word]}"
        for word in labels.keys() & words.keys()
    ]


def slug(heading: str) -> str:
    """The label that pandoc gives a heading, but for the rarest signs."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w-]", "", text.strip().lower().replace(" ", "-"))


Drawings = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def drawings(book: Path) -> Drawings:
    """Each figure as its page has it, for a wide window and for a phone."""
    svgs_of = {}
    for chapter in chapters():
        page = book / chapter.relative_to(REPOSITORY).with_suffix(".html")
        for block, cell in CELL.findall(chapter.read_text(encoding="utf-8")):
            drawn = re.search(r"^figures\.(\w+)\.draw\(\)$", cell, re.MULTILINE)
            if drawn is None:
                continue
            label = re.search(r"^#\| label: (.*)$", cell, re.MULTILINE)
            name = label[1] if label else block
            assert name or chapter.name == "index.qmd", f"{chapter.name}: {drawn[1]} has no label"
            start = f'id="{name}"' if name else 'class="title-block cover"'
            figure = page.read_text(encoding="utf-8").split(start)[1]
            svgs = re.findall(r"<svg\b.*?</svg>", figure.split("</figure>")[0], re.DOTALL)
            svgs_of[drawn[1]] = (svgs[0], svgs[-1])  # one, where a phone's would be no other
    return svgs_of


def test_every_figure_is_used(drawings: Drawings) -> None:
    assert sorted(drawings) == FIGURES


def test_figures_keep_their_text_and_take_the_page_s_ink(drawings: Drawings) -> None:
    """Text stays text, in the page's own typeface: what press leaves of others it would name."""
    wrong = []
    for name, (wide, narrow) in drawings.items():
        if "<text" not in wide:
            wrong.append(f"{name} has no text, or draws its letters")
        if "font-family" in wide + narrow:
            wrong.append(f"{name} has texts in another typeface than Inter")
        if "currentColor" not in wide or "#000000" in wide + narrow:
            wrong.append(f"{name}: neutral ink must be style.INK, which the page recolours")
        sizes = re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", wide)
        if min(map(float, sizes)) < 7.5:
            wrong.append(f"{name} has letters of {min(map(float, sizes))} px")
    assert wrong == []


def test_figures_fit_a_phone(drawings: Drawings) -> None:
    """3.5 in and a little: what hangs out at the sides of a drawing goes elsewhere."""
    widths = {name: re.search(r' width="([\d.]+)pt"', svgs[1]) for name, svgs in drawings.items()}
    assert {name: width for name, width in widths.items() if float(width[1]) > 264} == {}


def typed_in(source: str) -> list[str]:
    """The numbers that the texts of a program hold, but for docstrings, names, keys and colours."""
    typed, read_already = [], set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node):
            read_already.add(node.body[0].value)
        elif isinstance(node, ast.FormattedValue) and node.format_spec:
            read_already.add(node.format_spec)
        elif isinstance(node, ast.JoinedStr) and node not in read_already:
            parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
            typed += typed_numbers("".join(parts), NAMES)
        if isinstance(node, ast.JoinedStr):
            read_already |= {part for part in node.values if isinstance(part, ast.Constant)}
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            held = node in read_already or node.value in KEYS or COLOUR.fullmatch(node.value)
            typed += [] if held else typed_numbers(PLACEHOLDER.sub("…", node.value), NAMES)
    return [excerpt for _, excerpt in typed]


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


def test_figures_type_no_numbers() -> None:
    with each_row() as row:
        for name in FIGURES:
            with row(name):
                source = (REPOSITORY / "figures" / f"{name}.py").read_text(encoding="utf-8")
                assert not typed_in(source), "take each from calc.derivations, by show()"


def test_an_alt_text_follows_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    from calc.derivations.roofline_chapter import BatchSize
    from figures import batch_size

    monkeypatch.setattr(BatchSize, "critical_batch", quantity("123"))
    assert "at a batch of 123." in " ".join(batch_size.alt().split())


@pytest.mark.slow
def test_the_pdf_has_bookmarks(pdf: Path) -> None:
    """Bookmarks are in the PDF; that each page has text is seen by `.ci/check_book.py`."""
    assert PdfReader(pdf).outline


@pytest.mark.slow
def test_the_sheet_takes_one_page(pdf: Path) -> None:
    """A page that both A4 and Letter hold in its own PDF, and one of A4 in that of the book."""
    assert len(PdfReader(pdf.parent / "chapters" / "sheet.pdf").pages) == 1
    reader = PdfReader(pdf)
    (mark,) = (entry for entry in flat(reader.outline) if entry.title == SHEET)
    first = reader.get_destination_page_number(mark)
    here, after = (reader.pages[first + offset].extract_text() for offset in (0, 1))
    assert here.startswith(SHEET)
    assert "Number formats" in here
    assert after.lstrip("0123456789 \n").startswith("From symptom to lever")


def flat(outline: list[Any]) -> Iterator[Any]:
    """Yield the entries of an outline, those of parts and chapters too."""
    for entry in outline:
        yield from flat(entry) if isinstance(entry, list) else [entry]


SHEET = "Numbers on one page"


@pytest.mark.slow
def test_the_pdf_is_light(pdf: Path) -> None:
    pages = len([*pdf.parent.rglob("*.html")])
    size = sum(path.stat().st_size for path in pdf.parent.rglob("*.pdf")) / 1e3
    heavy = f"the PDF has {size:.0f} kB, and may have {PDF_BY_PAGE} for each of {pages} pages"
    assert size <= PDF_BY_PAGE * pages, heavy


# Limits in kB, as in docs/adding-a-chapter.md. The book may grow, by pages that stay light.
PAGE = 200  # of HTML without its drawings
DRAWINGS = 120  # of a page, for both widths
SITE_BY_PAGE = 100  # everything but the PDF and the notebooks, over the number of pages
PDF_BY_PAGE = 75
RUNTIME = 12_000  # Python for the browser, which a reader loads only to change inputs


def kilobytes_drawn(page: Path) -> float:
    drawings = re.findall(r'(?s)<svg role="img".*?</svg>', page.read_text(encoding="utf-8"))
    return sum(len(drawing.encode()) for drawing in drawings) / 1e3


def test_the_book_is_light(book: Path) -> None:
    apart = {".zip", ".pdf"}  # the notebooks, and what is not there where pages alone are rendered
    files = [path for path in book.rglob("*") if path.is_file() and path.suffix not in apart]
    sizes = {path.relative_to(book).as_posix(): path.stat().st_size / 1e3 for path in files}
    runtime = [sizes.pop(name) for name in list(sizes) if name.startswith("runtime/")]
    pages = {name: size for name, size in sizes.items() if name.endswith(".html")}
    drawn = {name: kilobytes_drawn(book / name) for name in pages}
    heavy = [
        f"{name} has {size:.0f} kB {of}, and a page may have {limit}"
        for name, whole in pages.items()
        for of, size, limit in (
            ("without its drawings", whole - drawn[name], PAGE),
            ("of drawings", drawn[name], DRAWINGS),
        )
        if size > limit
    ]
    if (size := sum(sizes.values())) > SITE_BY_PAGE * len(pages):
        limit = f"{SITE_BY_PAGE} for each of {len(pages)} pages"
        heavy.append(f"the site has {size:.0f} kB, and may have {limit}")
    if sum(runtime) > RUNTIME:
        heavy.append(f"the runtime has {sum(runtime):.0f} kB, and may have {RUNTIME}")
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    listing = "\n".join(f"{size:8.0f} kB  {name}" for name, size in largest)
    assert not heavy, "; ".join(heavy) + f". The largest files:\n{listing}"


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", ["BLUE", "ORANGE", "GREEN", "PURPLE", "RED"])
def test_colours_stand_out_on_both_grounds(colour: str, ground: str) -> None:
    from figures import style

    first, second = luminance(getattr(style, colour)), luminance(GROUNDS[ground])
    contrast = (max(first, second) + 0.05) / (min(first, second) + 0.05)
    assert contrast >= 4


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
