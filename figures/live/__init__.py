"""Live figures: for each a model of inputs and a function of them, computed by calc itself.

A page asks `describe` what a reader may change, and `answer` what follows; both speak JSON. Nothing
here knows of HTML, nor does anything but Python, calc and pint, so that it runs in a browser too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from typing import Any

from pint import DimensionalityError

from calc import formats as number_formats, hardware, machines, models
from calc.core.errors import InputError, did_you_mean
from calc.core.units import quantity
from figures.live.model import Answer, Input, Model

MODELS = (
    "roofline",
    "memory",
    "decode",
    "training",
    "all-reduce",
    "scaling",
    "formats",
    "queue",
    "service",
    "cost",
    "link",
    "checkpoints",
)

__all__ = ["MODELS", "answer", "describe", "get", "opened"]


def get(name: str) -> Model:
    """The model of that name.

    >>> get("all-reduce").title
    'All-reduce'
    """
    if name not in MODELS:
        hint = did_you_mean(name, MODELS)
        raise InputError(f"no live figure is called {name!r}; {hint}there are {', '.join(MODELS)}")
    model: Model = import_module(f"figures.live.{name.replace('-', '_')}_live").MODEL
    return model


def describe(name: str) -> str:
    """The inputs of a model, and the axes of its drawing, as JSON."""
    model = get(name)
    inputs = [
        {
            "name": field.name,
            "label": field.label,
            "default": field.default,
            "unit": field.unit,
            "range": field.range,
            "words": list(getattr(field, "words", ())),
            "titles": [title(word) for word in getattr(field, "words", ())],
        }
        for field in model.inputs
    ]
    x, y = model.drawing.x, model.drawing.y
    drawing = {"mark": model.drawing.mark, "x": vars(x), "y": vars(y)}
    return json.dumps({"title": model.title, "inputs": inputs, "drawing": drawing})


def title(word: str) -> str:
    """Return the name that people call a choice by, from its key.

    >>> title("h100"), title("all_reduce"), title("bf16")
    ('NVIDIA H100 SXM5 80 GB', 'all-reduce', 'BF16')
    """
    if word in (*hardware.DTYPES, *number_formats.names()):
        return word.upper()
    for catalogue in (hardware, machines, models):
        if word in catalogue.names():
            return str(catalogue.get(word).name)
    return word.replace("_", "-")


def answer(name: str, given: str) -> str:
    """Return the answer to inputs, texts as JSON; those left out have their defaults.

    Either it has `errors`, a sentence for each field that cannot be used, under "" what is wrong
    with all of them together; or else rows, facts and the calls that give the same.

    >>> json.loads(answer("scaling", '{"serial": "2 GB"}'))["errors"]
    {'serial': "Serial share must be a number; got '2 GB'"}
    """
    model = get(name)
    texts = model.defaults() | json.loads(given)
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field in model.inputs:
        text = texts[field.name]
        try:
            left_out = field.optional and not text.strip()
            values[field.name] = None if left_out else field.read(text)
        except (InputError, DimensionalityError) as error:
            errors[field.name] = sentence(error)
    if not errors:
        try:
            return json.dumps(vars(model.answer(**values)), ensure_ascii=False)
        except (InputError, DimensionalityError) as error:
            errors[_field(model, str(error))] = sentence(error)
    return json.dumps({"errors": errors}, ensure_ascii=False)


@cache  # a preview is drawn twice, for a wide window and for a phone, and told in words
def opened(name: str) -> Answer:
    """Return the answer of a model to its defaults.

    >>> opened("scaling").facts["Amdahl"]
    '15.42'
    """
    model = get(name)
    return model.answer(**{field.name: _default(field) for field in model.inputs})


def _default(field: Input) -> Any:
    return None if field.optional and not field.default else field.read(field.default)


def evaluate(text: str) -> str:
    """Return the value of an expression with units, or its error, as JSON.

    >>> json.loads(evaluate("140 GB / (3.35 TB/s)"))
    {'value': '41.79 ms'}
    """
    try:
        return json.dumps({"value": str(quantity(text))}, ensure_ascii=False)
    except (InputError, DimensionalityError) as error:
        return json.dumps({"error": sentence(error)}, ensure_ascii=False)


def sentence(error: Exception) -> str:
    """Return an error's sentence as it stands beside a field: without the function's name."""
    return re.sub(r"^\w+\(\): ", "", str(error))


def _field(model: Model, refusal: str) -> str:
    """The field whose name the library's sentence begins with; "" where it begins otherwise."""
    first = re.match(r"(?:\w+\(\): )?(\w+)", refusal)
    names = [field.name for field in model.inputs]
    return first[1] if first and first[1] in names else ""
