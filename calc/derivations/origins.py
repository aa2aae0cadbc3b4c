"""Where a quoted number comes from: its expression, what goes into it, and so on to the data files.

The lines of derivations say so themselves. A number of a data file ends the tree with its source, a
literal ends it as what an example was free to choose.

    >>> from calc.derivations import roofline
    >>> found = origins("DecodeStep.attainable")
    >>> found["DecodeStep.attainable"]["code"]
    'roofline.attainable(peak, bandwidth, intensity)'
    >>> found["DecodeStep.attainable"]["inputs"]["bandwidth"]
    'h100.memory_bandwidth'
    >>> found["h100.memory_bandwidth"]["kind"]
    'datasheet'
"""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import calc
from calc import curves, engine_sums, hardware, kernel_shares, machines, models, runs
from calc.core import formatting
from calc.core.citations import citation
from calc.core.law import LAWS
from calc.core.records import DATA, Count, Datum
from calc.core.units import Quantity
from calc.derivations.lines import (
    Line,
    Measured,
    Thing,
    derivation,
    is_datum,
    is_derivation,
    line_of,
    line_of_function,
    line_that_made,
    lines_of_parts,
    only_looks_up,
    parts,
    shown_by,
)
from calc.derivations.places import anchor, page_of
from calc.derivations.rows import lines_of_rows
from calc.derivations.sums import sum_of
from calc.published import Comparison, Row
from calc.published.reporting import Summary

Origin = dict[str, Any]
Origins = dict[str, Origin]
Rows = Sequence[Sequence[Any]]

KINDS = {
    hardware.Accelerator: "device",
    machines.Machine: "machine",
    models.Transformer: "model",
    runs.Run: "run",
}
LONGEST = 600  # characters of code that a reader takes in
SOURCES = "backmatter/sources.html#"
RUNS = "backmatter/sources-models.html#"
ROWS = "chapters/predicted-and-measured.html"  # where published rows stand beside predictions


def name_of(value: object, caller: FrameType) -> str:
    """How the code that quotes a value calls it, as in "DecodeStep.peak"; "" where it does not say.

    The value must be the very object that one of the names in that code means, so that two equal
    numbers are never taken for each other.
    """
    return next((name for name, attribute in _named_in(caller) if attribute is value), "")


def name_of_rows(rows: object, caller: FrameType) -> str:
    """The same for the rows of a table, which a method may make, or a part of a derivation hold."""
    if name := name_of(rows, caller):
        return name
    for name, attribute in _named_in(caller):
        if inspect.ismethod(attribute):
            return name
        for part in caller.f_code.co_names:
            if getattr(attribute, part, None) is rows:
                return f"{name}.{part}"
    return ""


def _named_in(caller: FrameType) -> Iterator[tuple[str, object]]:
    """The attributes of derivations that a piece of code names."""
    names = caller.f_code.co_names
    for owner in filter(is_derivation, map({**caller.f_globals, **caller.f_locals}.get, names)):
        for name in names:
            if hasattr(owner, name):
                yield f"{owner.__name__}.{name}", getattr(owner, name)


def origins(name: str) -> Origins:
    """What a card of this attribute shows: its origin and that of all that goes into it, by name.

    Each has a `value` and a `kind`. What is computed has its `code` and `inputs`, with the
    `equation` where a law is called; what is read from the data has `title`, `source`, `cited`,
    `checked` and `note`. `row` is where the book explains it, `call` is Python that gives it.
    """
    tree = _tree()
    tree.add(name)
    found = _reached(tree.found, name)
    if "source" not in found[name]:
        owner = derivation(name.partition(".")[0])
        found[name]["claim"] = _first_sentences(owner)
        if found[name]["kind"] == "computed" and (call := _call(owner, name)):
            found[name]["call"] = call
    return found


def cell_origins(name: str, header: Sequence[str], rows: Rows) -> Origins:
    """The same for the numbers in the rows of a table, which are called `name[row][column]`."""
    tree = _tree()
    found: Origins = {}
    lines = lines_of_rows(name, rows)
    for i, row in enumerate(rows):
        line = lines[i]
        cells = lines_of_parts(line, row) if line else []
        for j, value in enumerate(row):
            if value is not None and not isinstance(value, str):
                place = f"{name}[{i}][{j}]"
                same = tree.cell(value, cells[j] if cells else None)
                if same:
                    found |= _reached(tree.found, same)
                    found[place] = {"same": same, "value": told(value)}
                else:
                    found[place] = _by_place(name, header[j], row)
    return found


def _by_place(name: str, head: str, row: Sequence[Any]) -> Origin:
    """A number of which nothing is known but where it stands: its column, its row, its claim."""
    subject = row[0] if isinstance(row[0], str) else ""
    claim = _first_sentences(derivation(name.partition(".")[0]))
    return {
        "kind": "computed",
        "note": f"{head}, {subject}." if subject else f"{head}.",
        "claim": claim,
    }


