"""Docstrings of functions and classes, and the names that a module defines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType

# A line may stand free between two, as numpydoc has it.
PARAMETERS = re.compile(r"^Parameters\n-{10}\n((?:\w+\n(?: {4}.+(?:\n|\Z))+\n?)+)", re.MULTILINE)
PARAMETER = re.compile(r"^(\w+)\n((?: {4}.+(?:\n|\Z))+)", re.MULTILINE)


def docstring(thing: Callable[..., object]) -> str:
    """Return a docstring; it is read from the source where `python -OO` drops it."""
    import ast
    import inspect

    if sys.flags.optimize < 2:
        return inspect.getdoc(thing) or ""
    [definition] = ast.parse(inspect.getsource(inspect.unwrap(thing))).body
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    return ast.get_docstring(definition) or ""


def parameters(text: str) -> dict[str, str]:
    """Return the meaning of each parameter in a docstring's section of them, as numpydoc has it.

    >>> parameters("A rate.\\n\\nParameters\\n----------\\nrate\\n    requests\\n    a second")
    {'rate': 'requests a second'}
    >>> parameters("Parameters\\n----------\\na\\n    one\\n\\nb\\n    two\\n\\nExamples")
    {'a': 'one', 'b': 'two'}
    """
    sections = (PARAMETER.findall(section) for section in PARAMETERS.findall(text))
    return {name: " ".join(words.split()) for items in sections for name, words in items}


def public_names(module: ModuleType) -> list[str]:
    """Return the names of the functions and classes that a module defines for its callers."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
