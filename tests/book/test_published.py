"""Pages print what they quote, and chapters compute nothing."""

from __future__ import annotations

import ast
import html
import re
from pathlib import Path

import pytest

from calc.derivations import math, show, within, words
from calc.derivations.decisions import UNDECIDED, PrecisionByBatch
from calc.derivations.hardware_tables import AcceleratorTables
from calc.formats import element_size
from press.document.pandoc import run_pandoc
from tests.page_texts import page_texts
from tools.ledger.quotes import Quote, chapters, quotes
from tools.ledger.rows import derived

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds


def printed(quote: Quote) -> str:
    """Return the text that the inline expression must print, without Markdown's escapes."""
    namespace = {**derived(), "show": show, "math": math, "words": words, "within": within}
    text = str(eval(quote.expression, namespace))
    return text if quote.expression.startswith("math") else re.sub(r"\\([^\w\s])", r"\1", text)


def test_chapters_quote_and_do_not_compute() -> None:
    form = re.compile(
        r"(show|math|words)\([A-Z]\w*\.\w+(, (\"[^\"]*\"|digits=\d|\d))*\)"
        r"|within\([A-Z]\w*\.\w+, [A-Z]\w*\.\w+(, digits=\d)?\)"
    )
    computed = [quote.expression for quote in quotes() if not form.fullmatch(quote.expression)]
    assert not computed, "quote show(Class.attribute): what is computed belongs in calc.derivations"


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.name)
def test_hidden_cells_only_show_tables_and_figures(chapter: Path) -> None:
    """Cells that a reader does not see hold no arithmetic; those that teach `calc` may."""
    cells = re.findall(
        r"^```\{python\}\n(.*?)^```", chapter.read_text(encoding="utf-8"), re.M | re.S
    )
    for cell in cells:
        if "#| echo: true" in cell:
            continue
        nodes = list(ast.walk(ast.parse(cell)))
        modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        modules |= {
            alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        }
        assert all(re.match(r"(calc\.derivations|figures)\b", name or "") for name in modules), cell
        assert not any(isinstance(node, ast.BinOp | ast.Assign) for node in nodes), cell


# --- the rendered pages ---


def test_pages_print_what_they_quote(book: Path) -> None:
    texts = page_texts(book)
    assert {quote.page for quote in quotes()} <= set(texts), "is each chapter in _quarto.yml?"
    for quote in quotes():
        if not quote.expression.startswith("math"):
            wanted = " ".join(printed(quote).split())
            assert wanted in texts[quote.page], (quote.page, quote.expression)
        else:
            page = (book / quote.page).read_text(encoding="utf-8")
            formula, _ = run_pandoc(
                ["-f", "markdown", "-t", "html", "--mathml"], f"${printed(quote)}$"
            )
            assert signs(formula) in signs(page), (quote.page, quote.expression)


def signs(formulas: str) -> str:
    """Return the signs that a reader sees of formulas in MathML, without the space between."""
    mathml = re.findall(r"(?s)<math.*?</math>", formulas)
    bare = re.sub(r"(?s)<annotation.*?</annotation>|<[^>]+>", "", "".join(mathml))
    return "".join(html.unescape(bare).split())


def test_sizes_of_few_bits_count_the_scales_of_groups() -> None:
    sizes = {
        element_size("weights", options["weights"]).m_as("bit")
        for _, _, options in PrecisionByBatch.formats
    }
    assert [size for size in sizes if size < 8 and size == int(size)] == []


def test_each_row_of_peaks_has_one() -> None:
    rows = [*AcceleratorTables.peak_rows, *AcceleratorTables.small_peak_rows]
    assert [name for name, *cells in rows if not any(cells)] == []


def test_a_gain_is_marked_as_undecided_where_the_intervals_of_both_times_meet() -> None:
    """Printed ends decide: of H200s in BF16 and FP8, and in 4 bits, at few and many users."""
    marks = set()
    for key, _, options in PrecisionByBatch.formats[:2]:
        for batch in (1, 256):
            plans = [PrecisionByBatch.planned(key, batch, each) for each in ({}, options)]
            ends = [plan.points[0]["interval"]["time_per_token"] for plan in plans]
            first, last = sorted(ends, key=lambda end: end["low"])
            undecided = str(PrecisionByBatch.gain(key, batch, options)).endswith(UNDECIDED)
            assert undecided == (last["low"] <= first["high"])
            marks.add(undecided)
    assert True in marks
