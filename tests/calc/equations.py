"""The equation that a law prints, read and evaluated: what the law is held against.

An equation is read as it stands in the docstring, by the symbols of the annotations and without
the law's own code:

    T = L + n / BW                              + − · / and powers: b², k³, 2^b, P^(α + 1), m^½
    b = ⌊√(M / (3 · size))⌋                     √(…), ⌊…⌋, ⌈…⌉, min, max, exp, ln, log₂, log₁₀, erfc
    I = 2 · b³ / (2 · b² · size) = b / size     each side is the result; after ≈ it is rounded
    D = 2 · p · m · n where p > 1, else 0       a case, and what holds otherwise
    c = m / 2 + 1, m = min(n, w)                a symbol that is defined after the equation

A symbol may be defined in a sentence below the equation too: "K = ⌈k / k_t⌉ are the steps". It may
be the result of another law for the same arguments: "C is the `waiting_probability`". And it may be
one of a sequence, as B_{k} is where "1 / B_n = 1 + n / (a · B_{n−1}) with B_0 = 1". What is divided
by zero is infinite. Numbers have fifty digits, so that what a law loses by rounding shows.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections import ChainMap
from collections.abc import Container, Mapping
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_FLOOR,
    Context,
    Decimal,
    InvalidOperation,
    localcontext,
)
from functools import cache, lru_cache
from types import CodeType
from typing import Any, NoReturn, get_args, get_type_hints

import calc
from calc import quantity

LAWS = calc.all_laws()

SYMBOL = r"[A-Za-zα-ω]+\u0302?(?:_\w+|[½₁₂])?(?:\*(?! ?\w))?"  # R_peak, BW₂, x̂, n½, I*
TOKEN = re.compile(rf"log₂|log₁₀|{SYMBOL}|\d+(?:\.\d+)?|, else\b|_{{|\S")
DEFINITION = re.compile(rf", (?={SYMBOL} = )")  # the comma before another equation
WITHOUT_BRACKETS = re.compile(r"\b(ln|log2|log10) (\w+_)\b")  # ln n
OF_ANOTHER_LAW = re.compile(rf"({SYMBOL}) (?:is|are) (?:the|its) `?([\w.]+)`?")
FUNCTIONS = {
    "√": "root",
    "exp": "exp",
    "ln": "ln",
    "log₂": "log2",
    "log₁₀": "log10",
    "erfc": "erfc",
    "min": "min",
    "max": "max",
}
SIGNS = {
    "·": "*",
    "−": "-",
    "^": "**",
    "²": "**2",
    "³": "**3",
    "½": 'number("0.5")',
    "⌊": "floor(",
    "⌋": ")",
    "⌈": "ceiling(",
    "⌉": ")",
    "_{": "at[",
    "}": "]",
    "where": " if ",
    ", else": " else ",
    "=": "==",
    "≤": "<=",
    "≥": ">=",
    **{sign: sign for sign in "+/()<>,"},
}


class UnreadableError(Exception):
    """An equation says what this reader does not know."""


@dataclass(frozen=True)
class Equation:
    """A printed equation: what the result equals, and what the symbols in it are."""

    law: str
    sides: tuple[str, ...]
    """Keys of the formulas that the result equals: a relation and a number, as "= 0"."""
    formulas: Mapping[str, ast.expr]
    """The sides, and the definitions of symbols."""
    laws: Mapping[str, str]
    """The symbols that are results of other laws."""

    def values(self, arguments: Mapping[str, float]) -> list[tuple[str, Any]]:
        """Return the result by each side, with its relation to that: "=", "≤" or "≈"."""
        exact = {name: Decimal(value) for name, value in arguments.items()}
        with localcontext(EXACT):
            values = _Values(self, exact)
            return [(side[0], values.of(side)) for side in self.sides]


class _Values(dict[str, Any]):
    """The value of each symbol: an argument's, or by its definition once it is asked for."""

    def __init__(self, equation: Equation, arguments: Mapping[str, Decimal]) -> None:
        super().__init__(
            {name: arguments[argument] for argument, name in names(equation.law).items()}
        )
        self.equation, self.arguments = equation, arguments

    def __missing__(self, name: str) -> Any:
        if law := self.equation.laws.get(name):
            self[name] = _Values(printed(law), ChainMap(self.arguments, defaults(law))).of("= 0")
        elif name.endswith("at"):
            self[name] = _Sequence(self, name)
        else:
            self[name] = self.of(name)
        return self[name]

    def of(self, formula: str) -> Any:
        return eval(_code(self.equation.formulas[formula]), MEANINGS, self)


