"""Arguments in the spellings of people and other programs, understood wherever one asks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from calc.catalog import machines
from calc.core.errors import InputError, marked
from calc.core.nouns import not_known, options_of
from calc.core.records import DATA, read_toml

P = ParamSpec("P")
R = TypeVar("R")
MACHINES = ("hardware", "device", "machine")
"""What an argument is called that is one machine."""


@cache
def _ours() -> dict[str, str]:
    table = read_toml(DATA / "spellings.toml")["option"]
    return {theirs: ours for ours, others in table.items() for theirs in others}


def ours(theirs: str) -> str | None:
    """Return the argument that an option of another program is, with or without its dashes.

    >>> ours("--tp"), ours("gpu_memory_utilization"), ours("tensor")
    ('tensor', 'utilization', None)
    """
    return _ours().get(theirs) or _ours().get(f"--{theirs.replace('_', '-')}")


def understood(called: Callable[P, R]) -> Callable[P, R]:
    """Return a function that tells of an argument that it lacks, and takes "8xh100" for eight.

    >>> from calc.asking import understood
    >>> understood(lambda device, devices=None: (device, devices))("8xh100")
    ('h100', 8)
    """
    signature = inspect.signature(called)
    names = frozenset(signature.parameters)
    machine = next(filter(names.__contains__, MACHINES), "")
    count = next(filter(names.__contains__, ("devices", "tensor")), "")

    @wraps(called)
    def call(*positional: P.args, **named: P.kwargs) -> R:
        if not names.issuperset(named):
            raise _unknown(called, sorted(named.keys() - names)[0])
        if machine and count:
            bound = signature.bind_partial(*positional, **named).arguments
            if (asked := with_devices(bound, machine, count)) is not bound:
                return called(**asked)  # type: ignore[call-arg]
        return called(*positional, **named)

    return call


def with_devices(asked: dict[str, Any], machine: str, count: str) -> dict[str, Any]:
    """Return what is asked with the number of devices taken out of the name of the machine.

    >>> with_devices({"hardware": "8xh100"}, "hardware", "devices")
    {'hardware': 'h100', 'devices': 8}
    """
    host, said = asked.get(machine), asked.get(count)
    name, devices = machines.counted(host) if isinstance(host, str) else (host, None)
    if devices is None:
        return asked
    if said not in (None, devices):
        raise InputError(
            f"{host!r} says how many devices there are, and {marked(count, said)} is given beside"
            f" it: write {name!r} with {marked(count, said)}, or leave {marked(count)} out"
        )
    return {**asked, machine: name, count: devices}


def _unknown(called: Callable[..., object], name: str) -> InputError:
    """The refusal of an argument that a function lacks, with what it is called here."""
    options = options_of(called)
    if (known_as := ours(name)) in options:
        return InputError(f"{called.__name__}() has no option {name}: it is {known_as} here")
    return not_known(called, name)
