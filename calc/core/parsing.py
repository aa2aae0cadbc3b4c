"""The one parser, for text such as "2 * 10 GB / 2 GB/s" in data files, laws and `calc eval`.

Grammar, loosest binding first:

    expression :  term (("+" | "-") term)*
    term       :  factor (("*" | "/") factor)*
    factor     :  ("+" | "-") factor  |  primary ["**" integer]
    primary    :  number ["**" integer] [unit]  |  power  |  "(" expression ")"
    unit       :  power (("*" | "/") power)*, written without spaces
    power      :  name ["**" integer]  |  "(" unit ")" ["**" integer]

So a unit belongs to the number before it: `10 GB / 2 GB/s` divides 10 GB by (2 GB/s). A suffix K,
M, B or T directly on a number and followed by something counted is a power of a thousand: `7B
param`. What could be read in two ways is refused, with the spelling to use.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from calc.core.errors import InputError
from calc.core.formatting import unit_text
from calc.core.spelling import COUNTED, UnitTable

MAX_LENGTH = 1000
MAX_DEPTH = 40
MAX_EXPONENT = {"number": 64, "unit": 9}

SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}

AT_A_RATE = "write USD at your rate: at 1.15 USD for 1 EUR, 3 EUR/hour is 1.15 * 3 USD/hour"

# Spellings with more than one reading, and what to write instead.
AMBIGUOUS = [
    (r"KB|Kb", "write kB for 1000 bytes or KiB for 1024 bytes"),
    (r"([kMGTPE]?)b", r"write \1bit for bits or \1B for bytes"),
    (r"([kMGTPE]i)b", r"write \1bit for bits or \1B for bytes"),
    (r"([kmgtpe])b", "prefixes are case-sensitive: write kB, MB, GB, TB for bytes"),
    (r"([kMGTPEZ]?)(?i:flops?)", r"write \1FLOP/s for a rate or \1FLOP for a count"),
    (r"([kMGTPE]?)(?i:ops)", r"write \1OP/s for a rate or \1OP for a count"),
    (r"[QqRr][Pp][Ss]", "write request/s"),
    (r"([kMGT]?)[Bb]ps", "write bit/s or B/s, with its prefix"),
    (r"(?i:nan|inf|infinity)", "only finite numbers are read"),
    (r"usd|dollars?", "write USD"),
    (r"(?i:eur|euros?|gbp|pounds?|chf|cny|rmb|yuan|jpy|yen|inr)", AT_A_RATE),
    (
        r"[KMT]",
        "K, M, B and T stand directly on a number, before something counted, as in 7B param",
    ),
    (r"(?i:thousands?)", "write K directly on the number, before something counted: 8K token"),
    (r"(?i:millions?)", "write M directly on the number, before something counted: 7M param"),
    (r"(?i:billions?|bn)", "write B directly on the number, before something counted: 7B param"),
    (r"(?i:trillions?)", "write T directly on the number, before something counted: 1T token"),
    (r"k", "write K directly on the number, before something counted, as in 8K token"),
    (r"to|in", 'convert as in `calc eval "8 bit" --to byte`, in Python as in .to("byte")'),
    (r"abs|sqrt|log|exp|min|max|round|sum", "no functions are read, only + - * / ** and ()"),
    (r"(?i:true|false|none|null)", "only numbers and units are read"),
]

TOKEN = re.compile(
    r"(?P<space>\s*)(?:"
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>(?:(?![⁰¹²³⁴⁵⁶⁷⁸⁹])[^\W\d_])+|%)"
    r"|(?P<superscript>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
    r"|(?P<operator>\*\*|[-+*/^()·×])"
    r"|(?P<end>$))"
)
NONZERO = re.compile("[^eE]*[1-9]")  # of a number
OPERATORS = {"^": "**", "·": "*", "×": "*"}
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")

Result = TypeVar("Result")
Powers = dict[str, int]  # canonical unit name → exponent


class Token(NamedTuple):
    kind: str
    text: str
    spaced: bool  # white space before it


def parse(text: str, units: UnitTable) -> tuple[float, Powers]:
    """Value and unit of an expression, with one unit for each dimension (GB/TB is a number)."""
    parser = _Parser(text, units)
    magnitude, powers = parser.whole(parser.expression)
    try:
        factor, merged = merge_units(powers, units)
    except OverflowError:
        parser.refuse("a number in it is too large")
    return parser.finite(magnitude * factor, zero=magnitude == 0), parser.checked(merged)


def merge_units(powers: Mapping[str, Any], units: UnitTable) -> tuple[float, dict[str, Any]]:
    """One unit for each dimension, the first, and the factor that the others leave.

    GB/TB is a number, and so are a percentage and a GHz·s.
    """
    number = units.factor_between(powers, {})
    if number is not None:
        return number, {}
    total, merged = 1.0, dict[str, Any]()
    for name, power in powers.items():
        for other in ("", *merged):
            factor = units.factor_between({name: 1}, {other: 1} if other else {})
            if factor is not None:
                total *= factor**power
                if other:
                    merged[other] += power
                break
        else:
            merged[name] = power
    return total, {name: power for name, power in merged.items() if power}


def parse_unit(text: str, units: UnitTable) -> Powers:
    """The powers of a unit such as "FLOP/(param·token)"; "" and "1" are that of a pure number."""
    if text in ("", "1", "dimensionless"):
        return {}
    parser = _Parser(text, units)
    if text.startswith("1/"):
        parser.position = 1
        return {name: -power for name, power in parser.whole(parser.inverse_unit).items()}
    return parser.whole(parser.unit)


def read_float(text: str) -> float:
    """The number that stands there; one so small that it would become zero is refused."""
    number = float(text)
    if number == 0 and NONZERO.match(text):
        raise InputError(f"{text} is too small for a floating-point number")
    return number


class _Parser:
    def __init__(self, text: str, units: UnitTable) -> None:
        self.text, self.units = text, units
        if len(text) > MAX_LENGTH:
            raise InputError(
                f"cannot read a text of {len(text)} characters: at most {MAX_LENGTH} are read"
            )
        self.tokens = self._tokenize()
        self.position = 0
        self.depth = 0

    def _tokenize(self) -> list[Token]:
        if not self.text.strip():
            raise InputError(
                "cannot read an empty text: a number with its unit is needed, as in 80 GB"
            )
        tokens, start = [], 0
        while True:
            match = TOKEN.match(self.text, start)
            if match is None:
                self._refuse_character(self.text[start:].lstrip()[0])
            kind = str(match.lastgroup)
            word = match[kind]
            spaced = bool(match["space"])
            if kind == "superscript":  # m² is m**2
                tokens += [Token("operator", "**", spaced)]
                kind, word, spaced = "number", word.translate(SUPERSCRIPTS), False
            tokens.append(Token(kind, OPERATORS.get(word, word), spaced))
            if kind == "end":
                return tokens
            start = match.end()

    def _refuse_character(self, character: str) -> NoReturn:
        hint = {
            ",": "write 1.5 or 1500, without a comma",
            "$": "write USD",
            **dict.fromkeys("€£¥", AT_A_RATE),
            ";": "give one expression at a time",
        }.get(character, "only numbers, units, + - * / ** and parentheses are read")
        self.refuse(f"{character!r} has no meaning here; {hint}")

    # --- reading tokens ---

    @property
    def next(self) -> Token:
        return self.tokens[self.position]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.position + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def refuse(self, why: str) -> NoReturn:
        quoted = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        raise InputError(f"cannot read {quoted!r}: {why}")

    def whole(self, rule: Callable[[], Result]) -> Result:
        result = rule()
        if self.next.kind != "end":
            self._refuse_leftover()
        return result

    def _refuse_leftover(self) -> NoReturn:
        before, token = self.tokens[self.position - 1], self.next
        if before.kind == "name" and token.kind == "name":
            if token.text not in self.units.unit_names:
                self._refuse_name(token.text)
            self._refuse_two_units(before.text, token.text)
        if before.kind == "number" and token.kind == "number":
            self.refuse(
                f"two numbers in a row, {before.text} and {token.text}:"
                f" join them or put an operator between"
            )
        self.refuse(f"{token.text!r} cannot follow {before.text!r}; write * or / between them")

    def _refuse_two_units(self, first: str, second: str) -> NoReturn:
        if first in SUFFIXES:
            prefixed = {"K": "k", "B": "G"}.get(first, first) + second
            takes_prefix = prefixed in self.units.unit_names
            counted = self._resolve(second)[1] in COUNTED
            self.refuse(
                f"for a power of a thousand write {first} directly on the number and something"
                f" counted after it, as in 7B param"
                + (f"; here write {prefixed}" if takes_prefix and not counted else "")
                + (" (B alone is the byte)" if first == "B" else "")
            )
        self.refuse(f"two units in a row, {first} and {second}: write * or / between them")

    # --- grammar ---

    def expression(self) -> tuple[float, Powers]:
        self._deeper()
        value = self.term()
        while self.next.text in ("+", "-"):
            sign = 1 if self.take().text == "+" else -1
            value = self._add(value, self.term(), sign)
        self.depth -= 1
        return value

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"more than {MAX_DEPTH} signs or parentheses are nested")

    def term(self) -> tuple[float, Powers]:
        magnitude, powers = self.factor()
        divided, spaced = False, False
        while self.next.text in ("*", "/"):
            operator, operand = self.take(), self.next
            spaced = spaced or operator.spaced or operand.spaced
            chained = operator.text == self.peek().text == "/"
            if operand.kind == "name" and spaced and (divided or chained):
                self.refuse(
                    f"{operator.text} {operand.text} after a division can be read in two ways;"
                    f" write the unit without spaces (2 GB/s) or use parentheses"
                )
            sign = 1 if operator.text == "*" else -1
            right, right_powers = self.factor()
            divided = divided or sign < 0
            if sign < 0 and right == 0:
                self.refuse("it divides by zero")
            zero = magnitude == 0 or right == 0
            magnitude = self.finite(magnitude * right if sign > 0 else magnitude / right, zero)
            powers = self._combine(powers, right_powers, sign)
        return magnitude, powers

    def factor(self) -> tuple[float, Powers]:
        if self.next.text in ("+", "-"):
            self._deeper()
            sign = -1 if self.take().text == "-" else 1
            magnitude, powers = self.factor()
            self.depth -= 1
            return sign * magnitude, powers
        magnitude, powers = self.primary()
        if self.next.text == "**":
            exponent = self._exponent("unit" if powers else "number")
            magnitude, powers = self._power(magnitude, exponent), self._scale(powers, exponent)
        return magnitude, powers

    def primary(self) -> tuple[float, Powers]:
        token = self.take()
        if token.text == "(":
            value = self.expression()
            if self.take().text != ")":
                self.refuse("a parenthesis is not closed")
            return value
        if token.kind == "name":  # a bare unit, as in 3 * GB: its chain is left to `term`
            self.position -= 1
            return 1.0, self._unit_power()
        if token.kind != "number":
            self.refuse(
                f"a number is needed where {token.text!r} stands"
                if token.text
                else "it ends too early"
            )
        magnitude = self.finite(float(token.text), zero=not NONZERO.match(token.text))
        if self.next.text == "**":
            magnitude = self._power(magnitude, self._exponent("number"))
        if self.next.kind != "name":
            return magnitude, {}
        return self.finite(magnitude * self._suffix()), self.unit()

    def _suffix(self) -> float:
        """1e9 for the B of `7B param`, and its like; 1 where there is none."""
        suffix, unit = self.next, self.peek()
        if suffix.spaced or suffix.text not in SUFFIXES or unit.kind != "name":
            return 1.0
        if self._resolve(unit.text)[1] not in COUNTED:
            self._refuse_two_units(suffix.text, unit.text)
        self.take()
        return SUFFIXES[suffix.text]

    def unit(self) -> Powers:
        powers = self._unit_power()
        while (sign := self._joined_sign()) and (
            self.peek().kind == "name" or self._group_follows()
        ):
            self.take()
            powers = self._combine(powers, self._unit_power(), sign)
        return powers

    def inverse_unit(self) -> Powers:
        """Return the unit after the 1 of "1/s" or "1/(param·token)"; more divisions follow."""
        powers: Powers = {}
        while self.next.text == "/":
            self.take()
            powers = self._combine(powers, self._unit_power(), 1)
        return powers

    def _joined_sign(self) -> int:
        """+1 or -1 for a `*` or `/` written without spaces, 0 for anything else."""
        joined = not self.next.spaced and not self.peek().spaced
        return {"*": 1, "/": -1}.get(self.next.text, 0) if joined else 0

    def _group_follows(self) -> bool:
        """Return whether a parenthesis of unit names alone follows, as in FLOP/(param·token)."""
        if self.peek().text != "(":
            return False
        for token in self.tokens[self.position + 2 :]:
            if token.text == ")":
                return True
            if token.kind != "name" and token.text not in ("*", "/"):
                return False
        return False

    def _unit_power(self) -> Powers:
        token = self.take()
        if token.text == "(":
            self._deeper()
            powers = self.unit()
            self.depth -= 1
            if self.take().text != ")":
                self.refuse("a unit in parentheses is not closed or holds more than units")
        elif token.kind == "name":
            prefix, name = self._resolve(token.text)
            powers = {prefix + name: 1}
        else:
            self.refuse(
                f"a unit is needed where {token.text!r} stands"
                if token.text
                else "a unit is needed"
            )
        if self.next.text == "**":
            powers = self._scale(powers, self._exponent("unit"))
        return powers

    def _exponent(self, of: str) -> int:
        self.take()
        sign = -1 if self.next.text == "-" and self.take() else 1
        token = self.take()
        limit = MAX_EXPONENT[of]
        small = re.fullmatch("-?[0-9]{1,2}", token.text) and abs(int(token.text)) <= limit
        if not small or self.next.text == "**":
            self.refuse(f"the exponent of a {of} must be one whole number up to {limit}")
        return sign * int(token.text)

    def _resolve(self, name: str) -> tuple[str, str]:
        """Prefix and unit, by their canonical names, of a name such as GB."""
        unit = self.units.unit_names.get(name)
        if unit is None:
            self._refuse_name(name)
        return unit

    def _refuse_name(self, name: str) -> NoReturn:
        for pattern, hint in AMBIGUOUS:
            if match := re.fullmatch(pattern, name):
                self.refuse(f"{name} is not a unit here: {match.expand(hint)}")
        known_names = self.units.unit_names
        close = [
            spelling for spelling in known_names if spelling.lower() == name.lower()
        ]  # KiB of kiB
        close = close or difflib.get_close_matches(name, known_names, n=3, cutoff=0.6)
        units = dict.fromkeys(unit for prefix, unit in self.units.unit_names.values() if not prefix)
        listing = f"known are {', '.join(units)}"
        advice = f"did you mean {' or '.join(close)}?" if close else listing
        self.refuse(f"{name[:40]} is not a unit here; {advice}")

    # --- arithmetic ---

    def finite(self, magnitude: float, zero: bool = True) -> float:
        """A number that floating point holds; zero only where it is meant."""
        if not math.isfinite(magnitude):
            self.refuse("a number in it is too large")
        if magnitude == 0 and not zero:
            self.refuse("a number in it is too small")
        return magnitude

    def _power(self, magnitude: float, exponent: int) -> float:
        try:
            return self.finite(magnitude**exponent, zero=magnitude == 0)
        except ZeroDivisionError:
            self.refuse("it divides by zero")
        except OverflowError:
            self.refuse("a number in it is too large")

    def _add(
        self, left: tuple[float, Powers], right: tuple[float, Powers], sign: int
    ) -> tuple[float, Powers]:
        factor = self.units.factor_between(right[1], left[1])
        if factor is None:
            first, second = (
                unit_text(powers, self.units) or "a number" for _, powers in (left, right)
            )
            self.refuse(f"{first} and {second} cannot be added: they measure different things")
        return self.finite(left[0] + sign * right[0] * factor), left[1]

    def _combine(self, left: Powers, right: Powers, sign: int) -> Powers:
        names = [*left, *(name for name in right if name not in left)]
        return self.checked({n: left.get(n, 0) + sign * right.get(n, 0) for n in names})

    def _scale(self, powers: Powers, exponent: int) -> Powers:
        return self.checked({name: power * exponent for name, power in powers.items()})

    def checked(self, powers: Powers) -> Powers:
        limit = MAX_EXPONENT["unit"]
        if any(abs(power) > limit for power in powers.values()):
            self.refuse(f"the exponent of a unit grows beyond {limit}")
        return {name: power for name, power in powers.items() if power}
