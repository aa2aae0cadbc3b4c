"""What each attribute of a derivation is made of, read from the syntax tree of its class.

A derivation says so itself, line by line, so that nobody keeps a list: the expression is its line,
the values are its attributes. A part of an expression means something of its own where it names a
number or a thing of the data, a stored file, or another line; `parts` gives these.

    >>> from calc.derivations.roofline import DecodeStep
    >>> [ast.unparse(part) for part, _ in parts(line_of(DecodeStep, "attainable"))]
    ['peak', 'bandwidth', 'intensity']
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeGuard

from calc import curves, engine_sums, hardware, kernel_shares, machines, models, published, runs
from calc.core.records import Count, Datum
from calc.core.units import Quantity
from calc.derivations import recorded
from calc.published.reporting import Summary

DERIVATIONS = "calc.derivations."
# Modules there that hold no derivations.
READERS = ("lines", "origins", "places", "precision", "quoting", "recorded", "rows", "sums")
LOOKED_UP = {"get", "peak", "vector_peak", "sparse_peak"}  # methods that compute nothing
FILE = re.compile(r"[\w./-]+\.(?:csv|toml|jsonl)")

Measured = (
    published.Row
    | published.Comparison
    | Summary
    | curves.Curve
    | engine_sums.Sums
    | kernel_shares.Surface
)
"""What others measured, in a row or in several, by a name and with a source."""
Thing = hardware.Accelerator | machines.Machine | models.Transformer | runs.Run | Measured


@dataclass(frozen=True)
class Line:
    """The code that gives a name its value, and where it stands."""

    name: str  # "DecodeStep.peak", or of a module "calc.derivations.roofline:device"
    code: ast.AST
    number: int
    module: ModuleType
    derivation: str  # by its name; "" for a line of the module itself
    given: Mapping[str, object] = field(default_factory=dict, compare=False)  # meant when it ran
    assigned: Mapping[str, ast.expr] = field(default_factory=dict, compare=False)  # their code

    @property
    def owner(self) -> type | None:
        return getattr(self.module, self.derivation, None)

    @cached_property
    def bound(self) -> set[str]:
        """Names that mean something else inside the code: arguments, and what it assigns."""
        arguments = {node.arg for node in ast.walk(self.code) if isinstance(node, ast.arg)}
        return (stored(self.code) | arguments) - {"cls"} - self.given.keys()

    @cached_property
    def names(self) -> dict[str, object]:
        """What names mean there, `cls` as in methods: what its class says later, nothing yet."""
        known = len(vars(self.module)), len(vars(self.owner)) if self.owner else 0
        return {**_names_at(self.module, self.derivation, self.number, known), **self.given}

    @property
    def value(self) -> Any:
        """What the name holds; what an earlier line or a part of a row gave is computed again."""
        names, name = vars(self.owner or self.module), re.split("[.:]", self.name)[-1]
        if (own := name.rpartition(" ")[2]) in self.given:
            return self.given[own]
        return names[name] if name in names else self.evaluated(self.code)

    def evaluated(self, code: ast.AST, names: dict[str, object] | None = None) -> Any:
        """What an expression gives there; None if it is none, or names what only a call has."""
        if not isinstance(code, ast.expr):
            return None
        try:
            expression = ast.fix_missing_locations(ast.Expression(code))
            return eval(compile(expression, "<derivation>", "eval"), names or self.names)
        except (ArithmeticError, AttributeError, LookupError, NameError, TypeError, ValueError):
            return None


@cache
def _names_at(module: ModuleType, derivation: str, number: int, _: object) -> dict[str, object]:
    """What names mean in a line of this number; the last tells how much there is by now."""
    names, owner = dict(vars(module)), getattr(module, derivation, None)
    if owner is None:
        return names
    for name, value in vars(owner).items():
        earlier = line_of(owner, name, number)
        if earlier == line_of(owner, name):
            names[name] = value
        elif earlier:
            names[name] = earlier.value
    return {**names, "cls": owner}


Meaning = Datum | Thing | Path | Line


def is_derivation(value: object) -> TypeGuard[type]:
    return inspect.isclass(value) and of_derivations(value.__module__)


def of_derivations(module: str) -> bool:
    return module.startswith(DERIVATIONS) and module.removeprefix(DERIVATIONS) not in READERS


def is_datum(value: object) -> TypeGuard[Datum]:
    return isinstance(value, Datum) and value.provenance is not None


@cache
def derivation(name: str) -> type:
    return next(
        value
        for module in _modules()
        if is_derivation(value := getattr(module, name, None))
        and value.__module__ == module.__name__
    )


def _modules() -> list[ModuleType]:
    """Those of derivations that are imported."""
    return _modules_among(len(sys.modules))


@lru_cache(1)  # every value that is shown asks
def _modules_among(_: int) -> list[ModuleType]:
    return [module for name, module in list(sys.modules.items()) if of_derivations(name)]


# --- lines by the name that they give a value ---


@cache
def _lines(module: ModuleType) -> dict[str, list[Line]]:
    """The lines of a module that give something a value, by its name."""
    tree = ast.parse(inspect.getsource(module))
    lines: dict[str, list[Line]] = defaultdict(list)
    bodies: list[ast.Module | ast.ClassDef] = [tree]
    bodies += (node for node in tree.body if isinstance(node, ast.ClassDef))
    for body in bodies:
        owner = body.name if isinstance(body, ast.ClassDef) else ""
        prefix = f"{owner}." if owner else f"{module.__name__}:"
        for statement in body.body:
            if not isinstance(statement, ast.ClassDef | ast.FunctionDef):
                for target, code in _assigned(statement):
                    name = prefix + target
                    lines[name].append(Line(name, code, statement.lineno, module, owner))
    for given in lines.values():  # another value later
        given[:-1] = [replace(line, name=f"{line.name} before") for line in given[:-1]]
    return lines


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """The names that a statement gives a value, and the code of each."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=code):
            yield name, code
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.AST() as code):
            yield name, code
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(
            names
        ) == len(values):
            for target, code in zip(names, values, strict=True):
                yield ast.unparse(target), code
        case _:
            for name in sorted(stored(statement)):
                yield name, statement


