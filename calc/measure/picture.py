"""A roofline for a terminal: one roof of a device, on logarithmic axes of text."""

from __future__ import annotations

import math

from calc.catalog.hardware import Accelerator
from calc.core.units import quantity
from calc.laws import roofline

WIDTH, HEIGHT = 56, 10


def roofline_lines(device: Accelerator, dtype: str) -> list[str]:
    """Lines of text: the slope of memory, the flat roof of arithmetic, the ridge point below them.

    The axis spans two decades to either side of the ridge point; a line is a quarter of a decade.
    """
    peak, bandwidth = device.peak(dtype), device.memory_bandwidth
    ridge = device.ridge_point(dtype).magnitude
    grid = [[" "] * WIDTH for _ in range(HEIGHT)]
    for column in range(WIDTH):
        intensity = quantity(ridge * 10 ** (4 * column / (WIDTH - 1) - 2), "FLOP/byte")
        share = float((roofline.attainable(peak, bandwidth, intensity) / peak).m_as(""))
        row = round(-4 * math.log10(share))
        grid[min(row, HEIGHT - 1)][column] = "_" if share > 0.999 else "/"
    middle = WIDTH // 2
    for line in grid[1:]:
        line[middle] = ":"
    left, right = f"{ridge / 100:.3g}", f"{ridge * 100:.3g}"
    below = f"ridge {ridge:.3g}".center(WIDTH - len(left) - len(right))
    return [
        f"{dtype}: {peak:.3g} flat, {bandwidth:.3g} on the slope",
        *("".join(line).rstrip() for line in grid),
        "-" * WIDTH,
        f"{left}{below}{right}  FLOP/byte",
    ]
