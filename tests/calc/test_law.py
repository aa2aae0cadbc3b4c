"""Properties of every law: its value, its dimensions, its checks, its documentation."""

from __future__ import annotations

import doctest
import inspect
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import hypothesis
import numpy as np
import pint
import pytest
from hypothesis import strategies as st

import calc
from calc import InputError, Quantity, quantity
from calc.core.citations import bibliography
from calc.core.docstrings import docstring, parameters
from calc.core.elementwise import TOO_LARGE
from calc.core.law import ARGUMENTS, FRACTION, MAY_BE_INFINITE, Range, law
from calc.core.units import QuantityLike
from tests.calc.equations import UnreadableError, paragraphs, printed, symbols_in
from tests.calc.references import REFERENCES, agrees, expected
from tests.calc.test_nouns import meanings_by_griffe
from tests.rows import each_row

LAWS = calc.all_laws()
H100 = calc.hardware.H100


def every_law(check: Callable[[str], None]) -> Any:
    """Makes of the check of a law a test for each module of laws."""

    def check_those_of(module: str) -> None:
        with each_row() as row:
            for name in LAWS:
                if name.startswith(f"{module}."):
                    with row(name):
                        check(name)

    return pytest.mark.parametrize("module", sorted({name.split(".")[0] for name in LAWS}))(
        check_those_of
    )


class Argument(NamedTuple):
    """Range of an argument as its annotation promises, read without calc's own reader."""

    unit: str
    low: float
    low_included: bool
    high: float

    def draw(self, source: random.Random) -> float:
        """A magnitude within the range, over many powers of ten where there is no upper end."""
        if self.high < math.inf:
            return source.uniform(self.low, self.high)
        return self.low + 10 ** source.uniform(-3, 6)

    def draw_near(self, source: random.Random) -> float:
        """A magnitude that is not far from others, so that all terms of a sum count."""
        if self.high <= 1:
            return self.draw(source)
        return min(self.low + 10 ** source.uniform(-1, 2), self.high)

    def draw_whole(self, source: random.Random) -> float:
        """A small whole number within the range, if there is one."""
        if self.high <= 1:
            return self.draw(source)
        return float(
            source.randint(int(self.low) + (not self.low_included), int(min(self.high, 64)))
        )


@cache
def arguments_of(law: Callable[..., Any]) -> dict[str, Argument]:
    hints = get_type_hints(law, include_extras=True)
    arguments = {}
    for name in inspect.signature(law).parameters:
        _, unit, _, *allowed = get_args(hints[name])
        low, included, high = 0.0, False, math.inf
        if allowed:
            assert isinstance(allowed[0], Range)
            low, included, high = allowed[0].low, allowed[0].low_included, allowed[0].high
        arguments[name] = Argument(unit, low, included, high)
    return arguments


@cache
def result_of_valid(name: str) -> Any:
    return LAWS[name](**valid(LAWS[name]))


def valid(law: Callable[..., Any], seed: int = 0) -> dict[str, Quantity]:
    """Arguments within the law's ranges."""
    source = random.Random(f"{law.__name__} {seed}")
    return {
        name: quantity(argument.draw(source), argument.unit)
        for name, argument in arguments_of(law).items()
    }


def points(law: Callable[..., Any]) -> Iterator[dict[str, float]]:
    """Yield arguments at which a law is held to its equation: anywhere, whole, near and at ends."""
    arguments = arguments_of(law)
    source = random.Random(law.__name__)
    near = (
        {name: argument.draw_near(source) for name, argument in arguments.items()}
        for _ in range(1000)
    )
    yield from islice((point for point in near if tells(law, point)), 20)
    anywhere = [
        {name: value.magnitude for name, value in valid(law, seed).items()} for seed in range(20)
    ]
    yield from anywhere
    for _ in range(10):
        yield {name: argument.draw_whole(source) for name, argument in arguments.items()}
    for name, argument in arguments.items():
        ends = [argument.low] * argument.low_included + [argument.high] * (argument.high < math.inf)
        if argument.low_included and argument.high == 1:
            ends.append(argument.low + 1e-12)  # of which 1 − (1 − p)^n has few digits
        yield from (point | {name: end} for end in ends for point in anywhere[:2])


