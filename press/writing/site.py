"""The site: every page in the theme's template, with its assets, search and previews."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from press.book_files import THEME, copy_folder, room_for
from press.document.page import Page
from press.edition import Edition
from press.problems import stop
from press.reading.project import Book, Chapter
from press.writing.html import WITHOUT_SCRIPTS, Text
from press.writing.link_preview import write_previews
from press.writing.search_index import search_index, terms
from press.writing.terms import with_cards

WORKBENCH = '<div class="workbench">'
LOST = "404.html"  # what a server shows where there is no page
NO_SUCH_PAGE = """<header class="chapter-title"><h1>There is no such page</h1></header>
<p>The address has changed, or was never right. The contents name every page, and the search looks
through all of them.</p>"""
Entry = dict[str, Any]  # of the contents
MOST = 12  # chapters of a part that pages of other parts name in their contents, too
ALWAYS = ("style.css", "icon.svg", "first.js", "book.js", "search.js", "tables.js")
LIVE = ("live.css", "live.js", "workbench.js")  # what pages with live figures load


def write_site(
    book: Book,
    edition: Edition,
    pages: list[Page],
    texts: list[Text],
    notebooks: list[str],
    markdown: list[str],
    runtime: bool,
    folder: Path,
) -> None:
    """Writes the site into `folder`; `notebooks` and `markdown` say where in it those of each page
    lie, and `runtime` whether it has Python for the browser."""
    import jinja2

    loader = jinja2.FileSystemLoader(THEME)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.get_template("page.html")
    chapters: list[Entry] = [
        {
            "number": page.number,
            "title": text["title_html"],
            "href": page.chapter.href,
            "part": book.parts[page.chapter.part] if page.chapter.part >= 0 else "",
            "listed": page.listed,
        }
        for page, text in zip(pages, texts, strict=True)
    ]
    listed = [
        (page.chapter, entry) for page, entry in zip(pages, chapters, strict=True) if page.listed
    ]
    explained = terms(book, pages, texts)
    bodies = [
        with_cards(text["body"], explained if page.number else ())
        for page, text in zip(pages, texts, strict=True)
    ]
    cards = [text["cards"] | more for text, (_, more) in zip(texts, bodies, strict=True)]
    prompts = (
        page["href"]
        for page, text in zip(chapters, texts, strict=True)
        if WORKBENCH in text["body"]
    )
    contents = _contents(listed, book)
    shared = {
        "book": book,
        "edition": edition,
        "pdf": book.pdf_name if (folder / book.pdf_name).is_file() else "",
        "nav": contents,
        "most": MOST,
        "workbench": next(prompts, "") if runtime else "",
        "version": _write_assets(book, pages, texts, cards, contents, runtime, folder / "assets"),
    }
    titles = [text["title"] for text in texts]
    pictures = write_previews(book, pages, titles, folder) if book.site else [""] * len(pages)
    for i, text in enumerate(texts):
        href = chapters[i]["href"]
        sheet = pages[i].sheet if (folder / pages[i].sheet).is_file() else ""
        live = runtime and _live(book, pages[i], text["body"])
        body = bodies[i][0] if live else bodies[i][0].replace(WITHOUT_SCRIPTS, "")
        of_page = {"notebook": notebooks[i], "markdown": markdown[i], "sheet": sheet, "live": live}
        cited = _citation(book, edition, href, text["title"]) if pages[i].listed else ""
        of_page |= {"body": body, "picture": pictures[i], "citation": cited}
        rendered = template.render(
            **shared,
            page=chapters[i] | text | of_page,
            **_neighbours([entry for _, entry in listed], chapters[i]),
            root="../" * href.count("/"),
        )
        path = room_for(folder, href)
        path.write_text(_guarded(rendered, live), encoding="utf-8")
        _copy_files(book, href, text["body"], folder)
    lost = {"title": "No such page", "href": LOST, "body": NO_SUCH_PAGE, "listed": True}
    rendered = template.render(**shared, page=lost, root="", prev=None, next=None)
    (folder / LOST).write_text(_guarded(rendered, False), encoding="utf-8")
    if book.site:
        places = "".join(
            f"<url><loc>{html.escape(book.site + chapter['href'])}</loc></url>\n"
            for chapter in chapters
        )
        whole = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n'
        (folder / "sitemap.xml").write_text(whole, encoding="utf-8")


def _citation(book: Book, edition: Edition, href: str, title: str) -> str:
    """The page as an entry of BibTeX, with its address where the site has one."""
    whole = href == "index.html"
    fields = {
        "title": book.title if whole else title,
        "booktitle": "" if whole else book.title,
        "author": " and ".join(f"{{{_tex(name)}}}" for name in book.authors),
        "year": edition.date[:4],
        "edition": edition.version and f"Version {edition.version}",
        "url": book.site and book.site + href,
    }
    lines = "".join(
        f"  {name} = {{{value if name in ('author', 'url') else _tex(value)}}},\n"
        for name, value in fields.items()
        if value
    )
    key = re.sub(r"\W+", "-", f"{book.title} {'' if whole else Path(href).stem}".lower()).strip("-")
    return f"@{'book' if whole else 'incollection'}{{{key},\n{lines}}}"


def _tex(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", text)


def _write_assets(
    book: Book,
    pages: list[Page],
    texts: list[Text],
    cards: list[dict[str, dict[str, Any]]],
    contents: list[Entry],
    runtime: bool,
    assets: Path,
) -> str:
    """Write the assets of pages; return the version that they ask for, which no cache has."""
    previews: dict[str, str] = {}
    assets.mkdir(exist_ok=True)
    for page, text, page_cards in zip(pages, texts, cards, strict=True):
        href = page.chapter.href
        previews |= {f"{href}#{key}": preview for key, preview in text["previews"]}
        if page_cards:
            file = room_for(assets, Path("cards") / Path(href).with_suffix(".js"))
            _write_packed(file, "cards", page_cards)
    for name in (*ALWAYS, *(LIVE if runtime else ())):
        shutil.copyfile(THEME / name, assets / name)
    parts = [
        {
            "number": item.get("number", ""),
            "title": item["title"],
            "href": item.get("href", ""),
            "chapters": [
                [of["href"], of["number"], of["title"]] for of in item.get("children", ())
            ],
        }
        for item in contents
    ]
    named = json.dumps({"most": MOST, "parts": parts}, ensure_ascii=False, separators=(",", ":"))
    (assets / "contents.js").write_text(f"window.contents={named};\n", encoding="utf-8")
    _write_packed(assets / "search-index.js", "searchIndex", search_index(book, pages, texts))
    _write_packed(assets / "previews.js", "previews", previews)
    version = hashlib.sha256()
    for file in sorted(assets.rglob("*.*")):
        version.update(file.read_bytes())
    copy_folder(THEME / "vendor", assets / "vendor")
    return version.hexdigest()[:8]


def _guarded(page: str, live: bool) -> str:
    """A page that says what it may load: files of its own site, and no script beside them.

    A page from a disk has no site, for which `file:` stands; drawings carry styles of their own.
    """
    this_site = "'self' file:"
    policy = {
        "default-src": "'none'",
        "script-src": this_site + (" 'wasm-unsafe-eval'" if live else ""),
        "style-src": f"{this_site} 'unsafe-inline'",
        "img-src": f"{this_site} data:",
        "font-src": this_site,
        "connect-src": this_site,
        "base-uri": "'self'",
        "form-action": "'none'",
    }
    content = "; ".join(f"{name} {what}" for name, what in policy.items())
    meta = f'<meta http-equiv="Content-Security-Policy" content="{content}">'
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{meta}', 1)


def _live(book: Book, page: Page, body: str) -> bool:
    """Return whether a page has live figures, each of a model that there is."""
    models = re.findall(r'<div class="live" data-model="([^"]*)">', body)
    for model in models:
        if not (book.live_folder / f"{model.replace('-', '_')}_live.py").is_file():
            line = page.woven.line_of(rf'model="{re.escape(model)}"')
            stop(f"`{book.live}` has no model {model}.", page.chapter.file, line)
    return bool(models) or WORKBENCH in body


def _copy_files(book: Book, page: str, body: str, folder: Path) -> None:
    """Copies what a page shows or links to: images, data files."""
    for address in re.findall(r'(?:href|src)="([^"#:]+)"', body):
        here = os.path.dirname(page)
        name = os.path.normpath(os.path.join(here, unquote(html.unescape(address))))
        if not name.endswith(".html") and (book.root / name).is_file():
            shutil.copyfile(book.root / name, room_for(folder, name))


def _write_packed(path: Path, name: str, value: Any) -> None:
    """A value for `data` in book.js: a script, since a page from a disk may load no other file."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    path.write_text(f'window.{name}="{packed}";\n', encoding="utf-8")


def _neighbours(listed: list[Entry], entry: Entry) -> dict[str, Entry | None]:
    """The pages before and after one that the contents name."""
    if entry not in listed:
        return {"prev": None, "next": None}
    around = [None, *listed, None]
    index = around.index(entry)
    return {"prev": around[index - 1], "next": around[index + 1]}


def _contents(entries: list[tuple[Chapter, Entry]], book: Book) -> list[Entry]:
    """The tree of parts and chapters."""
    tree: list[Entry] = []
    together = groupby(entries, lambda pair: (pair[0].part, pair[0].appendix))
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
