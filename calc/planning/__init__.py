"""Planning as one call: does a model fit, on how many devices, how fast, at what cost.

`calc.plan` puts the laws of `inference`, `collectives` and `cost` together for a batch of sequences
that read a prompt and write an answer; `plan_training` lays a run out, `plan_service` finds the
devices of a service whose requests come as they like, and `compare` sets machines or models side by
side. Batches, lengths and numbers of devices of `plan` may be arrays, which broadcast; points that
do not fit have NaN for their times. Devices are of one kind: to compare kinds, `calc.compare` them.
"""

from calc.planning.capacity import device_counts
from calc.planning.comparing.answer import Comparison
from calc.planning.comparing.compare import compare
from calc.planning.estimate import Bounds
from calc.planning.files import read_options
from calc.planning.service import ServicePlan, plan_service
from calc.planning.service.break_even import BreakEven, break_even
from calc.planning.serving import Plan, plan
from calc.planning.sweeps import grid, run_plans
from calc.planning.training import TrainingPlan, plan_training, training_row

__all__ = [
    "Bounds",
    "BreakEven",
    "Comparison",
    "Plan",
    "ServicePlan",
    "TrainingPlan",
    "break_even",
    "compare",
    "device_counts",
    "grid",
    "plan",
    "plan_service",
    "plan_training",
    "read_options",
    "run_plans",
    "training_row",
]
