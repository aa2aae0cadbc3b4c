"""Planning a service: requests that come as they like, limits on their times, fewest devices.

`load` has the requests and `asked` the limits, `steps` the times of steps by the laws, `queue` what
a replica does under load in closed form, and `simulation` the same event by event. `design` puts
replicas together, `search` finds the design with the fewest devices for `plan`, and `answer` is
what it says.

Plans are pickled as a whole, so that many are made on any executor:
`executor.map(functools.partial(plan_service, "llama-3-70b", load=…, limits=…), machines)`.
"""

from calc.core.public import on_first_use

__getattr__, __dir__ = on_first_use(__name__)
