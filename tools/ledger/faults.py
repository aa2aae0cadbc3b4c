"""Faults of what chapters say: each names the file, the line and what is wanted.

Held are names to rows, rows to their witnesses, and words of captions and takeaways to the cells of
their tables and to the values that they quote. What figures draw and what is counted again is held
by tests alone.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from calc.core.units import Quantity
from calc.derivations.cards import is_given
from calc.derivations.traces import made_of
from tools.ledger import captions, chapter_tables
from tools.ledger.captions import CLAIMS, FIGURE_CLAIMS
from tools.ledger.comparisons import uncompared
from tools.ledger.quotes import Quote, imported, quotes
from tools.ledger.rows import derived, numbers, place_of, value_of
from tools.ledger.statements import Statement, statements
from tools.ledger.takeaways import TAKEAWAYS
from tools.pages import ROOT

QUOTED = re.compile(r"\{(\w+\.\w+)\}")


def faults() -> list[str]:
    """Return all of them as lines, `file:line: sentence`."""
    derivations = ROOT / "calc" / "derivations"
    if found := list(of_classes(sorted(derivations.glob("*.py")))):
        return found  # without which nothing can be computed
    if found := list(of_names(quotes())):
        return found
    all_said = statements()
    of_words = [*unsaid(all_said), *untrue(all_said), *uncompared(all_said)]
    return [*of_witnesses(numbers()), *of_results(quotes()), *of_words]


def of_classes(files: list[Path]) -> Iterator[str]:
    """Yield each class of claims that has the name of another."""
    places: dict[str, str] = {}
    for file in files:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.decorator_list:
                line = f"{file.relative_to(file.parents[2])}:{node.lineno}"
                if other := places.get(node.name):
                    yield f"{line}: {node.name} is the name of claims at {other}: choose another."
                places[node.name] = line


def of_names(quotes: list[Quote]) -> Iterator[str]:
    """Yield each quoted name that is no row, with what is called nearly so, or is not imported."""
    known = {
        f"{name}.{attribute}": owner
        for name, owner in derived().items()
        for attribute in dir(owner)
        if not attribute.startswith("_")
    }
    for quote in quotes:
        for name in quote.names:
            if name not in known:
                near = get_close_matches(name, known, 1)
                mend = f"; {near[0]} is one" if near else ""
                yield f"{quote.place}: {name} is no row of calc.derivations{mend}."
            elif (owner := name.partition(".")[0]) not in imported(quote.chapter):
                yield f"{quote.place}: {owner} is quoted, and no cell of the page imports it."
        for function in quote.functions:
            if function not in imported(quote.chapter) and not hasattr(builtins, function):
                yield f"{quote.place}: {function}() is called, and no cell of the page imports it."


def of_witnesses(rows: dict[str, Any]) -> Iterator[str]:
    """Yield each witness that cannot be read, has another unit, or gives another value."""
    for name, value in rows.items():
        if fault := value.witness.fault(value):
            yield f"{place_of(name)}: {name}: {fault}."


def of_results(quotes: list[Quote]) -> Iterator[str]:
    """Yield each quoted result without a witness, or under a name that another chapter has not."""
    first = {name: quote for quote in reversed(quotes) for name in quote.names}
    for name, quote in first.items():
        value = value_of(name)
        if is_given(value):
            continue
        made = made_of(value)
        other = first.get(made.name) if made and made.kind == "same" else None
        if made and other and other.chapter != quote.chapter:
            yield f"{quote.place}: {name} is {made.name} at {other.place}: quote it by that name."
        elif name not in numbers() and not other:
            yield f"{place_of(name)}: {name} is quoted, and needs a witness: | by_hand(…)."


def unsaid(sentences: list[Statement]) -> Iterator[str]:
    """Yield each statement whose words are held to something, and no longer stand there."""
    of_label, of_figure, takeaways = (defaultdict[str, list[Statement]](list) for _ in range(3))
    for statement in sentences:
        of_label[statement.label].append(statement)
        of_figure[statement.figure].append(statement)
        if statement.kind == "takeaway":
            takeaways[statement.label].append(statement)
    for label, words, _ in CLAIMS:
        if not said(words, labelled := of_label[label]):
            yield _unsaid(labelled, f"the caption of {label} needs “{words}”", "captions")
    for figure, words, _ in FIGURE_CLAIMS:
        if not said(words, labelled := of_figure[figure]):
            yield _unsaid(
                labelled, f"the caption or alt text of {figure} needs “{words}”", "captions"
            )
    for chapter, words, _ in TAKEAWAYS:
        if not said(words, labelled := takeaways[chapter]):
            yield _unsaid(labelled, f"a takeaway needs “{words}”", "takeaways")


def said(words: str, sentences: list[Statement]) -> bool:
    return any(words in statement.words for statement in sentences)


def _unsaid(labelled: list[Statement], needed: str, module: str) -> str:
    file = f"tools/ledger/{module}.py"
    line = labelled[0].place if labelled else f"{file}:1"
    return f"{line}: {needed}, or {file} other words."


def untrue(sentences: list[Statement]) -> Iterator[str]:
    """Yield each statement of which its table, or the values that it quotes, say otherwise."""
    for label, words, holds in CLAIMS:
        labelled = [s for s in sentences if s.label == label]
        if said(words, labelled) and not holds(
            captions.table(label), *quoted(words, labelled[0].file)
        ):
            yield f"{_at(words, labelled)}: the cells of {label} do not hold that “{words}”."
    for chapter, words, holds in TAKEAWAYS:
        labelled = [s for s in sentences if (s.kind, s.label) == ("takeaway", chapter)]
        if said(words, labelled) and not holds(*quoted(words, labelled[0].file)):
            yield f"{_at(words, labelled)}: the values do not hold that “{words}”."


def _at(words: str, sentences: list[Statement]) -> str:
    return next(statement.place for statement in sentences if words in statement.words)


def quoted(words: str, chapter: Path) -> list[Any]:
    """Return the values whose names stand in these words, pure numbers as such."""
    known = chapter_tables.known(chapter)
    names = [name.split(".") for name in QUOTED.findall(words)]
    values = [getattr(known[owner], name) for owner, name in names]
    return [v.m_as("") if isinstance(v, Quantity) and v.dimensionless else v for v in values]
