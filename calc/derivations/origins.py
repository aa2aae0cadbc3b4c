"""Where a quoted number comes from: its expression, what goes into it, and so on to the data files.

A derivation says so itself, line by line, so that nothing of it is written twice: the expression is
read from the syntax tree of its class, the values are its attributes. A number of a data file ends
the tree with its source, a literal ends it as what an example was free to choose.

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
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeGuard

import calc
from calc import hardware, models, runs
from calc.core import formatting
from calc.core.law import LAWS
from calc.core.records import DATA
from calc.core.units import Quantity

Origin = dict[str, Any]
Origins = dict[str, Origin]
Inputs = dict[str, str]  # each part of an expression, as it is written there, and its origin's name

DERIVATIONS = "calc.derivations."
LOOKED_UP = {"get", "peak", "vector_peak", "sparse_peak"}  # methods that compute nothing
FILE = re.compile(r"[\w./-]+\.(?:csv|toml|jsonl)")
LONGEST = 600  # characters of code that a reader takes in
SOURCES, MODELS = "backmatter/sources.html#", "backmatter/sources-models.html#"


def name_of(value: object, caller: FrameType) -> str:
    """How the code that quotes a value calls it, as in "DecodeStep.peak"; "" where it does not say.

    The value must be the very object that one of the names in that code means, so that two equal
    numbers are never taken for each other.
    """
    return next((name for name, held in _named_in(caller) if held is value), "")


def name_of_rows(rows: object, caller: FrameType) -> str:
    """The same for the rows of a table, which a method may make, or a part of a derivation hold."""
    if name := name_of(rows, caller):
        return name
    for name, held in _named_in(caller):
        if inspect.ismethod(held):
            return name
        for part in caller.f_code.co_names:
            if getattr(held, part, None) is rows:
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
        owner = _derivation(name.partition(".")[0])
        found[name]["claim"] = _first_sentences(owner)
        if found[name]["kind"] == "computed":
            found[name]["call"] = _call(owner, name)
    return found


def cell_origins(name: str, rows: Sequence[Sequence[Any]]) -> Origins:
    """The same for the numbers in the rows of a table, which are called `name[row][column]`."""
    tree = _tree()
    found: Origins = {}
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is not None and not isinstance(value, str):
                same = tree.cell(name, i, j, value)
                found |= _reached(tree.found, same)
                found[f"{name}[{i}][{j}]"] = {"same": same, "value": told(value)}
    return found


def _reached(found: Origins, name: str) -> Origins:
    """An origin and all that goes into it."""
    reached: Origins = {}
    waiting = [name]
    while waiting:
        if (key := waiting.pop()) not in reached:
            reached[key] = dict(found[key])
            waiting += found[key].get("inputs", {}).values()
    return reached


def is_derivation(value: object) -> TypeGuard[type]:
    return inspect.isclass(value) and value.__module__.startswith(DERIVATIONS)


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
    return str(getattr(value, "name", "")) or _in_words(type(value).__name__)


def _first_sentences(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def _in_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.strip("_")).lower()


# --- lines of derivations ---


@dataclass(frozen=True)
class Line:
    """The code that gives a name its value, and where it stands."""

    code: ast.AST
    number: int
    module: ModuleType
    owner: type | None  # the derivation, or none for a name of the module itself
    bound: frozenset[str] = frozenset()  # names that mean something else inside the code

    def lookup(self, name: str) -> Any:
        """What a name means there."""
        own = vars(self.owner) if self.owner else {}
        return own.get(name, vars(self.module).get(name))


@cache
def _lines(module: ModuleType) -> dict[tuple[str, str], list[Line]]:
    """The lines of a module that give something a value, by derivation and name."""
    tree = ast.parse(inspect.getsource(module))
    lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
    bodies: list[ast.Module | ast.ClassDef] = [tree]
    bodies += [each for each in tree.body if isinstance(each, ast.ClassDef)]
    for body in bodies:
        name = body.name if isinstance(body, ast.ClassDef) else ""
        owner = getattr(module, name) if name else None
        for statement in body.body:
            if not isinstance(statement, ast.ClassDef | ast.FunctionDef):
                for target, code in _assigned(statement):
                    lines[name, target].append(Line(code, statement.lineno, module, owner))
    return lines


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """The names that a statement gives a value, and the code of each."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=code):
            yield name, code
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.AST() as code):
            yield name, code
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=parts)) if len(
            names
        ) == len(parts):
            for target, part in zip(names, parts, strict=True):
                yield ast.unparse(target), part
        case _:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, statement


