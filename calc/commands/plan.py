"""Serving a model on devices: `calc plan`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import add_planning, chosen, model_of, numbers, split_at_commas
from calc.commands.output import answers
from calc.core.errors import InputError
from calc.planning import Plan, plan
from calc.planning.estimate import COUNTS
from calc.planning.serving import Plans


def add_plan(parser: argparse.ArgumentParser) -> None:
    usually = "dgx-b200, or h100 for the machine in which it usually stands; or a .toml"
    add_planning(parser, plan, "llama-3-70b", f"{usually}; several by commas")
    parser.add_argument(
        "--parts",
        action="store_true",
        help="print the parts of the expected passes too, with their shares and their sources",
    )
    parser.epilog = (
        f"{', '.join(COUNTS)}: a whole number, or several with commas, as in 1,8,64: every"
        " combination is planned."
    )
    answers(parser, _plan, table=True)


def _plan(options: argparse.Namespace) -> Plans:
    asked = chosen(options, plan)
    asked |= _grid({name: asked.pop(name) for name in COUNTS if asked[name] is not None})
    model = model_of(asked.pop("model"))
    if isinstance(model, str) and "," in model:
        raise InputError(
            f"calc plan takes one model, and several devices and numbers with commas; got {model!r}"
        )
    devices = [machines.of(each) for each in split_at_commas(options.device)]
    plans: list[Plan] = []
    refused: dict[str, str] = {}
    for device in devices:
        try:
            plans.append(plan(model, device, **asked))
        except InputError as error:
            if device is devices[-1] and not plans:
                raise
            refused[device.device.key] = str(error)
    answer = Plans(tuple(plans), refused, options.parts)
    if options.parts and not answer.of_one_point:
        raise InputError(
            f"--parts prints those of one plan, and {len(answer.points)} are asked for: give one"
            " device and one number of each"
        )
    return answer


def _grid(counts: dict[str, Any]) -> dict[str, Any]:
    """A number for each count; of several with commas every combination, an axis for each count."""
    given = {name: numbers(name, str(text), "1,8,64") for name, text in counts.items()}
    axes = [name for name, values in given.items() if len(values) > 1]
    grid: dict[str, Any] = {}
    for name, values in given.items():
        column: list[Any] = values
        for _ in axes[axes.index(name) + 1 :] if name in axes else []:
            column = [[each] for each in column]
        grid[name] = column if name in axes else values[0]
    return grid
