"""Planning a training run: the best of all layouts, and what the run takes.

`search` lists the layouts that are legal, with the memory and the time of each; `precedents` says
which of their choices others have published; `plan` is the answer, `report` and `drawing` what
people see of it.
"""

from calc.planning.training.plan import Candidate, TrainingPlan, plan_training, training_row
from calc.planning.training.search import Cuts, Run, all_cuts

__all__ = ["Candidate", "Cuts", "Run", "TrainingPlan", "all_cuts", "plan_training", "training_row"]
