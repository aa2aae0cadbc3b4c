"""What the chapter "The iron law" quotes."""

from __future__ import annotations

from calc import roofline
from calc.derivations.roofline import DecodeStep


class IronLaw:
    """The sum and the larger of the terms bound the truth, at most a factor of two apart."""

    peak = DecodeStep.peak
    bandwidth = DecodeStep.bandwidth
    weights = DecodeStep.weights
    batch = 256

    operations = DecodeStep.operations * batch
    memory_time = (weights / bandwidth).to("ms")
    arithmetic_time = (operations / peak).to("ms")
    added = roofline.execution_time(weights, bandwidth, operations, peak)
    overlapped = roofline.execution_time_overlapped(weights, bandwidth, operations, peak)
    added_per_overlapped = added / overlapped
