"""Formatting of quantities: one formatter for str(), format(), notebooks and the book's prose.

A unit that somebody chose is kept: 0.5 GB stays 0.5 GB. A magnitude in a bare base unit that would
be long, as laws return them, gets a prefix: 3350000000000 byte/s reads 3.35 TB/s, 961538 s reads
11.13 day.
"""

from __future__ import annotations

import html as html_escapes
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calc.core.arrays import numpy
from calc.core.spelling import COUNTED, UnitTable, Written

DIGITS = 4
EXACT = 17  # digits that tell any two floats apart

LARGE = [("exa", 1e18), ("peta", 1e15), ("tera", 1e12), ("giga", 1e9), ("mega", 1e6), ("kilo", 1e3)]
SMALL = [("milli", 1e-3), ("micro", 1e-6), ("nano", 1e-9), ("pico", 1e-12)]
COUNT_SUFFIXES = [("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)]
DURATIONS = [("year", 365.25 * 86400.0), ("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)]
MASSES = [("megatonne", 1e12), ("kilotonne", 1e9), ("tonne", 1e6), ("kilogram", 1e3)]

TAKES_LARGE = frozenset({"byte", "bit", "FLOP", "operation", "watt", "joule", "hertz"})
TAKES_SMALL = frozenset({"second", "watt", "joule", "meter"})

SUFFIX_WORDS = {"M": "million", "B": "billion", "T": "trillion"}
WORDS = {  # units that prose spells as words, and counts in the plural
    "bit": "bit",
    "byte": "byte",
    "cycle": "cycle",
    "day": "day",
    "week": "week",
    "month": "month",
    "year": "year",
    "param": "parameter",
    "token": "token",
    "request": "request",
    "sample": "sample",
}

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def text(quantity: Written, spec: str = "") -> str:
    """Return the text of str() and format(), which the parser reads; `spec` formats the number."""
    magnitude, suffix, powers = readable(quantity, EXACT if spec else DIGITS)
    return f"{_number(magnitude, spec)}{suffix}{_unit_after_number(powers, quantity)}"


def prose(quantity: Written, digits: int | None = None, rescaled: bool = True) -> str:
    """Return a quantity as a book prints it: 16 026 min, 4.2 × 10²² FLOP, 7 billion parameters."""
    magnitude, suffix, powers = readable(quantity, digits or DIGITS, rescaled)
    if suffix == "K":
        magnitude, suffix = quantity.magnitude, ""
    number = printed_number(_number(magnitude, digits=digits))
    unit = _unit_after_number(powers, quantity)
    first = unit.strip().split("/")[0]
    if first in WORDS:
        word = WORDS[first] + ("s" if number != "1" or suffix else "")
        unit = unit.replace(first, word, 1)
    words = f" {SUFFIX_WORDS[suffix]}" if suffix else ""
    return (number + words + unit).replace(" ", "\N{NO-BREAK SPACE}")


def tex(quantity: Written, digits: int | None = None, rescaled: bool = True) -> str:
    """Return a quantity as TeX, for a formula."""
    magnitude, suffix, powers = readable(quantity, digits or DIGITS, rescaled)
    mantissa, _, exponent = _number(magnitude, digits=digits).partition("e")
    number = mantissa.replace("∞", "\\infty")
    if exponent:
        number += f" \\times 10^{{{int(exponent)}}}"
    unit = unit_text(powers, quantity._REGISTRY)
    if unit == "%":
        return number + "\\%"
    return (
        number
        + (f"\\text{{{suffix}}}" if suffix else "")
        + (f"\\,\\text{{{unit}}}" if unit else "")
    )


def printed_number(number: str) -> str:
    """Digits in groups of three, 4.2e22 as 4.2 × 10²², a real minus sign."""
    mantissa, _, exponent = number.partition("e")
    whole, point, fraction = mantissa.partition(".")
    digits = whole.lstrip("-")
    if len(digits) > 4:
        digits = f"{int(digits):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    printed = ("\N{MINUS SIGN}" if whole.startswith("-") else "") + digits + point + fraction
    if exponent:
        printed += "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10" + str(int(exponent)).translate(
            SUPERSCRIPTS
        )
    return printed


def listed(parts: Iterable[object]) -> str:
    """Return the items as an enumeration in a sentence: a, b and c."""
    *first, last = map(str, parts)
    return f"{', '.join(first)} and {last}" if first else last


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A line for each row, each column as wide as its longest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def html_table(caption: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table as HTML, for notebooks: header row first, row names in the first column."""
    header, *body = (tuple(map(html_escapes.escape, row)) for row in rows)
    lines = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in header)}</tr>"]
    for name, *cells in body:
        lines.append(f"<tr><th>{name}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    above = "<br>".join(map(html_escapes.escape, caption))
    return f"<table><caption>{above}</caption>{''.join(lines)}</table>"


def unit_text(powers: Mapping[str, Any], units: UnitTable) -> str:
    """FLOP/(param·token) of {"FLOP": 1, "parameter": -1, "token": -1}."""
    above = [_power_text(name, power, units) for name, power in powers.items() if power > 0]
    below = [_power_text(name, -power, units) for name, power in powers.items() if power < 0]
    divided = "/" + (below[0] if len(below) == 1 else f"({'·'.join(below)})") if below else ""
    return ("·".join(above) or ("1" if below else "")) + divided


def readable(
    quantity: Written, digits: int = DIGITS, rescaled: bool = True
) -> tuple[Any, str, dict[str, Any]]:
    """Magnitude, suffix of the number (the B of `7B param`) and unit, scaled for a reader."""
    powers: dict[str, Any] = dict(quantity._units)
    magnitude = quantity.magnitude
    scalar = isinstance(magnitude, float) and math.isfinite(magnitude) and magnitude != 0
    first = next((name for name, power in powers.items() if power > 0), None)
    if not rescaled or not scalar or first is None or powers[first] != 1:
        return magnitude, "", powers
    rounded = float(f"{magnitude:.{digits}g}")
    scale = _scale(first, powers, abs(rounded))
    if scale != _scale(first, powers, abs(magnitude)):  # 999990 byte is 1 MB, not 1000.0 kB
        magnitude = rounded
    factor, suffix, unit = scale
    scaled = {(unit if name == first else name): power for name, power in powers.items()}
    return magnitude / factor, suffix, scaled


def _scale(first: str, powers: Mapping[str, Any], size: float) -> tuple[float, str, str]:
    """Return the divisor and suffix of the number, and the unit in place of the first."""
    if first in COUNTED and size >= 1e4:
        suffix, factor = next(pair for pair in COUNT_SUFFIXES if size >= pair[1])
        return factor, suffix, first
    if powers == {"second": 1} and size >= 120:
        name, factor = next(pair for pair in DURATIONS if size >= 2 * pair[1])
        return factor, "", name
    if powers == {"year": 1} and size < 0.1:
        return 1 / 365.25, "", "day"
    if powers == {"gram": 1} and size >= 1e4:
        name, factor = next(pair for pair in MASSES if size >= pair[1])
        return factor, "", name
    prefix, factor = "", 1.0
    if first in TAKES_LARGE and 1e4 <= size < 1e21:
        prefix, factor = next(pair for pair in LARGE if size >= pair[1])
    elif first == "meter" and size >= 1e4:
        prefix, factor = "kilo", 1e3
    elif first in TAKES_SMALL and size < 1:
        prefix, factor = next((pair for pair in SMALL if size >= pair[1]), SMALL[-1])
    return factor, "", prefix + first


def _number(magnitude: Any, spec: str = "", digits: int | None = None) -> str:
    """Four significant digits and no whole digit lost (81559 MiB), or as many as are asked for."""
    if not isinstance(magnitude, float):
        return _array(magnitude + 0.0, spec)
    magnitude += 0.0  # of a negative zero makes zero
    if spec:
        return _tidy(format(magnitude, spec))
    if not math.isfinite(magnitude):
        return "∞" if magnitude > 0 else str(magnitude)
    if digits is not None:
        magnitude = float(f"{magnitude:.{digits}g}")
    shown = digits or DIGITS
    size = abs(magnitude)
    if magnitude != 0 and not 1e-4 <= size < 1e6:
        return _tidy(f"{magnitude:.{shown}g}")
    whole_digits = _whole_digits(size)
    rounded = float(f"{magnitude:.{shown}g}")
    if whole_digits <= shown and _whole_digits(abs(rounded)) > whole_digits:
        magnitude, whole_digits = rounded, whole_digits + 1  # 0.99996 reads 1, not 1.0000
    number = f"{magnitude:.{max(0, shown - whole_digits)}f}"
    exact = math.isclose(float(number), magnitude, rel_tol=1e-9)
    # 153.016 reads 153.0, which is more than 153 says; 16 reads 16.
    return number.rstrip("0").rstrip(".") if exact and "." in number else number


def _whole_digits(size: float) -> int:
    return math.floor(math.log10(size)) + 1 if size else 1


def _array(magnitudes: Any, spec: str) -> str:
    formatter: Any = {"float_kind": lambda magnitude: _tidy(format(magnitude, spec))}
    return numpy.array2string(magnitudes, formatter=formatter if spec else None)


def _tidy(number: str) -> str:
    """1e-05 as 1e-5 and 4.2e+22 as 4.2e22; text without an exponent as it is."""
    mantissa, e, exponent = number.partition("e")
    return f"{mantissa}e{int(exponent)}" if e and exponent.lstrip("+-").isdigit() else number


def _unit_after_number(powers: Mapping[str, Any], quantity: Written) -> str:
    unit = unit_text(powers, quantity._REGISTRY)
    if unit.startswith("1/"):
        return unit[1:]
    return unit if unit == "%" else f" {unit}" if unit else ""


def _power_text(name: str, power: object, units: UnitTable) -> str:
    return units.symbol(name) + ("" if power == 1 else f"{power:g}".translate(SUPERSCRIPTS))
