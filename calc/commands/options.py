"""Options made of what a command calls: the names, defaults and meanings are the library's own.

The meaning of an argument is its item in the docstring, a line such as "- `epochs`: passes over the
data"; the reference of the library prints the same list.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calc import models
from calc.core.errors import InputError
from calc.models import Transformer

MEANING = re.compile(r"^- `(\w+)`: (.+(?:\n  .+)*)", re.MULTILINE)
TYPES: dict[str, Callable[[str], Any]] = {"int": int, "int | None": int, "float": float}

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


def option_of(argument: str) -> str:
    """The option that becomes an argument.

    >>> option_of("batch_size_limit"), option_of("latency_multiplier")
    ('--limit', '--latency-multiplier')
    """
    return f"--{SHORT.get(argument, argument).replace('_', '-')}"


def add_options(
    parser: argparse.ArgumentParser,
    called: Callable[..., Any],
    names: list[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """An option for each argument that is told in the docstring, or for those that are named."""
    parameters = inspect.signature(called).parameters
    meanings = dict(MEANING.findall(inspect.getdoc(called) or ""))
    for name in names or meanings:
        parameter, option = parameters[name], option_of(name)
        default = (defaults or {}).get(name, parameter.default)
        help_ = " ".join(meanings[name].split()).replace("%", "%%")
        if default is False:
            parser.add_argument(option, dest=name, action="store_true", help=help_)
            continue
        required = default is inspect.Parameter.empty
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        parser.add_argument(
            option,
            dest=name,
            metavar=option.removeprefix("--").replace("-", "_").upper(),
            required=required,
            default=None if required else default,
            type=TYPES.get(str(parameter.annotation), str),
            help=help_ if required or default is None else f"{help_} (default: %(default)s)",
        )


def chosen(options: argparse.Namespace, called: Callable[..., Any]) -> dict[str, Any]:
    """What was chosen of the arguments of a function."""
    parameters = inspect.signature(called).parameters
    return {name: value for name, value in vars(options).items() if name in parameters}


def model_of(text: str) -> Transformer | str:
    """The model of a file such as config.json; a name stays one."""
    return models.load(Path(text)) if text.endswith(".json") else text


def split_at_commas(text: str) -> list[str]:
    """What stands between commas."""
    return [each.strip() for each in text.split(",")]


def numbers(name: str, text: str, example: str, separator: str = ",") -> list[float]:
    """The numbers between commas, as in `--pruning 0,0.5`."""
    try:
        return [float(each) for each in text.split(separator)]
    except ValueError:
        raise InputError(
            f"{option_of(name)} needs numbers, as in {example}; got {text!r}"
        ) from None
