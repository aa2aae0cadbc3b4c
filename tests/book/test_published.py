"""Every published number: `calc` gives it, an independent witness agrees, the page prints it.

Witnesses are executed by `test_by_hand`.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

from calc import derivations
from calc.core.units import Quantity
from calc.derivations import math, show, within, words
from calc.derivations.lines import READERS
from press.document.pandoc import run_pandoc
from tests.book import tables
from tests.book.counts import COUNTS
from tests.book.entries import ENTRIES
from tests.book.rendered import REPOSITORY, Quote, chapters, quotes
from tests.page_texts import page_texts
from tests.rows import each_row

pytestmark = pytest.mark.xdist_group("derivations")  # computed once, for seconds

TABLES = {name: entry for name, entry in ENTRIES.items() if "cells" in entry}
PUBLISHED = {name: entry for name, entry in ENTRIES.items() if name not in TABLES}


@cache
def modules() -> list[ModuleType]:
    """The modules of derivations, which compute for seconds when they are imported."""
    return [
        import_module(f"calc.derivations.{found.name}")
        for found in iter_modules(derivations.__path__)
        if found.name not in READERS
    ]


def classes() -> list[type]:
    return [
        cls
        for module in modules()
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__
    ]


@cache
def derived() -> dict[str, type]:
    """The derivations by their names."""
    return {cls.__name__: cls for cls in classes()}


def value_of(name: str) -> Any:
    owner, attribute = name.split(".")
    return getattr(derived()[owner], attribute)


def printed(quote: Quote) -> str:
    """Return the text that the inline expression must print, without Markdown's escapes."""
    given = {**derived(), "show": show, "math": math, "words": words, "within": within}
    text = str(eval(quote.expression, given))
    return text if quote.expression.startswith("math") else re.sub(r"\\([^\w\s])", r"\1", text)


# --- the numbers themselves ---


def test_a_name_means_one_derivation() -> None:
    again = [cls for cls in classes() if derived()[cls.__name__] is not cls]
    assert not again, "another chapter's module has a class of this name; call one otherwise"


def test_every_entry_has_a_witness() -> None:
    """Arithmetic that `test_by_hand` executes, or words that say where the value comes from."""
    witnesses = {
        name: entry.get("hand") or entry.get("origin", "") for name, entry in ENTRIES.items()
    }
    assert [name for name, witness in witnesses.items() if not witness.strip()] == []


def published_value(entry: dict[str, Any]) -> float | str:
    """Return the value as it is written, or as it is counted where it grows with the data."""
    if "counted" in entry:
        return COUNTS[entry["counted"]]()
    value: float | str = entry["text"] if "text" in entry else entry["value"]
    return value


def test_calc_agrees_with_the_independent_origins() -> None:
    wrong = []
    for name, entry in PUBLISHED.items():
        try:
            value = value_of(name)
            if isinstance(value, Quantity):
                value = value.m_as(entry.get("unit", ""))
        except Exception as error:
            value = error
        expected = published_value(entry)
        if value != (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-5)):
            witness = entry.get("hand") or entry["origin"]
            wrong.append(f"{name} is {value!r}, published {expected!r}: {witness}")
    assert not wrong, (
        "tests/published.toml disagrees with calc; where calc is right, correct it there, by its"
        " witness:\n" + "\n".join(wrong)
    )


# --- nothing quoted without an entry ---


def inputs() -> set[str]:
    """Attributes of derivations that are given, not computed: literals, data, and their names."""
    assigned = [
        (cls.name, line.targets[0].id, line.value)
        for module in modules()
        for cls in ast.parse(inspect.getsource(module)).body
        if isinstance(cls, ast.ClassDef)
        for line in cls.body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
    ]
    found: set[str] = set()
    while True:  # again while a class names what another module turned out to be given
        more = {f"{cls}.{name}" for cls, name, value in assigned if is_given(value, cls, found)}
        if more == found:
            return found
        found = more


def is_given(expression: ast.expr, owner: str, given: set[str]) -> bool:
    """Return whether an expression only names, reads or states something."""
    match expression:
        case ast.Constant():
            return True
        case ast.Call(func=ast.Name(id="quantity"), args=arguments):
            return all(isinstance(argument, ast.Constant) for argument in arguments)
        case ast.Call(
            func=ast.Attribute(
                value=ast.Name(id="constants" | "hardware" | "machines" | "models" | "runs"),
                attr="get",
            )
        ):
            return True
        case ast.Attribute(value=ast.Name(id="constants")):
            return True
        case ast.Name(id=name):
            return f"{owner}.{name}" in given
        case ast.Attribute(value=ast.Name(id=other), attr=name) if other[0].isupper():
            return f"{other}.{name}" in given
        case ast.Attribute(value=device):  # h100.memory_bandwidth, hardware.get("h100").tdp
            return is_given(device, owner, given)
        case ast.Call(
            func=ast.Attribute(value=device, attr="peak" | "vector_peak" | "sparse_peak")
        ):
            return is_given(device, owner, given)
    return False


