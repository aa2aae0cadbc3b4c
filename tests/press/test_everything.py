"""The book that shows every construct, rendered for real: what its pages and its PDF say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pypdf import PdfReader

from tests.page_texts import page_texts
from tests.press.tiny_book import copy_of, page_of, pieces, rendered, search_index
from tests.rows import each_row

pytestmark = pytest.mark.xdist_group("everything")  # one render

AWKWARD = "a|b <c> & $d$ *e* _f_ `g` [h] #i"
MATRIX = "4,096"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rendered(copy_of("everything", tmp_path_factory.mktemp("book")))


@pytest.fixture(scope="module")
def pdf(root: Path) -> PdfReader:
    return PdfReader(root / "_book" / "Everything-at-Once.pdf")


@pytest.fixture(scope="module")
def pdf_text(pdf: PdfReader) -> str:
    return "".join("".join(page.extract_text() for page in pdf.pages).split())


def test_the_site_holds_the_listed_pages_and_what_they_use(root: Path) -> None:
    site = root / "_book"
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    chapters = "prose.html cells.html cells.md callouts.html callouts.md sheet.html sheet.pdf"
    assert {name for name in files if not name.startswith("assets/")} == {
        *(".press.json", "404.html", "index.html", "references.html", "llms.txt"),
        *(f"chapters/{name}" for name in (*chapters.split(), "appendix.html")),
        *("notebooks/callouts.zip", "notebooks/cells.zip", "Everything-at-Once.pdf"),
    }


def test_a_page_that_runs_cells_is_there_as_markdown_with_what_they_gave(root: Path) -> None:
    text = (root / "_book" / "chapters" / "cells.md").read_text(encoding="utf-8")
    assert text.startswith("# 2 Cells and figures\n")
    assert f"The matrix has {MATRIX} entries" in text
    assert "| n | 2<sup>n</sup> |\n|---:|---:|\n| 1 | 2 |" in text
    assert "Three falling curves; the lowest temperature falls the most steeply." in text
    assert "press-" not in text
    listed = (root / "_book" / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# Everything at Once\n")
    assert "\n- [2 Cells and figures](chapters/cells.md): " in listed
    assert "\n- [1 Prose and references](chapters/prose.html)" in listed


SAID = {  # lines of the text of a page, as Quarto prints them
    "index": ["Preface", "For whom"],
    "chapters/prose": [
        "1 Prose and references",
        "1.1 Equations",
        "1.1.1 Third level",
        "Fourth level",
        "1.2 Lists and definitions",
        "Section 1.1.1 belongs to Chapter 1.",
        "Equation 1.1 is used in Figure 2.1 of Section 2.1. "
        "See also Section 1.1, 1.1 and Equation 1.1, Table 1.1.",
        "Table 1.1: Two models, typed as a pipe table, see Equation 1.1.",
        "small 8 75 % a | b",
    ],
    "chapters/cells": [
        "2 Cells and figures",
        f"This comes out as itself: {AWKWARD}.",
        f"2.1.1 A heading with {MATRIX} in it",
        f"Table 2.1: A table with {MATRIX} and {AWKWARD} in its caption.",
        f"awkward {AWKWARD}",
        "number 0.25",
        "Figure 2.2: A drawing from a file, with a caption.",
        f"Figure 2.3: A caption with a computed value: {MATRIX} entries.",
        "Table 2.2: Powers of two, made by a cell.",
        f"Table 2.3: A table of a cell with a computed value: {MATRIX} entries.",
        "printed by the cell",
        "45",
        "Figure 2.1, Table 1.1, Fig. 2.1 and 2.1 are four ways; Chapter 1 is a fifth.",
    ],
    "chapters/callouts": [
        "Note",
        "A title with 42 in it",
        "Important thing",
        "Inner heading",
        "Only on the page.",
    ],
    "chapters/appendix": [
        "Appendix A — Symbols",
        "A.1 More",
        "Appendix A is an appendix, and Table A.1 its table.",
        "See Section A.1.",
    ],
}
PRINTED = [
    "Everything at Once",
    "Figure 2.1: Softmax at three temperatures",
    "Section 1.1.1 belongs to Chapter 1.",
    "Appendix A is an appendix, and Table A.1 its table.",
    f"This comes out as itself: {AWKWARD}.",
    f"Table 2.1: A table with {MATRIX} and {AWKWARD} in its caption.",
    "A title with 42 in it",
    "It is open in the PDF.",
    "Knuth, Donald E. 1984.",
    "probability",  # the text of a figure stays text
    "Only in the PDF.",
]


def test_pages_and_paper_say_what_quarto_prints(root: Path, pdf_text: str) -> None:
    texts = page_texts(root / "_book")
    with each_row() as row:
        for page, lines in SAID.items():
            with row(page):
                assert [
                    line for line in lines if line not in texts[f"{page}.html"].split("\n")
                ] == []
        with row("paper"):
            assert [line for line in PRINTED if "".join(line.split()) not in pdf_text] == []
    assert "Only in the PDF." not in texts["chapters/callouts.html"]
    assert "Onlyonthepage." not in pdf_text
    assert "(Knuth 1984, 99)" in texts["chapters/prose.html"]
    assert "Shannon (1948) began it." in texts["chapters/prose.html"]


def test_the_pdf_has_bookmarks_links_and_no_clock(pdf: PdfReader) -> None:
    titles = [item.title.split() for item in pdf.outline if not isinstance(item, list)]
    assert titles.count(["I", "Text"]) == titles.count(["II", "Structure"]) == 1
    assert pdf.metadata is not None
    assert pdf.metadata.creation_date is None or pdf.metadata.creation_date.year in (1980, 2026)


def test_a_link_of_the_pdf_leads_to_where_typst_itself_says_that_the_heading_is(
    pdf: PdfReader,
) -> None:
    links = [note.get_object() for page in pdf.pages for note in page.get("/Annots", [])]
    assert not [link["/A"] for link in links if link.get("/A", {}).get("/URI", "").count("inside:")]
    places = {
        (link["/Contents"], round(float(link["/Dest"][3])))
        for link in links
        if isinstance(link.get("/Dest"), list)
    }
    for heading in ("sec-third", "sec-equations", "sec-cells"):
        ((page, top),) = (
            (pdf.get_destination_page_number(destination), destination.top)
            for name, destination in pdf.named_destinations.items()
            if name.endswith(f"--{heading}")
        )
        assert (f"page {page + 1}", round(float(top))) in places


def test_citations_lead_to_the_references_which_are_items_of_a_list(root: Path) -> None:
    prose = page_of(root, "chapters/prose")
    assert re.search(r'<a href="\.\./references\.html#ref-knuth1984" class="citation"', prose)
    page = page_of(root, "references")
    assert 'id="ref-shannon1948"' in page
    sources = re.search(r'(?s)<ul id="refs" class="references" role="list">(.*?)</ul>', page)
    assert sources
    assert re.fullmatch(r'(?s)(?:\s*<li id="ref-[^"]+">\s*[^\s<].*?</li>)+\s*', sources[1])


def test_figures_are_drawings_with_text_alternatives_and_the_colour_of_the_page(root: Path) -> None:
    page = page_of(root, "chapters/cells")
    drawings = re.findall(r"<svg role=\"img\"(?: class=\"(\w+)\")? aria-label=\"([^\"]+)\"", page)
    assert drawings == [
        ("", "Three falling curves; the lowest temperature falls the most steeply."),
        ("", "Three boxes joined by arrows."),
        ("wide", "A line that rises from left to right."),
        ("narrow", "A line that rises from left to right."),
    ]
    assert "currentColor" in page
    assert "#1f2328" not in page
    assert re.search(r"<text[^>]*>probability</text>", page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_search_index_has_an_entry_a_section_without_math(root: Path) -> None:
    by_place = {entry["href"]: entry for entry in search_index(root / "_book")["entries"]}
    equations = by_place["chapters/prose.html#sec-equations"]
    assert (equations["section"], equations["title"]) == ("Equations", "Prose and references")
    assert "A variance in a line of text" in equations["text"]
    assert "softmax" not in equations["text"]
    assert MATRIX in by_place["chapters/cells.html#sec-cells"]["text"]


def test_the_navigation_has_parts_numbers_and_neighbours_and_the_foot_leads_on(root: Path) -> None:
    page = page_of(root, "chapters/cells")
    links = re.findall(r"<a\b[^>]*\brel=\"?(?:prev|next)\b[^>]*>", page)
    neighbours = {tuple(sorted(re.findall(r'(?:rel|href)="([^"]*)"', link))) for link in links}
    assert neighbours == {("../chapters/prose.html", "prev"), ("../chapters/callouts.html", "next")}
    assert "Structure" in page
    assert "Appendices" in page
    for name, up in (("index", ""), ("chapters/cells", "../")):
        foot = page_of(root, name).split('<footer class="colophon">')[1]
        assert f'<a href="{up}chapters/sheet.html">All of it</a>' in foot
        assert '<a href="https://example.org/everything/issues/new">Report an error' in foot


def test_a_ledger_is_set_smaller_from_its_first_section_on_and_so_is_fine_print(
    pdf: PdfReader,
) -> None:
    texts = pieces(pdf)

    def size_of(pattern: str, on: str) -> float:
        """The size of the first piece like it, on the page that holds some words."""
        (page,) = {at for at, sheet in enumerate(pdf.pages) if on in sheet.extract_text()}
        return next(size for text, at, _, size in texts if at == page and re.search(pattern, text))

    ledger, fine = "is an appendix", "two and two are four"
    assert size_of(r"^\s*See", on=ledger) < 0.9 * size_of(ledger, on=ledger)
    assert size_of(fine, on=fine) < 0.9 * size_of("This heading has no number", on=fine)


def test_a_sheet_is_a_pdf_of_its_own_that_a4_and_letter_hold(root: Path, pdf: PdfReader) -> None:
    pages = [page.extract_text() for page in pdf.pages]
    (in_the_book,) = (text for text in pages if "Kind A" in text and "thing number" in text)
    assert all(f"Kind {kind}" in in_the_book for kind in "ABCDEFGH")
    (page,) = PdfReader(root / "_book" / "chapters" / "sheet.pdf").pages
    width, height = (float(side) / 72 * 25.4 for side in page.mediabox[2:])  # in mm
    assert width <= 210 + 0.1  # of A4
    assert height <= 279.4 + 0.1  # of Letter
    html = page_of(root, "chapters/sheet")
    assert 'href="../chapters/sheet.pdf"' in html
    sheet = html.partition('<div class="sheet">')[2]  # whose headings are held to what follows
    assert sheet.count("<section>\n<h") == sheet.count("<h2") + sheet.count("<h3") >= 8


def test_a_page_needs_no_other_machine(root: Path) -> None:
    for page in (root / "_book").rglob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page.read_text())
