"""Training as it would go on a smaller, slower device, in its precision: the plan, then the run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calc.core.arguments import check_is, in_bytes, memory, truth, whole_bytes, whole_number
from calc.core.errors import InputError, abbreviated, marked
from calc.core.units import Quantity, QuantityLike, quantity
from calc.simulation.adapted_models import TrainableModel, trainable
from calc.simulation.largest_batch import INFEASIBLE, adjust_batch_size_to_memory
from calc.simulation.low_precision import arithmetic
from calc.simulation.network import History
from calc.simulation.samples import checked_labels, checked_samples, several_classes
from calc.simulation.sizing import copies_of_parameters, int8_overhead
from calc.simulation.slowdown import apply_compute_slowdown, speed_factor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class HardwareSimulationConfig:
    """The device to simulate; where it is not `enabled`, nothing of it is applied.

    Parameters
    ----------
    max_memory
        the memory that the device has
    compute_speed_factor
        how many times as long the device takes
    precision_mode
        number format: FP32, FP16, BF16 or INT8
    batch_size_limit
        the largest batch
    mode
        what the memory estimate counts: all_outputs, inference or training
    optimizer
        whose state training counts: sgd, momentum or adam
    sleep
        wait as long as the device would
    run_infeasible
        where not one sample fits, train with a batch of 1 all the same

    Examples
    --------
    >>> config = HardwareSimulationConfig(enabled=True, max_memory="0.25 MiB")
    >>> print(config.max_memory, config.precision_mode, config.batch_size_limit)
    0.25 MiB fp32 128
    """

    enabled: bool = False
    max_memory: QuantityLike = "512 MiB"
    compute_speed_factor: float = 1.0
    precision_mode: str = "fp32"
    batch_size_limit: int = 128
    mode: str = "all_outputs"
    optimizer: str = "sgd"
    sleep: bool = False
    run_infeasible: bool = False

    def __post_init__(self) -> None:
        checked = {
            "max_memory": memory("max_memory", self.max_memory),
            "compute_speed_factor": speed_factor(self.compute_speed_factor),
            "batch_size_limit": whole_number("batch_size_limit", self.batch_size_limit),
            "precision_mode": arithmetic(self.precision_mode).name,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        for name in ("enabled", "sleep", "run_infeasible"):
            truth(name, getattr(self, name))
        copies_of_parameters(self.mode, self.optimizer)


@dataclass(frozen=True)
class HardwarePlan:
    """Plan of a run and its reasons; of one shape, whether the simulation is enabled or not.

    `limited_by` says what decides the batch: "request", "limit", "memory", "dataset", or
    "infeasible" where not one sample fits. `int8_overhead` is beside the total, not in it.
    """

    enabled: bool
    precision: str
    requested_batch: int
    batch: int
    limited_by: str
    budget: Quantity
    parameter_memory: Quantity
    activation_memory: Quantity
    total_memory: Quantity
    int8_overhead: Quantity
    compute_speed_factor: float
    mode: str
    optimizer: str

    @property
    def feasible(self) -> bool:
        """True if at least one sample fits."""
        return self.limited_by != INFEASIBLE

    @property
    def reason(self) -> str:
        """Reason for this batch, in a phrase."""
        return {
            "request": f"the batch of {self.requested_batch} that was asked for",
            "limit": f"{self.batch} of {self.requested_batch}: the limit of batches",
            "memory": f"{self.batch} of {self.requested_batch}: all that {self.budget} holds",
            "dataset": f"{self.batch} of {self.requested_batch}: there are no more samples",
            INFEASIBLE: (
                f"not one sample fits into {self.budget}: parameters alone take"
                f" {whole_bytes(self.parameter_memory)} byte, with one sample"
                f" {whole_bytes(self.total_memory)} byte"
            ),
        }[self.limited_by]


@dataclass(frozen=True)
class ConstrainedRun:
    """A run's plan, its history, the trained model, and the time that it took, here and there."""

    plan: HardwarePlan
    history: History
    model: TrainableModel
    elapsed: Quantity
    simulated_time: Quantity


def apply_precision_constraint(model: TrainableModel, precision: str) -> TrainableModel:
    """A copy of the model that computes in this precision; the model is left as it is.

    >>> from calc.simulation import NeuralNetwork
    >>> network = NeuralNetwork((64, 32, 10), ("relu", "softmax"))
    >>> apply_precision_constraint(network, "int8").precision, network.precision
    ('int8', 'fp32')
    """
    name = arithmetic(precision).name
    if not isinstance(model, TrainableModel):
        raise InputError(
            f"cannot change the precision of {abbreviated(model)}: it has no with_precision"
        )
    return model.with_precision(name)


