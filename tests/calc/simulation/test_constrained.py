"""Plans and runs on a simulated device; first of all, what tools of this kind get wrong."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.neural_network import MLPClassifier

from calc import InputError, Quantity, quantity
from calc.simulation import (
    PRECISIONS,
    ConstrainedRun,
    HardwareSimulationConfig,
    LayerSizes,
    NeuralNetwork,
    SklearnNetwork,
    TorchNetwork,
    adjust_batch_size_to_memory,
    apply_compute_slowdown,
    apply_precision_constraint,
    arithmetic,
    digits,
    estimate_total_memory,
    extra_time,
    largest_batch,
    lost_speed,
    plan_batches,
    prepare_hardware_constrained_run,
    run_training_with_hardware_constraints,
)

REFERENCE = LayerSizes.dense(784, 64, 10)
SMALL = LayerSizes.dense(64, 16, 10)
SPLIT = digits(0)


def device(**settings: Any) -> HardwareSimulationConfig:
    return HardwareSimulationConfig(**({"enabled": True} | settings))


def train(
    config: HardwareSimulationConfig,
    model: Any = None,
    batch_size: int = 32,
    samples: int = 200,
    epochs: int = 2,
) -> ConstrainedRun:
    return run_training_with_hardware_constraints(
        model or NeuralNetwork((64, 16, 10), ("relu", "softmax")),
        (SPLIT.X_train[:samples], SPLIT.y_train[:samples]),
        epochs=epochs,
        alpha=0.1,
        batch_size=batch_size,
        seed=0,
        simulation_config=config,
    )


# --- the reference batches ---


@pytest.mark.parametrize(
    ("precision", "budget", "batch"),
    [
        ("fp16", "1 MiB", 551),
        ("fp32", "1 MiB", 246),
        ("fp16", "1 MB", 523),
        ("fp32", "1 MB", 232),
        ("fp32", "0.25 MiB", 17),
        ("fp32", "0.25 MB", 13),
    ],
)
def test_the_largest_batch_of_the_reference_case(precision: str, budget: str, batch: int) -> None:
    choice = adjust_batch_size_to_memory(REFERENCE, 4096, budget, precision)
    assert (choice.batch, choice.limited_by) == (batch, "memory")
    held = quantity(budget).m_as("byte")
    assert estimate_total_memory(REFERENCE, batch, precision).m_as("byte") <= held
    assert estimate_total_memory(REFERENCE, batch + 1, precision).m_as("byte") > held


# --- eleven mistakes ---


def test_1_a_mib_is_not_printed_as_an_mb() -> None:
    total = estimate_total_memory(REFERENCE, 32)
    assert f"{total.to('MiB'):.4f}" == "0.2989 MiB"
    assert f"{total.to('MB'):.4f}" == "0.3134 MB"
    plan = prepare_hardware_constrained_run(REFERENCE, 32, device(max_memory="0.25 MiB"))
    assert "0.25 MiB" in plan.reason
    assert plan.total_memory.m_as("byte") == 203_560 + 17 * 858 * 4


def test_2_what_limits_a_batch_is_named() -> None:
    def limited(batch: int, budget: str, limit: int, dataset: int) -> tuple[int, str]:
        choice = adjust_batch_size_to_memory(
            REFERENCE, batch, budget, limit=limit, dataset_size=dataset
        )
        return choice.batch, choice.limited_by

    assert limited(32, "1 MiB", 128, 1000) == (32, "request")
    assert limited(200, "1 MiB", 128, 1000) == (128, "limit")
    assert limited(4096, "1 MiB", 1000, 1000) == (246, "memory")
    assert limited(4096, "1 MiB", 1000, 100) == (100, "dataset")
    assert limited(32, "100 kB", 128, 1000) == (0, "infeasible")
    assert limited(128, "1 MiB", 128, 128) == (128, "request")  # nothing was reduced
    assert limited(200, "1 MiB", 128, 128) == (128, "limit")


def test_3_infeasible_is_a_result_of_its_own() -> None:
    """50 890 parameters of four bytes are more than 200 kB."""
    config = device(max_memory="200 kB")
    plan = prepare_hardware_constrained_run(REFERENCE, 32, config)
    assert (plan.batch, plan.limited_by, plan.feasible) == (0, "infeasible", False)
    assert plan.reason == (
        "not one sample fits into 200 kB: parameters alone take 203560 byte, with one sample"
        " 206992 byte"
    )
    with pytest.raises(InputError, match=r"^not one sample fits into 1 kB: .*run_infeasible=True"):
        train(device(max_memory="1 kB"))


def test_3_whoever_wants_to_run_anyway_says_so(recwarn: pytest.WarningsRecorder) -> None:
    run = train(device(max_memory="1 kB", run_infeasible=True), samples=40)
    assert (run.plan.batch, run.plan.limited_by) == (1, "infeasible")
    assert run.plan.total_memory > run.plan.budget
    assert not run.plan.feasible
    assert not recwarn.list


NO_COUNTS = [0, -1, 2.9, 2.0, math.nan, math.inf, True, "32", None]


@pytest.mark.parametrize("count", NO_COUNTS)
def test_4_requests_are_refused_and_never_changed(count: Any) -> None:
    for call in (
        lambda: adjust_batch_size_to_memory(REFERENCE, count, "1 MiB"),
        lambda: prepare_hardware_constrained_run(REFERENCE, count, device()),
        lambda: prepare_hardware_constrained_run(REFERENCE, count, device(enabled=False)),
        lambda: train(device(), batch_size=count),
    ):
        with pytest.raises(InputError, match="batch_size must be a whole number from 1; got"):
            call()
    with pytest.raises(InputError, match="batch_size_limit must be a whole number from 1; got"):
        device(batch_size_limit=count)


def bisected(model: LayerSizes, batch: int, budget: int, precision: str) -> int:
    """The largest batch that fits, found as if there were no formula for it."""
    low, high = 0, batch
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_total_memory(model, middle, precision).m_as("byte") <= budget:
            low = middle
        else:
            high = middle - 1
    return low


@given(
    st.integers(1, 5000),
    st.integers(1, 5_000_000),
    st.sampled_from(list(PRECISIONS)),
    st.lists(st.integers(1, 300), min_size=2, max_size=4),
)
def test_5_the_closed_form_is_what_a_search_finds(
    batch: int, budget: int, precision: str, widths: list[int]
) -> None:
    model = LayerSizes.dense(*widths)
    choice = adjust_batch_size_to_memory(model, batch, quantity(budget, "byte"), precision)
    assert choice.batch == bisected(model, batch, budget, precision)


@pytest.mark.parametrize("budget", ["1 kB", "1 MiB", "1 TB"])
def test_5_planning_estimates_twice_whatever_the_budget(
    budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("estimate_parameter_memory", "estimate_activation_memory"):
        estimate = getattr(largest_batch, name)

        def counted(*arguments: Any, name: str = name, estimate: Any = estimate) -> Any:
            calls.append(name)
            return estimate(*arguments)

        monkeypatch.setattr(largest_batch, name, counted)
    prepare_hardware_constrained_run(REFERENCE, 10**6, device(max_memory=budget))
    assert len(calls) <= 2


NO_BUDGETS = [math.nan, 0, -1, math.inf, True, None, "", "nan MiB", "0 MiB", "-1 MiB", "1", "3 s"]


@pytest.mark.parametrize(
    "budget", [*NO_BUDGETS, Quantity(math.nan, "MiB"), Quantity(math.inf, "MiB"), "1 bit", [1, 2]]
)
def test_6_budgets_that_are_none(budget: Any) -> None:
    for call in (
        lambda: device(max_memory=budget),
        lambda: adjust_batch_size_to_memory(REFERENCE, 32, budget),
    ):
        with pytest.raises(InputError) as refusal:
            call()
        assert "\n" not in str(refusal.value)


def test_7_a_result_has_one_shape_and_nothing_of_it_applies_when_disabled() -> None:
    settings = {
        "max_memory": "16 KiB",
        "compute_speed_factor": 4.0,
        "precision_mode": "int8",
        "batch_size_limit": 8,
    }
    on, off = train(device(**settings)), train(device(enabled=False, **settings))
    assert shape(vars(on)) == shape(vars(off))
    assert shape(vars(on.plan)) == shape(vars(off.plan))
    assert (on.plan.precision, off.plan.precision) == ("int8", "fp32")
    assert (on.plan.batch, on.plan.limited_by) == (8, "limit")
    assert (off.plan.batch, off.plan.limited_by) == (32, "request")
    assert off.simulated_time == off.elapsed
    assert off.plan.compute_speed_factor == 1.0
    plain = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    history = plain.fit(
        SPLIT.X_train[:200], SPLIT.y_train[:200], epochs=2, alpha=0.1, batch_size=32, seed=0
    )
    assert off.history == history


def shape(result: Any) -> Any:
    """Keys at every depth."""
    return {key: shape(each) for key, each in result.items()} if isinstance(result, dict) else None


def test_8_half_as_long_again_is_a_third_less_speed() -> None:
    assert extra_time(1.5).m_as("") == 0.5
    assert lost_speed(1.5).m_as("") == pytest.approx(1 / 3)
    assert lost_speed(0.5).m_as("") == extra_time(0.5).m_as("") - 0.5 == -1
    assert apply_compute_slowdown("2 s", 0.5, sleep=True).m_as("s") == 1
    for factor in (0, -1, math.nan, math.inf, True, "2", None):
        with pytest.raises(InputError, match="compute_speed_factor must be a number above 0; got"):
            device(compute_speed_factor=factor)
        with pytest.raises(InputError, match="factor must be a number above 0"):
            apply_compute_slowdown("1 s", factor)  # type: ignore[arg-type]


def test_9_a_slow_device_is_a_clock_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"slept {seconds} s"))
    assert apply_compute_slowdown("1 h", 1000).m_as("h") == pytest.approx(1000)
    run = train(device(compute_speed_factor=1e6))
    assert run.simulated_time.m_as("s") == pytest.approx(1e6 * run.elapsed.m_as("s"))


def test_9_who_asks_to_wait_waits() -> None:
    start = time.perf_counter()
    assert apply_compute_slowdown("20 ms", 3, sleep=True).m_as("ms") == pytest.approx(60)
    assert time.perf_counter() - start >= 0.04
    waited = train(device(compute_speed_factor=3.0, sleep=True))
    assert waited.simulated_time.m_as("s") == pytest.approx(3 * waited.elapsed.m_as("s"))


def test_10_a_batch_is_clipped_to_the_data_and_says_so() -> None:
    for enabled in (True, False):
        run = train(device(enabled=enabled), batch_size=100, samples=50)
        assert (run.plan.batch, run.plan.limited_by) == (50, "dataset")
        assert run.plan.reason == "50 of 100: there are no more samples"
        assert run.plan.activation_memory.m_as("byte") == 50 * (64 + 16 + 10) * 4


def test_11_integers_do_not_wrap() -> None:
    wide = 4096
    result = arithmetic("int8").linear(np.ones((1, wide)), np.ones((wide, 1)), np.zeros(1))
    assert result.item() == pytest.approx(wide)


# --- the plan and the run ---


def test_a_plan_says_why_in_a_sentence() -> None:
    def reason(batch: int, **settings: Any) -> str:
        return prepare_hardware_constrained_run(REFERENCE, batch, device(**settings)).reason

    assert reason(32) == "the batch of 32 that was asked for"
    assert reason(200) == "128 of 200: the limit of batches"
    assert reason(32, max_memory="0.25 MiB") == "17 of 32: all that 0.25 MiB holds"


def test_a_plan_in_every_mode() -> None:
    plan = prepare_hardware_constrained_run(
        REFERENCE, 32, device(mode="training", optimizer="adam", precision_mode="int8")
    )
    assert plan.total_memory.m_as("byte") == 258_472
    assert plan.parameter_memory.m_as("byte") + plan.activation_memory.m_as("byte") == 258_472
    assert plan.int8_overhead.m_as("byte") == 518
    assert prepare_hardware_constrained_run(REFERENCE, 32, device()).int8_overhead == quantity(
        "0 byte"
    )


def test_a_run_trains_a_copy_with_the_batch_of_the_plan() -> None:
    network = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    run = train(device(max_memory="12 KiB", precision_mode="bf16"), network)
    assert not network.weights
    assert network.precision == "fp32"
    assert run.model.precision == "bf16"
    assert run.plan.batch == min(32, (12 * 1024 - 1210 * 2) // (90 * 2))
    expected = network.with_precision("bf16").fit(
        SPLIT.X_train[:200], SPLIT.y_train[:200], 2, 0.1, run.plan.batch, 0
    )
    assert run.history == expected


def test_configurations_are_frozen_and_checked() -> None:
    default = HardwareSimulationConfig()
    assert not default.enabled
    assert default.max_memory == quantity("512 MiB")
    with pytest.raises(dataclasses.FrozenInstanceError):
        default.enabled = True  # type: ignore[misc]
    for settings, sentence in (
        ({"precision_mode": "fp12"}, "there is no precision 'fp12'; there are FP32"),
        ({"mode": "peak"}, "mode must be one of all_outputs, .*; got 'peak'"),
        ({"optimizer": "lion"}, "optimizer must be one of sgd, momentum, adam; got 'lion'"),
        ({"mode": ["training"]}, "mode must be one of"),
        ({"optimizer": {}}, "optimizer must be one of"),
        ({"enabled": 1}, "enabled must be True or False; got 1"),
        ({"sleep": "yes"}, "sleep must be True or False"),
        ({"run_infeasible": None}, "run_infeasible must be True or False"),
    ):
        with pytest.raises(InputError, match=sentence):
            device(**settings)
    with pytest.raises(InputError, match="simulation_config must be a HardwareSimulationConfig"):
        prepare_hardware_constrained_run(REFERENCE, 32, {"enabled": True})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (SPLIT.X_train[:0], SPLIT.y_train[:0], "X must hold at least one sample"),
        (SPLIT.X_train[:9] * np.nan, SPLIT.y_train[:9], "X must be finite; row 0"),
        (SPLIT.X_train[:9], np.full(9, 3), "at least two classes to learn; every label is 3"),
        (SPLIT.X_train[:9], np.arange(9) + 5, "labels from 0 to 9, one for each output; got 10"),
        (SPLIT.X_train[:9], np.arange(9) - 1, "labels from 0; got -1 in row 0"),
        (SPLIT.X_train[:9], SPLIT.y_train[:8], "a label for each of the 9 samples"),
    ],
)
def test_data_that_teach_nothing(X: Any, y: Any, sentence: str) -> None:
    model = NeuralNetwork((64, 16, 10), ("relu", "softmax"))
    with pytest.raises(InputError, match=sentence):
        run_training_with_hardware_constraints(model, (X, y), 1, 0.1, 4, 0, device())


def test_models_that_cannot_be_run() -> None:
    with pytest.raises(InputError, match=r"cannot train .*it needs fit, predict and with_"):
        train(device(), object())
    with pytest.raises(InputError, match="cannot size"):
        prepare_hardware_constrained_run(object(), 32, device())
    with pytest.raises(InputError, match="cannot change the precision of"):
        apply_precision_constraint(object(), "int8")  # type: ignore[arg-type]


# --- other libraries ---


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("activation", ["relu", "logistic"])
def test_scikit_learn_runs_constrained(activation: str, classes: int) -> None:
    chosen = SPLIT.y_train < classes
    X, y = SPLIT.X_train[chosen], SPLIT.y_train[chosen]
    perceptron = MLPClassifier((16,), activation=activation)
    run = run_training_with_hardware_constraints(
        perceptron, (X, y), 5, 0.01, 64, 0, device(max_memory="12 KiB", precision_mode="fp16")
    )
    assert not hasattr(perceptron, "coefs_")
    assert (run.plan.limited_by, len(run.history.loss)) == ("memory", 5)
    assert run.history.loss[-1] < run.history.loss[0]
    model = run.model
    assert isinstance(model, SklearnNetwork)
    theirs = model.perceptron.predict(X)
    np.testing.assert_array_equal(model.with_precision("fp32").predict(X), theirs)
    assert (model.predict(X) == theirs).mean() > 0.99
    assert (model.with_precision("int8").predict(X) == theirs).mean() > 0.95
    again = run_training_with_hardware_constraints(
        perceptron, (X, y), 5, 0.01, 64, 0, device(max_memory="12 KiB", precision_mode="fp16")
    )
    assert again.history == run.history


def test_scikit_learn_refusals() -> None:
    model = SklearnNetwork(MLPClassifier((16,), solver="lbfgs"), 64, 10)
    with pytest.raises(InputError, match="solvers sgd and adam alone; this classifier has lbfgs"):
        train(device(), model)
    with pytest.raises(InputError, match=r"no weights yet; fit\(\) it first"):
        model.predict(SPLIT.X_test)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_torch_runs_constrained(precision: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    nn = torch.nn
    images = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    dense = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    state = torch.random.get_rng_state()
    for module in (TorchNetwork(images, (1, 8, 8)), dense):
        config = device(max_memory="24 KiB", precision_mode=precision)
        run = train(config, module, samples=1000, epochs=5)
        assert run.history.loss[-1] < run.history.loss[0]
        assert run.history == train(config, module, samples=1000, epochs=5).history
        share = (run.model.predict(SPLIT.X_test) == SPLIT.y_test).mean()
        assert share > 0.6
    assert torch.equal(state, torch.random.get_rng_state())
    with pytest.raises(InputError, match="INT8 of a torch module is not simulated"):
        train(device(precision_mode="int8"), dense)


# --- many questions at once ---


def test_a_table_of_plans() -> None:
    budgets = quantity([0.01, 0.25, 1], "MiB")
    plans = plan_batches(REFERENCE, 4096, budgets, [["fp32"], ["fp16"], ["int8"]], 1000)
    assert plans.batch.tolist() == [[0, 17, 246], [0, 93, 551], [0, 246, 1000]]
    assert plans.limited_by.tolist()[2] == ["infeasible", "memory", "limit"]
    assert plans.total_memory.m_as("byte").shape == (3, 3)


@given(
    st.lists(
        st.tuples(
            st.integers(1, 5000),
            st.floats(1, 5e6),
            st.sampled_from(list(PRECISIONS)),
            st.integers(1, 500),
        ),
        min_size=1,
        max_size=20,
    ),
    st.one_of(st.none(), st.integers(1, 300)),
    st.sampled_from(["all_outputs", "inference", "training"]),
)
def test_an_array_of_plans_is_the_plans_of_its_elements(
    asked: list[tuple[int, float, str, int]], dataset: int | None, mode: str
) -> None:
    batches, budgets, precisions, limits = map(list, zip(*asked, strict=True))
    plans = plan_batches(
        SMALL, batches, quantity(budgets, "byte"), precisions, limits, dataset, mode, "adam"
    )
    for index, (batch, budget, precision, limit) in enumerate(asked):
        one = adjust_batch_size_to_memory(
            SMALL, batch, quantity(budget, "byte"), precision, limit, dataset, mode, "adam"
        )
        assert plans.batch[index] == one.batch
        assert plans.limited_by[index] == one.limited_by
        assert plans.total_memory.m_as("byte")[index] == one.total_memory.m_as("byte")


def test_one_budget_for_several_batches() -> None:
    one = plan_batches(REFERENCE, [1, 2], quantity("512 MiB"))
    same = plan_batches(REFERENCE, [1, 2], quantity([512, 512], "MiB"))
    assert one.batch.tolist() == same.batch.tolist() == [1, 2]


def test_arrays_that_cannot_be_planned() -> None:
    budgets = quantity([1, 2], "MiB")
    for given_, sentence in (
        (([1, 0], budgets), "batch_sizes must be whole numbers from 1"),
        (
            (np.array([2**63, 2], np.uint64), budgets),
            "batch_sizes must be whole numbers from 1",
        ),  # would wrap
        (([1.5, 2], budgets), "batch_sizes must be whole numbers from 1"),
        ((32, quantity([1, math.nan], "MiB")), "budgets must be positive and finite; got nan"),
        ((32, quantity([1, -1], "MiB")), "budgets must be positive and finite"),
        ((32, quantity([1, 2], "s")), "budgets must be memory"),
        ((32, [1, 2]), "budgets must be memory"),
        (([1, [2]], budgets), "batch_sizes must be a list or an array whose rows are of one"),
        ((32, budgets, [["fp32"], ["fp16", "fp32"]]), "precisions must be a list or an array"),
        ((32, budgets, ["fp32", "fp8"]), "there is no precision 'fp8'"),
        ((32, budgets, "fp8"), "there is no precision 'fp8'"),
        (([1, 2, 3], budgets), r"arrays of shapes \(3,\), .* do not broadcast"),
        ((32, budgets, "int8", [0, 5]), "limits must be whole numbers from 1"),
        ((32, budgets, "int8", 5, 0), "dataset_size must be a whole number from 1; got 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            plan_batches(REFERENCE, *given_)  # type: ignore[arg-type]
