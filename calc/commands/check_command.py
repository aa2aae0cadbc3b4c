"""Command `calc check`: whether a claim of performance can be true."""

from __future__ import annotations

import argparse
from os.path import isfile
from pathlib import Path

from calc.commands.command_output import answers
from calc.commands.options import add_options
from calc.published import checking, contributing
from calc.published.claims import TOOLS, load

FILES = (".json", ".jsonl", ".csv", ".txt", ".log")


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


def checked(claim: str, about: str, states: str | None) -> checking.Check | checking.Checks:
    """Return the verdict on a claim in words, or on each of a file."""
    check = checking.check_file if _is_file(claim) else checking.check
    return check(claim, about, states)


def _check(options: argparse.Namespace) -> checking.Check | checking.Checks:
    claim, about = options.claim, options.about
    if options.contribute is not None:
        claims = load(claim) if _is_file(claim) else [(claim, "")]
        contributing.contribute(claims, options.contribute, about)
    return checked(claim, about, options.states)


def _is_file(claim: str) -> bool:
    return Path(claim).suffix in FILES or isfile(claim)
