"""Checks of arguments: counts, words, devices, memory; what is refused is told in one sentence."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from calc.core.arrays import numpy
from calc.core.elementwise import floor, smallest
from calc.core.errors import InputError, NumpyNeededError, abbreviated, marked
from calc.core.units import Quantity, QuantityLike, quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

SUFFIXES = {"K": 1e3, "M": 1e6, "B": 1e9}
EXACT = 2**53  # above it a float holds no digit of what was typed
LARGEST = 2**62  # above all counts, so that no integer of an array wraps


def counted(value: Any) -> Any:
    """A count as people write it, "8k" or "16M", as a number; all else as it is.

    A power of two of k is binary, as people mean 8k of a context and 16k devices; 10k is 10 000.

    >>> counted("8k"), counted("10k"), counted("1.5M token"), counted("8")
    (8192.0, 10000.0, '1.5M token', '8')
    """
    match = re.fullmatch(r"\s*(\d[\d.]*)\s*([kKMB])\s*", value) if isinstance(value, str) else None
    return float(match[1]) * scale_of(float(match[1]), match[2]) if match else value


def scale_of(number: float, suffix: str) -> float:
    """Return what a suffix multiplies a count by: k by 1 024 behind a power of two.

    >>> scale_of(128, "k"), scale_of(100, "k"), scale_of(8, "M")
    (1024.0, 1000.0, 1000000.0)
    """
    whole = int(number) if number % 1 == 0 else 0
    is_binary = suffix in "kK" and whole > 0 and whole & (whole - 1) == 0
    return 1024.0 if is_binary else SUFFIXES[suffix.upper()]


def without_point(number: float) -> int | float:
    """Return a whole number as an int, and any other as it is.

    >>> without_point(8.0), without_point(0.5)
    (8, 0.5)
    """
    return int(number) if float(number).is_integer() and abs(number) < EXACT else number


def whole_number(name: str, value: Any, at_least: int = 1) -> int:
    """A count as it was given; 2.9, True and 0 are refused, never rounded or replaced."""
    try:
        count = -math.inf if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = -math.inf
    if not at_least <= count < LARGEST:
        needed = f"from {at_least}" if count < at_least else "below 2 to the power of 62"
        raise InputError(
            f"{marked(name)} must be a whole number {needed}; got {abbreviated(value)}",
            given=value,
            allowed=needed,
        )
    return int(count)


def whole_numbers(name: str, value: Any) -> Any:
    """Counts, one or an array of them, that may be written as floats: 8.0 is 8."""
    if not getattr(value, "ndim", 0):
        return whole_number(name, int(value) if value == value // 1 else value)
    if not ((value >= 1) & (value < LARGEST) & (value % 1 == 0)).all():
        raise InputError(
            f"{marked(name)} must be whole numbers from 1; got {abbreviated(value)}", given=value
        )
    return value.astype("int64")


def number(name: str, raw: Any, at_least: float = 0.0, above: float = -math.inf) -> float:
    """A finite number in its range; NaN is in none."""
    try:
        value = float(raw) if _may_be_number(raw) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not (math.isfinite(value) and value >= at_least and value > above):
        needed = f"above {above:g}" if above >= at_least else f"from {at_least:g}"
        raise InputError(
            f"{marked(name)} must be a number {needed}; got {abbreviated(raw)}",
            given=raw,
            allowed=needed,
        )
    return value


def numbers(name: str, raw: Any, above: float = -math.inf) -> Any:
    """A number in its range, or an array of numpy's of them: many questions are asked at once."""
    kind = getattr(getattr(raw, "dtype", None), "kind", "")
    if type(raw).__name__ != "ndarray" or kind not in ("i", "u", "f") or not raw.ndim:
        return number(name, raw, above=above)
    floats = raw.astype(float)
    check_finite(name, floats)
    number(name, smallest(floats), above=above)
    return floats


