"""Live figure of a number in each format: its nearest value, and the error of that."""

from __future__ import annotations

import math

from calc import formats
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.formats import Float
from figures.live.model import Amount, Answer, Axis, Drawing, Model

FORM = Axis("Format")
ERROR = Axis("Rounding error of the number", "%")
SHOWN = tuple(form for form in map(formats.get, formats.names()) if isinstance(form, Float))
INPUTS = (Amount("number", "Number", "0.1", "", -1e308, 1e308),)


def answer(number: Quantity) -> Answer:
    """The value of each format that is nearest to the number, and the error in per cent."""
    value = number.m_as("")
    nearest = {form: _nearest(form, value) for form in SHOWN}
    rows = [
        ("error", form.name, 100 * abs(near - value) / abs(value) if value else 0.0)
        for form, near in nearest.items()
        if near is not None
    ]
    facts = {form.name: _fate(form, value, near) for form, near in nearest.items()}
    beyond = [form.name for form, near in nearest.items() if near is None]
    caption = f"How far the nearest value of each format is from {value:.6g}, in per cent of it" + (
        f"; it is above the largest of {listed(beyond)}." if beyond else "."
    )
    python = (
        "from calc import formats\n\n"
        "for name in formats.names():\n"
        "    form = formats.get(name)\n"
        "    if isinstance(form, formats.Float):\n"
        f"        print(form.name, form.round({value!r}))"
    )
    return Answer(rows, facts, caption, python)


def _nearest(form: Float, value: float) -> float | None:
    """The nearest value, by the gap between neighbours there; None beyond the largest."""
    if value == 0 or abs(value) > form.max:
        return None if value else 0.0
    exponent = max(math.floor(math.log2(abs(value))), form.min_exponent)
    gap = 2.0 ** (exponent - form.mantissa_bits)
    return round(value / gap) * gap


def _fate(form: Float, value: float, near: float | None) -> str:
    bits = f"1 + {form.exponent_bits} + {form.mantissa_bits} bits"
    if near is None:
        return f"above the largest, {form.max:.4g} ({bits})"
    small = ", subnormal" if 0 < abs(near) < form.smallest_normal else ""
    return f"{near:.9g}{small} ({bits})"


MODEL = Model("A number in each format", INPUTS, Drawing(FORM, ERROR, "bar"), answer)
