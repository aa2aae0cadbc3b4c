"""Arithmetic by hand: what a published number is without `calc`, in plain numbers and units.

It is what a person would type into a pocket calculator that knows units, such as
`15.00932 GB / 3.35 TB/s`, read as `calc eval` reads it, so that a unit belongs to the number before
it. Besides, `{DecodeStep.peak}` stands for the hand arithmetic of that number, and there are the
functions below. No law of `calc` has a part in it.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from calc.core.units import Quantity, quantity

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
NAMED = re.compile(r"\{([^{}]+)\}")
CALL = re.compile(rf"\b({'|'.join([*OF_NUMBERS, *OF_QUANTITIES])})\(")


def arithmetic(written: str, of: Mapping[str, str]) -> Quantity:
    """Return the value of written arithmetic; `of` has what is written for other numbers, by name.

    >>> print(arithmetic("{Step.read} / 3.35 TB/s", {"Step.read": "2 byte * 7.50465e9"}))
    4.480 ms
    >>> print(arithmetic("sum(ceil(4096 / 132), 1) * 2", {}))
    66
    """
    text = written
    while NAMED.search(text):
        text = NAMED.sub(lambda found: f"({of[found[1]]})", text)
    while found := CALL.search(text):
        given, end = _arguments(text, found.end())
        values = [arithmetic(each, of) for each in given]
        if function := OF_NUMBERS.get(found[1]):
            value = quantity(float(function(*(each.m_as("") for each in values))), "")
        else:
            value = OF_QUANTITIES[found[1]](*values)
        base = value.to_base_units()
        unit = "" if base.dimensionless else f" {base.units}"
        text = f"{text[: found.start()]}({float(base.m)!r}{unit}){text[end:]}"
    return quantity(text)


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """Return the texts between the commas of brackets that open before a place, and their end."""
    given, depth, begun = [], 0, start
    for place in range(start, len(text)):
        sign = text[place]
        if depth == 0 and sign in ",)":
            given.append(text[begun:place])
            begun = place + 1
            if sign == ")":
                return given, begun
        depth += {"(": 1, ")": -1}.get(sign, 0)
    raise ValueError(f"a bracket of {text!r} is not closed")
