"""Numbers with units as the book prints them, read back from its texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import nan

from pint import DimensionalityError

from calc import quantity
from calc.core.errors import InputError
from press.audit import allowed_words
from tools.pages import ROOT

WHOLE = r"[−-]?\d{1,3}(?:[\s\u202f]\d{3})+(?!\d|\.\d)|[−-]?\d+(?:\.\d+)?"
NUMBER = re.compile(
    rf"(?<![\w.,⁻⁰¹²³⁴-⁹])({WHOLE})(?:\s×\s10([⁻⁰¹²³⁴-⁹]+))?"
    r"(?:\s(million|billion|trillion)\b)?(?:\s?(%|[^\W\d][\w/·]*))?"
)
SIZES = {"million": 1e6, "billion": 1e9, "trillion": 1e12}
PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "-0123456789-")


@dataclass(frozen=True)
class Number:
    """A number of a text, and the step of its last digit that is no closing zero."""

    value: float
    step: float
    unit: str  # "" where no unit follows
    start: int
    digits: str
    printed: str  # with its unit

    def is_close(self, value: float, unit: str) -> bool:
        """Return whether a value in some unit is printed so; one without a unit may be of any."""
        scale = factor(unit, self.unit)
        scales = [1.0, 100.0] if not unit and self.unit == "%" else [scale or nan]
        return any(abs(value * scale - self.value) <= 0.5001 * self.step for scale in scales)


@cache
def names() -> re.Pattern[str]:
    return allowed_words(ROOT)


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers that are no part of a name, in the order of the text.

    >>> for each in numbers("3.5 × 10⁴, 2 × 10⁻³ s, 200 kB and −1.5 million tokens"):
    ...     print(each.value, each.step, each.unit or "of any unit")
    35000.0 1000.0 of any unit
    0.002 0.001 s
    200.0 10.0 kB
    -1500000.0 100000.0 tokens
    """
    # What is allowed as a year may be a number all the same.
    bare = names().sub(lambda m: m[0] if m[0].isdigit() else "\0" * len(m[0]), text)
    for match in NUMBER.finditer(bare):
        digits = re.sub(r"\s", "", match[1]).translate(PLAIN)
        power = 10.0 ** int(match[2].translate(PLAIN)) if match[2] else 1.0
        power *= SIZES.get(match[3], 1.0)
        _, point, fraction = digits.partition(".")
        # Of a whole number two digits count, and those before its closing zeros: 200 may be 196.
        zeros = min(len(digits) - len(digits.rstrip("0")), max(len(digits.lstrip("-")) - 2, 0))
        step = power * 10.0 ** (-len(fraction) if point else zeros)
        unit = unit_of(match[4] or "")
        number = match[0][: match.end(2 if match[2] else 1) - match.start()]
        yield Number(
            float(digits) * power, step, unit, match.start(), number.strip(), match[0].strip()
        )


@cache
def unit_of(text: str) -> str:
    """The unit that a word names, "" of another word."""
    for word in dict.fromkeys((text, text.removesuffix("s"))):
        try:
            if word == "%" or (word and not quantity(f"1 {word}").dimensionless):
                return word
        except InputError:
            continue
    return ""


@cache
def factor(unit: str, to: str) -> float | None:
    """Return the factor from one unit to another; None if these measure other things.

    A number without a unit is taken for one of any unit.
    """
    if not unit or not to:
        return 1.0
    try:
        return float(quantity(1, unit).m_as(to))
    except DimensionalityError:
        return None
