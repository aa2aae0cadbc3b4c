from calc.codesign.accuracy import (
    INPUT_KINDS as INPUT_KINDS,
    Accuracy as Accuracy,
    Onset as Onset,
    overflow_onset as overflow_onset,
    validate_mixed_precision_accuracy as validate_mixed_precision_accuracy,
)
from calc.codesign.accumulation import (
    GradientAccumulationTrainer as GradientAccumulationTrainer,
    breaks_equality as breaks_equality,
)
from calc.codesign.adaptive_batch import (
    BatchChange as BatchChange,
    DynamicBatchSizeTrainer as DynamicBatchSizeTrainer,
    SimulatedMemory as SimulatedMemory,
    is_out_of_memory as is_out_of_memory,
)
from calc.codesign.training_checkpoints import (
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
from calc.codesign.distributed import MultiGPUTrainer as MultiGPUTrainer
from calc.codesign.kernel_speed import (
    Timing as Timing,
    benchmark_mixed_precision as benchmark_mixed_precision,
)
from calc.codesign.mixed_precision import MixedPrecisionTrainer as MixedPrecisionTrainer
from calc.codesign.offload import CPUOffloadingOptimizer as CPUOffloadingOptimizer
from calc.codesign.resolvent import (
    BackendWarning as BackendWarning,
    resolvent_diagonal as resolvent_diagonal,
    running_backend as running_backend,
)
from calc.codesign.resolvent_problem import ResolventError as ResolventError
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
from calc.codesign.training_step import Step as Step, Trainer as Trainer
from calc.codesign.work import WorkCounter as WorkCounter, saved_tensor_bytes as saved_tensor_bytes
