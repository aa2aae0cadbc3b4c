"""What networks that are not decoder transformers have in common: counts, and parameters by part.

Each family is a module beside this one, and its `@dataclass` holds the numbers of its tables in
`calc/data/models.toml`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from calc.core.elementwise import largest
from calc.core.errors import InputError, abbreviated
from calc.core.units import Quantity, quantity

LARGEST = 1e15  # beyond any count of parameters: only slips of the keyboard lead there
UNITS = {  # of fields that are no pure counts
    "total": "param",
    "checkpoint": "byte",
    "work": "FLOP",
}


def linear(inputs: int, outputs: int, bias: bool = True) -> int:
    """Parameters of a dense layer."""
    return inputs * outputs + (outputs if bias else 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Network:
    """One network: its numbers, and its parameters part by part."""

    family: ClassVar[str]
    """What such a network is called, with its article."""

    key: str = ""
    name: str = "this network"
    year: int | None = None
    total: Quantity | None = None
    """Parameters as published; `parameters` counts them."""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and self.name.isprintable()):
            raise InputError(f"a model's name is a line of text; got {abbreviated(self.name)}")
        for field in fields(self):
            value, needed = getattr(self, field.name), field.default is MISSING
            if str(field.type).startswith("Quantity") and (needed or value is not None):
                unit = UNITS.get(field.name, "")
                object.__setattr__(self, field.name, _count(self.name, field.name, value, unit))

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part."""
        raise NotImplementedError

    @property
    def parameters(self) -> Quantity:
        """All parameters, counted."""
        return sum(self.parts.values(), quantity(0, "param"))

    @property
    def shape(self) -> dict[str, Any]:
        """What its numbers do not tell: its lists, as people read them."""
        return {}

    def _counted(self, counts: dict[str, int]) -> dict[str, Quantity]:
        return {part: quantity(count, "param") for part, count in counts.items() if count}

    def _int(self, name: str) -> int:
        value: Quantity | None = getattr(self, name)
        return 0 if value is None else int(value.magnitude)


def whole_numbers(model: str, name: str, given: Any) -> tuple[int, ...]:
    """A list of whole numbers from 1, such as the rows of tables."""
    try:
        found = tuple(int(each) for each in given)
        right = found and all(a == b and b >= 1 for a, b in zip(given, found, strict=True))
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right or any(isinstance(each, bool) for each in given):
        raise InputError(
            f"{model}: {name} must be whole numbers from 1, as in [512, 256]; got"
            f" {abbreviated(given)}"
        )
    return found


def _count(model: str, name: str, given: Any, unit: str) -> Quantity:
    """A whole number, as a quantity that keeps where it comes from."""
    try:
        count = given if isinstance(given, Quantity) else quantity(given)
        count = quantity(count.magnitude, unit) if unit and count.unitless else count
    except InputError as error:
        raise InputError(f"{model}: {name}: {error}") from None
    fits = count.is_compatible_with(unit) and not count.ndim and not isinstance(given, bool)
    whole = unit == "FLOP" or (fits and not count.m_as(unit) % 1)
    if not fits or not whole or not 1 <= count.m_as(unit) <= LARGEST:
        most = f" to {quantity(LARGEST)}" if fits and largest(count) > LARGEST else ""
        raise InputError(
            f"{model}: {name} must be a whole number from 1{most}; got {abbreviated(given)}"
        )
    return count
