"""`press audit`: which numbers in prose are listed, with which line, and which are not."""

from __future__ import annotations

import pytest

from press.audit import NAMES, PHRASES, audit
from tests.press.tiny_book import SETTINGS, Write, press


def found(text: str, write_book: Write, names: str = "") -> list[str]:
    root = write_book(text, {NAMES: names})
    return [str(problem) for problem in audit(root)]


LISTED = {
    "text": ("# A\n\ntext\n\nIt moves 3.35 TB/s here.\n", "index.qmd:5: It moves 3.35 TB/s here."),
    "title": ("# A 7 B model\n", "index.qmd:1: A 7 B model"),
    "section": ("# A\n\n## Of 12 cores\n", "index.qmd:3: Of 12 cores"),
    "table": ("# A\n\n| a | b |\n|---|---|\n| x | 400 W |\n", "index.qmd:5: 400 W"),
    "caption": (
        "# A\n\n| a |\n|---|\n| b |\n\n: Of 5 rows {#tbl-a}\n",
        "index.qmd:7: Of 5 rows",
    ),
    "caption of a cell": (
        "# A\n\n```{python}\n#| label: fig-a\n#| fig-cap: Of 8 lines\n#| fig-alt: Lines\n1\n```\n",
        "index.qmd:5: Of 8 lines",
    ),
    "alt text of an image": (
        '# A\n\n![c](a2.png){#fig-a1 fig-alt="Of 6 lines"}\n',
        "index.qmd:3: Of 6 lines",
    ),
    "title of a callout": (
        '# A\n\n::: {.callout-tip title="In 10 steps"}\nx\n:::\n',
        "index.qmd:3: In 10 steps",
    ),
    "footnote": ("# A\n\nx[^1]\n\n[^1]: About 30 ms.\n", "index.qmd:5: About 30 ms."),
    "definition": ("# A\n\nTerm\n:   of 4 bytes\n", "index.qmd:4: of 4 bytes"),
    "text of a link": ("# A\n\n[the 3 laws](https://a.b/9)\n", "index.qmd:3: the 3 laws"),
    "the second of two": ("# A\n\na `64` b\n\n| 64 |\n|---|\n| x |\n", "index.qmd:5: 64"),
    "number with a unit in math": ("# A\n\n$x = 5\\,\\text{GB}$\n", "index.qmd:3: $5\\,\\text{GB$"),
    "decimal in math": ("# A\n\ntext\n$x = 0.05$\n", "index.qmd:4: $0.05$"),
    "long integer in math": ("# A\n\n$x = 961538$\n", "index.qmd:3: $961538$"),
    "a rate like a year": ("# A\n\nAt 1979 TFLOP/s.\n", "index.qmd:3: At 1979 TFLOP/s."),
    "part of a name": ("# A\n\nAn H1000 card\n", "index.qmd:3: An H1000 card"),
    "below a caption with the number": (
        "# A\n\n| a |\n|---|\n| 64 |\n\n: Of the `64` in 64 rows {#tbl-a}\n\nIt has 64.\n",
        ["index.qmd:5: 64", "index.qmd:7: Of the in 64 rows", "index.qmd:9: It has 64."],
    ),
    "after an allowed number": ("# A\n\nx H100 100\n\nOf 100 H100\n",
        ["index.qmd:3: x H100 100", "index.qmd:5: Of 100 H100"]),
    "word": ("# A\n\nThe two take twenty-eight gigabytes.\n",
        "index.qmd:3: The two take twenty-eight gigabytes."),
    "words over two lines": ("# A\n\nIt has seven\nbillion weights.\n",
        "index.qmd:3: It has seven billion weights."),
    "counted thing": ("# A\n\nOn eight GPUs\n", "index.qmd:3: On eight GPUs"),
    "counted name": ("# A\n\nOn Eight H100s\n", "index.qmd:3: On Eight H100s"),
    "times": ("# A\n\nIt is three times as long.\n", "index.qmd:3: It is three times as long."),
    "fraction": ("# A\n\nAbout a quarter of it.\n", "index.qmd:3: About a quarter of it."),
    "rounded half": ("# A\n\nIn nearly half the time.\n", "index.qmd:3: In nearly half the time."),
    "a digit in a hand estimate": ("# A\n\n*By hand:* twelve bytes over 3.\n",
        "index.qmd:3: twelve bytes over 3."),
    "fold": ("# A\n\nIt slows down tenfold.\n", "index.qmd:3: It slows down tenfold."),
}  # fmt: skip


