"""The largest batch that a memory holds: one division, for one question or for a million."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from calc.core.arguments import LARGEST, as_array, in_bytes, memory, whole_bytes, whole_number
from calc.core.arrays import Counts
from calc.core.elementwise import floor
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import Quantity, QuantityLike, quantity
from calc.simulation.low_precision import arithmetic
from calc.simulation.sizing import (
    elements_per_sample,
    estimate_activation_memory,
    estimate_parameter_memory,
    sizes,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# What decides a batch; of two that allow the same, the one that is named first.
LIMITS = ("request", "limit", "memory", "dataset")
INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class BatchChoice:
    """A batch, what limits it, and the estimate behind it.

    `limited_by` is "request" where nothing is in the way, else "limit", "memory" or "dataset", or
    "infeasible" where not even one sample fits, and the batch is 0.
    """

    batch: int
    limited_by: str
    requested: int
    budget: Quantity
    parameter_memory: Quantity
    memory_per_sample: Quantity

    @property
    def total_memory(self) -> Quantity:
        """Parameters and the batch: what it takes, and above the budget if that is infeasible."""
        return self.memory_of(max(self.batch, 1))

    def memory_of(self, batch: int) -> Quantity:
        """Return the memory that another batch would take."""
        per_sample = whole_bytes(self.memory_per_sample)
        return in_bytes(whole_bytes(self.parameter_memory) + batch * per_sample)


class BatchPlans(NamedTuple):
    """Batches, what limits each, and the memory that each takes: arrays of one shape."""

    batch: Counts
    limited_by: NDArray[numpy.str_]
    total_memory: Quantity


def adjust_batch_size_to_memory(
    model: object,
    batch_size: int,
    budget: QuantityLike,
    precision: str = "fp32",
    limit: int | None = None,
    dataset_size: int | None = None,
    mode: str = "all_outputs",
    optimizer: str = "sgd",
) -> BatchChoice:
    """The largest batch up to the one asked for that fits, and which of the bounds decides it.

    Equation: B = min(B_request, B_limit, ⌊(M − M_parameters) / m_sample⌋, N_data)

    Exact in whole bytes, so it asks for two estimates, however large the budget is.

    >>> from calc.simulation import LayerSizes
    >>> choice = adjust_batch_size_to_memory(LayerSizes.dense(784, 64, 10), 4096, "1 MiB")
    >>> choice.batch, choice.limited_by, int(choice.total_memory.m_as("byte"))
    (246, 'memory', 1047832)
    """
    requested = whole_number("batch_size", batch_size)
    room = memory("budget", budget)
    model = sizes(model)
    parameters = estimate_parameter_memory(model, precision, mode, optimizer)
    per_sample = estimate_activation_memory(model, 1, precision, mode)
    fits = (whole_bytes(room) - whole_bytes(parameters)) // whole_bytes(per_sample)
    bounds = {
        "request": requested,
        "limit": requested if limit is None else whole_number("limit", limit),
        "memory": fits,
        "dataset": (
            requested if dataset_size is None else whole_number("dataset_size", dataset_size)
        ),
    }
    feasible = fits >= 1
    return BatchChoice(
        batch=min(bounds.values()) if feasible else 0,
        limited_by=min(LIMITS, key=bounds.__getitem__) if feasible else INFEASIBLE,
        requested=requested,
        budget=room,
        parameter_memory=parameters,
        memory_per_sample=per_sample,
    )


def plan_batches(
    model: object,
    batch_sizes: ArrayLike,
    budgets: QuantityLike,
    precisions: ArrayLike = "fp32",
    limits: ArrayLike | None = None,
    dataset_size: int | None = None,
    mode: str = "all_outputs",
    optimizer: str = "sgd",
) -> BatchPlans:
    """`adjust_batch_size_to_memory` for arrays of batches, budgets, precisions and limits at once.

    The arrays broadcast against each other, as numpy's do.

    >>> from calc.simulation import LayerSizes
    >>> from calc import quantity
    >>> model = LayerSizes.dense(784, 64, 10)
    >>> precisions = [["fp32"], ["fp16"]]
    >>> plans = plan_batches(model, 4096, quantity([0.25, 1], "MiB"), precisions)
    >>> plans.batch.tolist()
    [[17, 246], [93, 551]]
    """
    requested = _whole_numbers("batch_sizes", batch_sizes)
    room = _budgets(budgets)
    size = _element_bytes(precisions)
    bytes_per_copy = estimate_parameter_memory(model, "int8", mode, optimizer)
    parameters = whole_bytes(bytes_per_copy) * size
    per_sample = elements_per_sample(model, mode) * size
    bounds: list[Any] = [
        requested,
        requested if limits is None else _whole_numbers("limits", limits),
        (room - parameters) // per_sample,
        requested if dataset_size is None else whole_number("dataset_size", dataset_size),
    ]
    try:
        bounds = list(numpy.broadcast_arrays(*bounds))
    except ValueError:
        raise InputError(
            f"arrays of shapes {', '.join(str(numpy.shape(bound)) for bound in bounds[:3])} do not"
            f" broadcast"
        ) from None
    batch, decides = bounds[0].copy(), numpy.zeros(bounds[0].shape, dtype=numpy.int8)
    for index, bound in enumerate(bounds[1:], start=1):
        numpy.putmask(decides, bound < batch, index)
        numpy.minimum(batch, bound, out=batch)
    infeasible = bounds[2] < 1
    batch[infeasible] = 0
    decides[infeasible] = len(LIMITS)
    total = parameters + numpy.maximum(batch, 1) * per_sample
    words = numpy.array([*LIMITS, INFEASIBLE])
    return BatchPlans(batch, words[decides], quantity(total.astype(float), "byte"))


def _whole_numbers(name: str, values: ArrayLike) -> Counts:
    array = as_array(name, values)
    whole = array.dtype.kind in "iu"
    if not whole or (array.size and not 1 <= array.min() <= array.max() < LARGEST):
        raise InputError(f"{marked(name)} must be whole numbers from 1; got {abbreviated(values)}")
    return array.astype(numpy.int64)


def _budgets(budgets: QuantityLike) -> Counts | int:
    if isinstance(budgets, str):
        return whole_bytes(memory("budgets", budgets))
    if not isinstance(budgets, Quantity) or not budgets.check("[information]"):
        raise InputError(
            f'budgets must be memory, as quantity([256, 512], "MiB") is; got {abbreviated(budgets)}'
        )
    sizes = numpy.asarray(budgets.m_as("byte"))
    bad = ~((sizes >= 1) & (sizes < LARGEST))  # NaN, too
    if bad.any():
        raise InputError(
            f"{marked('budgets')} must be positive and finite; got {sizes[bad].flat[0]:g} byte"
        )
    return numpy.asarray(floor(budgets.m_as("byte"))).astype(numpy.int64)


def _element_bytes(precisions: ArrayLike) -> Counts | int:
    if isinstance(precisions, str):
        return arithmetic(precisions).element_bytes
    names = as_array("precisions", precisions)
    if names.dtype.kind != "U":
        raise InputError(
            f"{marked('precisions')} must be names of formats; got {abbreviated(precisions)}"
        )
    size = numpy.zeros(names.shape, dtype=numpy.int64)
    for name in numpy.unique(names):
        size[names == name] = arithmetic(str(name)).element_bytes
    return size
