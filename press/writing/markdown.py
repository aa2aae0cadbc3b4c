"""Each chapter as Markdown, with its computed values, and `llms.txt`, which lists them all.

They are for programs that read: a page's button copies its Markdown, and what fetches `llms.txt`
learns where the others lie. Pages that run no cells stand there by their HTML.
"""

from __future__ import annotations

import re
from pathlib import Path

from press.book_files import room_for
from press.document.page import Page
from press.document.pandoc import Node, plain_text, string
from press.reading.project import Book
from press.writing.html import Text
from press.writing.notebooks import Notebook

LIST = "llms.txt"


def markdown_places(pages: list[Page]) -> list[str]:
    """Return the place of each page's Markdown in the site; "" for one that runs no cells."""
    return [
        str(Path(page.chapter.href).with_suffix(".md")) if page.numbered["runs"] else ""
        for page in pages
    ]


def page_markdown(page: Page, path: str, sources: dict[str, list[Node]]) -> str:
    """The page as Markdown, whose tables are no wider than what they say."""
    if not path:
        return ""
    text = _Reading(page, sources).text()
    rows = re.compile(r"(?m)^\|.*\|$")
    return rows.sub(lambda row: re.sub(r"-{4,}", "---", re.sub(r" {2,}", " ", row[0])), text)


def write_markdown(
    book: Book,
    pages: list[Page],
    texts: list[Text],
    places: list[str],
    markdown: list[str],
    folder: Path,
) -> None:
    lines = [f"# {book.title}", *([f"\n> {book.description}"] if book.description else []), ""]
    for page, text, path, page_text in zip(pages, texts, places, markdown, strict=True):
        number = f"{page.number} " if page.number else ""
        summary = f": {text['summary']}" if text["summary"] else ""
        address = f"{book.site}{path or page.chapter.href}"
        if page.listed:
            lines.append(f"- [{number}{text['title']}]({address}){summary}")
        if path:
            room_for(folder, path).write_text(page_text, encoding="utf-8")
    (folder / LIST).write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Reading(Notebook):
    """A page to read: what cells gave stands in their place, and a figure is its words."""

    def figure(
        self, identifier: str, values: dict[str, str], caption: list[Node], image: Node
    ) -> list[Node]:
        seen = values.get("alt") or plain_text(image["c"][1])
        alternative = [{"t": "Para", "c": [string(seen)]}] if seen else []
        return [*self.caption(values["label"], caption), *alternative]

    def cell(self, number: int, blocks: list[Node]) -> list[Node]:
        return self.dress(blocks)
