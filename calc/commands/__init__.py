"""The command `calc`, on argparse, which starts in a few milliseconds and is always there.

Each group of commands is a module of this package, imported when one of its commands is called: it
builds its options from what it calls in the library, and returns a report. Here are the list of
commands, and what happens to answers and mistakes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from pint import DimensionalityError

from calc.commands.command_output import check_files, write
from calc.commands.options import option_of, take_from_file, write_config
from calc.core.errors import InputError, abbreviated, did_you_mean, in_python

PLAIN = re.compile(r"[\w.-]+")  # what a shell takes for one word
INTERRUPTED = 128 + signal.SIGINT  # what a shell expects of a program that Ctrl-C has ended

COMMANDS = {  # each with the module that holds it as `add_…`, and what it does
    "list": (
        "lookup",
        "names of constants, devices, machines, software, models, training runs, formats and laws",
    ),
    "show": ("lookup", "everything about one of these, with sources"),
    "search": (
        "lookup",
        "find any of these, or a command, by words of its name, title, note or text",
    ),
    "eval": ("roofline_command", "evaluate an expression with units"),
    "roofline": ("roofline_command", "what bounds some work on a device, and its best time"),
    "gemm": ("steps", "a matrix product on a device: its bound, its tiles and waves, its time"),
    "attention": (
        "steps",
        "FlashAttention of a shape on a device, forward or backward: its bound, its time and rate",
    ),
    "collective": (
        "steps",
        "all-reduce time, or that of another collective: its bound, and what is expected by whose"
        " curve",
    ),
    "throughput": (
        "steps",
        "images or samples a second of a network that writes no tokens, and what bounds them",
    ),
    "fit": (
        "fit",
        "what an engine such as vLLM does with a device's memory, and the tokens that this holds",
    ),
    "watts": ("watts", "the power that a device was measured to draw, by its load"),
    "observe": (
        "observe",
        "what a benchmark of one's own server says of it, as a .toml that planners take",
    ),
    "plan": (
        "plan_commands",
        "whether a model fits, on how many devices, how fast it is, at what cost",
    ),
    "plan-training": (
        "plan_commands",
        "the best layout of a training run, what it takes, and why others lose",
    ),
    "plan-service": (
        "plan_commands",
        "the fewest devices that serve requests within limits on their times, by a simulation",
    ),
    "break-even": (
        "plan_commands",
        "from which load on devices of one's own cost less than an API, with its interval",
    ),
    "compare": (
        "plan_commands",
        "machines or models side by side: cost, energy and latency, each at its best batch",
    ),
    "check": (
        "check_command",
        "whether a claim of performance can be true, and where published rows stand",
    ),
    "assert": (
        "assert_command",
        "limits that plans must keep, from a file in a repository; what is broken exits with 1",
    ),
    "measure": ("measure", "measure this machine's roofs, and write them as a device"),
    "validate": (
        "measure",
        "hold what calc expects to this machine, published rows or engines' kernels",
    ),
    "training": ("training_command", "what a training run made of its device, from its log"),
    "simulate": ("simulate", "train on the digits as a smaller, slower device would"),
    "sweep": (
        "simulate",
        "train on the digits, and measure prunings and precisions of the network",
    ),
    "mcp": ("mcp", "tools for assistants, by the Model Context Protocol"),
    "completion": ("completion", "a script by which a shell completes commands and names"),
}
HEADINGS = {  # in the help, above the first command of each group
    "list": "to look up",
    "roofline": "one piece of work, one device",
    "plan": "to plan",
    "check": "to check, and to measure",
    "simulate": "small networks, trained here",
    "mcp": "for other programs",
}


class Grouped(argparse.HelpFormatter):
    """Help with a heading above each group of commands."""

    def _format_action(self, action: argparse.Action) -> str:
        heading = HEADINGS.get(action.dest)
        return (f"\n  {heading}:\n" if heading else "") + super()._format_action(action)


class CommandParser(argparse.ArgumentParser):
    """A parser that tells mistakes in a line, and gets its options when it is first used."""

    group: str | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        # No option begins with a digit, so "-1 GB" is a size, which is refused as one.
        self._negative_number_matcher = re.compile(r"^-\.?\d")

    def add_options(self) -> None:
        """The options of a command, from the module of its group."""
        if self.group is not None:
            group, self.group = import_module(f"calc.commands.{self.group}"), None
            command = self.prog.split()[-1].replace("-", "_")
            getattr(group, f"add_{command}")(self)
            self.set_defaults(command=self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.add_options()
        if self.get_default("command") is not None:
            from calc.commands.spellings import in_our_words

            args, notes = in_our_words(self, args)
            self.set_defaults(told=notes)
        if self.get_default("called") is not None:
            before = CommandParser(prog=self.prog, add_help=False)
            before.add_argument("--config")
            if (file := before.parse_known_args(args)[0].config) is not None:
                take_from_file(self, file)
        namespace_read, left = super().parse_known_args(args, namespace)
        if left and self.get_default("command") is not None:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return namespace_read, left

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a wrong word, and name the nearest right ones."""
        if action.choices is not None and value not in action.choices:
            names = list(map(str, action.choices))
            advice = f"{did_you_mean(str(value), names)}choose from {', '.join(names)}"
            raise argparse.ArgumentError(action, f"invalid choice: {abbreviated(value)}; {advice}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class Told(CommandParser):
    """A parser of what is no line of a shell, whose mistakes are errors as the library's are."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}")


def command_parser(
    kind: type[CommandParser] = CommandParser,
) -> tuple[CommandParser, list[CommandParser]]:
    """The parser of `calc`, and those of its commands, which have no options yet."""
    parser = kind(
        prog="calc",
        formatter_class=Grouped,
        description="Numbers of machine-learning systems, with units and sources.",
        epilog="Every command takes --json, and those that print a table --csv. In JSON a quantity"
        ' is {"value": 3.35, "unit": "TB/s"}, with its source where it has one, and a table'
        " is the list `rows`. A device may be the .toml file of one's own. The exit status is 0 of"
        " an answer, 1 where nothing fits, a limit is broken or a value is refused, and 2 of a line"
        " that is not understood.",
    )
    parser.add_argument(
        "--version", action="version", version=f"calc {version('machine-foundations')}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=kind)
    parsers = []
    for name, (group, purpose) in COMMANDS.items():
        sentence = f"{purpose[0].upper()}{purpose[1:]}."
        command = commands.add_parser(name, help=purpose, description=sentence)
        command.group = group
        parsers.append(command)
    return parser, parsers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is one sentence on stderr and exit code 1."""
    if sys.stderr is None:  # closed by the shell, as by 2>&-
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without µ gets its escape
            stream.reconfigure(errors="backslashreplace")
    options = argparse.Namespace()
    try:
        command_parser()[0].parse_args(arguments, options)
        check_files(options)
        if options.command is not None:
            from calc.commands.spellings import count_devices

            count_devices(options)
        answer = options.run(options)
        lines = write(answer, options)
        write_config(options)
        for line in getattr(options, "told", ()):  # a refusal is one sentence, in our words
            print(line, file=sys.stderr)
    except (InputError, DimensionalityError) as error:
        return _failed(_as_typed(error, options))
    except KeyboardInterrupt:
        rows = getattr(options, "resume", None)
        kept = f"; finished rows are kept in {rows}, and the same command goes on from there"
        _failed(f"interrupted{kept if rows and Path(rows).is_file() else ''}")
        return INTERRUPTED
    if sys.stdout is None:  # as by >&-
        return _failed("cannot write the output: it is closed")
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except OSError as error:
        # What is still to be written goes nowhere, so that Python does not fail over it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a pipe's reader, as `head`, has seen enough
            return _failed(f"cannot write the output: {error.strerror}")
    return int(answer.status)


def _failed(sentence: str) -> int:
    print(f"calc: {sentence}", file=sys.stderr)
    return 1


def _as_typed(error: Exception, options: argparse.Namespace) -> str:
    """Return what the library refuses, with an option where it has an argument."""

    def option(law: str, argument: str, value: str) -> str:
        if argument not in vars(options):
            return in_python(law, argument, value)
        quoted = value.startswith('"')
        text = json.loads(value) if quoted else value
        needs_quotes = quoted and not PLAIN.fullmatch(text)
        typed = "" if value in ("", "True") else f" {value if needs_quotes else text}"
        return f"{option_of(argument)}{typed}"

    return error.spelled(option) if isinstance(error, InputError) else str(error)
