"""The roofline: what bounds a computation, the machine's arithmetic or its memory.

Laws: arithmetic_intensity, ridge_point, attainable, bound, utilization; chain_rate, the roof of a
recursion; compute_time, and the efficiency that a measured time means; execution_time (the iron
law, nothing overlaps) and execution_time_overlapped (everything does). Workloads: gemm and
elementwise, with the laws for their operations and traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Annotated, Any

from calc.core.device import Device, check_device
from calc.core.elementwise import choose, divide_or_infinity, maximum, minimum, smallest, where
from calc.core.law import AT_LEAST_ONE, MAY_BE_INFINITE, NON_NEGATIVE, POSITIVE_FRACTION, law
from calc.core.report import Reported, Table
from calc.core.units import Label, Quantity, QuantityLike, quantity
from calc.formats import ELEMENT_SIZE


@law
def arithmetic_intensity(
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    traffic: Annotated[QuantityLike, "byte", "D_vol"],
) -> Annotated[Quantity, "FLOP/byte"]:
    """Operations done for each byte moved between memory and the chip.

    Equation: I = O / D_vol

    Assumes that `traffic` counts every byte that crosses the memory interface, once per crossing.

    Source: williams2009roofline

    >>> print(arithmetic_intensity("2 GFLOP", "500 MB"))
    4 FLOP/byte

    Parameters
    ----------
    operations
        operations to do
    traffic
        bytes to move between memory and the chip
    """
    return operations / traffic


@law
def ridge_point(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
) -> Annotated[Quantity, "FLOP/byte"]:
    """The intensity from which a machine is bound by arithmetic and no longer by memory.

    Equation: I* = R_peak / BW

    Source: williams2009roofline

    >>> print(ridge_point("312 TFLOP/s", "2.039 TB/s"))
    153.0 FLOP/byte

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that the memory or the link carries in a second
    """
    return peak / bandwidth


@law
def attainable(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    intensity: Annotated[QuantityLike, "FLOP/byte", "I", NON_NEGATIVE],
) -> Annotated[Quantity, "FLOP/s"]:
    """The rate that neither roof lets a computation exceed.

    Equation: R = min(R_peak, BW · I)

    Assumes that arithmetic and memory traffic overlap perfectly: an upper bound, not a forecast.

    Source: williams2009roofline

    >>> print(attainable("989 TFLOP/s", "3.35 TB/s", "1 FLOP/byte"))
    3.35 TFLOP/s

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that the memory or the link carries in a second
    intensity
        operations done for each byte moved
    """
    return minimum(peak, bandwidth * intensity)


@law
def bound(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    intensity: Annotated[QuantityLike, "FLOP/byte", "I", NON_NEGATIVE],
) -> Label:
    """Lower roof of the two: "memory" or "compute" (an array of them for arrays).

    Equation: memory where I < R_peak / BW, else compute

    Source: williams2009roofline

    >>> bound("312 TFLOP/s", "2.039 TB/s", "0.25 FLOP/byte")
    'memory'

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that the memory or the link carries in a second
    intensity
        operations done for each byte moved
    """
    return where(intensity * bandwidth < peak, "memory", "compute")


@law
def utilization(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    intensity: Annotated[QuantityLike, "FLOP/byte", "I", NON_NEGATIVE],
) -> Annotated[Quantity, ""]:
    """The largest fraction of its peak that a machine can reach at this intensity.

    Equation: U = min(1, BW · I / R_peak)

    Source: williams2009roofline

    See also: roofline.efficiency, training.mfu

    >>> print(utilization("312 TFLOP/s", "2.039 TB/s", "0.25 FLOP/byte").to("%"))
    0.1634%

    Parameters
    ----------
    peak
        operations that the machine does in a second at most
    bandwidth
        bytes that the memory or the link carries in a second
    intensity
        operations done for each byte moved
    """
    return minimum(intensity * bandwidth / peak, 1.0)


@law
def compute_time(
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    efficiency: Annotated[QuantityLike, "", "η", POSITIVE_FRACTION] = 1.0,
) -> Annotated[Quantity, "s"]:
    """Time of the arithmetic alone, at this share of the peak.

    Equation: T = O / (R_peak · η)

    Assumes that operands are at hand; `links.transfer_time` is the time of the traffic alone.

    Source: hennessy2025architecture

    >>> print(compute_time("137.4 GFLOP", "989 TFLOP/s"))
    138.9 µs

    Parameters
    ----------
    operations
        operations to do
    peak
        operations that the machine does in a second at most
    efficiency
        share of the peak that the arithmetic reaches
    """
    return operations / (peak * efficiency)


@law
def efficiency(
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    time: Annotated[QuantityLike, "s", "T"],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
) -> Annotated[Quantity, ""]:
    """Rate that a measured time means, over the peak: what the machine achieved.

    Equation: η = O / (T · R_peak)

    Above 1 the inputs contradict each other: operations counted that were not done, or a time that
    stopped before they were.

    Source: williams2009roofline

    See also: roofline.utilization, training.mfu_of_operations

    >>> print(efficiency("137.4 GFLOP", "200 us", "989 TFLOP/s").to("%"))
    69.46%

    Parameters
    ----------
    operations
        operations to do
    time
        time that was measured
    peak
        operations that the machine does in a second at most
    """
    return operations / (time * peak)


@law
def execution_time(
    traffic: Annotated[QuantityLike, "byte", "D_vol", NON_NEGATIVE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    efficiency: Annotated[QuantityLike, "", "η", POSITIVE_FRACTION] = 1.0,
    latency: Annotated[QuantityLike, "s", "L_lat", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of a step whose traffic, arithmetic and latency follow one another: the iron law.

    Equation: T = D_vol / BW + O / (R_peak · η) + L_lat

    Assumes no overlap at all: an upper bound where hardware overlaps the terms.

    Source: hennessy2025architecture

    >>> print(execution_time("14 GB", "3.35 TB/s", "14 GFLOP", "989 TFLOP/s"))
    4.193 ms

    Parameters
    ----------
    traffic
        bytes to move between memory and the chip
    bandwidth
        bytes that the memory or the link carries in a second
    operations
        operations to do
    peak
        operations that the machine does in a second at most
    efficiency
        share of the peak that the arithmetic reaches
    latency
        time that neither term explains: launches, waiting
    """
    return traffic / bandwidth + operations / (peak * efficiency) + latency


