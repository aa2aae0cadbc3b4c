"""Figure of the tokens of a GPU by how many share the experts: on servers, and in a rack."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.experts_chapter import Deployments, RackRates, Width
from figures import style

MACHINES = (
    (
        Width.servers,
        "H100 servers",
        (16, 24, 32, 48, 64, 72, 96, 128, 144, 192, 256, 320),
        style.BLUE,
    ),
    (Width.rack, "GB200 NVL72", (8, 12, 18, 24, 36, 48, 72), style.PURPLE),
)
NAME_BESIDE = (0.72, 1.45)  # of the first point of the curve


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.6, narrow_height=4.2)
    axes = figure.subplots()
    for (machine, name, counts, colour), beside in zip(MACHINES, NAME_BESIDE, strict=True):
        rates = [Width.rates(count, machine) for count in counts]
        bound = [rate.m_as("token/s") for rate, _ in rates]
        expected = [rate.m_as("token/s") for _, rate in rates]
        axes.plot(counts, bound, color=colour, linewidth=1.2, dashes=(4, 2))
        axes.plot(counts, expected, color=colour, linewidth=2)
        style.note(axes, counts[0], expected[0] * beside, name, color=colour, bold=True, ha="left")
    for index, (name, _, _, devices, rate, _) in enumerate(Deployments.cases):
        of_a_gpu = rate / Deployments.node
        axes.plot(devices, of_a_gpu, "o", color=style.RED, markersize=5)
        side = ("left", "left", "right")[index]
        offset = ((7, -5), (-4, 9), (-7, 0))[index]
        short = name.replace("DeepSeek's ", "") if style.is_narrow() else name
        style.name_dot(axes, short, (devices, of_a_gpu), offset, side)
    rack = (RackRates.june_devices, RackRates.june)
    axes.plot(*rack, "o", color=style.RED, markersize=5)
    style.name_dot(axes, "SGLang, GB200", rack, (7, -9), "left")
    style.log_axis(axes, "x", "GPUs that share out the experts")
    style.log_axis(axes, "y", "Tokens a second of a GPU")
    axes.set_xlim(7, 400)
    axes.set_ylim(1000, 40_000)
    style.note(
        axes,
        0.99,
        0.97,
        "dashed: bound, all messages hidden\nsolid: expected, none hidden\ndots: published",
        transform=axes.transAxes,
        ha="right",
        va="top",
    )
    return figure


def alt() -> str:
    ends = []
    for machine, name, counts, _ in MACHINES:
        first, last = (Width.rates(count, machine)[1] for count in (counts[0], counts[-1]))
        ends.append(
            f"on {name} from {show(first, digits=2)} with {counts[0]} GPUs to"
            f" {show(last, digits=2)} with {counts[-1]}"
        )
    dots = [
        f"{name} {show(rate / Deployments.node, digits=2)}"
        for name, _, _, _, rate, _ in Deployments.cases
    ]
    return f"""Log-log plot of the tokens that a GPU writes in a second against the GPUs that share
    out the experts of DeepSeek-V3, a dashed curve of the bound and a solid one of what is expected
    for each machine. The expected rate goes {listed(ends)}. Dots of published deployments, in
    tokens a second, lie near the solid curve of servers: {listed(dots)}; a dot of SGLang on GB200
    at {show(RackRates.june, digits=2)} lies near that of the rack."""
