"""Goodput of services within limits: MLPerf's scenarios, as published and as planned.

A result of MLPerf Inference is the rate of written tokens at which 99 % of requests keep the limits
of its scenario, mlperf.conf of github.com/mlcommons/inference at 001712e9: for Llama 2 70B a first
token within 2 s and each after it within 200 ms (Server), or within 450 ms and 40 ms (Interactive);
Offline has no limits. Answers have 294.45 tokens on average (README.md there). Prompts are taken to
be as long, by the rule of `calc.published.serving_rows`, and as spread of both half of the mean and
all of it are tried: counted since were 222 tokens, 0.77 and 0.79 [mlperf-token-lengths].
Caches take a byte a number, as in TensorRT-LLM.
Nothing is fitted to the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from calc.derivations.service_under_load import Goodput
from calc.planning import plan_service
from calc.planning.plan_nouns import Limits, Load, Server
from calc.planning.service import Demand, Replica, ServicePlan
from calc.planning.service.design_search import CHUNKS
from calc.published import conditions, reading
from calc.published.reading import UnusableRowError
from calc.steps.expectation import Missing

LIMITS = {"Offline": (math.inf, math.inf), "Server": (2.0, 0.2), "Interactive": (0.45, 0.04)}
TOKENS = 294.45
SPREADS = (0.5, 1.0)
PERCENTILE = 0.99
MODEL = "llama2-70b-99.9"
FORMATS = {"fp8": "fp8", "fp4": "nvfp4"}
"""Formats of weights, by what a row states. Those of v4.1 state the format that weights began with,
FP16, in which some would not fit their devices: they are left out."""


def compare() -> Iterator[Goodput]:
    """Each row of the model on a machine whose kernels were measured."""
    for row in reading.rows("serving"):
        stated = row["scenario"] in LIMITS and row["dtype_weights"] in FORMATS
        if row["model"] != MODEL or not stated:
            continue
        try:
            machine, devices = conditions.machine(row), conditions.devices(row)
        except UnusableRowError:
            continue
        plans = [_plan(machine.key, str(row["dtype_weights"]), spread) for spread in SPREADS]
        if any(isinstance(plan.design.pools[0].answers.expected, Missing) for plan in plans):
            continue  # rates of its kernels were not measured
        limits = LIMITS[str(row["scenario"])]
        rate = tuple(_most(plan, devices, *limits) for plan in plans)
        yield Goodput(row, row.measured["output_tokens_per_s"], rate)


@cache
def _plan(machine: str, dtype: str, spread: float) -> ServicePlan:
    """A plan of a request a second, for its replicas: all groups with their memory and steps."""
    return plan_service(
        "llama-2-70b",
        machine,
        Load(1, TOKENS, TOKENS, prompt_spread=spread, generated_spread=spread, requests=1000),
        Limits("100 s", "10 s"),
        server=Server(FORMATS[dtype], "fp8", dtype, "tensorrt-llm"),
        pools="mixed",
    )


def _most(plan: ServicePlan, devices: int, ttft: float, tpot: float) -> float:
    """Tokens a second of so many devices, in the best of the groups."""
    pools = [design.pools[0] for design in plan.designs]
    return max(
        devices
        // pool.size
        * int(pool.group.data)
        * _rate(pool.replica, pool.demand, ttft, tpot)
        * TOKENS
        for pool in pools
    )


def _rate(replica: Replica, demand: Demand, ttft: float, tpot: float) -> float:
    chunks = [chunk for chunk in CHUNKS if chunk <= replica.steps.most_tokens]
    copies = [replace(replica, chunk=chunk) for chunk in chunks]
    return max(copy.most(demand, PERCENTILE, ttft, tpot) for copy in copies)
