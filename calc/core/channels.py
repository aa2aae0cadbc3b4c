"""Arrays reduced as a whole, for each channel along an axis, or for each group of the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from calc.core.arguments import as_array, check_finite
from calc.core.arrays import numpy
from calc.core.errors import InputError, NumpyNeededError, abbreviated
from calc.core.units import as_float_or_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[Any]


def span(low: Floats, high: Floats) -> Floats:
    with numpy.errstate(over="ignore"):
        span = high - low
    if not numpy.isfinite(span).all():
        raise InputError(
            f"the data span more than a floating-point number holds: {float(low.min()):g} to"
            f" {float(high.max()):g}"
        )
    return span


def percentile(values: Floats, percent: float, axis: int | None, group_size: int | None) -> Floats:
    def at(part: Floats, axis: int | tuple[int, ...] | None) -> Floats:
        if percent in (0, 100):  # without interpolation, which may overflow
            return numpy.asarray((numpy.max if percent else numpy.min)(part, axis=axis))
        return numpy.percentile(part, percent, axis=axis)

    return reduced(at, values, axis, group_size)


def reduced(
    function: Callable[..., Floats], values: Floats, axis: int | None, group_size: int | None
) -> Floats:
    """The function of the whole array, of each channel along the axis, or of each group."""
    if group_size is not None:
        return numpy.asarray(function(groups(values, axis, group_size), axis=-1))
    if axis is None:
        return numpy.asarray(function(values, axis=None))
    channels = axis_of(axis, values.ndim)
    others = tuple(other for other in range(values.ndim) if other != channels)
    return numpy.asarray(function(values, axis=others))


def groups(values: Floats, axis: int | None, group_size: int) -> Floats:
    if axis is not None:
        raise InputError(
            f"groups run along the last axis in every row of it; leave out axis={abbreviated(axis)}"
            f" where group_size is given"
        )
    if isinstance(group_size, bool) or not isinstance(group_size, int) or group_size < 1:
        raise InputError(f"group_size must be a whole number from 1; got {abbreviated(group_size)}")
    length = values.shape[-1] if values.ndim else 0
    if not length or length % group_size:
        raise InputError(
            f"group_size must divide the length of the last axis, {length}; got {group_size}"
        )
    return values.reshape(*values.shape[:-1], length // group_size, group_size)


def floats(data: ArrayLike) -> Floats:
    """The data as an array of floats."""
    values = array_of(as_float_or_array(data), "data")
    check_finite("data", values)
    return values


def array_of(numbers: object, name: str) -> NDArray[Any]:
    try:
        return as_array(name, numbers)
    except NumpyNeededError:
        raise NumpyNeededError("quantization needs numpy, which is not installed") from None


def axis_of(axis: int, dimensions: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int) or not -dimensions <= axis < dimensions:
        raise InputError(f"axis must be one of the data's {dimensions}; got {abbreviated(axis)}")
    return axis % dimensions


def check_shape(shape: tuple[int, ...], needed: tuple[int, ...]) -> None:
    if shape != needed:
        raise InputError(f"an array of shape {needed} is needed; got shape {shape}")
