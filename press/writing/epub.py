"""The EPUB: the whole book as one document of pandoc's, which divides it by chapters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from press.document.dressing import Dressed, Dresser
from press.document.page import PAGE, Page
from press.document.pandoc import Node, attribute, div, empty_document, plain, run_pandoc, string
from press.document.weave import FIGURE
from press.edition import Edition
from press.reading.project import Book

SPACE = {"t": "Space"}
TIME_LIMIT = 300.0  # seconds for a whole book, of which pandoc takes a quarter
STYLE = """
body { line-height: 1.4; }
figure, table { margin: 1em 0; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { padding: 0.15em 0.5em; border-bottom: 1px solid #ccc; text-align: left; }
pre { white-space: pre-wrap; font-size: 0.8em; }
img { max-width: 100%; }
.equation { display: flex; align-items: center; text-align: right; }
.equation math { flex: 1; }
.callout { border-left: 3px solid #888; padding-left: 0.8em; }
"""


class Bound(TypedDict):
    """A page as blocks of the EPUB's document."""

    blocks: list[Node]
    pictures: dict[str, str]  # the name of each picture in it, by its address


def page_epub(page: Page, left_out: list[str]) -> Bound | None:
    """A page for the EPUB, which leaves to the site the pages that the PDF leaves to it."""
    if page.chapter.file in left_out:
        return None
    dresser = _Epub(page, left_out)
    return {"blocks": dresser.dress(page.blocks), "pictures": dresser.pictures}


def write_epub(
    book: Book, edition: Edition, pages: list[Page], texts: list[Bound | None], folder: Path
) -> None:
    blocks: list[Node] = []
    part = -1
    with TemporaryDirectory() as name:
        pictures = Path(name)
        for page, text in zip(pages, texts, strict=True):
            if text is None:
                continue
            if page.chapter.part not in (part, -1):
                title = [string(book.parts[page.chapter.part])]
                blocks.append(
                    {"t": "Header", "c": [1, [f"part-{page.chapter.part}", [], []], title]}
                )
            part = page.chapter.part
            blocks += text["blocks"]
            for source, file in text["pictures"].items():
                if source.startswith(FIGURE):
                    drawing = page.woven.figures[source.removeprefix(FIGURE)].svg
                    (pictures / file).write_text(drawing[drawing.index("<svg") :], "utf-8")
                else:
                    picture = book.root / source.removeprefix(PAGE)
                    (pictures / file).write_bytes(picture.read_bytes())
        (pictures / "style.css").write_text(STYLE, "utf-8")
        # Pandoc names a chapter's file in its title, which readers announce and list.
        template = run_pandoc(["-D", "epub3"], "", TIME_LIMIT)[0]
        titled = template.replace("<title>$pagetitle$</title>", "<title>$title$</title>")
        (pictures / "chapter.xhtml").write_text(titled, "utf-8")
        texts_of_book = {
            "title": book.title,
            "subtitle": book.subtitle,
            "description": book.description,
            "lang": book.lang,
            "date": edition.date,
            "identifier": f"urn:press:{re.sub(r'[^a-z]+', '-', book.title.lower())}",
        }
        meta: dict[str, Any] = {key: _string(text) for key, text in texts_of_book.items() if text}
        listed = {"author": book.authors, "accessModes": ["textual", "visual"]}
        meta |= {key: {"t": "MetaList", "c": list(map(_string, of))} for key, of in listed.items()}
        document = empty_document() | {"blocks": blocks, "meta": meta}
        form = [
            "-f",
            "json",
            "-t",
            "epub3",
            "--mathml",
            "--toc",
            "--toc-depth=3",
            "--split-level=2",
        ]
        sources = [
            f"--css={pictures / 'style.css'}",
            f"--template={pictures / 'chapter.xhtml'}",
            f"--resource-path={pictures}",
        ]
        target = folder / book.epub_name
        run_pandoc([*form, *sources, "-o", str(target)], json.dumps(document), TIME_LIMIT)


def _string(text: str) -> Node:
    return {"t": "MetaString", "c": text}


class _Epub(Dresser):
    """Turns one page's nodes into pandoc's own, with identifiers that the book has once."""

    without = "typst"

    def __init__(self, page: Page, left_out: list[str]) -> None:
        super().__init__(page)
        self.left_out = left_out
        self.pictures: dict[str, str] = {}
        self.below = int(page.chapter.part >= 0)  # a part's title is above its chapters'

    def anchor(self, identifier: str, file: str = "") -> str:
        page = re.sub(r"\W+", "-", (file or self.page.chapter.file).removesuffix(".qmd"))
        return f"{page}--{identifier}" if identifier else ""

    def on_header(self, node: Node) -> list[Node]:
        level, (identifier, _, values), inlines = node["c"]
        number = dict(values).get("number", "")
        words = [*([string(number), SPACE] if number else []), *self.dress(inlines)]
        attributes = [self.anchor(identifier), [], []]
        heading = {"t": "Header", "c": [level + self.below, attributes, words]}
        start = {"t": "Span", "c": [[self.anchor("start"), [], []], []]}
        return [heading, plain(start)] if level == 1 else [heading]

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
        identifier, _, _ = attribute(node)
        inlines = self.dress(node["c"][1])
        if not identifier:
            return inlines
        return [{"t": "Span", "c": [[self.anchor(identifier), [], []], inlines]}]

    def on_image(self, node: Node) -> Node:
        source = node["c"][2][0]
        if source.startswith(FIGURE):
            name = f"{source.removeprefix(FIGURE)}.svg"
        else:
            name = source.removeprefix(PAGE)
        self.pictures[source] = re.sub(r"[^\w.]+", "-", f"{self.anchor('picture')}-{name}")
        return {"t": "Image", "c": [["", [], []], node["c"][1], [self.pictures[source], ""]]}

    def on_rawblock(self, _: Node) -> list[Node]:
        return []

    on_rawinline = on_rawblock

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> Node:
        picture = self.on_image(image)
        picture["c"][1] = [string(values["alt"])]
        words = [plain(*self.captioned(values["label"], caption))]
        figure = {"t": "Figure", "c": [["", [], []], [None, words], [plain(picture)]]}
        return self.named(identifier, figure)

    def captioned(self, label: str, caption: list[Node]) -> list[Node]:
        return [*([string(f"{label}:"), SPACE] if label else []), *self.dress(caption)]

    def table(self, identifier: str, label: str, caption: list[Node], table: Node) -> Node:
        words = self.captioned(label, caption)
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
