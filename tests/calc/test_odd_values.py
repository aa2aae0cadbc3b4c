"""Whatever is given to a public function, it answers, or refuses in one sentence."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pint import DimensionalityError

from calc import InputError, formats, quantity
from tests.calc.odd_values import ODD, SEED, argument_names, functions, usual_arguments
from tests.draws import draws
from tests.rows import each_row

FUNCTIONS = functions()

ARGUMENTS = [(name, argument) for name in FUNCTIONS for argument in argument_names(name)]


def answers_or_refuses(name: str, odd: dict[str, str]) -> None:
    """Call a function with its usual arguments but for some, given by the names of odd values."""
    arguments = usual_arguments(name) | {argument: ODD[each]() for argument, each in odd.items()}
    try:
        FUNCTIONS[name](**arguments)
    except (InputError, DimensionalityError) as error:
        if "\n" in str(error) or not str(error).strip():
            pytest.fail(f"{name}() with {odd} is not refused in one sentence: {error}")
    except Exception as error:
        pytest.fail(f"{name}() with {odd} raised {type(error).__name__}: {error}")


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """A function, and odd values for up to four of its arguments."""
    name = draw(st.sampled_from(sorted(FUNCTIONS)))
    if not (arguments := argument_names(name)):
        return name, {}
    odd = st.dictionaries(st.sampled_from(arguments), st.sampled_from(sorted(ODD)), max_size=4)
    return name, draw(odd)


@given(calls())
@settings(
    max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=list(HealthCheck)
)
def test_odd_values(call: tuple[str, dict[str, str]]) -> None:
    answers_or_refuses(*call)


@pytest.mark.slow
def test_many_odd_values() -> None:
    """Drawn without hypothesis, which takes six times as long as the calls; the same in every run,
    so that a commit passes or fails by what it says."""
    chance, names = random.Random(SEED), sorted(FUNCTIONS)
    with each_row() as row:
        for _ in range(draws(20_000)):
            name = chance.choice(names)
            arguments = argument_names(name)
            some = chance.sample(arguments, min(len(arguments), chance.randint(0, 4)))
            odd = dict(zip(some, chance.choices(sorted(ODD), k=len(some)), strict=True))
            with row((name, odd)):
                answers_or_refuses(name, odd)


@pytest.mark.nightly
@pytest.mark.parametrize("odd", sorted(ODD))
def test_each_odd_value_as_each_argument(odd: str) -> None:
    for name, argument in ARGUMENTS:
        answers_or_refuses(name, {argument: odd})


def test_the_battery_covers_the_library() -> None:
    assert len(FUNCTIONS) > 200
    assert len(ARGUMENTS) > 600
    for name in FUNCTIONS:  # and most take their usual arguments
        answers_or_refuses(name, {})


@pytest.mark.parametrize(
    ("function", "wrong"),
    [  # What raised something else, or was wrong, before the battery found it, in several
        # arguments at once; of one, each value is tried above.
        ("encoder_decoder.decoder_flops", {"source": "range", "written": "array"}),
        ("encoder_decoder.caches", {"source": "array", "written": "array of nan"}),
        ("encoder_decoder.caches", {"source": "list", "written": "quantities"}),
        ("inference.prefill", {"kv_size": "no quantities", "devices": "list"}),
        (
            "transformer.activation_memory",
            {"context": "array of halves", "element_size": "no quantities"},
        ),
        ("planning.run_plans", {"row_of": "date", "points": "empty list", "resume": "set"}),
    ],
)
def test_what_the_battery_found(function: str, wrong: dict[str, str]) -> None:
    answers_or_refuses(function, wrong)


def test_a_scale_beyond_all_is_none() -> None:
    """1.7e308 / 0.75 overflowed, and the scale became 2 to the power of −1."""
    assert formats.E8M0.encode(1.7e308) == 255
    assert formats.E8M0.encode(2.0**127) == 254


def test_empty_arrays_make_empty_answers() -> None:
    from calc import hardware, inference, models

    model: Any = models.get("llama-3-8b")
    assert inference.decode(model, hardware.H100, 100, []).lower.shape == (0,)
    assert inference.decode(model, hardware.H100, []).throughput.shape == (0,)
    assert inference.largest_batch(model, hardware.H100, quantity([], "")).shape == (0,)
