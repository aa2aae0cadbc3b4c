"""Training: the work, its time and its inverse, and the bytes of each parameter."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from calc import InputError, quantity, training


def test_the_examples_of_the_book() -> None:
    assert training.training_flops("7B param", "1T token") == quantity("4.2e22 FLOP")
    assert training.inference_flops("7B param") == quantity("14 GFLOP")
    time = training.training_time("1B param", "20B token", 1, "312 TFLOP/s", "40%")
    assert time.m_as("s") == pytest.approx(6 * 1e9 * 20e9 / (312e12 * 0.4))
    assert time.m_as("day") == pytest.approx(11.1, abs=0.05)


def test_compute_optimal_models() -> None:
    """Chinchilla: 70 billion parameters, 1.4 trillion tokens, 5.88e23 operations."""
    assert training.compute_optimal_tokens("70B param") == quantity("1.4T token")
    work = training.training_flops("70B param", "1.4T token")
    found = training.compute_optimal_parameters(work)
    assert found.m_as("param") == pytest.approx(70e9)


def test_an_offloaded_step_reads_and_writes_what_adam_needs() -> None:
    """Array by array, for each parameter: what the link carries, then what the host touches."""
    link = {"gradient in 16 bits": 2, "weight in 16 bits": 2}
    reads = {"gradient in 16 bits": 2, "weight": 4, "momentum": 4, "variance": 4}
    writes = {"weight": 4, "momentum": 4, "variance": 4, "weight in 16 bits": 2}
    host = sum(reads.values()) + sum(writes.values())
    time = training.offloading_time("1B param", "1 GB/s", "1 GB/s")
    assert time.m_as("s") == sum(link.values()) + host == 32


def test_attention_doubles_the_work_at_a_context_of_twelve_widths() -> None:
    assert training.attention_overhead(12 * 4096, 4096).magnitude == 1


@given(st.floats(1, 1e5), st.floats(0.01, 1))
def test_utilization_is_the_inverse_of_time(devices: float, utilization: float) -> None:
    run = 7e9, 1e12, devices, "989 TFLOP/s"
    time = training.training_time(*run, utilization)
    assert training.mfu(*run, time).magnitude == pytest.approx(utilization)


@pytest.mark.parametrize(
    ("name", "parts", "total", "memory"),
    [
        ("adam-mixed", [2, 2, 4, 4, 4], 16, "112 GB"),
        ("adam-fp32", [4, 4, 4, 4], 16, "112 GB"),
        ("inference-fp16", [2], 2, "14 GB"),
        ("inference-int8", [1], 1, "7 GB"),
    ],
)
def test_recipes(name: str, parts: list[int], total: int, memory: str) -> None:
    recipe = training.recipe(name)
    assert [part.m_as("byte/param") for part in recipe.parts.values()] == parts
    assert recipe.bytes_per_parameter == quantity(total, "byte/param")
    assert training.model_memory("7B param", recipe.bytes_per_parameter) == quantity(memory)
    assert all(part.provenance for part in recipe.parts.values())


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


def test_any_share_of_a_device_is_a_device() -> None:
    assert training.devices_needed(1, 1, "1 year", "1 EFLOP/s", 1) == 1


def test_utilisation_of_operations_is_that_of_parameters_and_tokens() -> None:
    work = training.training_flops("7B param", "1T token")
    machine = 1024, "989 TFLOP/s", "28.8 h"
    of_model = training.mfu("7B param", "1T token", *machine)
    assert training.mfu_of_operations(work, *machine).magnitude == pytest.approx(of_model.magnitude)


def test_a_rate_gives_the_time_of_a_run() -> None:
    time = training.training_time("7B param", "1T token", 1024, "989 TFLOP/s", 0.4)
    rate = quantity("1T token") / time
    assert training.time_at_throughput("1T token", rate).m_as("s") == pytest.approx(time.m_as("s"))
