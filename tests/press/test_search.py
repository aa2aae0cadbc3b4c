"""Additions of a project to the search of its site, and what of them is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.press.tiny_book import (
    SETTINGS,
    Write,
    in_format,
    page_of,
    refusals,
    rendered,
    search_index,
    unpacked,
)

WITH_SEARCH = f"{SETTINGS}\nsearch-data: search.json\n"
PAGE = "# Animals\n\n## Marmot {#sec-marmot}\n\nIt whistles.\n"
BURROW = {"title": "burrow", "text": "Where it sleeps.", "href": "two.qmd"}
MARMOT = {"names": "marmota", "href": "index.qmd#sec-marmot"}
TOLD = {
    "groups": {"Names": ["two"]},
    "entries": [
        {"group": "Names", **BURROW},
        {"group": "Names", "words": "marmota", "href": "index.qmd#sec-marmot"},
    ],
    "answers": [
        {"subject": "Marmot", **MARMOT, "values": [["mass", "5 kg", "measured", "weight"]]}
    ],
    "words": {"index.qmd#sec-marmot": "whistler"},
    "synonyms": {"groundhog": ["marmot"]},
    "cards": [BURROW],
}
# Code, headings and later mentions have no card; capitals and plurals count.
THREE = "# A burrow {#sec-three}\n\n`burrow` is code. Burrows are deep. A burrow is warm.\n"


def book_with(data: dict[str, Any] | str, write_book: Write) -> Any:
    text = data if isinstance(data, str) else json.dumps(data)
    files = {"two.qmd": "# Terms\n\nA dictionary.\n", "three.qmd": THREE, "search.json": text}
    return write_book(PAGE, files, WITH_SEARCH)


def test_a_project_adds_terms_names_values_and_cards(write_book: Write) -> None:
    root = rendered(book_with(TOLD, write_book))
    index = search_index(root / "_book")
    assert index["groups"] == ["Answer", "Book", "Names"]
    sections = {each.get("section"): each for each in index["entries"]}
    assert sections["burrow"]["text"] == "Where it sleeps."
    assert sections["Marmot"]["group"] == "Names"
    assert sections["Marmot"]["words"] == "marmota whistler"
    groups = {each["href"]: each["group"] for each in index["entries"] if "section" not in each}
    assert groups == {"index.html": "Book", "two.html": "Names", "three.html": "Book"}
    [answer] = index["answers"]
    assert (answer["value"], answer["href"]) == ("5 kg", "index.html#sec-marmot")
    assert index["synonyms"] == {"groundhog": ["marmot"]}
    html = page_of(root, "three")
    assert html.count('data-key="term burrow"') == 1
    assert '<span class="q" data-key="term burrow">Burrows</span> are deep.' in html
    card = unpacked(root / "_book/assets/cards/three.js")["term burrow"]
    assert (card["note"], card["row"]) == ("Where it sleeps.", "two.html")


def test_a_page_whose_words_stand_elsewhere_is_left_out(write_book: Write) -> None:
    root = rendered(book_with(TOLD | {"left-out": ["two.qmd", "three.qmd"]}, write_book))
    entries = search_index(root / "_book")["entries"]
    assert {each["href"] for each in entries if "section" not in each} == {"index.html"}


GONE = "index.qmd#sec-gone"
ENTRY = {"group": "Names", "title": "gone", "text": "x", "href": GONE}
REFUSED: list[tuple[dict[str, Any] | str, str]] = [
    ({"entries": [ENTRY]}, f"search.json leads to {GONE}, which no page"),
    ({"words": {GONE: "gone"}}, f"search.json leads to {GONE}, which no page"),
    (TOLD | {"left-out": ["two.qmd"], "words": {"two.qmd": "dictionary"}},
     "search.json says more of two.qmd, which is no section"),
    ("{", "search.json is no JSON that the search can read"),
    ("", "search.json, given as search-data, does not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "words"), REFUSED)
def test_a_place_that_no_page_has_and_a_file_that_cannot_be_read_are_named(
    data: dict[str, Any] | str, words: str, write_book: Write
) -> None:
    root = book_with(data, write_book)
    if not data:
        (root / "search.json").unlink()
    (problem,) = refusals(root)
    assert words in problem


def test_the_search_finds_what_the_site_shows_alone(write_book: Write) -> None:
    paper, screen = in_format("typst", "On paper it burrows."), in_format("html", "It whistles.")
    indexed = json.dumps(search_index(rendered(write_book(f"# A\n\n{paper}\n{screen}")) / "_book"))
    assert "whistles" in indexed
    assert "burrows" not in indexed
