"""Planning a training run: the best of all layouts, and what the run takes.

`search` lists the layouts that are legal, with the memory and the time of each; `precedents` says
which of their choices others have published, and `candidate` which are best; `plan` finds the
answer, and `answer` is what it says.
"""

from calc.planning.training.candidate import Candidate
from calc.planning.training.layout_search import Cuts, Task, all_cuts
from calc.planning.training.training_plan import TrainingPlan
from calc.planning.training.training_planner import plan_training, training_row

__all__ = ["Candidate", "Cuts", "Task", "TrainingPlan", "all_cuts", "plan_training", "training_row"]
