"""Values that are computed when a page or a test asks for their row, and not when it is written.

In the lines of a class of claims a deferred function gives a value to come. What is computed of
that is to come too; a loop, a comparison or a condition asks for it. Everywhere else the function
is the one it was.

    >>> from calc.derivations.ledger import Claims
    >>> def published():
    ...     print("read")
    ...     return [3, 4]
    >>> class Twice(Claims):
    ...     rows = deferred(published)()
    ...     last = 2 * rows[-1]
    >>> Twice.last
    read
    8
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any

LINES, VALUES = "lines", "values"  # of a class as they are run, and of those that are asked for
computing: ContextVar[str] = ContextVar("computing", default="")


class Deferred:
    """A value to come: a function, and what it is called with."""

    def __init__(self, run: Any, /, *of: Any, **given: Any) -> None:
        self._call: Any = run, of, given
        self._value: Any = None
        self.row_name, self.witness = "", None

    def settled(self) -> Any:
        """Return the value, which is computed once."""
        if self._call:
            before = computing.set(VALUES)
            try:
                run, of, given = map(settled, self._call)
                self._value, self._call = settled(run(*of, **given)), ()
            finally:
                computing.reset(before)
        return self._value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Deferred(getattr, self, name)

    def __call__(self, *args: Any, **given: Any) -> Any:
        return Deferred(self, *args, **given)

    def __iter__(self) -> Iterator[Any]:  # which asks for the value at its first step
        yield from self.settled()

    def __or__(self, witness: Any) -> Any:
        return witness.__ror__(self)


def _operation(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: Deferred(run, self, *others)


def _reflected(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: Deferred(run, other, self)


def _asked(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: run(self.settled(), *map(settled, others))


COMING: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem,
    "neg": operator.neg,
    "abs": abs,
    "round": round,
}
ASKED: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in ("lt", "gt", "le", "ge", "eq", "ne")},
    "contains": operator.contains,
    "len": len,
    "bool": bool,
    "int": int,
    "str": str,
    "format": format,
}
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Deferred, f"__{_name}__", _operation(getattr(operator, _name)))
    setattr(Deferred, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name, _operator in COMING.items():
    setattr(Deferred, f"__{_name}__", _operation(_operator))
for _name, _operator in ASKED.items():
    setattr(Deferred, f"__{_name}__", _asked(_operator))


def deferred(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose call in the lines of a class is a value to come."""

    @wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        if computing.get() == LINES:
            return Deferred(function, *args, **given)
        return function(*map(settled, args), **settled(given))

    return called


def settled(value: Any) -> Any:
    """The value, or of one to come what it is; and so each part of a list, a tuple or a mapping."""
    kind = type(value)
    if kind is Deferred:
        return value.settled()
    if kind in (tuple, list):
        return kind(map(settled, value))
    if kind is dict:
        return {name: settled(part) for name, part in value.items()}
    return value
