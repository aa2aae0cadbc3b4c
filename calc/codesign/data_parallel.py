"""Speedup by several processes: Amdahl's bound, and what a ring of all-reduces leaves of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from calc.core.law import AT_LEAST_ONE, FRACTION, NON_NEGATIVE
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws.collectives import ring_all_reduce, scaling_efficiency, step_time
from calc.laws.scaling import amdahl


@dataclass(frozen=True)
class ScalingPrediction:
    """A fixed batch on n processes: speedups over one, and how much of the step is computing."""

    amdahl: Quantity
    speedup: Quantity
    efficiency: Quantity
    all_reduce: Quantity


def predict_scaling(
    one_process: Annotated[QuantityLike, "s"],
    serial_fraction: Annotated[QuantityLike, "", FRACTION],
    gradients: Annotated[QuantityLike, "byte", NON_NEGATIVE],
    processes: Annotated[int, "", AT_LEAST_ONE],
    bandwidth: Annotated[QuantityLike, "byte/s"],
    latency: Annotated[QuantityLike, "s", NON_NEGATIVE],
    overlap: Annotated[QuantityLike, "", FRACTION] = 0,
) -> ScalingPrediction:
    """Predict the speedup of n processes by two laws, from the step of one process and the link.

    Amdahl lets the serial fraction (the optimizer's step, which each process takes in full) stay as
    it is and talking cost nothing; the ring adds the all-reduce of the gradients, of which this
    overlap is hidden.

    >>> gpus = predict_scaling("100 ms", 0.05, "14 GB", 8, "450 GB/s", "500 ns")
    >>> print(gpus.amdahl, gpus.speedup, gpus.efficiency)
    5.926 1.402 0.2366

    Parameters
    ----------
    one_process
        time of a step on one process
    serial_fraction
        share of a step that is not split
    gradients
        bytes of the gradients that are exchanged in a step
    processes
        processes that share a batch
    bandwidth
        bytes that the memory or the link carries in a second
    latency
        time until the first byte arrives
    overlap
        share of the exchange that hides behind arithmetic
    """
    bound = amdahl(serial_fraction, processes)
    computing = quantity(one_process) / bound
    ring = ring_all_reduce(gradients, processes, bandwidth, latency)
    step = step_time(computing, ring, overlap)
    return ScalingPrediction(
        amdahl=bound,
        speedup=(quantity(one_process) / step).to(""),
        efficiency=scaling_efficiency(computing, ring, overlap),
        all_reduce=ring,
    )