def _line_of(owner: type, name: str, before: int | None = None) -> Line | None:
    """The last line that gives an attribute its value, or the last one before another line."""
    for each in owner.__mro__:
        if is_derivation(each):
            lines = _lines(sys.modules[each.__module__])[each.__name__, name]
            earlier = [line for line in lines if before is None or line.number < before]
            if earlier:
                return earlier[-1]
    return None


@cache
def _derivation(name: str) -> type:
    return next(
        value
        for key in list(sys.modules)
        if key.startswith(DERIVATIONS)
        and is_derivation(value := getattr(sys.modules[key], name, None))
    )


@cache
def _held_by_derivations() -> dict[int, str]:
    """The quantities of all derivations, by identity: they live as long as the process does."""
    return {
        id(value): f"{owner.__name__}.{name}"
        for key in list(sys.modules)
        if key.startswith(DERIVATIONS)
        for owner in vars(sys.modules[key]).values()
        if is_derivation(owner)
        for name, value in vars(owner).items()
        if isinstance(value, Quantity)
    }


def _written(code: ast.AST) -> str:
    """Code as this project writes it, with double quotes."""
    text = ast.unparse(code)
    return text if '"' in text else text.replace("'", '"')


# --- trees ---


@cache
def _tree() -> _Tree:
    """That of this process, in which each origin is looked for once."""
    return _Tree()


