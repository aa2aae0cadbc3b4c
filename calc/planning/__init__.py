"""Planning as one call: does a model fit, on how many devices, how fast, at what cost.

`calc.plan` puts the laws of `inference`, `collectives` and `cost` together for a batch of sequences
that read a prompt and write an answer; `plan_training` lays a run out, and `plan_service` finds the
devices of a service whose requests come as they like. Batches, lengths and numbers of devices of
`plan` may be arrays, which broadcast; points that do not fit have NaN for their times. Devices are
of one kind: to compare kinds, plan for each.
"""

from calc.planning.capacity import device_counts
from calc.planning.estimate import Bounds
from calc.planning.service import ServicePlan, plan_service
from calc.planning.serving import Plan, plan
from calc.planning.sweeps import grid, run_plans
from calc.planning.training import TrainingPlan, plan_training, training_row

__all__ = [
    "Bounds",
    "Plan",
    "ServicePlan",
    "TrainingPlan",
    "device_counts",
    "grid",
    "plan",
    "plan_service",
    "plan_training",
    "run_plans",
    "training_row",
]
