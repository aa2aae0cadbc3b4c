"""Command `calc check`: whether a claim of performance can be true."""

from __future__ import annotations

import argparse

from calc.commands.command_output import answers
from calc.commands.options import add_options
from calc.published import checking, contributing
from calc.published.claims import TOOLS, is_file, load, pasted


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "claim",
        help='such as "Llama 3.1 70B on 4 H100: 5 000 token/s at 64 users"; or a file: the .json of'
        f" a benchmark, a .csv of results, what {TOOLS} print, a log of MLPerf",
    )
    add_options(parser, checking.check)
    parser.add_argument(
        "--contribute",
        metavar="FILE",
        help="write what is claimed as rows of published measurements too, without names, into a"
        " .toml file that is called after their source",
    )
    answers(parser, _check, table=True)


def _check(options: argparse.Namespace) -> checking.Check | checking.Checks:
    claim, about = options.claim, options.about
    if options.contribute is not None:
        claims = load(claim) if is_file(claim) else pasted(claim) or [(claim, "")]
        contributing.contribute(claims, options.contribute, about)
    return checking.check(claim, about, options.states)
