"""Live figure of the bandwidth that a link reaches, by the size of a message."""

from __future__ import annotations

from calc import links, quantity
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Drawing, Model, geometric

SIZE = Axis("Message", "byte", log=True)
RATE = Axis("Effective bandwidth", "GB/s", log=True)
INPUTS = (
    Amount("size", "Message", "1 MB", "byte", 1, 1e15),
    Amount("bandwidth", "Bandwidth, each way", "50 GB/s", "byte/s", 1, 1e16),
    Amount("latency", "Latency", "1 us", "s", 0, 1e3),
)


def answer(size: Quantity, bandwidth: Quantity, latency: Quantity) -> Answer:
    """The rate of messages of every size, and the size that reaches half of the bandwidth."""
    at = SIZE.of(size)
    sizes = sorted({*geometric(min(at, 1e2), max(at, 1e10), 33), at})
    rows = [
        (
            "one message at a time",
            x,
            RATE.of(links.effective_bandwidth(quantity(x, "byte"), bandwidth, latency)),
        )
        for x in sizes
    ]
    reached = links.effective_bandwidth(size, bandwidth, latency)
    half = links.half_performance_size(bandwidth, latency)
    facts = {
        "Time": str(links.transfer_time(size, bandwidth, latency)),
        "Effective bandwidth": str(reached),
        "Half of the bandwidth from": str(half),
    }
    call = f"{str(size)!r}, {str(bandwidth)!r}, {str(latency)!r}"
    python = (
        "from calc import links\n\n"
        f"print(links.transfer_time({call}))\nprint(links.effective_bandwidth({call}))"
    )
    levels = [("bandwidth", RATE.of(bandwidth))]
    caption = (
        f"Messages one at a time over {bandwidth} with {latency} of latency: {size} reaches"
        f" {reached}, and {half} half of the bandwidth."
    )
    return Answer(
        rows, facts, caption, python, dots=[(str(size), at, RATE.of(reached))], levels=levels
    )


MODEL = Model("A link", INPUTS, Drawing(SIZE, RATE), answer)
