"""Common part of all number formats: key, size, rounding, encoding and decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pint.facets.plain import PlainQuantity

from calc.core.arguments import as_array
from calc.core.arrays import Counts, Floats, numpy
from calc.core.errors import InputError, NumpyNeededError, abbreviated
from calc.core.units import Quantity, as_float_or_array, quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Coded:
    """Properties that every format derives from its `name`, its `bits`, `encode` and `decode`."""

    @property
    def key(self: Any) -> str:
        """Name of the format in small letters, as data files, options and rows of tables have it.

        >>> from calc.formats import FP8_E4M3
        >>> FP8_E4M3.key, FP8_E4M3.name
        ('fp8-e4m3', 'FP8 E4M3')
        """
        return str(self.name.lower().replace(" ", "-"))

    @property
    def size(self: Any) -> Quantity:
        """Memory of one value; in a block format its share of the scale is included."""
        return quantity(self.bits, "bit").to("byte")

    def round(self: Any, values: object, random: numpy.random.Generator | None = None) -> Any:
        """The nearest numbers of the format, as `encode` finds them; stochastic with a generator.

        >>> from calc.formats import FP4_E2M1
        >>> FP4_E2M1.round([0.2, 0.3, 2.4, 100])
        array([0. , 0.5, 2. , 6. ])
        """
        return self.decode(self.encode(values, random=random))


def check_width(name: str, width: object, low: int, high: int) -> None:
    if not isinstance(width, int) or isinstance(width, bool) or not low <= width <= high:
        raise InputError(
            f"{name} must be a whole number from {low} to {high}; got {abbreviated(width)}"
        )


def needs_numpy() -> None:
    try:
        _ = numpy.ndarray
    except NumpyNeededError:
        raise NumpyNeededError(
            "a number format rounds, encodes and decodes with numpy, which is not installed"
        ) from None


def numbers(values: object) -> NDArray[Any]:
    """Values as an array of floats, of no dimension for a single one."""
    needs_numpy()
    if isinstance(values, PlainQuantity):
        raise InputError(
            f"a number format holds bare numbers; got {values}: give its magnitude in a unit,"
            f' as .m_as("{values.units}") does'
        )
    return numpy.asarray(as_float_or_array(values))


def read_codes(form: Any, coded: object) -> NDArray[numpy.uint64]:
    """Codes as an array of unsigned integers, within the width of their format."""
    needs_numpy()
    refusal = InputError(
        f"a code of {form.name} is a whole number from 0 to {2**form.bits - 1};"
        f" got {abbreviated(coded)}"
    )
    if isinstance(coded, PlainQuantity):
        raise refusal
    codes = as_array(f"codes of {form.name}", coded)
    if codes.size == 0:
        return codes.astype(numpy.uint64)
    if codes.dtype.kind not in "iu" or codes.min() < 0 or int(codes.max()) >= 2**form.bits:
        raise refusal
    return codes.astype(numpy.uint64)


def whole_steps(steps: Floats, random: numpy.random.Generator | None) -> Counts:
    """Steps as whole numbers: the nearest, the even of two; or, with a generator, at random.

    A random number from 0 to 1 is added and what is behind the point cut off, so that a step
    of 2.3 becomes 3 in three of ten cases, and keeps its value on average.
    """
    if random is None:
        return numpy.rint(steps).astype(numpy.int64)
    if not isinstance(random, numpy.random.Generator):
        raise InputError(
            "stochastic rounding draws from a generator, numpy.random.default_rng(seed);"
            f" got {abbreviated(random)}"
        )
    return numpy.floor(steps + random.random(numpy.shape(steps))).astype(numpy.int64)


def codes_out(source: NDArray[Any], code: NDArray[Any], bits: int) -> Any:
    """Codes in the narrowest unsigned type that holds them; of a single value, an int."""
    width = next(width for width in (8, 16, 32, 64) if width >= bits)
    return code.astype(f"uint{width}") if source.ndim else int(code)


def like(source: NDArray[Any], result: Floats) -> Any:
    """The result as an array, or as a float where a single number was given."""
    return result if source.ndim else float(result)
