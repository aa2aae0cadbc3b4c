"""Reads finished pages as a browser would: their links and anchors, and their text."""

from __future__ import annotations

import html
import os
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from press.errors import Problems

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
class Words(HTMLParser):
    """Collects the words of `main` (drawings and controls apart)."""

    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
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


def page_texts(folder: Path) -> dict[str, str]:
    """The words of every page of a rendered book, by its file: for comparing what is published."""
    texts = {}
    for path in sorted(folder.rglob("*.html")):
        reader = Words()
        reader.feed(path.read_text(encoding="utf-8"))
        lines = "".join(reader.words).replace("\u00a0", " ").split("\n")
        kept = (" ".join(line.split()) for line in lines)
        texts[path.relative_to(folder).as_posix()] = "\n".join(line for line in kept if line)
    return texts


ID = re.compile(r'<[^<>]*\sid="([^"]+)"')
ADDRESS = re.compile(r'<(\w+)\b[^<>]*?\s(?:href|src)="([^"]+)"')


def check_site(folder: Path) -> None:
    """Stops if a page links to what is not there, or shows anything from another machine."""
    problems = Problems()
    pages = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.html")
    }
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    ids = {name: Counter(ID.findall(text)) for name, text in pages.items()}
    for name, text in pages.items():
        for twin in (i for i, count in ids[name].items() if count > 1):
            problems.add(name, 0, f"two elements of the page have the id `{twin}`.")
        here = os.path.dirname(name)
        for match in ADDRESS.finditer(text):
            address = html.unescape(match[2])
            if address.startswith(("mailto:", "data:")) or (
                match[1] == "a" and address.startswith("http")
            ):
                continue
            path, anchor = (unquote(part) for part in address.partition("#")[::2])
            target = os.path.normpath(os.path.join(here, path)) if path else name
            why = ""
            if "://" in address or target not in files:
                why = "is not in the site"
            elif anchor and target in pages and anchor not in ids[target]:
                why = "has no such anchor"
            if why:
                line = text.count("\n", 0, match.start()) + 1
                problems.add(name, line, f"the page leads to {address}, which {why}.")
    problems.stop_if_any()
