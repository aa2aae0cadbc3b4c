"""Calls to laws for a type checker; `tests/test_types.py` has mypy read this file.

A line that must be refused says so, as with `type: ignore[arg-type]`: were it accepted, the comment
would be unused, and that is an error too.
"""

from __future__ import annotations

from typing import Annotated, Any, assert_type

import numpy as np

import calc
from calc import Quantity, hardware, quantity, roofline, scaling, training
from calc.core.arrays import Number
from calc.core.elementwise import minimum
from calc.core.law import law
from calc.core.units import QuantityLike


def accepted() -> None:
    """A quantity, its text, a number, a sequence of numbers, an array."""
    assert_type(quantity("3 GB"), Quantity)
    assert_type(quantity([1.0, 2.0], "GB"), Quantity)
    assert_type(hardware.H100.peak("fp16"), Quantity)
    assert_type(quantity("3 GB").to("MB"), Quantity)

    assert_type(scaling.amdahl(quantity("5%"), 8), Quantity)
    assert_type(scaling.amdahl("5%", "8"), Quantity)
    assert_type(scaling.amdahl(0.05, 8.0), Quantity)
    assert_type(scaling.amdahl([0.05, 0.1], range(1, 3)), Quantity)
    assert_type(scaling.amdahl(np.linspace(0, 1), np.arange(1, 51)), Quantity)
    assert_type(roofline.bound("1 FLOP/s", "1 byte/s", "1 FLOP/byte"), str | Any)
    assert_type(training.recipe("adam-mixed").bytes_per_parameter, Quantity)


def refused() -> None:
    """Call laws with nothing, a set, a dictionary, too few arguments, or another name."""
    scaling.amdahl(None, 8)  # type: ignore[arg-type]
    scaling.amdahl(0.05, {1, 2})  # type: ignore[arg-type]
    roofline.ridge_point({"peak": 1}, "1 byte/s")  # type: ignore[arg-type]
    scaling.amdahl(0.05)  # type: ignore[call-arg]
    scaling.amdahl(0.05, n=8)  # type: ignore[call-arg]
    quantity(None)  # type: ignore[arg-type]
    print(calc.nope)  # type: ignore[attr-defined]


@law
def accepted_body(
    size: Annotated[QuantityLike, "byte", "n"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"] = "1 GB/s",
) -> Annotated[Quantity, "s"]:
    """A body gets numbers or arrays, and makes a number or an array of them."""
    assert_type(size, Number)
    return minimum(size, 1e9) / bandwidth


assert_type(accepted_body("1 GB", [1e9, 2e9]), Quantity)


@law
def adds_text(size: Annotated[QuantityLike, "byte", "n"]) -> Annotated[Quantity, "byte"]:
    return size + "1 byte"  # type: ignore[operator]


@law
def answers_whether(size: Annotated[QuantityLike, "byte", "n"]) -> Annotated[Quantity, "byte"]:
    return size > 1  # type: ignore[return-value]


@law
def asks_a_number_for_its_unit(
    size: Annotated[QuantityLike, "byte", "n"],
) -> Annotated[Quantity, "byte"]:
    megabytes: float = size.m_as("MB")  # type: ignore[union-attr]
    return megabytes


@law
def gives_a_quantity(size: Annotated[QuantityLike, "byte", "n"]) -> Annotated[Quantity, "byte"]:
    return size * quantity("1 byte")  # type: ignore[return-value]
