"""Every mistake of an author stops the build with `file:line: sentence`, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from press.audit import audit
from press.build import render
from press.problems import BookError
from tests.press.tiny_book import SETTINGS, Write, press, refusal

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 9 9"/>'


# What a chapter holds, the line of the fault, and words of the sentence.
CHAPTERS = {
    "unclosed code fence": ("# A\n\n```python\nx\n", 3, "never closed"),
    "unclosed cell": ("# A\n\n```{python}\nx\n", 3, "never closed"),
    "unclosed block": ("# A\n\n::: {.callout-note}\nx\n", 3, "never closed"),
    "unclosed math": ("# A\n\n$$\nx = 1\n", 3, "never closed"),
    "unclosed inline value": ("# A\n\n`{python} 1` and `{python} x\n", 3, "never closed"),
    "unclosed front matter": ("---\ntitle: A\n\ntext\n", 1, "never closed"),
    "stray end of block": ("# A\n\n:::\n", 3, "closes nothing"),
    "shortcode": ("# A\n\n{{< pagebreak >}}\n", 3, "shortcodes"),
    "cell of another language": ("# A\n\n```{r}\n1\n```\n", 3, "not with `{r}`"),
    "indented cell": ("# A\n\n- x\n\n  ```{python}\n  1\n  ```\n", 5, "left margin"),
    "inline value of another language": ("# A\n\nIt is `{r} x`.\n", 3, "not in r"),
    "inline value in a code block": ("# A\n\n```\n`{python} x`\n```\n", 4, "would compute"),
    "annotation in a cell": (
        "# A\n\n```{python}\nx = 1  # <1>\nx\n```\n\n1. one\n",
        4,
        "annotations of code",
    ),
    "annotation in a code block": (
        "# A\n\n``` c\nint x;\nx = 1; // <2>\n```\n\n1. one\n",
        5,
        "annotations of code",
    ),
    "raw HTML block": ("# A\n\ntext\n\n<div>\nx\n</div>\n", 5, "raw html"),
    "raw HTML in a line": ("# A\n\na <b>c</b>\n", 3, "raw html"),
    "raw TeX": ("# A\n\na \\emph{c}\n", 3, "raw tex"),
    "raw block": ("# A\n\n```{=html}\n<hr>\n```\n", 3, "raw blocks"),
    "unknown block": ("# A\n\n::: {.column-margin}\nx\n:::\n", 3, "column-margin"),
    "unknown callout attribute": ("# A\n\n::: {.callout-tip icon=false}\nx\n:::\n", 3, "`icon`"),
    "unknown cell option": ("# A\n\n```{python}\n#| colour: red\n1\n```\n", 4, "`colour`"),
    "option of the wrong kind": (
        "# A\n\n```{python}\n#| echo: maybe\n1\n```\n",
        4,
        "true or false",
    ),
    "malformed cell option": ("# A\n\n```{python}\n#| echo: [\n1\n```\n", 5, "not valid YAML"),
    "option given twice": ("# A\n\n```{python}\n#| echo: true\n#| echo: true\n```\n", 5, "twice"),
    "figure without caption": ("# A\n\n```{python}\n#| label: fig-a\n1\n```\n", 4, "`fig-cap`"),
    "caption without label": ("# A\n\n```{python}\n#| tbl-cap: A\n1\n```\n", 4, "begins `tbl-`"),
    "inline value in an option": (
        '# A\n\n```{python}\n#| label: tbl-a\n#| tbl-cap: "`{python} 1`"\n1\n```\n',
        5,
        "no inline value in a cell option",
    ),
    "unknown front matter": ("---\ntitle: A\nlayout: wide\n---\n", 3, "`layout`"),
    "search of neither kind": ("---\ntitle: A\nsearch: none\n---\n", 3, "true or false"),
    "no title": ("text\n", 1, "starts with its title"),
    "empty file": ("", 1, "starts with its title"),
    "cell before any prose": ("```{python}\n1\n```\n", 1, "starts with its title"),
    "two titles": ("# A\n\ntext\n\n# B\n", 5, "one `#` heading"),
    "unresolved figure": ("# A\n\ntext\n\nSee @fig-none.\n", 5, "@fig-none"),
    "unresolved section": ("# A\n\nSee @sec-none.\n", 3, "@sec-none"),
    "unresolved in a caption": (
        "# A\n\n| a |\n|---|\n| b |\n\n: As in @eq-none {#tbl-a}\n",
        7,
        "@eq-none",
    ),
    "reference to a title without number": (
        "# A {#sec-a .unnumbered}\n\nSee @sec-a.\n",
        3,
        "has no number",
    ),
    "numbered heading in a callout": (
        "# A\n\n::: {.callout-tip}\nx\n\n### B\n\ny\n:::\n",
        6,
        "numbers a heading inside a callout",
    ),
    "duplicate label": (
        "# A\n\n$$\nx\n$$ {#eq-a}\n\n$$\ny\n$$ {#eq-a}\n",
        9,
        "already taken at index.qmd:5",
    ),
    "id given twice": ("# A\n\n## X {#x}\n\n[y]{#x}\n", 5, "the id `x` is given twice"),
    "references mixed with citations": (
        "# A {#sec-a}\n\ntext [@sec-a; @knuth]\n",
        3,
        "references and citations",
    ),
    "citation without bibliography": ("# A\n\ntext [@knuth]\n", 3, "no bibliography"),
    "link to a missing file": ("# A\n\n[x](none.qmd)\n", 3, "does not exist"),
    "link to a missing anchor": ("# A\n\n[x](#none)\n", 3, "no anchor #none"),
    "missing image": ('# A\n\ntext\n\n![c](no.png){fig-alt="x"}\n', 5, "does not exist"),
    "image from elsewhere": (
        "# A\n\n![c](https://a.b/c.png){fig-alt=x}\n",
        3,
        "file of the project",
    ),
    "figure without alt text": ("# A\n\n![caption](no.png){#fig-a}\n", 3, "needs alt text"),
    "image without alt text": ("# A\n\nline ![](no.png) line\n", 3, "needs alt text"),
    "float without caption": (
        '# A\n\n::: {#fig-a}\n![](no.png){fig-alt="x"}\n:::\n',
        3,
        "must be its caption",
    ),
    "label in one format only": (
        '# A\n\n::: {.content-visible when-format="html"}\n$$\nx\n$$ {#eq-a}\n:::\n',
        6,
        "one format only",
    ),
    "math that the PDF drops": ("# A\n\nand $\\textcolor{red}{x}$\n", 3, "\\textcolor"),
    "block without an empty line": (
        "# A\n\ntext\n::: {.callout-tip}\nx\n:::\n",
        4,
        "an empty line",
    ),
    "label on nothing": ("# A\n\nSome text. {#eq-a}\n", 3, "does not follow"),
    "footnote without text": ("# A\n\nSome text.[^a]\n", 3, "has no text"),
    "format that Quarto takes for another": (
        '# A\n\n::: {.content-visible when-format="pdf"}\nx\n:::\n',
        3,
        '"typst"',
    ),
    "class on a heading": ("# A\n\n## B {.wide}\n", 3, "`wide`"),
    "table attribute": ("# A\n\n| a |\n|---|\n| b |\n\n: C {#tbl-a .striped}\n", 7, "striped"),
    "character that no page can hold": ("# A\n\na\0b\n", 3, "U+0000"),
    "quotes in quotes": (f"# A\n\ntext\n\n{'>' * 2000} x\n", 5, "nest too deep"),
    "quotes in quotes that JSON holds": (f"# A\n\ntext\n\n{'>' * 20} x\n", 5, "nest too deep"),
    "lists in lists": (f"# A\n\ntext\n\n{'- ' * 20}x\n", 5, "nest too deep"),
    "emphasis in emphasis": (f"# A\n\n{'*a **b ' * 500}x{'** *' * 500}\n", 3, "nest too deep"),
    "blocks in blocks": (
        "# A\n\n" + "::: {.callout-note}\n" * 1000 + ":::\n" * 1000,
        15,
        "nest too deep",
    ),
    "alias in a cell option": (
        "# A\n\n```{python}\n#| label: &a tbl-a\n#| tbl-cap: *a\n1\n```\n",
        5,
        "`*a`",
    ),
    "alias in front matter": ("---\ntitle: &a A\nexecute: *a\n---\n", 3, "`*a`"),
}


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_fault_in_a_chapter_is_named_by_its_line(name: str, write_book: Write) -> None:
    text, line, words = CHAPTERS[name]
    problems = refusal(write_book(text))
    assert any(p.startswith(f"index.qmd:{line}: ") and words in p for p in problems), problems


WIDTHS = ["foo", "200", '"1em); #panic("', "-5cm", "5furlong"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("around", ["", "A mark in a line: "])
def test_a_width_that_is_no_length_is_named(width: str, around: str, write_book: Write) -> None:
    image = f'{around}![c](a.svg){{fig-alt="x" width={width}}}'
    problems = refusal(write_book(f"# A\n\n{image}\n", {"a.svg": SVG}))
    sentence = "an image's width is a number with %, in, cm, mm, em, pt or px, not"
    assert problems == [f"index.qmd:3: {sentence} `{width.strip(chr(34))}`."]


@pytest.mark.parametrize("width", ["50%", "2in", "5.5cm", "50mm", "9em", "90pt", "200px"])
def test_a_width_that_is_a_length_is_honoured(width: str, write_book: Write) -> None:
    text = f'# A\n\n![c](a.svg){{fig-alt="x" width={width}}}\n\nA ![m](a.svg){{width={width}}}.\n'
    root = write_book(text, {"a.svg": SVG})
    render(root)
    page = (root / "_book/index.html").read_text(encoding="utf-8")
    assert f'<svg role="img" aria-label="x" style="width: {width}; height: auto"' in page
    source = (root / ".press-cache/typst/chapter-0.typ").read_text(encoding="utf-8")
    assert source.count(f"width: {'150pt' if width == '200px' else width})") == 2


IMAGES = {
    "cut.png": (b"\x89PNG\r\n\x1a\n\x00", "damaged: failed to decode image"),
    "words.jpg": (b"words", "damaged: failed to decode image"),
    "cut.svg": (b"<svg", "damaged: failed to parse SVG"),
    "old.bmp": (b"BM", "of a kind that press does not show"),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("only", ["html", "typst"])
def test_an_image_that_cannot_be_shown_is_named_by_its_use(
    name: str, only: str, write_book: Write
) -> None:
    content, words = IMAGES[name]
    root = write_book(f'# A\n\ntext\n\n![c](i/{name}){{fig-alt="x"}}\n')
    (root / "i").mkdir()
    (root / "i" / name).write_bytes(content)
    with pytest.raises(BookError) as caught:
        render(root, only)
    (problem,) = map(str, caught.value.problems)
    assert problem.startswith(f"index.qmd:5: the image i/{name} is {words}")
    assert not (root / "_book").exists()


# Text that the tiny book's settings hold, its replacement, the line of the fault, and words.
SETTINGS_FAULTS = {
    "what chapters share from folders of their own": (
        "format:",
        "shared: [ours]\nformat:",
        8,
        "`shared` needs `execute-dir: project`",
    ),
    "missing chapter": ("- index.qmd", "- index.qmd\n    - none.qmd", 8, "none.qmd does not exist"),
    "chapter listed twice": ("- index.qmd", "- index.qmd\n    - index.qmd", 8, "listed twice"),
    "chapter outside": ("- index.qmd", "- index.qmd\n    - ../x.qmd", 8, "outside the project"),
    "script in another language": ("type: book", "type: book\n  pre-render: a.R", 3, "in Python"),
    "script that is not there": (
        "type: book",
        "type: book\n  pre-render:\n    - no.py --all",
        3,
        "the script no.py does not exist",
    ),
    "list of chapters that is not there": (
        "format:",
        "metadata-files: [more.yml]\nformat:",
        8,
        "the file more.yml",
    ),
    "references that are not there": (
        "author: A. Tester",
        "references: last.qmd",
        5,
        "the chapter last.qmd does not exist",
    ),
    "unknown key": ("author: A. Tester", "colour: red", 5, "`book.colour`"),
    "address of no site": ("author: A. Tester", "site-url: mine", 5, "https://"),
    "footer to no page": (
        "author: A. Tester",
        "page-footer:\n    center:\n      - text: X\n        href: no.qmd",
        7,
        "`href` of a chapter",
    ),
    "unknown format": ("typst: default", "docx: default", 10, "`format.docx`"),
    "malformed": ("title: A tiny book", "title: [", 6, "not valid YAML"),
    "no title": ("title: A tiny book", "subtitle: B", 3, "`book.title`"),
    "another type": ("type: book", "type: website", 1, "must be `book`"),
    "missing bibliography": ("format:", "bibliography: no.bib\nformat:", 8, "no.bib"),
    "output over the project": ("type: book", "type: book\n  output-dir: .", 3, "`output-dir`"),
    "output over the sources": (
        "type: book",
        "type: book\n  output-dir: chapters",
        3,
        "must begin with _",
    ),
    "another citation of the PDF": (
        "typst: default",
        "typst:\n    citeproc: false",
        11,
        "always cites",
    ),
    "words before the PDF": (
        "typst: default",
        "typst:\n    include-before-body:\n      text: |\n        #set par()\n        Hello",
        12,
        "not `Hello`",
    ),
    "part from a file": (
        "- index.qmd",
        "- index.qmd\n    - part: p.qmd\n      chapters: [index.qmd]",
        8,
        "a part is a title",
    ),
    "chapters of a part in no list": (
        "- index.qmd",
        "- index.qmd\n    - part: P\n      chapters: a.qmd",
        9,
        "`chapters` must be a list",
    ),
    "chapter spelled from here": ("- index.qmd", "- ./index.qmd", 7, "write index.qmd, not ./"),
    "number as output folder": ("type: book", "type: book\n  output-dir: 5", 3, "text, not 5"),
    "number as file": ("format:", "bibliography: 5\nformat:", 8, "`bibliography` needs text"),
    "number in a list": ("format:", "bibliography:\n  - 5\nformat:", 9, "`bibliography` needs"),
    "number as name": ("author: A. Tester", "output-file: 7", 5, "`book.output-file` needs text"),
    "author without a name": (
        "author: A. Tester",
        "author:\n    - A\n    - email: x",
        7,
        "an author needs a `name`",
    ),
    "more appendices than letters": (
        "- index.qmd",
        "- index.qmd\n  appendices:" + "".join(f"\n    - {n}.qmd" for n in range(28)),
        35,
        "this is the 27th",
    ),
    "alias": ("author: A. Tester", "author: &a T\n  subtitle: *a", 6, "`*a`"),
    "alias of what it stands in": ("author: A. Tester", "author: &a [*a]", 5, "`*a`"),
    "aliases that multiply": (
        "author: A. Tester",
        "author: &a0 [x]\n"
        + "".join(f"  a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(30)),
        6,
        "`*a0`",
    ),
    "lists in lists": ("author: A. Tester", f"author: {'[' * 100_000}", 5, "nests deeper than"),
    "mappings in mappings": (
        "author: A. Tester",
        "author:\n" + "".join(f"{' ' * (n + 4)}a:\n" for n in range(200)),
        54,
        "nests deeper than",
    ),
    "more than a person writes": ("author: A. Tester", f"author: {'x' * 2_000_000}", 1, "larger"),
    "NUL in the title": ("title: A tiny book", 'title: "A\\0 book"', 4, "U+0000"),
    "NUL in the name of a chapter": ("- index.qmd", '- index.qmd\n    - "a\\0.qmd"', 8, "U+0000"),
    "escape in the author's name": ("author: A. Tester", 'author: "\\e[31m"', 5, "U+001B"),
    "time limit of another kind": (
        "format:",
        "execute:\n  timeout: soon\nformat:",
        9,
        "`execute.timeout` is a number of seconds",
    ),
    "no time at all": ("format:", "execute:\n  timeout: 0\nformat:", 9, "above 0"),
    **{
        f"chapter with {sign} in its name": (
            "- index.qmd",
            f"- index.qmd\n    - 'a{sign}b.qmd'",
            8,
            f"`{sign}`",
        )
        for sign in '?:\\#%"*<>|'
    },
}


@pytest.mark.parametrize("name", SETTINGS_FAULTS)
def test_a_fault_in_the_settings_is_named_by_its_line(name: str, write_book: Write) -> None:
    old, new, line, words = SETTINGS_FAULTS[name]
    assert old in SETTINGS
    problems = refusal(write_book("# A\n", settings=SETTINGS.replace(old, new, 1)))
    assert any(p.startswith(f"_quarto.yml:{line}: ") and words in p for p in problems), problems


def test_settings_that_are_not_utf_8_are_named_by_their_line(write_book: Write) -> None:
    root = write_book("# A\n")
    (root / "_quarto.yml").write_bytes(SETTINGS.replace("A tiny", "A\xa0tiny").encode("latin-1"))
    assert refusal(root) == ["_quarto.yml:4: this file is not UTF-8 text."]


def test_a_missing_citation_key_is_named(write_book: Write) -> None:
    root = write_book(
        "# A\n\ntext [@nobody]\n\n::: {#refs}\n:::\n",
        {"s.bib": "@book{knuth, title={T}, author={Knuth, D.}, year={1984}}"},
        SETTINGS + "bibliography: s.bib\n",
    )
    assert refusal(root) == ["index.qmd:3: the citation @nobody is not in s.bib."]


@pytest.mark.parametrize("text", ["# A\n\nOf [@knuth].\n", "# A\n\nOf [@knuth; @two].\n\n[@two]\n"])
def test_citations_that_no_page_lists_are_refused_at_the_first(
    text: str, write_book: Write
) -> None:
    bib = "@book{knuth, title={T}, year={1984}}\n@book{two, title={U}, year={1985}}"
    root = write_book(text, {"s.bib": bib}, SETTINGS + "bibliography: s.bib\n")
    why = "needs a page that holds `::: {#refs}` and `:::` to list it."
    assert refusal(root) == [f"index.qmd:3: the citation @knuth {why}"]


def test_a_reference_before_a_citation_is_refused_once(write_book: Write) -> None:
    text = "# A\n\n## B {#sec-b}\n\nSee @sec-b [@knuth].\n\n::: {#refs}\n:::\n"
    bib = "@book{knuth, title={T}, author={Knuth, D.}, year={1984}}"
    root = write_book(text, {"s.bib": bib}, SETTINGS + "bibliography: s.bib\n")
    sentence = "one pair of brackets holds references and citations; split it."
    assert refusal(root) == [f"index.qmd:5: {sentence}"]


def test_an_id_may_stand_once_in_each_format(write_book: Write) -> None:
    twins = [
        f'::: {{.content-visible when-format="{form}"}}\n[x]{{#x}}\n:::\n'
        for form in ("html", "typst")
    ]
    render(write_book("\n".join(["# A\n", *twins])))


def test_a_duplicate_label_in_another_chapter_is_named(write_book: Write) -> None:
    root = write_book("# A {#sec-a}\n", {"b/two.qmd": "# B\n\n## C {#sec-a}\n"})
    assert refusal(root) == ["b/two.qmd:3: the label `sec-a` is already taken at index.qmd:1."]


def test_a_reference_to_a_section_from_a_page_without_number_is_named(write_book: Write) -> None:
    root = write_book("# A {.unnumbered}\n\nSee @sec-b.\n", {"two.qmd": "# B {#sec-b}\n"})
    assert refusal(root) == [
        "index.qmd:3: Quarto prints @sec-b by its title where the page has no number; link to it."
    ]


def test_all_problems_of_a_run_come_at_once(write_book: Write) -> None:
    root = write_book("# A\n\n@fig-x\n\n[y](z.csv)\n", {"two.qmd": "# B\n\n@tbl-x\n"})
    places = [problem.split(": ")[0] for problem in refusal(root)]
    assert places == ["index.qmd:3", "index.qmd:5", "two.qmd:3"]


FAILING = {
    "cell": ("# A\n\ntext\n\n```{python}\nx = 1\n1 / 0\n```\n", 5, "ZeroDivisionError: division"),
    "inline value": ("# A\n\nIt is `{python} nothing`.\n", 3, "NameError: name 'nothing'"),
    "end of the process": ("# A\n\n```{python}\nimport os\nos._exit(3)\n```\n", 3, "ended its"),
    "figure without alt text": (
        "# A\n\n```{python}\nfrom matplotlib.figure import Figure\n"
        "f = Figure()\nf.subplots()\nf\n```\n",
        3,
        "needs `fig-alt`",
    ),
    "two outputs under one label": (
        "# A\n\n```{python}\n#| label: tbl-a\n#| tbl-cap: C\n"
        "from IPython.display import Markdown, display\n"
        "display(Markdown('a'))\nMarkdown('b')\n```\n",
        3,
        "must give one Markdown table",
    ),
    "HTML": (
        "# A\n\n```{python}\nfrom IPython.display import HTML\nHTML('<b>')\n```\n",
        3,
        "text/html",
    ),
    "HTML in a line": (
        "# A\n\nIt is `{python} __import__('IPython').display.HTML('b')`.\n",
        3,
        "gives HTML",
    ),
    "endless word": ("# A\n\n```{python}\nprint('x' * 300_000)\n```\n", 3, "a word of more than"),
    "no value": ("# A\n\nIt is `{python} None`.\n", 3, "gives None"),
    "no number": ("# A\n\nIt is `{python} float('nan')`.\n", 3, "gives nan"),
    "no number, as text": (
        "# A\n\nIt is `{python} f\"{float('nan'):.1f} s\"`.\n",
        3,
        "gives nan s",
    ),
    "no end": ("# A\n\nIt is `{python} float('inf')`.\n", 3, "gives inf"),
    "NumPy's repr": ("# A\n\n`{python} __import__('numpy').float64(2)`\n", 3, "np.float64(2.0)"),
    "None in a list": ("# A\n\nIt is `{python} [1, None]`.\n", 3, "gives [1, None]"),
    "address of an object": ("# A\n\nIt is `{python} object()`.\n", 3, "gives <object"),
    "address of an object, as text": (
        "# A\n\nIt is `{python} str(object())`.\n",
        3,
        "gives <object",
    ),
    "function": ("# A\n\nIt is `{python} len`.\n", 3, "gives <function len"),
    "lone surrogate": ("# A\n\n```{python}\nprint('\\ud800')\n```\n", 3, "U+D800"),
    "lone surrogate in a line": ("# A\n\nIt is `{python} '\\ud800'`.\n", 3, "U+D800"),
    "lone surrogate in an error": (
        "# A\n\n```{python}\nraise ValueError('\\ud800')\n```\n",
        3,
        "ValueError",
    ),
    "NUL": ("# A\n\n```{python}\nprint('\\0')\n```\n", 3, "U+0000"),
    "plain text in math": ("# A\n\n$x = `{python} '2,039.4'`$\n", 3, "escapes inside math"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_fault_in_what_a_cell_gives_is_named_by_the_line_of_the_cell(
    name: str, write_book: Write
) -> None:
    text, line, words = FAILING[name]
    problems = refusal(write_book(text))
    assert any(p.startswith(f"index.qmd:{line}: ") and words in p for p in problems), problems


def test_the_command_line_says_it_in_sentences_and_exits_with_one(write_book: Write) -> None:
    done = press("render", write_book("# A\n\n@fig-x\n"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "index.qmd:3: the reference @fig-x cannot be resolved: nothing has that label.\n"
    )


def test_a_folder_that_is_no_book_is_one_sentence(tmp_path: Path) -> None:
    done = press("render", tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "there is no _quarto.yml" in done.stderr


@pytest.mark.parametrize("rest", ["", "```{python}\nx = 1\n```\n"])
def test_a_title_in_front_matter_needs_no_prose_after_it(rest: str, write_book: Write) -> None:
    root = write_book(f"---\ntitle: A bare chapter\n---\n{rest}")
    render(root, "html")
    assert "A bare chapter</h2>" in (root / "_book/index.html").read_text(encoding="utf-8")


MARKED = ["x^2^", "H~2~O", "**3**x", "_4_", "10--20"]


@pytest.mark.parametrize("word", MARKED)
def test_a_digit_between_marks_is_listed_with_its_line(word: str, write_book: Write) -> None:
    (problem,) = audit(write_book(f"# A\n\ntext\n\nAn {word} here.\n"))
    assert problem.line == 5


BIBLIOGRAPHIES = {
    "malformed": (b"@book{a, title={T}}\n\n@book{b, title={", 3, "not valid BibTeX"),
    "in another encoding": (b"@book{a,\n title={\xa0}}", 2, "not UTF-8"),
    "source given twice": (b"@book{a, title={T}}\n@book{a, title={U}}\n", 2, "`a` is given twice"),
}


@pytest.mark.parametrize("name", BIBLIOGRAPHIES)
def test_a_fault_in_the_bibliography_is_named_though_nothing_cites_it(
    name: str, write_book: Write
) -> None:
    content, line, words = BIBLIOGRAPHIES[name]
    root = write_book("# A\n", {}, SETTINGS + "bibliography: s.bib\n")
    (root / "s.bib").write_bytes(content)
    (problem,) = refusal(root)
    assert problem.startswith(f"s.bib:{line}: ")
    assert words in problem


ACTIVE = {
    "a script": ("<script>alert(1)</script>", "<script>"),
    "an event": ('<rect onload="alert(1)"/>', "onload='alert(1)'"),
    "an address that is code": ('<a href=" java\nscript:alert(1)"/>', "href="),
    "an old address that is code": ('<a xlink:href="javascript:alert(1)"/>', "href="),
    "data that are a page": ('<use href="data:text/html,x"/>', "href="),
    "a drawing in data": ('<use href="data:image/svg+xml,x"/>', "href="),
    "an address set later": (
        '<set attributeName="href" to="javascript:alert(1)"/>',
        "attributeName=",
    ),
    "a page in it": ("<foreignObject/>", "<foreignObject>"),
}


@pytest.mark.parametrize("what", ACTIVE)
@pytest.mark.parametrize("kind", ["![x](a.svg){fig-alt=x}", "See [x](a.svg)."])
def test_a_drawing_that_would_run_something_alone(what: str, kind: str, write_book: Write) -> None:
    inside, named = ACTIVE[what]
    head = SVG.removesuffix("/>") + ' xmlns:xlink="http://www.w3.org/1999/xlink">'
    root = write_book(f"# A\n\n{kind}\n", {"a.svg": f"{head}{inside}</svg>"})
    (problem,) = refusal(root)
    assert problem.startswith("index.qmd:3: ")
    assert f"holds {named}" in problem
    assert problem.endswith("which would run when it is opened alone.")


def test_a_drawing_with_entities_is_refused(write_book: Write) -> None:
    svg = f"<!DOCTYPE svg [<!ENTITY x 'y'>]>{SVG}"
    (problem,) = refusal(write_book("# A\n\nSee [x](a.svg).\n", {"a.svg": svg}))
    assert "holds `<!ENTITY`, which may load or run something" in problem


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "//other.example/x"]
)
def test_a_link_leads_to_a_page_or_a_site(address: str, write_book: Write) -> None:
    (problem,) = refusal(write_book(f"# A\n\nSee [x]({address}).\n"))
    assert problem == f"index.qmd:3: `{address}`: a link elsewhere begins with https:// or mailto:."
