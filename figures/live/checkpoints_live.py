"""Live figure of the share of a run's time that lasts, by the time between checkpoints."""

from __future__ import annotations

from calc import quantity, training
from calc.core.units import Quantity
from figures.live.model import Amount, Answer, Axis, Count, Drawing, Model, geometric

INTERVAL = Axis("Time between checkpoints", "min", log=True)
LASTS = Axis("Share of the time that lasts", "%")
INPUTS = (
    Count("devices", "Devices", "16384", 1, 10**7),
    Amount("between", "Time between failures of a device", "5.781 year", "year", 1e-4, 1e4),
    Amount("checkpoint", "Time of a checkpoint", "2.43 s", "s", 1e-3, 1e5),
    Amount("slow", "Beside it, one that takes", "5 min", "s", 1e-3, 1e5),
    Amount("restart", "Time of a restart", "10 min", "min", 0, 1e4),
)


def answer(
    devices: int, between: Quantity, checkpoint: Quantity, slow: Quantity, restart: Quantity
) -> Answer:
    """Checkpoints that come too often cost time, and those that come seldom lose work."""
    failures = training.time_between_failures(between, devices)
    times = {f"saved in {time}": time for time in (checkpoint, slow)}
    intervals = {name: training.checkpoint_interval(time, failures) for name, time in times.items()}

    def lasting(interval: Quantity, name: str) -> Quantity:
        return training.goodput(interval, times[name], restart, failures)

    middles = [INTERVAL.of(interval) for interval in intervals.values()]
    places = sorted({*geometric(min(middles) / 30, max(middles) * 30, 41), *middles})
    rows = [
        (name, x, LASTS.of(lasting(quantity(x, "min"), name))) for name in times for x in places
    ]
    mine = f"saved in {checkpoint}"
    best = intervals[mine]
    facts = {
        "A failure every": str(failures),
        "Best time between checkpoints": str(best.to("min")),
        "Goodput then": str(lasting(best, mine).to("%")),
    }
    python = (
        "from calc import training\n\n"
        f"failures = training.time_between_failures({str(between)!r}, {devices})\n"
        f"interval = training.checkpoint_interval({str(checkpoint)!r}, failures)\n"
        "print(interval.to('min'))\n"
        f"print(training.goodput(interval, {str(checkpoint)!r}, {str(restart)!r},"
        " failures).to('%'))"
    )
    dots = [
        (f"best if {name}", INTERVAL.of(interval), LASTS.of(lasting(interval, name)))
        for name, interval in intervals.items()
    ]
    caption = (
        f"Goodput of {devices} devices, each of which fails every {between}, by the time between"
        f" checkpoints of {checkpoint}: the best is {best.to('min')}."
    )
    return Answer(rows, facts, caption, python, dots=dots)


MODEL = Model("Checkpoints", INPUTS, Drawing(INTERVAL, LASTS), answer)
