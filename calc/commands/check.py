"""Command `calc check`: whether a claim of performance can be true."""

from __future__ import annotations

import argparse
from os.path import isfile
from pathlib import Path

from calc.commands.options import add_options
from calc.commands.output import answers
from calc.published import checking
from calc.published.claims import TOOLS

FILES = (".json", ".jsonl", ".csv", ".txt", ".log")


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "claim",
        help='such as "Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users"; or a file: the .json of'
        f" a benchmark, a .csv of results, what {TOOLS} print, a log of MLPerf",
    )
    add_options(parser, checking.check)
    answers(parser, _check, table=True)


def _check(options: argparse.Namespace) -> checking.Check | checking.Checks:
    if Path(options.claim).suffix in FILES or isfile(options.claim):
        return checking.check_file(options.claim, options.about)
    return checking.check(options.claim, options.about)
