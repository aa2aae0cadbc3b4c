"""How long requests wait, by how busy the servers of one queue are."""

from __future__ import annotations

from collections.abc import Callable

from calc import queueing
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Count, Drawing, Model

BUSY = Axis("Utilisation")
WAIT = Axis("Wait", "ms")
INPUTS = (
    Amount("service", "Service time", "100 ms", "s", 1e-9, 1e6),
    Amount("utilization", "Utilisation", "0.8", "", 0, 0.99),
    Count("servers", "Servers of the queue", "10", 1, 1000),
    Amount("beyond", "Share that waits longer", "0.01", "", 1e-6, 0.5),
    Amount("spread", "Spread of service times, v", "1", "", 0, 10),
)


def answer(
    service: Quantity, utilization: Quantity, servers: int, beyond: Quantity, spread: Quantity
) -> Answer:
    """The mean and the tail with several servers; with one, what the spread makes of the mean."""
    laws: dict[str, Callable[[float], Quantity]] = {
        "mean": lambda busy: queueing.waiting_time(service, busy, servers),
        "tail": lambda busy: queueing.waiting_tail(service, busy, servers, beyond),
        "one server, spread v": lambda busy: queueing.single_server_wait(service, busy, spread),
    }
    at = utilization.m_as("")
    places = sorted({*(step / 25 for step in range(24)), 0.94, 0.96, 0.98, at})
    rows = [(name, busy, WAIT.of(law(busy))) for name, law in laws.items() for busy in places]
    facts = {
        "Mean wait": str(laws["mean"](at)),
        f"Wait that {beyond.to('%')} exceed": str(laws["tail"](at)),
        "Find all servers busy": str(queueing.waiting_probability(at, servers).to("%")),
        "Mean wait at one server with this spread": str(laws["one server, spread v"](at)),
    }
    python = (
        "from calc import queueing\n\n"
        f"print(queueing.waiting_time({str(service)!r}, {at!r}, {servers}))\n"
        f"print(queueing.waiting_tail({str(service)!r}, {at!r}, {servers}, {beyond.m_as('')!r}))\n"
        f"print(queueing.single_server_wait({str(service)!r}, {at!r}, {spread.m_as('')!r}))"
    )
    dots = [(name, at, WAIT.of(law(at))) for name, law in laws.items()]
    caption = (
        f"Waiting for {servers} {'server' if servers == 1 else 'servers'} that take {service} each,"
        f" by how busy they are; dots are at {utilization.to('%')}."
    )
    return Answer(rows, facts, caption, python, dots=dots)


MODEL = Model("Waiting in a queue", INPUTS, Drawing(BUSY, WAIT), answer)
