"""Time of planning: a million points in one call, all layouts of a training run, and mlsysim.

    python -m benchmarks.plan_speed [--mlsysim PYTHON]

PYTHON is the interpreter of an environment that holds mlsysim 0.3.0, to compare with, whose engine
answers for one point.
"""

from __future__ import annotations

import argparse

import numpy

from benchmarks.calc_speed import in_turns, printed
from calc import hardware, models
from calc.core.report import values
from calc.planning import Plan, Training, TrainingPlan, plan, plan_training

# Scenarios in a second of the solver that answers the same question, for the same model and device.
MLSYSIM = """
import json, timeit, mlsysim
from mlsysim.engine.solvers.serving import ServingModel
model, device = mlsysim.Models.Language.Llama3_70B, mlsysim.Hardware.Cloud.H100
calls = {
    "Engine.solve": lambda: mlsysim.Engine.solve(model, device, batch_size=8),
    "ServingModel.solve": lambda: ServingModel().solve(model, device, seq_len=1000, batch_size=8),
}
print(json.dumps({n: 200 / min(timeit.repeat(c, number=200, repeat=7)) for n, c in calls.items()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="What planning costs.")
    parser.add_argument("--mlsysim", metavar="PYTHON", help="an interpreter that has mlsysim")
    options = parser.parse_args()
    # A grid of a million, and as many points that have nothing in common.
    batches = numpy.arange(1, 1001)[:, None]
    prompts = numpy.arange(1, 8001, 8)
    random = numpy.random.default_rng(0)
    grid = {"batch": batches, "prompt": prompts}
    points = {
        "batch": random.integers(1, 1001, 10**6),
        "prompt": random.integers(1, 8001, 10**6),
        "devices": 2 ** random.integers(1, 5, 10**6),
    }
    seconds = in_turns(
        {
            "one point": lambda: answers(batch=8, prompt=1000),
            "a grid of a million": lambda: answers(**grid, devices=8),
            "a grid, devices found": lambda: answers(**grid),
            "a million, all arrays": lambda: answers(**points),
        },
        turns=7,
    )
    print("\nPlans of Llama 3 70B on the H100, every answer read")
    for name, time in seconds.items():
        print(f"  {name:<24}{time * 1e3:8.1f} ms")
    ratio = seconds["one point"] / seconds["a grid of a million"] * 1e6
    print(f"  a point alone / in grid {ratio:8.0f}")
    layouts = in_turns({"all": lambda: search().best.time}, turns=5)["all"]
    best = search()
    print(f"\nA run of Llama 3.1 405B on {best.devices} H100s, best of {best.searched:,} layouts")
    print(f"  the whole plan          {layouts * 1e3:8.0f} ms")
    if options.mlsysim:
        rates = printed(options.mlsysim, MLSYSIM)
        print("\nPoints in a second, and how many times those of mlsysim")
        for name, rate in rates.items():
            print(f"  mlsysim {name:<21}{rate:10.0f}")
        for name in list(seconds)[1:]:
            ratios = ", ".join(f"{1e6 / seconds[name] / rate:.0f}" for rate in rates.values())
            print(f"  {name:<24}{1e6 / seconds[name]:15.0f}  {ratios} times")


def search() -> TrainingPlan:
    """A training run laid out; after the first time, the times of its messages are known."""
    return plan_training(
        "llama-3-405b",
        "dgx-h100",
        Training("15.6T", sequences=2048, length=8192),
        devices=16384,
        software="megatron",
    )


def answers(**counts: object) -> list[object]:
    """Return all values that a plan has of each point."""
    made: Plan = plan(
        models.get("llama-3-70b"),
        hardware.H100,
        generated=100,
        price="3 USD/hour",
        **counts,  # type: ignore[arg-type]
    )
    times = "time_to_first_token time_per_token answer_time throughput"
    answers_read = values(made, f"fits memory {times} cost_per_token energy_per_token binds")
    return list(answers_read.values())


if __name__ == "__main__":
    main()
