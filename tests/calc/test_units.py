"""Quantities: dimensions, comparing, hashing, copying, pickling, and other registries."""

from __future__ import annotations

import copy
import datetime
import math
import multiprocessing
import operator
import pickle
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pint
import pytest
from hypothesis import given, strategies as st
from pint.util import ParserHelper

import calc
from calc import InputError, Quantity, quantity
from calc.core.units import Unit, registry

UNITS_BY_DIMENSION = [
    ["byte", "bit", "GB", "GiB", "TB", "kB"],
    ["s", "ms", "µs", "h", "day"],
    ["FLOP/s", "TFLOP/s", "TOP/s"],
    ["byte/param", "bit/param"],
    ["", "%"],
    ["J", "pJ", "kWh"],
]
unit_pairs = st.sampled_from(UNITS_BY_DIMENSION).flatmap(
    lambda units: st.tuples(st.sampled_from(units), st.sampled_from(units))
)
# Numbers as people write them: up to six digits and a power of ten.
written_numbers = st.tuples(st.integers(-999_999, 999_999), st.integers(-12, 12)).map(
    lambda parts: float(f"{parts[0]}e{parts[1]}")
)


class TestDimensions:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("1 GB", "5 USD"),
            ("1 TFLOP", "1 GB"),
            ("1 GB/token", "1 GB"),
            ("1 param", "1 token"),
            ("1 request", "1 sample"),
            ("1 s", "1 m"),
            ("3 GB", "5"),
        ],
    )
    def test_what_differs_in_dimension_does_not_add(self, first: str, second: str) -> None:
        with pytest.raises(pint.DimensionalityError):
            quantity(first) + quantity(second)
        with pytest.raises(pint.DimensionalityError):
            quantity(second) - quantity(first)
        assert quantity(first) != quantity(second)
        with pytest.raises((pint.DimensionalityError, ValueError)):
            quantity(first) < quantity(second)  # noqa: B015

    def test_bare_numbers_do_not_add(self) -> None:
        with pytest.raises(pint.DimensionalityError):
            quantity("3 GB") + 5
        with pytest.raises(pint.DimensionalityError):
            quantity("3 GB") < 5  # noqa: B015

    def test_gigabyte_and_gibibyte_differ(self) -> None:
        assert quantity("80 GiB").to("GB").magnitude == 80 * 2**30 / 1e9
        assert quantity("1 TB").to("GiB").magnitude == pytest.approx(931.3, abs=0.05)

    def test_units_cancel(self) -> None:
        assert quantity("16 byte/param") * quantity("7B param") == quantity("112 GB")

    @pytest.mark.parametrize(
        ("made", "printed", "unit"),
        [
            (quantity("140 GB") / quantity("80 GiB"), "1.630", ""),
            (quantity("80 GiB") / quantity("140 GB"), "0.6136", ""),
            (quantity("1 TJ") * quantity("0.36 USD") / quantity("1 kWh"), "100000 USD", "USD"),
            (quantity("8 GB") / quantity("2 MB/s"), "66.67 min", "s"),
            (quantity("2 GB") * quantity("3 MB"), "0.006 GB²", "GB²"),
            (quantity("2 MB") * quantity("3 GB"), "6000 MB²", "MB²"),
            (quantity(40, "%") * quantity("10 GB"), "4 GB", "GB"),
            (quantity(40, "%") * quantity(50, "%"), "0.2", ""),
            (quantity(40, "%") ** 2, "0.16", ""),
            (quantity("3 GHz") * quantity("2 s"), "6e9", ""),
            (quantity("10 TOP/s") / quantity("5 GFLOP/s"), "2000", ""),
            (quantity("3 GB") / registry.GiB, "2.794", ""),
            (quantity([140.0], "GB") / quantity("7 GB/s"), "[20.] s", "s"),
            (quantity([1024.0], "MiB") / quantity("1 GiB"), "[1.]", ""),
            (np.divide(quantity([1024.0], "MiB"), quantity("1 GiB")), "[1.]", ""),
        ],
        ids=str,
    )
    def test_a_product_has_one_unit_for_each_dimension(
        self, made: Quantity, printed: str, unit: str
    ) -> None:
        assert str(made) == printed
        assert made.units == Unit(unit)

    def test_in_place_too(self) -> None:
        sizes = quantity([1024.0, 2048.0], "MiB")
        sizes /= quantity("1 GiB")
        assert sizes.magnitude.tolist() == [1, 2]
        assert sizes.unitless

    def test_a_unit_beyond_floating_point_is_refused(self) -> None:
        with pytest.raises(InputError, match="the unit bit·ZB¹⁸ is too large"):
            quantity("1 bit") * (quantity("1 ZB**9") * quantity("1 ZB**9"))

    @pytest.mark.parametrize("unit", ["GB", "GiB", "TB/s", "%", "%/day", "GB/GiB", "km/h/s", "OP"])
    def test_a_unit_that_somebody_chose_stays(self, unit: str) -> None:
        chosen = quantity(3, unit)
        for kept in (2 * chosen, chosen / 2, -chosen, chosen + chosen, chosen * quantity("2")):
            assert dict(kept._units) == dict(chosen._units)
        assert quantity([1.0, 2.0], unit)[0].units == chosen.units
        assert chosen.to(unit).magnitude == 3

    @given(written_numbers, written_numbers, unit_pairs)
    def test_a_ratio_is_what_the_parser_reads(
        self, first: float, second: float, units: tuple[str, str]
    ) -> None:
        if second:
            parsed = quantity(f"({first} {units[0]}) / ({second} {units[1]})")
            computed = quantity(first, units[0]) / quantity(second, units[1])
            assert str(computed.units) in ("", "%")
            assert computed.m_as("") == pytest.approx(parsed.magnitude, rel=1e-12)

    def test_sum_starts_at_zero(self) -> None:
        assert sum([quantity("1 GB"), quantity("500 MB")]) == quantity("1.5 GB")


