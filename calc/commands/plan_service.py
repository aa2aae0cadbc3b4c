"""Planning a service: `calc plan-service`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import add_config, add_options, chosen, model_of
from calc.commands.output import Answer, answers, sections
from calc.core.progress import ProgressBar
from calc.planning import plan_service


def add_plan_service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a name that `calc list` prints, such as llama-3-70b, or a config.json"
    )
    parser.add_argument(
        "device", help="a machine or a device that `calc list` prints, such as dgx-h100; or a .toml"
    )
    add_options(parser, plan_service)
    add_config(parser, plan_service)
    answers(parser, _plan_service, table=True, drawn="the times against the rate")


def _plan_service(options: argparse.Namespace) -> Answer:
    asked: dict[str, Any] = chosen(options, plan_service)
    model = model_of(asked.pop("model"))
    with ProgressBar(1, "simulating") as bar:
        plan = plan_service(model, machines.of(options.device), **asked, on_progress=bar.update)
    facts: dict[str, Any] = {
        "rows": plan.rows(),
        "design": str(plan.design),
        "devices": plan.devices,
        "least_devices": plan.least_devices,
        "ttft": plan.ttft,
        "tpot": plan.tpot,
        "closed_form": plan.load,
        "most_requests": plan.most_requests,
        "throughput": plan.throughput,
        "cost_per_token": plan.cost_per_token,
        "energy_per_token": plan.energy_per_token,
        "why_not_others": plan.why_not_others,
        "what_would_change": plan.what_would_change,
        "assumptions": plan.assumptions,
    }
    titles = {
        "why_not_others": "Why not another design",
        "what_would_change": "What would change it",
        "assumptions": "Assumed",
    }
    return Answer(facts, lambda: [*plan.table().split("\n"), *sections(facts, titles)], plan.draw)
