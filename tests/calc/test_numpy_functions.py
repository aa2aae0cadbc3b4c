"""numpy's functions of quantities answer alike in every unit, and none strips a unit in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pint
import pytest
from pint.facets.numpy.numpy_func import HANDLED_FUNCTIONS, HANDLED_UFUNCS

from calc import InputError, Quantity, quantity
from tests.rows import for_each

# A unit, another one of its dimension, and numbers that are whole in both.
UNITS = [
    ("%", "", [70.0, 20.0, 45.0, 30.0]),
    ("ms", "s", [7e3, 2e3, 5e3, 3e3]),
    ("kB", "byte", [7.0, 2.0, 4.0, 3.0]),
    ("km/h/s", "m/s**2", [36.0, 18.0, 90.0, 54.0]),  # whose square has another unit
]


def _flat(x: Any) -> Any:
    return x.reshape((2, 2))


def _copied(f: Any, x: Any, y: Any) -> Any:
    target = x.copy()
    f(target, y)
    return target


Call = Callable[[Any, Any, Any], Any]
CALLS: dict[str, Call] = {  # of functions that take more than one quantity, or something beside it
    "average": lambda f, x, y: [f(x), f(x, weights=y), f(x, weights=[1, 2, 3, 4])],
    "broadcast_to": lambda f, x, y: f(x, (2, 4)),
    "clip": lambda f, x, y: [f(x, y[2], y[0]), x.clip(y[2], y[0])],
    "compress": lambda f, x, y: f([True, False, True, False], x),
    "copyto": _copied,
    "correlate": lambda f, x, y: f(x, x[:2]),
    "cross": lambda f, x, y: f(x[:3], y[:3]),
    "delete": lambda f, x, y: f(x, 0),
    "diff": lambda f, x, y: [f(x), f(x, prepend=y[0]), f(x, append=0)],
    "ediff1d": lambda f, x, y: [f(x), f(x, y[0], to_begin=y[1])],
    "einsum": lambda f, x, y: f("i,i", x, y),
    "expand_dims": lambda f, x, y: f(x, 0),
    "full_like": lambda f, x, y: f(x, y[0]),
    "geomspace": lambda f, x, y: f(x[0], y[1], 5),
    "gradient": lambda f, x, y: [f(x), f(x, y[0])],
    "insert": lambda f, x, y: f(x, 1, y[0]),
    "interp": lambda f, x, y: f(x, np.sort(y), x),
    "isclose": lambda f, x, y: [f(x, y), f(x, 1.01 * x, rtol=quantity("2%"))],
    "ldexp": lambda f, x, y: f(x, 3),
    "lib.stride_tricks.sliding_window_view": lambda f, x, y: f(x, 2),
    "linalg.solve": lambda f, x, y: f(_flat(x), y[1:3]),
    "linalg.tensordot": lambda f, x, y: f(x, y, axes=1),
    "tensordot": lambda f, x, y: f(x, y, axes=1),
    "linspace": lambda f, x, y: f(x[0], y[1], 5),
    "matvec": lambda f, x, y: f(_flat(x), y[:2]),
    "moveaxis": lambda f, x, y: f(_flat(x), 0, 1),
    "nan_to_num": lambda f, x, y: f(x * np.array([1, np.nan, 1, 1]), nan=y[0]),
    "pad": lambda f, x, y: f(x, 1, constant_values=y[0]),
    "percentile": lambda f, x, y: f(x, 50),
    "power": lambda f, x, y: f(x, 2),
    "quantile": lambda f, x, y: [f(x, 0.5), f(x, quantity("50%"))],
    "reshape": lambda f, x, y: f(x, (2, 2)),
    "resize": lambda f, x, y: f(x, (2, 2)),
    "roll": lambda f, x, y: f(x, 1),
    "rollaxis": lambda f, x, y: f(_flat(x), 1),
    "searchsorted": lambda f, x, y: [f(np.sort(x), y), np.sort(x).searchsorted(y)],
    "sum": lambda f, x, y: [f(x), f(x, initial=y[0])],
    "swapaxes": lambda f, x, y: f(_flat(x), 0, 1),
    "tile": lambda f, x, y: f(x, 2),
    "var": lambda f, x, y: [f(x), x.var(), f(x, mean=y[0].reshape(1))],
    "vecmat": lambda f, x, y: f(y[:2], _flat(x)),
    "where": lambda f, x, y: f([True, False, True, False], x, y),
}
for like, names in {
    "percentile": "nanpercentile",
    "quantile": "nanquantile",
    "isclose": "allclose",
    "sum": "nansum",
}.items():
    CALLS[names] = CALLS[like]
for name in ("block", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"):
    CALLS[name] = lambda f, x, y: f([x, y])
for name in (
    "diag",
    "diagonal",
    "eigvals",
    "eigvalsh",
    "matrix_norm",
    "matrix_transpose",
    "rot90",
    "tril",
    "triu",
):
    CALLS[name] = CALLS[f"linalg.{name}"] = lambda f, x, y: f(_flat(x))
for name in (
    "add",
    "append",
    "arctan2",
    "broadcast_arrays",
    "copysign",
    "divide",
    "dot",
    "equal",
    "floor_divide",
    "fmod",
    "greater",
    "greater_equal",
    "hypot",
    "inner",
    "intersect1d",
    "isin",
    "less",
    "less_equal",
    "linalg.outer",
    "logaddexp",
    "logaddexp2",
    "matmul",
    "maximum",
    "meshgrid",
    "minimum",
    "mod",
    "multiply",
    "nextafter",
    "not_equal",
    "outer",
    "remainder",
    "subtract",
    "trapezoid",
    "trapz",
    "true_divide",
    "vdot",
):
    CALLS[name] = lambda f, x, y: f(x, y)

IN_THEIR_UNIT = {  # of what has a unit, as round() and print() do
    *("around", "ceil", "fix", "floor", "frexp", "modf", "rint", "round", "trunc")
}


QUANTITIES_ALONE = ("full_like", "meshgrid")  # whose answers have the unit of each argument


def of_numpy(name: str) -> Any:
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part, None)
    return function


def handled() -> list[str]:
    """Return the numpy functions that pint knows, but for one that makes arrays of no values."""
    functions = {name for name in HANDLED_FUNCTIONS if not isinstance(of_numpy(name), np.ufunc)}
    ufuncs = {name for name in HANDLED_UFUNCS if isinstance(of_numpy(name), np.ufunc)}
    return sorted(name for name in functions | ufuncs if of_numpy(name) and name != "empty_like")


def in_base(value: Any) -> list[Any]:
    """The numbers in base units, with the units."""
    if isinstance(value, Quantity):
        based = value.to_base_units()
        return [str(based.units), *np.ravel(based.magnitude).tolist()]
    if isinstance(value, tuple | list):
        return [part for each in value for part in in_base(each)]
    return np.ravel(value).tolist() if not isinstance(value, np.dtype) else [str(value)]


def answer(call: Call, function: Any, x: Quantity, y: Any) -> list[Any]:
    """Return the answer of a function in base units, or the name of its error."""
    try:
        return in_base(call(function, x, y))
    except (InputError, pint.DimensionalityError) as error:
        return [type(error).__name__]


def approx(number: float) -> Any:
    return pytest.approx(number, rel=1e-12, abs=1e-12)


def check(name: str, call: Call, function: Any) -> None:
    for unit, other, numbers in UNITS:
        if name in IN_THEIR_UNIT and unit != "%":
            continue
        x = quantity(numbers, unit)
        based: Any = x.to_base_units()
        turned = x[::-1]
        bare = [turned.m_as("")] if unit == "%" and name not in QUANTITIES_ALONE else []
        expected = answer(call, function, based, based[::-1])
        for y in (turned, turned.to(other), *bare):
            answers = answer(call, function, x, y)
            assert list(map(type, answers)) == list(map(type, expected))
            for one, same in zip(answers, expected, strict=True):
                assert one == (same if isinstance(same, str) else approx(same))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@for_each(handled())
def test_a_function_answers_alike_in_every_unit(name: str) -> None:
    check(name, CALLS.get(name) or (lambda f, x, y: f(x)), of_numpy(name))


@pytest.mark.parametrize("name", sorted(set(HANDLED_UFUNCS) & set(dir(np.ndarray))))
def test_a_method_answers_alike_in_every_unit(name: str) -> None:
    beside = {"repeat": (2,), "reshape": ((2, 2),), "take": ([0, 2],), "compress": ([1, 0, 1],)}
    rows = name in ("diagonal", "swapaxes", "trace")
    arguments = beside.get(name, (0, 1) if name == "swapaxes" else ())
    check(name, lambda f, x, y: getattr(_flat(x) if rows else x, f)(*arguments), name)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (lambda: np.var(quantity([10, 20, 40], "%")), 0.0155555555555555),
        (lambda: quantity([10, 20, 40], "%").var(), 0.0155555555555555),
        (lambda: np.var(quantity([[10, 20], [40, 10]], "%"), axis=(0, 1)), 0.015),
        (lambda: np.sum([quantity("40%"), quantity("0.5")]), 0.9),
        (lambda: np.asarray(quantity([40, 50], "%")), [0.4, 0.5]),
        (lambda: np.sum(quantity([10, 20], "%"), initial=0.5), 0.8),
        (lambda: np.diff(quantity([10, 20], "%"), prepend=0.05), [0.05, 0.1]),
        (lambda: quantity([10, 40], "%").clip(0, 0.2), [0.1, 0.2]),
        (lambda: round(quantity("45.678%"), 1), 0.5),
        (lambda: np.floor_divide(7, quantity("200%")), 3),
    ],
)
def test_a_share_is_the_number_that_it_equals(share: Callable[[], Any], expected: Any) -> None:
    assert [part for part in in_base(share()) if part != ""] == pytest.approx(in_base(expected))


def test_numbers_put_into_shares_are_shares() -> None:
    shares = quantity([10, 40], "%")
    shares.put([0], 0.2)
    np.copyto(shares[1:], 0.3)
    assert shares.m_as("").tolist() == [0.2, 0.3]


@pytest.mark.parametrize(
    "call",
    [
        lambda q: np.asarray(q),
        lambda q: np.sum([q, quantity(q, "MB")]),
        lambda q: np.float64(q[0]),
        lambda q: np.full(2, q[0]),
        lambda q: np.sum(q, initial=5),
        lambda q: np.diff(q, prepend=5),
        lambda q: np.copyto(q, 5),
        lambda q: np.fmod(q, 3),
        lambda q: np.floor_divide(q, quantity("2 s")),
        lambda q: np.percentile(q, quantity("50%")),
        lambda q: np.average(q, weights=[1, 2], returned=True),
    ],
)
def test_what_would_lose_a_unit_is_refused(call: Callable[[Quantity], Any]) -> None:
    with pytest.raises((InputError, pint.DimensionalityError)):
        call(quantity([1, 2], "GB"))
