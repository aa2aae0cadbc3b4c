"""`@law`: what turns an equation into a checked function of quantities.

A law is a plain function whose annotations carry the unit of every argument and its symbol in the
equation, and after them the range that is allowed (positive and finite where nothing is said):

    @law
    def ridge_point(
        peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
        bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    ) -> Annotated[Quantity, "FLOP/byte"]:
        return peak / bandwidth

The decorator converts each argument to the annotated unit, refuses what does not fit with one
sentence, runs the body on bare magnitudes, and gives the result its unit. The units of one law must
be coherent (byte, not GB, next to byte/s), so that magnitudes obey the same equation as quantities;
a test runs every body on quantities too, where an incoherent or dimensionally wrong equation cannot
pass. For its sake a number of the equation that has a unit is an argument whose name begins with
`_`, as the two operations of a multiply and an add; it has a default, and no caller sees it.
"""

from __future__ import annotations

import html
import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import (
    Annotated,
    Any,
    NoReturn,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from pint.facets.plain import PlainQuantity
from pint.util import UnitsContainer

from calc.core import device
from calc.core.arrays import Number
from calc.core.docstrings import docstring
from calc.core.elementwise import TOO_LARGE, evaluate, scale
from calc.core.errors import InputError, NumpyNeededError, abbreviated, marked
from calc.core.spelling import COUNTED
from calc.core.units import (
    Quantity,
    as_float_or_array,
    from_parts,
    quantity,
    registry,
    why_no_numbers,
)

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Range:
    """The values an argument may take, and the words that say so."""

    low: float
    high: float
    low_included: bool
    words: str
    read: Callable[[Any], Quantity] = quantity
    """What makes a quantity of text."""

    def holds(self, low: float, high: float) -> bool:
        """Return whether all values between these extremes are allowed; False for NaN."""
        above = low >= self.low if self.low_included else low > self.low
        return above and high <= self.high and math.isfinite(low) and math.isfinite(high)


POSITIVE = Range(0.0, math.inf, False, "positive and finite")
NON_NEGATIVE = Range(0.0, math.inf, True, "zero or positive, and finite")
FRACTION = Range(0.0, 1.0, True, "between 0 and 1")
POSITIVE_FRACTION = Range(0.0, 1.0, False, "above 0 and at most 1")
AT_LEAST_ONE = Range(1.0, math.inf, True, "at least 1, and finite")
BITS = Range(2.0, 64.0, True, "between 2 and 64")
ABOVE_ONE = Range(1.0, math.inf, False, "above 1, and finite")
SERVERS = Range(1.0, 1000.0, True, "between 1 and 1000")

MAY_BE_INFINITE = "the law's limit may be infinite"

LAWS: dict[str, Callable[..., Any]] = {}
"""Every law that has been imported, by module and name: `roofline.ridge_point`."""
ARGUMENTS: dict[str, list[Argument]] = {}
"""The arguments of each, in their order."""


class Argument:
    """One annotated argument of a law: its unit, its range, and the check of what is given."""

    def __init__(self, law_name: str, name: str, unit: str, symbol: str, allowed: Range) -> None:
        self.law_name, self.name, self.symbol = law_name, name, symbol
        self.unit, self.allowed = unit, allowed
        self.units: UnitsContainer = registry._parse_units_as_container(unit)
        self.is_count = all(base in COUNTED for base in self.units)  # true of a pure number too
        self.factors: dict[UnitsContainer, float] = {self.units: 1.0}

    @property
    def _marked(self) -> str:
        """The argument as a refusal has it."""
        return marked(self.name, law=self.law_name)

    def magnitude(self, raw: object) -> Number:
        """The magnitude in this argument's unit, as a float or a float array, checked."""
        if type(raw) is Quantity:
            value = self._in_unit(raw)
        elif type(raw) is float and self.is_count:
            value = raw
        elif isinstance(raw, str | PlainQuantity):
            value = self._in_unit(self._read(raw), self._suffix_hint(raw))
        else:
            value = self._count(raw)
        if isinstance(value, float):
            low = high = value
        elif value.size:
            low, high = float(value.min()), float(value.max())
        else:
            return value
        if not self.allowed.holds(low, high):
            self._refuse_range(raw, low, high)
        return value

    def _in_unit(self, value: Quantity, hint: str = "") -> Number:
        units = value._units
        factor = self.factors.get(units)
        if factor is None:
            factor = registry.factor_between(units._d, self.units._d)
            if factor is None:
                unit = str(value.units) or "nothing (a pure number)"
                self._refuse(value, f"got {value}, which is measured in {unit}{hint}")
            self.factors[units] = factor
        return value._magnitude if factor == 1.0 else scale(value._magnitude, factor)

    def _read(self, value: object) -> Quantity:
        try:
            return self.allowed.read(value)
        except InputError as error:
            self._refuse_device(value)
            raise InputError(f"{self._marked}: {error}") from None

    def _refuse_device(self, value: object) -> None:
        """The key of a device is no quantity; of the sentence, only it needs the devices."""
        if isinstance(value, str) and (named := device.named(value)):
            number = named.number_in(self.unit)
            wanted = f': write hardware.get("{named.key}").{number}' if number else ""
            self._refuse(named, f"got {abbreviated(value)}, the name of a device{wanted}")

    def _suffix_hint(self, value: object) -> str:
        """Return the hint to write 70e9 for "70B", which is 70 byte, where something is counted."""
        meant = re.fullmatch(r"\s*([0-9.]+)\s*B\s*", value) if isinstance(value, str) else None
        if meant is None or not self.is_count:
            return ""
        return f"; for {meant[1]} billion write {meant[1]}{f'B {self.unit}' if self.unit else 'e9'}"

    def _count(self, value: Any) -> Any:
        try:
            numbers = as_float_or_array(value)
        except NumpyNeededError as error:
            raise InputError(f"{self._marked}: {error}") from None
        except InputError:
            offers = hasattr(value, "instead")  # as a device does
            got = value.instead(self.unit) if offers else abbreviated(value)
            self._refuse(value, f"got {got}{why_no_numbers(value, self.unit or '%')}")
        if not self.is_count:
            self._refuse(value, f"got {abbreviated(value)} without a unit")
        return numbers

    def _refuse_range(self, value: object, low: float, high: float) -> NoReturn:
        got = str(value) if isinstance(value, Quantity) else abbreviated(value)
        if getattr(value, "ndim", False):
            outside = high if self.allowed.holds(low, low) else low
            unit = f" {self.unit}" if self.unit else ""
            got = f"an array that holds {'NaN' if math.isnan(low) else f'{outside}{unit}'}"
        elif self.allowed.high == 1 < low <= 100 and "%" not in got:
            got += f" (a percentage is written {low:g}%)"
        raise InputError(
            f"{self._marked} must be {self.allowed.words}; got {got}",
            given=value,
            allowed=self.allowed.words,
        )

    def _refuse(self, value: object, got: str) -> NoReturn:
        needs = f"a quantity in {self.unit}" if self.unit else "a pure number"
        if self.is_count and self.unit:
            needs = f"a number of {self.unit} (with or without the unit)"
        example = (
            ""
            if self.is_count
            or isinstance(value, Quantity | list | tuple)
            or hasattr(value, "instead")
            else f', as in calc.quantity(1, "{self.unit}")'
        )
        raise InputError(
            f"{self._marked} needs {needs}{example}; {got}", given=value, allowed=needs
        )


class Result:
    """The annotated result of a law: its unit, and whether infinity is an answer."""

    def __init__(self, law_name: str, unit: str, may_be_infinite: bool) -> None:
        self.law_name, self.may_be_infinite = law_name, may_be_infinite
        self.units = registry._parse_units_as_container(unit)

    def wrap(self, value: Any) -> Quantity:
        if getattr(value, "ndim", 0) == 0:
            value = float(value)
            low = high = value
        elif value.size:
            low, high = float(value.min()), float(value.max())
        else:
            return from_parts(value, self.units)
        finite = math.isfinite(low) and math.isfinite(high)
        if not finite and (math.isnan(low) or not self.may_be_infinite):
            raise InputError(f"{self.law_name}(): {TOO_LARGE}")
        return from_parts(value, self.units)


def law(function: Callable[P, R]) -> Callable[P, R]:
    """Check and convert a law's arguments by their annotations, and give its result its unit."""
    name = function.__name__
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    every = [_argument(name, argument, hints.get(argument)) for argument in signature.parameters]
    result = _result(name, hints.get("return"))
    read_once = _with_defaults_read(name, signature)
    fixed = [
        argument.magnitude(read_once.parameters[argument.name].default)
        for argument in every
        if not argument.symbol
    ]
    arguments = [argument for argument in every if argument.symbol]
    read_once, signature = _public(read_once), _public(signature)
    count = len(arguments)
    defaults = [parameter.default for parameter in read_once.parameters.values()]
    required = sum(default is inspect.Parameter.empty for default in defaults)
    body: Callable[..., Any] = function

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Any:
        values: Any = args
        if kwargs or not required <= len(args) <= count:
            values = _bound(read_once, name, args, kwargs)
        elif len(args) < count:
            values = (*args, *defaults[len(args) :])
        magnitudes = [
            argument.magnitude(value) for argument, value in zip(arguments, values, strict=True)
        ]
        magnitudes += fixed
        try:
            value = evaluate(body, magnitudes)
        except InputError as error:
            raise InputError(f"{name}(): {error}") from None
        return result.wrap(value) if result else value

    checked.__signature__ = signature  # type: ignore[attr-defined]
    checked._repr_html_ = partial(_html, checked)  # type: ignore[attr-defined]
    public_name = f"{function.__module__.rpartition('.')[2]}.{name}"
    LAWS[public_name] = checked
    ARGUMENTS[public_name] = arguments
    return checked


def _html(law: Callable[..., Any]) -> str:
    """A law in a notebook: its call, what it says, its equation."""
    summary, _, rest = docstring(law).partition("\n\n")
    equation = re.search(r"^Equation: (.*)", rest, re.MULTILINE)
    lines = [f"{law.__name__}({', '.join(inspect.signature(law).parameters)})", summary]
    call, *more = map(html.escape, lines + ([equation[1]] if equation else []))
    return "<br>".join([f"<code>{call}</code>", *more])


def _public(signature: inspect.Signature) -> inspect.Signature:
    public = [
        parameter
        for parameter in signature.parameters.values()
        if not parameter.name.startswith("_")
    ]
    return signature.replace(parameters=public)


def _with_defaults_read(law_name: str, signature: inspect.Signature) -> inspect.Signature:
    """The signature with its text defaults ("2 FLOP") read, so that no call has to parse them."""
    parameters = []
    for parameter in signature.parameters.values():
        if isinstance(parameter.default, str):
            with _declaring(law_name, f"the default of argument {parameter.name}"):
                parameter = parameter.replace(default=quantity(parameter.default))
        parameters.append(parameter)
    return signature.replace(parameters=parameters)


def _bound(signature: inspect.Signature, name: str, args: Any, kwargs: Any) -> list[Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None
    bound.apply_defaults()
    return list(bound.arguments.values())


def _argument(law_name: str, name: str, hint: object) -> Argument:
    unit, *rest = _metadata(hint) or (None,)
    private = name.startswith("_")
    symbol = "" if private else rest.pop(0) if rest else ""
    allowed = rest.pop(0) if rest else POSITIVE
    is_sound = isinstance(symbol, str) and bool(symbol) != private
    if not isinstance(unit, str) or not is_sound or not isinstance(allowed, Range):
        raise InputError(
            f"{law_name}(): argument {name} must be annotated with its unit, its symbol in the"
            f" equation, and its Range if it has one, as in"
            f' {name}: Annotated[QuantityLike, "FLOP/s", "R_peak"]'
        )
    with _declaring(law_name, f"the unit of argument {name}"):
        return Argument(law_name, name, unit, symbol, allowed)


def _result(law_name: str, hint: object) -> Result | None:
    """Return the annotated result of a law; None where its answer is a word, such as "compute"."""
    if hint is str:
        return None
    metadata = _metadata(hint)
    if not metadata or not isinstance(metadata[0], str):
        raise InputError(
            f"{law_name}(): the result must be annotated with its unit,"
            f' as in -> Annotated[Quantity, "FLOP/s"], or as -> str'
        )
    with _declaring(law_name, "the unit of the result"):
        return Result(law_name, metadata[0], MAY_BE_INFINITE in metadata)


@contextmanager
def _declaring(law_name: str, what: str) -> Iterator[None]:
    """Text in a declaration that cannot be read is told with where it stands."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{law_name}(): {what}: {error}") from None


def _metadata(hint: object) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