def stored(code: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(code)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def line_of(owner: type, name: str, before: int | None = None) -> Line | None:
    """The last line that gives an attribute its value, or the last one before another line."""
    for base in filter(is_derivation, owner.__mro__):
        lines = _lines(sys.modules[base.__module__])[f"{base.__name__}.{name}"]
        earlier = [line for line in lines if before is None or line.number < before]
        if earlier:
            return earlier[-1]
    return None


def line_of_function(function: Any) -> Line | None:
    """The definition of a function or a method of a module of derivations."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    if not (isinstance(function, FunctionType) and of_derivations(function.__module__)):
        return None
    return _definition(function)


@cache
def _definition(function: FunctionType) -> Line:
    code = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    module = sys.modules[function.__module__]
    owner, _, _ = function.__qualname__.rpartition(".")
    return Line(function.__qualname__, code, sys.maxsize, module, owner)


# --- lines by the value that they give ---

_made: dict[int, tuple[Line, object]] = {}  # by identity of the value, which is kept with it
_names_in: dict[ModuleType, int] = {}  # how many each had; one that quotes is not whole yet


def line_that_made(value: object) -> Line | None:
    """The line of a derivation that gave this very object, as an attribute or within its rows."""
    for module in _modules():
        if _names_in.get(module) != len(vars(module)):
            _names_in[module] = len(vars(module))
            for owner in list(vars(module).values()):
                if is_derivation(owner) and owner.__module__ == module.__name__:
                    for name, attribute in vars(owner).items():
                        if line := line_of(owner, name):
                            _note(attribute, line)
    return _made[id(value)][0] if id(value) in _made else None


def _note(value: object, line: Line) -> None:
    """Notes the line of a value, or of each part of what stands there as rows."""
    if isinstance(value, list | tuple):
        for part, own in zip(value, lines_of_parts(line, value), strict=False):
            _note(part, own)
    elif isinstance(value, Quantity | Count | float):
        literal = isinstance(line.code, ast.Constant)  # one object wherever a module has it
        alias = id(value) in _made and only_looks_up(line.code, line.bound)
        if not literal and not alias:
            _made[id(value)] = line, value


def lines_of_parts(line: Line, values: Sequence[object]) -> list[Line]:
    """A line for each part of a row, or row of a table; none where its code has not one each."""
    match line.code:
        case ast.Tuple(elts=codes) | ast.List(elts=codes) | ast.Call(args=codes):
            spread = [part for code in codes for part in _spread(replace(line, code=code))]
            if len(spread) == len(values):
                return [replace(part, name=f"{line.name} {i}") for i, part in enumerate(spread)]
    return []


def _spread(line: Line) -> list[Line]:
    """The line itself; of `*row` one for each of its parts."""
    if not isinstance(line.code, ast.Starred):
        return [line]
    inner = line.code.value
    while isinstance(inner, ast.Name) and inner.id in line.assigned:
        inner = line.assigned[inner.id]
    match inner:
        case ast.Tuple(elts=codes) | ast.List(elts=codes):
            return [part for code in codes for part in _spread(replace(line, code=code))]
        case ast.ListComp(elt=code, generators=[ast.comprehension(ast.Name(id=name), of, [])]) | (
            ast.GeneratorExp(elt=code, generators=[ast.comprehension(ast.Name(id=name), of, [])])
        ):
            through = line.evaluated(of) or ()
            assigned = {**line.assigned, name: of}
            return [
                replace(line, code=code, given={**line.given, name: value}, assigned=assigned)
                for value in through
            ]
    values = line.evaluated(inner)
    if not isinstance(values, Sequence):
        return []
    return [
        replace(line, code=ast.Subscript(inner, ast.Constant(i), ast.Load()))
        for i in range(len(values))
    ]


def shown_by(line: Line) -> Line:
    """The line of what a cell shows: without the unit and the digits that it is printed with, and
    of a choice what was chosen."""
    match line.code:
        case ast.Call(func=ast.Name(id="show" | "approximately" | "words"), args=[inner, *_]):
            return shown_by(replace(line, code=inner))
        case ast.Call(func=ast.Attribute(value=inner, attr="m_as" | "to" | "to_base_units")):
            return shown_by(replace(line, code=inner))
        case ast.Attribute(value=inner, attr="magnitude" | "m"):
            return shown_by(replace(line, code=inner))
        case ast.Call(func=ast.Attribute(value=device, attr="ridge_point"), args=[dtype]) if (
            isinstance(line.evaluated(device), hardware.Accelerator)
        ):
            peak = ast.Call(ast.Attribute(device, "peak", ast.Load()), [dtype], [])
            bandwidth = ast.Attribute(device, "memory_bandwidth", ast.Load())
            return replace(line, code=ast.BinOp(peak, ast.Div(), bandwidth))
        case ast.IfExp(test=test, body=body, orelse=other):
            return shown_by(replace(line, code=body if line.evaluated(test) else other))
        case ast.BoolOp(op=ast.And(), values=[*_, last]):
            return shown_by(replace(line, code=last))
        case ast.Name(id=name) if name in line.assigned:
            return shown_by(_made_of(name, line))
    return line


# --- what goes into a line ---


def parts(line: Line) -> Iterator[tuple[ast.AST, Meaning]]:
    """The parts of a line that mean something of their own, in their order."""
    waiting = [line.code]
    while waiting:
        part = waiting.pop(0)
        if (known := meaning(part, line)) is not None:
            yield part, known
        elif isinstance(part, ast.FunctionDef):
            waiting = [*part.body, *waiting]
        else:
            waiting = [*ast.iter_child_nodes(part), *waiting]


def meaning(part: ast.AST, line: Line) -> Meaning | None:
    """What a part of a line means as a whole; None where its own parts are to be asked."""
    if isinstance(part, ast.expr) and only_looks_up(part, line.bound):
        value = line.evaluated(part)
        if is_datum(value) or isinstance(value, Thing):
            return value
    match part:
        case ast.Constant(value=str(name)) if FILE.fullmatch(name):
            return recorded.file(name)
        case ast.Name(id=name) if name not in line.bound:
            return _named(name, line)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner not in line.bound:
            if is_derivation(named := line.names.get(owner)):
                return line_of(named, name) or line_of_function(getattr(named, name, None))
    return None


def _named(name: str, line: Line) -> Line | None:
    """The line that gave a name its value before this one, or one of its module."""
    if name in line.given:
        return _given(name, line)
    if line.owner and (earlier := line_of(line.owner, name, line.number)):
        return earlier
    value = vars(line.module).get(name)
    if callable(value) or isinstance(value, Path):
        return line_of_function(value)
    own = _lines(line.module)[f"{line.module.__name__}:{name}"]
    return own[-1] if own else None


def _given(name: str, line: Line) -> Line | None:
    """The line that made what a name meant when the code ran, or its own there."""
    if made := line_that_made(line.given[name]):
        return made
    if name in line.assigned and not isinstance(line.given[name], str | bool | None):
        return _made_of(name, line)
    return None


def _made_of(name: str, line: Line) -> Line:
    """The line of a name that the code gave its value."""
    others = {other: code for other, code in line.assigned.items() if other != name}
    row = " ".join(line.name.split(" ")[:2])
    return replace(line, name=f"{row} {name}", code=line.assigned[name], assigned=others)


def only_looks_up(part: ast.AST, bound: Set[str]) -> bool:
    """Whether evaluating it only follows names into the data, and computes nothing."""
    match part:
        case ast.Name(id=name):
            return name not in bound
        case ast.Attribute(value=inner):
            return only_looks_up(inner, bound)
        case ast.Call(func=ast.Attribute(attr=method, value=inner), args=arguments, keywords=[]):
            known = all(
                isinstance(argument, ast.Constant) or only_looks_up(argument, bound)
                for argument in arguments
            )
            return known and method in LOOKED_UP and only_looks_up(inner, bound)
        case ast.Subscript(value=inner, slice=key):
            return only_looks_up(inner, bound) and (
                isinstance(key, ast.Constant) or only_looks_up(key, bound)
            )
    return False
