"""Laying out a training run: `calc plan-training`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import add_planning, chosen, model_of, split_at_commas
from calc.commands.output import answers
from calc.core.errors import InputError
from calc.core.progress import ProgressBar
from calc.planning import TrainingPlan, plan_training


def add_plan_training(parser: argparse.ArgumentParser) -> None:
    add_planning(parser, plan_training, "llama-3-405b", "dgx-h100; or a .toml")
    figure = "the time of a step by its parts, for the ten best layouts,"
    answers(parser, _plan_training, table=True, drawn=figure)


def _plan_training(options: argparse.Namespace) -> TrainingPlan:
    asked: dict[str, Any] = chosen(options, plan_training)
    model = model_of(asked.pop("model"))
    if asked["layout"] is not None:
        asked["layout"] = dict(map(_degree, split_at_commas(asked["layout"])))
    with ProgressBar(1, "planning") as bar:
        return plan_training(model, machines.of(options.device), **asked, on_progress=bar.update)


def _degree(text: str) -> tuple[str, int]:
    name, equals, degree = text.partition("=")
    if not equals or not degree.strip().isdigit():
        raise InputError(
            f"layout needs degrees by their names, as in tensor=8,pipeline=16; got {text!r}"
        )
    return name.strip(), int(degree)
