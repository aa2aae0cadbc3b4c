"""A quantity that pages quote on different bases has the name of its basis in each section."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tools.ledger.quotes import INLINE, chapters
from tools.pages import ROOT

DERIVATIONS = ROOT / "calc" / "derivations"
BASES = {
    "published": re.compile(r"\*published\*|\"Published\"|^#.*\bpublished\b", re.M | re.I),
    "reached": re.compile(r"\*(?:best )?reached\*|\"Reached\"|^#.*\breached\b", re.M | re.I),
    "planned": re.compile(r"\*plan(?:s|ned)? with\*|\"Planned\"|^#.*\bplanned with\b", re.M | re.I),
}
LAWS = {  # and constants, of the quantities that have a class
    *("tensor_parallel_limit", "data_parallel_tokens", "half_size"),
    *("price_h100", "price_h200", "price_b200", "latency_p2p_pcie_gen5"),
}
QUOTED = re.compile(r"\b([A-Z]\w*)\.([a-z]\w*)")
Use = tuple[str, str]  # a quantity and the basis it is taken on


def basis_of(attribute: str) -> str:
    return attribute.partition("_")[0]


def assigned(line: ast.stmt) -> Iterator[str]:
    if isinstance(line, ast.FunctionDef):
        yield line.name
    for target in line.targets if isinstance(line, ast.Assign) else []:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


@cache
def quantities() -> set[str]:
    body = ast.parse((DERIVATIONS / "bases.py").read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.ClassDef)}


@cache
def reads() -> Mapping[tuple[str, str], set[tuple[str, str]]]:
    """Return what each attribute of a claim is made of, as (class, attribute)."""
    reads_of: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for path in DERIVATIONS.glob("*.py"):
        for owner in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(owner, ast.ClassDef) or path.name == "bases.py":
                continue
            for line in owner.body:
                for name in assigned(line):
                    for node in ast.walk(line):
                        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                            of = node.value.id
                            reads_of[owner.name, name].add(
                                (owner.name if of == "cls" else of, node.attr)
                            )
                        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                            reads_of[owner.name, name].add((owner.name, node.id))
    return reads_of


@cache
def uses(owner: str, name: str) -> frozenset[Use]:
    """Return the quantities, with their bases, that an attribute is made of."""
    seen, open_ = set(), [(owner, name)]
    while open_:
        part = open_.pop()
        if part not in seen:
            seen.add(part)
            open_ += reads().get(part, ())
    return frozenset(
        (of, basis_of(attribute))
        for of, attribute in seen
        if of in quantities() and basis_of(attribute) in BASES
    )


def sections(text: str) -> list[str]:
    return re.split(r"(?m)^(?=#{1,3} )", re.sub(r"\n#\| ", "\n", text))


def quoted(text: str) -> Iterator[tuple[str, set[Use]]]:
    """Each section that quotes such a quantity, and on which bases."""
    for section in sections(text):
        cells = re.findall(r"(?ms)^```\{python\}\n(.*?)^```", section)
        named = [*INLINE.findall(section), *(cell for cell in cells if "import" not in cell)]
        used = {use for code in named for pair in QUOTED.findall(code) for use in uses(*pair)}
        if used:
            yield section, used


def unnamed(pages: Mapping[str, str]) -> Iterator[str]:
    """Yield where a quantity that is quoted on different bases lacks the name of its own."""
    bases: dict[str, set[str]] = defaultdict(set)
    for text in pages.values():
        for _, used in quoted(text):
            for quantity, basis in used:
                bases[quantity].add(basis)
    for page, text in pages.items():
        for section, used in quoted(text):
            for quantity, basis in sorted(used):
                if len(bases[quantity]) > 1 and not BASES[basis].search(section):
                    head = section.partition("\n")[0]
                    yield (
                        f"{page}, {head!r}: quotes {quantity} as {basis}, other places as"
                        f" {bases[quantity] - {basis}}; name its basis"
                    )


def pages() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in map(Path, chapters())}


def test_quantities_on_different_bases_name_them() -> None:
    assert list(unnamed(pages())) == []


def test_bases_are_found_through_what_pages_quote() -> None:
    bases_of = {
        name: set().union(*(of for _, of in quoted(text))) for name, text in pages().items()
    }
    assert ("ExchangeRatio", "planned") in bases_of["sheet.qmd"]
    assert {("ExchangeRatio", basis) for basis in BASES} <= bases_of["expert-traffic.qmd"]
    assert ("HidingTokens", "published") in bases_of["training-time.qmd"]
    assert ("HalfBandwidth", "reached") in bases_of["links.qmd"]


def test_a_basis_that_is_not_named_is_told() -> None:
    held = pages()
    held["expert-traffic.qmd"] = re.sub(r"\*(plan(ned)?) with\*", r"\1", held["expert-traffic.qmd"])
    held["expert-traffic.qmd"] = held["expert-traffic.qmd"].replace('"Planned"', '"Last"')
    messages = list(unnamed(held))
    assert messages != []
    assert [line for line in messages if "ExchangeRatio as planned" not in line] == []


def test_laws_of_these_quantities_are_called_by_their_classes_alone() -> None:
    called = {
        f"{path.name}: {node.attr}"
        for path in DERIVATIONS.glob("*.py")
        if path.name != "bases.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in LAWS
    }
    assert called == set()