class TestMaking:
    @pytest.mark.parametrize(
        "number", [3, 3.0, np.float32(3), np.int8(3), Fraction(3), Decimal(3), np.array(3)]
    )
    def test_every_number_becomes_a_float(self, number: Any) -> None:
        made = quantity(number, "GB")
        assert type(made.magnitude) is float
        assert made == quantity("3 GB")

    @pytest.mark.parametrize("numbers", [[1, 2], (1, 2), range(1, 3), np.array([1, 2], "i1")])
    def test_every_sequence_becomes_an_array_of_floats(self, numbers: Any) -> None:
        made = quantity(numbers, "GB")
        assert made.magnitude.dtype == np.float64
        np.testing.assert_array_equal((made * 100).magnitude, [100.0, 200.0])

    @pytest.mark.parametrize(
        "thing",
        [
            *(None, True, 1j, b"3 GB", {}, {1, 2}, 10**400, datetime.date(2024, 1, 1)),
            *(["1 GB", "2 GB"], [1, [2, 3]], [[1], [2, 3]], [10**400], [quantity([1, 2], "GB")]),
            *(Decimal("sNaN"), [Decimal("sNaN")], np.array([1j]), np.array([True])),
            *(np.array(["2024-01-01"], "M8[D]"), np.array([3], "m8[s]"), np.array(["1"])),
            *(np.array([1, "a"], object), np.ma.masked_array([1.0, 2.0], [False, True])),
        ],
        ids=repr,
    )
    def test_what_is_no_number_is_refused(self, thing: Any) -> None:
        for make in (quantity, Quantity):
            with pytest.raises(InputError):
                make(thing, "GB")

    def test_a_second_unit_converts(self) -> None:
        assert str(quantity("3 GB", "MB")) == "3000 MB"
        assert str(quantity(quantity("3 GB"), "MB")) == "3000 MB"
        with pytest.raises(pint.DimensionalityError):
            quantity("3 GB", "s")


