"""Serving a model on devices: `calc plan`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.catalog import machines
from calc.commands.options import (
    add_config,
    add_options,
    chosen,
    model_of,
    numbers,
    split_at_commas,
)
from calc.commands.output import Answer, answers, sections
from calc.core.errors import InputError
from calc.planning import Plan, plan, report

COUNTS = ("devices", "batch", "prompt", "generated")


def add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a name that `calc list` prints, such as llama-3-70b, or a config.json"
    )
    parser.add_argument(
        "device",
        help="a machine or a device that `calc list` prints, such as dgx-b200, or h100 for the"
        " machine in which it usually stands; or a .toml; several by commas",
    )
    add_options(parser, plan)
    add_config(parser, plan)
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


def _plan(options: argparse.Namespace) -> Answer:
    asked = chosen(options, plan)
    asked |= _grid({name: asked.pop(name) for name in COUNTS if asked[name] is not None})
    model = model_of(asked.pop("model"))
    if isinstance(model, str) and "," in model:
        raise InputError(
            f"calc plan takes one model, and several devices and numbers with commas; got {model!r}"
        )
    devices = [machines.of(each) for each in split_at_commas(options.device)]
    plans: list[Plan] = []
    left_out: dict[str, str] = {}
    for device in devices:
        try:
            plans.append(plan(model, device, **asked))
        except InputError as error:
            if device is devices[-1] and not plans:
                raise
            left_out[device.device.key] = str(error)
    rows = [point for each in plans for point in each.points]
    one = len(rows) == len(devices) == 1
    if options.parts and not one:
        raise InputError(
            f"--parts prints those of one plan, and {len(rows)} are asked for: give one device and"
            " one number of each"
        )
    unfit = {"model": plans[0].model.key, "fits": False}
    common = [each for each in plans[0].assumptions if all(each in p.assumptions for p in plans)]
    facts: dict[str, Any] = {
        "rows": [*rows, *({**unfit, "device": key} for key in left_out)],
        "assumptions": [
            *common,
            *(
                f"{each.device.name}: {sentence}"
                for each in plans
                for sentence in each.assumptions
                if sentence not in common
            ),
        ],
        "what_would_change": list(plans[0].what_would_change) if one else [],
        "parts": report.parts(plans[0]) if one else [],
        "left_out": list(left_out.values()),
    }
    titles = {
        "assumptions": "Assumed",
        "what_would_change": "What would change it",
        "left_out": "Left out",
    }

    def lines() -> list[str]:
        several = len(devices) > 1
        told = report.rows_of_points(plans) if several else plans[0].table().split("\n")
        if options.parts and plans[0].expected is not None:
            told += ["", *str(plans[0].expected).split("\n")]
        return told + sections(facts, titles)

    return Answer(facts, lines)


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
