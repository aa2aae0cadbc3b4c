"""Time of planning: one division against a search, and a million plans in one call.

    python -m benchmarks.simulation_speed

What is compared is run in turns, and medians are printed with their ratios.
"""

from __future__ import annotations

import numpy

from benchmarks.calc_speed import in_turns
from calc import quantity
from calc.simulation import (
    PRECISIONS,
    LayerSizes,
    adjust_batch_size_to_memory,
    estimate_total_memory,
    plan_batches,
)

MODEL = LayerSizes.dense(784, 64, 10)
REQUESTED = 4096
BUDGET = quantity("1 MiB")


def main() -> None:
    one_plan()
    million_plans()


def one_plan() -> None:
    """The largest batch that fits, by formula and by bisection over the same estimate."""
    batch, estimates = bisected()
    assert batch == planned()
    seconds = in_turns({"closed form": planned, "binary search": bisected}, turns=201)
    print("\nThe largest batch up to 4096 in 1 MiB")
    for name, time in seconds.items():
        print(f"  {name:<24}{time * 1e6:8.0f} µs")
    print(f"  estimates               {2:>8} and {estimates}")
    print(f"  search / closed form    {seconds['binary search'] / seconds['closed form']:8.1f}")


def planned() -> int:
    return adjust_batch_size_to_memory(MODEL, REQUESTED, BUDGET).batch


def bisected() -> tuple[int, int]:
    """The batch, and how often the memory was estimated on the way to it."""
    held, low, high, estimates = BUDGET.m_as("byte"), 0, REQUESTED, 0
    while low < high:
        middle = (low + high + 1) // 2
        estimates += 1
        if estimate_total_memory(MODEL, middle).m_as("byte") <= held:
            low = middle
        else:
            high = middle - 1
    return low, estimates


def million_plans() -> None:
    """One call for a million questions, against the calls that it replaces."""
    count = 1_000_000
    random = numpy.random.default_rng(0)
    budgets = quantity(random.uniform(1e5, 1e7, count), "byte")
    requested = random.integers(1, REQUESTED, count)
    precisions = numpy.array(list(PRECISIONS))[random.integers(0, len(PRECISIONS), count)]
    seconds = in_turns(
        {
            "a million plans": lambda: plan_batches(MODEL, requested, budgets, precisions),
            "one plan": planned,
        },
        turns=9,
    )
    together, alone = seconds["a million plans"], seconds["one plan"]
    print("\nA million plans in one call")
    print(f"  seconds                 {together:8.3f}")
    print(f"  one by one / together   {alone * count / together:8.0f}")


if __name__ == "__main__":
    main()