def tells(law: Callable[..., Any], arguments: Mapping[str, float]) -> bool:
    """Return whether a law's result depends on all of its equation there: not if 0 or infinite."""
    try:
        return result_of(law, arguments) not in (0, math.inf)
    except InputError as refusal:
        if TOO_LARGE not in str(refusal):
            raise
        return False


def result_of(law: Callable[..., Any], arguments: Mapping[str, float]) -> Any:
    """The magnitude of a law's result, or its word, of magnitudes in its own units."""
    declared = arguments_of(law)
    result = law(
        **{name: quantity(value, declared[name].unit) for name, value in arguments.items()}
    )
    return getattr(result, "magnitude", result)


def assert_is(
    name: str, result: Any, arguments: Mapping[str, float], sides: list[tuple[str, Any]]
) -> None:
    """Assert that a law's result is all that its equation says."""
    for relation, exact in sides:
        assert agrees(result, relation, exact), (
            f"{name}: of {arguments} it makes {result}, and its equation {exact}"
        )


def assert_homogeneous(law: Callable[..., Any]) -> None:
    """The law's bare equation, on quantities in quite other units, gives what the law gives."""
    for seed in range(5):
        arguments = valid(law, seed)
        expected = law(**arguments)
        in_root_units = {name: each.to_root_units() for name, each in arguments.items()}
        numbers = {
            name: quantity(
                each.default, get_args(get_type_hints(law, include_extras=True)[name])[1]
            )
            for name, each in inspect.signature(law.__wrapped__).parameters.items()
            if name.startswith("_")
        }
        try:
            result = law.__wrapped__(**in_root_units, **numbers)
            if isinstance(expected, Quantity):
                result = quantity(result).to(expected.units)
        except pint.DimensionalityError as error:
            raise AssertionError(
                f"{law.__name__}(): the body on quantities: {error}; is the equation right, and the"
                f" unit of the result?"
            ) from error
        if isinstance(expected, Quantity):
            assert math.isclose(result.magnitude, expected.magnitude, rel_tol=1e-9), (
                f"{law.__name__}(): the body on quantities gives {result}, on magnitudes"
                f" {expected}: are the units coherent (byte, not GB, next to byte/s)?"
            )
        else:
            assert result == expected


# --- values ---


def test_only_what_no_equation_says_is_written_by_hand() -> None:
    for name in REFERENCES:
        with pytest.raises(UnreadableError):
            printed(name)


