"""Options made of what a command calls: the names, defaults and meanings are the library's own.

The meaning of an argument is said under "Parameters" in the docstring; the reference of the library
prints the same list.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from calc.catalog.models.model_files import model_of
from calc.core.arguments import counted, without_point
from calc.core.errors import InputError, abbreviated, marked
from calc.core.files import writable, write_text
from calc.core.nouns import IN_PYTHON, Option, arguments_of, options_of


def whole(text: str) -> int:
    """A whole number as people write it, "4096" or "16k".

    >>> whole("16k"), whole("10k")
    (16384, 10000)
    """
    with suppress(ValueError):
        if (number := float(counted(text))).is_integer():
            return int(number)
    raise argparse.ArgumentTypeError(f"a whole number is needed here; got {abbreviated(text)}")


def typed_number(text: str) -> float:
    """Return a number as people write it; a whole one is an int, and is told as it was typed."""
    return without_point(float(counted(text)))


TYPES: dict[str, Callable[[str], object]] = {
    "int": whole,
    "int | None": whole,
    "float": typed_number,
    "float | None": typed_number,
}

SHORT = {
    "operations": "flops",
    "traffic": "bytes",
    "max_memory": "memory",
    "compute_speed_factor": "slowdown",
    "precision_mode": "precision",
    "batch_size_limit": "limit",
    "batch_size": "batch",
    "active_budget": "active",
    "pruning_levels": "pruning",
}
"""The options that are shorter than the arguments of the library that they become."""

SUBJECTS = {"model", "models", "hardware", "machines"}
"""Arguments that, where they must be given, commands take in their own way."""


def option_of(argument: str) -> str:
    """The option that becomes an argument.

    >>> option_of("batch_size_limit"), option_of("latency_multiplier")
    ('--limit', '--latency-multiplier')
    """
    return f"--{SHORT.get(argument, argument).replace('_', '-')}"


def add_options(
    parser: argparse.ArgumentParser,
    called: Callable[..., object],
    names: list[str] | None = None,
    defaults: Mapping[str, object] | None = None,
) -> None:
    """An option for each value that docstrings tell of, or for those that are named."""
    allowed, defaults = options_of(called), defaults or {}
    for name in names or [name for name, meant in allowed.items() if _is_option(name, meant)]:
        meant, option = allowed[name], option_of(name)
        default = defaults.get(name, meant.default)
        help_ = meant.meaning.replace("%", "%%")
        if default is False:
            parser.add_argument(option, dest=name, action="store_true", help=help_)
            continue
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        parser.add_argument(
            option,
            dest=name,
            metavar=option.removeprefix("--").replace("-", "_").upper(),
            required=meant.required and name not in defaults,
            default=default,
            type=TYPES.get(meant.annotation, str),
            help=help_ if default is None else f"{help_} (default: %(default)s)",
        )


def _is_option(name: str, meant: Option) -> bool:
    subject = meant.required and name in SUBJECTS
    return bool(meant.meaning) and not subject and name not in IN_PYTHON


def add_planning(
    parser: argparse.ArgumentParser, called: Callable[..., object], model: str, machine: str
) -> None:
    """The model, the machine and the options of what plans, with examples of their names."""
    add_model_and_device(parser, model, machine)
    add_options(parser, called)
    add_config(parser, called)


def add_model_and_device(
    parser: argparse.ArgumentParser,
    model: str = "llama-3-70b",
    machine: str = "h100, or a .toml",
    device: str = "device",
) -> None:
    """Add the arguments of most commands, model and device, with examples of their names."""
    parser.add_argument(
        "model",
        help=f"a name that `calc list` prints, such as {model}, or its own files: a"
        " config.json, a folder, a .gguf",
    )
    parser.add_argument(
        device, help=f"a machine or a device that `calc list` prints, such as {machine}"
    )


def chosen(options: argparse.Namespace, called: Callable[..., object]) -> dict[str, Any]:
    """Return the arguments of a function that were chosen; the model of a file is read."""
    allowed = options_of(called)
    values = {name: value for name, value in vars(options).items() if name in allowed}
    values |= {"model": model_of(values["model"])} if values.get("model") else {}
    return arguments_of(called, values)


def split_at_commas(text: str) -> list[str]:
    """Return the texts between commas, without the space around them."""
    return [part.strip() for part in text.split(",")]


def numbers(name: str, text: str, example: str, separator: str = ",") -> list[float]:
    """The numbers between commas, as in `--pruning 0,0.5`."""
    if re.search(r",0\d", text):
        digits = text.replace(",", "")
        raise InputError(
            f"{marked(name)} has its numbers between commas; got {abbreviated(text)[1:-1]}: write"
            f" {abbreviated(digits)[1:-1]}"
        )
    try:
        return [typed_number(part) for part in text.split(separator)]
    except ValueError:
        raise InputError(
            f"{marked(name)} needs numbers, as in {example}; got {abbreviated(text)}"
        ) from None


def add_config(parser: argparse.ArgumentParser, called: Callable[..., object]) -> None:
    """Options that may stand in a file, which a command reads before the others and can write."""
    parser.add_argument(
        "--config", metavar="FILE", help="take options from a .toml file; those given beside it win"
    )
    parser.add_argument(
        "--write-config", metavar="FILE", help="write the options into a .toml file for --config"
    )
    parser.set_defaults(called=called)


def take_from_file(parser: argparse.ArgumentParser, file: str) -> None:
    """Make what a file holds the defaults of a command, which then needs none of it."""
    from calc.planning.plan_files import read_flat

    options = read_flat(file, parser.get_default("called"))
    for action in parser._actions:
        if (name := ARGUMENTS.get(action.dest, action.dest)) in options:
            action.default, action.required = typed(options[name]), False
            if not action.option_strings:
                action.nargs = "?"


def write_config(options: argparse.Namespace) -> None:
    """Write the options of a command into the file that was asked for, if one was."""
    if (file := getattr(options, "write_config", None)) is None:
        return
    from calc.planning.plan_files import option_names, options_text

    typed = {ARGUMENTS.get(name, name): value for name, value in vars(options).items()}
    names = [name for name in option_names(options.called) if name in typed]
    written = {name: _written(typed[name]) for name in names if name not in FILES}
    files = {name: typed[name] for name in names if name in FILES}
    write_text(writable(file), options_text(written | files))


ARGUMENTS = {"device": "hardware"}  # of a command, and what they are called in the library
FILES = ("trace",)  # whose names stay as they are typed, commas and all


def typed(value: object) -> str:
    """A value of a file as one types it in a shell."""
    if isinstance(value, dict):
        return ",".join(f"{name}={part}" for name, part in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _written(value: object) -> object:
    """Return a value typed in a shell as a file has it: a number, a text, or several of them."""
    if not isinstance(value, str):
        return value
    parts = split_at_commas(value)
    if all("=" in part for part in parts):
        pairs = (part.split("=", 1) for part in parts)
        return {name.strip(): _number_or_text(text.strip()) for name, text in pairs}
    several = [_number_or_text(part) for part in parts]
    return several if len(several) > 1 else several[0]


def _number_or_text(text: str) -> int | float | str:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