def _may_be_number(value: object) -> bool:
    """Return whether this may be a number: no word, truth, complex or masked value of numpy's."""
    complex_or_masked = getattr(value, "dtype", None) in ("c8", "c16") or getattr(
        value, "mask", False
    )
    return not (isinstance(value, bool | str) or complex_or_masked)


def truth(name: str, value: object) -> bool:
    """True or False and nothing that merely counts as one of them, such as 0 or a text."""
    if not isinstance(value, bool):
        raise InputError(
            f"{marked(name)} must be True or False; got {abbreviated(value)}", given=value
        )
    return value


def check_is(kind: type, name: str, value: object, example: str) -> None:
    """Refuse what is not of the kind that is needed."""
    if not isinstance(value, kind):
        raise InputError(
            f"{marked(name)} must be {example}; got {abbreviated(value)}",
            given=value,
            allowed=example,
        )


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """A word that is known, such as the name of a mode."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"{marked(name)} must be one of {', '.join(choices)}; got {abbreviated(value)}",
            given=value,
            allowed=[*choices],
        )
    return value


def as_list(name: str, values: Any) -> list[Any]:
    """Return the items of a list; a single value is refused, and so is a text."""
    try:
        items = None if isinstance(values, str | Quantity) else list(values)
    except TypeError:
        items = None
    if items is None:
        raise InputError(f"{marked(name)} must be a list; got {abbreviated(values)}", given=values)
    return items


def as_array(name: str, values: object) -> NDArray[Any]:
    """Return a list or an array as an array; rows must be of one length."""
    try:
        return numpy.asarray(values)
    except NumpyNeededError:
        raise
    except Exception:  # rows of unequal length, or an array that fails at being one
        raise InputError(
            f"{marked(name)} must be a list or an array whose rows are of one length;"
            f" got {abbreviated(values)}"
        ) from None


def check_shapes(counts: dict[str, Any]) -> None:
    """Refuse arrays that do not go together, with the name and the shape of each."""
    arrays = {name: count.shape for name, count in counts.items() if getattr(count, "ndim", 0)}
    if len(arrays) > 1:
        try:
            numpy.broadcast_shapes(*arrays.values())
        except ValueError:
            shapes = ", ".join(f"{name} {shape}" for name, shape in arrays.items())
            raise InputError(f"arrays of these shapes do not broadcast: {shapes}") from None


def check_finite(name: str, values: Any) -> None:
    """An array holds numbers, and each is finite."""
    if not values.size:
        raise InputError(f"{marked(name)} must hold at least one number; got none")
    finite = abs(values) < math.inf
    if not finite.all():
        raise InputError(f"{marked(name)} must be finite; got {values[~finite].flat[0]}")


def memory(name: str, value: QuantityLike) -> Quantity:
    """An amount of memory, positive and finite, in whole bytes: a part of one holds nothing.

    >>> memory("budget", "0.25 MiB").m_as("byte")
    262144.0
    """
    if value is None or isinstance(value, bool | int | float):
        raise InputError(f'{name} needs a unit, as in "512 MiB"; got {abbreviated(value)}')
    amount = quantity(value)
    if not amount.check("[information]"):
        raise InputError(f"{marked(name)} must be memory, as 512 MiB is; got {amount}")
    size = amount.m_as("byte")
    if not isinstance(size, float):
        raise InputError(
            f"{marked(name)} must be a single amount of memory; got {abbreviated(value)}",
            given=value,
        )
    if not 1 <= size < math.inf:
        raise InputError(
            f"{marked(name)} must be positive and finite, a byte or more; got {amount}"
        )
    return quantity(float(floor(size)), "byte").to(amount.units)


def whole_bytes(amount: Quantity) -> int:
    """The bytes of an amount of memory, without the rounding error of its unit."""
    return round(float(amount.m_as("byte")))


def in_bytes(count: int) -> Quantity:
    """A Quantity of so many bytes, whose magnitude is that whole number."""
    return quantity(float(count), "byte")
