"""Values that carry how they were made: the datum, the call or the arithmetic, and its operands.

Derivations see `calc` through `Seen`. What it gives them, and what they compute of that, is a
`Traced` number, which is used like any other; `calc` itself gets and computes plain ones.

    >>> from calc import hardware
    >>> h100 = traced(hardware).get("h100")
    >>> ridge_point = h100.peak("bf16") / h100.memory_bandwidth
    >>> ridge_point.made_by.kind, ridge_point.made_by.name
    ('arithmetic', '/')
    >>> [operand.made_by.name for operand in ridge_point.made_by.of]
    ['h100.peak.bf16', 'h100.memory_bandwidth']
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, reduce
from types import MethodType, ModuleType
from typing import Any

from calc.catalog.hardware import Accelerator
from calc.catalog.machines import Machine
from calc.core.fixed import Fixed
from calc.core.provenance import Provenance
from calc.core.records import Count
from calc.core.units import Quantity, from_parts
from calc.derivations.deferred import Deferred

LIBRARY, DERIVATIONS = "calc", "calc.derivations"


@dataclass(frozen=True, eq=False)
class Made:
    """Origin of a value: `kind` is "datum", "call", "part", "arithmetic", "unit" or "same"."""

    kind: str
    name: str  # the key of a datum, a function, an attribute, a sign
    of: tuple[Any, ...] = ()  # operands and arguments, of a part and a method what has it
    given: dict[str, Any] = field(default_factory=dict)  # arguments by their names
    again: Callable[..., Any] | None = None  # gives the value of its bare operands

    @cached_property
    def data(self) -> dict[str, Any]:
        """The numbers of data that it hangs on, by their keys; a device is given by its own."""
        fields: dict[str, Any] = {}
        for operand in operands((*self.of, *self.given.values())):
            if (made := made_of(operand)) and made.kind == "datum":
                fields[made.name] = bare(operand)
            elif type(operand) is Seen and isinstance(operand.thing, Accelerator | Machine):
                fields[operand.thing.key] = None
            elif made:
                fields |= made.data
        return fields


def operands(values: Iterable[Any]) -> Iterator[Any]:
    """The values, and in the place of lists and the like what they hold."""
    for value in values:
        if issubclass(type(value), list | tuple):  # and not what is seen
            yield from operands(value)
        elif type(value) is dict:
            yield from operands(value.values())
        else:
            yield value


def is_coming(*values: Any) -> bool:
    """Return whether any of it is computed only when it is asked for."""
    return any(type(part) is Deferred for part in operands(values))


def remade(value: Any, key: str, factor: float) -> Any:
    """Return what a value would be, were a number of the data larger by a factor."""
    values: dict[Made, Any] = {}

    def again(part: Any) -> Any:
        if type(part) in (list, tuple, TracedRows):
            return [again(each) for each in part]
        made = made_of(part)
        if made is None or (made.kind != "datum" and key not in made.data):
            return bare(part)
        if made.kind == "datum":
            return factor * bare(part) if made.name == key else bare(part)
        if made not in values:
            arguments = {name: again(each) for name, each in made.given.items()}
            assert made.again is not None
            values[made] = made.again(*map(again, made.of), **arguments)
        return values[made]

    return again(value)


class Traced:
    """Base of numbers, texts and rows that know how they were made, and of which row they are."""

    made_by: Made | None = None
    row_name: str = ""  # "DecodeStep.peak"; of a part of a row "DecodeStep.rows 0 1"
    witness: Any = None


def made_of(value: object) -> Made | None:
    """Return how a value was made; None of what was written as it stands, or is not known."""
    if isinstance(value, Traced):
        return value.made_by
    provenance = getattr(value, "provenance", None)
    if isinstance(value, Quantity | Count) and provenance is not None:
        return Made("datum", provenance.key)
    return None


def _unary(run: Callable[..., Any], sign: str) -> Callable[..., Any]:
    def of(self: Any, *more: Any) -> Any:
        value = run(bare(self), *more)
        return traced(value, Made("arithmetic", sign, (self, *more), {}, run))

    return of


def _binary(run: Callable[..., Any], sign: str) -> Callable[..., Any]:
    def of(self: Any, other: Any) -> Any:
        if type(other) is Deferred:
            return NotImplemented
        made = self.made_by
        if (
            sign == "+" and made and made.name == "+" and not self.row_name
        ):  # of many, as `sum` has it
            of, again = (*made.of, other), _added
        else:
            of, again = (self, other), run
        return traced(run(bare(self), bare(other)), Made("arithmetic", sign, of, {}, again))

    return of


def _added(*parts: Any) -> Any:
    return reduce(operator.add, parts)


def _reflected(run: Callable[..., Any], sign: str) -> Callable[..., Any]:
    def of(self: Any, other: Any) -> Any:
        if sign == "+" and type(other) is int and other == 0:  # with which `sum` begins
            return self
        return traced(
            run(bare(other), bare(self)), Made("arithmetic", sign, (other, self), {}, run)
        )

    return of


BINARY = {
    "add": (operator.add, "+"),
    "sub": (operator.sub, "-"),
    "mul": (operator.mul, "*"),
    "truediv": (operator.truediv, "/"),
    "floordiv": (operator.floordiv, "//"),
    "mod": (operator.mod, "%"),
    "pow": (operator.pow, "**"),
}
UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "neg": (operator.neg, "-"),
    "abs": (abs, "abs"),
    "round": (round, "round"),
    "floor": (math.floor, "math.floor"),
    "ceil": (math.ceil, "math.ceil"),
}
ARITHMETIC: dict[str, Any] = {
    **{f"__{name}__": _binary(*how) for name, how in BINARY.items()},
    **{f"__r{name}__": _reflected(*how) for name, how in BINARY.items()},
    **{f"__{name}__": _unary(*how) for name, how in UNARY.items()},
}


class _Number(Traced):
    """Arithmetic that notes its operands."""


for _name, _noting in ARITHMETIC.items():
    setattr(_Number, _name, _noting)


class TracedInt(_Number, int):
    """A whole number that knows how it was made; of the data, where it comes from."""

    provenance: Provenance | None = None


class TracedFloat(_Number, float):
    """A number that knows how it was made."""


class TracedText(Traced, str):
    """A text that knows its row."""


class TracedRows(Traced, tuple[Any, ...]):
    """Rows of a table that know their name, and that of each number in them."""


class TracedTables(Traced, dict[str, Any]):
    """Rows of several tables by a name."""


class TracedQuantity(_Number, Quantity):  # type: ignore[misc]  # as Quantity has it
    """A quantity that knows how it was made."""

    def to(self, other: Any = None, *_: Any, **__: Any) -> Any:
        unit = bare(other)
        return self._in_unit(f'to("{unit}")', lambda value: value.to(unit))

    def m_as(self, units: Any) -> Any:
        unit = bare(units)
        return self._in_unit(f'm_as("{unit}")', lambda value: value.m_as(unit))

    def to_base_units(self) -> Any:
        return self._in_unit("to_base_units()", lambda value: value.to_base_units())

    @property
    def magnitude(self) -> Any:
        return self._in_unit("magnitude", lambda value: value.magnitude)

    @property
    def m(self) -> Any:
        return self.magnitude

    def _in_unit(self, name: str, run: Callable[[Quantity], Any]) -> Any:
        return traced(run(bare(self)), Made("unit", name, (self,), {}, run))

    def __getitem__(self, key: Any) -> Any:
        made = Made("part", f"[{key!r}]", (self,), {}, operator.itemgetter(key))
        return traced(bare(self)[key], made)

    def __iter__(self) -> Iterator[Any]:
        for i, part in enumerate(bare(self)):
            yield traced(part, Made("part", f"[{i}]", (self,), {}, operator.itemgetter(i)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        value = getattr(ufunc, method)(*map(bare, inputs), **options)
        return traced(value, Made("call", f"numpy.{ufunc.__name__}", inputs, {}, ufunc))

    def __reduce__(self) -> tuple[Any, ...]:
        return from_parts, (self._magnitude, dict(self._units), self.provenance)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class Seen(Traced):
    """Something of `calc`, seen so that what it gives and computes knows where it comes from."""

    def __init__(self, thing: Any, made: Made | None, row: str = "") -> None:
        self.thing, self.made_by, self.row_name = thing, made, row

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.thing)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.thing, name)
        if isinstance(self.thing, ModuleType):
            return traced(value)
        return traced(value, Made("part", name, (self,), {}, operator.attrgetter(name)))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_coming(*args, *kwargs.values()):
            return Deferred(self, *args, **kwargs)
        thing = self.thing
        arguments = {name: bare(value) for name, value in kwargs.items()}
        result = thing(*map(bare, args), **arguments)
        if called(thing) == "units.quantity":
            return _of_number(result, args[0])
        if getattr(thing, "__name__", "") == "ridge_point" and isinstance(thing, MethodType):
            owner = Seen(thing.__self__, None)
            return (owner.peak(*args) / owner.memory_bandwidth).to(result.units)
        if isinstance(thing, MethodType) and self.made_by is not None:
            (owner,) = self.made_by.of
            run = _method(thing.__name__)
            return traced(result, Made("call", f".{thing.__name__}", (owner, *args), kwargs, run))
        return traced(result, Made("call", called(thing), args, kwargs, thing))

    def __getitem__(self, key: Any) -> Any:
        made = Made("part", f"[{bare(key)!r}]", (self,), {}, operator.itemgetter(bare(key)))
        return traced(self.thing[bare(key)], made)

    def __iter__(self) -> Iterator[Any]:
        for i, part in enumerate(self.thing):
            yield traced(part, Made("part", f"[{i}]", (self,), {}, operator.itemgetter(i)))

    def __eq__(self, other: object) -> bool:
        return bool(self.thing == bare(other))

    def __hash__(self) -> int:
        return hash(self.thing)

    def __lt__(self, other: Any) -> bool:
        return bool(self.thing < bare(other))

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(bare(value), self.thing)

    def __or__(self, other: Any) -> Any:
        return self.thing | bare(other)

    def __ror__(self, other: Any) -> Any:
        return bare(other) | self.thing

    def __bool__(self) -> bool:
        return bool(self.thing)

    def __len__(self) -> int:
        return len(self.thing)

    def __contains__(self, part: object) -> bool:
        return bare(part) in self.thing

    def __str__(self) -> str:
        return str(self.thing)

    def __repr__(self) -> str:
        return repr(self.thing)

    def __format__(self, spec: str) -> str:
        return format(self.thing, spec)


def _method(name: str) -> Callable[..., Any]:
    return lambda owner, *args, **given: getattr(owner, name)(*args, **given)


def called(function: Any) -> str:
    """Return the name by which code calls a function of the library: inference.decode.

    >>> from calc import inference
    >>> called(inference.decode)
    'inference.decode'
    """
    module = str(getattr(function, "__module__", "")).rpartition(".")[2]
    return f"{module}.{getattr(function, '__name__', type(function).__name__)}"


def replaced(thing: Any, **changes: Any) -> Any:
    """A record of the library with other values of some fields."""
    changed = replace(bare(thing), **bare(changes))
    again = lambda thing, **changes: replace(thing, **changes)  # noqa: E731
    return traced(changed, Made("call", "replace", (thing,), changes, again))


def text(value: str, made: Made) -> TracedText:
    """A text that knows where it was read."""
    traced_text = TracedText(value)
    traced_text.made_by = made
    return traced_text


def whole(value: Any) -> int:
    """The whole number in a number or a text, as `int` gives it."""
    if is_coming(value):
        return Deferred(whole, value)  # type: ignore[return-value]
    traced_number: int = traced(int(bare(value)), Made("call", "int", (value,), {}, int))
    return traced_number


def number(value: Any) -> float:
    """The number that a text or an array is, as `float` gives it."""
    if is_coming(value):
        return Deferred(number, value)  # type: ignore[return-value]
    traced_number: float = traced(float(bare(value)), Made("call", "float", (value,), {}, float))
    return traced_number


def _of_number(result: Quantity, number: Any) -> Any:
    """A quantity of a traced number is that number in a unit; any other is written."""
    if not isinstance(number, Traced):
        return traced(result)
    unit = result.units
    name = f'quantity("{unit}")'
    return traced(result, Made("unit", name, (number,), {}, lambda value: Quantity(value, unit)))


def traced(value: Any, made: Made | None = None) -> Any:
    """The value as one that knows how it was made; what is no number and not of calc, as it is."""
    if value is None or isinstance(value, Traced | bool | str | Enum):
        return value
    if isinstance(value, Quantity):
        quantity: Any = from_parts(value._magnitude, value._units, value.provenance)
        return _known(_quantity(quantity), made_of(value) or made)
    if isinstance(value, int):
        return _known(_with_source(TracedInt, value), made_of(value) or made)
    if isinstance(value, float):
        return _known(TracedFloat(value), made)
    if isinstance(value, tuple | list):
        whole = Seen(value, made) if made else None
        parts = [
            traced(
                part,
                Made("part", f"[{i}]", (whole,), {}, operator.itemgetter(i)) if whole else None,
            )
            for i, part in enumerate(value)
        ]
        if type(value) in (tuple, list):
            return type(value)(parts)
        return type(value)(*parts) if hasattr(value, "_fields") else value
    if type(value) in (dict, Fixed):
        whole = Seen(value, made) if made else None
        return {
            key: traced(
                part,
                Made("part", f"[{key!r}]", (whole,), {}, operator.itemgetter(key))
                if whole
                else None,
            )
            for key, part in value.items()
        }
    return Seen(value, made) if _of_calc(value) else value


def _with_source(kind: Any, value: Any) -> Any:
    """A whole number of another kind, with the source that this one has."""
    sourced = kind(value)
    if (provenance := getattr(value, "provenance", None)) is not None:
        sourced.provenance = provenance
    return sourced


def _known(value: Any, made: Made | None) -> Any:
    value.made_by = made
    return value


def _quantity(plain: Quantity) -> Any:
    quantity_traced: Any = object.__new__(TracedQuantity)
    quantity_traced._magnitude, quantity_traced._units = plain._magnitude, plain._units
    if plain.provenance is not None:
        quantity_traced.provenance = plain.provenance
    return quantity_traced


def _of_calc(value: object) -> bool:
    """Return whether it is a module, a function or an object of the library, not of derivations."""
    if isinstance(value, Exception | Enum):
        return False
    if isinstance(value, type) and issubclass(value, Exception | Quantity | Enum):
        return False
    named = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    address = str(named)
    return address.split(".")[0] == LIBRARY and not address.startswith(DERIVATIONS)


def bare(value: Any) -> Any:
    """The value without what it carries, and so each value of a list, a tuple or a mapping."""
    kind = type(value)
    if kind is TracedQuantity:
        return from_parts(value._magnitude, value._units, value.provenance)
    if kind is TracedFloat:
        return float(value)
    if kind is TracedInt:
        return _with_source(Count if value.provenance else int, value)
    if kind is TracedText:
        return str(value)
    if kind is Seen:
        return value.thing
    if kind is list:
        return [bare(part) for part in value]
    if kind is tuple or kind is TracedRows:
        return tuple(map(bare, value))
    if kind is dict:
        return {bare(key): bare(part) for key, part in value.items()}
    if kind is set:
        return set(map(bare, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*map(bare, value))
    if isinstance(value, Iterator):
        return map(bare, value)
    return value


def kept(value: Any, row_name: str = "", witness: Any = None) -> Any:
    """The value as a row of that name, or as one that this witness stands beside."""
    if is_coming(value):
        coming = Deferred(kept, value, row_name, witness)
        coming.witness = witness
        return coming
    made = made_of(value) or made_of(traced(value))
    datum = made is not None and made.kind == "datum"
    if isinstance(value, Traced) and value.row_name not in ("", row_name) and not datum:
        made = Made("same", value.row_name, (value,), {}, bare)
    copied: Any
    if isinstance(value, Quantity):
        copied = _quantity(value)
    elif type(value) is Seen:
        copied = Seen(value.thing, made)
    elif type(value) in (tuple, list, TracedRows):
        copied = TracedRows(value)
    elif isinstance(value, dict):
        copied = TracedTables(value)
    else:
        kind = next(kind for kind in (str, int, float) if isinstance(value, kind))
        copied = _with_source({str: TracedText, int: TracedInt, float: TracedFloat}[kind], value)
    copied.made_by, copied.row_name = made, row_name
    renamed = isinstance(value, Traced) and value.row_name not in ("", row_name)
    copied.witness = witness or (None if renamed else getattr(value, "witness", None))
    return copied
