"""Code, precision and training loop, fitted to the hardware that runs them.

The kernel is the diagonal of the resolvent (H − zI)⁻¹ of a tridiagonal matrix: where its textbook
recursion overflows, what each number format costs in accuracy, and what it gains in speed. It runs
on NumPy; numba, torch and Triton are extras. A name is imported when it is first used.

Around it are the levers that make training fit and go fast, each with the equality that it
promises: mixed precision, gradient accumulation, offloading, a batch that adapts to memory, shapes
for matrix units, several processes. They share one training step and need torch.
"""

from __future__ import annotations

from calc.core.public import on_first_use

# Each public name, by the module that defines it. Type checkers read this in `__init__.pyi`, which
# `python -m tools.pages` writes from it.
NAMES = {
    "accuracy": (
        "INPUT_KINDS",
        "Accuracy",
        "Onset",
        "overflow_onset",
        "validate_mixed_precision_accuracy",
    ),
    "accumulation": ("GradientAccumulationTrainer", "breaks_equality"),
    "batch_size": ("BatchChange", "DynamicBatchSizeTrainer", "SimulatedMemory", "is_out_of_memory"),
    "checkpoints": ("load_checkpoint", "save_checkpoint"),
    "dashboard": ("dashboard_page", "dashboard_text", "write_dashboard"),
    "data_parallel": ("ScalingPrediction", "predict_scaling"),
    "distributed": ("MultiGPUTrainer",),
    "kernel_speed": ("Timing", "benchmark_mixed_precision"),
    "mixed_precision": ("MixedPrecisionTrainer",),
    "offload": ("CPUOffloadingOptimizer",),
    "resolvent": ("BackendWarning", "resolvent_diagonal", "running_backend"),
    "resolvent_problem": ("ResolventError",),
    "run_log": ("LoggedRun", "LoggedStep", "RunLog", "read_run"),
    "tensor_cores": (
        "PaddedEmbedding",
        "PaddedLinear",
        "ShapeFinding",
        "is_tensor_core_compatible",
        "optimize_model_for_tensor_cores",
        "pad_to_tensor_core_multiple",
        "tensor_core_multiple",
        "validate_model_for_tensor_cores",
    ),
    "training_step": ("Step", "Trainer"),
    "work": ("WorkCounter", "saved_tensor_bytes"),
}
__all__, __getattr__, __dir__ = on_first_use(__name__, NAMES)
