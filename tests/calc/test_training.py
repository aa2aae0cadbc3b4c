"""Training: the work, its time and its inverse, and the bytes of each parameter."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import InputError, quantity, training


def test_an_offloaded_step_reads_and_writes_what_adam_needs() -> None:
    """Array by array, for each parameter: what the link carries, then what the host touches."""
    link = {"gradient in 16 bits": 2, "weight in 16 bits": 2}
    reads = {"gradient in 16 bits": 2, "weight": 4, "momentum": 4, "variance": 4}
    writes = {"weight": 4, "momentum": 4, "variance": 4, "weight in 16 bits": 2}
    host = sum(reads.values()) + sum(writes.values())
    time = training.offloading_time("1B param", "1 GB/s", "1 GB/s")
    assert time.m_as("s") == sum(link.values()) + host == 32


@pytest.mark.parametrize(
    ("name", "parts", "total", "memory"),
    [
        ("adam-mixed", [2, 2, 4, 4, 4], 16, "112 GB"),
        ("adam-fp32", [4, 4, 4, 4], 16, "112 GB"),
        ("adam-mixed-fp32-gradients", [2, 4, 4, 4, 4], 18, "126 GB"),
        ("adam-mixed-remainders", [2, 2, 2, 4, 4], 14, "98 GB"),
        ("adam-bf16", [2, 2, 2, 2], 8, "56 GB"),
        ("adam-8bit", [2, 2, 1 + 4 / 256, 1 + 4 / 256], 6 + 8 / 256, "42.21875 GB"),
        ("momentum-mixed", [2, 2, 4, 4], 12, "84 GB"),
        ("inference-fp16", [2], 2, "14 GB"),
        ("inference-int8", [1], 1, "7 GB"),
    ],
)
def test_recipes(name: str, parts: list[float], total: float, memory: str) -> None:
    recipe = training.recipe(name)
    assert [part.m_as("byte/param") for part in recipe.parts.values()] == parts
    assert recipe.bytes_per_parameter == quantity(total, "byte/param")
    assert training.model_memory("7B param", recipe.bytes_per_parameter) == quantity(memory)
    assert all(part.provenance for part in recipe.parts.values())


def test_every_part_of_a_recipe_is_stored_as_what_it_is() -> None:
    """A momentum is no variance, though both take four bytes."""
    named = {part for parts in training.RECIPES.values() for part in parts.items()}
    assert all(part.split()[-1] in constant.split("_") for part, constant in named)
    assert "master" in training.RECIPES["adam-mixed"]["master weight"]


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="no recipe 'sgd'; there are adam-mixed, "):
        training.recipe("sgd")
    with pytest.raises(InputError, match=r"no recipe \['x'\]; there are adam-mixed, "):
        training.recipe(["x"])  # type: ignore[arg-type]


def test_a_count_may_be_a_number_but_of_nothing_else() -> None:
    assert training.training_flops(7e9, 1e12) == training.training_flops("7B param", "1T token")
    with pytest.raises(InputError, match=r"parameters needs a number of param .*measured in token"):
        training.training_flops("7B token", "1T token")


@given(st.floats(1e9, 1e12), st.floats(1e9, 1e13), st.integers(1, 10**5), st.floats(0.1, 1))
def test_devices_for_a_time_and_the_time_on_devices(
    parameters: float, tokens: float, devices: int, mfu: float
) -> None:
    time = training.training_time(parameters, tokens, devices, "989 TFLOP/s", mfu)
    assert training.devices_needed(parameters, tokens, time, "989 TFLOP/s", mfu) == devices
    sooner = 0.999 * time
    assert training.devices_needed(parameters, tokens, sooner, "989 TFLOP/s", mfu) > devices