@pytest.mark.parametrize("where", LISTED)
def test_a_typed_number_is_listed(where: str, write_book: Write) -> None:
    text, problems = LISTED[where]
    expected = [problems] if isinstance(problems, str) else problems
    assert found(text, write_book, "H100\n") == expected


ALLOWED = {
    "a name": "The H100 and two H100s in FP16 over PCIe 5.0.",
    "steps of a hand estimate": "*By hand:* nine tenths of `{python} 1`, about three times it.",
    "a year": "Since 2024, and in 1967–1988.",
    "list numbers": "1. one\n2. two",
    "a reference": "See @sec-a1 and [-@sec-a1].",
    "a citation": "As in @knuth1984 [see @knuth1984, p. 99].",
    "code": "Run `x = 1`.\n\n```python\ny = 2\n```",
    "a link": "[here](https://a.b/1) and <https://c.d/2>.",
    "an inline value": "It is `{python} 1 + 1` and $`{python} 2`$.",
    "a cell": "```{python}\n#| echo: true\nprint(12.5)\n```",
    "integers in math": "$6 P D + x^{12} / 127$",
    "the label of an equation": "$$\nx\n$$ {#eq-a1}",
    "the name of a footnote": "Text.[^1]\n\n[^1]: A note.",
    "words of the language": "One of the two is half as long; a third one, a power of two.",
    "words that contain numbers": "Often someone weighs a forty-niner; hundreds of thousands do.",
    "the alt text of a cell, held by its figure": (
        "```{python}\n#| label: fig-a\n#| fig-cap: C\n#| fig-alt: Of 9 lines\n1\n```"
    ),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_what_is_not_a_typed_number_is_not_listed(what: str, write_book: Write) -> None:
    names = "H100\nFP16  # a format\nPCIe 5.0\n"
    phrases = "a third one  # an ordinal\npower of two\n"
    root = write_book(f"# A {{#sec-a1}}\n\n{ALLOWED[what]}\n", {NAMES: names, PHRASES: phrases})
    assert [str(problem) for problem in audit(root)] == []


def test_a_generated_page_is_left_to_its_source(write_book: Write) -> None:
    text = "It has 7 parts.\n"
    assert found(f"# A\n\n<!-- Generated by `python -m x`. -->\n\n{text}", write_book, "") == []
    assert found(f"# A\n\n<!-- Written by hand. -->\n\n{text}", write_book, "")


def test_the_titles_in_the_settings_are_read(write_book: Write) -> None:
    settings = SETTINGS.replace("A tiny book", "A book of 99 pages")
    root = write_book("# A\n", settings=settings)
    assert [str(p) for p in audit(root)] == ["_quarto.yml:4: A book of 99 pages"]


def test_the_command_lists_and_exits_with_one_if_there_is_anything(write_book: Write) -> None:
    done = press("audit", write_book("# A\n\nIt has 7 parts.\n"))
    assert (done.returncode, done.stdout) == (1, "index.qmd:3: It has 7 parts.\n")
    assert "chapters/names-with-digits.txt" in done.stderr
    done = press("audit", write_book("# A\n\nIt has parts.\n"))
    assert (done.returncode, done.stdout) == (0, "")


SCRIPT = "print('chapters/a.qmd:3: the table has no pig.')"


def test_the_command_tells_what_a_script_of_the_book_finds(write_book: Write) -> None:
    settings = SETTINGS + "audit: held.py\n"
    done = press("audit", write_book("# A\n", {"held.py": SCRIPT}, settings=settings))
    assert (done.returncode, done.stdout) == (1, "chapters/a.qmd:3: the table has no pig.\n")
    done = press("audit", write_book("# A\n", {"held.py": ""}, settings=settings))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("script", "refused"),
    [
        ("print('no pig')", "press reads FILE:LINE: SENTENCE, and held.py says 'no pig'."),
        ("raise ValueError('no pig')", "the script held.py failed: ValueError: no pig"),
        (None, "the script held.py does not exist."),
    ],
)
def test_a_script_that_says_no_faults_is_named(
    script: str | None, refused: str, write_book: Write
) -> None:
    files = {} if script is None else {"held.py": script}
    root = write_book("# A\n", files, settings=SETTINGS + "audit: held.py\n")
    line = len((root / "_quarto.yml").read_text().splitlines())
    assert press("audit", root).stderr == f"_quarto.yml:{line}: {refused}\n"
