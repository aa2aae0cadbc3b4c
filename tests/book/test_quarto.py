"""Quarto and press print the same words, numbers, references, tables and code, page and PDF.

The comparison of real renders runs where `quarto` is on PATH; that the comparison sees what it
should is tested everywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typst

from press.reading.project import read_book
from tests.book.parity import page_differences, pdf_differences
from tests.book.rendered import REPOSITORY, copy_tracked

EVERYTHING = REPOSITORY / "tests" / "press" / "books" / "everything"
# A book without a style of its own takes press's: text in its figures stays text.
STYLE = {"MATPLOTLIBRC": str(REPOSITORY / "press" / "running" / "matplotlibrc")}
CELL = re.compile(r" *Cell \d+/\d+: '[\w-]+'\.*Done$")  # a label may speak of errors
# In Quarto's PDF figures stand where they are written, so here they do in that of press too.
PRESS_WITHOUT_FLOATS = """
import sys
from press.__main__ import main
from press.writing.pdf import _Typst

_Typst.place = lambda dresser: "here"
sys.exit(main())
"""
KERNEL = "Kernel is running over TCP without encryption"  # Jupyter's own line, not Quarto's


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("quarto") is None and os.environ.get("QUARTO_REQUIRED") != "1",
    reason="Quarto is not on PATH; where it is, its pages and PDF are compared with those of press",
)
@pytest.mark.parametrize(
    ("sources", "style"), [(REPOSITORY, {}), (EVERYTHING, STYLE)], ids=["book", "everything"]
)
def test_both_engines_print_the_same(sources: Path, style: dict[str, str], tmp_path: Path) -> None:
    copies = {"press": tmp_path / "press", "quarto": tmp_path / "quarto"}
    for copy in copies.values():
        files = copy_tracked(sources, copy)
    render = [sys.executable, "-c", PRESS_WITHOUT_FLOATS, "render", str(copies["press"])]
    done = run(render, REPOSITORY, style)
    assert done.returncode == 0, done.stdout
    settings = style | {"QUARTO_PYTHON": sys.executable, "NO_COLOR": "1"}
    done = run(["quarto", "render"], copies["quarto"], settings)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if not CELL.match(line)]
    warnings = [line for line in lines if re.search("(?i)warn|error", line)]
    assert not [line for line in warnings if KERNEL not in line]

    ours, theirs = (copy / "_book" for copy in copies.values())
    pdf = next(ours.glob("*.pdf")).name
    book = read_book(copies["press"])
    left_out = [title_of(copies["press"] / name) for name in book.left_out]
    assert not [
        *page_differences(ours, theirs),
        *pdf_differences(ours / pdf, theirs / pdf, book.parts, left_out),
        *(f"Quarto changed {f}" for f in files if differ(sources / f, copies["quarto"] / f)),
    ]


def run(
    command: list[str], folder: Path, settings: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | settings
    out, error = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=out, stderr=error, text=True, check=False
    )


def title_of(chapter: Path) -> str:
    heading = re.search(r"^# (.+?)(?: \{.*\})?$", chapter.read_text(encoding="utf-8"), re.M)
    assert heading, chapter
    return heading[1]


def differ(one: Path, other: Path) -> bool:
    return one.read_bytes() != other.read_bytes()


# --- what the comparison folds, and what it must see ---

PRESS = """
<nav>Contents</nav><main id="main"><article>
<header class="chapter-title"><h1 id="sec-a"><span>2</span> Light</h1></header>
<p>A trip takes 60&nbsp;ms, <a class="crossref" href="other.html#fig-a">Figure 1.1</a> of
<a href="other.html#sec-o">Chapter 1</a>, and <span class="math
inline"><math data-tex="v = 2"><mi>v</mi><mo>=</mo><mn>2</mn></math></span>.</p>
<p>By others (Zhang, Roller, and Goyal 2022b; Zhang, Roller, Artetxe, et al. 2022) and one
(Horowitz 2014a).</p>
<div id="eq-t"><span class="math display"><math data-tex="T = 2d"><mi>T</mi><mo>=</mo><mn>2</mn>
<mi>d</mi></math></span> <span>(2.1)</span></div>
<figure><svg role="img" aria-label="A line rises."><text>60</text></svg><figcaption>Figure 2.1:
Up</figcaption></figure>
<div class="callout-title"><span></span><span>Take care</span></div>
<pre><code>if x:\n    y()</code></pre>
<section class="footnotes"><hr /><ol><li><p>A note.</p></li></ol></section>
</article></main><footer>built from 1234567</footer>
"""
QUARTO = """
<nav>Contents of another kind</nav><main>
<header><h1><span id="sec-a"><span>2</span>&nbsp; <span>Light</span></span></h1></header>
<p>A trip takes 60&nbsp;ms, <a href="../chapters/other.html#fig-a">Figure&nbsp;<span>1.1</span></a>
of <a href="other.html">Chapter&nbsp;1</a>, and
<math><semantics><mrow><mi>v</mi><mo>=</mo><mn>2</mn></mrow>
<annotation encoding="application/x-tex">v = 2</annotation></semantics></math>.</p>
<p>By others (Zhang et al. 2022; Zhang et al. 2022) and one (Horowitz 2014).</p>
<p><span><math><mi>T</mi><mo>=</mo><mn>2</mn><mi>d</mi><mspace width="2em"></mspace><mo>(</mo>
<mn>2.1</mn><mo>)</mo><annotation encoding="application/x-tex">T = 2d  \\qquad(2.1)</annotation>
</math></span></p>
<figure><img src="a.svg" alt="A line rises."><figcaption>Figure&nbsp;2.1: Up</figcaption></figure>
<div><i></i><span class="screen-reader-only">Caution</span>Take care</div>
<pre><code><a href="#cb1-1"></a>if x:\n    y()</code><button>Copy</button></pre>
<div id="refs" style="display: none"><p>Horowitz 2014</p></div>
<section class="footnotes"><hr><ol><li><p>A note.</p></li></ol></section>
</main>
"""


def differences_of(press: str, quarto: str, folder: Path) -> list[str]:
    sites = [folder / "press", folder / "quarto"]
    for site, page in zip(sites, (press, quarto), strict=True):
        (site / "chapters").mkdir(parents=True)
        (site / "chapters" / "light.html").write_text(page, encoding="utf-8")
    return page_differences(*sites)


def test_pages_that_say_the_same_do_not_differ(tmp_path: Path) -> None:
    assert differences_of(PRESS, QUARTO, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A trip", "A journey"),
        ("60&nbsp;ms", "61&nbsp;ms"),
        ("1.1</", "1.2</"),
        ("other.html#fig-a", "other.html#fig-b"),
        ("<mn>2</mn></mrow>", "<mn>3</mn></mrow>"),
        ("<mn>2</mn><mi>d</mi>", "<mn>3</mn><mi>d</mi>"),
        ("2.1</mn>", "2.2</mn>"),
        ("A line rises.", "A line falls."),
        ("Up<", "Down<"),
        ("Take care", "Beware"),
        ("    y()", "y()"),
        ("A note.", ""),
        ("Horowitz 2014", "Horowitz et al. 2014"),
    ],
)
def test_a_page_that_says_something_else_differs(old: str, new: str, tmp_path: Path) -> None:
    assert old in QUARTO
    assert differences_of(PRESS, QUARTO.replace(old, new), tmp_path)


BODY = """
#heading(numbering: none)[Preface]
Words of a preface, among them a rather long one: incomprehensibilities, incomprehensibilities.
#pagebreak()
= Light
A trip takes 60 ms.#footnote[A note of 130 bits.] See Equation NUMBER. #lorem(200)
#table(columns: 2, [1], [2], [Level of the hierarchy], [64 GB/s])
#figure(rect[100 000 ns], caption: [A drawing])
"""
NARROW = """
#set page("a4", margin: (x: 65mm), header: [Running head])
#set par(justify: true)
#set heading(numbering: "1")
"""
WIDE = '#set page("a4", numbering: "1")\n#set heading(numbering: "1")\n'


def pdf(text: str, file: Path) -> Path:
    source = file.with_suffix(".typ")
    source.write_text(text, encoding="utf-8")
    typst.compile(source, output=file)
    return file


@pytest.mark.parametrize(
    ("old", "new"),
    [("", ""), ("60 ms", "61 ms"), ("130 bits", "131 bits"), ("64 GB", "65 GB"), ("long", "short")],
)
def test_pdfs_differ_by_what_they_say_alone(old: str, new: str, tmp_path: Path) -> None:
    one = pdf(WIDE + BODY.replace("NUMBER", "1.1"), tmp_path / "press.pdf")
    other = pdf(NARROW + BODY.replace("NUMBER", "(1.1)").replace(old, new), tmp_path / "quarto.pdf")
    assert bool(pdf_differences(one, other, [])) == (old != new)


def test_the_title_of_a_folded_note_is_no_difference(tmp_path: Path) -> None:
    """Press has on paper what the note holds, Quarto the title too."""
    titled = BODY.replace("A trip", "Symbols of it\n\nA trip")
    assert titled != BODY
    one, other = pdf(WIDE + BODY, tmp_path / "press.pdf"), pdf(NARROW + titled, tmp_path / "q.pdf")
    assert pdf_differences(one, other, [])
    note = '<div class="callout callout-note"><details><summary class="callout-title"><span></span>'
    title = '<span class="callout-title-text">\nSymbols of it\n</span></summary></details></div>'
    (tmp_path / "light.html").write_text(note + title, encoding="utf-8")
    assert not pdf_differences(one, other, [])
