"""After `make book`: every page that `_quarto.yml` names is in `_book`, and the PDF, with text.

Knows nothing of the engine that rendered it, so it holds for press and for Quarto alike.
"""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "_book"


def chapters(entries: list[Any]) -> list[str]:
    """The .qmd files of a `chapters:` list, those of its parts included, in reading order."""
    files: list[str] = []
    for entry in entries:
        if isinstance(entry, dict):
            files += chapters([entry.get("part", ""), entry.get("file", ""), entry.get("href", "")])
            files += chapters(entry.get("chapters", []))
        elif entry.endswith(".qmd"):
            files.append(entry)
    return files


def listed_in(name: str) -> dict[str, Any]:
    """What another file adds to the book."""
    added: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))["book"]
    return added


class MainText(HTMLParser):
    """The words in the <main> of a page: what it says, without the navigation around it."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open = {"main": 0, "script": 0, "style": 0}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self.open:
            self.open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            self.open[tag] -= 1

    def handle_data(self, data: str) -> None:
        if self.open["main"] and not self.open["script"] and not self.open["style"]:
            self.words += data.split()


def page_problems(names: list[str]) -> list[str]:
    problems = []
    for name in names:
        page = BOOK / Path(name).with_suffix(".html")
        if not page.is_file():
            problems.append(f"{name}: its page {page.relative_to(ROOT)} is missing")
            continue
        text = MainText()
        text.feed(page.read_text(encoding="utf-8"))
        if len(text.words) < 50:
            problems.append(f"{page.relative_to(ROOT)} says only {len(text.words)} words")
    return problems


def pdf_problems(title: str) -> list[str]:
    found = sorted(BOOK.glob("*.pdf"))
    if len(found) != 1:
        return [f"_book must hold one PDF and holds {len(found)}"]
    read = subprocess.run(["pdftotext", found[0], "-"], capture_output=True, encoding="utf-8")
    if read.returncode:
        return [f"{found[0].name} is not a readable PDF: {read.stderr.strip()}"]
    pages = read.stdout.split("\f")[:-1]  # each page ends with one
    problems = [
        f"page {number} of {found[0].name} has no text"
        for number, text in enumerate(pages, start=1)
        if not any(character.isalpha() for character in text)
    ]
    # Glyphs that do not map to characters would still count as text; the title tells.
    if without_spaces(title) not in without_spaces("".join(pages)):
        problems.append(f"{found[0].name} nowhere says {title!r}, so its text cannot be read")
    return problems


def without_spaces(text: str) -> str:
    return "".join(text.split()).casefold()


def main() -> None:
    settings = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))
    book = settings["book"]
    books = [book, *map(listed_in, settings["metadata-files"])]
    names = [name for each in books for name in chapters(each["chapters"])]
    names += chapters([book["references"]])
    problems = page_problems(names) + pdf_problems(book["title"])
    if problems:
        sys.exit("\n".join(problems))
    print(f"_book holds all {len(names)} pages and the PDF, with text on each.")


if __name__ == "__main__":
    main()
