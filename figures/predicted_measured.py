"""Figure of the roofline's prediction beside the clock, for each kernel of the suite."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.hardware_aware import EIGHT_ROWS, KERNELS, Validation
from figures import style

LOW, HIGH = 0.3, 1000  # ms
LABELS = {  # of the kernels far from the line: offset in points, and the side that it stands on
    "transpose": ((-7, 0), "right"),
    "gather elements": ((0, 10), "center"),
    "resolvent": ((7, 0), "left"),
    EIGHT_ROWS: ((5, -9), "right"),
    "GEMM, thin": ((5, 10), "right"),
}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=4.2, narrow_height=4.0)
    axes = figure.subplots()
    low, high = LOW, HIGH
    style.log_axis(axes, "x", "Predicted by the roofline (ms)")
    style.log_axis(axes, "y", "Measured (ms)")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    off = Validation.threshold
    axes.fill_between(
        [low, high], [low / off, high / off], [low * off, high * off],
        color=style.INK, alpha=0.1, linewidth=0,
    )  # fmt: skip
    axes.plot([low, high], [low, high], color=style.INK, linewidth=0.9)
    near = KERNELS["ratio"].is_between(1 / off, off)
    for rows, colour in ((KERNELS.filter(near), style.INK), (KERNELS.filter(~near), style.RED)):
        axes.plot(
            (1e3 * rows["predicted_seconds"]).to_list(),
            (1e3 * rows["measured_seconds"]).to_list(),
            "o",
            color=colour,
            markersize=5,
            alpha=0.75,
        )
    for row in KERNELS.filter(~near).iter_rows(named=True):
        if row["name"] in LABELS:
            point = (1e3 * row["predicted_seconds"], 1e3 * row["measured_seconds"])
            style.name_dot(axes, row["name"], point, *LABELS[row["name"]])
    return figure


def alt() -> str:
    slow = KERNELS.sort("ratio", descending=True)["name"].unique(maintain_order=True)[:3]
    return f"""Log-log plot of the measured against the predicted time with a dot for each of
    {Validation.kernels} kernels, from {show(LOW)} to {show(HIGH)} ms. {Validation.within} of them
    lie within a narrow band about the diagonal, a factor of {show(Validation.threshold)} to either
    side. Farthest above it, slower than predicted, lie {listed(slow)}, by up to
    {show(Validation.worst, digits=2)} times."""
