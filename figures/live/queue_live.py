"""Live figure of the waiting time of requests, by how busy the servers of one queue are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from calc import queueing
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Count, Drawing, Model

BUSY = Axis("Utilisation")
WAIT = Axis("Wait", "s")
LONGEST = 20  # service times: what is drawn where the reader asks for less
INPUTS = (
    Amount("service", "Service time", "1 s", "s", 1e-9, 1e6),
    Amount("utilization", "Utilisation", "0.8", "", 0, 0.99),
    Count("servers", "Servers of the queue", "4", 1, 1000),
    Amount("beyond", "Share that waits longer", "0.01", "", 1e-6, 0.5),
    Amount("spread", "Spread of service times, v", "1", "", 0, 10),
)


def answer(
    service: Quantity, utilization: Quantity, servers: int, beyond: Quantity, spread: Quantity
) -> Answer:
    """The mean and the tail, beside the tails of one server and of four times as many."""
    counts = sorted({1, servers, 4 * servers})
    laws: dict[str, Callable[[float], Quantity]] = {
        _of(count): partial(queueing.waiting_tail, service, servers=count, beyond=beyond)
        for count in counts
    }
    laws["mean"] = lambda busy: queueing.waiting_time(service, busy, servers)
    at = utilization.m_as("")
    most = max(LONGEST * service, *(law(at) for law in laws.values()))
    places = sorted({*(step / 50 for step in range(48)), 0.96, 0.97, 0.98, 0.985, 0.99, at})
    rows = [
        (name, busy, WAIT.of(wait))
        for name, law in laws.items()
        for busy in places
        if (wait := law(busy)) <= most
    ]
    facts = {
        "Mean wait": str(laws["mean"](at)),
        f"Wait that {beyond.to('%')} exceed": str(laws[_of(servers)](at)),
        "Find all servers busy": str(queueing.waiting_probability(at, servers).to("%")),
        "Mean wait at one server with this spread": str(
            queueing.single_server_wait(service, at, spread)
        ),
    }
    python = (
        "from calc import queueing\n\n"
        f"print(queueing.waiting_time({str(service)!r}, {at!r}, {servers}))\n"
        f"print(queueing.waiting_tail({str(service)!r}, {at!r}, {servers}, {beyond.m_as('')!r}))\n"
        f"print(queueing.single_server_wait({str(service)!r}, {at!r}, {spread.m_as('')!r}))"
    )
    dots = [(name, at, WAIT.of(law(at))) for name, law in laws.items()]
    caption = (
        f"The wait that {beyond.to('%')} of requests of {service} each exceed, by how busy the"
        f" servers of their queue are, and the mean of {_of(servers)}; dots are at"
        f" {utilization.to('%')}."
    )
    return Answer(rows, facts, caption, python, dots=dots)


def _of(servers: int) -> str:
    return f"{servers} {'server' if servers == 1 else 'servers'}"


MODEL = Model("Waiting in a queue", INPUTS, Drawing(BUSY, WAIT), answer)
