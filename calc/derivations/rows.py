"""What each row of a table is made of: the code that built it, and what its names meant then.

A row that a loop, a comprehension or a method made stands on no line of its own. So the code that
made the rows runs once more, and each tuple that it builds is noted with its expression.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from calc.core.errors import InputError
from calc.derivations.lines import Line, derivation, line_of, lines_of_parts, of_derivations, stored

NOTE = "_note_row"  # what noting code calls
Rows = Sequence[Sequence[Any]]


def lines_of_rows(name: str, rows: Rows) -> list[Line | None]:
    """A line for each row of what stands under this name; None where its code does not tell."""
    owner, attribute, *inner = name.split(".")
    line = line_of(derivation(owner), attribute)
    if line and not inner and (own := lines_of_parts(line, rows)):
        return [*own]
    notes = _Notes()
    try:
        made = notes.made_again(derivation(owner), attribute, line)
        for part in inner:
            made = getattr(made, part)
        again = list(made() if callable(made) else made)
    except (ArithmeticError, AttributeError, InputError, LookupError, OSError, TypeError):
        again = []
    if [len(row) for row in again] != [len(row) for row in rows]:
        return [None] * len(rows)
    return [notes.line(f"{name} {i}", row) for i, row in enumerate(again)]


class _Notes:
    """The tuples that code of derivations builds when it runs again, each with its expression."""

    def __init__(self) -> None:
        self.codes: list[tuple[ast.Tuple, Mapping[str, ast.expr], Line]] = []
        self.built: dict[int, tuple[object, int, dict[str, object]]] = {}  # by identity
        self.twins: dict[object, Any] = {}  # functions and classes that note their rows

    def made_again(self, owner: type, attribute: str, line: Line | None) -> Any:
        """What the attribute holds, made by code that notes."""
        if line is None:
            return getattr(self.twin(owner), attribute)
        names = {**self.with_twins(line.code, line.names), NOTE: self.note}
        return line.evaluated(_Noting(self, line).visit(copy.deepcopy(line.code)), names)

    def line(self, name: str, row: object) -> Line | None:
        """The line of a row that was built, by this name."""
        if id(row) not in self.built:
            return None
        _, number, given = self.built[id(row)]
        code, assigned, line = self.codes[number]
        return Line(name, code, sys.maxsize, line.module, line.derivation, given, assigned)

    def note(self, row: object, number: int, names: dict[str, Callable[[], object]]) -> object:
        """Keeps what was built by a tuple's code, and what its names mean at this moment."""
        given = {}
        for name, meaning in names.items():
            try:
                given[name] = meaning()
            except NameError:  # of a branch that was not taken
                continue
        self.built[id(row)] = row, number, given
        return row

    def with_twins(self, code: ast.AST, names: Mapping[str, Any]) -> dict[str, Any]:
        """What names mean, with twins in the place of functions and classes that the code names."""
        named = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
        return {**names, **{name: self.twin(names[name]) for name in named & names.keys()}}

    def twin(self, value: Any) -> Any:
        """A function or class of derivations as one that notes; anything else as it is."""
        if inspect.isclass(value) and of_derivations(value.__module__):
            if value not in self.twins:
                self.twins[value] = value  # for what names itself
                self.twins[value] = type(value.__name__, (value,), self.methods(value))
            return self.twins[value]
        function = inspect.unwrap(value) if callable(value) else value
        if isinstance(function, FunctionType) and of_derivations(function.__module__):
            if function not in self.twins:
                self.twins[function] = value
                self.twins[function] = self.function(function)
            return self.twins[function]
        return value

    def methods(self, owner: type) -> dict[str, Any]:
        """The methods of a class, which note their rows."""
        methods: dict[str, Any] = {"__module__": owner.__module__}
        for name, method in vars(owner).items():
            if isinstance(method, classmethod | staticmethod):
                methods[name] = type(method)(self.function(inspect.unwrap(method.__func__)))
            elif isinstance(method, FunctionType):
                methods[name] = self.function(method)
        return methods

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, compiled from its source as one that notes."""
        assert isinstance(function, FunctionType)
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        definition = tree.body[0]
        if function.__closure__ or not isinstance(definition, ast.FunctionDef):
            return function
        definition.decorator_list = []
        owner, _, _ = function.__qualname__.rpartition(".")
        module = sys.modules[function.__module__]
        line = Line(function.__qualname__, definition, sys.maxsize, module, owner)
        noting = ast.fix_missing_locations(_Noting(self, line).visit(copy.deepcopy(tree)))
        names = {**self.with_twins(definition, function.__globals__), NOTE: self.note}
        exec(compile(noting, f"<{function.__qualname__}>", "exec"), names)
        twin: Callable[..., Any] = names[function.__name__]
        return twin


class _Noting(ast.NodeTransformer):
    """Hands each tuple that the code of a line builds to the notes, with what its names mean."""

    def __init__(self, notes: _Notes, line: Line) -> None:
        self.notes, self.line = notes, line
        self.local = line.bound
        self.assigned = _assigned_once(line.code)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return node
        row = copy.deepcopy(node)
        self.notes.codes.append((row, self.assigned, self.line))
        number = len(self.notes.codes) - 1
        names = ", ".join(f"{name!r}: lambda: {name}" for name in self.names_of(row))
        call: Any = ast.parse(f"{NOTE}(0, {number}, {{{names}}})", mode="eval").body
        call.args[0] = self.generic_visit(node)
        noted: ast.AST = ast.copy_location(call, node)
        return noted

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node  # whose tuple is an index, or a type

    def names_of(self, code: ast.AST) -> list[str]:
        """Names that only this run has, in the code or in what these were made of."""
        waiting, names = [code], dict[str, None]()
        while waiting:
            part = waiting.pop()
            used = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            new = (used & self.local) - stored(part) - names.keys()
            names |= dict.fromkeys(sorted(new))
            waiting += [self.assigned[name] for name in sorted(new & self.assigned.keys())]
        return [*names]


def _assigned_once(code: ast.AST) -> dict[str, ast.expr]:
    """The expressions of names that the code gives one value alone, of those that are given one
    together, and of those that loops run through what they run through."""
    stores = [
        node.id
        for node in ast.walk(code)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assigned = {}
    for node in ast.walk(code):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if stores.count(name) == 1 and not _is_empty(value):
                assigned[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                parts = value.elts if isinstance(value, ast.Tuple) else []
                apart = parts if len(parts) == len(targets) else [value] * len(targets)
                for target, made in zip(targets, apart, strict=True):
                    once = (name for name in stored(target) if stores.count(name) == 1)
                    assigned |= dict.fromkeys(once, made)
            case (
                ast.For(target=target, iter=values) | ast.comprehension(target=target, iter=values)
            ):
                assigned |= dict.fromkeys(stored(target), values)
    return assigned


def _is_empty(code: ast.expr) -> bool:
    """Whether it is what later lines fill, as `cells = []`."""
    match code:
        case ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Set(elts=[]):
            return True
    return False