class TestComparing:
    @given(written_numbers, unit_pairs)
    def test_equal_in_another_unit(self, number: float, units: tuple[str, str]) -> None:
        one = quantity(number, units[0])
        other = one.to(units[1])
        assert one == other
        assert (one != other) is False
        assert hash(one) == hash(other)
        assert one <= other
        assert one >= other
        assert not one < other
        assert not one > other

    @given(written_numbers, written_numbers, unit_pairs)
    def test_order_is_that_of_the_numbers(
        self, first: float, second: float, units: tuple[str, str]
    ) -> None:
        one, other = quantity(first, units[0]), quantity(second, units[0]).to(units[1])
        assert (one < other) == (first < second)
        assert (one == other) == (first == second)

    @given(
        st.lists(
            st.sampled_from([0.0, 0.1 + 0.2, 0.3, 300.0, 1.0, 1000.0]), min_size=2, max_size=2
        ),
        st.lists(st.sampled_from(["GB", "MB", "s", "ms", ""]), min_size=2, max_size=2),
    )
    def test_what_is_equal_hashes_equal(self, numbers: list[float], units: list[str]) -> None:
        one, other = (quantity(*pair) for pair in zip(numbers, units, strict=True))
        if one == other:
            assert hash(one) == hash(other)

    def test_pure_numbers(self) -> None:
        assert quantity("7%") == 0.07 == quantity(7, "%").to("")  # and not 7 · 0.01
        assert hash(quantity("7%")) == hash(0.07)
        assert quantity("1") == True  # noqa: E712 - as 1.0 does
        assert quantity("40%") < 0.5
        assert np.float64(3) == quantity("3")

    @pytest.mark.parametrize("number", [1 / 3, 2 / 3, 0.07, 1e-300, 2**53 + 1, math.inf])
    def test_a_pure_number_and_the_bare_one(self, number: float) -> None:
        made = quantity(float(number), "")
        assert (made == number) == (float(number) == number)
        if made == number:
            assert hash(made) == hash(number)

    def test_zero_may_be_compared_with_anything(self) -> None:
        assert quantity("3 GB") > 0
        assert quantity("0 GB") >= 0
        assert not quantity("0 GB")

    @pytest.mark.parametrize("other", [None, "3 GB", 3, object(), (3, "GB")])
    def test_unequal_to_other_things(self, other: Any) -> None:
        assert quantity("3 GB") != other
        assert (quantity("3 GB") == other) is False

    def test_arrays_compare_element_by_element(self) -> None:
        values = quantity([1, 5], "GB")
        np.testing.assert_array_equal(values == quantity([1000, 2], "MB"), [True, False])
        np.testing.assert_array_equal(values != quantity([1000, 2], "MB"), [False, True])
        np.testing.assert_array_equal(values == quantity("1 USD"), [False, False])
        np.testing.assert_array_equal(values > quantity("2 GB"), [False, True])
        with pytest.raises(TypeError):
            hash(values)

    @given(written_numbers, unit_pairs)
    def test_arrays_round_as_scalars_do(self, number: float, units: tuple[str, str]) -> None:
        one = quantity([[number, 1 / 3]], units[0])
        other = quantity([[quantity(number, units[0]).m_as(units[1]), 0]], units[1])
        np.testing.assert_array_equal(one == other, [[True, False]])
        assert (one == quantity(number, units[0])).tolist() == [[True, False]]


class TestCopies:
    @pytest.mark.parametrize(
        "original",
        [
            quantity("3.35 TB/s"),
            quantity("6 FLOP/(param·token)"),
            quantity("0.4"),
            calc.hardware.H100.memory_bandwidth,
        ],
        ids=str,
    )
    def test_copies_are_equal_and_know_their_source(self, original: Quantity) -> None:
        for copied in (
            copy.copy(original),
            copy.deepcopy(original),
            pickle.loads(pickle.dumps(original)),
            Quantity(original),
        ):
            assert copied is not original
            assert type(copied) is Quantity
            assert repr(copied) == repr(original)
            assert copied.provenance == original.provenance

    def test_a_deep_copy_has_its_own_array(self) -> None:
        original = quantity([1.0, 2.0], "GB")
        copied = copy.deepcopy(original)
        original.magnitude[0] = 9
        assert copied.magnitude[0] == 1

    def test_units_too(self) -> None:
        unit = quantity("3 GB/s").units
        assert copy.deepcopy(unit) == pickle.loads(pickle.dumps(unit)) == Unit("GB/s") == unit

    def test_a_spawned_process_reads_and_returns_them(self) -> None:
        original = calc.hardware.H100.memory_bandwidth
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(str, (original,)) == "3.35 TB/s"
            returned = pool.apply(copy.copy, (original,))
        assert returned == original
        assert returned + original == 2 * original
        assert calc.source(returned) == calc.source(original)

    def test_conversion_keeps_the_source_and_arithmetic_does_not(self) -> None:
        bandwidth = calc.hardware.H100.memory_bandwidth
        assert calc.source(bandwidth.to("GB/s")) == calc.source(bandwidth)
        assert (2 * bandwidth).provenance is None

    def test_data_cannot_be_changed_through_what_is_read_from_it(self) -> None:
        calc.hardware.H100.tdp.ito("kW")
        assert str(calc.hardware.H100.tdp) == "700 W"


