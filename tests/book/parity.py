"""Text that an engine printed, page by page and chapter by chapter, in a form that compares.

Two engines render the book: press and Quarto. What a reader takes for its text stays in: words,
numbers, captions, cross-references and where they lead, formulas (as TeX), descriptions of figures.
Whatever is left out or folded stands here with its reason.
"""

from __future__ import annotations

import difflib
import html
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

from pypdf import PageObject, PdfReader

# --- pages ---

VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
BLOCKS = {"blockquote", "dd", "div", "dl", "dt", "figcaption", "figure", "hr", "li", "ol", "p"}
BLOCKS |= {"pre", "section", "summary", "table", "td", "th", "tr", "ul"}
BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6"}
FURNITURE = {"nav", "script", "style", "button", "footer"}  # controls and frame of each engine
FURNITURE_CLASSES = {
    "part-of",
    "screen-reader-only",  # Quarto names the kind of a titled callout to screen readers alone
    "description",  # Quarto prints the book's description on the first page, press in its head
    "live-note",  # which press writes where a live figure has its button
    "reading-time",  # press alone counts the words of a chapter
    "quarto-title-meta-heading",  # the word "Author" before the author
}

# The first page: press has its title below the cover, and on the cover a door to the PDF.
COVER = ("Preface", "PDF of the whole book")


@dataclass
class PageText(HTMLParser):
    """The text of a page's `main`, a block a line, and its links."""

    page: str  # "chapters/roofline.html", to resolve links from
    lines: list[str] = field(default_factory=lambda: [""])
    links: list[str] = field(default_factory=list)  # "Figure 1.1 to chapters/x.html#fig-a"

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []  # each open element, and whether it is left out
        self.target = self.link_text = ""

    @property
    def left_out(self) -> bool:
        return not any(tag == "main" for tag, _ in self.open) or any(out for _, out in self.open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in BLOCKS:
            self.lines.append("")
        narrow = (
            "narrow" in attributes.get("class", "").split()
        )  # press draws a figure again for phones
        if not self.left_out and tag in ("img", "svg") and not narrow:
            # A figure is its description: one engine links to the drawing, the other holds it.
            self.lines += [f"[figure: {attributes.get('alt') or attributes.get('aria-label')}]", ""]
        if tag == "a" and not self.left_out:
            self.target, self.link_text = attributes.get("href", ""), ""
        if tag not in VOID:
            classes = set(attributes.get("class", "").split())
            out = (
                tag in FURNITURE
                or tag == "svg"
                or tag == "annotation"  # the TeX of a formula, which Quarto keeps beside its signs
                # Quarto repeats the references of each chapter there, unseen, for its previews.
                or "display: none" in attributes.get("style", "")
                or bool(classes & FURNITURE_CLASSES)
            )
            self.open.append((tag, out))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if tag in BLOCKS:
            self.lines.append("")
        if tag == "a" and (text := clean(self.link_text)) and not self.left_out:
            self.links.append(f"{text} to {self.resolved(self.target, text)}")
        while self.open:
            if self.open.pop()[0] == tag:
                return

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.open]
        if self.left_out:
            return
        if "math" in tags:
            data = "".join(data.split())
        if "pre" in tags:
            first, *more = data.replace(" ", "␣").split("\n")  # a space in code counts
            self.lines[-1] += first
            self.lines += more
        else:
            self.lines[-1] += data
        self.link_text += data

    def resolved(self, target: str, text: str) -> str:
        """Return the address that a link leads to, from the root of the site."""
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            return target
        if re.match(r"(Chapter|Appendix)\s", text):
            anchor = ""  # press leads to the label of the chapter's title, Quarto to its page
        folder = posixpath.dirname(self.page)
        path = posixpath.normpath(posixpath.join(folder, path)) if path else self.page
        return f"{path}#{anchor}" if anchor else path


def clean(text: str) -> str:
    text = " ".join(text.split())
    # Quarto writes an equation's number into the formula, press beside it.
    text = re.sub(r"\s*\((\w+\.\d+)\)$", r" (\1)", text)
    text = text.replace("\N{NON-BREAKING HYPHEN}", "-")
    # Quarto tells works of one first author and year apart on each page, press in the whole book:
    # by more of their authors, by initials or by a letter.
    text = re.sub(r"\b((?:19|20)\d\d)[a-z]\b", r"\1", text)
    text = re.sub(r"\b(?:[A-Z]\. )+(?=\w+,? (?:and \w+|et al\.))", "", text)
    more = r"(\w+)(?:(?:, (?:and )?\w+)+,?(?: et al\.)?|,? et al\.) (\(?(?:19|20)\d\d)\b"
    return re.sub(more, r"\1 et al. \2", text)


