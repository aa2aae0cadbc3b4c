"""A computed value as the sum that a reader would write: 989 TFLOP/s ÷ 3.35 TB/s = 295 FLOP/byte.

A sum of few parts is written from its code, a law's from its equation, with the values that it was
given in the place of its symbols.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from functools import cache
from types import CodeType, FrameType
from typing import Any

from calc.core import formatting
from calc.core.law import ARGUMENTS, LAWS
from calc.core.units import Quantity, from_parts
from calc.derivations.lines import Line, shown_by

SIGNS = {ast.Add: "+", ast.Sub: "−", ast.Mult: "×", ast.Div: "÷"}
BINDS = {"+": 1, "−": 1, "×": 2, "÷": 2}  # how closely
MOST_PARTS = 5
SYMBOL = re.compile(r"[^\W\d]\w*(?:\*|′)?")
OPERATORS = {" · ": " × ", " / ": " ÷ ", "-": "−"}
FUNCTIONS = {"min", "max", "log", "ln", "exp"}


def sum_of(line: Line) -> str:
    """The sum that gives a line its value, without the value; "" where it is none to be read."""
    line = shown_by(line)
    if isinstance(line.code, ast.BinOp):
        return _arithmetic(line.code, line)
    match line.code:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _names():
            return _of_law(line)
    return ""


def _arithmetic(code: ast.expr, line: Line) -> str:
    parts: list[str] = []
    text = _operand(code, line, 0, parts)
    whole = 1 < len(parts) <= MOST_PARTS and "" not in parts
    return text if whole and not _cancels(code, line) else ""


def _cancels(code: ast.expr, line: Line) -> bool:
    """Whether the printed digits of a difference would not show it."""
    if not (isinstance(code, ast.BinOp) and isinstance(code.op, ast.Sub)):
        return False
    return bool(abs(line.evaluated(code)) < 0.05 * abs(line.evaluated(code.left)))


def _operand(code: ast.expr, line: Line, outer: int, parts: list[str]) -> str:
    match code:
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in SIGNS:
            sign = SIGNS[type(operator)]
            own = BINDS[sign]
            first = _operand(left, line, own, parts)
            second = _operand(right, line, own + (sign in "−÷"), parts)
            text = f"{first} {sign} {second}"
            return f"({text})" if own < outer else text
    parts.append(_told(line.evaluated(code)))
    return parts[-1]


def _told(value: object) -> str:
    """A number as it is printed; "" of what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Quantity):
        return ""
    number = value if isinstance(value, Quantity) else Quantity(float(value), "")
    return "" if getattr(number.magnitude, "size", 1) != 1 else formatting.prose(number)


# --- laws ---


def _of_law(line: Line) -> str:
    """The equation of the law whose result the line's value is, in numbers."""
    returned: list[tuple[str, dict[str, Any], Any]] = []

    def note(frame: FrameType, event: str, result: object) -> None:
        if event == "return" and (name := _bodies().get(frame.f_code)):
            returned.append((name, dict(frame.f_locals), result))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        value = line.evaluated(line.code)
    finally:
        sys.setprofile(before)
    for name, given, result in reversed(returned):
        if _same(result, value):
            return _in_numbers(name, given)
    return ""


@cache
def _bodies() -> dict[CodeType, str]:
    """The laws by the code of their equations."""
    return {inspect.unwrap(law).__code__: name for name, law in LAWS.items()}


@cache
def _names() -> set[str]:
    """Of laws, and so of the methods of devices that ask them."""
    return {name.rpartition(".")[2] for name in LAWS}


def _same(result: object, value: object) -> bool:
    if not isinstance(result, float) or not isinstance(value, Quantity):
        return False
    return math.isclose(result, float(value.to_base_units().magnitude), rel_tol=1e-9)


def _in_numbers(name: str, given: dict[str, Any]) -> str:
    """The right side of a law's equation with its arguments' values; "" where a symbol has none."""
    stated = re.search(
        r"^Equation: [^=\n]+ = ([^=,≥≤<>\n]+(?:\([^()\n]*\))?)$", _text(name), re.MULTILINE
    )
    if stated is None:
        return ""
    values = {
        argument.symbol: _told(from_parts(given[argument.name], argument.units))
        for argument in ARGUMENTS[name]
        if isinstance(given.get(argument.name), float)
    }
    right = stated[1]
    for default in _hidden(name):  # numbers of the equation that have a unit
        number, _, unit = default.partition(" ")
        right, placed = re.subn(
            rf"(?<![\w.]){number}(?![\w.])", f"{number}\N{NO-BREAK SPACE}{unit}", right, count=1
        )
        if not placed:
            return ""
    units = {word for hidden in _hidden(name) for word in SYMBOL.findall(hidden)}
    unknown = {*SYMBOL.findall(right)} - units - values.keys() - FUNCTIONS
    if unknown or not values:
        return ""
    for written, printed in OPERATORS.items():
        right = right.replace(written, printed)
    return SYMBOL.sub(lambda symbol: values.get(symbol[0], symbol[0]), right)


def _hidden(name: str) -> list[str]:
    """The defaults of a law's arguments that no caller sees."""
    parameters = inspect.signature(inspect.unwrap(LAWS[name])).parameters.values()
    return [str(hidden.default) for hidden in parameters if hidden.name.startswith("_")]


def _text(name: str) -> str:
    return inspect.getdoc(LAWS[name]) or ""