def prepare_hardware_constrained_run(
    model: object,
    batch_size: int,
    simulation_config: HardwareSimulationConfig,
    dataset_size: int | None = None,
) -> HardwarePlan:
    """The plan of a run: the batch that fits, what limits it, and what it takes in memory.

    >>> from calc.simulation import LayerSizes
    >>> device = HardwareSimulationConfig(enabled=True, max_memory="0.25 MiB")
    >>> plan = prepare_hardware_constrained_run(LayerSizes.dense(784, 64, 10), 32, device)
    >>> plan.batch, plan.limited_by
    (17, 'memory')
    """
    config = simulation_config
    check_is(HardwareSimulationConfig, "simulation_config", config, "a HardwareSimulationConfig")
    own_precision = getattr(model, "precision", "fp32")
    precision = arithmetic(config.precision_mode if config.enabled else own_precision).name
    limits = config.max_memory, precision, config.batch_size_limit, dataset_size
    used = config.mode, config.optimizer
    choice = adjust_batch_size_to_memory(model, batch_size, *limits, *used)
    batch, limited_by = choice.batch, choice.limited_by
    if not config.enabled:
        batch, limited_by = _unconstrained(choice.requested, dataset_size)
    elif limited_by == INFEASIBLE and config.run_infeasible:
        batch = 1
    total = choice.memory_of(max(batch, 1))
    return HardwarePlan(
        enabled=config.enabled,
        precision=precision,
        requested_batch=choice.requested,
        batch=batch,
        limited_by=limited_by,
        budget=choice.budget,
        parameter_memory=choice.parameter_memory,
        activation_memory=in_bytes(whole_bytes(total) - whole_bytes(choice.parameter_memory)),
        total_memory=total,
        int8_overhead=int8_overhead(model) if precision == "int8" else in_bytes(0),
        compute_speed_factor=config.compute_speed_factor if config.enabled else 1.0,
        mode=config.mode,
        optimizer=config.optimizer,
    )


def run_training_with_hardware_constraints(
    model: object,
    data: tuple[ArrayLike, ArrayLike],
    epochs: int,
    alpha: float,
    batch_size: int,
    seed: int,
    simulation_config: HardwareSimulationConfig,
    on_epoch: Callable[[History], None] | None = None,
) -> ConstrainedRun:
    """Plan the run, train a copy of the model in the precision of the device, and time it.

    The data are samples and their labels.

    Where not one sample fits, nothing is trained and the plan's sentence is raised, unless the
    device says `run_infeasible`.

    Parameters
    ----------
    epochs
        passes over the samples
    alpha
        the length of a step
    batch_size
        samples in a batch, if they fit
    seed
        where the random numbers start

    Examples
    --------
    >>> from calc.simulation import NeuralNetwork, digits
    >>> device = HardwareSimulationConfig(
    ...     enabled=True, max_memory="16 KiB", compute_speed_factor=4, precision_mode="fp16"
    ... )
    >>> run = run_training_with_hardware_constraints(
    ...     NeuralNetwork((64, 32, 10), ("relu", "softmax")), digits()[:2], epochs=5, alpha=0.1,
    ...     batch_size=64, seed=0, simulation_config=device,
    ... )
    >>> print(run.plan.batch, run.plan.limited_by, run.simulated_time / run.elapsed)
    54 memory 4
    """
    X, y = data
    samples = checked_samples(X)
    labels = checked_labels(y, len(samples))
    several_classes(labels)
    ready = trainable(model, samples.shape[1], int(labels.max()) + 1)
    plan = prepare_hardware_constrained_run(ready, batch_size, simulation_config, len(samples))
    if not plan.batch:
        raise InputError(
            f"{plan.reason}; {marked('run_infeasible', True)} trains all the same, a batch of 1"
        )
    ready = apply_precision_constraint(ready, plan.precision)
    start = time.perf_counter()
    history = ready.fit(samples, labels, epochs, alpha, plan.batch, seed, on_epoch)
    elapsed = quantity(time.perf_counter() - start, "s")
    sleeps = simulation_config.enabled and simulation_config.sleep
    simulated = apply_compute_slowdown(elapsed, plan.compute_speed_factor, sleep=sleeps)
    return ConstrainedRun(plan, history, ready, elapsed, simulated)


def _unconstrained(requested: int, dataset_size: int | None) -> tuple[int, str]:
    if dataset_size is not None and dataset_size < requested:
        return dataset_size, "dataset"
    return requested, "request"
