"""Common parts of networks that are no decoder transformers: counts, and parameters by part.

Each family is a module beside this one, and its `@dataclass` holds the numbers of its tables in
`calc/data/models.toml`.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar

from calc.core.elementwise import largest
from calc.core.errors import InputError, abbreviated
from calc.core.records import Count, Entry
from calc.core.units import Quantity, quantity

LARGEST = {  # beyond any model: only slips of the keyboard lead there
    "": 1e9,
    "param": 1e15,
    "byte": 1e16,
    "FLOP": 1e15,
}
UNITS = {  # of fields that are no pure counts
    "total": "param",
    "text_encoder": "param",
    "checkpoint": "byte",
    "work": "FLOP",
}


def linear(inputs: int, outputs: int, bias: bool = True) -> int:
    """Parameters of a dense layer."""
    return inputs * outputs + (outputs if bias else 0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Network(Entry):
    """One network: its numbers, and its parameters part by part."""

    family: ClassVar[str]
    """What such a network is called, with its article."""

    key: str = ""
    name: str = "this network"
    year: int | None = None
    total: Quantity | None = None
    """Parameters as published; `parameters` counts them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_numbers(self)

    @property
    def parts(self) -> dict[str, Quantity]:
        """Parameters of each part."""
        raise NotImplementedError

    @property
    def parameters(self) -> Quantity:
        """Number of all parameters, by their count."""
        return sum(self.parts.values(), quantity(0, "param"))

    @property
    def shape(self) -> dict[str, object]:
        """Lists that the numbers of a network do not tell, as people read them."""
        return {}

    def _counted(self, counts: dict[str, int]) -> dict[str, Quantity]:
        return {part: quantity(count, "param") for part, count in counts.items() if count}


def whole_numbers(model: str, name: str, numbers: Any) -> tuple[int, ...]:
    """A list of whole numbers from 1, such as the rows of tables."""
    try:
        whole = tuple(int(number) for number in numbers)
        right = whole and all(a == b and b >= 1 for a, b in zip(numbers, whole, strict=True))
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right or any(isinstance(number, bool) for number in numbers):
        raise InputError(
            f"{model}: {name} must be whole numbers from 1, as in [512, 256]; got"
            f" {abbreviated(numbers)}"
        )
    return whole


def read_numbers(model: Any) -> None:
    """Replace the numbers that a model was made of, be they quantities or text, by checked ones.

    Counts become whole numbers; what has a unit in `UNITS` stays a quantity.
    """
    check_name(model.name)
    for field in number_fields(type(model)):
        value, needed = getattr(model, field.name), field.default is MISSING
        if needed or value is not None:
            number = read_number(model.name, field.name, value, int(needed))
            object.__setattr__(model, field.name, number)


def check_name(name: object) -> None:
    """Refuse what refusals could not begin with."""
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise InputError(f"a model's name is a line of text; got {abbreviated(name)}")


def number_fields(family: type) -> list[Field[Any]]:
    """The fields of a family of models that are numbers with a source."""
    kinds = "int", "int | None", "Quantity | None"
    return [field for field in fields(family) if field.type in kinds and field.name != "year"]


def read_number(model: str, name: str, stated: Any, least: int = 1) -> Any:
    """A whole number that keeps where it comes from: an int, or a quantity where it has a unit."""
    unit = UNITS.get(name, "")
    try:
        number = stated if isinstance(stated, Quantity) else quantity(stated)
        number = quantity(number.magnitude, unit) if unit and number.unitless else number
    except InputError as error:
        raise InputError(f"{model}: {name}: {error}") from None
    fits = number.is_compatible_with(unit) and not number.ndim and not isinstance(stated, bool)
    whole = unit == "FLOP" or (fits and not number.m_as(unit) % 1)
    if not fits or not whole or not least <= number.m_as(unit) <= LARGEST[unit]:
        most = f" to {quantity(LARGEST[unit])}" if largest(number) > LARGEST[unit] else ""
        raise InputError(
            f"{model}: {name} must be a whole number from {least}{most}; got {abbreviated(stated)}"
        )
    return number if unit else Count.from_quantity(number)