@cache
def pint_default() -> pint.UnitRegistry[Any]:
    """Return pint's own units, which take a second to read."""
    return pint.UnitRegistry()


class TestOtherRegistries:
    def test_units_of_the_same_meaning_convert(self) -> None:
        foreign = pint_default()
        assert quantity(foreign.Quantity(3, "second")) == quantity("3 s")
        assert quantity(foreign.Quantity(3, "kilowatt_hour")) == quantity("3 kWh")
        assert Quantity(foreign.Quantity(2, "km/hour")) == quantity("2 km/h")
        assert quantity(foreign.Quantity(40, "percent")) == 0.4
        assert quantity(foreign.Quantity([1, 2], "ms")).magnitude.dtype == np.float64
        time = calc.links.round_trip_time(foreign.Quantity(6000, "km"))
        assert time == quantity("60 ms")

    @pytest.mark.parametrize("unit", ["byte", "gigabyte", "bit", "megabit / second"])
    def test_its_bytes_are_pure_numbers_and_refused(self, unit: str) -> None:
        with pytest.raises(InputError, match=r"write calc\.quantity\(3"):
            quantity(pint_default().Quantity(3, unit))
        with pytest.raises(InputError, match=r"traffic.*write calc"):
            calc.roofline.arithmetic_intensity("1 FLOP", pint_default().Quantity(3, unit))

    @pytest.mark.parametrize("unit", ["fortnight", "kelvin", "meter ** 0.5", "degC"])
    def test_units_unknown_here_are_refused(self, unit: str) -> None:
        with pytest.raises(InputError, match="convert it to units of calc"):
            quantity(pint_default().Quantity(3, unit))

    def test_a_unit_of_the_same_name_and_another_size_is_refused(self) -> None:
        theirs = pint.UnitRegistry(None)
        theirs.load_definitions(["second = [time]", "hour = 1000 * second"])
        assert quantity(theirs.Quantity(3, "second")) == quantity("3 s")
        with pytest.raises(InputError, match="no hour of the same meaning"):
            quantity(theirs.Quantity(3, "hour"))

    def test_mixed_arithmetic_raises(self) -> None:
        foreign = pint_default().Quantity(3, "second")
        for mix in (
            lambda: quantity("3 s") + foreign,
            lambda: foreign + quantity("3 s"),
            lambda: quantity("3 s") * foreign,
            lambda: foreign / quantity("3 s"),
            lambda: quantity("3 s") < foreign,
        ):
            with pytest.raises(ValueError, match="different registries"):
                mix()

    def test_a_quantity_of_another_registry_is_unequal(self) -> None:
        for theirs in (pint_default().Quantity(1, "byte"), pint.Quantity(0, "m")):
            for ours in (quantity("1 byte"), quantity("0 m"), quantity("1")):
                assert (ours == theirs) is False
                assert ours != theirs
            assert (quantity([1.0, 2.0], "byte") == theirs).tolist() == [False, False]

    def test_the_application_registry_is_left_alone(self) -> None:
        assert pint.get_application_registry().get() is not registry
        assert pint.Quantity(3, "furlong").to("m").magnitude == pytest.approx(603.5, abs=0.1)
        assert not isinstance(pint.Quantity(3, "m"), Quantity)


