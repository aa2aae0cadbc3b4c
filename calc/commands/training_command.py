"""Command `calc training`: what a training run made of its device."""

from __future__ import annotations

import argparse

from calc.codesign import dashboard_text, read_run, write_dashboard
from calc.commands.command_output import answers
from calc.core.report import Report, values


def add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", help="a file that calc.codesign.RunLog wrote")
    parser.add_argument("--html", metavar="FILE", help="write it there as a page, with drawings")
    answers(parser, _training)


def _training(options: argparse.Namespace) -> Report:
    run = read_run(options.log)
    if options.html is not None:
        write_dashboard(run, options.html)
    names = "title device peak bandwidth seconds rate mfu traffic_rate intensity steps"
    return Report(dashboard_text(run), facts=values(run, names))
