"""Two matrices over four devices: cut by columns and then rows, and cut by columns twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.training_at_scale import CutMatrices
from figures import style

DEVICES = CutMatrices.devices
COLORS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
TOKENS, WIDTH, WIDE = 1.3, 1.8, 3.2  # how long these are drawn
NAMES_AT = 2.0
PITCH = 6.0
SENT = {"columns, then rows": CutMatrices.summed, "columns twice": CutMatrices.both}


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=3.5, narrow_height=6.0)
    lines = 2 if narrow else 1
    right = 17.2 if narrow else 25.8
    axes = style.diagram(figure, right, 3.2, left=-0.3, bottom=3.2 - 2 * lines * PITCH)
    for way, (name, sent) in enumerate(SENT.items()):
        row = _Row(axes, 0.0, -way * lines * PITCH)
        style.note(axes, 0, row.y + 2.3, f"{name}: sends {show(sent, digits=3)}", bold=True)
        row.whole("x", WIDTH, TOKENS)
        row.sign("×")
        row.columns("gate, up", WIDE, WIDTH)
        row.sign("→")
        row.columns("h", WIDE, TOKENS)
        if narrow:
            row = _Row(axes, 0.0, row.y - PITCH + 0.8)
        if way:
            row.message("gather", CutMatrices.gathered_between)
            row.whole("h", WIDE, TOKENS)
        row.sign("×")
        if way:
            row.columns("down", WIDTH, WIDE)
            row.sign("→")
            row.columns("y", WIDTH, TOKENS)
            row.message("gather", CutMatrices.gathered)
        else:
            row.rows("down", WIDTH, WIDE)
            row.sign("→")
            row.terms("terms of y", WIDTH, TOKENS)
            row.message("sum", CutMatrices.summed)
        row.whole("y", WIDTH, TOKENS)
    return figure


def alt() -> str:
    summed, between, last, both = (
        show(size, digits=3)
        for size in (
            CutMatrices.summed,
            CutMatrices.gathered_between,
            CutMatrices.gathered,
            CutMatrices.both,
        )
    )
    return f"""Two rows of matrices, in a colour for each of {show(DEVICES)} devices. In the first,
    gate and up are cut by columns, h is in columns too, and down is cut by rows: each device has a
    term of y, and their sum sends {summed}. In the second, down is cut by columns, so that h is
    gathered first, for {between}, and y at the end, for {last}, {both} together."""


@dataclass
class _Row:
    """Things beside each other, each where the one before ends."""

    axes: Axes
    x: float
    y: float

    def whole(self, name: str, wide: float, high: float) -> None:
        """Draw what every device has."""
        style.card(self.axes, (self.x, self.y - high / 2), (wide, high))
        self._named(name, wide)

    def columns(self, name: str, wide: float, high: float) -> None:
        """Draw a matrix of which each device has columns."""
        part = wide / DEVICES
        for device, color in enumerate(COLORS):
            corner = self.x + device * part, self.y - high / 2
            style.card(self.axes, corner, (part, high), color=color, alpha=0.6)
        self._named(name, wide)

    def rows(self, name: str, wide: float, high: float) -> None:
        """Draw a matrix of which each device has rows."""
        part = high / DEVICES
        for device, color in enumerate(COLORS):
            corner = self.x, self.y + high / 2 - (device + 1) * part
            style.card(self.axes, corner, (wide, part), color=color, alpha=0.6)
        self._named(name, wide)

    def terms(self, name: str, wide: float, high: float) -> None:
        """Draw what each device has of a sum, one behind the other."""
        step = 0.35
        for device, color in enumerate(COLORS):
            corner = self.x + device * step, self.y - high / 2 + (1.5 - device) * step
            style.card(self.axes, corner, (wide, high), color=color, alpha=0.6)
        self._named(name, wide + (DEVICES - 1) * step)

    def sign(self, text: str) -> None:
        """Write a sign between two things."""
        style.note(self.axes, self.x + 0.05, self.y, text, ha="center", va="center")
        self.x += 0.5

    def message(self, name: str, sent: Quantity) -> None:
        """Draw an arrow with what a device sends."""
        wide = 3.0 if style.is_narrow() else 2.1  # what is sent stands under the arrow
        ends = (self.x - 0.3, self.y), (self.x - 0.3 + wide, self.y)
        style.arrow(self.axes, *ends, color=style.RED)
        label = partial(style.note, self.axes, ha="center", color=style.RED)
        middle = self.x - 0.3 + wide / 2
        label(middle, self.y + 0.25, name, va="bottom")
        label(middle, self.y - 0.3, str(show(sent, digits=3)), va="top")
        self.x += wide - 0.1

    def _named(self, name: str, wide: float) -> None:
        style.note(self.axes, self.x + wide / 2, self.y - NAMES_AT, name, ha="center", va="top")
        self.x += wide + 0.45