@lru_cache(maxsize=4096)
def _code(formula: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(formula)), "equation", "eval")


@dataclass(frozen=True)
class _Sequence:
    """Numbers each of which follows from the one before."""

    values: _Values
    name: str

    def __getitem__(self, last: Decimal) -> Any:
        first, following = _of_sequence(self.name, self.values.equation.formulas)
        index = _index(self.name, following)
        values = _Values(self.values.equation, self.values.arguments)
        values[self.name] = terms = {Decimal(0): values.of(first)}
        for position in map(Decimal, range(1, int(last) + 1)):
            values[index] = position
            terms[position] = values.of(following)
        return terms[last]


def _of_sequence(name: str, formulas: Mapping[str, Any]) -> list[str]:
    """The names of the first and of the following number of a sequence: B_0_ and B_n_."""
    begin = name.removesuffix("at")
    members = sorted(key for key in formulas if re.fullmatch(rf"{begin}(0|[a-z])_", key))
    return members if len(members) == 2 else _unknown(begin)


def _index(name: str, following: str) -> str:
    """The name of n, by those of a sequence and of its number B_n."""
    return following.removeprefix(name.removesuffix("at"))


EXACT = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])


def _floor(value: Decimal) -> Decimal:
    """The whole number below, where 1 / 3 · 3 is 1."""
    return (value + abs(value) * Decimal("1e-40")).to_integral_value(ROUND_FLOOR)


MEANINGS: dict[str, Any] = {
    "number": Decimal,
    "root": Decimal.sqrt,
    "floor": _floor,
    "ceiling": lambda value: -_floor(-value),
    "exp": Decimal.exp,
    "ln": Decimal.ln,
    "log2": lambda value: value.ln() / Decimal(2).ln(),
    "log10": Decimal.log10,
    "erfc": lambda value: Decimal(math.erfc(value)),
    "min": min,
    "max": max,
    "π_": Decimal("3.14159265358979323846264338327950288419716939937510"),
    "memory_": "memory",
    "compute_": "compute",
}


# --- what is printed ---


