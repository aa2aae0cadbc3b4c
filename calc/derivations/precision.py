"""How many digits a quoted result carries: no more than the worst of what it was computed from.

Data know their kind and the digits that were published. What a result was computed from stands in
the lines of its derivation; they are read from the syntax tree of its class, so that nobody keeps a
list. An input counts by what hangs on it: where another value of it would change the result by a
tenth as much, as a latency does beside a long transfer, the result may have a digit more than it.

What no line leads to the data, such as the rows that a loop makes, is left as it is.

    >>> from calc.derivations.numbers_to_know import AnchorLatencies
    >>> precision(AnchorLatencies.network_per_hbm)
    Precision(digits=2, estimated=True)
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
from dataclasses import dataclass
from functools import cache
from math import floor, log, log10
from typing import Any

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.units import Quantity
from calc.derivations.origins import DERIVATIONS, LOOKED_UP, is_derivation

OF_AN_ESTIMATE = 2
OF_A_MEASUREMENT = 2  # or more, where more were published
OF_A_DATASHEET = 3  # or more: 80 GB, 700 W and 2 TB/s are meant as they stand
EXACT = 17
COUNTS = ("count_", "channels_", "lanes_")
CHANGE = 1.001  # of an input, to see what becomes of a result

Inputs = dict[str, Quantity | None]  # data by their keys; None for a device as a whole


@dataclass(frozen=True)
class Precision:
    """How many digits are known of a value, and whether an estimate decides them."""

    digits: int = EXACT
    estimated: bool = False


def precision(value: object) -> Precision:
    """That of a result which stands in a derivation; a number of the data is printed as it is."""
    if isinstance(value, Quantity) and value.provenance is not None:
        return Precision(estimated=value.provenance.kind == "estimate")
    _note_results()
    if id(value) not in _results:
        return Precision()
    derivation, line, _ = _results[id(value)]
    worst = Precision()
    for key, datum in _inputs(line, derivation).items():
        digits = OF_A_DATASHEET if datum is None else digits_of_data(datum)
        if datum is not None and digits < EXACT:
            digits += _further_digits(value, line, derivation, key)
        if digits < worst.digits:
            worst = Precision(digits, datum is not None and _kind(datum) == "estimate")
    return worst


def digits_of_data(datum: Quantity) -> int:
    """How many digits of a number of the data count."""
    if _kind(datum) == "estimate":
        return OF_AN_ESTIMATE
    if _kind(datum) == "definition" or _key(datum).startswith(COUNTS):
        return EXACT
    if _kind(datum) == "datasheet" and datum.unitless and datum.magnitude == int(datum.magnitude):
        return EXACT  # how many layers or cores there are
    printed = f"{datum.magnitude:.12g}".partition("e")[0].replace(".", "").lstrip("-0")
    least = OF_A_MEASUREMENT if _kind(datum) == "measured" else OF_A_DATASHEET
    return max(least, len(printed))


def with_digits_of(value: Quantity, *data: Quantity) -> Quantity:
    """A result for which no line stands, as in the rows of a loop, in the digits of its data.

    >>> from calc import runs
    >>> bloom = runs.get("bloom-176b")
    >>> print(with_digits_of(bloom.hfu * 0.75, bloom.hfu))
    38%
    """
    if value.provenance is not None:
        return value
    return rounded(value, min(digits_of_data(datum) for datum in data))


def rounded(value: Quantity, digits: int) -> Quantity:
    """A value with so many significant digits, which is what a reader of them has."""
    return Quantity(float(f"{value.magnitude:.{digits}g}"), value.units)


def _kind(datum: Quantity) -> str:
    return datum.provenance.kind if datum.provenance else ""


def _key(datum: Quantity) -> str:
    return datum.provenance.key if datum.provenance else ""


def _further_digits(value: Any, line: ast.AST, derivation: type, key: str) -> int:
    """How many digits more than an input a result may have, for how little of it hangs on that."""
    again = _evaluated(line, derivation, key)
    try:
        share = abs(log((again / value).m_as("") if isinstance(value, Quantity) else again / value))
    except (AttributeError, ArithmeticError, TypeError, ValueError):  # no number, or below zero
        return 0
    return max(0, floor(-log10(share / log(CHANGE)) + 0.05)) if share else 0


# --- results and inputs, by the lines of derivations ---

_results: dict[int, tuple[type, ast.AST, object]] = {}  # by identity of the object, kept with it
_names_in: dict[str, int] = {}  # how many each module had; one that quotes is not whole yet


def _note_results() -> None:
    """Notes what line each result has of the derivations imported since the last time."""
    for name in [name for name in sys.modules if name.startswith(DERIVATIONS)]:
        held = vars(sys.modules[name])
        if _names_in.get(name) != len(held) and name not in (__name__, f"{DERIVATIONS}quoting"):
            _names_in[name] = len(held)
            for derivation in list(held.values()):
                if is_derivation(derivation) and derivation.__module__ == name:
                    for attribute, line in _lines(derivation).items():
                        _note(getattr(derivation, attribute), line, derivation)


def _note(value: object, line: ast.AST, derivation: type) -> None:
    """Notes the line of a result, or of each part of what stands there as rows."""
    if isinstance(value, list | tuple):
        parts = line.elts if isinstance(line, ast.Tuple | ast.List) else getattr(line, "args", [])
        if len(parts) == len(value):
            for part, expression in zip(value, parts, strict=True):
                _note(part, expression, derivation)
    elif isinstance(value, Quantity | float):
        _results.setdefault(id(value), (derivation, line, value))


def _lines(derivation: type) -> dict[str, ast.AST]:
    return _lines_by_class(derivation.__module__).get(derivation.__name__, {})


@cache
def _lines_by_class(module: str) -> dict[str, dict[str, ast.AST]]:
    """What each attribute is assigned, and the methods, as the source of a module has them."""
    found: dict[str, dict[str, ast.AST]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {}
            for line in node.body:
                match line:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value):
                        found[node.name][name] = value
                    case ast.FunctionDef(name=name):
                        found[node.name][name] = line
    return found


@cache
def _names(derivation: type) -> dict[str, Any]:
    """What a line of a derivation may name, and `cls` as its methods do."""
    return {**vars(sys.modules[derivation.__module__]), **vars(derivation), "cls": derivation}


def _attribute(node: ast.AST, derivation: type) -> tuple[type, str] | None:
    """The derivation and the attribute that a node names."""
    match node:
        case ast.Name(id=name) if name in _lines(derivation):
            return derivation, name
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if is_derivation(
            _names(derivation).get(owner)
        ):
            return _names(derivation)[owner], name
    return None


def _looked_up(node: ast.AST, derivation: type) -> Any:
    """What the data hold where a node spells it out, as in `hardware.get("h100").tdp`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant()]) if (
            method in LOOKED_UP
        ):
            return _evaluated(node, derivation)
        case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="get"))):
            return _evaluated(node, derivation)
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return getattr(_names(derivation).get(owner), name, None)
    return None


