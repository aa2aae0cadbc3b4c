"""Planning a service: `calc plan-service`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import add_planning, chosen, model_of
from calc.commands.output import answers
from calc.core.progress import ProgressBar
from calc.planning import ServicePlan, plan_service


def add_plan_service(parser: argparse.ArgumentParser) -> None:
    add_planning(parser, plan_service, "llama-3-70b", "dgx-h100; or a .toml")
    answers(parser, _plan_service, table=True, drawn="the times against the rate")


def _plan_service(options: argparse.Namespace) -> ServicePlan:
    asked: dict[str, Any] = chosen(options, plan_service)
    model = model_of(asked.pop("model"))
    with ProgressBar(1, "simulating") as bar:
        return plan_service(model, machines.of(options.device), **asked, on_progress=bar.update)
