"""Figure of the error of a long sum of products, by its length and how it is added up."""

from __future__ import annotations

from matplotlib.figure import Figure

from calc.core.formatting import listed
from calc.derivations import show
from calc.derivations.number_formats import LongSums, sums_of_products
from figures import style

CORE = f"{LongSums.bits} bits"
COLOURS = {
    "BF16": style.ORANGE,
    "BF16, stochastic": style.GREEN,
    CORE: style.RED,
    "BF16, Kahan": style.PURPLE,
    f"{CORE}, promoted": style.BLUE,
    "FP32": style.INK,
}


@style.drawn_twice
def draw() -> Figure:
    figure = style.figure(height=3.8, narrow_height=4.6)
    axes = figure.subplots()
    style.log_axis(axes, "x", "Products in the sum")
    style.log_axis(axes, "y", "Error of the sum", decades=2)
    measured = [sums_of_products(length) for length in LongSums.lengths]
    for name, colour in COLOURS.items():
        errors = [sums[name].m_as("") for sums in measured]
        lengths = [
            (length, error)
            for length, error in zip(LongSums.lengths, errors, strict=True)
            if error > 0
        ]
        axes.plot(*zip(*lengths, strict=True), color=colour, linewidth=1.6)
        style.note(
            axes, *lengths[-1], name, (7, 4 if name == CORE else -3), color=colour, bold=True
        )
    axes.set_xlim(LongSums.lengths[0] / 1.3, LongSums.longest * (14 if style.is_narrow() else 6))
    axes.set_xticks(LongSums.lengths, [str(length) for length in LongSums.lengths])
    return figure


def alt() -> str:
    sums = sums_of_products(LongSums.longest)
    ends = (f"{show(sums[name].to('%'), digits=2)} with {name}" for name in COLOURS)
    return f"""Lines of the error of a sum against the number of its products, from
    {LongSums.lengths[0]} to {LongSums.longest}, on logarithmic axes. After the last the error is
    {listed(ends)}. The lines of BF16 and of {LongSums.bits} bits rise with the length, those of
    Kahan's sum and of {LongSums.bits} bits that are promoted stay level."""
