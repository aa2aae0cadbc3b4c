"""What a benchmark of one's own server says of it: `calc observe`."""

from __future__ import annotations

import argparse

from calc.commands.options import add_options, chosen, model_of
from calc.commands.output import answers
from calc.planning.service import observed


def add_observe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a name that `calc list` prints, such as llama-3-70b, or a config.json"
    )
    parser.add_argument(
        "hardware", help="a machine or a device that `calc list` prints, such as h100, or a .toml"
    )
    parser.add_argument(
        "points",
        nargs="+",
        metavar="POINT",
        help='a result file of a benchmark, or "concurrency=8,ttft=0.2 s,tpot=12 ms"',
    )
    add_options(parser, observed.observe)
    parser.add_argument(
        "--save", metavar="FILE", help="write a .toml that planners take as --software"
    )
    answers(parser, _observe)


def _observe(options: argparse.Namespace) -> observed.Observed:
    asked = chosen(options, observed.observe)
    seen = observed.observe(model_of(asked.pop("model")), **asked)
    if options.save is not None:
        seen.save(options.save)
    return seen
