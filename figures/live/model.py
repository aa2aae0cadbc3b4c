"""Parts of a live figure: inputs that a reader may change, and the answer that is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from calc import quantity
from calc.core.errors import InputError, abbreviated
from calc.core.formatting import printed_number
from calc.core.units import Quantity


def _typed(text: str) -> Quantity | None:
    """Return the quantity that was typed; None for words alone, which name no number."""
    return quantity(text) if any(map(str.isdecimal, text)) else None


@dataclass(frozen=True)
class Amount:
    """A quantity that is typed, with its unit and its range; a bare number is in that unit."""

    name: str
    label: str
    default: str
    unit: str
    least: float
    most: float
    optional: bool = False

    def read(self, text: str) -> Quantity:
        """The amount, or a refusal that says what is needed.

        >>> print(Amount("size", "Message", "1 MB", "byte", 1, 1e12).read("3 kB"))
        3 kB
        >>> Amount("size", "Message", "1 MB", "byte", 1, 1e12).read("much")
        Traceback (most recent call last):
            ...
        calc.core.errors.InputError: Message must be in byte or the like, as "1 MB" is; got 'much'
        """
        value = _typed(text)
        if value is not None and self.unit and value.unitless:
            value = quantity(value.m_as(""), self.unit)
        if value is None or not value.is_compatible_with(self.unit):
            kind = (
                f'in {self.unit} or the like, as "{self.default}" is' if self.unit else "a number"
            )
            raise InputError(f"{self.label} must be {kind}; got {abbreviated(text)}")
        if not self.least <= value.m_as(self.unit) <= self.most:
            raise InputError(f"{self.label} must be {self.range}; got {abbreviated(text)}")
        return value

    @property
    def range(self) -> str:
        """Range of the values that are read, in words."""
        return f"from {quantity(self.least, self.unit)} to {quantity(self.most, self.unit)}"


@dataclass(frozen=True)
class Count:
    """A whole number that is typed."""

    name: str
    label: str
    default: str
    least: int
    most: int
    optional: bool = False
    unit: str = ""

    def read(self, text: str) -> int:
        """The count, or a refusal that says what is needed.

        >>> Count("devices", "Devices", "8", 1, 1024).read("16")
        16
        """
        value = _typed(text)
        number = value.m_as("") if value is not None and value.unitless else math.nan
        if not (self.least <= number <= self.most and number == math.floor(number)):
            raise InputError(
                f"{self.label} must be a whole number {self.range}; got {abbreviated(text)}"
            )
        return int(number)

    @property
    def range(self) -> str:
        """Range of the values that are read, in words."""
        return f"from {self.least} to {printed_number(str(self.most))}"


@dataclass(frozen=True)
class Choice:
    """One word of several."""

    name: str
    label: str
    default: str
    words: tuple[str, ...]
    optional: bool = False
    unit: str = ""
    range: str = ""

    def read(self, text: str) -> str:
        """The word, or a refusal that names a few of those that are known.

        >>> Choice("dtype", "Format", "bf16", ("bf16", "fp8")).read("fp8")
        'fp8'
        """
        if text not in self.words:
            choices = ", ".join(self.words[:6]) + (", …" if len(self.words) > 6 else "")
            raise InputError(f"{self.label} is one of {choices}; got {abbreviated(text)}")
        return text


Input = Amount | Count | Choice


@dataclass(frozen=True)
class Axis:
    """Label, unit and scale of an axis."""

    label: str
    unit: str = ""
    log: bool = False

    def of(self, value: Quantity) -> float:
        """A quantity as it is drawn."""
        drawn: float = value.m_as(self.unit)
        return drawn


@dataclass(frozen=True)
class Drawing:
    """Style of the rows of a figure: lines through (x, y), or stacked bars of y for each x."""

    x: Axis
    y: Axis
    mark: str = "line"


@dataclass(frozen=True)
class Answer:
    """Answer of a model to its inputs: rows that are drawn, and facts that stand beside them."""

    rows: list[tuple[str, Any, float]]
    """A row for each point: the name of its line or part of a bar, then x and y in the units of
    their axes."""
    facts: dict[str, str]
    """The first three are read at a glance."""
    caption: str
    """What is drawn, for these inputs, in a sentence."""
    python: str
    """A program that prints what is read, for who has calc installed."""
    command: str = ""
    """Call at the command line that says the same, where there is a command for it."""
    dots: list[tuple[str, Any, float]] = field(default_factory=list)
    """Places that have a name."""
    levels: list[tuple[str, float]] = field(default_factory=list)
    """Levels of y that have a name."""
    bands: list[tuple[str, list[tuple[float, float]]]] = field(default_factory=list)
    """Around the line of that name, where 80 % of what is measured should lie: the outline."""
    measured: list[tuple[str, float, float]] = field(default_factory=list)
    """What others measured, and by what name: small dots."""


@dataclass(frozen=True)
class Model:
    """A live figure: its title, its inputs, how it is drawn, and the function that answers."""

    title: str
    inputs: tuple[Input, ...]
    drawing: Drawing
    answer: Callable[..., Answer]

    def defaults(self) -> dict[str, str]:
        """Return the texts that the fields hold at first."""
        return {field.name: field.default for field in self.inputs}


Point = tuple[float, float]


def band(name: str, ends: Iterable[Sequence[Point] | None]) -> list[tuple[str, list[Point]]]:
    """The outline around a line, of both ends at each of its places; none where one has none.

    >>> band("expected", [((1, 2), (1, 4)), ((2, 3), (2, 6))])
    [('expected', [(1, 2), (2, 3), (2, 6), (1, 4)])]
    """
    both_ends = [both for both in ends if both is not None]
    lows, highs = [low for low, _ in both_ends], [high for _, high in both_ends]
    return [(name, [*lows, *reversed(highs)])] if len(both_ends) > 1 else []


def geometric(low: float, high: float, count: int) -> Iterator[float]:
    """Numbers from low to high, each so many times the one before; both ends are exact.

    >>> list(geometric(1, 100, 3))
    [1.0, 10.0, 100.0]
    """
    yield float(low)
    for step in range(1, count - 1):
        yield low * (high / low) ** (step / (count - 1))
    yield float(high)


def doubling(most: int, factor: int = 2) -> list[int]:
    """1, 2, 4 and so on up to a number, and that number.

    >>> doubling(12)
    [1, 2, 4, 8, 12]
    """
    degrees = [1]
    while degrees[-1] * factor < most:
        degrees.append(degrees[-1] * factor)
    return degrees + ([most] if most > 1 else [])
