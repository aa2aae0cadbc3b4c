"""Reads finished pages as a browser would: their links and anchors, and their text."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from .errors import Problems

LEFT_OUT = {"svg", "script", "style", "nav", "footer"}
NEW_LINE = {
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "tr",
    "li",
    "dt",
    "dd",
    "div",
    "figcaption",
    "pre",
    "table",
}


@dataclass
class Reader(HTMLParser):
    """Collects the ids, the addresses and the words of `main` (drawings and controls apart)."""

    ids: list[str] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        for name in ("href", "src"):
            if found.get(name) and not (tag == "a" and (found[name] or "").startswith("http")):
                self.links.append((self.getpos()[0], str(found[name])))
        if tag == "main" or tag in LEFT_OUT or tag == "pre":
            self.inside.append(tag)
        if tag in NEW_LINE:
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside[:1] == ["main"] and not LEFT_OUT & set(self.inside):
            self.words.append(data if self.inside[-1] == "pre" else data.replace("\n", " "))


def read_page(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def page_texts(folder: Path) -> dict[str, str]:
    """The words of every page of a rendered book, by its file: for comparing what is published."""
    texts = {}
    for path in sorted(folder.rglob("*.html")):
        lines = "".join(read_page(path).words).replace("\u00a0", " ").split("\n")
        kept = (" ".join(line.split()) for line in lines)
        texts[path.relative_to(folder).as_posix()] = "\n".join(line for line in kept if line)
    return texts


def check_site(folder: Path) -> None:
    """Stops if a page links to what is not there, or shows anything from another machine."""
    problems = Problems()
    pages = {
        path.relative_to(folder).as_posix(): read_page(path) for path in folder.rglob("*.html")
    }
    for name, page in pages.items():
        for twin in {i for i in page.ids if page.ids.count(i) > 1}:
            problems.add(name, 0, f"two elements of the page have the id `{twin}`.")
        for line, address in page.links:
            if address.startswith(("mailto:", "data:")):
                continue
            path, _, anchor = unquote(address).partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if "://" in address or not (folder / target).is_file():
                problems.add(name, line, f"the page leads to {address}, which is not in the site.")
            elif anchor and target in pages and anchor not in pages[target].ids:
                problems.add(name, line, f"the page leads to {address}, which has no such anchor.")
    problems.stop_if_any()
