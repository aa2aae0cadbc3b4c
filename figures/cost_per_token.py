"""Dollars for a million tokens, and the time between two of an answer, by batch."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calc import inference, quantity
from calc.core.formatting import listed
from calc.core.units import Quantity
from calc.derivations import show
from calc.derivations.cost_and_carbon import TokenPrice
from figures import style

MILLION = show(quantity(1e6, "token"))
COLOUR = style.DEVICES["h100"]


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.4, narrow_height=6.0)
    ratios = None if style.is_narrow() else (1.5, 1)
    prices, times = style.panels(figure, 2, width_ratios=ratios)
    for axes in (prices, times):
        style.log_axis(
            axes, "x", "Batch (sequences decoded together)" if axes is prices else "Batch"
        )
        axes.set_xlim(1, 12000 if axes is prices else 1200)
    style.log_axis(prices, "y", f"USD for {MILLION}")
    style.log_axis(times, "y", "Time per output token (ms)")
    prices.set_ylim(0.005, 5)
    times.set_ylim(1, 100)
    for context in TokenPrice.contexts:
        batch, price, time = _curve(context)
        words = f"{context} tokens each" if context == min(TokenPrice.contexts) else f"{context}"
        _line(prices, batch, price.m_as("USD/Mtoken"), context, words)
        _line(times, batch, time.m_as("ms"), context)
    _level(prices, TokenPrice.price_read.m_as("USD/Mtoken"), "a token of a prompt (prefill)")
    full = TokenPrice.whole_memory.m_as("ms")
    _level(times, full, f"all of the memory: {full:.1f} ms")
    return figure


def alt() -> str:
    ends = [[values[-1] for values in _curve(context)[1:]] for context in TokenPrice.contexts]
    lengths = listed(map(show, TokenPrice.contexts))
    prices = listed(show(price.m_as("USD/Mtoken"), digits=2) for price, _ in ends)
    slowest = max(time for _, time in ends)
    return f"""Log-log plots against the number of sequences decoded together, as far as memory
    holds: a curve each for contexts of {lengths} tokens. In the first panel the price of {MILLION}
    falls from about {show(TokenPrice.price_alone.magnitude, digits=2)} USD and flattens, the longer
    the context the earlier, to {prices} USD; a dashed line at
    {show(TokenPrice.price_read.magnitude, digits=2)} USD marks a token of a prompt. In the second
    the time per output token rises from about {show(TokenPrice.time_alone, digits=2)} to
    {show(slowest, "ms", digits=3)}, below a dashed line at
    {show(TokenPrice.whole_memory, digits=3)}, the time of reading all of the memory."""


def _curve(context: int) -> tuple[Any, Quantity, Quantity]:
    """Batches up to the largest, the price of a million tokens, and the time between two."""
    most = inference.largest_batch(TokenPrice.model, TokenPrice.device, context).magnitude
    batch = numpy.geomspace(1, most, 16)
    return batch, *TokenPrice.price(context, batch)


def _line(axes: Axes, batch: Any, values: Any, context: int, words: str = "") -> None:
    width = 2.4 if context == TokenPrice.context else 1.2
    axes.plot(batch, values, color=COLOUR, linewidth=width)
    style.note(axes, batch[-1], values[-1], words, (4, -3), color=COLOUR, bold=True)


def _level(axes: Axes, value: float, words: str) -> None:
    axes.axhline(value, color=style.INK, linewidth=1.1, linestyle=(0, (5, 3)))
    style.note(axes, 1, value, words, (5, 4))
