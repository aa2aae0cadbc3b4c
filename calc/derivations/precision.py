"""How many digits a quoted result carries: no more than the worst of what it was computed from.

Data know their kind and the digits that were published; what a result was computed from, its lines
know. An input counts by what hangs on it: where another value of it would change the result by a
tenth as much, as a latency does beside a long transfer, the result may have a digit more than it.

What no line leads to the data, such as the rows that a loop makes, is left as it is.

    >>> from calc.derivations.numbers_to_know import AnchorLatencies
    >>> precision(AnchorLatencies.dram_per_l1)
    Precision(digits=2, estimated=True)
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from math import floor, log, log10
from typing import Any

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.records import Count, Datum
from calc.core.units import Quantity
from calc.derivations.lines import Line, is_datum, line_that_made, meaning, parts

OF_AN_ESTIMATE = 2
OF_A_MEASUREMENT = 2  # or more, where more were published
OF_A_DATASHEET = 3  # or more: 80 GB, 700 W and 2 TB/s are meant as they stand
EXACT = 17
COUNTS = ("count_", "channels_", "lanes_")
CHANGE = 1.001  # of an input, to see what becomes of a result

Inputs = dict[str, Datum | None]  # data by their keys; None for a device as a whole


@dataclass(frozen=True)
class Precision:
    """How many digits are known of a value, and whether an estimate decides them."""

    digits: int = EXACT
    estimated: bool = False


def precision(value: object) -> Precision:
    """That of a result which stands in a derivation; a number of the data is printed as it is."""
    if is_datum(value) and value.provenance:
        return Precision(estimated=value.provenance.kind == "estimate")
    worst = Precision()
    if line := line_that_made(value):
        for key, datum in _inputs(line).items():
            digits = OF_A_DATASHEET if datum is None else digits_of_data(datum)
            if datum is not None and digits < EXACT:
                digits += _further_digits(value, line, key)
            if digits < worst.digits:
                worst = Precision(digits, datum is not None and _kind(datum) == "estimate")
    return worst


def digits_of_data(datum: Datum) -> int:
    """How many digits of a number of the data count."""
    if _kind(datum) == "estimate":
        return OF_AN_ESTIMATE
    if _kind(datum) == "definition" or _key(datum).startswith(COUNTS):
        return EXACT
    if isinstance(datum, Count):
        return EXACT  # how many layers or cores there are
    if _kind(datum) == "datasheet" and datum.unitless and datum.magnitude == int(datum.magnitude):
        return EXACT
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


def _kind(datum: Datum) -> str:
    return datum.provenance.kind if datum.provenance else ""


def _key(datum: Datum) -> str:
    return datum.provenance.key if datum.provenance else ""


def _further_digits(value: object, line: Line, key: str) -> int:
    """How many digits more than an input a result may have, for how little of it hangs on that."""
    again = _recomputed(line, key)
    try:
        share = abs(log((again / value).m_as("") if isinstance(value, Quantity) else again / value))
    except (AttributeError, ArithmeticError, TypeError, ValueError):  # no number, or below zero
        return 0
    return max(0, floor(-log10(share / log(CHANGE)) + 0.05)) if share else 0


_inputs_of_lines: dict[Line, Inputs] = {}


def _inputs(line: Line) -> Inputs:
    """The data that a line leads to; one that leads to itself adds nothing meanwhile."""
    if line not in _inputs_of_lines:
        _inputs_of_lines[line] = {}
        inputs: Inputs = {}
        one_name = not isinstance(line.code, ast.stmt) or isinstance(line.code, ast.FunctionDef)
        for _, known in parts(line) if one_name else ():  # else which hangs on what is not known
            match known:
                case Line():
                    inputs |= _inputs(known)
                case Quantity() | Count():
                    inputs[_key(known)] = known
                case Accelerator() | Machine():
                    inputs[known.key] = None
        _inputs_of_lines[line] = inputs
    return _inputs_of_lines[line]


_values: dict[tuple[Line, str], Any] = {}


def _recomputed(line: Line, key: str) -> Any:
    """What a line gives, had this number of the data been a little larger; None if unknown."""
    if (line, key) not in _values:
        _values[line, key] = None  # for one that is made of itself
        changed = _WithInput(line, key)
        _values[line, key] = line.evaluated(changed.visit(copy.deepcopy(line.code)), changed.names)
    return _values[line, key]


class _WithInput(ast.NodeTransformer):
    """Puts a changed value in the place of each part of a line that hangs on an input."""

    def __init__(self, line: Line, key: str) -> None:
        self.line, self.key, self.names = line, key, dict(line.names)

    def visit(self, node: ast.AST) -> Any:
        value: object = None
        match meaning(node, self.line):
            case None:
                return self.generic_visit(node)
            case Quantity() as datum if _key(datum) == self.key:
                value = Quantity(CHANGE * datum.magnitude, datum.units)
            case Line() as line if self.key in _inputs(line):
                value = _recomputed(line, self.key)
        if value is None:
            return node
        name = f"_{len(self.names)}"
        self.names[name] = value
        return ast.Name(id=name, ctx=ast.Load())
