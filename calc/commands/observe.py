"""Command `calc observe`: what a benchmark of one's own server says of it."""

from __future__ import annotations

import argparse

from calc.commands.command_output import answers
from calc.commands.options import add_model_and_device, add_options, chosen
from calc.planning.service import observed


def add_observe(parser: argparse.ArgumentParser) -> None:
    add_model_and_device(parser, device="hardware")
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
    seen = observed.observe(**chosen(options, observed.observe))
    if options.save is not None:
        seen.save(options.save)
    return seen
