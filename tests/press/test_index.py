"""The index: marks of words on the pages of the PDF, and what a term of the glossary ends with."""

from __future__ import annotations

import re

from press.build import render
from tests.press.tiny_book import Write, printed, refusal

HILLS = """# Hills {#sec-hills}

A [marmot]{.index} whistles, and a [**Tree**]{.index entry="tree"} stands.
"""
LAKES = """# Lakes {#sec-lakes}

[Marmots]{.index entry="marmot"} swim not.
"""
INDEX = """# Index {.unnumbered}

::: {.indexed}

- marmot: [Hills](hills.qmd#sec-hills), [Lakes](lakes.qmd#sec-lakes)
- tree: [Hills](hills.qmd#sec-hills)

:::

[Tree](hills.qmd#sec-hills)
:   It stands.
"""


def test_paper_lists_the_pages_of_marks_and_the_site_their_sections(write_book: Write) -> None:
    files = {"hills.qmd": HILLS, "lakes.qmd": LAKES, "places.qmd": INDEX}
    root = write_book("# A\n\nB.\n", files)
    render(root)
    pages = printed(root)
    hills, lakes = (
        next(number for number, page in enumerate(pages, 1) if words in page)
        for words in ("whistles", "swim not")
    )
    listed = pages[-1]
    assert f"marmot {hills}–{lakes}" in listed, listed  # neighbours are one range
    assert f"tree {hills}" in listed, listed
    assert f"It stands. {hills}" in listed, listed
    site = (root / "_book" / "places.html").read_text(encoding="utf-8")
    inside = site[site.index('class="indexed"') :]
    links = re.findall(r'<a href="(\w+)\.html', inside)
    assert links[:3] == ["hills", "lakes", "hills"], links


def test_a_mark_takes_an_entry_alone(write_book: Write) -> None:
    said = refusal(write_book("# A\n\n[tree]{.index page=3}\n"))
    assert any("`page=` on a span" in sentence for sentence in said), said