def paragraphs(law: str) -> tuple[str, str]:
    """The equation of a law, and the sentences below it."""
    text = (inspect.getdoc(LAWS[law]) or "").split(">>>")[0]
    equation = re.search(r"^Equation: (.+?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    if not equation:
        raise UnreadableError('the docstring has no paragraph "Equation: …"')
    return " ".join(equation[1].split()), " ".join(text[equation.end() :].split())


def symbols_in(text: str) -> set[str]:
    """Return all that may be a symbol, words of a sentence too."""
    tokens = set(TOKEN.findall(text)) - FUNCTIONS.keys() - SIGNS.keys()
    return {token for token in tokens if re.fullmatch(SYMBOL, token)}


@cache
def symbols(law: str) -> dict[str, tuple[str, str]]:
    """Unit and symbol of each argument."""
    hints = get_type_hints(LAWS[law], include_extras=True)
    return {name: get_args(hints[name])[1:3] for name in inspect.signature(LAWS[law]).parameters}


@cache
def names(law: str) -> dict[str, str]:
    """The name of each argument's symbol in what Python evaluates."""
    return {argument: _name(symbol) for argument, (_, symbol) in symbols(law).items()}


def defaults(law: str) -> dict[str, Decimal]:
    return {
        name: Decimal(quantity(parameter.default, symbols(law)[name][0]).magnitude)
        for name, parameter in inspect.signature(LAWS[law]).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def _name(symbol: str) -> str:
    """A symbol as a name of Python that ends with _, as no word of Python does.

    The sequence of B_{n} has the name of B and "at" after it.
    """
    name = re.sub(r"\W|[½₁₂]", lambda sign: f"_{ord(sign[0]):x}", symbol)
    return f"_{name}_" if symbol[0].isdigit() else f"{name}_"


def _unknown(name: str) -> NoReturn:
    raise UnreadableError(
        f"{name.rstrip('_')} is no symbol of an argument, and no sentence defines it, as in"
        ' "K = ⌈k / k_t⌉ are the steps" or "C is the `waiting_probability`"'
    )


# --- reading ---


@cache
def printed(law: str) -> Equation:
    """The equation that the docstring of a law prints."""
    try:
        return _read(law, *paragraphs(law))
    except UnreadableError as error:
        raise UnreadableError(f"{law}: {error}") from None


def _read(law: str, text: str, prose: str) -> Equation:
    named = {_name(symbol): symbol for _, symbol in symbols(law).values()}
    for symbol in named.values():
        if symbol[0].isdigit() and TOKEN.findall(text).count(symbol) > 1:
            raise UnreadableError(f"{symbol} is the symbol of an argument and can stand once alone")
    main, *definitions = DEFINITION.split(text)
    formulas = _sides(main, named)
    sides = tuple(formulas)
    for definition in definitions:
        symbol, formula = definition.split(" = ", 1)
        formulas[_name(symbol)] = _formula(TOKEN.findall(formula), named)
    laws, defined = _laws_in(prose, law), _defined_in(prose)
    used, open_names = set[str](), [*formulas]
    while open_names:
        name = open_names.pop()
        if name in used or name in MEANINGS:
            continue
        used.add(name)
        if name in laws:
            shared = names(law).keys() & names(laws[name])
            open_names += (names(law)[argument] for argument in shared)
        elif name.endswith("at"):
            sequence = _of_sequence(name, defined)
            formulas |= {member: defined[member] for member in sequence}
            within = set[str]().union(*(_names_in(defined[member]) for member in sequence))
            open_names += within - {_index(name, sequence[1])}
        elif name not in named:
            if name not in formulas:
                formulas[name] = defined.get(name) or _unknown(name)
            open_names += _names_in(formulas[name])
    if unused := named.keys() - used:
        raise UnreadableError(f"it is without {', '.join(sorted(named[name] for name in unused))}")
    return Equation(law, sides, formulas, {name: laws[name] for name in used & laws.keys()})


def _sides(main: str, named: Container[str]) -> dict[str, ast.expr]:
    """Return the formulas that the result equals; how the result is written does not matter."""
    value, where, cases = main.partition(" where ")
    _, *parts = re.split(" ([=≤≈]) ", value)
    if where and not parts:  # the result is a word
        parts = ["=", value]
    if not parts:
        raise UnreadableError(f"{main} says nothing that the result equals")
    return {
        f"{relation} {number}": _formula(TOKEN.findall(side + where + cases), named)
        for number, (relation, side) in enumerate(zip(parts[::2], parts[1::2], strict=True))
    }


def _defined_in(prose: str) -> dict[str, ast.expr]:
    """Return what sentences define: after "K =" as much as can be read."""
    tokens = TOKEN.findall(prose)
    definitions = {}
    for index, token in enumerate(tokens[:-2]):
        if not re.fullmatch(SYMBOL, token) or tokens[index + 1] != "=":
            continue
        for end in range(min(len(tokens), index + 60), index + 2, -1):
            try:
                formula = _formula(tokens[index + 2 : end], set())
            except UnreadableError:
                continue
            if tokens[max(index - 2, 0) : index] == ["1", "/"]:
                formula = ast.BinOp(_formula(["1"], set()), ast.Div(), formula)
            definitions[_name(token)] = formula
            break
    return definitions


def _laws_in(prose: str, law: str) -> dict[str, str]:
    """The symbols that sentences explain by another law, of the same module where none is named."""
    laws = {}
    for symbol, name in re.findall(OF_ANOTHER_LAW, prose):
        other = name if "." in name else f"{law.split('.')[0]}.{name}"
        if other in LAWS:
            laws[_name(symbol)] = other
    return laws


def _formula(tokens: list[str], named: Container[str]) -> ast.expr:
    """Python of a formula; a number that is the symbol of an argument is that argument."""
    text = ""
    for token in tokens:
        if token in FUNCTIONS:
            text += FUNCTIONS[token]
        elif token in SIGNS:
            text += SIGNS[token]
        elif token[0].isdigit():
            text += _name(token) if _name(token) in named else f'number("{token}")'
        elif re.fullmatch(SYMBOL, token):
            text += f" {_name(token)}"
        else:
            raise UnreadableError(f"{token} in {' '.join(tokens)} is no sign that is known")
    text = WITHOUT_BRACKETS.sub(r"\1(\2)", text)
    try:
        formula = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise UnreadableError(f"{' '.join(tokens)} cannot be read") from None
    called = {ast.unparse(part.func) for part in ast.walk(formula) if isinstance(part, ast.Call)}
    if isinstance(formula, ast.Tuple | ast.Compare) or not called <= MEANINGS.keys():
        raise UnreadableError(f"{' '.join(tokens)} is no formula")
    return formula


def _names_in(formula: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(formula) if isinstance(part, ast.Name)}
