"""Planning a service: requests that come as they like, limits on their times, fewest devices.

`load` has the requests and `asked` the limits, `steps` the times of steps by the laws, `queue` what
a replica does under load in closed form, and `simulation` the same event by event. `design` puts
replicas together, `search` finds the design with the fewest devices for `plan`, and `answer` is
what it says.

Plans are pickled as a whole, so that many are made on any executor:
`executor.map(functools.partial(plan_service, "llama-3-70b", ttft="1 s", …), machines)`.
"""

from calc.planning.service.answer import ServicePlan
from calc.planning.service.asked import Service
from calc.planning.service.design import Design, Pool
from calc.planning.service.load import Trace, poisson, read_trace
from calc.planning.service.observed import Observed, observe
from calc.planning.service.plan import plan_service
from calc.planning.service.queue import Demand, Load, Replica
from calc.planning.service.several import ServicePlans, plan_services
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.steps import Answers, Group, Steps

__all__ = [
    "Answers",
    "Demand",
    "Design",
    "Group",
    "Load",
    "Observed",
    "Pool",
    "Replica",
    "Run",
    "Service",
    "ServicePlan",
    "ServicePlans",
    "Steps",
    "Trace",
    "observe",
    "plan_service",
    "plan_services",
    "poisson",
    "read_trace",
    "simulate",
]
