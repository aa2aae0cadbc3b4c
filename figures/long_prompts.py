"""Time to first token of a long prompt by its length and the servers that share it."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations import show
from calc.derivations.long_context import LongPrefills
from figures import style

LENGTHS = (16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)
SERVERS = ((1, style.ORANGE), (8, style.GREEN), (16, style.BLUE))


def draw() -> Figure:
    figure = style.figure(height=3.5, narrow_height=3.9)
    axes = figure.subplots()
    for servers, colour in SERVERS:
        times = [LongPrefills.times(tokens, servers) for tokens in LENGTHS]
        least = [time.m_as("s") for time, _ in times]
        expected = [time.m_as("s") for _, time in times]
        axes.plot(LENGTHS, least, color=colour, linewidth=1, dashes=(4, 2))
        axes.plot(LENGTHS, expected, color=colour, linewidth=2)
        for tokens, count, seconds in LongPrefills.cases:
            if count == servers:
                axes.plot(tokens, seconds, "o", color=colour, markersize=6)
        name = f"{LongPrefills.node * servers} GPUs"
        style.note(
            axes,
            LENGTHS[0] * 1.05,
            least[0] * 0.45 if servers == SERVERS[-1][0] else expected[0] * 1.6,
            name,
            color=colour,
            bold=True,
        )
    style.note(
        axes,
        0.98,
        0.03,
        "dashed: bound, solid: expected,\ndots: measured",
        transform=axes.transAxes,
        ha="right",
        va="bottom",
    )
    style.log_axis(axes, "x", "Tokens of the prompt")
    style.log_axis(axes, "y", "Time to first token (s)")
    axes.set_ylim(bottom=0.03)
    return figure


def alt() -> str:
    (_, first), (_, last) = (
        LongPrefills.times(LENGTHS[-1], servers) for servers in (SERVERS[0][0], SERVERS[-1][0])
    )
    dots = ", ".join(
        f"{show(seconds)} s for {show(tokens)} tokens on {LongPrefills.node * servers} GPUs"
        for tokens, servers, seconds in LongPrefills.cases
    )
    return f"""Log-log plot of the time to first token of a prompt against its length, for Llama 3
    405B, a dashed curve of the bound and a solid one of what is expected for each number of GPUs.
    At {show(LENGTHS[-1])} tokens {LongPrefills.node} GPUs are expected to take
    {show(first, digits=2)}, and {LongPrefills.node * SERVERS[-1][0]} GPUs {show(last, digits=2)}.
    Measured dots lie above the solid curves: {dots}."""
