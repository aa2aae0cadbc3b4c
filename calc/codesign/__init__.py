"""Code, precision and training loop, fitted to the hardware that runs them.

The kernel is the diagonal of the resolvent (H − zI)⁻¹ of a tridiagonal matrix: where its textbook
recursion overflows, what each number format costs in accuracy, and what it gains in speed. It runs
on NumPy; numba, torch and Triton are extras. A name is imported when it is first used.

Around it are the levers that make training fit and go fast, each with the equality that it
promises: mixed precision, gradient accumulation, offloading, a batch that adapts to memory, shapes
for matrix units, several processes. They share one training step and need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calc.codesign.accumulation import (
        GradientAccumulationTrainer as GradientAccumulationTrainer,
        breaks_equality as breaks_equality,
    )
    from calc.codesign.accuracy import (
        INPUT_KINDS as INPUT_KINDS,
        Accuracy as Accuracy,
        Onset as Onset,
        overflow_onset as overflow_onset,
        validate_mixed_precision_accuracy as validate_mixed_precision_accuracy,
    )
    from calc.codesign.batch_size import (
        BatchChange as BatchChange,
        DynamicBatchSizeTrainer as DynamicBatchSizeTrainer,
        SimulatedMemory as SimulatedMemory,
        is_out_of_memory as is_out_of_memory,
    )
    from calc.codesign.checkpoints import (
        load_checkpoint as load_checkpoint,
        save_checkpoint as save_checkpoint,
    )
    from calc.codesign.dashboard import (
        dashboard_page as dashboard_page,
        dashboard_text as dashboard_text,
        write_dashboard as write_dashboard,
    )
    from calc.codesign.data_parallel import (
        ScalingPrediction as ScalingPrediction,
        predict_scaling as predict_scaling,
    )
    from calc.codesign.distributed import (
        MultiGPUTrainer as MultiGPUTrainer,
    )
    from calc.codesign.kernel_speed import (
        Timing as Timing,
        benchmark_mixed_precision as benchmark_mixed_precision,
    )
    from calc.codesign.mixed_precision import (
        MixedPrecisionTrainer as MixedPrecisionTrainer,
    )
    from calc.codesign.offload import (
        CPUOffloadingOptimizer as CPUOffloadingOptimizer,
    )
    from calc.codesign.resolvent import (
        BackendWarning as BackendWarning,
        resolvent_diagonal as resolvent_diagonal,
        running_backend as running_backend,
    )
    from calc.codesign.resolvent_problem import (
        ResolventError as ResolventError,
    )
    from calc.codesign.run_log import (
        LoggedRun as LoggedRun,
        LoggedStep as LoggedStep,
        RunLog as RunLog,
        read_run as read_run,
    )
    from calc.codesign.tensor_cores import (
        PaddedEmbedding as PaddedEmbedding,
        PaddedLinear as PaddedLinear,
        ShapeFinding as ShapeFinding,
        is_tensor_core_compatible as is_tensor_core_compatible,
        optimize_model_for_tensor_cores as optimize_model_for_tensor_cores,
        pad_to_tensor_core_multiple as pad_to_tensor_core_multiple,
        tensor_core_multiple as tensor_core_multiple,
        validate_model_for_tensor_cores as validate_model_for_tensor_cores,
    )
    from calc.codesign.training_step import (
        Step as Step,
        Trainer as Trainer,
    )
    from calc.codesign.work import (
        WorkCounter as WorkCounter,
        saved_tensor_bytes as saved_tensor_bytes,
    )

# Each public name, by the module that defines it.
_NAMES = {
    "accuracy": (
        "INPUT_KINDS",
        "Accuracy",
        "Onset",
        "overflow_onset",
        "validate_mixed_precision_accuracy",
    ),
    "accumulation": (
        "GradientAccumulationTrainer",
        "breaks_equality",
    ),
    "batch_size": (
        "BatchChange",
        "DynamicBatchSizeTrainer",
        "SimulatedMemory",
        "is_out_of_memory",
    ),
    "checkpoints": (
        "load_checkpoint",
        "save_checkpoint",
    ),
    "dashboard": (
        "dashboard_page",
        "dashboard_text",
        "write_dashboard",
    ),
    "data_parallel": (
        "ScalingPrediction",
        "predict_scaling",
    ),
    "distributed": ("MultiGPUTrainer",),
    "kernel_speed": (
        "Timing",
        "benchmark_mixed_precision",
    ),
    "mixed_precision": ("MixedPrecisionTrainer",),
    "offload": ("CPUOffloadingOptimizer",),
    "resolvent": (
        "BackendWarning",
        "resolvent_diagonal",
        "running_backend",
    ),
    "resolvent_problem": ("ResolventError",),
    "run_log": (
        "LoggedRun",
        "LoggedStep",
        "RunLog",
        "read_run",
    ),
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
    "training_step": (
        "Step",
        "Trainer",
    ),
    "work": (
        "WorkCounter",
        "saved_tensor_bytes",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            return getattr(import_module(f"calc.codesign.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module 'calc.codesign' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
