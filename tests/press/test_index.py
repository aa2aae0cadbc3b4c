"""The index: marks of words on the pages of the PDF, and what a term of the glossary ends with."""

from __future__ import annotations

import re

from tests.press.tiny_book import Write, page_of, printed, rendered

FILES = {
    "hills.qmd": "# Hills {#sec-hills}\n\nA [marmot]{.index} whistles, and a "
        '[**Tree**]{.index entry="tree"} stands.\n',
    "lakes.qmd": '# Lakes {#sec-lakes}\n\n[Marmots]{.index entry="marmot"} swim not.\n',
    "places.qmd": """# Index {.unnumbered}

::: {.indexed}

- marmot: [Hills](hills.qmd#sec-hills), [Lakes](lakes.qmd#sec-lakes)
- tree: [Hills](hills.qmd#sec-hills)

:::

[Tree](hills.qmd#sec-hills)
:   It stands.
""",
}  # fmt: skip


def test_paper_lists_the_pages_of_marks_and_the_site_their_sections(write_book: Write) -> None:
    root = rendered(write_book("# A\n\nB.\n", FILES))
    pages = printed(root)
    hills, lakes = (
        next(number for number, page in enumerate(pages, 1) if words in page)
        for words in ("whistles", "swim not")
    )
    for line in (f"marmot {hills}–{lakes}", f"tree {hills}", f"It stands. {hills}"):
        assert line in pages[-1]  # neighbours are one range
    inside = page_of(root, "places").partition('class="indexed"')[2]
    assert re.findall(r'<a href="(\w+)\.html', inside)[:3] == ["hills", "lakes", "hills"]