def _reached(found: Origins, name: str) -> Origins:
    """An origin and all that goes into it."""
    reached: Origins = {}
    waiting = [name]
    while waiting:
        if (key := waiting.pop()) not in reached:
            reached[key] = dict(found[key])
            waiting += found[key].get("inputs", {}).values()
    return reached


def told(value: object) -> str:
    """A value in a few words; what is no number is called by its kind."""
    if isinstance(value, Quantity):
        size = getattr(value.magnitude, "size", 1)
        return formatting.prose(value) if size == 1 else f"{size} values"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return formatting.prose(Quantity(float(value), ""))
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return f"{len(value)} values"
    if value is None or isinstance(value, str | bool):
        return str(value)
    written = getattr(value, "markdown", "") or getattr(value, "name", "")
    return str(written) or _in_words(type(value).__name__)


def _first_sentences(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip("_")).lower()


# --- trees ---


@cache
def _tree() -> _Tree:
    """That of this process, in which each origin is looked for once."""
    return _Tree()


class _Tree:
    """Origins by name, each found when it is first asked for."""

    def __init__(self) -> None:
        self.found: Origins = {}
        self.entered: list[Line] = []  # functions that are being read, which may call themselves

    def add(self, name: str) -> None:
        if name not in self.found:
            owner, _, attribute = name.partition(".")
            value = getattr(derivation(owner), attribute)
            line = line_of(derivation(owner), attribute)
            self.found[name] = {}  # for what refers to itself
            self.found[name] = self.expression(line, value) if line else self.method(name, value)

    def method(self, name: str, method: object) -> Origin:
        line = line_of_function(method)
        return {
            "value": "",
            "kind": "computed",
            "code": name,
            "note": _first_sentences(method),
            "inputs": dict(self.inputs(line)) if line else {},
        }

    def line(self, line: Line, value: object) -> str:
        """The name of what a line gives."""
        if line.name not in self.found:
            self.found[line.name] = {}  # for what refers to itself
            self.found[line.name] = self.expression(line, value)
        return line.name

    def expression(self, line: Line, value: object) -> Origin:
        if isinstance(value, Thing):
            return _thing(value)
        if is_datum(value):
            return self.found[self.datum(value)]
        inputs = dict(self.inputs(shown_by(line)))
        code = _written(line.code)
        made: Origin = {
            "value": told(value),
            "kind": "computed" if inputs or not _is_literal(line.code) else "chosen",
            "code": code if len(code) <= LONGEST else f"{code[:LONGEST]} …",
        }
        if isinstance(line.code, ast.Attribute) and len(inputs) == 1:
            only = self.found.get(next(iter(inputs.values())), {})
            if only.get("kind") in KINDS.values():
                made["kind"] = "read"
            elif isinstance(line.code.value, ast.Name) and only.get("value") == made["value"]:
                return only  # another name of it
        if inputs:
            made["inputs"] = inputs
        if made["kind"] == "computed" and (numbers := sum_of(line)):
            made["sum"] = numbers
        return made | _law(line.code)

    def cell(self, value: object, line: Line | None) -> str:
        """The origin of a cell: that of a datum, of its own expression, or "" of none."""
        if is_datum(value):
            return self.datum(value)
        if made := line_that_made(value):
            return self.line(made, value)
        line = line and shown_by(line)
        if line is None:
            return ""
        shown = line.evaluated(line.code)
        if is_datum(shown):
            return self.datum(shown)
        if made := line_that_made(shown):
            return self.line(made, shown)
        if not any(True for _ in parts(line)):
            return ""
        return self.line(line, value)

    def datum(self, value: Datum) -> str:
        """The name of a number of the data files."""
        provenance = value.provenance
        assert provenance
        key, _, field = provenance.key.partition(".")
        self.found[provenance.key] = {
            "value": told(value),
            "kind": provenance.kind,
            "title": provenance.title,
            "source": provenance.source,
            "cited": provenance.cited,
            "checked": f"{provenance.checked:%Y-%m-%d}",
            "note": provenance.note,
            "row": _row(key, field) if field else f"{SOURCES}{anchor(key)}",
        }
        return provenance.key

    def inputs(self, line: Line) -> Iterator[tuple[str, str]]:
        """The parts of a line that have an origin of their own, as written there, and its name."""
        for part, known in parts(line):
            match known:
                case Line(code=ast.expr()) if _of_the_machinery(part):
                    yield from self.inputs(known)
                case Line(code=ast.FunctionDef()):  # what it reads, though it is not handed to it
                    if known not in self.entered:
                        self.entered.append(known)
                        yield from self.inputs(known)
                        self.entered.pop()
                case Line():
                    yield _written(part), self.line(known, known.value)
                case Quantity() | Count():
                    name = self.datum(known)
                    title = self.found[name]["title"]
                    yield title if _of_the_machinery(part) else _written(part), name
                case Path():
                    yield known.name, self.file(known)
                case _:
                    thing = _thing(known)
                    key = thing["value"] if isinstance(known, Measured) else known.key
                    name = f"{thing['kind']} {key}"
                    self.found[name] = thing
                    yield thing["value"] if _of_the_machinery(part) else _written(part), name

    def file(self, path: Path) -> str:
        """The name of rows that are stored beside the library."""
        name = path.relative_to(DATA.parent.parent).as_posix()
        kind = "measured" if path.parent.name == "measured" else "data file"
        self.found[name] = {"value": name, "kind": kind}
        return name


