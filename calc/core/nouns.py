"""Arguments that belong together are a frozen record, a noun; a shell and a file spell them flat.

`plan_service` takes `Load(rate=10, prompt=1000, …)`, and `calc plan-service` an option for each of
its fields, `--rate 10 --prompt 1000`. What an option means is said under "Parameters" in the
docstring of the function or of the noun, as numpydoc has it.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from calc.core.docstrings import docstring, parameters
from calc.core.errors import InputError, did_you_mean, marked

OF_NOUN = re.compile(r"as in `calc\.(\w+)`")  # what another function's noun says of a field
IN_PYTHON = {"on_progress"}
"""Arguments that no shell and no file can give."""


class Noun:
    """A frozen dataclass of arguments, each of which its docstring explains."""


@dataclass(frozen=True)
class Option:
    """One value that a function can be told, as its argument or as a field of a noun."""

    annotation: str
    default: Any
    """What it is where it is left out; None where it must be given."""
    required: bool
    meaning: str
    """What the docstring says of it; "" where that is silent."""


def nouns_of(called: Callable[..., object]) -> dict[str, type[Noun]]:
    """The arguments of a function that are nouns, each with its class.

    >>> from calc import plan_service
    >>> nouns_of(plan_service)["limits"].__name__
    'Limits'
    """
    classes, nouns = vars(sys.modules[called.__module__]), {}
    for name, parameter in inspect.signature(called).parameters.items():
        for word in re.findall(r"\w+", str(parameter.annotation)):
            if isinstance(kind := classes.get(word), type) and issubclass(kind, Noun):
                nouns[name] = kind
    return nouns


def options_of(called: Callable[..., object]) -> dict[str, Option]:
    """Return all options of a function by flat names, in the order of its arguments.

    >>> from calc import plan_service
    >>> options_of(plan_service)["rate"].meaning
    'requests a second; that of the trace where it is left out, or of so many `agents`'
    """
    nouns, meanings = nouns_of(called), meanings_of(called)
    options: dict[str, Option] = {}
    for name, parameter in inspect.signature(called).parameters.items():
        needed = parameter.default is parameter.empty
        if name not in nouns:
            default = None if needed else parameter.default
            added = {
                name: Option(str(parameter.annotation), default, needed, meanings.get(name, ""))
            }
        else:
            added = _fields(nouns[name], needed)
        if twice := added.keys() & options.keys():
            raise TypeError(f"{called.__name__}() has two options {', '.join(sorted(twice))}")
        options |= added
    return options


def meanings_of(called: Callable[..., object]) -> dict[str, str]:
    """Return what a function says of each argument, with a noun's words where it names this.

    >>> from calc import Server, compare
    >>> meanings_of(compare)["kv"] == meanings_of(Server)["kv"]
    True
    """

    def in_words(name: str, meaning: str) -> str:
        if (named := OF_NOUN.match(meaning)) is None:
            return meaning
        noun = getattr(sys.modules[__name__.partition(".")[0]], named[1])
        return meanings_of(noun)[name] + meaning[named.end() :]

    return {name: in_words(name, text) for name, text in parameters(docstring(called)).items()}


def arguments_of(called: Callable[..., object], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function from options by their flat names, nouns put together.

    A noun that may be left out is, unless one of the fields that it needs is given.

    >>> from calc import plan_service
    >>> arguments_of(plan_service, {"ttft": "1 s", "tpot": "50 ms"})["limits"].tpot
    '50 ms'
    """
    allowed = options_of(called)
    for name in options:
        if name not in allowed:
            raise not_known(called, name)
    signature, arguments = inspect.signature(called).parameters, dict(options)
    for name, noun in nouns_of(called).items():
        required_by_field = {part.name: part.default is MISSING for part in fields(noun)}  # type: ignore[arg-type]
        values = {part: arguments.pop(part) for part in required_by_field if part in arguments}
        needed = [part for part, must in required_by_field.items() if must]
        missing = [part for part in needed if values.get(part) is None]
        required = signature[name].default is inspect.Parameter.empty
        if missing and (required or len(missing) < len(needed)):
            beside = [] if required else [part for part in needed if part not in missing]
            others = f" with {', '.join(map(marked, beside))}" if beside else ""
            raise InputError(f"{called.__name__}() needs {', '.join(map(marked, missing))}{others}")
        if values and not missing:
            arguments[name] = noun(**values)
    return arguments


def not_known(called: Callable[..., object], name: str) -> InputError:
    """Return the refusal of an option that a function lacks, or has as a field of a noun."""
    options = options_of(called)
    for noun in nouns_of(called).values():
        if name in _fields(noun, needed=False):
            return InputError(f"{called.__name__}() has {name} in calc.{noun.__name__}({name}=…)")
    near = did_you_mean(name, options) or f"known are {', '.join(options)}"
    return InputError(f"{called.__name__}() has no option {name}; {near.strip()}")


def flat(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same arguments by their flat names: fields in the place of each noun."""
    options: dict[str, Any] = {}
    for name, value in arguments.items():
        options |= vars(value) if isinstance(value, Noun) else {name: value}
    return options


def _fields(noun: type[Noun], needed: bool) -> dict[str, Option]:
    meanings = meanings_of(noun)
    return {
        part.name: Option(
            str(part.type),
            None if part.default is MISSING else part.default,
            needed and part.default is MISSING,
            meanings.get(part.name, ""),
        )
        for part in fields(noun)  # type: ignore[arg-type]
    }
