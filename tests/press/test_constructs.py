"""Attributes that press does not read stop the build: none is dropped without a word."""

from __future__ import annotations

import re

import pytest

from press.build import render
from press.problems import BookError
from tests.press.tiny_book import Write

# What a chapter holds on its fifth line, and what the sentence must name.
REFUSED = {
    "[x]{.content-hidden}": "`.content-hidden` on a span",
    '[x]{.content-visible when-format="html"}': "`.content-visible` on a span",
    "[x]{.aside}": "`.aside` on a span",
    "[x]{.column-margin}": "`.column-margin` on a span",
    "[x]{.hidden}": "`.hidden` on a span",
    "[x]{lang=fr}": "`lang=` on a span",
    "[x](https://example.org){target=_blank}": "`target=` on a link",
    "[x](https://example.org){.button}": "`.button` on a link",
    "`x`{.hidden}": "`.hidden` on inline code",
    '```{.python filename="a.py"}\nx\n```': "`filename=` on a code block",
    '```{.python code-line-numbers="true"}\nx\n```': "`code-line-numbers=` on a code block",
    '```{#lst-a .python lst-cap="A"}\nx\n```': "`#lst-a` on a code block",
    '```{.python lst-cap="A"}\nx\n```': "`lst-cap=` on a code block",
    "```{.python .hidden}\nx\n```": "`.hidden` on a code block",
    "$$x$$ {.foo}": "nothing here takes these attributes",
}


@pytest.mark.parametrize("construct", REFUSED)
def test_an_attribute_that_press_does_not_read_is_refused(
    construct: str, write_book: Write
) -> None:
    with pytest.raises(BookError) as caught:
        render(write_book(f"# A\n\nPlain.\n\n{construct}\n"))
    said = [str(problem) for problem in caught.value.problems]
    assert any(s.startswith("index.qmd:5:") and REFUSED[construct] in s for s in said), said


def test_identifiers_languages_and_bare_addresses_are_read(write_book: Write) -> None:
    constructs = "[x]{#here} `x`{.python} <https://example.org> <a@example.org> [up](#here)"
    render(write_book(f"# A\n\n{constructs}\n\n```bash\nls\n```\n\n```{{.c}}\nx\n```\n"))


def test_a_figure_has_a_caption_where_it_has_words_or_a_number(write_book: Write) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 0h9"/></svg>'
    figures = (
        '![A marmot.](a.svg){fig-alt="It sits."}',
        '![](b.svg){fig-alt="It sleeps."}',
        '![A burrow.](c.svg){#fig-burrow fig-alt="Its house."}',
    )
    root = write_book(
        "# A\n\n" + "\n\n".join(figures) + "\n", {f"{name}.svg": drawing for name in "abc"}
    )
    render(root)
    page = (root / "_book" / "index.html").read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.S)
    words = [re.sub(r"<[^>]*>|\s+", " ", caption).split() for caption in captions]
    assert [" ".join(each) for each in words] == ["A marmot.", "Figure 1.1: A burrow."]