def read_page(file: Path, page: str) -> PageText:
    text = PageText(page)
    text.feed(file.read_text(encoding="utf-8"))
    text.lines = [line for line in map(clean, text.lines) if line]
    if page == "index.html":
        text.lines = [line for line in text.lines if line not in COVER]
        text.links = [link for link in text.links if not link.endswith(".pdf")]
    return text


def page_differences(press: Path, quarto: Path) -> list[str]:
    """Return the differences of two rendered sites, each with its page."""
    files = [
        {file.relative_to(site).as_posix() for file in site.rglob("*.html")} - {"404.html"}
        for site in (press, quarto)
    ]
    differences = [f"{page} is in one site only" for page in sorted(files[0] ^ files[1])]
    if not files[0] & files[1]:
        differences.append("the sites have no page in common")
    for page in sorted(files[0] & files[1]):
        ours, theirs = read_page(press / page, page), read_page(quarto / page, page)
        differences += changes(page, ours.lines, theirs.lines)
        differences += changes(f"{page} (links)", ours.links, theirs.links)
    return differences


def changes(where: str, press: list[str], quarto: list[str]) -> list[str]:
    changed = difflib.unified_diff(press, quarto, n=0, lineterm="")
    engines = {"-": "press", "+": "quarto"}
    return [
        f"{where}, {engines[line[0]]}: {line[1:]}"
        for line in list(changed)[2:]
        if not line.startswith("@@")
    ]


# --- PDFs ---

HEAD, FOOT = 780, 48  # the running heads of both engines stand above, the page numbers below
SMALL = 8.6  # points: larger than the footnotes of both engines, smaller than their text
LEFT_OUT_FONTS = re.compile(
    # Formulas are compared as TeX on the pages; two versions of typst set their glyphs in different
    # orders. Quarto draws a callout's icon with a letter of an icon font.
    r"Math|FontAwesome"
)
EQUATION_NUMBER = re.compile(r"\s*\(\w+\.\d+\)\s*")  # Quarto sets it in the font of the formula


RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
NUMBER = re.compile(r"^(\d+|[A-Z])\.? ")  # of a chapter or an appendix
LABEL = re.compile(r"(Table|Figure|Equation)\d+\.(?=\d)")


@dataclass(frozen=True)
class Piece:
    text: str
    size: float
    x: float
    font: str = ""


def pieces(page: PageObject) -> list[Piece]:
    """The text of a page in the order in which it was set, without head and foot."""
    page_pieces: list[Piece] = []

    def take(text: str, matrix: Any, text_matrix: Any, font: Any, size: float) -> None:
        x, height = matrix[0] * text_matrix[4] + matrix[4], matrix[3] * text_matrix[5] + matrix[5]
        name = (font or {}).get("/BaseFont", "")
        left_out = LEFT_OUT_FONTS.search(name)
        if FOOT < height < HEAD and (not left_out or EQUATION_NUMBER.fullmatch(text)):
            page_pieces.append(Piece(text, size, x, name))

    page.extract_text(visitor_text=take)
    return [piece for piece in page_pieces if piece.text.strip()]


