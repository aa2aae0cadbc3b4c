"""Units are types: the one registry, the Quantity that calls it home, and `quantity()` that makes one.

The registry knows the units of `units.txt` and no others. Text is read by `parsing.py`, never by pint's
expression evaluator, and printed by `formatting.py`. pint's application registry is left alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Union

from pint.facets.numpy.quantity import NumpyQuantity
from pint.facets.numpy.registry import GenericNumpyRegistry
from pint.facets.numpy.unit import NumpyUnit
from pint.facets.plain import PlainQuantity
from pint.util import UnitsContainer

from calc import formatting, parsing
from calc.errors import InputError

if TYPE_CHECKING:
    from calc.records import Provenance


class Unit(NumpyUnit):
    """A unit of calc's registry, such as FLOP/byte."""

    _REGISTRY: ClassVar[Registry]  # type: ignore[misc,assignment]

    def __str__(self) -> str:
        return formatting.unit_text(self._units, self._REGISTRY)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return f"Unit({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Unit, (self._units,)


class Quantity(NumpyQuantity[Any]):
    """A number, or a numpy array, with its unit: `Quantity(3.35, "TB/s")`, `Quantity("3.35 TB/s")`.

    Arithmetic between quantities checks dimensions; `.to("GB/s")` changes the unit; `.magnitude` is the bare
    number. A quantity read from a data file knows its `provenance`; a computed one has none.
    """

    _REGISTRY: ClassVar[Registry]  # type: ignore[misc,assignment]
    provenance: Provenance | None = None

    def __new__(cls, value: Any, units: Any = None) -> Quantity:
        if isinstance(value, str):
            value = cls._REGISTRY.parse_expression(value)
        elif isinstance(value, PlainQuantity) and not isinstance(value, Quantity):
            value = _from_other_registry(value)
        made: Quantity = super().__new__(cls, value, units)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._magnitude, dict(self._units), self.provenance)

    def __copy__(self) -> Quantity:
        return _restore(copy.copy(self._magnitude), dict(self._units), self.provenance)

    def __deepcopy__(self, memo: Any) -> Quantity:
        return _restore(copy.deepcopy(self._magnitude, memo), dict(self._units), self.provenance)

    def to(self, other: Any = None, *contexts: Any, **context_arguments: Any) -> Quantity:
        converted: Quantity = super().to(other, *contexts, **context_arguments)
        if self.provenance is not None:  # another unit, the same value from the same source
            converted.provenance = self.provenance
        return converted

    def _comparable(self) -> tuple[Any, UnitsContainer]:
        """Magnitude in root units, rounded where floating point differs with the unit it came from."""
        factor, root = self._REGISTRY._get_root_units(self._units)
        value = self._magnitude * factor
        return (float(f"{value:.12g}") if isinstance(value, int | float) else value), root

    def __eq__(self, other: object) -> Any:
        if isinstance(other, int | float):
            other = Quantity(other, "")
        if not isinstance(other, Quantity):
            return super().__eq__(other)
        (mine, my_root), (theirs, their_root) = self._comparable(), other._comparable()
        if my_root == their_root:
            return mine == theirs
        return False if isinstance(mine, float) else mine != mine  # an array compares elementwise

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else ~equal

    def __hash__(self) -> int:
        magnitude, root = self._comparable()
        return hash((magnitude, root) if root else magnitude)

    def __str__(self) -> str:
        return formatting.text(self)

    def __format__(self, spec: str) -> str:
        return formatting.text(self, spec)

    def __repr__(self) -> str:
        return f"Quantity({self._magnitude!r}, {str(self.units)!r})"

    def _repr_html_(self) -> str:
        return formatting.html(self)

    def _repr_latex_(self) -> None:  # notebooks would prefer it to the HTML
        return None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


QuantityLike = Union[Quantity, str, float, Iterable[float]]
"""What laws accept: a quantity, its text ("80 GB"), or a bare number (or array) where the unit is a count."""


