"""What the roofline predicts for each kernel of the suite, and what the clock says."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.derivations.hardware_aware import KERNELS, Validation
from figures import style

LABELS = {  # of the kernels far from the line: offset in points, and the side that it stands on
    "transpose": ((-7, 0), "right"),
    "gather elements": ((0, 10), "center"),
    "resolvent": ((7, 0), "left"),
    "GEMM, 8 rows": ((5, -9), "right"),
    "GEMM, thin": ((5, 10), "right"),
}


def draw() -> Figure:
    figure = style.figure(height=4.2, narrow_height=4.0)
    axes = figure.subplots()
    low, high = 0.3, 1000
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
            place = (1e3 * row["predicted_seconds"], 1e3 * row["measured_seconds"])
            style.name_dot(axes, row["name"], place, *LABELS[row["name"]])
    return figure