def read_pdf(file: Path, titles: list[str], parts: list[str], headers: list[str]) -> dict[str, str]:
    """The letters of each chapter, its footnotes last, without spaces and hyphens.

    The two PDFs break lines and pages at different places, so spaces, hyphens at the ends of lines
    and the places of footnotes differ; so do title page, contents and the pages that open a part.
    A table's header is printed again after each break, and is left out wherever it stands.
    """
    reader = PdfReader(file)
    # A section may have a chapter's name: the chapter stands higher in the outline, or after the
    # sheet, whose sections are as high.
    marks = [mark for mark in outline(reader, reader.outline) if mark[1] in titles]
    starts = {
        min((depth, -page) for depth, name, page in marks if name == title)[1]: title
        for title in {mark[1] for mark in marks}
    }
    openings = {letters(part) for part in [*parts, "Appendices"]}
    texts: dict[str, tuple[list[str], list[str]]] = {}
    chapter = ""
    note = 1
    for number, page in enumerate(reader.pages):
        chapter = starts.get(-number, chapter)
        text = pieces(page)
        large = letters("".join(piece.text for piece in text if piece.size > 20))
        opens_part = re.sub("^[IVX]+|[IVX]+$", "", large) in openings
        if not chapter or opens_part:
            continue
        body, notes = texts.setdefault(chapter, ([], []))
        for piece, following in pairwise([*text, Piece("", 0, 0)]):
            # A footnote begins with its number, close to its first word and as small as that.
            small = piece.size < SMALL and "Mono" not in piece.font
            if (
                piece.text.translate(RAISED) == str(note)
                and small
                and 0 < following.x - piece.x < 12
            ):
                note += 1
                body = notes
            body.append(piece.text)
    return {
        chapter: without(headers, letters("".join(body + notes)))
        for chapter, (body, notes) in texts.items()
    }


def without(headers: list[str], text: str) -> str:
    for header in headers:
        text = text.replace(header, "")
    return text


def table_headers(site: Path) -> list[str]:
    """The letters of each header of a table on the pages, the longest first."""
    rows = {
        letters(html.unescape(re.sub(r"<[^>]+>", "", row)))
        for page in site.rglob("*.html")
        for row in re.findall(r"<thead>(.*?)</thead>", page.read_text(encoding="utf-8"), re.DOTALL)
    }
    return sorted((row for row in rows if len(row) > 8), key=len, reverse=True)


def folded_titles(site: Path) -> list[str]:
    """The letters of the titles of notes that pages fold, which Quarto alone prints on paper."""
    note = (
        r'callout-note"><details><summary class="callout-title">.*?'
        r'<span class="callout-title-text">(.*?)</span></summary>'
    )
    return [
        letters(html.unescape(re.sub(r"<[^>]+>", "", title)))
        for page in site.rglob("*.html")
        for title in re.findall(note, page.read_text(encoding="utf-8"), re.DOTALL)
    ]


def outline(reader: PdfReader, items: list[Any], depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """The bookmarks of a PDF: depth, title without its number, and page."""
    for item in items:
        if isinstance(item, list):
            yield from outline(reader, item, depth + 1)
        else:
            title = NUMBER.sub("", str(item.title))
            yield depth, title, reader.get_destination_page_number(item) or 0


def letters(text: str) -> str:
    # Whether a raised digit is a character of its own is up to the version of typst.
    text = unicodedata.normalize("NFC", text).translate(RAISED)
    text = re.sub(r"[\s\u00ad\u200b-]+", "", text)
    text = re.sub(r"Equation\((\w+\.\d+)\)", r"Equation\1", text)  # Quarto keeps the brackets,
    text = re.sub(r"(Table|Figure|Equation)0\.", r"\1", text)  # counts the preface as chapter 0
    return re.sub(r"(^|Appendix)([A-Z])\.", r"\1\2", text)  # and prints a dot after appendices


def pdf_differences(
    press: Path, quarto: Path, parts: list[str], left_out: Sequence[str] = ()
) -> list[str]:
    """The first place in each chapter at which two PDFs differ, but for chapters `left_out`."""
    reader = PdfReader(quarto)
    titles = [title for depth, title, _ in outline(reader, reader.outline) if not depth]
    titles = [title for title in titles if title not in ("Appendices", *left_out)]
    headers = table_headers(press.parent) + folded_titles(press.parent)
    headings = [*titles, *left_out]
    ours, theirs = (read_pdf(file, headings, parts, headers) for file in (press, quarto))
    differences = [] if titles else [f"{quarto.name} of Quarto has no bookmarks"]
    unnumbered = {str(item.title) for item in reader.outline if not isinstance(item, list)} & set(
        titles
    )
    for title in titles:
        one, other = ours.get(title, ""), theirs.get(title, "")
        if title in unnumbered:  # Quarto's tables there bear the number of the chapter before
            one, other = LABEL.sub(r"\1", one), LABEL.sub(r"\1", other)
        if one != other:
            same = (a == b for a, b in zip(one, other, strict=False))
            at = next((i for i, equal in enumerate(same) if not equal), min(len(one), len(other)))
            near = slice(max(0, at - 30), at + 30)
            differences.append(f"PDF, {title}: press …{one[near]}…, quarto …{other[near]}…")
    return differences
