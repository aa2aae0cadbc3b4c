"""Units are types: the one registry, the Quantity that calls it home, and `quantity()` to make one.

The registry knows the units of `units.txt` and no others. Text is read by `parsing.py`, never by
pint's expression evaluator, and printed by `formatting.py`. pint's application registry is left
alone.
"""

from __future__ import annotations

import copy
import html
import inspect
import math
import numbers
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeAlias, cast

from pint import DimensionalityError
from pint.facets.numpy.quantity import NumpyQuantity
from pint.facets.numpy.registry import GenericNumpyRegistry
from pint.facets.numpy.unit import NumpyUnit
from pint.facets.plain import PlainQuantity, PlainUnit
from pint.util import UnitsContainer

from calc.core import formatting, parsing, spelling
from calc.core.arrays import numpy
from calc.core.errors import InputError, NumpyNeededError, abbreviated, do_not_broadcast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calc.core.arrays import Number
    from calc.core.provenance import Provenance


FLOAT_MAX = sys.float_info.max
NUMBER = UnitsContainer()

# Functions of numpy whose answer depends on the unit: they take shares as the numbers they equal.
ROUNDING = "around ceil fix floor floor_divide fmod mod remainder rint round trunc"
SHARES_ARE_NUMBERS = frozenset(f"{ROUNDING} allclose frexp isclose isin modf nanvar var".split())
SAME_DIMENSION = ("floor_divide", "fmod", "mod", "remainder")  # which both operands must have
OPTIONS = {  # what each takes beside its quantity: a value of the same unit, or bare numbers
    "sum": ("initial",),
    "nansum": ("initial",),
    "std": ("mean",),
    "nanstd": ("mean",),
    "var": ("mean",),
    "nanvar": ("mean",),
    "isclose": ("rtol",),
    "allclose": ("rtol",),
    "quantile": ("q", "weights"),
    "nanquantile": ("q", "weights"),
    "average": ("returned", "weights"),
    "copyto": ("src",),
    "diff": ("append", "prepend"),
    "ediff1d": ("to_begin", "to_end"),
}


class _NotebookText:
    """Notebooks show the text that print() shows."""

    def _repr_html_(self) -> str:
        return html.escape(str(self))

    def _repr_latex_(self) -> None:
        """pint has one, and notebooks would prefer it."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Unit(_NotebookText, NumpyUnit):  # type: ignore[misc]  # pint's LaTeX is a str
    """A unit of calc's registry, such as FLOP/byte."""

    _REGISTRY: ClassVar[Registry]  # type: ignore[assignment]

    def __str__(self) -> str:
        return formatting.unit_text(self._units, self._REGISTRY)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"Unit({str(self)!r})"

    def __eq__(self, other: object) -> Any:
        """Text is that of a unit; pint would evaluate it."""
        if not isinstance(other, str):
            return super().__eq__(other)
        try:
            return self == Unit(other)
        except InputError:
            return False

    __hash__ = NumpyUnit.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Unit, (self._units,)


