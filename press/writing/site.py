"""The site: every page in the theme's template, with its assets, search and previews."""

from __future__ import annotations

import base64
import gzip
import html
import json
import os
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from press.document.page import Page
from press.edition import Edition
from press.files import THEME
from press.reading.project import Book
from press.writing.html import Text

# Fonts of mathematics that most books do without, and the commands that ask for them.
RARE_FONTS = {
    "Caligraphic": "cal",
    "Fraktur": "frak",
    "SansSerif": "sf",
    "Script": "scr",
    "Typewriter": "tt",
    "Main-Bold": "(?:bf|bm|boldsymbol|pmb)",  # Main-BoldItalic too
    "Math-BoldItalic": "(?:bm|boldsymbol)",
}


def write_site(
    book: Book,
    edition: Edition,
    pages: list[Page],
    texts: list[Text],
    notebooks: list[str],
    folder: Path,
) -> None:
    """Writes the site into `folder`; `notebooks` says where in it that of each page lies."""
    import jinja2

    loader = jinja2.FileSystemLoader(THEME)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("page.html")
    chapters = [
        {"number": page.number, "title": text["title_html"], "href": page.chapter.href}
        for page, text in zip(pages, texts, strict=True)
    ]
    contents = _contents(book, chapters)
    pdf = book.pdf_name if (folder / book.pdf_name).is_file() else ""
    entries: list[dict[str, Any]] = []
    previews: dict[str, str] = {}
    for i, text in enumerate(texts):
        href = chapters[i]["href"]
        rendered = template.render(
            book=book,
            edition=edition,
            pdf=pdf,
            nav=contents,
            page=chapters[i] | text | {"notebook": notebooks[i]},
            prev=chapters[i - 1] if i else None,
            next=chapters[i + 1] if i + 1 < len(chapters) else None,
            root="../" * href.count("/"),
        )
        path = folder / href
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered, encoding="utf-8")
        _copy_files(book, href, text["body"], folder)
        entries += [{"id": len(entries) + n} | entry for n, entry in enumerate(text["search"])]
        previews |= {f"{href}#{key}": preview for key, preview in text["previews"]}
    assets = folder / "assets"
    assets.mkdir()
    for name in ("style.css", "book.js"):
        shutil.copyfile(THEME / name, assets / name)
    unused = [
        f"KaTeX_{font}*"
        for font, command in RARE_FONTS.items()
        if not any(re.search(rf"\\(?:math|text)?{command}\b", text["body"]) for text in texts)
    ]
    shutil.copytree(THEME / "vendor", assets / "vendor", ignore=shutil.ignore_patterns(*unused))
    _write_packed(assets / "search-index.js", "searchIndex", entries)
    _write_packed(assets / "previews.js", "previews", previews)


def _copy_files(book: Book, page: str, body: str, folder: Path) -> None:
    """Copies what a page shows or links to: images, data files."""
    for address in re.findall(r'(?:href|src)="([^"#:]+)"', body):
        here = os.path.dirname(page)
        name = os.path.normpath(os.path.join(here, unquote(html.unescape(address))))
        if not name.endswith(".html") and (book.root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(book.root / name, folder / name)


def _write_packed(path: Path, name: str, value: Any) -> None:
    """A value for `data` in book.js: a script, since a page from a disk may load no other file."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    path.write_text(f'window.{name}="{packed}";\n', encoding="utf-8")


def _contents(book: Book, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tree of parts and chapters."""
    tree: list[dict[str, Any]] = []
    together = groupby(
        zip(book.chapters, entries, strict=True), lambda pair: (pair[0].part, pair[0].appendix)
    )
    for (part, appendix), group in together:
        children = [entry for _, entry in group]
        if appendix:
            tree.append({"title": "Appendices", "children": children})
        elif part < 0:
            tree += children
        else:
            title = html.escape(book.parts[part])
            tree.append({"number": roman(part + 1), "title": title, "children": children})
    return tree


def roman(number: int) -> str:
    text = ""
    for value, sign in ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        text += sign * (number // value)
        number %= value
    return text
