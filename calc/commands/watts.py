"""Command `calc watts`: the power that a device was measured to draw."""

from __future__ import annotations

import argparse

from calc.commands.command_output import answers
from calc.commands.options import add_options, chosen
from calc.published import power_rows


def add_watts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("device", help="a device or a machine that `calc list` prints, as h100 is")
    add_options(parser, power_rows.watts)
    answers(
        parser, lambda options: power_rows.watts(**chosen(options, power_rows.watts)), table=True
    )
