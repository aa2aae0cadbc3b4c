"""Code, precision and training loop, fitted to the hardware that runs them.

The kernel is the diagonal of the resolvent (H − zI)⁻¹ of a tridiagonal matrix: where its textbook
recursion overflows, what each number format costs in accuracy, and what it gains in speed. It runs
on NumPy; numba, torch and Triton are extras. A name is imported when it is first used.

Around it are the levers that make training fit and go fast, each with the equality that it
promises: mixed precision, gradient accumulation, offloading, a batch that adapts to memory, shapes
for matrix units, several processes. They
share one training step and need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calc.codesign.accumulation import (
        GradientAccumulationTrainer as GradientAccumulationTrainer,
    )
    from calc.codesign.accumulation import (
        breaks_equality as breaks_equality,
    )
    from calc.codesign.accuracy import (
        INPUT_KINDS as INPUT_KINDS,
    )
    from calc.codesign.accuracy import (
        Accuracy as Accuracy,
    )
    from calc.codesign.accuracy import (
        Onset as Onset,
    )
    from calc.codesign.accuracy import (
        overflow_onset as overflow_onset,
    )
    from calc.codesign.accuracy import (
        validate_mixed_precision_accuracy as validate_mixed_precision_accuracy,
    )
    from calc.codesign.batch_size import (
        BatchChange as BatchChange,
    )
    from calc.codesign.batch_size import (
        DynamicBatchSizeTrainer as DynamicBatchSizeTrainer,
    )
    from calc.codesign.batch_size import (
        SimulatedMemory as SimulatedMemory,
    )
    from calc.codesign.batch_size import (
        is_out_of_memory as is_out_of_memory,
    )
    from calc.codesign.checkpoints import (
        load_checkpoint as load_checkpoint,
    )
    from calc.codesign.checkpoints import (
        save_checkpoint as save_checkpoint,
    )
    from calc.codesign.dashboard import (
        dashboard_page as dashboard_page,
    )
    from calc.codesign.dashboard import (
        dashboard_text as dashboard_text,
    )
    from calc.codesign.dashboard import (
        write_dashboard as write_dashboard,
    )
    from calc.codesign.data_parallel import (
        ScalingPrediction as ScalingPrediction,
    )
    from calc.codesign.data_parallel import (
        predict_scaling as predict_scaling,
    )
    from calc.codesign.distributed import (
        MultiGPUTrainer as MultiGPUTrainer,
    )
    from calc.codesign.kernel_speed import (
        Timing as Timing,
    )
    from calc.codesign.kernel_speed import (
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
    )
    from calc.codesign.resolvent import (
        resolvent_diagonal as resolvent_diagonal,
    )
    from calc.codesign.resolvent import (
        running_backend as running_backend,
    )
    from calc.codesign.resolvent_problem import (
        ResolventError as ResolventError,
    )
    from calc.codesign.run_log import (
        LoggedRun as LoggedRun,
    )
    from calc.codesign.run_log import (
        LoggedStep as LoggedStep,
    )
    from calc.codesign.run_log import (
        RunLog as RunLog,
    )
    from calc.codesign.run_log import (
        read_run as read_run,
    )
    from calc.codesign.tensor_cores import (
        PaddedEmbedding as PaddedEmbedding,
    )
    from calc.codesign.tensor_cores import (
        PaddedLinear as PaddedLinear,
    )
    from calc.codesign.tensor_cores import (
        ShapeFinding as ShapeFinding,
    )
    from calc.codesign.tensor_cores import (
        is_tensor_core_compatible as is_tensor_core_compatible,
    )
    from calc.codesign.tensor_cores import (
        optimize_model_for_tensor_cores as optimize_model_for_tensor_cores,
    )
    from calc.codesign.tensor_cores import (
        pad_to_tensor_core_multiple as pad_to_tensor_core_multiple,
    )
    from calc.codesign.tensor_cores import (
        tensor_core_multiple as tensor_core_multiple,
    )
    from calc.codesign.tensor_cores import (
        validate_model_for_tensor_cores as validate_model_for_tensor_cores,
    )
    from calc.codesign.training_step import (
        Step as Step,
    )
    from calc.codesign.training_step import (
        Trainer as Trainer,
    )
    from calc.codesign.work import (
        WorkCounter as WorkCounter,
    )
    from calc.codesign.work import (
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
