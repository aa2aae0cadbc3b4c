"""Command `calc assert`: whether plans keep the limits that a file in a repository has."""

from __future__ import annotations

import argparse

from calc.commands.command_output import answers
from calc.planning.assertions import Assertions, check_limits


def add_assert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        help="a .toml of tables such as [[plan]], each with its options and its limits, must",
    )
    answers(parser, _assert, table=True)


def _assert(options: argparse.Namespace) -> Assertions:
    return check_limits(options.file)
