"""The reader of printed equations: what it reads and refuses, and that a wrong one is noticed."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import pytest

from calc.core.units import Quantity, QuantityLike
from tests.calc import equations
from tests.calc.equations import Equation, UnreadableError, names, printed
from tests.calc.references import REFERENCES, agrees
from tests.calc.test_law import LAWS, every_law, points, result_of

# --- a wrong equation is noticed ---

OTHER_SIGN = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
SIGN = {ast.Sub: "-", ast.Div: "/"}
OTHER_FUNCTION = {"min": "max", "max": "min", "floor": "ceiling", "ceiling": "floor"}
ALIKE = {"parallelism.activations_in_flight": "i_ ** 2"}
"""What may be changed and changes nothing: this i is 0 or 1."""


def changes(part: ast.expr, text: Callable[[ast.expr], str]) -> Iterator[str]:
    """Yield the texts that may stand wrongly for a part of a formula, but those of one symbol."""
    match part:
        case ast.BinOp(left, ast.Pow(), right):
            yield f"({text(left)}) ** ({text(right)} + 1)"
            yield f"({text(right)}) ** ({text(left)})"
        case ast.BinOp(left, sign, right):
            yield f"({text(left)}) {OTHER_SIGN[type(sign)]} ({text(right)})"
            if type(sign) in SIGN:
                yield f"({text(right)}) {SIGN[type(sign)]} ({text(left)})"
        case ast.UnaryOp(_, operand):
            yield text(operand)
        case ast.Call(ast.Name("number"), [ast.Constant(str(digits))]) if digits != "0":
            yield f"2 * {text(part)}"
        case ast.Call(ast.Name(function), arguments) if function != "number":
            if function in OTHER_FUNCTION:
                yield f"{OTHER_FUNCTION[function]}({', '.join(map(text, arguments))})"
            if len(arguments) == 1:
                yield text(arguments[0])
        case ast.Name(symbol) if symbol.endswith("_"):
            yield f"2 * {symbol}"
            yield f"{symbol} ** 2"
        case ast.IfExp(condition, yes, no):
            yield f"({text(no)}) if {text(condition)} else ({text(yes)})"


def wrong_formulas(formula: ast.expr, symbols: list[str]) -> Iterator[str]:
    """The formula with one part changed: a sign, a power, a factor, operands, a function."""
    source = ast.unparse(formula).encode()
    tree = ast.parse(source, mode="eval").body

    def text(part: ast.expr) -> str:
        return source[part.col_offset : part.end_col_offset].decode()

    comparisons = [part for part in ast.walk(tree) if isinstance(part, ast.Compare)]
    compared = [part for comparison in comparisons for part in ast.walk(comparison)]
    for part in ast.walk(tree):
        if not isinstance(part, ast.expr):
            continue
        others: list[str] = []
        if isinstance(part, ast.Compare):
            left, right = text(part.left), text(part.comparators[0])
            others += [f"({left}) {sign} ({right})" for sign in "<>" if sign not in text(part)]
        elif part not in compared:  # twice as much may well be more than zero, too
            others += changes(part, text)
        if isinstance(part, ast.Name) and part.id in symbols and len(symbols) > 1:
            others.append(symbols[symbols.index(part.id) - 1])
        for other in others:
            start, end = source[: part.col_offset].decode(), source[part.end_col_offset :].decode()
            yield f"{start}({other}){end}"


def wrong_equations(equation: Equation) -> Iterator[tuple[str, Equation]]:
    symbols = list(names(equation.law).values())
    for name, formula in equation.formulas.items():
        for wrong in wrong_formulas(formula, symbols):
            changed = ast.parse(wrong, mode="eval").body
            yield wrong, replace(equation, formulas={**equation.formulas, name: changed})


@cache
def results(name: str) -> list[tuple[dict[str, float], Any]]:
    return [(point, result_of(LAWS[name], point)) for point in points(LAWS[name])]


def is_noticed(name: str, wrong: Equation) -> bool:
    try:
        return not all(
            agrees(result, relation, value)
            for point, result in results(name)
            for relation, value in wrong.values(point)
        )
    except (ArithmeticError, NameError, TypeError):
        return True


def assert_noticed(name: str, number: int | None = None) -> None:
    """Assert that wrong equations differ from the law somewhere: so many of them, or all."""
    if name in REFERENCES:
        return
    wrong = list(wrong_equations(printed(name)))
    if number:
        wrong = random.Random(name).sample(wrong, min(number, len(wrong)))
    same = [text for text, equation in wrong if not is_noticed(name, equation)]
    assert all(name in ALIKE and ALIKE[name] in text for text in same), same


@every_law
def test_a_wrong_equation_is_noticed(name: str) -> None:
    assert_noticed(name, 4)


@pytest.mark.nightly  # of which the test above tries four of each law
@every_law
def test_every_wrong_equation_is_noticed(name: str) -> None:
    assert_noticed(name)


@pytest.mark.parametrize(
    "wrong",
    ["T = L − n / BW", "T = L + n · BW", "T = L + 2 · n / BW", "T = L + BW / n", "T = L + n"],
)
def test_a_wrong_docstring_is_noticed(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    name = "links.transfer_time"
    text = str(LAWS[name].__doc__)
    monkeypatch.setattr(LAWS[name], "__doc__", text.replace("T = L + n / BW", wrong))
    with pytest.raises((UnreadableError, AssertionError)):
        assert not is_noticed(name, printed.__wrapped__(name))


# --- what is read ---


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Equation]:
    """Reads an equation of n, w, BW₁, L* and 6, with the sentences below it."""

    def made_up(
        size: Annotated[QuantityLike, "byte", "n"],
        devices: Annotated[QuantityLike, "", "w"],
        bandwidth: Annotated[QuantityLike, "byte/s", "BW₁"],
        latency: Annotated[QuantityLike, "s", "L*"],
        work: Annotated[QuantityLike, "", "6"] = 6,
    ) -> Annotated[Quantity, ""]:
        raise NotImplementedError

    monkeypatch.setitem(equations.LAWS, "collectives.made_up", made_up)

    def read_from(text: str) -> Equation:
        made_up.__doc__ = f"Made up.\n\n{text}\n\n>>> made_up()\n"
        return printed.__wrapped__("collectives.made_up")

    return read_from


ALL = " + 0 · (n + w + BW₁ + L*) + 6"  # of the symbols, so that none is missing
PLACE = {"size": 8, "devices": 3, "bandwidth": 2, "latency": 7, "work": 0}


@pytest.mark.parametrize(
    ("equation", "sentences", "value"),
    [
        ("T = n − w − BW₁", "", 8 - 3 - 2),
        ("T = n / w · BW₁", "", 8 / 3 * 2),
        ("T = n / (w·BW₁)", "", 8 / 6),
        ("T = −w² + n^½ · 2^w", "", -9 + 8**0.5 * 8),
        ("T = w³ · n^(w − 1)", "", 27 * 64),
        ("T = ⌊n / w⌋ · ⌈n / w⌉ + √(w · 3)", "", 2 * 3 + 3),
        ("T = ⌈log₂ n⌉ + log₁₀(100) + ln(exp(w)) / w", "", 3 + 2 + 1),
        ("T = max(w, BW₁) · min(w, BW₁, n)", "", 6),
        ("T = erfc(0) · π", "", math.pi),
        ("T(∞) = n where w = 3, else 0", "", 8),
        ("T = n where w < BW₁, else 7 where w ≤ 2, else 4", "", 4),
        ("|T − n| ≤ 2.5 · w", "", 7.5),
        ("T = a + b, a = n · b, b = w + 1", "", 36),
        ("T = K + n", "K = ⌈n / w⌉ are the steps.", 11),
        ("T = B_{w}", "From 1 / B_k = 1 + k / (a · B_{k−1}) with a = n and B_0 = 1.", 512 / 758),
        ("T = C · n", "C is the `all_gather_traffic`, whose n is the same.", 8 * 8 * 2 / 3),
        ("T = n / 0", "", math.inf),
    ],
)
def test_what_is_read(
    read: Callable[[str], Equation], equation: str, sentences: str, value: float
) -> None:
    ((_, exact),) = read(f"Equation: {equation}{ALL}\n\n{sentences}").values(PLACE)
    assert math.isclose(exact, value, rel_tol=1e-14)


def test_each_side_is_the_result(read: Callable[[str], Equation]) -> None:
    values = read(f"Equation: T = n / 3 ≈ 2.67 = n / w{ALL}").values(PLACE)
    assert [relation for relation, _ in values] == ["=", "≈", "="]
    assert [float(value) for _, value in values] == pytest.approx([8 / 3, 2.67, 8 / 3])
    assert [agrees(8 / 3, *each) for each in values] == [True, True, True]
    assert not agrees(8 / 3, "=", 2.67)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Makes it up.", 'the docstring has no paragraph "Equation: …"'),
        (f"Equation: T = n · K{ALL}", "K is no symbol of an argument, and no sentence defines it"),
        (f"Equation: T = n · K{ALL}\n\nK is a number.", "K is no symbol of an argument"),
        (f"Equation: T = B_{{w}}{ALL}\n\nFrom B_0 = 1.", "B is no symbol of an argument"),
        ("Equation: T = n · BW₁ · L* · 6", "it is without w"),
        (f"Equation: T = 6 · n{ALL}", "6 is the symbol of an argument and can stand once alone"),
        (f"Equation: T = n w{ALL}", "n w .* cannot be read"),
        (f"Equation: T = n # w{ALL}", "# in .* is no sign that is known"),
        (f"Equation: T = n(w){ALL}", "is no formula"),
        (f"Equation: n < w{ALL}", "n < w .* says nothing that the result equals"),
    ],
)
def test_what_cannot_be_read(read: Callable[[str], Equation], text: str, reason: str) -> None:
    with pytest.raises(UnreadableError, match=rf"^collectives\.made_up: .*{reason}"):
        read(text)
