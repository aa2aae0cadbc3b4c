"""Machines, or models, side by side: `calc compare`."""

from __future__ import annotations

import argparse
from typing import Any

from calc.commands.options import add_config, add_options, chosen, model_of, split_at_commas
from calc.commands.output import answers
from calc.planning import Comparison, compare


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models",
        help="a name that `calc list` prints, such as llama-3-70b, or a config.json; several by"
        " commas",
    )
    parser.add_argument(
        "--machines",
        required=True,
        metavar="MACHINES",
        help="machines or devices that `calc list` prints, such as dgx-h100,mi300x-8, or a .toml;"
        " several by commas",
    )
    add_options(parser, compare)
    add_config(parser, compare)
    parser.epilog = (
        'A price is one for all, "3 USD/hour", or by machine, as in'
        " dgx-h100=3 USD/hour,mi300x-8=2 USD/hour."
    )
    answers(parser, _compare, table=True, drawn="the front")


def _compare(options: argparse.Namespace) -> Comparison:
    asked: dict[str, Any] = chosen(options, compare)
    asked["models"] = list(map(model_of, split_at_commas(asked["models"])))
    asked["machines"] = split_at_commas(asked["machines"])
    if asked["price"] is not None and "=" in asked["price"]:
        asked["price"] = dict(map(_priced, split_at_commas(asked["price"])))
    return compare(**asked)


def _priced(text: str) -> tuple[str, str]:
    machine, _, price = text.partition("=")
    return machine.strip(), price.strip()
