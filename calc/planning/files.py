"""Options of a plan as a TOML file: to be reviewed, kept, and planned again.

Its keys are the arguments of the function that plans, with units kept as text. What such a file
holds is `plan(**read_options("plan.toml", plan))`, and `plan.to_toml()` is its text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from calc.catalog import machines, models
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.software import Software
from calc.core.errors import InputError, MissingExtraError, abbreviated, did_you_mean
from calc.core.files import read_text, writable, write_text
from calc.core.records import parse_toml
from calc.core.units import Quantity
from calc.laws.training import Recipe

CALLED = {  # in a plan, where it has another name than the argument
    "hardware": "machine",
    "layout": "fixed",
    "recomputation": "recomputations",
}


def option_names(called: Callable[..., Any]) -> tuple[str, ...]:
    """What a file may hold: the arguments that a function needs, and those that it explains.

    >>> from calc import plan
    >>> option_names(plan)[:4]
    ('model', 'hardware', 'prompt', 'generated')
    """
    told = inspect.getdoc(called) or ""
    parameters = inspect.signature(called).parameters.values()
    return tuple(
        each.name
        for each in parameters
        if each.default is each.empty or f"- `{each.name}`:" in told
    )


def read_options(path: Path | str, called: Callable[..., Any]) -> dict[str, Any]:
    """What a file asks of `plan`, `plan_training` or another, as arguments of it.

    >>> from tempfile import TemporaryDirectory
    >>> from calc import plan
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plan.toml"
    ...     write_options(file, plan("llama-3-8b", "h100", prompt=1000, generated=200).to_toml())
    ...     print(plan(**read_options(file, plan)).devices)
    1
    """
    if not inspect.isfunction(called):
        raise InputError(
            "read_options() needs the function that plans, such as calc.plan; got"
            f" {abbreviated(called)}"
        )
    text = read_text(path)
    options = parse_toml(text, path)
    names = option_names(called)
    for key in options:
        if key not in names:
            near = did_you_mean(key, names) or f"known are {', '.join(names)}"
            raise InputError(
                f"{path}, line {_line(text, key)}: {called.__name__}() has no option {key};"
                f" {near.strip()}"
            )
    return options


def write_options(path: Path | str, text: str) -> None:
    """The text of a file of options, which is there in full or not at all."""
    write_text(writable(path), text)


def options_text(options: Mapping[str, Any]) -> str:
    """Options as TOML; those that are None are left out.

    >>> print(options_text({"model": "llama-3-8b", "price": None, "layout": {"tensor": 8}}))
    model = "llama-3-8b"
    <BLANKLINE>
    [layout]
    tensor = 8
    <BLANKLINE>
    """
    try:
        import tomli_w
    except ImportError:
        raise MissingExtraError("a file of options", "tomli-w", "planning") from None
    return tomli_w.dumps({name: value for name, value in options.items() if value is not None})


def plan_text(planned: Any, called: Callable[..., Any]) -> str:
    """The options that make a plan again, each from the field of the plan that holds it."""
    job = getattr(planned, "job", planned)
    options = {}
    for name in option_names(called):
        field = CALLED.get(name, name)
        value = getattr(planned, field) if hasattr(planned, field) else getattr(job, field, None)
        options[name] = _context(planned.model) if name == "context" else _plain(value)
    return options_text(options)


def given_text(given: Mapping[str, Any], model: Transformer, machine: Machine) -> str:
    """The options that make a plan again, of arguments as they were given to what planned.

    The model and the machine are those that were meant, so that a context of its own is kept.
    """
    meant = {"model": model, "hardware": machine} | {
        name: value for name, value in given.items() if name not in ("model", "hardware")
    }
    return options_text(
        {name: _plain(value) for name, value in meant.items()} | {"context": _context(model)}
    )


def _plain(value: Any) -> Any:
    """A field as a file holds it: things by their keys, quantities with their units."""
    if isinstance(value, Transformer | Machine):
        if not _of_the_data(value):
            raise InputError(
                f"a file of options names models and machines by their keys in the data, and"
                f" {value.name} is none of these"
            )
        return value.key
    if isinstance(value, Software):
        return value.key or None
    if isinstance(value, Recipe):
        return value.name
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Quantity):
        number = _whole(value.magnitude.tolist() if value.ndim else float(value.magnitude))
        return number if value.unitless else f"{number!r} {value.units}"
    if isinstance(value, tuple):  # what is left to a search
        return value[0] if len(value) == 1 else None
    if isinstance(value, Mapping):
        return dict(value) or None
    return value.tolist() if hasattr(value, "tolist") else value


def _whole(number: Any) -> Any:
    """Numbers, or lists of them, without a point where they need none."""
    if isinstance(number, list):
        return [_whole(each) for each in number]
    return int(number) if float(number).is_integer() else number


def _of_the_data(value: Transformer | Machine) -> bool:
    """Whether its key alone makes it again, but for the context that a caller may have changed."""
    try:
        known = models.get(value.key) if isinstance(value, Transformer) else machines.get(value.key)
    except InputError:
        return False
    if isinstance(value, Machine):
        return known == value or (value.domain == 1 and known.device is value.device)
    same = [each.name for each in fields(value) if each.name not in ("context", "notes")]
    return all(getattr(known, name) == getattr(value, name) for name in same)


def _context(model: Transformer) -> Any:
    """The longest context, where it is another than the model's own."""
    published = models.get(model.key).context
    return None if model.context == published else _plain(model.context)


def _line(text: str, key: str) -> int:
    """The line on which a key stands, or its table begins."""
    pattern = rf'^\s*\[?\s*"?{re.escape(key)}"?\s*[\].=]'
    match = re.search(pattern, text, re.MULTILINE)
    return 1 + text.count("\n", 0, match.end() if match else 0)
