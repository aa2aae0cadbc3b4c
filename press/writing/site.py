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
LONG_PART = 12  # of a part with more chapters than this, pages elsewhere name only the first


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
    about = {
        "title": book.title,
        "subtitle": book.subtitle,
        "authors": book.authors,
        "description": book.description,
        "version": edition.version,
        "commit": edition.commit,
        "commit_date": edition.date,
        "pdf": book.pdf_name if (folder / book.pdf_name).is_file() else "",
        "footer": [(words, href.replace(".qmd", ".html")) for words, href in book.footer],
        "report_at": book.report_at,
    }
    titles = [text["title_html"] for text in texts]
    entries: list[dict[str, Any]] = []
    previews: dict[str, str] = {}
    for i, (page, text) in enumerate(zip(pages, texts, strict=True)):
        href = page.chapter.href
        facts = {
            "title": text["title"],
            "title_html": titles[i],
            "number": page.number,
            "href": href,
            "lang": book.lang,
            "notebook": notebooks[i],
            "toc": text["sections"],
            "prev": _neighbour(pages, titles, i - 1),
            "next": _neighbour(pages, titles, i + 1),
        }
        rendered = template.render(
            book=about,
            nav=_navigation(book, pages, titles, i),
            page=facts,
            root="../" * href.count("/"),
            body=text["body"],
        )
        path = folder / href
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered, encoding="utf-8")
        _copy_files(book, page, text["body"], folder)
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


def _copy_files(book: Book, page: Page, body: str, folder: Path) -> None:
    """Copies what a page shows or links to: images, data files."""
    for address in re.findall(r'(?:href|src)="([^"#:]+)"', body):
        here = os.path.dirname(page.chapter.href)
        name = os.path.normpath(os.path.join(here, unquote(html.unescape(address))))
        if not name.endswith(".html") and (book.root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(book.root / name, folder / name)


def _write_packed(path: Path, name: str, value: Any) -> None:
    """A value for `data` in book.js: a script, since a page from a disk may load no other file."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    path.write_text(f'window.{name}="{packed}";\n', encoding="utf-8")


def _neighbour(pages: list[Page], titles: list[str], i: int) -> dict[str, str] | None:
    if not 0 <= i < len(pages):
        return None
    return {"number": pages[i].number, "title_html": titles[i], "href": pages[i].chapter.href}


def _navigation(
    book: Book, pages: list[Page], titles: list[str], current: int
) -> list[dict[str, Any]]:
    entries = [
        {
            "kind": "chapter",
            "number": page.number,
            "title": titles[i],
            "href": page.chapter.href,
            "current": i == current,
            "children": [],
        }
        for i, page in enumerate(pages)
    ]
    tree: list[dict[str, Any]] = []
    chapters = [page.chapter for page in pages]
    together = groupby(zip(chapters, entries, strict=True), lambda c: (c[0].part, c[0].appendix))
    for (part, appendix), group in together:
        children = [entry for _, entry in group]
        if part < 0 and not appendix:
            tree += children
            continue
        title = "Appendices" if appendix else book.parts[part]
        heading = {"title": html.escape(title), "href": "", "current": False, "children": children}
        if len(children) > LONG_PART and not any(child["current"] for child in children):
            heading["children"] = children[:1]
        kind = {"kind": "appendix-part", "number": ""} if appendix else {"kind": "part"}
        tree.append({"number": roman(part + 1), **kind, **heading})
    return tree


def roman(number: int) -> str:
    text = ""
    for value, sign in ((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        text += sign * (number // value)
        number %= value
    return text
