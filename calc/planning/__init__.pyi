from calc.planning.comparing.comparison import Comparison as Comparison
from calc.planning.comparing.compare import compare as compare
from calc.planning.results import Bounds as Bounds
from calc.planning.plan_nouns import (
    Draft as Draft,
    Failures as Failures,
    Limits as Limits,
    Load as Load,
    Prices as Prices,
    Search as Search,
    Server as Server,
    Tiers as Tiers,
    Training as Training,
)
from calc.planning.plan_files import read_options as read_options
from calc.planning.service import ServicePlan as ServicePlan, plan_service as plan_service
from calc.planning.service.break_even import BreakEven as BreakEven, break_even as break_even
from calc.planning.serving_plan import Plan as Plan, plan as plan
from calc.planning.sweeps import grid as grid, run_plans as run_plans
from calc.planning.training.reinforcement_plan import (
    ReinforcementPlan as ReinforcementPlan,
    plan_reinforcement as plan_reinforcement,
)
from calc.planning.training import (
    TrainingPlan as TrainingPlan,
    plan_training as plan_training,
    training_row as training_row,
)
