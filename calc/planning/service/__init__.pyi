from calc.planning.service.service_plan import ServicePlan as ServicePlan
from calc.planning.service.asked import Service as Service
from calc.planning.service.design import Design as Design, Pool as Pool
from calc.planning.service.load import Trace as Trace, poisson as poisson, read_trace as read_trace
from calc.planning.service.loops import Clients as Clients, Loop as Loop, closed_loop as closed_loop
from calc.planning.service.observed import Observed as Observed, observe as observe
from calc.planning.service.service_planner import plan_service as plan_service
from calc.planning.service.queue import Demand as Demand, Replica as Replica, UnderLoad as UnderLoad
from calc.planning.service.several import (
    ServicePlans as ServicePlans,
    plan_services as plan_services,
)
from calc.planning.service.simulation import Run as Run, simulate as simulate
from calc.planning.service.step_tables import Answers as Answers, Steps as Steps
