"""How much of a run's time lasts, by the time between its checkpoints."""

from __future__ import annotations

from calc import quantity, training
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Count, Drawing, Model, geometric

INTERVAL = Axis("Time between checkpoints", "min", log=True)
LASTS = Axis("Share of the time that lasts", "%")
INPUTS = (
    Count("devices", "Devices", "16384", 1, 10**7),
    Amount("between", "Time between failures of a device", "5 year", "year", 1e-4, 1e4),
    Amount("checkpoint", "Time of a checkpoint", "10 s", "s", 1e-3, 1e5),
    Amount("restart", "Time of a restart", "5 min", "min", 0, 1e4),
)


def answer(devices: int, between: Quantity, checkpoint: Quantity, restart: Quantity) -> Answer:
    """Checkpoints that come too often cost time, and those that come seldom lose work."""
    failures = training.time_between_failures(between, devices)
    best = training.checkpoint_interval(checkpoint, failures)

    def lasting(interval: Quantity) -> Quantity:
        return training.goodput(interval, checkpoint, restart, failures)

    middle = INTERVAL.of(best)
    rows = [
        ("goodput", x, LASTS.of(lasting(quantity(x, "min"))))
        for x in sorted({*geometric(middle / 30, middle * 30, 31), middle})
    ]
    facts = {
        "A failure every": str(failures),
        "Best time between checkpoints": str(best.to("min")),
        "Goodput then": str(lasting(best).to("%")),
    }
    python = (
        "from calc import training\n\n"
        f"failures = training.time_between_failures({str(between)!r}, {devices})\n"
        f"interval = training.checkpoint_interval({str(checkpoint)!r}, failures)\n"
        "print(interval.to('min'))\n"
        f"print(training.goodput(interval, {str(checkpoint)!r}, {str(restart)!r},"
        " failures).to('%'))"
    )
    dots = [("best", middle, LASTS.of(lasting(best)))]
    caption = (
        f"Goodput of {devices} devices, each of which fails every {between}, by the time between"
        f" checkpoints of {checkpoint}: the best is {best.to('min')}."
    )
    return Answer(rows, facts, caption, python, dots=dots)


MODEL = Model("Checkpoints", INPUTS, Drawing(INTERVAL, LASTS), answer)
