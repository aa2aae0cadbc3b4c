"""Witnesses of rows: what a number is without `calc`, and how it is held to that.

Arithmetic by hand is what a person would type into a pocket calculator that knows units, on numbers
of sources: `15.01e9 B / 3.35e12 B/s`. A unit belongs to the number or the bracket before it;
`{weights}` stands for the arithmetic of another row of the class, `{DecodeStep.weights}` for that
of another class. No law of `calc` has a part in it.

    >>> read("2 * 7.50465e9 byte / 3.35 TB/s").to("ms")
    Quantity(4.480388059701492, 'ms')
    >>> read("sum(ceil(4096 / 132), 1) * 2")
    Quantity(66.0, '')
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from pint import PintError

from calc.core import formatting
from calc.core.errors import InputError
from calc.core.units import Quantity
from calc.derivations.traces import bare, kept

FOUR_DIGITS = 1e-4
OF_NUMBERS: Mapping[str, Callable[..., float]] = {
    "ceil": lambda value: math.ceil(value - 1e-9),
    "floor": lambda value: math.floor(value + 1e-9),
    "ln": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "exp": math.exp,
    "erfc": math.erfc,
    "comb": lambda of, chosen: math.comb(round(of), round(chosen)),
    "power": pow,
}
OF_QUANTITIES: Mapping[str, Callable[..., Any]] = {
    "sqrt": lambda value: value**0.5,
    "least": min,
    "most": max,
    "sum": lambda first, *more: sum(more, first),
    "mean": lambda first, *more: sum(more, first) / (1 + len(more)),
    "median": lambda *values: statistics.median(values),
}
NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
UNIT = re.compile(r" ?(?![eE]\d)(?:%|[^\W\d_](?:[^\s(),{}*/]|/(?=[^\W\d])|/?\([^\s()]*\))*)")
NAME = re.compile(r"([a-z]+\d*)\(")
ROW = re.compile(r"\{([^{}]+)\}")
OPERATION = re.compile(r" [-+*/] |\d/|\*\*|\(")
POWER = re.compile(r"\*\*(-?\d+)(?![\d.])")
SIGNS = str.maketrans("×÷−", "*/-")
PRINTED = {"*": "×", "/": "÷", "-": "−"}
ROWS: dict[str, Any] = {}
"""Every row that has a witness, by its name."""


def read(written: str, row: Callable[[str], Quantity] | None = None) -> Quantity:
    """Return the result of arithmetic; `row` gives that of other rows, by their names."""
    reader = _Reader(written, row)
    total = reader.sum()
    if reader.next("") or reader.place < len(written):
        raise reader.refused("an operator")
    return total


class _Reader:
    """Reads arithmetic from left to right."""

    def __init__(self, written: str, row: Callable[[str], Quantity] | None) -> None:
        self.written, self.row, self.place = written.translate(SIGNS), row, 0

    def refused(self, wanted: str) -> InputError:
        rest = self.written[self.place :] or "the end"
        return InputError(f"{self.written!r} needs {wanted} where it has {rest!r}")

    def next(self, signs: str) -> str:
        """The sign that stands next, past it; "" where it is none of these."""
        while self.written[self.place : self.place + 1].isspace():
            self.place += 1
        symbol = self.written[self.place : self.place + 2]
        sign = symbol if symbol == "**" else symbol[:1]
        if sign not in (signs.split(",") if signs != "," else ","):
            return ""
        self.place += len(sign)
        return sign

    def sum(self) -> Quantity:
        total = self.product()
        while sign := self.next("+,-"):
            part = self.product()
            total = total + part if sign == "+" else total - part
        return total

    def product(self) -> Quantity:
        total = self.power()
        while sign := self.next("*,/"):
            factor = self.power()
            total = total * factor if sign == "*" else total / factor
        return total

    def power(self) -> Quantity:
        if self.next("-"):
            return -self.power()
        base = self.part()
        if not self.next("**"):
            return base
        exponent = -self.part(unit=False) if self.next("-") else self.part(unit=False)
        return base ** float(exponent.m_as("")) * self.unit()

    def part(self, unit: bool = True) -> Quantity:
        if self.next("("):
            value = self.sum()
            self.closed()
            return value * self.unit() if unit else value
        if found_row := ROW.match(self.written, self.place):
            if self.row is None:
                raise self.refused("numbers alone")
            self.place = found_row.end()
            return self.row(found_row[1])
        if name := NAME.match(self.written, self.place):
            self.place = name.end()
            return self.call(name[1])
        number = NUMBER.match(self.written, self.place)
        if number is None:
            raise self.refused("a number")
        self.place = number.end()
        value = Quantity(float(number[0]), "")
        return value * self.unit() if unit else value

    def unit(self) -> Quantity:
        if not (unit := UNIT.match(self.written, self.place)):
            return Quantity(1.0, "")
        self.place = unit.end()
        return Quantity(1.0, unit[0].strip())

    def closed(self) -> None:
        if not self.next(")"):
            raise self.refused("a closing bracket")

    def call(self, name: str) -> Quantity:
        values = [self.sum()]
        while self.next(","):
            values.append(self.sum())
        self.closed()
        if function := OF_NUMBERS.get(name):
            return (
                Quantity(float(function(*(value.m_as("") for value in values))), "") * self.unit()
            )
        if function := OF_QUANTITIES.get(name):
            result: Quantity = function(*values)
            return result
        functions = ", ".join([*OF_NUMBERS, *OF_QUANTITIES])
        raise InputError(f"{self.written!r} calls {name}(); known are {functions}")


class Witness:
    """A witness of the value of a row: it stands after `|` beside it, and agrees with it."""

    def __ror__(self, value: Any) -> Any:
        return kept(value, witness=self)

    def fault(self, value: Any) -> str:
        """Return a sentence on what is wrong with witness or value; "" where they agree."""
        raise NotImplementedError

    def told(self, value: Any) -> str:
        """The witness as a card prints it."""
        return ""


def _read_in(written: str, owner: str) -> Quantity:
    """Return the result of arithmetic in a class whose rows it may name."""
    return read(written, lambda name: witnessed(name, owner).gives(owner_of(name, owner)))


def _printed(written: str, owner: str) -> str:
    """The arithmetic as a card prints it, with numbers in the place of names."""
    text = ROW.sub(lambda row: formatting.prose(_read_in(row[0], owner)), written)
    text = POWER.sub(lambda power: power[1].translate(formatting.SUPERSCRIPTS), text)
    text = re.sub(r"\bus\b", "µs", text)
    return re.sub(r"(?<=[\d\w)%]) ([*/-]) ", lambda sign: f" {PRINTED[sign[1]]} ", text)


def _owner(value: Any) -> str:
    return str(value.row_name).partition(".")[0]


ROUNDED = 1e-15  # what binary fractions leave of a value that is nought
CANNOT_BE_READ = (InputError, ArithmeticError, LookupError, PintError)


@dataclass(frozen=True)
class by_hand(Witness):  # noqa: N801  # reads as what stands beside a number
    """Arithmetic that gives the value to four digits."""

    written: str
    source: str = ""

    def gives(self, owner: str) -> Quantity:
        """Return its result, in a row of this class."""
        return _read_in(self.written, owner)

    def fault(self, value: Any) -> str:
        try:
            result = self.gives(_owner(value))
        except CANNOT_BE_READ as error:
            return f"its arithmetic by hand cannot be read: {error}"
        plain = bare(value)
        if not isinstance(plain, Quantity):
            plain = Quantity(float(plain), "")
        if not result.is_compatible_with(plain):
            wanted = (
                f"a quantity in {plain.units}" if str(plain.units) else "a number without a unit"
            )
            return f"by hand it is {result}, where calc has {plain}: {wanted} is wanted"
        number = result.m_as(plain.units)
        close = math.isclose(
            number, plain.magnitude, rel_tol=FOUR_DIGITS, abs_tol=0 if number else ROUNDED
        )
        if close:
            return ""
        hand, calc = (f"{each:.6g}" for each in (result.to(plain.units), plain))
        return f"by hand it is {hand}, and by calc {calc}: one is wrong"

    def told(self, value: Any) -> str:
        owner = _owner(value)
        unit = value.units if isinstance(value, Quantity) else ""
        answer = formatting.prose(self.gives(owner).to(unit))
        return f"{_printed(self.written, owner)} = {answer}" if self.reckons else answer

    @property
    def reckons(self) -> bool:
        """Return whether it is more than a number."""
        return NUMBER.match(self.written) is None or bool(OPERATION.search(self.written))


@dataclass(frozen=True)
class text_by_hand(Witness):  # noqa: N801
    """A text that holds where a comparison by hand does: `{intensity} > {ridge_point}`."""

    text: str
    comparison: str

    def fault(self, value: Any) -> str:
        if bare(value) != self.text:
            return f"it is {bare(value)!r}, and by hand {self.text!r}: one is wrong"
        left, sign, right = re.split(r" ([<>]) ", self.comparison)
        try:
            low, high = (_read_in(side, _owner(value)) for side in (left, right)[:: _ORDER[sign]])
        except CANNOT_BE_READ as error:
            return f"its comparison by hand cannot be read: {error}"
        return "" if low < high else f"{self.comparison} does not hold: {low} is not below {high}"

    def told(self, value: Any) -> str:
        return f"{_printed(self.comparison, _owner(value))}: {self.text}"


_ORDER = {"<": 1, ">": -1}


@dataclass(frozen=True)
class no_hand(Witness):  # noqa: N801
    """A value that was recorded, because none can be had by hand, and why."""

    recorded: str
    why: str

    def gives(self, owner: str) -> Quantity:
        """Return the recorded number, with which other rows may reckon."""
        return read(self.recorded)

    def fault(self, value: Any) -> str:
        plain = bare(value)
        if isinstance(plain, str):
            return (
                "" if plain == self.recorded else f"it is {plain!r}, recorded was {self.recorded!r}"
            )
        return by_hand(self.recorded).fault(value).replace("by hand it is", "recorded was")


@dataclass(frozen=True)
class counted(Witness):  # noqa: N801
    """A number or a text that a test finds again by another route, under this name: what grows with
    the data, and what is cast or summed by another program."""

    name: str

    def fault(self, value: Any) -> str:
        return ""


@dataclass(frozen=True)
class row_by_hand(Witness):  # noqa: N801
    """A row of a table: `HBM | 80 GB | = 80 GB / 3.35 TB/s | …`.

    A cell is as it is printed, or arithmetic that gives it to four digits; `…` stands for any.
    Methods have it as a decorator.
    """

    cells: str

    def __ror__(self, rows: Any) -> Any:
        return kept(rows, witness=(*(getattr(rows, "witness", None) or ()), self))

    def __call__(self, method: Any) -> Any:
        method.witnesses = (*getattr(method, "witnesses", ()), self)
        return method

    def fault(self, value: Any) -> str:
        return ""  # a test holds it to what is printed

    def agrees(self, owner: str, printed: Sequence[str], values: Sequence[Any]) -> bool:
        """Return whether a row of a table is this one."""
        wanted = self.cells.split(" | ")
        return len(wanted) == len(printed) and all(
            self._holds(owner, *cell) for cell in zip(wanted, printed, values, strict=True)
        )

    def _holds(self, owner: str, wanted: str, printed: str, value: Any) -> bool:
        if not wanted.startswith("= "):
            return wanted in ("…", printed)
        number = bare(getattr(value, "of", value))
        if number is None or isinstance(number, str):
            return False
        return not by_hand(wanted[2:]).fault(kept(number, f"{owner}."))


def owner_of(name: str, owner: str) -> str:
    return name.partition(".")[0] if "." in name else owner


def _import(owner: str) -> None:
    """Imports the module of a class of claims, which another names without a need of it."""
    for file in Path(__file__).parent.glob("*.py"):
        if f"class {owner}(Claims)" in file.read_text(encoding="utf-8"):
            import_module(f"calc.derivations.{file.stem}")


def witnessed(name: str, owner: str) -> by_hand | no_hand:
    """The witness of another row; without a number it cannot be a part of arithmetic."""
    full = name if "." in name else f"{owner}.{name}"
    if full not in ROWS:
        _import(full.partition(".")[0])
    witness = getattr(ROWS.get(full), "witness", None)
    if not isinstance(witness, by_hand | no_hand):
        raise InputError(f"{{{name}}} is no row that has arithmetic by hand")
    return witness
