"""Additions of a project to the search of its site, and what of them is refused."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from press.build import render
from press.problems import BookError
from tests.press.tiny_book import SETTINGS, Write, search_index

WITH_SEARCH = f"{SETTINGS}\nsearch-data: search.json\n"
PAGE = "# Animals\n\n## Marmot {#sec-marmot}\n\nIt whistles.\n"
TOLD = {
    "groups": {"Names": ["two"]},
    "entries": [
        {"group": "Names", "title": "burrow", "text": "Where it sleeps.", "href": "two.qmd"},
        {"group": "Names", "words": "marmota", "href": "index.qmd#sec-marmot"},
    ],
    "answers": [
        {
            "subject": "Marmot",
            "names": "marmota",
            "href": "index.qmd#sec-marmot",
            "values": [["mass", "5 kg", "measured", "weight"]],
        }
    ],
    "words": {"index.qmd#sec-marmot": "whistler"},
    "synonyms": {"groundhog": ["marmot"]},
}


def built(write_book: Write, configuration: dict[str, Any]) -> Path:
    files = {"two.qmd": "# Terms\n\nA dictionary.\n", "search.json": json.dumps(configuration)}
    root = write_book(PAGE, files, WITH_SEARCH)
    render(root)
    return root / "_book"


def test_a_project_adds_terms_names_and_values(write_book: Write) -> None:
    index = search_index(built(write_book, TOLD))
    assert index["groups"] == ["Answer", "Book", "Names"]
    sections = {each.get("section"): each for each in index["entries"]}
    assert sections["burrow"]["text"] == "Where it sleeps."
    assert sections["Marmot"]["group"] == "Names"
    assert sections["Marmot"]["words"] == "marmota whistler"
    groups = {each["href"]: each["group"] for each in index["entries"] if "section" not in each}
    assert groups == {"index.html": "Book", "two.html": "Names"}
    [answer] = index["answers"]
    assert answer["value"] == "5 kg"
    assert answer["href"] == "index.html#sec-marmot"
    assert index["synonyms"] == {"groundhog": ["marmot"]}


def test_a_page_whose_words_stand_elsewhere_is_left_out(write_book: Write) -> None:
    index = search_index(built(write_book, TOLD | {"left-out": ["two.qmd"]}))
    pages = {each["href"] for each in index["entries"] if "section" not in each}
    assert pages == {"index.html"}


@pytest.mark.parametrize("name", ["entries", "words"])
def test_a_place_that_no_page_has_is_named(write_book: Write, name: str) -> None:
    gone = "index.qmd#sec-gone"
    configuration = {"entries": [{"group": "Names", "title": "gone", "text": "x", "href": gone}]}
    with pytest.raises(BookError, match=r"search.json leads to index.qmd#sec-gone, which no page"):
        built(write_book, configuration if name == "entries" else {"words": {gone: "gone"}})


def test_a_place_that_is_no_section_can_have_no_words(write_book: Write) -> None:
    configuration = TOLD | {"left-out": ["two.qmd"], "words": {"two.qmd": "dictionary"}}
    with pytest.raises(BookError, match=r"search.json says more of two.qmd, which is no section"):
        built(write_book, configuration)


def test_a_file_that_cannot_be_read_is_named(write_book: Write) -> None:
    files = {"two.qmd": "# Terms\n", "search.json": "{"}
    with pytest.raises(BookError, match=r"search.json is no JSON that the search can read"):
        render(write_book(PAGE, files, WITH_SEARCH))


def test_a_file_that_is_not_there_is_named(write_book: Write) -> None:
    with pytest.raises(BookError, match=r"search.json, given as search-data, does not exist"):
        render(write_book(PAGE, {"two.qmd": "# Terms\n"}, WITH_SEARCH))


def test_terms_have_a_card_where_they_are_first_named(write_book: Write) -> None:
    """Code, headings and later mentions have no card; capitals and plurals count."""
    configuration = TOLD | {
        "cards": [{"title": "burrow", "text": "Where it sleeps.", "href": "two.qmd"}]
    }
    page = "# A burrow {#sec-marmot}\n\n`burrow` is code. Burrows are deep. A burrow is warm.\n"
    files = {"two.qmd": "# Terms\n\nA dictionary.\n", "search.json": json.dumps(configuration)}
    root = write_book(PAGE, {"three.qmd": page.replace("marmot", "three"), **files}, WITH_SEARCH)
    render(root)
    html = (root / "_book/three.html").read_text(encoding="utf-8")
    assert html.count('data-key="term burrow"') == 1
    assert '<span class="q" data-key="term burrow">Burrows</span> are deep.' in html
    packed = (root / "_book/assets/cards/three.js").read_text(encoding="utf-8")
    cards = json.loads(gzip.decompress(base64.b64decode(packed.split('"')[1])))
    assert cards["term burrow"]["note"] == "Where it sleeps."
    assert cards["term burrow"]["row"] == "two.html"


def test_the_search_finds_what_the_site_shows_alone(write_book: Write) -> None:
    paper = '::: {.content-visible when-format="typst"}\nOn paper it burrows.\n:::\n'
    screen = '::: {.content-visible when-format="html"}\nOn a screen it whistles.\n:::\n'
    root = write_book(f"# Animals\n\n{paper}\n{screen}")
    render(root)
    indexed = json.dumps(search_index(root / "_book"))
    assert "whistles" in indexed
    assert "burrows" not in indexed
