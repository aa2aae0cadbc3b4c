"""Six cuts of a model over four devices: who holds what of weights and tokens, and sends what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.training_at_scale import HoldsAndSends
from figures import style

DEVICES = HoldsAndSends.devices
PARTS = DEVICES  # rows are layers and columns slices of them, as many as devices
PITCH = PARTS + 1.2
Held = Callable[[int, int, int], bool]
T = TypeVar("T")


class Cut(NamedTuple):
    """A cut: which cells a device holds, whether it has tokens of its own, what it sends."""

    name: str
    held: Held
    own_tokens: bool
    holds: Quantity
    sends: str
    sent: Quantity


CUTS = (
    Cut("DP", lambda *_: True, True, HoldsAndSends.whole, "gradients", HoldsAndSends.gradients),
    Cut(
        "FSDP",
        lambda device, row, column: (row + column) % PARTS == device,
        *(True, HoldsAndSends.part, "weights, gradients", HoldsAndSends.sharded),
    ),
    Cut(
        "TP",
        lambda device, _, column: column == device,
        *(False, HoldsAndSends.part, "activations", HoldsAndSends.sums),
    ),
    Cut(
        "PP",
        lambda device, row, _: row == device,
        *(False, HoldsAndSends.part, "activations", HoldsAndSends.handed),
    ),
    Cut(
        "EP",
        lambda device, _, column: column in (0, device + 1),
        *(True, HoldsAndSends.held, "tokens to experts", HoldsAndSends.exchanged),
    ),
    Cut("CP", lambda *_: True, True, HoldsAndSends.whole, "keys, values", HoldsAndSends.ring),
)


@style.drawn_twice
def draw() -> Figure:
    narrow = style.is_narrow()
    figure = style.figure(height=4.2, narrow_height=5.4)
    shape = (3, 2) if narrow else (2, 3)
    for axes, cut in zip(figure.subplots(*shape).flat, CUTS, strict=True):
        style.canvas(axes, DEVICES * PITCH - 1, PARTS + 1.6, left=-0.2, bottom=-4.6)
        _model(axes, cut)
        _tokens(axes, cut)
        style.note(axes, 0, PARTS + 0.5, cut.name, bold=True)
        holds, sent = (show(size, digits=3) for size in (cut.holds, cut.sent))
        style.note(axes, 0, -1.9, f"holds {holds}", color=style.BLUE, va="top")
        text = f"sends {sent}:\n{cut.sends}"
        style.note(axes, 0, -3.0, text, color=style.ORANGE, va="top", linespacing=1.1)
    return figure


def alt() -> str:
    each = "; ".join(
        f"{cut.name} holds {show(cut.holds, digits=3)} and sends {show(cut.sent, digits=3)} of"
        f" {cut.sends}"
        for cut in CUTS
    )
    return f"""Panels for six cuts, each with {show(DEVICES)} devices as grids of layers by slices,
    filled where a device holds them, over a strip of the tokens that it has. {each}."""


def _model(axes: Axes, cut: Cut) -> None:
    """Draw the layers and slices of the model on each device, filled where it holds them."""
    columns = PARTS + 1 if cut.name == "EP" else PARTS
    wide = PARTS / columns
    corners = [device * PITCH for device in range(DEVICES)]
    held = [
        (device * PITCH + column * wide, PARTS - row - rows, count * wide, rows)
        for device in range(DEVICES)
        for of_row, row, rows in _runs(
            tuple(cut.held(device, row, column) for column in range(columns))
            for row in range(PARTS)
        )
        for has, column, count in _runs(of_row)
        if has
    ]
    # Every second box of a row has the edges of all, and a page stays light.
    edges: list[tuple[float, float, float, float]] = [(left, 0, PARTS, PARTS) for left in corners]
    edges += [(left, row, PARTS, 1) for left in corners for row in range(0, PARTS, 2)]
    edges += [
        (left + column * wide, 0, wide, PARTS)
        for left in corners
        for column in range(0, columns, 2)
    ]
    style.boxes(axes, held, facecolor=(style.BLUE, 0.75), edgecolor="none", linewidth=0)
    style.boxes(axes, edges, facecolor=(style.BLUE, 0), edgecolor=(style.INK, 0.35), linewidth=0.4)


def _runs(values: Iterable[T]) -> Iterator[tuple[T, int, int]]:
    """Yield each value with its place and how often it stands there in a row: drawn as one."""
    first = 0
    for value, alike in groupby(values):
        count = len(list(alike))
        yield value, first, count
        first += count


def _tokens(axes: Axes, cut: Cut) -> None:
    """Draw a strip of the tokens below each device, filled where it has them."""
    strips = [(device * PITCH, -1.3, PARTS, 0.8) for device in range(DEVICES)]
    style.boxes(
        axes, strips, facecolor=(style.INK, 0.05), edgecolor=(style.INK, 0.8), linewidth=0.8
    )
    filled = [
        (left + device, low, 1, high) if cut.own_tokens else (left, low, wide, high)
        for device, (left, low, wide, high) in enumerate(strips)
    ]
    style.boxes(axes, filled, facecolor=(style.GREEN, 0.7), edgecolor=(style.GREEN, 0.8))
