"""Metrics of one network: accuracy, latency, memory and energy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy

from calc.catalog import constants
from calc.core.arguments import in_bytes, number, whole_number
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity, QuantityLike, quantity
from calc.laws import energy
from calc.simulation.low_precision import arithmetic
from calc.simulation.network import NeuralNetwork, checked_network
from calc.simulation.samples import Split, checked_split
from calc.simulation.storage import FORMATS, stored

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OPERATIONS_PER_WEIGHT = 2  # a multiplication and an addition
SRAM_ACCESS = quantity("64 bit")


def model_memory(model: NeuralNetwork, format: str = "dense") -> Quantity:
    """Memory of a network's parameters: its weights stored in this format, its biases in full.

    >>> network = NeuralNetwork((784, 64, 10), ("relu", "softmax"), precision="fp16")
    >>> network.initialize(seed=0)
    >>> print(model_memory(network))
    101.8 kB
    """
    checked_network(model)
    count = sum(biases.size for biases in model.biases)
    biases = in_bytes(count * arithmetic(model.precision).element_bytes)
    weights = (
        stored(int(numpy.count_nonzero(matrix)), matrix.shape, model.precision, format)
        for matrix in model.weights
    )
    return sum(weights, start=biases)


def inference_energy(model: NeuralNetwork, batch: int, format: str = "dense") -> Quantity:
    """Energy of a batch: operations times the energy of one, and bytes times that of one.

    Dense kernels multiply by zeros too, so pruned weights count as operations. Parameters, as they
    are stored, inputs and answers cross the bus of an embedded device's LPDDR4 once; what one layer
    hands to the next is written to 1 MB of SRAM on the chip and read, a write taken for as much as
    a read. Arithmetic and SRAM are those of about 7 nm, with sums of 32 bits; all are estimates,
    that of LPDDR4 to a factor of two, and nothing else of the chip is counted.

    >>> network = NeuralNetwork((784, 64, 10), ("relu", "softmax"))
    >>> network.initialize(seed=0)
    >>> print(inference_energy(network, batch=32).to("uJ"))
    22.31 µJ
    """
    samples = whole_number("batch", batch)
    checked_network(model)
    size = arithmetic(model.precision).element_bytes
    first, *between, last = (samples * width * size for width in model.layer_sizes)
    traffic = model_memory(model, format) + in_bytes(first + last)
    handed_on = in_bytes(2 * sum(between))  # written, and read
    sums = "int32" if model.precision == "int8" else "fp32"
    names = f"energy_7nm_{model.precision}_multiply", f"energy_7nm_{sums}_add"
    multiply, add = map(constants.get, names)
    of_one = (multiply + add) / quantity(OPERATIONS_PER_WEIGHT, "FLOP")
    weights = sum(matrix.size for matrix in model.weights)
    operations = quantity(OPERATIONS_PER_WEIGHT * samples * weights, "FLOP")
    computing = energy.arithmetic_energy(operations, of_one)
    moving = energy.movement_energy(traffic, constants.get("energy_lpddr4_bit"))
    sram = constants.get("energy_7nm_sram_1mb") / SRAM_ACCESS
    return quantity(computing + moving + energy.movement_energy(handed_on, sram))


def measured_latency(
    model: NeuralNetwork, samples: ArrayLike, repeats: int, latency_multiplier: float = 1.0
) -> tuple[Quantity, Quantity]:
    """Median and interquartile range of the time of a forward pass over these samples.

    Timed are the FP32 kernels of this machine on the network's shapes, whatever its precision:
    NumPy has no kernels for the others, and emulating them would say nothing about a device. The
    multiplier makes these the times of a machine that takes so many times as long.

    >>> import numpy
    >>> network = NeuralNetwork((784, 64, 10), ("relu", "softmax"))
    >>> network.initialize(seed=0)
    >>> median, spread = measured_latency(network, numpy.zeros((32, 784)), repeats=5)
    >>> median > quantity("0 s")  # what it is depends on the machine
    True
    """
    count = whole_number("repeats", repeats)
    factor = number("latency_multiplier", latency_multiplier, above=0.0)
    checked_network(model)
    plain = model.with_precision("fp32")
    plain.probabilities(samples)  # the first pass pays for what later ones find ready
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        plain.probabilities(samples)
        seconds.append(time.perf_counter() - start)
    low, median, high = factor * numpy.percentile(seconds, [25, 50, 75])
    return quantity(float(median), "s"), quantity(float(high - low), "s")


def collect_metrics(
    model: NeuralNetwork,
    data: Split | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    power: QuantityLike,
    latency_multiplier: float = 1.0,
    repeats: int = 30,
    batch: int = 256,
    storage: str = "dense",
) -> dict[str, float]:
    """One row of a sweep: the accuracy of a network on test data, and what a batch of it costs.

    `energy_joules` is power times latency, which says nothing that latency does not;
    `energy_model_joules` is that of `inference_energy`. Memory is that of the parameters.

    >>> from calc.simulation import digits
    >>> network = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    >>> network.initialize(seed=0)
    >>> row = collect_metrics(network, digits(), power="15 W")
    >>> row["memory_dense_bytes"], row["energy_joules"] == 15 * row["latency_seconds"]
    (4840, True)
    """
    watts = checked_power(power)
    checked_network(model)
    split = checked_split(data, model.layer_sizes[0], model.layer_sizes[-1])
    samples = numpy.resize(split.X_test, (whole_number("batch", batch), split.X_test.shape[1]))
    latency, spread = measured_latency(model, samples, repeats, latency_multiplier)
    memory = {
        f"memory_{form}_bytes": int(model_memory(model, form).m_as("byte")) for form in FORMATS
    }
    return {
        "accuracy": model.score(split.X_test, split.y_test),
        "latency_seconds": latency.m_as("s"),
        "latency_spread_seconds": spread.m_as("s"),
        **memory,
        "energy_joules": energy.energy_of_run(watts, latency).m_as("J"),
        "energy_model_joules": inference_energy(model, batch, storage).m_as("J"),
    }


def checked_power(power: QuantityLike) -> Quantity:
    """Watts, positive and finite; the law that uses them says what is wrong."""
    if isinstance(power, bool | int | float):
        raise InputError(f'power needs a unit, as in "15 W"; got {abbreviated(power)}')
    watts = quantity(power)
    energy.energy_of_run(watts, "1 s")
    return watts
