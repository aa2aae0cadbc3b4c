"""Planning as one call: does a model fit, on how many devices, how fast, at what cost.

`calc.plan` puts the laws of `inference`, `collectives` and `cost` together for a batch of sequences
that read a prompt and write an answer. Batches, lengths and numbers of devices may be arrays, which
broadcast; points that do not fit have NaN for their times. Devices are of one kind: to compare
kinds, `calc.compare` them.
"""

from calc.planning.capacity import device_counts
from calc.planning.comparing import Comparison, compare
from calc.planning.estimate import Bounds
from calc.planning.files import read_options
from calc.planning.serving import Plan, plan
from calc.planning.training import TrainingPlan, plan_training

__all__ = [
    "Bounds",
    "Comparison",
    "Plan",
    "TrainingPlan",
    "compare",
    "device_counts",
    "plan",
    "plan_training",
    "read_options",
]
