"""Planning a service: requests that come as they like, limits on their times, fewest devices.

`load` has the requests, `steps` the times of steps by the laws, `queue` what a replica does under
load in closed form, `simulation` the same event by event, and `plan` the search.
"""

from calc.planning.service.load import Trace, poisson, read_trace
from calc.planning.service.plan import Design, Pool, Service, ServicePlan, plan_service
from calc.planning.service.queue import Demand, Load, Replica
from calc.planning.service.simulation import Run, simulate
from calc.planning.service.steps import Answers, Group, Steps

__all__ = [
    "Answers",
    "Demand",
    "Design",
    "Group",
    "Load",
    "Pool",
    "Replica",
    "Run",
    "Service",
    "ServicePlan",
    "Steps",
    "Trace",
    "plan_service",
    "poisson",
    "read_trace",
    "simulate",
]