def _from_data(value: object) -> Inputs | None:
    if isinstance(value, Quantity) and value.provenance is not None:
        return {value.provenance.key: value}
    return {value.key: None} if isinstance(value, Accelerator | Machine) else None


def _inputs(node: ast.AST, derivation: type) -> Inputs:
    """The data that an expression names, directly or by what it names."""
    if named := _attribute(node, derivation):
        return _inputs_of(*named)
    if (found := _from_data(_looked_up(node, derivation))) is not None:
        return found
    parts: Any = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef):  # which sees its class as `cls` alone
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        parts = [part for part in parts if _attribute(part, derivation)]
    return {key: datum for part in parts for key, datum in _inputs(part, derivation).items()}


_inputs_found: dict[tuple[type, str], Inputs] = {}


def _inputs_of(derivation: type, name: str) -> Inputs:
    """Those of an attribute or a method; one that calls itself adds nothing meanwhile."""
    if (derivation, name) not in _inputs_found:
        _inputs_found[derivation, name] = {}
        found = _from_data(getattr(derivation, name, None))
        line = _lines(derivation).get(name)
        if found is None:
            found = _inputs(line, derivation) if line is not None else {}
        _inputs_found[derivation, name] = found
    return _inputs_found[derivation, name]


def _evaluated(node: ast.AST, derivation: type, key: str = "") -> Any:
    """What an expression gives, with one number of the data a little larger; None if nothing."""
    names = dict(_names(derivation))
    changed: Any = _WithInput(derivation, key, names).visit(copy.deepcopy(node)) if key else node
    try:
        expression = ast.fix_missing_locations(ast.Expression(changed))
        return eval(compile(expression, "<derivation>", "eval"), names)
    except Exception:  # a name of a method's own, or what an expression refuses
        return None


class _WithInput(ast.NodeTransformer):
    """Puts a changed value in the place of each part of an expression that hangs on an input."""

    def __init__(self, derivation: type, key: str, names: dict[str, Any]) -> None:
        self.derivation, self.key, self.names = derivation, key, names

    def visit(self, node: ast.AST) -> Any:
        named = _attribute(node, self.derivation)
        if named:
            value = _changed(*named, self.key) if self.key in _inputs_of(*named) else None
        else:
            value = _larger(_looked_up(node, self.derivation), self.key)
        if value is None:
            return node if named else self.generic_visit(node)
        name = f"_{len(self.names)}"
        self.names[name] = value
        return ast.Name(id=name, ctx=ast.Load())


_values: dict[tuple[type, str, str], Any] = {}


def _changed(derivation: type, name: str, key: str) -> Any:
    """An attribute, had this number of the data been a little larger; None if that is unknown."""
    if (derivation, name, key) not in _values:
        _values[derivation, name, key] = None  # for one that is made of itself
        value = _larger(getattr(derivation, name, None), key)
        line = _lines(derivation).get(name)
        if value is None and isinstance(line, ast.expr):
            value = _evaluated(line, derivation, key)
        _values[derivation, name, key] = value
    return _values[derivation, name, key]


def _larger(value: object, key: str) -> Quantity | None:
    """A number of the data, if it is the one to be changed."""
    if isinstance(value, Quantity) and _key(value) == key:
        return Quantity(CHANGE * value.magnitude, value.units)
    return None
