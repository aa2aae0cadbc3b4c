"""Planning a service: `calc plan-service`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import add_config, add_options, chosen, model_of
from calc.commands.output import answers
from calc.core.progress import ProgressBar
from calc.planning import ServicePlan, plan_service


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


def _plan_service(options: argparse.Namespace) -> ServicePlan:
    asked: dict[str, Any] = chosen(options, plan_service)
    model = model_of(asked.pop("model"))
    with ProgressBar(1, "simulating") as bar:
        return plan_service(model, machines.of(options.device), **asked, on_progress=bar.update)