class _Tree:
    """Origins by name, each found when it is first asked for."""

    def __init__(self) -> None:
        self.found: Origins = {}
        self.entered: list[object] = []  # functions that are being read, which may call themselves

    def add(self, name: str) -> None:
        if name not in self.found:
            self.found[name] = {}  # for what refers to itself
            owner, _, attribute = name.partition(".")
            self.found[name] = self.attribute(_derivation(owner), attribute)

    def attribute(self, owner: type, name: str) -> Origin:
        value = getattr(owner, name)
        line = _line_of(owner, name)
        if isinstance(value, Quantity) and value.provenance:
            return self.found[self.datum(value)]
        if line:
            return self.line(line, value)
        return {
            "value": "",
            "kind": "computed",
            "code": f"{owner.__name__}.{name}",
            "note": _first_sentences(value),
            "inputs": dict(self.inside(value)) if callable(value) else {},
        }

    def line(self, line: Line, value: object) -> Origin:
        if thing := _thing(value):
            return thing
        inputs = dict(self.inputs(line.code, line))
        code = _written(line.code)
        made: Origin = {
            "value": told(value),
            "kind": "computed" if inputs or not _is_literal(line.code) else "chosen",
            "code": code if len(code) <= LONGEST else f"{code[:LONGEST]} …",
        }
        if isinstance(line.code, ast.Attribute) and len(inputs) == 1:
            only = self.found.get(next(iter(inputs.values())), {})
            if only.get("kind") in ("device", "machine", "model", "run"):
                made["kind"] = "read"
            elif isinstance(line.code.value, ast.Name) and only.get("value") == made["value"]:
                return only  # another name of it
        if inputs:
            made["inputs"] = inputs
        return made | _law(line.code)

    def cell(self, name: str, row: int, column: int, value: object) -> str:
        """The origin of a cell: that of a datum, of its own expression, or of all rows."""
        if isinstance(value, Quantity):
            if value.provenance:
                return self.datum(value)
            if known := _held_by_derivations().get(id(value)):
                self.add(known)
                return known
        owner, attribute, *_ = name.split(".")
        name = f"{owner}.{attribute}"
        self.add(name)
        match _line_of(_derivation(owner), attribute):
            case Line(code=ast.Tuple(elts=rows)) as line if row < len(rows):
                match rows[row]:
                    case ast.Tuple(elts=cells) if column < len(cells):
                        own = f"{name} {row} {column}"
                        self.found[own] = self.line(replace(line, code=cells[column]), value)
                        return own
        return name

    def datum(self, value: Quantity) -> str:
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
            "row": _row(key) if field else f"{SOURCES}{key.replace('_', '-')}",
        }
        return provenance.key

    # --- what goes into an expression ---

    def inputs(self, code: ast.AST, line: Line) -> Iterator[tuple[str, str]]:
        """The parts of an expression that have an origin of their own."""
        stored = {
            node.id
            for node in ast.walk(code)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        line = replace(line, bound=line.bound | stored)
        waiting = [code]
        while waiting:
            part = waiting.pop(0)
            known = self.part(part, line)
            if known is None:
                waiting = [*ast.iter_child_nodes(part), *waiting]
            else:
                yield from known.items()

    def part(self, part: ast.AST, line: Line) -> Inputs | None:
        """What a part of an expression comes from; None where its own parts are to be asked."""
        if isinstance(part, ast.expr) and _only_looks_up(part, line.bound):
            value = _looked_up(part, line)
            if isinstance(value, Quantity) and value.provenance:
                return {ast.unparse(part): self.datum(value)}
            if thing := _thing(value):
                self.found[f"{thing['kind']} {value.key}"] = thing
                return {ast.unparse(part): f"{thing['kind']} {value.key}"}
        match part:
            case ast.Constant(value=str(name)) if FILE.fullmatch(name):
                return self.file(name)
            case ast.Name(id=name) if name not in line.bound:
                return self.name(name, line)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                owner = line.owner if name == "cls" else line.lookup(name)
                if name not in line.bound and is_derivation(owner):
                    value = getattr(owner, attribute, None)
                    if callable(value):
                        return dict(self.inside(value))
                    self.add(f"{owner.__name__}.{attribute}")
                    return {ast.unparse(part): f"{owner.__name__}.{attribute}"}
        return None

    def name(self, name: str, line: Line) -> Inputs | None:
        if line.owner and (earlier := _line_of(line.owner, name, line.number)):
            key = f"{line.owner.__name__}.{name}"
            if earlier != _line_of(line.owner, name):  # the name is given another value later
                key += " before"
                self.found[key] = self.line(earlier, None)
            self.add(key)
            return {name: key}
        value = vars(line.module).get(name)
        if callable(value):
            return dict(self.inside(value))
        if isinstance(value, Path):
            return {}
        if own := _lines(line.module)["", name]:
            key = f"{line.module.__name__}:{name}"
            if key not in self.found:
                self.found[key] = {}
                self.found[key] = self.line(own[-1], value)
            return {name: key}
        return None

    def inside(self, function: Any) -> Iterator[tuple[str, str]]:
        """What a function of a module of derivations reads, though it is not handed to it."""
        function = inspect.unwrap(getattr(function, "__func__", function))
        home = getattr(function, "__module__", None) or ""
        if not (inspect.isfunction(function) and home.startswith(DERIVATIONS)):
            return
        if function in self.entered:
            return
        self.entered.append(function)
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(definition, ast.FunctionDef)
        owner, dot, _ = function.__qualname__.rpartition(".")
        arguments = {each.arg for each in ast.walk(definition.args) if isinstance(each, ast.arg)}
        line = Line(
            definition,
            sys.maxsize,
            sys.modules[home],
            getattr(sys.modules[home], owner, None) if dot else None,
            frozenset(arguments - {"cls"}),
        )
        for statement in definition.body:
            yield from self.inputs(statement, replace(line, owner=line.owner))
        self.entered.pop()

    def file(self, name: str) -> Inputs:
        """Rows that are stored beside the library."""
        for folder in ("measured", "published", "."):
            if (DATA / folder / name).is_file():
                path = (DATA / folder / name).relative_to(DATA.parent.parent).as_posix()
                kind = "measured" if folder == "measured" else "data file"
                self.found[path] = {"value": path, "kind": kind}
                return {name: path}
        return {}


def _only_looks_up(part: ast.AST, bound: frozenset[str]) -> bool:
    """Whether evaluating it only follows names into the data, and computes nothing."""
    match part:
        case ast.Name(id=name):
            return name not in bound
        case ast.Attribute(value=inner):
            return _only_looks_up(inner, bound)
        case ast.Call(func=ast.Attribute(attr=method, value=inner), args=arguments, keywords=[]):
            literal = all(isinstance(each, ast.Constant) for each in arguments)
            return literal and method in LOOKED_UP and _only_looks_up(inner, bound)
    return False


def _looked_up(part: ast.expr, line: Line) -> Any:
    namespace = {**vars(line.module), **(vars(line.owner) if line.owner else {})}
    try:
        return eval(compile(ast.Expression(part), "<derivation>", "eval"), namespace)
    except (AttributeError, NameError, ValueError, TypeError):
        return None


def _is_literal(code: ast.AST) -> bool:
    """Whether an example was free to choose it: a number, with a unit or without."""
    names = [node.id for node in ast.walk(code) if isinstance(node, ast.Name)]
    return all(name == "quantity" for name in names)


def _thing(value: Any) -> Origin | None:
    """A device, a machine, a model or a run, by its name; its numbers have sources of their own."""
    kinds = {"Accelerator": "device", "Machine": "machine", "Transformer": "model", "Run": "run"}
    if kind := kinds.get(type(value).__name__):
        return {"value": value.name, "kind": kind, "row": _row(value.key)}
    return None


def _row(key: str) -> str:
    """Where the book prints the data of a device, a model or a run; machines stand on no page."""
    if key in (*hardware.names(), *hardware.announced()):
        return f"{SOURCES}{key}"
    if key in models.names():
        return f"{MODELS}model-{key}"
    return f"{MODELS}{key}" if key in runs.names() else ""


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
    """Python that gives the value again, from numbers that a reader may change."""
    line = _line_of(owner, name.partition(".")[2])
    short = f"from {owner.__module__} import {owner.__name__}\n\nprint({name})\n"
    if line is None or not isinstance(line.code, ast.expr):
        return short
    filled = _Filled(line)
    try:
        code = _written(filled.visit(copy.deepcopy(line.code)))
    except _CannotBeWritten:
        return short
    imported = ", ".join(sorted(filled.modules))
    return (f"from calc import {imported}\n\n" if imported else "") + f"print({code})\n"


class _CannotBeWritten(Exception):  # noqa: N818
    """A part of an expression is no number, so that its value cannot stand in its place."""


class _Filled(ast.NodeTransformer):
    """Puts the values of an expression in the place of its names."""

    def __init__(self, line: Line) -> None:
        self.line, self.modules = line, set[str]()

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.line.lookup(node.id)
        if inspect.ismodule(value) and value is getattr(calc, node.id, None):
            self.modules.add(node.id)
            return node
        if node.id == "quantity":
            self.modules.add("quantity")
            return node
        return self.literal(value)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _only_looks_up(node, self.line.bound):
            value = _looked_up(node, self.line)
            if not callable(value):
                return self.literal(value)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _only_looks_up(node, self.line.bound):
            value = _looked_up(node, self.line)
            if isinstance(value, Quantity):
                return self.literal(value)
        return self.generic_visit(node)

    def literal(self, value: object) -> ast.AST:
        if isinstance(value, Quantity) and getattr(value.magnitude, "size", 1) == 1:
            self.modules.add("quantity")
            return ast.parse(f'quantity("{value:.9g}")', mode="eval").body
        if isinstance(value, bool | int | float | str):
            return ast.Constant(value)
        raise _CannotBeWritten
