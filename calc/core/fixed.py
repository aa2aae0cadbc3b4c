"""Mappings that keep what they hold, of which results and entries of the data are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, Self, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Fixed(dict[K, V]):
    """A dictionary that refuses every change; `dict(fixed)` is a copy that takes them."""

    __slots__ = ()

    def _refused(self, *arguments: Any, **more: Any) -> NoReturn:
        raise TypeError("what calc returns does not change: change a copy of it, dict(…)")

    __setitem__ = __delitem__ = __ior__ = _refused
    clear = pop = popitem = setdefault = update = _refused

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), dict(self), getattr(self, "__dict__", {}))

    def __copy__(self) -> Self:
        made: Self = _again(type(self), dict(self), getattr(self, "__dict__", {}))
        return made


def _again(kind: Any, items: dict[Any, Any], state: dict[str, Any]) -> Any:
    """A mapping that was copied or pickled, with the attributes that its class gives it."""
    made = kind.__new__(kind)
    dict.update(made, items)
    if state:
        vars(made).update(state)
    return made


def fixed(value: T) -> T:
    """A value with every dictionary in it fixed, and every list a tuple.

    >>> fixed({"rows": [{"batch": 8}]})["rows"][0]["batch"] = 9
    Traceback (most recent call last):
    TypeError: what calc returns does not change: change a copy of it, dict(…)
    """
    kind: Any = type(value)
    thawed = cast(Any, value)
    if kind is dict:
        thawed = Fixed({name: fixed(part) for name, part in thawed.items()})
    elif kind is list or kind is tuple:
        thawed = tuple(map(fixed, thawed))
    return cast(T, thawed)


def fix_fields(thing: object) -> None:
    """Fix the dictionaries and lists that a frozen record was made of."""
    fields = vars(thing)
    for name, value in fields.items():
        if type(value) in (dict, list):
            fields[name] = fixed(value)


def returns_fixed(compute: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a method whose result is fixed."""

    @wraps(compute)
    def computed(thing: Any) -> T:
        return fixed(compute(thing))

    return computed
