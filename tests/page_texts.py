"""Reads finished pages as a browser would: the words of a rendered book."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

LEFT_OUT = {"svg", "script", "style", "nav", "footer"}
BLOCKS = {"p", "tr", "li", "dt", "dd", "div", "figcaption", "pre", "table"}
NEW_LINE = BLOCKS | {"h1", "h2", "h3", "h4"}


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
    for path in sorted(set(folder.rglob("*.html")) - {folder / "404.html"}):
        reader = Words()
        reader.feed(path.read_text(encoding="utf-8"))
        lines = "".join(reader.words).replace("\u00a0", " ").split("\n")
        kept = (" ".join(line.split()) for line in lines)
        texts[path.relative_to(folder).as_posix()] = "\n".join(line for line in kept if line)
    return texts
