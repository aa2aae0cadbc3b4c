"""Hardware that one does not have: what fits, at which batch, how much slower, how accurate.

A model is anything that says its layer widths and parameter counts: the small `NeuralNetwork` of
this package, scikit-learn's multilayer perceptrons and torch modules, or bare `LayerSizes`. What it
takes in memory is estimated in whole bytes, in the number format and for the use that it is put to.
These are approximations for comparing designs: no caches, no effects of instructions, no heat.
"""

from __future__ import annotations

from calc.core.errors import MissingExtraError

try:
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package
except ImportError:
    raise MissingExtraError("calc.simulation", "numpy", "simulation") from None

from calc.simulation.adapters import SklearnNetwork, TorchNetwork, TrainableModel
from calc.simulation.batching import (
    BatchChoice,
    BatchPlans,
    adjust_batch_size_to_memory,
    plan_batches,
)
from calc.simulation.budgets import memory_violations
from calc.simulation.constrained import (
    ConstrainedRun,
    HardwarePlan,
    HardwareSimulationConfig,
    apply_precision_constraint,
    prepare_hardware_constrained_run,
    run_training_with_hardware_constraints,
)
from calc.simulation.data import Split, digits
from calc.simulation.frames import write_table
from calc.simulation.metrics import (
    collect_metrics,
    inference_energy,
    measured_latency,
    model_memory,
)
from calc.simulation.network import History, NeuralNetwork
from calc.simulation.pareto import pareto_frontier
from calc.simulation.precision import PRECISIONS, Arithmetic, arithmetic
from calc.simulation.pruning import prune
from calc.simulation.sizing import (
    MODES,
    OPTIMIZER_STATES,
    LayerSizes,
    SizedModel,
    elements_per_sample,
    estimate_activation_memory,
    estimate_parameter_memory,
    estimate_total_memory,
    int8_overhead,
    sizes,
    sklearn_sizes,
    torch_sizes,
)
from calc.simulation.slowdown import apply_compute_slowdown, extra_time, lost_speed
from calc.simulation.storage import storage_bytes
from calc.simulation.summaries import summarize_sweep
from calc.simulation.sweep import Experiment, Grid, SweepStoppedError, Variant, run_sweep

__all__ = [
    "MODES",
    "OPTIMIZER_STATES",
    "PRECISIONS",
    "Arithmetic",
    "BatchChoice",
    "BatchPlans",
    "ConstrainedRun",
    "Experiment",
    "Grid",
    "HardwarePlan",
    "HardwareSimulationConfig",
    "History",
    "LayerSizes",
    "NeuralNetwork",
    "SizedModel",
    "SklearnNetwork",
    "Split",
    "SweepStoppedError",
    "TorchNetwork",
    "TrainableModel",
    "Variant",
    "adjust_batch_size_to_memory",
    "apply_compute_slowdown",
    "apply_precision_constraint",
    "arithmetic",
    "collect_metrics",
    "digits",
    "elements_per_sample",
    "estimate_activation_memory",
    "estimate_parameter_memory",
    "estimate_total_memory",
    "extra_time",
    "inference_energy",
    "int8_overhead",
    "lost_speed",
    "measured_latency",
    "memory_violations",
    "model_memory",
    "pareto_frontier",
    "plan_batches",
    "prepare_hardware_constrained_run",
    "prune",
    "run_sweep",
    "run_training_with_hardware_constraints",
    "sizes",
    "sklearn_sizes",
    "storage_bytes",
    "summarize_sweep",
    "torch_sizes",
    "write_table",
]
