"""Number formats side by side: their bits, and whether a number is within their range."""

from __future__ import annotations

from calc import formats
from calc.core.units import Quantity
from calc.formats import Float
from figures.live.model import Amount, Answer, Axis, Drawing, Model

FORM = Axis("Format")
BITS = Axis("Bits")
SHOWN = tuple(form for form in map(formats.get, formats.names()) if isinstance(form, Float))
INPUTS = (Amount("number", "Number", "0.1", "", -1e308, 1e308),)


def answer(number: Quantity) -> Answer:
    """The bits of each format, and what becomes of the number there."""
    value = abs(number.m_as(""))
    rows = []
    for form in SHOWN:
        parts = {"sign": 1, "exponent": form.exponent_bits, "mantissa": form.mantissa_bits}
        rows += [(part, form.name, float(bits)) for part, bits in parts.items()]
    facts = {form.name: _fate(form, value) for form in SHOWN}
    python = (
        "from calc import formats\n\n"
        "for name in formats.names():\n"
        "    form = formats.get(name)\n"
        "    if isinstance(form, formats.Float):\n"
        "        print(form.name, form.max, form.smallest_normal, form.epsilon)"
    )
    return Answer(rows, facts, python)


def _fate(form: Float, value: float) -> str:
    if value > form.max:
        return f"above the largest, {form.max:.4g}"
    if value >= form.smallest_normal:
        return f"within {form.epsilon / 2:.2g} of itself, relatively"
    if value > form.smallest_subnormal / 2:
        return f"subnormal: in steps of {form.smallest_subnormal:.2g}"
    return "zero"


MODEL = Model("The bits of a number", INPUTS, Drawing(FORM, BITS, "bar"), answer)