def _of_the_machinery(part: ast.AST) -> bool:
    """Whether a part is called as no reader would: what it is made of says more."""
    names = ast.unparse(part).split(".")
    return names[-1].isupper() or any(name.startswith("_") for name in names)


def _written(code: ast.AST) -> str:
    """Code as this project writes it, with double quotes."""
    text = ast.unparse(code).replace("cls.", "")
    return text if '"' in text else text.replace("'", '"')


def _is_literal(code: ast.AST) -> bool:
    """Whether an example was free to choose it: a number, with a unit or without."""
    names = [node.id for node in ast.walk(code) if isinstance(node, ast.Name)]
    return all(name == "quantity" for name in names)


def _thing(value: Thing) -> Origin:
    """A device, a machine, a model or a run, by its name; its numbers have sources of their own.

    What others measured has its source, and several rows the page that holds them to calc.
    """
    match value:
        case Comparison(row=row):
            return _thing(row)
        case Row():
            return _measured(f"row {value.id}: {value.device}, {value.software}", value.source)
        case curves.Curve():
            return _measured(f"curve {value.name}, {value.software}", value.source)
        case engine_sums.Sums() | kernel_shares.Surface():
            return _measured(str(value), kernel_shares.SOURCE)
        case Summary():
            rows = f"{value.expected} published rows: {value.of}"
            return {"value": rows, "kind": "measured", "row": ROWS}
    return {"value": value.name, "kind": KINDS[type(value)], "row": _row(value.key)}


def _measured(name: str, source: str) -> Origin:
    cited = {"source": source, "cited": citation(source)} if source else {}
    return {"value": name, "kind": "measured"} | cited


def _row(key: str, field: str = "") -> str:
    """Where the book prints the data of a device, a machine, a model or a run."""
    if key in (*hardware.names(), *hardware.announced()):
        place = page_of(hardware.get(key))
    elif key in machines.names():
        place = page_of(machines.get(key))
    elif key in models.names():
        return f"{page_of(models.get(key))}.html"  # whose rows hold several numbers
    else:
        return f"{RUNS}{key}" if key in runs.names() else ""
    return f"{place}.html" + (f"#{anchor(f'{key}.{field}')}" if field else "")


def _law(code: ast.AST) -> Origin:
    """The equation of the law that an expression is a call of, and where the book explains it."""
    while isinstance(code, ast.Call) and isinstance(code.func, ast.Attribute):
        name = ast.unparse(code.func)
        if law := LAWS.get(name):
            equation = re.search(r"^Equation: (.*)", inspect.getdoc(law) or "", re.MULTILINE)
            module, _, function = name.partition(".")
            row = f"reference/calc/{module}.html#calc-{module}-{function}"
            return {"equation": equation[1] if equation else "", "row": row}
        code = code.func.value
    return {}


# --- the call that a reader can run ---


def _call(owner: type, name: str) -> str:
    """Python that gives the value again, from numbers that a reader may change; else ""."""
    line = line_of(owner, name.partition(".")[2])
    if line is None or not isinstance(line.code, ast.expr):
        return ""
    filled = _Filled(line)
    try:
        code = _written(filled.visit(copy.deepcopy(line.code)))
    except _CannotBeWritten:
        return ""
    imported = ", ".join(sorted(filled.modules))
    return (f"from calc import {imported}\n\n" if imported else "") + f"print({code})\n"


class _CannotBeWritten(Exception):  # noqa: N818
    """A part of an expression is no number, so that its value cannot stand in its place."""


class _Filled(ast.NodeTransformer):
    """Puts the values of an expression in the place of its names."""

    def __init__(self, line: Line) -> None:
        self.line, self.modules = line, set[str]()

    def visit(self, node: ast.AST) -> Any:
        if not (isinstance(node, ast.expr) and only_looks_up(node, self.line.bound)):
            return self.generic_visit(node)
        value = self.line.evaluated(node)
        if isinstance(value, Quantity | int | float | str):
            return self.literal(value)
        if isinstance(node, ast.Name):
            if node.id != "quantity" and value is not getattr(calc, node.id, None):
                raise _CannotBeWritten
            self.modules.add(node.id)
        return self.generic_visit(node)

    def literal(self, value: Quantity | float | str) -> ast.AST:
        if not isinstance(value, Quantity):
            return ast.Constant(float(value) if isinstance(value, float) else value)
        if getattr(value.magnitude, "size", 1) != 1:
            raise _CannotBeWritten
        self.modules.add("quantity")
        return ast.parse(f'quantity("{value:.9g}")', mode="eval").body
