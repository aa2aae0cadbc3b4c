from calc.simulation.adapted_models import (
    SklearnNetwork as SklearnNetwork,
    TorchNetwork as TorchNetwork,
    TrainableModel as TrainableModel,
)
from calc.simulation.largest_batch import (
    BatchChoice as BatchChoice,
    BatchPlans as BatchPlans,
    adjust_batch_size_to_memory as adjust_batch_size_to_memory,
    plan_batches as plan_batches,
)
from calc.simulation.budgets import memory_violations as memory_violations
from calc.simulation.constrained import (
    ConstrainedRun as ConstrainedRun,
    HardwarePlan as HardwarePlan,
    HardwareSimulationConfig as HardwareSimulationConfig,
    apply_precision_constraint as apply_precision_constraint,
    prepare_hardware_constrained_run as prepare_hardware_constrained_run,
    run_training_with_hardware_constraints as run_training_with_hardware_constraints,
)
from calc.simulation.samples import Split as Split, digits as digits
from calc.simulation.frames import write_table as write_table
from calc.simulation.metrics import (
    collect_metrics as collect_metrics,
    inference_energy as inference_energy,
    measured_latency as measured_latency,
    model_memory as model_memory,
)
from calc.simulation.network import History as History, NeuralNetwork as NeuralNetwork
from calc.simulation.pareto import pareto_frontier as pareto_frontier
from calc.simulation.low_precision import (
    PRECISIONS as PRECISIONS,
    Arithmetic as Arithmetic,
    arithmetic as arithmetic,
)
from calc.simulation.pruning import prune as prune
from calc.simulation.sizing import (
    MODES as MODES,
    OPTIMIZER_STATES as OPTIMIZER_STATES,
    LayerSizes as LayerSizes,
    SizedModel as SizedModel,
    elements_per_sample as elements_per_sample,
    estimate_activation_memory as estimate_activation_memory,
    estimate_parameter_memory as estimate_parameter_memory,
    estimate_total_memory as estimate_total_memory,
    int8_overhead as int8_overhead,
    sizes as sizes,
    sklearn_sizes as sklearn_sizes,
    torch_sizes as torch_sizes,
)
from calc.simulation.slowdown import (
    apply_compute_slowdown as apply_compute_slowdown,
    extra_time as extra_time,
    lost_speed as lost_speed,
)
from calc.simulation.storage import storage_bytes as storage_bytes
from calc.simulation.summaries import summarize_sweep as summarize_sweep
from calc.simulation.sweep import (
    Experiment as Experiment,
    Grid as Grid,
    SweepStoppedError as SweepStoppedError,
    Variant as Variant,
    run_sweep as run_sweep,
)
