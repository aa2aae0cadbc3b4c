"""Search index of the site: every section, and what the project adds.

The file that `search-data` of `_quarto.yml` names adds, as JSON:

    groups     the names of further groups, in order, each with the beginnings of its pages' paths
    left-out   pages whose own sections are not looked through, since `entries` has what they say
    entries    group, title, text, href and words: a term, a name; without a text, more of a section
    answers    subject, other names, href, values (property, value, note, words, and the id of its
               row on that page, where it has one): what is known of something, shown where a query
               names it
    cards      title, text and href of terms and names that have a card where a page names them
    words      by which further sections are found, by their places
    synonyms   what a word is called elsewhere: phrases, by the word
    names      of what inputs of planners choose from, by kind: the input's word, by each name
    planners   live (a figure), title, href of its page, asked, names, numbers and always, as
               `search.js` says: what a question opens, filled in
    units      words that arithmetic may hold beside numbers; a prefix of them ends in "-"
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from press.document.page import Page
from press.problems import stop
from press.reading.project import Book
from press.writing.html import Text

ANSWER, BOOK = "Answer", "Book"  # the groups of every book
ENTRY = dict.fromkeys(("group", "title", "section", "href", "text", "words"), "")
VALUE = ("property", "value", "note", "words")


def terms(book: Book, pages: list[Page], texts: list[Text]) -> list[dict[str, str]]:
    """Return the terms that the project explains wherever a page names one."""
    hrefs = _places(texts, pages)
    cards = _told(book).get("cards", ())
    return [{**card, "href": _href(book, card["href"], hrefs)} for card in cards]


def search_index(book: Book, pages: list[Page], texts: list[Text]) -> dict[str, Any]:
    """The value of `search-index.js`, as `search.js` says."""
    loaded = _told(book)
    groups: dict[str, list[str]] = loaded.get("groups", {})
    entries: list[dict[str, Any]] = []
    for page, text in zip(pages, texts, strict=True):
        file = page.chapter.file
        group = next(
            (name for name, paths in groups.items() if file.startswith(tuple(paths))), BOOK
        )
        if file not in loaded.get("left-out", ()):
            entries += [ENTRY | {"group": group} | section for section in text["search"]]
    sections = {entry["href"]: entry for entry in entries}
    hrefs = _places(texts, pages)

    def section(address: str) -> dict[str, Any]:
        if (href := _href(book, address, hrefs)) not in sections:
            stop(f"{book.search_data} says more of {address}, which is no section.", "_quarto.yml")
        return sections[href]

    for answer in loaded.get("entries", ()):
        row = ENTRY | answer | {"href": _href(book, answer["href"], hrefs)}
        if row["text"]:
            entries.append(row | {"section": row["title"], "title": ""})
        else:
            section(answer["href"]).update(group=row["group"], words=row["words"])
    for href_of_words, words in loaded.get("words", {}).items():
        found_section = section(href_of_words)
        found_section["words"] = f"{found_section['words']} {words}".strip()
    answers = [
        {"subject": answer["subject"], "names": answer["names"]}
        | dict(zip(VALUE, values, strict=False))
        | {"href": _href(book, _of_row(answer["href"], *values[len(VALUE) :]), hrefs)}
        for answer in loaded.get("answers", ())
        for values in answer["values"]
    ]
    return {
        "groups": [ANSWER, BOOK, *(name for name in groups if name != BOOK)],
        "entries": _numbered(entries),
        "answers": _numbered(answers),
        "synonyms": loaded.get("synonyms", {}),
        "units": loaded.get("units", []),
        "names": loaded.get("names", {}),
        "planners": [
            planner | {"href": _href(book, planner["href"], hrefs)}
            for planner in loaded.get("planners", ())
        ],
    }


def _of_row(address: str, row: str = "") -> str:
    """The place of a row on a page, or the page's own place."""
    return f"{address.partition('#')[0]}#{row}" if row else address


def _numbered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return numbered rows without their empty fields, which the page fills in again."""
    return [
        {"id": number} | {name: value for name, value in row.items() if value}
        for number, row in enumerate(rows)
    ]


def _told(book: Book) -> dict[str, Any]:
    if not book.search_data:
        return {}
    try:
        loaded = json.loads((book.root / book.search_data).read_text(encoding="utf-8"))
    except ValueError as error:
        stop(f"{book.search_data} is no JSON that the search can read: {error}.", "_quarto.yml")
    return dict(loaded)


def _places(texts: list[Text], pages: list[Page]) -> set[str]:
    """Return all addresses that a row may lead to."""
    hrefs = set()
    for page, text in zip(pages, texts, strict=True):
        href = page.chapter.href
        hrefs |= {href, *(f"{href}#{name}" for name in text["places"])}
    return hrefs


def _href(book: Book, address: str, hrefs: set[str]) -> str:
    """The address of a place that the file names by its source."""
    file, _, anchor = address.partition("#")
    href = file.removesuffix(".qmd") + ".html" + (f"#{anchor}" if anchor else "")
    if href not in hrefs:
        stop(f"{book.search_data} leads to {address}, which no page has.", "_quarto.yml")
    return href