def test_every_module_of_laws_is_known() -> None:
    for path in Path(calc.__file__).parent.rglob("*.py"):
        if re.search(r"^@law$", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert path.stem in calc.SUBMODULES, (
                f'{path} has a law: add "{path.stem}" to calc/__init__.pyi'
            )


@every_law
def test_value(name: str) -> None:
    law, places = LAWS[name], list(points(LAWS[name]))
    sides = [expected(name, arguments) for arguments in places]
    arrays = {
        argument: quantity([point[argument] for point in places], unit).to_root_units()
        for argument, (unit, *_) in arguments_of(law).items()
    }
    results = law(**arrays)
    results = getattr(results, "magnitude", results)
    for arguments, of_array, exact in zip(places, results, sides, strict=True):
        result = result_of(law, arguments)
        assert type(result) in (float, str)
        assert_is(name, result, arguments, exact)
        assert_is(name, of_array, arguments, exact)


@every_law
def test_arrays_broadcast(name: str) -> None:
    law = LAWS[name]
    argument_names = list(arguments_of(law))
    columns = [valid(law, seed) for seed in range(3)]
    rows = [valid(law, seed) for seed in range(3, 7)]
    # The first argument varies down, all others across.
    arrays = {
        each: quantity(
            [[column[each].magnitude] for column in columns]
            if each == argument_names[0]
            else [row[each].magnitude for row in rows],
            columns[0][each].units,
        )
        for each in argument_names
    }
    results = law(**arrays)
    shape = (3, 4) if len(argument_names) > 1 else (3, 1)
    assert results.shape == shape
    for down, column in enumerate(columns):
        for across, row in enumerate(rows[: shape[1]]):
            scalar = law(**(row | {argument_names[0]: column[argument_names[0]]}))
            if isinstance(scalar, Quantity):
                assert results.units == scalar.units
                assert results[down, across].magnitude == pytest.approx(scalar.magnitude, rel=1e-12)
            else:
                assert results[down, across] == scalar


@every_law
def test_an_empty_array_gives_an_empty_array(name: str) -> None:
    arguments: dict[str, Any] = valid(LAWS[name])
    first = next(iter(arguments))
    arguments[first] = quantity([], arguments[first].units)
    assert LAWS[name](**arguments).size == 0


@every_law
def test_numbers_without_a_unit_are_counts(name: str) -> None:
    counts = {"", "param", "token", "request", "sample", "token/param", "1/token"}
    for argument, (unit, *_) in arguments_of(LAWS[name]).items():
        arguments: dict[str, Any] = valid(LAWS[name])
        expected = LAWS[name](**arguments)
        arguments[argument] = arguments[argument].magnitude
        if unit in counts:
            assert LAWS[name](**arguments) == expected
        else:
            with pytest.raises(InputError, match=f"{argument} needs .*without a unit"):
                LAWS[name](**arguments)


@every_law
def test_text_is_read(name: str) -> None:
    arguments = valid(LAWS[name])
    texts = {each: f"{value:.17g}" for each, value in arguments.items()}
    expected, from_text = LAWS[name](**arguments), LAWS[name](**texts)
    if isinstance(expected, Quantity):
        assert from_text.magnitude == pytest.approx(expected.magnitude, rel=1e-9)
    else:
        assert from_text == expected


# --- dimensions ---


@every_law
def test_the_equation_is_homogeneous(name: str) -> None:
    assert_homogeneous(LAWS[name])


@law
def sum_of_unlike_terms(
    traffic: Annotated[QuantityLike, "byte", "D"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    operations: Annotated[QuantityLike, "FLOP", "O"],
) -> Annotated[Quantity, "s"]:
    return traffic / bandwidth + operations


@law
def result_of_another_dimension(
    peak: Annotated[QuantityLike, "FLOP/s", "R_peak"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
) -> Annotated[Quantity, "FLOP/byte"]:
    return peak * bandwidth


@law
def incoherent_units(
    size: Annotated[QuantityLike, "GB", "S"], bandwidth: Annotated[QuantityLike, "byte/s", "BW"]
) -> Annotated[Quantity, "s"]:
    return size / bandwidth


@pytest.mark.parametrize(
    "wrong", [sum_of_unlike_terms, result_of_another_dimension, incoherent_units]
)
def test_a_wrong_equation_does_not_pass_for_homogeneous(wrong: Callable[..., Any]) -> None:
    wrong(**valid(wrong))  # on checked magnitudes alone nobody would notice
    with pytest.raises(AssertionError, match=r"the body on quantities"):
        assert_homogeneous(wrong)


# --- what each argument refuses ---


BAD_NUMBERS = [math.nan, math.inf, -math.inf, -1.0]


@every_law
def test_every_argument_is_guarded(name: str) -> None:
    law, fine = LAWS[name], valid(LAWS[name])
    for argument, (unit, low, low_included, high) in arguments_of(law).items():
        bad = [*BAD_NUMBERS, math.nextafter(low, -math.inf)]
        bad += [] if low_included else [low]
        bad += [math.nextafter(high, math.inf)] if high < math.inf else []
        for number in bad:
            for outside in (quantity(number, unit), quantity([low + 0.5, number], unit)):
                with pytest.raises(InputError) as refusal:
                    law(**fine | {argument: outside})
                sentence = str(refusal.value)
                assert sentence.startswith(f"{law.__name__}(): {argument} must be ")
                assert "; got " in sentence


@every_law
def test_the_ends_of_every_range_are_allowed(name: str) -> None:
    law = LAWS[name]
    for argument, (unit, low, low_included, high) in arguments_of(law).items():
        for end in [low] * low_included + [high] * (high < math.inf):
            for limit in (quantity(end, unit), quantity([end, end], unit)):
                try:
                    law(**valid(law) | {argument: limit})
                except InputError as error:
                    raise AssertionError(
                        f"{error}, where {argument} is {end:g}, an end of its range: give it a"
                        " range without that end, or mark the result MAY_BE_INFINITE and divide"
                        " with divide_or_infinity"
                    ) from None


@every_law
def test_every_argument_refuses_another_dimension(name: str) -> None:
    law = LAWS[name]
    for argument in arguments_of(law):
        for wrong in ("3 USD/kg", quantity("3 USD/kg"), quantity([1, 2], "USD/kg")):
            with pytest.raises(InputError, match=rf"{argument} needs .*; got .*USD"):
                law(**valid(law) | {argument: wrong})


ITSELF: list[Any] = []
ITSELF.append(ITSELF)
NO_NUMBERS = [
    *(None, True, "", "8 procs", 1j, {}, {1, 2}, 10**400, ["1"], [1, [2]], [[1], [1, 2]]),
    *(np.array(["x"], object), Decimal("sNaN"), [Decimal("sNaN")], Decimal("NaN")),
    *(["8 GB"], [quantity("8 GB")], [quantity([8, 9], "GB")], [quantity([8, 9], "GB"), 3]),
    *([pint.UnitRegistry().Quantity([8, 9], "byte")], ITSELF),
]


@pytest.mark.parametrize("thing", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(thing: Any) -> None:
    with pytest.raises(InputError, match=r"amdahl\(\): processors"):
        calc.scaling.amdahl(0.05, thing)


# Of each unit of an argument some others of its dimension, which a list must not lose.
OTHERS = {"": ("%", "GB/MB"), "byte": ("GiB", "bit"), "s": ("ms", "h"), "param": ("Mparam",)}


def assert_a_list_keeps_units(name: str, argument: str, items: Any) -> None:
    """Quantities in a list mean what each of them means, or are refused."""
    law, wanted = LAWS[name], result_of_valid(name)
    try:
        from_list = law(**valid(law) | {argument: items})
    except InputError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert getattr(wanted, "units", "") == getattr(from_list, "units", "")
        same = getattr(from_list, "magnitude", from_list) == getattr(wanted, "magnitude", wanted)
        assert np.all(same) or np.allclose(from_list.magnitude, wanted.magnitude, rtol=1e-9)
    assert not refusal or refusal.startswith(f"{law.__name__}(): {argument} needs ")


def written_otherwise(name: str, argument: str) -> list[Quantity]:
    unit, value = arguments_of(LAWS[name])[argument].unit, valid(LAWS[name])[argument]
    return [value, *(value.to(other) for other in OTHERS.get(unit, ()))]


@every_law
def test_every_argument_keeps_the_units_in_a_list(name: str) -> None:
    for argument in arguments_of(LAWS[name]):
        for each in written_otherwise(name, argument):
            array = quantity([each.magnitude] * 2, str(each.units))
            for items in ([array], (each, each), [[array], [array]]):
                assert_a_list_keeps_units(name, argument, items)


@hypothesis.given(data=st.data())
def test_a_list_keeps_the_units_of_whatever_is_in_it(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list(LAWS)))
    argument = data.draw(st.sampled_from(list(arguments_of(LAWS[name]))))
    scalars = st.sampled_from(written_otherwise(name, argument))
    arrays = st.tuples(scalars, st.integers(1, 3)).map(
        lambda drawn: quantity([drawn[0].magnitude] * drawn[1], str(drawn[0].units))
    )
    lists = st.recursive(scalars | arrays, lambda each: st.lists(each, min_size=1), max_leaves=6)
    assert_a_list_keeps_units(name, argument, data.draw(st.lists(lists, min_size=1)))


def test_pure_numbers_in_a_list_are_read_with_their_units() -> None:
    expected = calc.scaling.amdahl([[0.005, 0.002]], 4)
    assert (calc.scaling.amdahl([quantity([0.5, 0.2], "%")], 4) == expected).all()
    assert (quantity([quantity([0.5, 0.2], "%")], "") == quantity([[0.005, 0.002]], "")).all()


@pytest.mark.parametrize(
    ("law", "arguments", "end"),
    [
        ("roofline.ridge_point", (H100, "1 TB/s"), 'give its .peak("bf16")'),
        ("roofline.ridge_point", ("1 TFLOP/s", H100), "give its .memory_bandwidth or ."),
        ("energy.energy_of_run", (H100, "1 s"), "give its .tdp"),
        ("roofline.critical_batch_by_weights", (H100, "2 byte"), 'its .ridge_point("bf16")'),
        ("scaling.amdahl", (0.1, H100), "got NVIDIA H100 SXM5 80 GB"),
    ],
)
def test_a_device_is_told_which_of_its_numbers_to_give(law: str, arguments: Any, end: str) -> None:
    with pytest.raises(InputError, match=r"; got NVIDIA H100 SXM5 80 GB") as refusal:
        LAWS[law](*arguments)
    assert end in str(refusal.value)


@pytest.mark.parametrize(
    ("items", "why"),
    [
        (["1 GB", "2 GB"], r'one unit for all are needed, as in calc.quantity\(\[1, 2\], "byte"\)'),
        ([quantity("1 GB"), "2 GB"], "one unit for all are needed"),
        ([[1, 2], [3]], r"got \[\[1, 2\], \[3\]\], whose rows are not of one length"),
        ([[10**400]], "which is too large for floating point"),
        (10**400, "which is too large for floating point"),
    ],
)
def test_a_refused_list_says_what_is_the_matter_with_it(items: Any, why: str) -> None:
    with pytest.raises(InputError, match=f"size needs a quantity in byte.*{why}"):
        calc.links.transfer_time(items, "10 GB/s")
    with pytest.raises(InputError, match=why.replace("byte", "GB")):
        quantity(items)


def test_the_name_of_a_device_is_no_quantity() -> None:
    wanted = r"""; got 'h100', the name of a device: write hardware.get\("h100"\).peak\("bf16"\)"""
    with pytest.raises(InputError, match=f"peak needs a quantity in FLOP/s{wanted}"):
        calc.roofline.ridge_point("h100", "3 TB/s")
    with pytest.raises(InputError, match=r"latency needs a quantity in s.*; got 't4', the name"):
        calc.links.transfer_time("1 GB", "10 GB/s", "t4")


def test_a_refusal_teaches() -> None:
    with pytest.raises(InputError) as refusal:
        calc.roofline.ridge_point(989e12, "3.35 TB/s")
    assert str(refusal.value) == (
        'ridge_point(): peak needs a quantity in FLOP/s, as in calc.quantity(1, "FLOP/s");'
        " got 989000000000000.0 without a unit"
    )
    with pytest.raises(InputError) as refusal:
        calc.roofline.ridge_point("989 TFLOP", "3.35 TB/s")
    assert str(refusal.value) == (
        "ridge_point(): peak needs a quantity in FLOP/s; got 989 TFLOP, which is measured in TFLOP"
    )
    with pytest.raises(InputError) as refusal:
        calc.scaling.amdahl([0.1, -0.2], 8)
    assert str(refusal.value) == (
        "amdahl(): serial_fraction must be between 0 and 1; got [0.1, -0.2]"
    )


def test_a_bare_suffix_is_told_what_to_write() -> None:
    with pytest.raises(InputError, match=r"measured in byte; for 70 billion write 70B param$"):
        calc.training.training_flops("70B", "1T token")
    with pytest.raises(InputError, match=r"measured in byte; for 1\.5 billion write 1\.5e9$"):
        calc.scaling.amdahl(0.05, "1.5 B")
    with pytest.raises(InputError, match=r"which is measured in byte$"):
        calc.training.training_flops("70 byte", "1T token")
    with pytest.raises(InputError, match=r"which is measured in byte$"):
        calc.roofline.ridge_point("70B", "1 TB/s")


@pytest.mark.parametrize(
    ("percentage", "end"),
    [
        (40, "got 40 (a percentage is written 40%)"),
        ("40", "got '40' (a percentage is written 40%)"),
        (100, "got 100 (a percentage is written 100%)"),
        (101, "got 101"),
        (-40, "got -40"),
        ("140%", "got '140%'"),
        (quantity(140, "%"), "got 140%"),
        ([0.4, 40], "got [0.4, 40]"),
    ],
    ids=str,
)
def test_a_fraction_given_as_a_percentage(percentage: Any, end: str) -> None:
    with pytest.raises(InputError) as refusal:
        calc.scaling.amdahl(percentage, 8)
    assert str(refusal.value) == f"amdahl(): serial_fraction must be between 0 and 1; {end}"


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(2,\) do not broadcast"):
        calc.scaling.amdahl([0.1, 0.2, 0.3], [1, 2])


@pytest.mark.parametrize("wrap", [lambda number: number, lambda number: np.array([1.0, number])])
def test_a_result_beyond_floating_point_is_refused_without_a_warning(
    wrap: Callable[[float], Any],
) -> None:
    with pytest.raises(InputError, match="too large"):
        calc.roofline.gemm_operations(wrap(1e150), 1e150, 1e150)
    with pytest.raises(InputError, match="too large"):
        calc.links.effective_bandwidth(quantity(wrap(1e-320), "byte"), "1e300 byte/s", "0 s")
    with pytest.raises(InputError, match="finite"):
        calc.roofline.ridge_point(quantity(wrap(1e300), "EFLOP/s"), "1 byte/s")


def test_wrong_calls_are_named_as_python_does() -> None:
    with pytest.raises(TypeError, match=r"amdahl\(\): missing a required argument: 'processors'"):
        calc.scaling.amdahl(0.05)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"amdahl\(\): too many positional arguments"):
        calc.scaling.amdahl(0.05, 8, 9)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"amdahl\(\): .*'speed'"):
        calc.scaling.amdahl(0.05, 8, speed=3)  # type: ignore[call-arg]


def test_a_result_is_infinite_only_where_the_limit_is() -> None:
    may_be = {
        name
        for name, each in LAWS.items()
        if MAY_BE_INFINITE in get_args(get_type_hints(each, include_extras=True)["return"])
    }
    assert may_be == {
        "scaling.amdahl_limit",
        "scaling.most_useful_processors",
        "scaling.part_speedup",
        "roofline.critical_batch",
        "queueing.single_server_time",
        "queueing.single_server_tail",
        "queueing.single_server_wait",
        "queueing.waiting_time",
        "queueing.batch_waiting_time",
        "queueing.bursty_wait",
        "queueing.waiting_tail",
        "attention.latent_crossover",
    }


# --- honesty ---


@every_law
def test_the_signature_is_that_of_the_equation(name: str) -> None:
    law = LAWS[name]
    assert law.__name__ == name.split(".")[1]
    assert law.__module__ == getattr(calc, name.split(".")[0]).__name__
    assert inspect.isfunction(law.__wrapped__)
    every, public = inspect.signature(law.__wrapped__), inspect.signature(law)
    public_parameters = [
        each for each in every.parameters.values() if not each.name.startswith("_")
    ]
    assert public == every.replace(parameters=public_parameters)
    hints = get_type_hints(law, include_extras=True)
    for argument in inspect.signature(law).parameters:
        assert get_args(hints[argument])[0] == QuantityLike
    assert hints["return"] is str or get_args(hints["return"])[0] is Quantity


@every_law
def test_the_documentation_has_its_parts(name: str) -> None:
    text = inspect.getdoc(LAWS[name]) or ""
    assert re.match(r"[^\n]+\.\n\n", text), (
        f"{name}: begin the docstring with one sentence on one line, then an empty line"
    )
    assert text.split("\n\n")[1].startswith("Equation: "), (
        f'{name}: add a paragraph "Equation: ..." after the first line of the docstring'
    )
    sources = re.findall(r"^Source: (\S+)$", text, re.MULTILINE)
    assert len(sources) == 1, (
        f'{name}: add one line "Source: key" to the docstring, with a key of references.bib'
    )
    assert sources[0] in bibliography(), f"{name}: references.bib has no entry {sources[0]}"
    examples = doctest.DocTestParser().get_examples(text)
    assert any(example.want for example in examples), (
        f"{name}: add an example to the docstring, >>> and what it prints"
    )


@every_law
def test_what_to_see_also_is_there(name: str) -> None:
    line = re.search(r"^See also: (.*)$", inspect.getdoc(LAWS[name]) or "", re.MULTILINE)
    for other in line[1].split(", ") if line else ():
        assert other in LAWS, f"{name}: there is no law {other} to see also"
        assert other != name


# --- symbols ---


@every_law
def test_no_two_arguments_share_a_symbol(name: str) -> None:
    symbols = [each.symbol for each in ARGUMENTS[name]]
    assert len(set(symbols)) == len(symbols)


@every_law
def test_a_number_for_a_symbol_is_the_default(name: str) -> None:
    for argument in ARGUMENTS[name]:
        if argument.symbol[0].isdigit():
            default = inspect.signature(LAWS[name]).parameters[argument.name].default
            assert quantity(default, argument.unit).magnitude == float(argument.symbol)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_symbols_of_an_equation_that_is_not_read_are_explained(name: str) -> None:
    equation, prose = paragraphs(name)
    used, explained = symbols_in(equation.partition(" = ")[2]), symbols_in(prose)
    symbols = {each.symbol for each in ARGUMENTS[name]}
    assert used <= symbols | explained
    assert symbols <= used | explained


# --- what each argument is ---


SEVERAL_MEANINGS = {
    *("cost.energy", "diffusion.width", "experts.mean", "experts.tokens", "gemms.rate"),
    *("parallelism.devices", "parallelism.work", "quantization.largest", "scaling.speedup"),
    "training.tokens",
}
"""Arguments that are another thing in another law of their module."""


@every_law
def test_each_argument_is_told(name: str) -> None:
    """A reader of numpydoc that is not ours finds each, and nothing else; so does our own."""
    meanings = meanings_by_griffe(LAWS[name])
    assert [*meanings] == [argument.name for argument in ARGUMENTS[name]], (
        f"{name}: say what each argument is at the end of the docstring, under Parameters"
    )
    assert all(meanings.values())
    assert meanings == parameters(docstring(LAWS[name]))


def test_an_argument_is_told_in_the_same_words_by_all_laws_of_a_module() -> None:
    said: dict[str, set[str]] = {}
    for name, checked in LAWS.items():
        for argument, words in parameters(docstring(checked)).items():
            said.setdefault(f"{name.partition('.')[0]}.{argument}", set()).add(words)
    assert {argument for argument, words in said.items() if len(words) > 1} == SEVERAL_MEANINGS


# --- what a declaration refuses ---


PEAK = Annotated[QuantityLike, "FLOP/s", "R_peak"]
RESULT = Annotated[Quantity, "FLOP/s"]


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({"peak": QuantityLike}, "argument peak must be annotated with its unit"),
        ({"peak": None}, 'as in peak: Annotated[QuantityLike, "FLOP/s", "R_peak"]'),
        (
            {"peak": Annotated[QuantityLike, "FLOP/s"]},
            "argument peak must be annotated with its unit, its symbol in the",
        ),
        (
            {"peak": Annotated[QuantityLike, "FLOP/s", FRACTION]},
            "argument peak must be annotated with its unit, its symbol",
        ),
        ({"_peak": Annotated[QuantityLike, "FLOP/s"]}, "_peak needs a quantity in FLOP/s"),
        (
            {"peak": Annotated[QuantityLike, "FLOP/s", "R_peak", "positive"]},
            "the equation, and its Range if it has one",
        ),
        (
            {"peak": Annotated[QuantityLike, "furlong/s", "R_peak"]},
            "the unit of argument peak: cannot read 'furlong/s'",
        ),
        ({"return": None}, "the result must be annotated with its unit"),
        ({"return": Quantity}, 'as in -> Annotated[Quantity, "FLOP/s"], or as -> str'),
        ({"return": Annotated[Quantity, "FLOPS"]}, "the unit of the result: cannot read 'FLOPS'"),
    ],
)
def test_a_mistake_in_a_declaration_is_named(annotations: dict[str, Any], sentence: str) -> None:
    def wrong(peak: Any) -> Any:
        raise NotImplementedError

    def private(_peak: Any) -> Any:
        raise NotImplementedError

    function = private if "_peak" in annotations else wrong
    declared = {"peak": PEAK, "return": RESULT} | annotations
    function.__annotations__ = {name: each for name, each in declared.items() if each}
    with pytest.raises(InputError) as refusal:
        law(function)
    assert str(refusal.value).startswith(f"{function.__name__}(): ")
    assert sentence in str(refusal.value)


def test_a_default_that_cannot_be_read_is_named() -> None:
    def wrong(peak: PEAK = "1,5 FLOP/s") -> RESULT: ...  # type: ignore[empty-body]

    with pytest.raises(InputError, match="default of argument peak: cannot read '1,5 FLOP/s'"):
        law(wrong)