class Registry(GenericNumpyRegistry[Quantity, Unit]):
    """pint's registry, with every text handed to calc's parser."""

    Quantity = Quantity
    Unit = Unit

    def _init_dynamic_classes(self) -> None:
        # One registry, so the classes themselves belong to it: they pickle and are named like any other.
        Quantity._REGISTRY = Unit._REGISTRY = self

    def parse_expression(self, input_string: str, *_: Any, **__: Any) -> Quantity:
        magnitude, powers = parsing.parse(input_string, self)
        return _restore(magnitude, powers)

    def _parse_units_as_container(self, input_string: str, *_: Any, **__: Any) -> UnitsContainer:
        cache = self._cache.parse_unit
        if input_string not in cache:
            cache[input_string] = UnitsContainer(parsing.parse_unit(input_string, self))
        return cache[input_string]

    @cached_property
    def unit_names(self) -> dict[str, tuple[str, str]]:
        return parsing.build_unit_names(self)

    def factor_between(self, source: parsing.Powers, target: parsing.Powers) -> float | None:
        """The number that converts a magnitude from one unit to another; None where dimensions differ."""
        factor = self._get_conversion_factor(UnitsContainer(source), UnitsContainer(target))
        return None if isinstance(factor, Exception) else float(factor)

    def unit_text(self, powers: parsing.Powers) -> str:
        return formatting.unit_text(powers, self)


def _restore(
    magnitude: Any, powers: parsing.Powers | UnitsContainer, provenance: Provenance | None = None
) -> Quantity:
    """A Quantity of known parts, past pint's constructor: pickling, parsing and laws make theirs here."""
    made = object.__new__(Quantity)
    made._magnitude = magnitude
    made._units = powers if isinstance(powers, UnitsContainer) else UnitsContainer(powers)
    if provenance is not None:
        made.provenance = provenance
    return made


def quantity(value: QuantityLike | PlainQuantity[Any], unit: str | None = None) -> Quantity:
    """Make a Quantity of text, of a number or array and its unit, or of another pint registry's Quantity.

    >>> print(quantity("2 * 10 GB / 4 GB/s"))
    5 s
    >>> print(quantity(3350, "GB/s").to("TB/s"))
    3.35 TB/s
    >>> quantity("10 GB") + quantity("5 USD")
    Traceback (most recent call last):
    pint.errors.DimensionalityError: Cannot convert from 'gigabyte' ([information]) to 'USD' ([currency])
    """
    if isinstance(value, list | tuple):
        import numpy

        value = numpy.asarray(value, dtype=float)
    made = Quantity(value)
    if unit is None:
        return made
    if isinstance(value, str | PlainQuantity):
        return made.to(unit)
    return Quantity(value, unit)


def _from_other_registry(foreign: PlainQuantity[Any]) -> Quantity:
    """The same quantity here: each unit must exist in both registries with the same meaning."""
    powers: parsing.Powers = {}
    for name, power in foreign.unit_items():
        if (
            name.endswith(("bit", "byte", "octet"))
            and foreign._REGISTRY.Quantity(1, name).dimensionless
        ):
            raise InputError(
                f"{foreign} comes from a registry where {name} is a pure number, so its unit cannot be trusted;"
                f' write calc.quantity({foreign.magnitude}, "{foreign.units:~}") with calc\'s own units'
            )
        if (
            name not in registry.unit_names
            or power != int(power)
            or not _agrees(name, foreign._REGISTRY)
        ):
            raise InputError(
                f"{foreign} cannot be used: calc's registry has no {name} of the same meaning;"
                f" convert it to units of calc first"
            )
        prefix, unit = registry.unit_names[name]
        powers[prefix + unit] = int(power)
    return _restore(foreign.magnitude, powers)


def _agrees(name: str, foreign_registry: Any) -> bool:
    """Whether a unit name has the same factor to its root units, of the same names, in both registries."""
    ours, our_root = registry._get_root_units(
        UnitsContainer({"".join(registry.unit_names[name]): 1})
    )
    theirs, their_root = foreign_registry._get_root_units(
        foreign_registry.UnitsContainer({name: 1})
    )
    return abs(float(theirs) / ours - 1) < 1e-9 and dict(our_root) == dict(their_root)


registry = Registry(Path(__file__).with_name("units.txt"))
