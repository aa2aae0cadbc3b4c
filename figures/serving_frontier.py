"""Throughput of a GPU against the time per output token, by batch, and the four roofs around it."""

from __future__ import annotations

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from calc import inference
from calc.derivations import show
from calc.derivations.serving_chapter import OneGpu, step
from figures import style

FASTEST, SLOWEST = 3.4, 80  # ms
LEAST, MOST = 130, 250e3  # tokens/s
# Context, colour, and the batches that are marked before the largest.
CURVES = (
    (OneGpu.short_context, style.GREEN, (1, 64, 512)),
    (OneGpu.context, style.BLUE, (1, 8, 64)),
    (OneGpu.long_context, style.ORANGE, (1, 8)),
)


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.8, narrow_height=5.6)
    axes = figure.subplots()
    _roofs(axes)
    for context, colour, marked in CURVES:
        _curve(axes, context, colour, marked)
    axes.set_xlim(FASTEST, SLOWEST)
    axes.set_ylim(LEAST, MOST)
    words = "TPOT (ms)" if style.is_narrow() else "Time per output token, TPOT (ms)"
    style.log_axis(axes, "x", f"{words}, and tokens/s of a request")
    style.log_axis(axes, "y", "Throughput of the GPU (tokens/s)")
    axes.xaxis.set_major_locator(FixedLocator([5, 10, 20, 40]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: f"{time:g}\n{1000 / time:g}/s"))
    axes.grid(visible=False)
    return figure


def alt() -> str:
    curves = (
        f"{context} tokens at {show(_most(context))} requests, "
        f"{show(at_end.throughput.m_as('token/s'), digits=2)} tokens/s and "
        f"{show(at_end.lower, 'ms', digits=2)}"
        for context, *_ in CURVES
        for at_end in [step(OneGpu.model, 1, _most(context), context)]
    )
    return f"""Log-log plot of the throughput of a GPU against the time per output token. Walls
    stand at {show(OneGpu.weights_time, digits=2)}, reading the weights, and at
    {show(OneGpu.memory_time, digits=3)}, reading the memory; a ceiling at
    {show(OneGpu.compute_roof.magnitude, digits=2)} tokens/s, arithmetic. A curve for each context
    rises along the left wall with the batch, then bends and flattens until memory is full: with
    {"; ".join(curves)}. Dotted lines, the roofs of caches alone, stand at
    {show(OneGpu.cache_roof.magnitude, digits=2)} for {OneGpu.context} tokens and
    {show(OneGpu.long_cache_roof.magnitude, digits=2)} for {OneGpu.long_context}."""


def _most(context: int) -> int:
    return int(inference.largest_batch(OneGpu.model, OneGpu.h100, context).magnitude)


def _roofs(axes: Axes) -> None:
    left, right = OneGpu.weights_time.m_as("ms"), OneGpu.memory_time.m_as("ms")
    top = OneGpu.compute_roof.m_as("token/s")
    for wall in (left, right):
        axes.axvline(wall, color=style.INK, linewidth=1)
    axes.axhline(top, color=style.INK, linewidth=1)
    axes.axvspan(FASTEST, left, color=style.INK, alpha=0.08, linewidth=0)
    axes.axhspan(top, MOST, color=style.INK, alpha=0.08, linewidth=0)
    for roof, colour in ((OneGpu.cache_roof, style.BLUE), (OneGpu.long_cache_roof, style.ORANGE)):
        axes.axhline(roof.m_as("token/s"), color=colour, linewidth=1, linestyle=":")
    style.note(axes, left, top, "arithmetic", (6, 4))
    for wall, words in ((left, "reading the weights"), (right, "reading the memory")):
        style.note(axes, wall, LEAST, words, (-2, 6), rotation=90, va="bottom", ha="right")


def _curve(axes: Axes, context: int, colour: str, marked: tuple[int, ...]) -> None:
    most = _most(context)
    passes = step(OneGpu.model, 1, numpy.geomspace(1, most, 26), context)
    time, rate = passes.lower.m_as("ms"), passes.throughput.m_as("token/s")
    axes.plot(time, rate, color=colour, linewidth=2)
    batches = [*marked, most]
    passes = step(OneGpu.model, 1, numpy.array(batches, float), context)
    times, rates = passes.lower.m_as("ms"), passes.throughput.m_as("token/s")
    axes.plot(times, rates, "o", color=colour, markersize=4.5)
    for batch, x, y in zip(batches[1:-1], times[1:], rates[1:], strict=False):
        style.note(axes, x, y, f"{batch}", (5, -11), color=colour)
    if context == OneGpu.long_context:
        style.note(axes, times[0], rates[0], f"batch {batches[0]}", (6, -5))
    over = context == OneGpu.short_context
    by = (5, 4 if over else 2)
    style.note(
        axes,
        min(times[-1], OneGpu.memory_time.m_as("ms")),
        rates[-1],
        f"{context} tokens,\nbatch {most}",
        by,
        bold=True,
        color=colour,
        va="bottom" if over else "top",
    )
