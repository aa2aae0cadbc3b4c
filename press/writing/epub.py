"""The EPUB: the whole book as one document of pandoc's, which divides it by chapters."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import quote

from press.book_files import THEME
from press.document.dressing import Dressed, Dresser
from press.document.page import PAGE, Page
from press.document.pandoc import Node, attribute, div, empty_document, plain, run_pandoc, string
from press.document.weave import FIGURE
from press.edition import Edition
from press.reading.project import Book

SPACE = {"t": "Space"}
TIME_LIMIT = 300.0  # seconds for a whole book, of which pandoc takes a quarter
FORM = ["-f", "json", "-t", "epub3", "--mathml", "--toc", "--toc-depth=3", "--split-level=2"]


def page_epub(page: Page, left_out: list[str]) -> list[Node]:
    """A page as blocks of the EPUB; none of what the PDF leaves to the site."""
    return [] if page.chapter.file in left_out else _Epub(page, left_out).dress(page.blocks)


def write_epub(
    book: Book, edition: Edition, pages: list[Page], texts: list[list[Node]], folder: Path
) -> None:
    blocks: list[Node] = []
    part = -1
    for page, text in zip(pages, texts, strict=True):
        if text and page.chapter.part not in (part, -1):
            title = [string(book.parts[page.chapter.part])]
            blocks.append(_heading(1, f"part-{page.chapter.part}", title))
        part = page.chapter.part if text else part
        blocks += text
    about = {name: getattr(book, name) for name in ("title", "subtitle", "description", "lang")}
    about |= {"author": book.authors, "date": edition.date, "accessModes": ["textual", "visual"]}
    about["identifier"] = f"urn:press:{re.sub(r'[^a-z]+', '-', book.title.lower())}"
    meta = {key: _told(value) for key, value in about.items() if value}
    document = json.dumps(empty_document() | {"blocks": blocks, "meta": meta})
    # Pandoc names a chapter's file in its title, which readers announce and list.
    template = run_pandoc(["-D", "epub3"], "", TIME_LIMIT)[0]
    with NamedTemporaryFile("w", suffix=".xhtml", encoding="utf-8") as titled:
        print(template.replace("<title>$pagetitle$<", "<title>$title$<"), file=titled, flush=True)
        looks = [f"--css={THEME / 'epub.css'}", f"--template={titled.name}"]
        target = [f"--resource-path={book.root}", "-o", str(folder / book.epub_name)]
        run_pandoc([*FORM, *looks, *target], document, TIME_LIMIT)


def _told(value: str | list[str]) -> Node:
    if isinstance(value, str):
        return {"t": "MetaString", "c": value}
    return {"t": "MetaList", "c": [_told(text) for text in value]}


def _heading(level: int, identifier: str, words: list[Node]) -> Node:
    return {"t": "Header", "c": [level, [identifier, [], []], words]}


def _spanned(identifier: str, inlines: list[Node]) -> Node:
    return {"t": "Span", "c": [[identifier, [], []], inlines]}


class _Epub(Dresser):
    """Turns one page's nodes into pandoc's own, with identifiers that the book has once."""

    without = "typst"

    def __init__(self, page: Page, left_out: list[str]) -> None:
        super().__init__(page)
        self.left_out = left_out
        self.below = int(page.chapter.part >= 0)  # a part's title is above its chapters'

    def anchor(self, identifier: str, file: str = "") -> str:
        page = re.sub(r"\W+", "-", (file or self.page.chapter.file).removesuffix(".qmd"))
        return f"{page}--{identifier}" if identifier else ""

    def on_header(self, node: Node) -> list[Node]:
        level, (identifier, _, values), inlines = node["c"]
        words = self.led_by(dict(values).get("number", ""), inlines)
        heading = _heading(level + self.below, self.anchor(identifier), words)
        return [heading, plain(_spanned(self.anchor("start"), []))] if level == 1 else [heading]

    def on_link(self, node: Node) -> list[Node]:
        target = node["c"][2][0]
        words = self.dress(node["c"][1])
        if target.startswith(PAGE):
            file, _, anchor = target.removeprefix(PAGE).partition("#")
            if not file.endswith(".qmd") or file in self.left_out:
                return words  # only the site carries it
            target = f"#{self.anchor(anchor or 'start', file)}"
        return [{"t": "Link", "c": [["", [], []], words, [target, ""]]}]

    def on_span(self, node: Node) -> list[Node]:
        inlines = self.dress(node["c"][1])
        identifier = self.anchor(attribute(node)[0])
        return [_spanned(identifier, inlines)] if identifier else inlines

    def on_image(self, node: Node) -> Node:
        source = node["c"][2][0]
        target = quote(source.removeprefix(PAGE))
        if source.startswith(FIGURE):  # of which pandoc makes a file
            drawing = self.page.woven.figures[source.removeprefix(FIGURE)].svg
            packed = b64encode(drawing[drawing.index("<svg") :].encode()).decode()
            target = f"data:image/svg+xml;base64,{packed}"
        return {"t": "Image", "c": [["", [], []], node["c"][1], [target, ""]]}

    def on_rawblock(self, _: Node) -> list[Node]:
        return []

    on_rawinline = on_rawblock

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> Node:
        picture = self.on_image(image)
        picture["c"][1] = [string(values["alt"])]
        words = [plain(*self.led_by(values["label"] and f"{values['label']}:", caption))]
        figure = {"t": "Figure", "c": [["", [], []], [None, words], [plain(picture)]]}
        return self.named(identifier, figure)

    def led_by(self, label: str, words: list[Node]) -> list[Node]:
        return [*([string(label), SPACE] if label else []), *self.dress(words)]

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> Node:
        words = self.led_by(label and f"{label}:", caption)
        held = [None, [plain(*words)] if words else []]
        grid = {"t": "Table", "c": [["", [], []], held, *self.dress(table["c"][2:])]}
        return self.named(identifier, grid)

    def named(self, identifier: str, block: Node) -> Node:
        """Put the block in a Div, since pandoc finds no figure's own id from another chapter."""
        return div(self.anchor(identifier), [], [block])

    def equation(self, identifier: str, number: str, math: list[Node]) -> Node:
        shown = [SPACE, string(number)] if identifier else []
        return div(self.anchor(identifier), ["equation"], [plain(*self.dress(math), *shown)])

    def callout(self, kind: str, folded: bool, title: list[Node], body: list[Node]) -> Node:
        head = plain({"t": "Strong", "c": self.dress(title)})
        return div("", ["callout", kind], [head, *self.dress(body)])

    def block(self, identifier: str, classes: list[str], blocks: list[Node]) -> Dressed:
        inner = self.dress(blocks)
        return div(self.anchor(identifier), [], inner) if identifier else inner
