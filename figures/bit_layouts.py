"""Every format bit by bit, to one scale: sign, exponent, mantissa."""

from __future__ import annotations

from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import formats
from calc.core.formatting import listed
from calc.derivations import show
from calc.formats import Float, Integer
from figures import style

ROWS: tuple[Float | Integer, ...] = (
    *(formats.FP32, formats.TF32, formats.BF16, formats.FP16, formats.FP8_E5M2, formats.FP8_E4M3),
    *(formats.FP6_E3M2, formats.FP6_E2M3, formats.FP4_E2M1, formats.INT8, formats.INT4),
)
BLOCK = formats.MXFP4
COLOURS = {"sign": style.RED, "exponent": style.BLUE, "mantissa": style.ORANGE}
COLOURS |= {"integer": style.GREEN, "scale": style.PURPLE}
WIDEST = formats.FP32.bits
Field = tuple[str, int]
Box = tuple[float, float, float, float]
Boxes = defaultdict[str, list[Box]]  # of each kind of bit


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=5.4)
    axes = figure.subplots()
    axes.axis("off")
    narrow = style.is_narrow()
    axes.set_xlim(-11.5 if narrow else -8, WIDEST + (1 if narrow else 15))
    axes.set_ylim(len(ROWS) + 2.5, -1.3)
    boxes: Boxes = defaultdict(list)
    for row, form in enumerate(ROWS):
        y = row + (0.35 if isinstance(form, Integer) else 0)
        style.note(axes, -0.7, y, form.name, ha="right", va="center", bold=True)
        _fields(axes, boxes, y, _layout(form))
        if not narrow:
            style.note(axes, form.bits + 0.8, y, _range(form), va="center")
    _column_names(axes)
    _block(axes, boxes, len(ROWS) + 1.3)
    for kind, places in boxes.items():
        look = {"facecolor": (COLOURS[kind], 0.3), "edgecolor": (COLOURS[kind], 0.45)}
        style.boxes(axes, places, linewidth=0.8, **look)
    return figure


def alt() -> str:
    floats = (form for form in ROWS if isinstance(form, Float))
    widths = (f"{form.exponent_bits} and {form.mantissa_bits} in {form.name}" for form in floats)
    integers = (f"{form.bits} in {form.name}" for form in ROWS if isinstance(form, Integer))
    return f"""Rows of boxes to the same scale, a box for each bit. Behind the sign bit stand those
    of the exponent and of the mantissa: {listed(widths)}; the integers, {listed(integers)}, have no
    such parts. Beside each format stands its range, in FP32 {_range(formats.FP32)}, in FP16
    {_range(formats.FP16)}. In the last row, to a smaller scale, the {BLOCK.scale.bits} bits of a
    shared scale stand before {BLOCK.block_size} elements of {BLOCK.element.bits} bits."""


def _range(form: Float | Integer) -> str:
    smallest = form.step if isinstance(form, Integer) else form.smallest_subnormal
    return f"{show(smallest, digits=2)} … {show(form.max)}"


def _layout(form: Float | Integer) -> list[Field]:
    if isinstance(form, Integer):
        return [("integer", form.bits)]
    return [("sign", 1), ("exponent", form.exponent_bits), ("mantissa", form.mantissa_bits)]


def _fields(axes: Axes, boxes: Boxes, y: float, fields: list[Field]) -> None:
    """The bits of one number from the left, and in each longer field how many they are."""
    x = 0
    for kind, bits in fields:
        for bit in range(x, x + bits):
            boxes[kind].append(_box(bit, y, 1))
        if kind != "sign":
            style.note(axes, x + bits / 2, y, str(bits), ha="center", va="center")
        x += bits


def _box(x: float, y: float, width: float) -> Box:
    air = min(0.06, 0.1 * width)
    return x + air, y - 0.36, width - 2 * air, 0.72


def _column_names(axes: Axes) -> None:
    """Above the first format, which has room for them."""
    _, exponent, mantissa = (bits for _, bits in _layout(ROWS[0]))
    places = {"sign": 0.8, "exponent": 1.4 + exponent / 2, "mantissa": 1 + exponent + mantissa / 2}
    for kind, x in places.items():
        side = "right" if kind == "sign" else "center"
        style.note(axes, x, -0.8, kind, color=COLOURS[kind], ha=side, bold=True)
    if not style.is_narrow():
        style.note(axes, WIDEST + 0.8, -0.8, "smallest … largest", bold=True)


def _block(axes: Axes, boxes: Boxes, y: float) -> None:
    """A whole block to a smaller scale: the scale that its elements share, then the elements."""
    element, count = BLOCK.element, BLOCK.block_size
    assert isinstance(element, Float)
    bit = WIDEST / (BLOCK.scale.bits + count * element.bits)
    style.note(axes, -0.7, y, BLOCK.name, ha="right", va="center", bold=True)
    x = 0.0
    for kind, bits in [("scale", BLOCK.scale.bits), *_layout(element) * count]:
        boxes[kind].append(_box(x, y, bits * bit))
        x += bits * bit
    below = y + 0.55
    style.note(axes, 0, below, "shared scale", va="top", color=COLOURS["scale"], bold=True)
    elements = f"{count} elements of {element.bits} bits"
    style.note(axes, WIDEST, below, elements, ha="right", va="top")
