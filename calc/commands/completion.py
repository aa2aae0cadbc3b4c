"""Command `calc completion`: a script by which a shell completes words, written once.

The script is of shtab, the extra `completion`; it asks for nothing while one types.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

from calc import formats
from calc.catalog import hardware, models
from calc.catalog.models import checkpoint_formats
from calc.commands import command_parser
from calc.commands.command_output import answers
from calc.commands.lookup import KINDS, things
from calc.core.errors import MissingExtraError, extra
from calc.core.report import Report

FILES = ("log", "file", "html", "csv", "parquet", "resume", "draw", "config", "write_config")
HELP = 'as in: source <(calc completion bash); for zsh: calc completion zsh > "${fpath[1]}/_calc"'


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"], help=HELP)
    answers(parser, _completion)


def _completion(options: argparse.Namespace) -> Report:
    with extra("calc completion", "shtab", "completion"):
        import shtab
    names = {"device": (*hardware.names(), *hardware.announced()), "model": models.names()}
    names |= {
        "weights": checkpoint_formats.names(),
        "kv": formats.names(),
        "dtype": tuple(hardware.DTYPES),
    }
    names["name"] = tuple(name for kind in KINDS for name, _ in things(kind))
    parser, commands = command_parser()
    for command in commands:
        with suppress(MissingExtraError):  # whose command cannot run here either
            command.add_options()
        for action in command._actions:
            if action.dest in names:
                action.choices = names[action.dest]
            elif action.dest in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    script = shtab.complete(parser, shell=options.shell)
    return Report(script.splitlines(), facts={"shell": options.shell, "script": script})
