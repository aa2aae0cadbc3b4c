"""Options of a plan as a TOML file: to be reviewed, kept, and planned again.

Its keys are the options of the function that plans, flat, with units kept as text. What such a file
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
from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.catalog.models import Transformer
from calc.catalog.software import NO_SOFTWARE, Software
from calc.core.arguments import without_point
from calc.core.errors import InputError, abbreviated, did_you_mean, extra
from calc.core.files import read_text
from calc.core.nouns import IN_PYTHON, arguments_of, options_of
from calc.core.records import parse_toml
from calc.core.units import Quantity


def option_names(called: Callable[..., object]) -> tuple[str, ...]:
    """Name what a file may hold: what a function must be told, and what docstrings explain.

    >>> from calc import plan
    >>> option_names(plan)[:4]
    ('model', 'hardware', 'prompt', 'generated')
    """
    options = options_of(called).items()
    return tuple(
        name
        for name, option in options
        if option.required or (option.meaning and name not in IN_PYTHON)
    )


def read_options(path: Path | str, called: Callable[..., object]) -> dict[str, Any]:
    """Return what a file asks of `plan`, `plan_training` or another, as its arguments.

    >>> from tempfile import TemporaryDirectory
    >>> from calc import plan
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plan.toml"
    ...     asked = plan("llama-3-8b", "h100", prompt=1000, generated=200)
    ...     _ = file.write_text(asked.to_toml())
    ...     print(plan(**read_options(file, plan)).devices)
    1
    """
    if not inspect.isfunction(called):
        raise InputError(
            "read_options() needs the function that plans, such as calc.plan; got"
            f" {abbreviated(called)}"
        )
    return arguments_of(called, read_flat(path, called))


def read_flat(path: Path | str, called: Callable[..., object]) -> dict[str, Any]:
    """Return the same by the flat names that the file has."""
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


def options_text(options: Mapping[str, object]) -> str:
    """Options as TOML, of what a planner was given or found; those that are None are left out.

    A model whose context is not the published one is written with the option for that.

    >>> print(options_text({"model": "llama-3-8b", "price": None, "layout": {"tensor": 8}}))
    model = "llama-3-8b"
    <BLANKLINE>
    [layout]
    tensor = 8
    <BLANKLINE>
    """
    with extra("a file of options", "tomli-w", "planning"):
        import tomli_w
    written = {name: _plain(value) for name, value in options.items()}
    if written.get("context") is None:
        written["context"] = _changed_context(options.get("models", options.get("model")))
    return tomli_w.dumps({name: value for name, value in written.items() if value is not None})


def _plain(value: Any) -> Any:
    """A value as a file holds it: things by their keys, quantities with their units."""
    if isinstance(value, Accelerator):
        value = machines.of(value)
    if isinstance(value, Transformer | Machine):
        if not _of_the_data(value):
            raise InputError(
                f"a file of options names models and machines by their keys in the data, and"
                f" {value.name} is none of these"
            )
        return value.key
    if isinstance(value, Software):
        return f"{value.key} {value.version}".rstrip() or NO_SOFTWARE
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Quantity):
        number = _plain(value.magnitude)
        return number if value.unitless else f"{number!r} {value.units}"
    if isinstance(value, Mapping):
        return {_plain(name): _plain(part) for name, part in value.items()} or None
    if isinstance(value, list | tuple | range):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    return without_point(value) if isinstance(value, float) else value


def _of_the_data(value: Transformer | Machine) -> bool:
    """Return whether its key makes it again, but for a context that a caller has changed."""
    try:
        entry = models.get(value.key) if isinstance(value, Transformer) else machines.get(value.key)
    except InputError:
        return False
    if isinstance(value, Machine):
        return entry == value or (value.domain == 1 and entry.device == value.device)
    same = [part.name for part in fields(value) if part.name not in ("context", "notes")]
    return all(getattr(entry, name) == getattr(value, name) for name in same)


def _changed_context(named: Any) -> Any:
    """Return the longest context that models were given in place of their own, else None."""
    several = named if isinstance(named, list | tuple) else [named]
    shapes = [model for model in several if isinstance(model, Transformer)]
    changed = [shape.context for shape in shapes if shape.context != models.get(shape.key).context]
    if changed and len({*changed}) + len(several) - len(changed) > 1:
        raise InputError("a file of options has one context for all models, and theirs differ")
    return _plain(changed[0]) if changed else None


def _line(text: str, key: str) -> int:
    """The line on which a key stands, or its table begins."""
    pattern = rf'^\s*\[?\s*"?{re.escape(key)}"?\s*[\].=]'
    match = re.search(pattern, text, re.MULTILINE)
    return 1 + text.count("\n", 0, match.end() if match else 0)
