"""Hardware that one does not have: what fits, at which batch, how much slower, how accurate.

A model is anything that says its layer widths and parameter counts: the small `NeuralNetwork` of
this package, scikit-learn's multilayer perceptrons and torch modules, or bare `LayerSizes`. What it
takes in memory is estimated in whole bytes, in the number format and for the use that it is put to.
These are approximations for comparing designs: no caches, no effects of instructions, no heat.
"""

from __future__ import annotations

from calc.core.errors import extra
from calc.core.public import on_first_use

with extra("calc.simulation", "numpy", "simulation"):
    import numpy as _numpy  # noqa: F401  # said once, in a sentence, for every module of the package

# Type checkers read this in `__init__.pyi`, which `python -m tools.pages` writes from it.
NAMES = {
    "adapters": ("SklearnNetwork", "TorchNetwork", "TrainableModel"),
    "batching": ("BatchChoice", "BatchPlans", "adjust_batch_size_to_memory", "plan_batches"),
    "budgets": ("memory_violations",),
    "constrained": (
        "ConstrainedRun",
        "HardwarePlan",
        "HardwareSimulationConfig",
        "apply_precision_constraint",
        "prepare_hardware_constrained_run",
        "run_training_with_hardware_constraints",
    ),
    "data": ("Split", "digits"),
    "frames": ("write_table",),
    "metrics": ("collect_metrics", "inference_energy", "measured_latency", "model_memory"),
    "network": ("History", "NeuralNetwork"),
    "pareto": ("pareto_frontier",),
    "precision": ("PRECISIONS", "Arithmetic", "arithmetic"),
    "pruning": ("prune",),
    "sizing": (
        "MODES",
        "OPTIMIZER_STATES",
        "LayerSizes",
        "SizedModel",
        "elements_per_sample",
        "estimate_activation_memory",
        "estimate_parameter_memory",
        "estimate_total_memory",
        "int8_overhead",
        "sizes",
        "sklearn_sizes",
        "torch_sizes",
    ),
    "slowdown": ("apply_compute_slowdown", "extra_time", "lost_speed"),
    "storage": ("storage_bytes",),
    "summaries": ("summarize_sweep",),
    "sweep": ("Experiment", "Grid", "SweepStoppedError", "Variant", "run_sweep"),
}
__all__, __getattr__, __dir__ = on_first_use(__name__, NAMES)
