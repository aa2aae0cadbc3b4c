"""Every mistake of an author stops the build with `file:line: sentence`, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.press.tiny_book import (
    IN_TIME,
    SETTINGS,
    Write,
    in_format,
    page_of,
    press,
    refusal,
    rendered,
)

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" viewBox="0 0 9 9"/>'
CITING = SETTINGS + "bibliography: s.bib\n"


def named(sentences: list[str], file: str, fault: str) -> bool:
    """Return whether one of these is of a line and holds some words, as `3: never closed` says."""
    line, _, words = fault.partition(": ")
    return any(each.startswith(f"{file}:{line}: ") and words in each for each in sentences)


# What stands below a chapter's title, the line of the fault, and words of the sentence.
BELOW_A_TITLE = {
    "```python\nx": "3: never closed",
    "```{python}\nx": "3: never closed",
    "::: {.callout-note}\nx": "3: never closed",
    "$$\nx = 1": "3: never closed",
    "`{python} 1` and `{python} x": "3: never closed",
    ":::": "3: closes nothing",
    "{{< pagebreak >}}": "3: shortcodes",
    "```{r}\n1\n```": "3: not with `{r}`",
    "- x\n\n  ```{python}\n  1\n  ```": "5: left margin",
    "It is `{r} x`.": "3: not in r",
    "```\n`{python} x`\n```": "4: would compute",
    "```{python}\nx = 1  # <1>\nx\n```\n\n1. one": "4: annotations of code",
    "``` c\nint x;\nx = 1; // <2>\n```\n\n1. one": "5: annotations of code",
    "text\n\n<div>\nx\n</div>": "5: raw html",
    "a <b>c</b>": "3: raw html",
    "a \\emph{c}": "3: raw tex",
    "```{=html}\n<hr>\n```": "3: raw blocks",
    "::: {.column-margin}\nx\n:::": "3: column-margin",
    "::: {.callout-tip icon=false}\nx\n:::": "3: `icon`",
    "```{python}\n#| colour: red\n1\n```": "4: `colour`",
    "```{python}\n#| echo: maybe\n1\n```": "4: true or false",
    "```{python}\n#| echo: [\n1\n```": "5: not valid YAML",
    "```{python}\n#| echo: true\n#| echo: true\n```": "5: twice",
    "```{python}\n#| label: fig-a\n1\n```": "4: `fig-cap`",
    "```{python}\n#| tbl-cap: A\n1\n```": "4: begins `tbl-`",
    '```{python}\n#| label: tbl-a\n#| tbl-cap: "`{python} 1`"\n1\n```': "5: no inline value in",
    "```{python}\n#| label: &a tbl-a\n#| tbl-cap: *a\n1\n```": "5: `*a`",
    "text\n\n# B": "5: one `#` heading",
    "text\n\nSee @fig-none.": "5: @fig-none",
    "See @sec-none.": "3: @sec-none",
    "| a |\n|---|\n| b |\n\n: As in @eq-none {#tbl-a}": "7: @eq-none",
    "::: {.callout-tip}\nx\n\n### B\n\ny\n:::": "6: numbers a heading inside a callout",
    "$$\nx\n$$ {#eq-a}\n\n$$\ny\n$$ {#eq-a}": "9: already taken at index.qmd:5",
    "## X {#x}\n\n[y]{#x}": "5: the id `x` is given twice",
    "text [@knuth]": "3: no bibliography",
    "[x](none.qmd)": "3: does not exist",
    "[x](#none)": "3: no anchor #none",
    'text\n\n![c](no.png){fig-alt="x"}': "5: does not exist",
    "![c](https://a.b/c.png){fig-alt=x}": "3: file of the project",
    "![caption](no.png){#fig-a}": "3: needs alt text",
    "line ![](no.png) line": "3: needs alt text",
    '::: {#fig-a}\n![](no.png){fig-alt="x"}\n:::': "3: must be its caption",
    in_format("html", "$$\nx\n$$ {#eq-a}"): "6: one format only",
    in_format("pdf", "x"): '3: "typst"',
    "and $\\textcolor{red}{x}$": "3: \\textcolor",
    "text\n::: {.callout-tip}\nx\n:::": "4: an empty line",
    "Some text. {#eq-a}": "3: does not follow",
    "Some text.[^a]": "3: has no text",
    "## B {.wide}": "3: `wide`",
    "| a |\n|---|\n| b |\n\n: C {#tbl-a .striped}": "7: striped",
    "a\0b": "3: U+0000",
    f"text\n\n{'>' * 20} x": "5: nest too deep",  # as JSON still holds it
    f"text\n\n{'- ' * 20}x": "5: nest too deep",
    # Attributes that press does not read: none is dropped without a word.
    "[x]{.content-hidden}": "3: `.content-hidden` on a span",
    '[x]{.content-visible when-format="html"}': "3: `.content-visible` on a span",
    "[x]{.aside}": "3: `.aside` on a span",
    "[x]{.column-margin}": "3: `.column-margin` on a span",
    "[x]{.hidden}": "3: `.hidden` on a span",
    "[x]{.index page=3}": "3: `page=` on a span",
    "[x]{lang=fr}": "3: `lang=` on a span",
    "[x](https://example.org){target=_blank}": "3: `target=` on a link",
    "[x](https://example.org){.button}": "3: `.button` on a link",
    "`x`{.hidden}": "3: `.hidden` on inline code",
    '```{.python filename="a.py"}\nx\n```': "3: `filename=` on a code block",
    '```{.python code-line-numbers="true"}\nx\n```': "3: `code-line-numbers=` on a code block",
    '```{#lst-a .python lst-cap="A"}\nx\n```': "3: `#lst-a` on a code block",
    '```{.python lst-cap="A"}\nx\n```': "3: `lst-cap=` on a code block",
    "```{.python .hidden}\nx\n```": "3: `.hidden` on a code block",
    "$$x$$ {.foo}": "3: nothing here takes these attributes",
    # Links elsewhere.
    "See [x](javascript:alert(1)).": "3: a link elsewhere begins with https:// or mailto:.",
    "See [x](data:text/html,x).": "3: a link elsewhere begins with https:// or mailto:.",
    "See [x](//other.example/x).": "3: a link elsewhere begins with https:// or mailto:.",
    # What a cell gives.
    "text\n\n```{python}\nx = 1\n1 / 0\n```": "5: ZeroDivisionError: division",
    "It is `{python} nothing`.": "3: NameError: name 'nothing'",
    "```{python}\nimport os\nos._exit(3)\n```": "3: ended its",
    "```{python}\nfrom matplotlib.figure import Figure\nf = Figure()\nf.subplots()\nf\n```":
        "3: needs `fig-alt`",
    "```{python}\n#| label: tbl-a\n#| tbl-cap: C\nfrom IPython.display import Markdown, display\n"
        "display(Markdown('a'))\nMarkdown('b')\n```": "3: must give one Markdown table",
    "```{python}\nfrom IPython.display import HTML\nHTML('<b>')\n```": "3: text/html",
    "It is `{python} __import__('IPython').display.HTML('b')`.": "3: gives HTML",
    "```{python}\nprint('x' * 300_000)\n```": "3: a word of more than",
    "It is `{python} None`.": "3: gives None",
    "It is `{python} float('nan')`.": "3: gives nan",
    "It is `{python} f\"{float('nan'):.1f} s\"`.": "3: gives nan s",
    "It is `{python} float('inf')`.": "3: gives inf",
    "`{python} __import__('numpy').float64(2)`": "3: np.float64(2.0)",
    "It is `{python} [1, None]`.": "3: gives [1, None]",
    "It is `{python} object()`.": "3: gives <object",
    "It is `{python} str(object())`.": "3: gives <object",
    "It is `{python} len`.": "3: gives <function len",
    "```{python}\nprint('\\ud800')\n```": "3: UnicodeEncodeError",
    "It is `{python} '\\ud800'`.": "3: U+D800",
    "```{python}\nraise ValueError('\\ud800')\n```": "3: ValueError",
    "```{python}\nprint('\\0')\n```": "3: U+0000",
    "$x = `{python} '2,039.4'`$": "3: escapes inside math",
}  # fmt: skip
CHAPTERS = {
    **{source: (f"# A\n\n{source}\n", fault) for source, fault in BELOW_A_TITLE.items()},
    "unclosed front matter": ("---\ntitle: A\n\ntext\n", "1: never closed"),
    "unknown front matter": ("---\ntitle: A\nlayout: wide\n---\n", "3: `layout`"),
    "search of neither kind": ("---\ntitle: A\nsearch: none\n---\n", "3: true or false"),
    "alias in front matter": ("---\ntitle: &a A\nexecute: *a\n---\n", "3: `*a`"),
    "no title": ("text\n", "1: starts with its title"),
    "empty file": ("", "1: starts with its title"),
    "cell before any prose": ("```{python}\n1\n```\n", "1: starts with its title"),
    "title without number": ("# A {#sec-a .unnumbered}\n\nSee @sec-a.\n", "3: has no number"),
    "mixed": ("# A {#sec-a}\n\ntext [@sec-a; @knuth]\n", "3: references and citations"),
    "quotes in quotes": (f"# A\n\ntext\n\n{'>' * 2000} x\n", "5: nest too deep"),
    "emphasis": (f"# A\n\n{'*a **b ' * 500}x{'** *' * 500}\n", "3: nest too deep"),
    "blocks": ("# A\n\n" + "::: {.callout-note}\n" * 1000 + ":::\n" * 1000, "15: nest too deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_fault_in_a_chapter_is_named_by_its_line(name: str, write_book: Write) -> None:
    text, fault = CHAPTERS[name]
    problems = refusal(write_book(text))
    assert named(problems, "index.qmd", fault), problems


READ = [
    "[x]{#here} `x`{.python} <https://example.org> <a@example.org> [up](#here)\n\n"
    "```bash\nls\n```\n\n```{.c}\nx\n```",
    in_format("html", "[x]{#x}") + "\n" + in_format("typst", "[x]{#x}"),  # once in each format
]


@pytest.mark.parametrize("construct", READ)
def test_what_press_reads_is_not_refused(construct: str, write_book: Write) -> None:
    assert page_of(rendered(write_book(f"# A\n\n{construct}\n")))


@pytest.mark.parametrize("width", ["foo", "200", '"1em); #panic("', "-5cm", "5furlong"])
@pytest.mark.parametrize("around", ["", "A mark in a line: "])
def test_a_width_that_is_no_length_is_named(width: str, around: str, write_book: Write) -> None:
    image = f'{around}![c](a.svg){{fig-alt="x" width={width}}}'
    sentence = "an image's width is a number with %, in, cm, mm, em, pt or px, not"
    assert refusal(write_book(f"# A\n\n{image}\n", {"a.svg": SVG})) == [
        f"index.qmd:3: {sentence} `{width.strip(chr(34))}`."
    ]


@pytest.mark.parametrize("width", ["50%", "2in", "5.5cm", "50mm", "9em", "90pt", "200px"])
def test_a_width_that_is_a_length_is_honoured(width: str, write_book: Write) -> None:
    text = f'# A\n\n![c](a.svg){{fig-alt="x" width={width}}}\n\nA ![m](a.svg){{width={width}}}.\n'
    root = rendered(write_book(text, {"a.svg": SVG}))
    drawn = f'<svg role="img" aria-label="x" style="width: {width}; height: auto"'
    assert drawn in page_of(root)
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
    (problem,) = refusal(root, only)
    assert problem.startswith(f"index.qmd:5: the image i/{name} is {words}")


AUTHOR, FIRST, FORMAT, TYPE = "author: A. Tester", "- index.qmd", "format:", "type: book"
TITLE, PDF = "title: A tiny book", "typst: default"
BOMB = "".join(f"  a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(30))
# Text that the tiny book's settings hold, what stands there instead, and the fault.
SETTINGS_FAULTS = {
    "shared": (FORMAT, "shared: [ours]\nformat:", "8: `shared` needs `execute-dir: project`"),
    "missing chapter": (FIRST, f"{FIRST}\n    - none.qmd", "8: none.qmd does not exist"),
    "chapter listed twice": (FIRST, f"{FIRST}\n    {FIRST}", "8: listed twice"),
    "chapter outside": (FIRST, f"{FIRST}\n    - ../x.qmd", "8: outside the project"),
    "chapter spelled from here": (FIRST, "- ./index.qmd", "7: write index.qmd, not ./"),
    "script in another language": (TYPE, f"{TYPE}\n  pre-render: a.R", "3: in Python"),
    "script": (TYPE, f"{TYPE}\n  pre-render:\n    - no.py --all", "3: no.py does not exist"),
    "list of chapters": (FORMAT, "metadata-files: [more.yml]\nformat:", "8: the file more.yml"),
    "references": (AUTHOR, "references: last.qmd", "5: the chapter last.qmd does not exist"),
    "unknown key": (AUTHOR, "colour: red", "5: `book.colour`"),
    "address of no site": (AUTHOR, "site-url: mine", "5: https://"),
    "footer to no page": (AUTHOR,
        "page-footer:\n    center:\n      - text: X\n        href: no.qmd", "7: `href` of a chap"),
    "unknown format": (PDF, "docx: default", "10: `format.docx`"),
    "malformed": (TITLE, "title: [", "6: not valid YAML"),
    "no title": (TITLE, "subtitle: B", "3: `book.title`"),
    "another type": (TYPE, "type: website", "1: must be `book`"),
    "missing bibliography": (FORMAT, "bibliography: no.bib\nformat:", "8: no.bib"),
    "output over the project": (TYPE, f"{TYPE}\n  output-dir: .", "3: `output-dir`"),
    "output over the sources": (TYPE, f"{TYPE}\n  output-dir: chapters", "3: must begin with _"),
    "another citation of the PDF": (PDF, "typst:\n    citeproc: false", "11: always cites"),
    "words before the PDF": (PDF,
        "typst:\n    include-before-body:\n      text: |\n        #set par()\n        Hello",
        "12: not `Hello`"),
    "part from a file": (FIRST, f"{FIRST}\n    - part: p.qmd\n      chapters: [index.qmd]",
        "8: a part is a title"),
    "part in no list": (FIRST, f"{FIRST}\n    - part: P\n      chapters: a.qmd",
        "9: `chapters` must be a list"),
    "number as output folder": (TYPE, f"{TYPE}\n  output-dir: 5", "3: text, not 5"),
    "number as file": (FORMAT, "bibliography: 5\nformat:", "8: `bibliography` needs text"),
    "number in a list": (FORMAT, "bibliography:\n  - 5\nformat:", "9: `bibliography` needs"),
    "number as name": (AUTHOR, "output-file: 7", "5: `book.output-file` needs text"),
    "author without a name": (AUTHOR, "author:\n    - A\n    - email: x", "7: needs a `name`"),
    "more appendices than letters": (FIRST,
        f"{FIRST}\n  appendices:" + "".join(f"\n    - {n}.qmd" for n in range(28)),
        "35: this is the 27th"),
    "alias": (AUTHOR, "author: &a T\n  subtitle: *a", "6: `*a`"),
    "alias of what it stands in": (AUTHOR, "author: &a [*a]", "5: `*a`"),
    "aliases that multiply": (AUTHOR, f"author: &a0 [x]\n{BOMB}", "6: `*a0`"),
    "lists in lists": (AUTHOR, f"author: {'[' * 100_000}", "5: nests deeper than"),
    "mappings": (AUTHOR, "author:\n" + "".join(f"{' ' * (n + 4)}a:\n" for n in range(200)),
        "54: nests deeper than"),
    "more than a person writes": (AUTHOR, f"author: {'x' * 2_000_000}", "1: larger"),
    "NUL in the title": (TITLE, 'title: "A\\0 book"', "4: U+0000"),
    "NUL in the name of a chapter": (FIRST, f'{FIRST}\n    - "a\\0.qmd"', "8: U+0000"),
    "escape in the author's name": (AUTHOR, 'author: "\\e[31m"', "5: U+001B"),
    "limit": (FORMAT, "execute:\n  timeout: soon\nformat:", "9: `execute.timeout` is a number of"),
    "no time at all": (FORMAT, "execute:\n  timeout: 0\nformat:", "9: above 0"),
    **{f"`{sign}`": (FIRST, f"{FIRST}\n    - 'a{sign}b.qmd'", f"8: `{sign}`")
       for sign in '?:\\#%"*<>|'},
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS_FAULTS)
def test_a_fault_in_the_settings_is_named_by_its_line(name: str, write_book: Write) -> None:
    old, new, fault = SETTINGS_FAULTS[name]
    assert old in SETTINGS
    problems = refusal(write_book("# A\n", settings=SETTINGS.replace(old, new, 1)))
    assert named(problems, "_quarto.yml", fault), problems


def test_settings_that_are_not_utf_8_are_named_by_their_line(write_book: Write) -> None:
    root = write_book("# A\n")
    (root / "_quarto.yml").write_bytes(SETTINGS.replace("A tiny", "A\xa0tiny").encode("latin-1"))
    assert refusal(root) == ["_quarto.yml:4: this file is not UTF-8 text."]


REFS = "\n\n::: {#refs}\n:::"
HOLDS = "needs a page that holds `::: {#refs}` and `:::` to list it."
UNLISTED = f"index.qmd:3: the citation @knuth {HOLDS}"
CITATIONS = {
    f"text [@nobody]{REFS}": "index.qmd:3: the citation @nobody is not in s.bib.",
    f"## B {{#sec-b}}\n\nSee @sec-b [@knuth].{REFS}":
        "index.qmd:5: one pair of brackets holds references and citations; split it.",
    "Of [@knuth].": UNLISTED,
    "Of [@knuth; @two].\n\n[@two]": UNLISTED,
}  # fmt: skip


@pytest.mark.parametrize("text", CITATIONS)
def test_a_citation_that_no_page_can_list_is_refused_once(text: str, write_book: Write) -> None:
    sources = "@book{knuth, title={T}, year={1984}}\n@book{two, title={U}, year={1985}}"
    root = write_book(f"# A\n\n{text}\n", {"s.bib": sources}, CITING)
    assert refusal(root) == [CITATIONS[text]]


TWO = {  # chapters, and what is said of both
    ("# A {#sec-a}\n", "# B\n\n## C {#sec-a}\n"): [
        "m/two.qmd:3: the label `sec-a` is already taken at index.qmd:1."
    ],
    ("# A {.unnumbered}\n\nSee @sec-b.\n", "# B {#sec-b}\n"): [
        "index.qmd:3: Quarto prints @sec-b by its title where the page has no number; link to it."
    ],
    ("# A\n\n@fig-x\n\n[y](z.csv)\n", "# B\n\n@tbl-x\n"): [
        "index.qmd:3", "index.qmd:5", "m/two.qmd:3"
    ],
}  # fmt: skip


@pytest.mark.parametrize("chapters", TWO)
def test_all_problems_of_a_run_come_at_once(chapters: tuple[str, str], write_book: Write) -> None:
    problems = refusal(write_book(chapters[0], {"m/two.qmd": chapters[1]}))
    expected = TWO[chapters]
    assert len(problems) == len(expected)
    assert all(map(str.startswith, problems, expected))


@pytest.mark.slow
def test_other_chapters_go_on_when_one_meets_the_limit(write_book: Write) -> None:
    chapters = {"b.qmd": "# B\n\n```{python}\nimport time\ntime.sleep(600)\n```\n"}
    chapters["c.qmd"] = "# C\n\n```{python}\n1 / 0\n```\n"
    places = [each.split(": ")[0] for each in refusal(write_book("# A\n", chapters, IN_TIME))]
    assert places == ["b.qmd:3", "c.qmd:3"]


def test_the_command_line_says_it_in_sentences_and_exits_with_one(
    write_book: Write, tmp_path: Path
) -> None:
    done = press("render", write_book("# A\n\n@fig-x\n"))
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", "index.qmd:3: the reference @fig-x cannot be resolved: nothing has that label.\n"
    )  # fmt: skip
    done = press("render", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "there is no _quarto.yml" in done.stderr


@pytest.mark.parametrize("rest", ["", "```{python}\nx = 1\n```\n"])
def test_a_title_in_front_matter_needs_no_prose_after_it(rest: str, write_book: Write) -> None:
    root = rendered(write_book(f"---\ntitle: A bare chapter\n---\n{rest}"), "html")
    assert "A bare chapter</h2>" in page_of(root)


WHEEL = b'[tool.hatch.build.targets.wheel]\npackages = "calc"\n'
BESIDE = [
    ("s.bib:3: ", b"@book{a, title={T}}\n\n@book{b, title={", "not valid BibTeX"),
    ("s.bib:2: ", b"@book{a,\n title={\xa0}}", "not UTF-8"),
    ("s.bib:2: ", b"@book{a, title={T}}\n@book{a, title={U}}\n", "`a` is given twice"),
    ("pyproject.toml", b"[project\n", "this is not valid TOML"),
    ("pyproject.toml", b'[project]\nname = "\xa0"\n', "not UTF-8"),
    ("pyproject.toml", b"a = " + b"[" * 20_000, "not valid TOML"),
    ("pyproject.toml", b"project = 3\n", "`project.version`"),
    ("pyproject.toml", b"[project]\nversion = 3\n", "`project.version`"),
    ("pyproject.toml", WHEEL, "`tool.hatch.build.targets.wheel.packages`"),
]


@pytest.mark.parametrize("number", range(len(BESIDE)))
def test_a_fault_in_a_file_beside_the_book_is_one_sentence(number: int, write_book: Write) -> None:
    where, content, words = BESIDE[number]
    file = where.partition(":")[0]
    root = write_book("# A\n", settings=CITING if file == "s.bib" else SETTINGS)
    (root / file).write_bytes(content)
    (problem,) = refusal(root)
    assert problem.startswith(where)
    assert words in problem


ACTIVE = {
    "<script>alert(1)</script>": "<script>",
    '<rect onload="alert(1)"/>': "onload='alert(1)'",
    '<a href=" java\nscript:alert(1)"/>': "href=",
    '<a xlink:href="javascript:alert(1)"/>': "href=",
    '<use href="data:text/html,x"/>': "href=",
    '<use href="data:image/svg+xml,x"/>': "href=",
    '<set attributeName="href" to="javascript:alert(1)"/>': "attributeName=",
    "<foreignObject/>": "<foreignObject>",
}


@pytest.mark.parametrize("inside", ACTIVE)
@pytest.mark.parametrize("kind", ["![x](a.svg){fig-alt=x}", "See [x](a.svg)."])
def test_a_drawing_that_would_run_something_alone(
    inside: str, kind: str, write_book: Write
) -> None:
    head = SVG.removesuffix("/>") + ' xmlns:xlink="http://www.w3.org/1999/xlink">'
    root = write_book(f"# A\n\n{kind}\n", {"a.svg": f"{head}{inside}</svg>"})
    (problem,) = refusal(root)
    assert problem.startswith("index.qmd:3: ")
    assert f"holds {ACTIVE[inside]}" in problem
    assert problem.endswith("which would run when it is opened alone.")


def test_a_drawing_with_entities_is_refused(write_book: Write) -> None:
    svg = f"<!DOCTYPE svg [<!ENTITY x 'y'>]>{SVG}"
    (problem,) = refusal(write_book("# A\n\nSee [x](a.svg).\n", {"a.svg": svg}))
    assert "holds `<!ENTITY`, which may load or run something" in problem


@pytest.mark.parametrize("tex", ["{" * 60 + "x" + "}" * 60, r"\sqrt" * 60 + " x", "(" * 60])
def test_math_that_would_kill_typst_is_refused(tex: str, write_book: Write) -> None:
    (problem,) = refusal(write_book(f"# A\n\nThis $y$ and ${tex}$.\n"))
    assert problem == "index.qmd:3: math nests too deep: brackets stand 50 in another at most."
