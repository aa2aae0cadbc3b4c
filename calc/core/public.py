"""What a module shows: `dir()` and `from … import *` give what it defines, not what it imports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any


def public_names(module: ModuleType) -> list[str]:
    """The functions and classes that a module defines for its callers; a package lists them."""
    listed: list[str] | None = vars(module).get("__all__")
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def docstring(thing: Callable[..., object]) -> str:
    """What a function or a class says of itself; from its source where `python -OO` drops that."""
    import ast
    import inspect

    if sys.flags.optimize < 2:
        return inspect.getdoc(thing) or ""
    [definition] = ast.parse(inspect.getsource(inspect.unwrap(thing))).body
    assert isinstance(definition, ast.FunctionDef | ast.ClassDef)
    return ast.get_docstring(definition) or ""


def on_first_use(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package that imports a name when it is used.

    `names` are its public ones, by the module that defines them; its modules are attributes too.
    """
    module_of = {name: module for module, members in names.items() for name in members}
    public = sorted(module_of)

    def getattr_(name: str) -> Any:
        if name in module_of:
            return getattr(import_module(f"{package}.{module_of[name]}"), name)
        if not name.startswith("_") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return public, getattr_, lambda: public


class Package(ModuleType):
    """A package each of whose modules, as soon as it is imported, shows its public names alone.

    A function of the package stays what its name means when a folder of that name is imported:
    `calc.laws()` beside `from calc.laws import roofline`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and isinstance(vars(self).get(name), FunctionType):
            return
        if isinstance(value, ModuleType) and "__dir__" not in vars(value):
            names = public_names(value)
            vars(value).update(__all__=names, __dir__=lambda: names)
        super().__setattr__(name, value)