class TestMethodsOfPint:
    """Methods that people know from pint work here, in calc's units."""

    def test_conversions(self) -> None:
        assert quantity("3 TB/s").to_base_units().magnitude == 24e12  # bit/s
        assert quantity("3 TB/s").to_root_units() == quantity("3 TB/s")
        assert str(quantity("3000000 GB").to_compact()) == "3 PB"
        assert quantity("3 GB").m_as("MB") == 3000
        assert quantity("0.4").m_as("%") == pytest.approx(40)
        assert quantity("3 GB").is_compatible_with("bit")
        assert not quantity("3 GB").is_compatible_with("s")
        assert quantity("3 GB").check("[information]")

    def test_rounding_and_numbers(self) -> None:
        assert str(round(quantity("3.456 GB"), 1)) == "3.5 GB"
        assert abs(quantity("-3 GB")) == quantity("3 GB")
        assert float(quantity("40%")) == 0.4
        assert quantity("7 GB") // quantity("2 GB") == 3
        with pytest.raises(pint.DimensionalityError):
            float(quantity("3 GB"))

    def test_numpy_functions(self) -> None:
        sizes, others = quantity([1, 9], "GB"), quantity([2000, 3000], "MB")
        for result, expected in [
            (np.sqrt(quantity([4.0, 9.0], "GB**2")), quantity([2, 3], "GB")),
            (np.maximum(sizes, others), quantity([2, 9], "GB")),
            (np.concatenate([sizes, others]), quantity([1, 9, 2, 3], "GB")),
            (np.array([1.0, 2.0]) * quantity("3 GB"), quantity([3, 6], "GB")),
            (np.linspace(quantity("1 GB"), quantity("2 GB"), 3), quantity([1, 1.5, 2], "GB")),
        ]:
            assert type(result) is Quantity
            assert np.all(result == expected)
        assert sizes.sum() == np.sum(sizes) == quantity("10 GB")
        assert type(sizes.mean().magnitude) is float
        assert np.isclose(quantity("3 GB"), quantity("3000 MB"))
        with pytest.raises(pint.DimensionalityError):
            np.maximum(sizes, quantity("1 s"))
        with pytest.raises(pint.DimensionalityError):
            np.log(quantity("3 GB"))

    def test_units_of_the_registry_by_name(self) -> None:
        assert quantity("3 GB") == 3 * registry.GB
        assert not hasattr(registry, "KB")

    def test_dimensions_by_name(self) -> None:
        rate = quantity("3 GB/s")
        for text in ("[information]/[time]", "[information] / [time]", "bit/day"):
            assert rate.check(text)
            assert registry.get_dimensionality(text) == rate.dimensionality
        assert not rate.check("[information]")
        assert quantity("3 Hz").check("1/[time]")
        assert quantity("3 m**2").check("[length]**2")
        assert registry.get_compatible_units("[time]") == registry.get_compatible_units("s")
        assert Unit("hour") in registry.get_compatible_units("s")
        with pytest.raises(InputError, match=r"no dimension \[mood\]"):
            rate.check("[mood]")

    @pytest.mark.parametrize(
        "text", ["9**9**9", "__import__('os').getcwd()", "[time]+9**9**9", "foo = 9**9**9"]
    )
    def test_no_text_reaches_the_evaluator_of_pint(
        self, text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def evaluated(*_: Any, **__: Any) -> None:
            raise AssertionError("pint reads the text")

        monkeypatch.setattr(ParserHelper, "from_string", evaluated)
        monkeypatch.setattr("pint.facets.plain.registry.build_eval_tree", evaluated)
        for read in (
            quantity("5 GB").check,
            quantity("5 GB").to,
            quantity("5 GB").is_compatible_with,
            registry,
            registry.get_dimensionality,
            registry.get_compatible_units,
            registry.get_base_units,
            registry.get_root_units,
            registry.define,
            lambda text: registry.load_definitions([text]),
        ):
            with pytest.raises(InputError):
                read(text)
        assert quantity("5 GB").units != text
        assert quantity("5 GB").units == "gigabyte"

    def test_root_of_an_even_power(self) -> None:
        assert math.isclose((quantity("3 GB") ** 2) ** 0.5 / quantity("3 GB"), 1)


def test_cycles_are_counted_and_a_clock_is_their_rate() -> None:
    assert quantity("1.83e9 cycle/s") == quantity("1.83 GHz")
    assert quantity("4096 FLOP/cycle") * quantity("1 GHz") == quantity("4096 GFLOP/s")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "iadd", "imul", "lt", "eq", "ne"])
def test_arrays_that_do_not_go_together_are_refused_in_a_sentence(name: str) -> None:
    pair, triple = (quantity(np.ones(count), "m") for count in (2, 3))
    with pytest.raises(InputError, match=r"^arrays of shapes \(2,\) and \(3,\) do not broadcast$"):
        getattr(operator, name)(pair, triple)


def test_functions_of_numpy_refuse_arrays_that_do_not_go_together() -> None:
    with pytest.raises(InputError, match=r"shapes \(2,\) and \(3,\) do not broadcast"):
        np.maximum(quantity([1, 2], "m"), quantity([1, 2, 3], "m"))