@law
def execution_time_overlapped(
    traffic: Annotated[QuantityLike, "byte", "D_vol", NON_NEGATIVE],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    operations: Annotated[QuantityLike, "FLOP", "O", NON_NEGATIVE],
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    efficiency: Annotated[QuantityLike, "", "η", POSITIVE_FRACTION] = 1.0,
    latency: Annotated[QuantityLike, "s", "L_lat", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of a step whose traffic and arithmetic overlap perfectly; latency is still paid.

    Equation: T = max(D_vol / BW, O / (R_peak · η)) + L_lat

    Assumes perfect overlap: a lower bound. A step that keeps these rates lies between this and
    `execution_time`, which is at most twice as long apart from the latency.

    Source: williams2009roofline

    >>> print(execution_time_overlapped("14 GB", "3.35 TB/s", "14 GFLOP", "989 TFLOP/s"))
    4.179 ms

    Parameters
    ----------
    traffic
        bytes to move between memory and the chip
    bandwidth
        bytes that the memory or the link carries in a second
    operations
        operations to do
    peak
        operations that the machine does in a second at most
    efficiency
        share of the peak that the arithmetic reaches
    latency
        time that neither term explains: launches, waiting
    """
    return maximum(traffic / bandwidth, operations / (peak * efficiency)) + latency


@law
def launched_time(
    kernels: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    kernel_time: Annotated[QuantityLike, "s", "T_k", NON_NEGATIVE],
    launch_time: Annotated[QuantityLike, "s", "L", NON_NEGATIVE],
    gap: Annotated[QuantityLike, "s", "g", NON_NEGATIVE] = "0 s",
) -> Annotated[Quantity, "s"]:
    """Time of kernels that the host launches ahead, while the device still runs earlier ones.

    Equation: T = k · max(L, T_k + g)

    The slower of the two sets the pace: the host, with a launch every L, or the device, with a
    kernel and the gap g to the next. Assumes many kernels, for none of which the host waits; the
    first launch, or the last kernel, comes on top.

    Source: he2022making

    >>> print(launched_time(100, "1 us", "5 us"), launched_time(100, "20 us", "5 us", "1 us"))
    500 µs 2.1 ms

    Parameters
    ----------
    kernels
        kernels that are launched
    kernel_time
        time that a kernel runs on the device
    launch_time
        time that a launch keeps the host busy
    gap
        time from the end of a kernel to the begin of the next
    """
    return kernels * maximum(launch_time, kernel_time + gap)


@law
def chain_rate(
    work: Annotated[QuantityLike, "FLOP", "o"],
    cycles: Annotated[QuantityLike, "", "τ"],
    clock: Annotated[QuantityLike, "1/s", "f"],
    chains: Annotated[QuantityLike, "", "k", AT_LEAST_ONE] = 1,
) -> Annotated[Quantity, "FLOP/s"]:
    """The roof of a recursion: each of its steps waits for the result of the step before it.

    Equation: R = k · o · f / τ

    A step does o operations, and τ cycles pass from one result to the next: the latencies of the
    operations that wait for one another, added up. k recursions that need nothing of each other
    wait side by side. Assumes that nothing but this latency binds; with many chains a unit that
    they share does.

    Source: hennessy2025architecture

    >>> print(chain_rate("13 FLOP", 35, "3.2 GHz"))
    1.189 GFLOP/s

    Parameters
    ----------
    work
        operations of a step
    cycles
        cycles from the result of a step to that of the next
    clock
        clock rate of the processor
    chains
        recursions that are under way side by side
    """
    return chains * work * clock / cycles


@law
def gemm_operations(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a matrix product (m × k) · (k × n): a multiply and an add for each term.

    Equation: O = 2 · m · n · k

    Source: golub2013matrix

    >>> print(gemm_operations(4096, 4096, 4096))
    137.4 GFLOP

    Parameters
    ----------
    m
        rows of the first matrix and of the result
    n
        columns of the second matrix and of the result
    k
        length of the sums: columns of the first matrix, rows of the second
    """
    return _per_term * m * n * k


@law
def gemm_traffic(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
) -> Annotated[Quantity, "byte"]:
    """Bytes that a matrix product must move: each input read once, the output written once.

    Equation: D_vol = (m·k + k·n + m·n) · size

    Assumes on-chip memory large enough that no operand is read twice: a lower bound.

    Source: williams2009roofline

    See also: gemms.tile_traffic

    >>> print(gemm_traffic(4096, 4096, 4096, "2 byte"))
    100.7 MB

    Parameters
    ----------
    m
        rows of the first matrix and of the result
    n
        columns of the second matrix and of the result
    k
        length of the sums: columns of the first matrix, rows of the second
    element_size
        what an element of the array takes
    """
    return (m * k + k * n + m * n) * element_size


@law
def weights_only_intensity(
    batch: Annotated[QuantityLike, "", "B", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "FLOP/byte"]:
    """Intensity of a layer applied to a batch, when only its weights count as traffic.

    Equation: I = 2 · B / size

    Assumes a batch so small that its inputs and outputs weigh nothing beside the weights: an upper
    bound.

    Source: williams2009roofline

    >>> print(weights_only_intensity(64, "2 byte"))
    64 FLOP/byte

    Parameters
    ----------
    batch
        inputs that the layer is applied to at once
    element_size
        what an element of the array takes
    """
    return _per_term * batch / element_size


@law
def critical_batch_by_weights(
    ridge_point: Annotated[QuantityLike, "FLOP/byte", "I*"],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, ""]:
    """Batch at which a layer reaches the ridge point, when only its weights count as traffic.

    Equation: B* = I* · size / 2

    Source: williams2009roofline

    See also: roofline.critical_batch, experts.critical_tokens

    >>> print(critical_batch_by_weights("153 FLOP/byte", "2 byte"))
    153

    Parameters
    ----------
    ridge_point
        intensity from which the machine is bound by arithmetic
    element_size
        what an element of the array takes
    """
    return ridge_point * element_size / _per_term


@law
def critical_batch(
    ridge_point: Annotated[QuantityLike, "FLOP/byte", "I*"],
    inputs: Annotated[QuantityLike, "", "i", AT_LEAST_ONE],
    outputs: Annotated[QuantityLike, "", "o", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "", MAY_BE_INFINITE]:
    """Batch at which a layer reaches the ridge point, its inputs and outputs counted too.

    Equation: B* = I* · size · i · o / max(0, 2 · i · o − I* · size · (i + o))

    Infinite where the denominator is zero: a layer too narrow for the machine never reaches the
    ridge point, whatever the batch.

    Source: williams2009roofline

    See also: roofline.critical_batch_by_weights

    >>> print(critical_batch("153 FLOP/byte", 4096, 4096, "2 byte"))
    165.4

    Parameters
    ----------
    ridge_point
        intensity from which the machine is bound by arithmetic
    inputs
        width of the layer's input
    outputs
        width of the layer's output
    element_size
        what an element of the array takes
    """
    reach = ridge_point * element_size
    margin = _per_term * inputs * outputs - reach * (inputs + outputs)
    return divide_or_infinity(reach * inputs * outputs, maximum(margin, 0 * margin))


@law
def elementwise_operations(
    elements: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    operations_per_element: Annotated[QuantityLike, "FLOP", "o"] = "1 FLOP",
) -> Annotated[Quantity, "FLOP"]:
    """Operations of a function applied to every element.

    Equation: O = n · o

    Source: williams2009roofline

    >>> print(elementwise_operations(4096**2))
    16.78 MFLOP

    Parameters
    ----------
    elements
        elements of an array
    operations_per_element
        operations that an element takes
    """
    return elements * operations_per_element


@law
def elementwise_traffic(
    elements: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    arrays: Annotated[QuantityLike, "", "a", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "size", ELEMENT_SIZE],
) -> Annotated[Quantity, "byte"]:
    """Bytes moved by a function applied to every element: so many arrays read or written in full.

    Equation: D_vol = n · a · size

    Assumes that no array stays on the chip from the kernel before: fusion is what removes an array
    here.

    Source: williams2009roofline

    >>> print(elementwise_traffic(4096**2, 2, "2 byte"))
    67.11 MB

    Parameters
    ----------
    elements
        elements of an array
    arrays
        arrays that are read or written, each in full
    element_size
        what an element of the array takes
    """
    return elements * arrays * element_size


@dataclass(frozen=True)
class Workload:
    """Work to place on a roofline: operations, and the bytes to move for them. Workloads add up."""

    operations: Quantity
    traffic: Quantity

    @property
    def intensity(self) -> Quantity:
        """Arithmetic intensity of the workload."""
        return arithmetic_intensity(self.operations, self.traffic)

    def on(self, device: Device, dtype: str) -> StepTime:
        """Return the time of the work on a device that computes in this format.

        >>> from calc import hardware
        >>> step = gemm(4096, 4096, 4096).on(hardware.H100, "fp16")
        >>> print(step.lower, step.upper, step.bound)
        139.0 µs 169.0 µs compute
        """
        check_device(device)
        return self.between(device.peak(dtype), device.memory_bandwidth)

    def between(self, peak: Quantity, bandwidth: Quantity) -> StepTime:
        """Return the time of the work between two roofs: that of arithmetic, and that of memory."""
        return StepTime(
            {
                "compute": (self.operations / peak).to("s"),
                "memory": (self.traffic / bandwidth).to("s"),
            },
            self.operations,
            peak,
            self.traffic,
        )

    def __str__(self) -> str:
        intensity = f": {self.intensity}" if smallest(self.traffic) > 0 else ""
        return f"{self.operations} and {self.traffic}{intensity}"

    def __add__(self, other: Workload) -> Workload:
        return Workload(self.operations + other.operations, self.traffic + other.traffic)


@dataclass(frozen=True)
class StepTime(Reported):
    """The time of a step in parts, each by itself at its full rate, and what the step does.

    A part has the name of what it keeps busy: compute, memory, links. `print` shows all of them. At
    published rates the step takes `lower` where all parts overlap, and `upper` where none does.
    Real programs run below these rates, and most are slower than `upper` too; what is expected of
    them, `calc.step` says. What a caller does not count, bytes of memory or tokens, is zero.
    """

    parts: dict[str, Quantity]
    operations: Quantity
    peak: Quantity
    traffic: Quantity = field(default_factory=lambda: quantity(0, "byte"))
    tokens: Quantity = field(default_factory=lambda: quantity(0, "token"))

    @property
    def lower(self) -> Quantity:
        """The longest part, if all others hide behind it: no program is faster."""
        return quantity(reduce(maximum, self._seconds), "s")

    @property
    def upper(self) -> Quantity:
        """Sum of all parts, one after the other, at published rates: no bound on a real program."""
        return quantity(sum(self._seconds), "s")

    @property
    def bound(self) -> Any:
        """The part that takes longest, by its name (an array of names for arrays)."""
        return choose(tuple(self.parts), self.longest)

    @property
    def longest(self) -> Any:
        """The place of that part among all; of equal ones the first."""
        first, *others = self._seconds
        index: Any = where(first < 0, 1, 0)  # 0, or an array of it
        for number, seconds in enumerate(others, start=1):
            index = where(seconds > first, number, index)
            first = maximum(seconds, first)
        return index

    @property
    def rate(self) -> Quantity:
        """Operations per second at `lower`, which no roof exceeds."""
        return (self.operations / self.lower).to("FLOP/s")

    @property
    def throughput(self) -> Quantity:
        """Tokens per second at `lower`."""
        return (self.tokens / self.lower).to("token/s")

    @property
    def mfu(self) -> tuple[Quantity, Quantity]:
        """Model FLOP utilisation at the `upper` and at the `lower` time."""
        work = self.operations / self.peak
        return (work / self.upper).to(""), (work / self.lower).to("")

    @cached_property
    def tables(self) -> list[Table]:
        """Table of the parts of a step and of its bounds, a line each."""
        lines = [(name, " ".join(text.split())) for name, text in self._rows.items()]
        return [Table(lines, head=("", "time"))]

    @property
    def _rows(self) -> dict[str, str]:
        return {name: str(time) for name, time in self.parts.items()} | {
            "perfect overlap": f"{self.lower}, bound by {self.bound}",
            "no overlap": str(self.upper),
        }

    @property
    def _seconds(self) -> list[Any]:
        return [time.m_as("s") for time in self.parts.values()]


def gemm(
    m: Annotated[QuantityLike, "", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Workload:
    """The matrix product (m × k) · (k × n), elements of two bytes where nothing is said.

    >>> print(gemm(4096, 4096, 4096).intensity)
    1365 FLOP/byte

    Parameters
    ----------
    m
        rows of the first matrix and of the result
    n
        columns of the second matrix and of the result
    k
        length of the sums: columns of the first matrix, rows of the second
    element_size
        what an element of the array takes
    """
    return Workload(gemm_operations(m, n, k), gemm_traffic(m, n, k, element_size))


def elementwise(
    elements: Annotated[QuantityLike, "", AT_LEAST_ONE],
    operations_per_element: Annotated[QuantityLike, "FLOP"] = "1 FLOP",
    arrays: Annotated[QuantityLike, "", AT_LEAST_ONE] = 2,
    element_size: Annotated[QuantityLike, "byte"] = "2 byte",
) -> Workload:
    """Return elementwise work that reads or writes `arrays` elements for each: ReLU by default.

    >>> print(elementwise(1e6).intensity)
    0.25 FLOP/byte

    Parameters
    ----------
    elements
        elements of an array
    operations_per_element
        operations that an element takes
    arrays
        arrays that are read or written, each in full
    element_size
        what an element of the array takes
    """
    return Workload(
        elementwise_operations(elements, operations_per_element),
        elementwise_traffic(elements, arrays, element_size),
    )