def test_every_quoted_result_is_published() -> None:
    given = inputs()
    missing = {
        f"{quote.chapter.name}: {name}"
        for quote in quotes()
        for name in quote.names
        if name not in PUBLISHED and name not in given
    }
    assert not missing, (
        "these results are quoted: publish each in tests/published.toml, as in"
        ' "Class.result" = { value = 810, unit = "ms", hand = "10 ms + 800 ms" }; an input is a'
        ' bare quantity("1 GB"), with nothing after it'
    )


def test_the_coverage_test_tells_results_from_inputs() -> None:
    given = inputs()
    assert {"A100Roofline.n", "A100Roofline.peak", "DecodeStep.parameters"} <= given
    assert {"LightInFibre.speed", "BatchSize.element_size", "AnchorBandwidths.nvlink"} <= given
    assert not given & {"A100Roofline.ridge_point", "IronLaw.added", "BatchSize.ridge_point"}
    assert not given & {"DecodeStep.ridge_point", "MemoryPerParameter.fp16_per_parameter"}


def test_every_entry_is_quoted_or_drawn() -> None:
    quoted = {name for quote in quotes() for name in quote.names}
    figures = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "figures").glob("*.py"))
    drawn = set(re.findall(r"\b[A-Z]\w*\.[a-z]\w*", " ".join(figures)))
    assert set(PUBLISHED) <= quoted | drawn, "entries of tests/published.toml that nothing shows"


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


def test_cells_give_what_was_checked_by_hand_of_each_table() -> None:
    """Each cell of a row is compared, but citations, which are known when the page is rendered."""
    computed = tables.rows()
    with each_row() as row:
        for name in TABLES.keys() & computed.keys():
            with row(name):
                first, wanted = (
                    " ".join(TABLES[name][part].split(" ( ")[0].split()).replace("’", "'")
                    for part in ("row", "cells")
                )
                found = [tables.plain(line).replace("’", "'") for line in computed[name]]
                assert any(
                    line.startswith(first) and wanted.replace(" .", ".") in line for line in found
                ), f"no row of {name} is {first} … {wanted}; its rows are {found}"


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
    found = re.findall(r"(?s)<math.*?</math>", formulas)
    bare = re.sub(r"(?s)<annotation.*?</annotation>|<[^>]+>", "", "".join(found))
    return "".join(html.unescape(bare).split())


def test_a_hand_checked_row_of_each_table(book: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in book.rglob("*.html")}
    with each_row() as row:
        for name in TABLES:
            with row(name):
                chapter, _, heading = name.partition(": ")
                own = book / "chapters" / f"{chapter}.html"
                assert_row_is_there(name, heading, [pages[own]] if heading else [*pages.values()])


def assert_row_is_there(name: str, heading: str, pages: list[str]) -> None:
    start = f">{html.escape(heading)}</h2>" if heading else f'id="{name}"'
    page = next((page for page in pages if start in page), None)
    assert page is not None, f"tests/published.toml checks {name}, which is on no page"
    table = page[page.index(start) :].split("</table>")[0]
    table = re.sub(r'<span data-missing="[^"]*">([^<]*)</span>', r"\1", table)  # parts of numbers
    heads, *lines = (
        [html.unescape(re.sub(r"<[^>]+>", " ", cell)) for cell in re.split(r"<t[hd]\b[^>]*>", row)]
        for row in re.split(r"<tr\b[^>]*>", table)[1:]
    )
    rows = [
        " ".join(" ".join(tables.with_units(heads, line)).replace("’", "'").split())
        for line in lines
    ]
    first, wanted = (uncited(TABLES[name][part].replace("’", "'")) for part in ("row", "cells"))
    rows = list(map(uncited, rows))
    matches = [row for row in rows if row.startswith(first) and row.endswith(wanted)]
    assert matches, f"no row of {name} is {first} … {wanted}; its rows are {rows}"


def uncited(row: str) -> str:
    """A row without its citations, whose years get other letters when a source is added."""
    return " ".join(re.sub(r"\( [^()]*\b\d{4}[a-z]? \)", "", row).split())


def test_each_computed_table_has_a_hand_checked_row() -> None:
    assert sorted(TABLES) == sorted(tables.names()), "each needs a line in tests/published.toml"
