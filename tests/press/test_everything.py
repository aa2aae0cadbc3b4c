"""The book that shows every construct, rendered for real: what its pages and its PDF say."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pypdf import PdfReader

from press.build import render
from tests.page_texts import page_texts
from tests.press.tiny_book import copy_of_everything, search_entries

pytestmark = pytest.mark.xdist_group("everything")  # one render

AWKWARD = "a|b <c> & $d$ *e* _f_ `g` [h] #i"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_of_everything(tmp_path_factory.mktemp("book"))
    render(root)
    return root / "_book"


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[str, str]:
    return page_texts(site)


@pytest.fixture(scope="module")
def pdf(site: Path) -> PdfReader:
    return PdfReader(site / "Everything-at-Once.pdf")


@pytest.fixture(scope="module")
def pdf_text(pdf: PdfReader) -> str:
    return " ".join(" ".join(page.extract_text() for page in pdf.pages).split()).replace(" ", " ")


def test_the_site_holds_the_listed_pages_and_what_they_use(site: Path) -> None:
    files = {p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()}
    pages = {f for f in files if not f.startswith("assets/")}
    chapters = "prose.html cells.html cells.md callouts.html callouts.md sheet.html sheet.pdf"
    assert pages == {
        *(".press.json", "404.html", "index.html", "references.html", "llms.txt"),
        *(f"chapters/{name}" for name in (*chapters.split(), "appendix.html")),
        *("notebooks/callouts.zip", "notebooks/cells.zip", "Everything-at-Once.pdf"),
    }


def test_a_page_that_runs_cells_is_there_as_markdown_with_what_they_gave(site: Path) -> None:
    text = (site / "chapters" / "cells.md").read_text(encoding="utf-8")
    assert text.startswith("# 2 Cells and figures\n")
    assert "The matrix has 4,096 entries" in text
    assert "| n | 2<sup>n</sup> |\n|---:|---:|\n| 1 | 2 |" in text
    assert "Three falling curves; the lowest temperature falls the most steeply." in text
    assert "press-" not in text
    listed = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert listed[0] == "# Everything at Once"
    assert any(line.startswith("- [2 Cells and figures](chapters/cells.md): ") for line in listed)
    assert any(
        line.startswith("- [1 Prose and references](chapters/prose.html)") for line in listed
    )


# A page and a line of its text, as Quarto prints it.
SAID = [
    ("index.html", "Preface"),
    ("index.html", "For whom"),
    ("chapters/prose.html", "1 Prose and references"),
    ("chapters/prose.html", "1.1 Equations"),
    ("chapters/prose.html", "1.1.1 Third level"),
    ("chapters/prose.html", "Fourth level"),
    ("chapters/prose.html", "1.2 Lists and definitions"),
    ("chapters/prose.html", "Section 1.1.1 belongs to Chapter 1."),
    ("chapters/prose.html", "Equation 1.1 is used in Figure 2.1 of Section 2.1. "
     "See also Section 1.1, 1.1 and Equation 1.1, Table 1.1."),
    ("chapters/prose.html", "Table 1.1: Two models, typed as a pipe table, see Equation 1.1."),
    ("chapters/prose.html", "small 8 75 % a | b"),
    ("chapters/cells.html", "2 Cells and figures"),
    ("chapters/cells.html", f"This comes out as itself: {AWKWARD}."),
    ("chapters/cells.html", "2.1.1 A heading with 4,096 in it"),
    ("chapters/cells.html", f"Table 2.1: A table with 4,096 and {AWKWARD} in its caption."),
    ("chapters/cells.html", f"awkward {AWKWARD}"),
    ("chapters/cells.html", "number 0.25"),
    ("chapters/cells.html", "Figure 2.2: A drawing from a file, with a caption."),
    ("chapters/cells.html", "Figure 2.3: A caption with a computed value: 4,096 entries."),
    ("chapters/cells.html", "Table 2.2: Powers of two, made by a cell."),
    ("chapters/cells.html", "Table 2.3: A table of a cell with a computed value: 4,096 entries."),
    ("chapters/cells.html", "printed by the cell"),
    ("chapters/cells.html", "45"),
    ("chapters/callouts.html", "Note"),
    ("chapters/callouts.html", "A title with 42 in it"),
    ("chapters/callouts.html", "Important thing"),
    ("chapters/callouts.html", "Inner heading"),
    ("chapters/callouts.html", "Only on the page."),
    ("chapters/appendix.html", "Appendix A — Symbols"),
    ("chapters/appendix.html", "A.1 More"),
    ("chapters/appendix.html", "Appendix A is an appendix, and Table A.1 its table."),
    ("chapters/appendix.html", "See Section A.1."),
]  # fmt: skip


@pytest.mark.parametrize(("page", "line"), SAID)
def test_a_page_says(page: str, line: str, texts: dict[str, str]) -> None:
    assert line in texts[page].split("\n")


def test_references_with_capitals_and_prefixes_print_as_quarto_prints_them(
    texts: dict[str, str],
) -> None:
    line = "Figure 2.1, Table 1.1, Fig. 2.1 and 2.1 are four ways; Chapter 1 is a fifth."
    assert line in texts["chapters/cells.html"].split("\n")


def test_what_is_for_the_pdf_is_not_on_the_page(texts: dict[str, str], pdf_text: str) -> None:
    assert "Only in the PDF." not in texts["chapters/callouts.html"]
    assert "Only in the PDF." in pdf_text
    assert "Only on the page." not in pdf_text


@pytest.mark.parametrize(
    "words",
    [
        "Everything at Once",
        "Figure 2.1: Softmax at three temperatures",
        "Section 1.1.1 belongs to Chapter 1.",
        "Appendix A is an appendix, and Table A.1 its table.",
        f"This comes out as itself: {AWKWARD}.",
        f"Table 2.1: A table with 4,096 and {AWKWARD} in its caption.",
        "A title with 42 in it",
        "It is open in the PDF.",
        "Knuth, Donald E. 1984.",
        "probability",  # the text of a figure stays text
    ],
)
def test_the_pdf_says_the_same(words: str, pdf_text: str) -> None:
    assert words.replace(" ", "") in pdf_text.replace(" ", "")


def test_the_pdf_has_bookmarks_links_and_no_clock(pdf: PdfReader) -> None:
    titles = [item.title for item in pdf.outline if not isinstance(item, list)]
    assert [title.split() for title in titles].count(["I", "Text"]) == 1
    assert [title.split() for title in titles].count(["II", "Structure"]) == 1
    assert any("/Annots" in page for page in pdf.pages)
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


def test_citations_lead_to_the_references(site: Path, texts: dict[str, str]) -> None:
    prose = (site / "chapters/prose.html").read_text()
    assert re.search(r'<a href="\.\./references\.html#ref-knuth1984" class="citation"', prose)
    assert "(Knuth 1984, 99)" in texts["chapters/prose.html"]
    assert "Shannon (1948) began it." in texts["chapters/prose.html"]
    assert 'id="ref-shannon1948"' in (site / "references.html").read_text()


def test_sources_are_items_of_a_list(site: Path) -> None:
    page = (site / "references.html").read_text(encoding="utf-8")
    sources = re.search(r'(?s)<ul id="refs" class="references" role="list">(.*?)</ul>', page)
    assert sources
    assert re.fullmatch(r'(?s)(?:\s*<li id="ref-[^"]+">\s*[^\s<].*?</li>)+\s*', sources[1])


def test_figures_are_drawings_with_text_alternatives_and_the_colour_of_the_page(site: Path) -> None:
    page = (site / "chapters/cells.html").read_text()
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


def test_ids_of_drawings_do_not_meet(site: Path) -> None:
    ids = re.findall(r'\bid="([^"]+)"', (site / "chapters/cells.html").read_text())
    assert len(ids) == len(set(ids))


def test_the_search_index_has_an_entry_a_section_without_math(site: Path) -> None:
    by_place = {entry["href"]: entry for entry in search_entries(site)}
    equations = by_place["chapters/prose.html#sec-equations"]
    assert equations["section"] == "Equations"
    assert equations["title"] == "Prose and references"
    assert "A variance in a line of text" in equations["text"]
    assert "softmax" not in equations["text"]
    assert "4,096" in by_place["chapters/cells.html#sec-cells"]["text"]


def test_the_navigation_has_parts_numbers_and_neighbours(site: Path) -> None:
    class Links(HTMLParser):
        read: list[tuple[str, str]]

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            values = dict(attrs)
            if tag == "a" and values.get("rel") in ("prev", "next"):
                self.read.append((str(values["rel"]), str(values["href"])))

    links = Links()
    links.read = []
    page = (site / "chapters/cells.html").read_text()
    links.feed(page)
    assert links.read == [("prev", "../chapters/prose.html"), ("next", "../chapters/callouts.html")]
    assert "Structure" in page
    assert "Appendices" in page


def test_the_foot_of_each_page_leads_on(site: Path) -> None:
    for page, up in (("index.html", ""), ("chapters/cells.html", "../")):
        foot = (site / page).read_text().split('<footer class="colophon">')[1]
        assert f'<a href="{up}chapters/sheet.html">All of it</a>' in foot
        assert '<a href="https://example.org/everything/issues/new">Report an error' in foot


def test_what_is_to_fit_on_one_page_does_in_the_pdf(pdf: PdfReader) -> None:
    pages = [page.extract_text() for page in pdf.pages]
    (sheet,) = (text for text in pages if "Kind A" in text and "thing number" in text)
    assert all(f"Kind {kind}" in sheet for kind in "ABCDEFGH")


def sizes(pdf: PdfReader, words: str) -> dict[str, float]:
    """The size of each piece of the page that holds these words."""
    (page,) = (page for page in pdf.pages if words in page.extract_text())
    size_of: dict[str, float] = {}

    def note(text: str, _: object, matrix: list[float], __: object, size: float) -> None:
        size_of[text.strip()] = abs(size * matrix[3])

    page.extract_text(visitor_text=note)
    return size_of


def test_a_ledger_is_set_smaller_from_its_first_section_on(pdf: PdfReader) -> None:
    size_of = sizes(pdf, "is an appendix")
    before = next(size for text, size in size_of.items() if "is an appendix" in text)
    after = next(size for text, size in size_of.items() if text.startswith("See"))
    assert after < 0.9 * before


def test_fine_print_is_set_smaller(pdf: PdfReader) -> None:
    size_of = sizes(pdf, "two and two are four")
    fine = next(size for text, size in size_of.items() if "two and two are four" in text)
    text = next(size for text, size in size_of.items() if "This heading has no number" in text)
    assert fine < 0.9 * text


def test_a_heading_of_a_sheet_is_held_to_what_follows_it(site: Path) -> None:
    _, _, sheet = (site / "chapters" / "sheet.html").read_text().partition('<div class="sheet">')
    assert sheet.count("<section>\n<h") == sheet.count("<h2") + sheet.count("<h3") >= 8


def test_a_sheet_is_a_pdf_of_its_own_that_a4_and_letter_hold(site: Path) -> None:
    (page,) = PdfReader(site / "chapters" / "sheet.pdf").pages
    paper = {"A4": (210, 297), "Letter": (215.9, 279.4)}  # in mm
    size = [float(side) / 72 * 25.4 for side in page.mediabox[2:]]
    for width, height in paper.values():
        assert size[0] <= width + 0.1
        assert size[1] <= height + 0.1
    assert 'href="../chapters/sheet.pdf"' in (site / "chapters" / "sheet.html").read_text()


def test_a_page_needs_no_other_machine(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page.read_text())