class Quantity(_NotebookText, NumpyQuantity[Any]):  # type: ignore[misc]  # as above
    """A float, or a numpy array of them, with its unit: `Quantity(3.35, "TB/s")`.

    Arithmetic between quantities checks dimensions, and a product has one unit for each: GB/GiB is
    a number. `.to("GB/s")` changes the unit; `.magnitude` is the bare number. A quantity read from
    a data file knows its `provenance`; a computed one has none.
    """

    _REGISTRY: ClassVar[Registry]  # type: ignore[assignment]
    provenance: Provenance | None = None

    def _repr_html_(self) -> str:
        """The text, and where the value comes from for who points at it."""
        shown = super()._repr_html_()
        if self.provenance is None:
            return shown
        where = f"{self.provenance.title}: {self.provenance.kind}, {self.provenance.cited}"
        return f'<span title="{html.escape(where)}">{shown}</span>'

    def __new__(cls, value: Any, units: Any = None) -> Quantity:
        parsed: Any = value
        if isinstance(value, str):
            parsed = cls._REGISTRY.parse_expression(value)
            if units is None:
                return cast(Quantity, parsed)
        elif not isinstance(value, PlainQuantity):
            parsed = as_float_or_array(value)
            if type(units) is str:
                units = cls._REGISTRY._parse_units_as_container(units)
            if type(units) is UnitsContainer:  # the result of arithmetic, most of the time
                return from_parts(parsed, units)
        elif not isinstance(value, Quantity):
            parsed = _from_other_registry(value)
        return cast(Quantity, super().__new__(cls, parsed, units))

    def __reduce__(self) -> tuple[Any, ...]:
        return from_parts, (self._magnitude, dict(self._units), self.provenance)

    def __copy__(self) -> Quantity:
        magnitude = self._magnitude
        copied = magnitude if type(magnitude) is float else copy.copy(magnitude)
        return from_parts(copied, self._units, self.provenance)

    def __deepcopy__(self, memo: Any) -> Quantity:
        return from_parts(copy.deepcopy(self._magnitude, memo), self._units, self.provenance)

    # Most quantities hold one float, and pint asks of each whether it is something else. What it
    # would do with floats is done here at once; all else, and every refusal, is left to it.

    if TYPE_CHECKING:  # pint says Any, or its own class, of what is of the class that it began with

        def __add__(self, other: Quantity | Number) -> Quantity: ...
        def __radd__(self, other: Number) -> Quantity: ...
        def __sub__(self, other: Quantity | Number) -> Quantity: ...
        def __rsub__(self, other: Number) -> Quantity: ...
        def __mul__(self, other: Quantity | Unit | Number) -> Quantity: ...
        def __rmul__(self, other: Number) -> Quantity: ...
        def __truediv__(self, other: Quantity | Unit | Number) -> Quantity: ...
        def __rtruediv__(self, other: Number) -> Quantity: ...
        def __iadd__(self, other: Quantity | Number) -> Quantity: ...  # type: ignore[override]
        def __isub__(self, other: Quantity | Number) -> Quantity: ...
        def __neg__(self) -> Quantity: ...
        def __abs__(self) -> Quantity: ...

    def to(self, other: Any = None, *contexts: Any, **context_arguments: Any) -> Quantity:
        if type(other) is str and type(self._magnitude) is float:
            units = self._REGISTRY._parse_units_as_container(other)
            factor = self._REGISTRY.factor_between(self._units._d, units._d)
            if factor is not None:
                return from_parts(self._magnitude * factor, units, self.provenance)
        converted: Quantity = super().to(other, *contexts, **context_arguments)
        if self.provenance is not None:  # another unit, the same value from the same source
            converted.provenance = self.provenance
        return converted

    def m_as(self, units: Any) -> Any:
        if type(units) is str and type(self._magnitude) is float:
            wanted = self._REGISTRY._parse_units_as_container(units)
            if self._units is wanted:
                return self._magnitude
            factor = self._REGISTRY.factor_between(self._units._d, wanted._d)
            if factor is not None:
                return self._magnitude * factor
        return super().m_as(units)

    def _add_sub(self, other: Any, operator: Any) -> Any:
        if type(other) is Quantity and type(self._magnitude) is type(other._magnitude) is float:
            factor = self._REGISTRY.factor_between(other._units._d, self._units._d)
            if factor is not None:
                return from_parts(operator(self._magnitude, other._magnitude * factor), self._units)
        with _going_together(self, other):
            return super()._add_sub(other, operator)

    def _iadd_sub(self, other: object, operator: object) -> Any:
        with _going_together(self, other):
            return super()._iadd_sub(other, operator)

    # pint's own arithmetic, and then one unit for each dimension.

    def _mul_div(self, other: Any, *operators: Any) -> Any:
        if type(self._magnitude) is float:
            if type(other) is float or type(other) is int:
                return from_parts(operators[0](self._magnitude, other), self._units)
            if type(other) is Quantity and type(other._magnitude) is float:
                magnitude = operators[0](self._magnitude, other._magnitude)
                factor, merged = _combined(
                    tuple(self._units._d.items()), tuple(other._units._d.items()), operators[0]
                )
                return from_parts(magnitude * factor, merged)
        units = self._units, getattr(other, "_units", None)
        with _going_together(self, other):
            return _merged(super()._mul_div(other, *operators), units)

    def _imul_div(self, other: object, *operators: object) -> Any:
        units = self._units, getattr(other, "_units", None)
        with _going_together(self, other):
            return _merged(super()._imul_div(other, *operators), units)

    def __pow__(self, other: object) -> Quantity:
        return cast(Quantity, _merged(super().__pow__(other), [self._units]))

    # pint hands bare magnitudes to numpy, and some functions forget what their units are worth.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        operands = _of_one_unit(name, inputs)
        if name in SAME_DIMENSION:
            operands = [Quantity(operand).to(_first(operands)) for operand in operands]
        with _going_together(*inputs):
            result: Any = super().__array_ufunc__(ufunc, method, *operands, **options)  # type: ignore[no-untyped-call]
        return _merged(result, [getattr(operand, "_units", None) for operand in operands])

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = func.__name__
        operands = _of_one_unit(name, [*args, *kwargs.values()])
        args, kwargs = operands[: len(args)], dict(zip(kwargs, operands[len(args) :], strict=True))
        if name in OPTIONS:
            bound = inspect.signature(func).bind(*args, **kwargs)
            for option in bound.arguments.keys() & OPTIONS[name]:
                bound.arguments[option] = _bare(option, bound.arguments[option], operands)
            args, kwargs = bound.args, bound.kwargs
        try:
            result: Any = super().__array_function__(func, types, args, kwargs)  # type: ignore[no-untyped-call]
        except RecursionError:  # pint left a quantity where it looks for none, and met it again
            raise InputError(f"numpy.{name} takes bare numbers beside its quantity") from None
        return _merged(result, [operand._units for operand in _quantities(operands)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The numbers of a share; what has a unit is refused, since an array has none."""
        if not self.dimensionless:
            raise InputError(
                f'an array of numpy has no unit: write .m_as("{self.units}") for the numbers of'
                f" {abbreviated(self)}"
            )
        return numpy.array(self.m_as(""), dtype)

    def _numpy_method_wrap(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        if func.__name__ in SHARES_ARE_NUMBERS or func.__name__ in OPTIONS:
            return getattr(numpy, func.__name__)(self, *args, **kwargs)
        return super()._numpy_method_wrap(func, *args, **kwargs)  # type: ignore[no-untyped-call]

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:
        return numpy.clip(self, min, max, out, **kwargs)

    def searchsorted(self, v: Any, side: Any = "left", sorter: Any = None) -> Any:
        return numpy.searchsorted(self, v, side, sorter)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        self._magnitude.put(indices, Quantity(values).m_as(self.units), mode)

    def __round__(self, ndigits: int | None = None) -> Any:
        (merged,) = _of_one_unit("round", [self])
        return NumpyQuantity.__round__(merged, ndigits)

    def _comparable(self) -> tuple[Any, frozenset[tuple[str, Any]]]:
        """Magnitude in root units, less the last digits that depend on the unit it came from."""
        factor, root = _root(tuple(self._units._d.items()))
        value = self._magnitude * factor
        canonical = _rounded if root else _cleaned
        if isinstance(value, float):
            return canonical(value), root
        # Arrays of a sweep have few different numbers.
        numbers, places = numpy.unique(value.ravel(), return_inverse=True)
        same = numpy.array([canonical(number) for number in numbers.tolist()], dtype=float)
        return same[places].reshape(value.shape), root

    def _comparable_with(self, other: object) -> tuple[Any, Any] | None:
        """Return this and the other magnitude, to compare; None where their dimensions differ."""
        mine, my_root = self._comparable()
        if isinstance(other, int | float):  # as it is: equal numbers have equal hashes
            return None if my_root else (mine, other)
        if not isinstance(other, Quantity):
            return None
        theirs, their_root = other._comparable()
        return (mine, theirs) if my_root == their_root else None

    def __eq__(self, other: object) -> Any:
        if pair := self._comparable_with(other):
            with _going_together(*pair):
                return pair[0] == pair[1]
        if not isinstance(other, PlainQuantity | int | float):
            return super().__eq__(other)
        # Of other dimensions or another registry, so unequal; an array says so element by element.
        return self._magnitude != self._magnitude if self.ndim else False

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else ~equal

    def compare(self, other: object, op: Callable[[Any, Any], Any]) -> Any:
        """Compare as <, <=, > and >= do: as exact as ==; any quantity may be held against zero."""
        if pair := self._comparable_with(other):
            with _going_together(*pair):
                return op(*pair)
        if isinstance(other, int | float) and other != 0:
            raise DimensionalityError(str(self.units), "a number", str(self.dimensionality))
        return super().compare(other, op)

    def __hash__(self) -> int:
        magnitude, root = self._comparable()
        return hash((magnitude, root) if root else magnitude)

    def __str__(self) -> str:
        return formatting.text(self)

    def __format__(self, spec: str) -> str:
        return formatting.text(self, spec)

    def __repr__(self) -> str:
        return f"Quantity({self._magnitude!r}, {str(self.units)!r})"


if TYPE_CHECKING:

    class SupportsArray(Protocol):
        """An array, told so loosely because mypy then reads the laws a hundred times as fast.

        It tries each operator of a body on every pair of types, and numpy's have many overloads.
        """

        def __array__(self) -> NDArray[Any]: ...

    QuantityLike: TypeAlias = Quantity | str | float | Sequence[float] | SupportsArray
    Label: TypeAlias = str | Any
else:  # numpy need not be there
    QuantityLike = Quantity | str | float | Sequence
    Label = str
"""What laws accept: a quantity, its text ("80 GB"), or bare numbers where the unit is a count.

`Label` is what a law answers whose result is a word such as "memory": a str, or an array of them
for arrays. The array is Any to type checkers, so that who gives scalars need not rule it out.
"""


class Registry(GenericNumpyRegistry[Quantity, Unit]):
    """pint's registry, with every text handed to calc's parser."""

    _active_ctx = ()  # pint asks for its contexts, of which calc has none

    def _init_dynamic_classes(self) -> None:
        # One registry, so the classes belong to it: they pickle and are named like any other.
        self.Quantity, self.Unit = Quantity, Unit
        Quantity._REGISTRY = Unit._REGISTRY = self

    def __getattr__(self, name: str) -> Any:
        """A unit by its name, as pint has it."""
        try:
            return super().__getattr__(name)
        except InputError as error:
            raise AttributeError(str(error)) from None

    def parse_expression(self, input_string: str, *_: object, **__: object) -> Quantity:
        return from_parts(*_parse(input_string))

    __call__ = parse_expression  # pint binds its own

    def _parse_units_as_container(
        self, input_string: str, *_: object, **__: object
    ) -> UnitsContainer:
        cache = self._cache.parse_unit
        if input_string not in cache:
            cache[input_string] = UnitsContainer(parsing.parse_unit(input_string, self))
        return cache[input_string]

    def get_dimensionality(self, input_units: object) -> UnitsContainer:
        return super().get_dimensionality(self._read(input_units))

    def get_compatible_units(self, input_units: object) -> frozenset[Unit]:
        return super().get_compatible_units(self._read(input_units))

    def _read(self, units: object) -> Any:
        """Text such as "GB/s" or "[information]/[time]" as its units; pint would evaluate it."""
        if not isinstance(units, str):
            return units
        if "[" in units:  # a dimension stands for the unit that it is defined by
            units = re.sub(r"\[(\w+)\]", self._unit_of_dimension, units.replace(" ", ""))
        return self._parse_units_as_container(units)

    def _unit_of_dimension(self, dimension: re.Match[str]) -> str:
        for unit in self._units.values():
            if unit.is_base and dimension[0] in dict(unit.reference or {}):
                return f"({unit.name})"
        raise InputError(f"there is no dimension {dimension[0]}")

    def define(self, definition: object) -> NoReturn:
        raise InputError(
            f"cannot define {abbreviated(definition)}: calc's units are those of units.txt"
        )

    def load_definitions(self, file: Any, is_resource: bool = False) -> Any:
        if self._initialized:
            self.define(file)
        return super().load_definitions(file, is_resource)

    def _get_base_units(self, units: UnitsContainer) -> tuple[Any, UnitsContainer]:
        """The units that `units.txt` defines the others by; calc has no other system."""
        return self._get_root_units(units)

    @cached_property
    def _merged(self) -> dict[tuple[tuple[str, Any], ...], tuple[float, UnitsContainer] | None]:
        return {}

    def merged(self, units: UnitsContainer) -> tuple[float, UnitsContainer] | None:
        """One unit for each dimension, and its factor; None where the units are so already."""
        key = tuple(units._d.items())  # equal units in another order have another first
        if key not in self._merged:
            try:
                factor, powers = parsing.merge_units(units._d, self)
            except OverflowError:
                unit = formatting.unit_text(units, self)
                raise InputError(f"the unit {unit} is too large for floating point") from None
            self._merged[key] = None if powers == units._d else (factor, UnitsContainer(powers))
        return self._merged[key]

    @cached_property
    def unit_names(self) -> dict[str, tuple[str, str]]:
        units = ((text, unit.name) for text, unit in self._units.items())
        prefixes = ((text, prefix.name) for text, prefix in self._prefixes.items())
        return spelling.unit_names(units, prefixes)

    def factor_between(self, source: Mapping[str, Any], target: Mapping[str, Any]) -> float | None:
        """Return the factor from one unit to another; None where dimensions differ."""
        return _factor_between(tuple(source.items()), tuple(target.items()))

    def symbol(self, name: str) -> str:
        return "byte" if name == "byte" else self.get_symbol(self.get_name(name))


# What a text or a pair of units means never changes: there is one registry, and it takes no more.
@lru_cache(maxsize=1024)
def _parse(text: str) -> tuple[float, UnitsContainer]:
    magnitude, powers = parsing.parse(text, registry)
    return magnitude, UnitsContainer(powers)


@lru_cache(maxsize=1024)
def _factor_between(
    source: tuple[tuple[str, Any], ...], target: tuple[tuple[str, Any], ...]
) -> float | None:
    factor: Any = registry._get_conversion_factor(UnitsContainer(source), UnitsContainer(target))
    return None if isinstance(factor, Exception) else float(factor)


@lru_cache(maxsize=1024)
def _root(units: tuple[tuple[str, Any], ...]) -> tuple[Any, frozenset[tuple[str, Any]]]:
    factor, root = registry._get_root_units(UnitsContainer(units))
    return factor, frozenset(root._d.items())


def from_parts(
    magnitude: Number, units: parsing.Powers | UnitsContainer, provenance: Provenance | None = None
) -> Quantity:
    """A Quantity of parts known to be sound, as parsing, laws, copies and pickles have them."""
    result = object.__new__(Quantity)
    result._magnitude = magnitude
    result._units = units if isinstance(units, UnitsContainer) else UnitsContainer(units)
    if provenance is not None:
        result.provenance = provenance
    return result


def _rounded(value: float) -> float:
    """Round to twelve digits, in which conversions of one value from different units agree."""
    return float(f"{value:.12g}")


def _cleaned(value: float) -> float:
    """A pure number stays as it is, to equal the bare float; but 7 * 0.01 is the 0.07 of 7%."""
    rounded = _rounded(value)
    return rounded if math.isclose(rounded, value, rel_tol=1e-14) else value


@contextmanager
def _going_together(*operands: object) -> Iterator[None]:
    """Says in a sentence what numpy says of arrays whose shapes do not go together."""
    try:
        yield
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        raise do_not_broadcast(operands) from None


def _merged(result: object, operand_units: Sequence[UnitsContainer | None]) -> Any:
    """A result of arithmetic with one unit for each dimension; a unit that an operand has stays."""
    if type(result) is not Quantity:
        return result
    units = result._units
    for operand_unit in operand_units:
        if operand_unit is not None and operand_unit._d == units._d:
            return result
    merged = registry.merged(units)
    if merged is not None:
        factor, result._units = merged
        result._magnitude = result._magnitude * factor
    return result


def _of_one_unit(name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a function of numpy, those of one dimension in the unit of the first.

    Shares are plain numbers where the answer depends on that, and a variance is of merged units,
    since pint takes the square of a unit without its factor.
    """
    numbers = name in SHARES_ARE_NUMBERS
    if not numbers and len({quantity._units for quantity in _quantities(arguments)}) < 2:
        return arguments
    units = {NUMBER: NUMBER} if numbers else {}

    def in_unit(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)([in_unit(part) for part in value])
        if not isinstance(value, Quantity):
            return value
        its_unit = value._units
        if name in ("nanvar", "var"):
            its_unit = (registry.merged(its_unit) or (1.0, its_unit))[1]
        unit = units.setdefault(value.dimensionality, its_unit)
        return value if unit == value._units else value.to(unit)

    return [in_unit(argument) for argument in arguments]


def _quantities(value: Any) -> Iterator[Quantity]:
    """Yield the quantities in an argument, in its lists and in theirs."""
    if isinstance(value, Quantity):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _quantities(part)


def _first(arguments: Sequence[Any]) -> UnitsContainer:
    """The unit of the first quantity among the arguments of a function."""
    return next(_quantities(arguments))._units


def _bare(option: str, value: Any, arguments: Sequence[Any]) -> Any:
    """The numbers of an option that pint hands to numpy as it stands."""
    if option == "returned":
        if value:
            raise InputError("numpy.average of quantities does not return the sum of the weights")
        return value
    if option == "weights":  # only their ratio counts
        return value.magnitude if isinstance(value, Quantity) else value
    if value is None:
        return value
    unit = NUMBER if option in ("q", "rtol") else _first(arguments)
    zero = not isinstance(value, Quantity) and not numpy.any(value)
    return value if zero else Quantity(value).m_as(unit)


@lru_cache(maxsize=4096)
def _combined(
    first: tuple[tuple[str, Any], ...], second: tuple[tuple[str, Any], ...], operator: Any
) -> tuple[float, UnitsContainer]:
    """The unit of a product or a quotient of two units, merged, and the factor of the merging."""
    units = operator(UnitsContainer(first), UnitsContainer(second))
    if units._d in (dict(first), dict(second)):
        return 1.0, units
    return registry.merged(units) or (1.0, units)


def as_float_or_array(value: Any) -> Number:
    """The number as a float, or the numbers as an array of floats; what is no number is refused."""
    if type(value) is float:
        return value
    if isinstance(value, int | numbers.Real | Decimal) and value is not True and value is not False:
        try:
            return float(value)
        except (OverflowError, ValueError):  # too large, or a signalling NaN
            _refuse_magnitude(value)
    if isinstance(value, list | tuple | range) or hasattr(value, "__array__"):
        return _checked_array(value)
    return _refuse_magnitude(value)


def _checked_array(value: object) -> Number:
    try:
        array = numpy.asarray(_without_quantities(value))
    except NumpyNeededError:
        raise
    except Exception:  # uneven rows, a quantity with a unit, an array that fails at being one
        _refuse_magnitude(value)
    if array.dtype.kind not in "iuf" or isinstance(value, numpy.ma.MaskedArray):
        _refuse_magnitude(value)
    array = numpy.asarray(array, dtype=float)
    return array if array.ndim else float(array)


def _without_quantities(value: object) -> Any:
    """A list with the pure numbers of the quantities in it, whose units numpy would strip."""
    if isinstance(value, PlainQuantity):
        return Quantity(value).m_as("")
    return (
        [_without_quantities(part) for part in value] if isinstance(value, list | tuple) else value
    )


def _refuse_magnitude(value: object) -> NoReturn:
    raise InputError(
        "a number, or a list or array of numbers, is needed; got"
        f" {abbreviated(value)}{why_no_numbers(value)}"
    )


def why_no_numbers(value: object, unit: str = "GB") -> str:
    """Return why these numbers are refused, as the end of a sentence."""
    lists = [part for part in (value, *_held(value)) if isinstance(part, list | tuple)]
    parts: list[Any] = [part for row in lists for part in row] or [value]
    if any(isinstance(number, int) and abs(number) > FLOAT_MAX for number in parts):
        return ", which is too large for floating point"
    if any(isinstance(number, str | PlainQuantity) for number in parts if lists):
        return f': numbers and one unit for all are needed, as in calc.quantity([1, 2], "{unit}")'
    if len({len(_held(row)) for row in _held(value)}) > 1:
        return ", whose rows are not of one length"
    return ""


def _held(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def quantity(value: QuantityLike | PlainQuantity[Any], unit: str | None = None) -> Quantity:
    """Make a Quantity of text, of numbers and their unit, or of another pint registry's Quantity.

    >>> print(quantity("2 * 10 GB / 4 GB/s"))
    5 s
    >>> print(quantity(3350, "GB/s").to("TB/s"))
    3.35 TB/s
    >>> quantity("10 GB") + quantity("5 USD")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    pint.errors.DimensionalityError: Cannot convert from 'gigabyte' ([information]) to 'USD' ...
    """
    if type(unit) is str and type(value) is float:
        return from_parts(value, registry._parse_units_as_container(unit))
    if unit is None:
        return Quantity(value)
    if not isinstance(unit, str | PlainUnit | UnitsContainer):
        raise InputError(f'a unit is text such as "GB/s"; got {abbreviated(unit)}')
    if isinstance(value, str | PlainQuantity):
        return Quantity(value).to(unit)
    return Quantity(value, unit)


def _from_other_registry(foreign: PlainQuantity[Any]) -> Quantity:
    """Return a foreign quantity in this registry; each unit must have the same meaning in both."""
    powers: parsing.Powers = {}
    foreign_powers: Any = foreign.unit_items()
    for name, power in foreign_powers:
        pure_number = foreign._REGISTRY.Quantity(1, name).dimensionless
        if pure_number and name.endswith(("bit", "byte", "octet")):
            raise InputError(
                f"{foreign} comes from a registry where {name} is a pure number, so its unit cannot"
                f" be trusted; write calc.quantity({foreign.magnitude}, "
                f'"{foreign.units:~}") with calc\'s own units'
            )
        if power != int(power) or not _agrees(name, foreign._REGISTRY):
            raise InputError(
                f"{foreign} cannot be used: calc's registry has no {name} of the same meaning;"
                f" convert it to units of calc first"
            )
        powers["".join(registry.unit_names[name])] = int(power)
    return from_parts(as_float_or_array(foreign.magnitude), powers)


def _agrees(name: str, foreign_registry: Any) -> bool:
    """Return whether this registry has a unit of that name, of the same root units and factor."""
    if name not in registry.unit_names:
        return False
    ours: Any
    ours, our_root = registry._get_root_units(
        UnitsContainer({"".join(registry.unit_names[name]): 1})
    )
    theirs, their_root = foreign_registry._get_root_units(
        foreign_registry.UnitsContainer({name: 1})
    )
    same_size = math.isclose(theirs, float(ours), rel_tol=1e-9)
    return same_size and dict(our_root) == dict(their_root)


registry = Registry(Path(__file__).with_name("units.txt"))
registry.preprocessors.clear()  # pint would spell % as a word with spaces; calc's parser reads it
