"""What the chapter "Simulating hardware" quotes."""

from __future__ import annotations

import csv
import statistics
import tomllib
from collections.abc import Iterable

from calc import formats
from calc.core.records import DATA
from calc.core.units import Quantity, quantity
from calc.simulation import (
    PRECISIONS,
    LayerSizes,
    adjust_batch_size_to_memory,
    elements_per_sample,
    estimate_activation_memory,
    estimate_parameter_memory,
    estimate_total_memory,
    extra_time,
    int8_overhead,
    lost_speed,
)


class ReferenceNetwork:
    """A batch of 32 through 784-64-10 in FP32 is estimated at less than a third of a mebibyte."""

    inputs = 784
    hidden = 64
    outputs = 10
    batch = 32
    element_size = quantity("4 byte")

    model = LayerSizes.dense(inputs, hidden, outputs)
    hidden_parameters = model.parameter_counts[0]
    output_parameters = model.parameter_counts[1]
    parameters = hidden_parameters + output_parameters
    input_elements = batch * inputs
    hidden_elements = batch * hidden
    output_elements = batch * outputs
    elements = batch * elements_per_sample(model)
    parameter_memory = estimate_parameter_memory(model)
    activation_memory = estimate_activation_memory(model, batch)
    total = estimate_total_memory(model, batch)
    memory_of_a_sample = estimate_activation_memory(model, 1)
    overhead = int8_overhead(model)
    rows = (
        ("hidden layer", f"{inputs} · {hidden} + {hidden}", hidden_parameters),
        ("output layer", f"{hidden} · {outputs} + {outputs}", output_parameters),
        ("input of the batch", f"{batch} · {inputs}", input_elements),
        ("output of the hidden layer", f"{batch} · {hidden}", hidden_elements),
        ("output of the output layer", f"{batch} · {outputs}", output_elements),
    )

    @classmethod
    def row(cls, what: str, product: str, count: int) -> tuple[str, str, int, int]:
        """A line of the sum: the numbers that are held, and their bytes."""
        return what, product, count, int(count * cls.element_size.m_as("byte"))


class MemoryByMode:
    """Training with Adam takes more than three times what the usual estimate says."""

    model = ReferenceNetwork.model
    batch = ReferenceNetwork.batch
    optimizer = "adam"

    usual = estimate_total_memory(model, batch)
    training = estimate_total_memory(model, batch, mode="training", optimizer=optimizer)
    training_per_usual = training / usual
    fp16 = estimate_total_memory(model, batch, "fp16")
    int8 = estimate_total_memory(model, batch, "int8")
    names = (
        ("all_outputs", "parameters, input, every layer's output"),
        ("inference", "parameters, the largest pair of neighbours"),
        ("training", "the same with gradients, and Adam's two states"),
    )

    @classmethod
    def row(cls, mode: str, what: str) -> list[object]:
        """The bytes of a mode in FP32, FP16 and INT8."""
        totals = (
            estimate_total_memory(cls.model, cls.batch, precision, mode, cls.optimizer)
            for precision in ("fp32", "fp16", "int8")
        )
        return [f"`{mode}`", what, *(each.m_as("byte") for each in totals)]


def _largest(budget: Quantity, precision: str = "fp32", mode: str = "all_outputs") -> int:
    """The batch of the reference network where nothing but the memory limits it."""
    return adjust_batch_size_to_memory(
        ReferenceNetwork.model,
        batch_size=4096,
        budget=budget,
        precision=precision,
        mode=mode,
        optimizer=MemoryByMode.optimizer,
    ).batch


class LargestBatch:
    """Halving the bytes of a number more than doubles the batch, as the parameters shrink too."""

    budget = quantity("1 MiB")
    small_budget = quantity("0.25 MiB")
    small_without_unit = 0.25
    small_decimal_budget = quantity("0.25 MB")

    fp32 = _largest(budget)
    fp16 = _largest(budget, "fp16")
    small_fp32 = _largest(small_budget)
    small_fp16 = _largest(small_budget, "fp16")
    small_decimal_fp32 = _largest(small_decimal_budget)
    gain = fp16 / fp32
    small_gain = small_fp16 / small_fp32
    training = _largest(budget, mode="training")
    left_over = (budget - estimate_total_memory(ReferenceNetwork.model, fp32)).to("byte")
    in_mebibytes = ReferenceNetwork.total.to("MiB")
    in_megabytes = ReferenceNetwork.total.to("MB")
    unit_error = (quantity("1 MiB") / quantity("1 MB") - 1).to("%")


class BudgetCurves:
    """What the figure draws: a batch asked for that no budget of a phone's cache could hold."""

    requested = 1000
    lowest = quantity("32 KiB")
    highest = quantity("8 MiB")


class LargeProduct:
    """Problem 4: what the narrow formats make of a product of large factors."""

    factor = 300


class SlowerDevice:
    """A device that takes half as long again loses a third of its speed, not half."""

    factor = 1.5

    extra_time = extra_time(factor).to("%")
    lost_speed = lost_speed(factor).to("%")
    epochs = 60
    epochs_in_that_time = epochs / factor


class ConstrainedExample:
    """The device of the run in the chapter: sixteen kibibytes, FP16, four times as slow."""

    memory = quantity("16 KiB")
    precision = "fp16"
    requested = 64
    factor = 4
    model = LayerSizes.dense(64, 32, 10)

    choice = adjust_batch_size_to_memory(model, requested, memory, precision)
    batch = choice.batch
    parameter_memory = choice.parameter_memory
    total = choice.total_memory


def _stored(name: str) -> str:
    return (DATA / "measured" / name).read_text(encoding="utf-8")


def _by_precision(rows: Iterable[dict[str, str]], column: str) -> dict[str, tuple[float, ...]]:
    """The numbers of a column, one for each seed, by their precision."""
    found: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    for row in rows:
        found[row["precision"]].append(float(row[column]))
    return {name: tuple(numbers) for name, numbers in found.items()}


class PrecisionCost:
    """On the digits no precision costs more accuracy than another seed does."""

    measured = tomllib.loads(_stored("digits_precision.toml"))
    rows = tuple(csv.DictReader(_stored("digits_precision.csv").splitlines()))
    seeds = len(measured["seeds"])
    epochs = measured["epochs"]
    test_samples = measured["test_samples"]

    accuracy = _by_precision(rows, "accuracy")
    changed = _by_precision(rows, "changed")
    mean_fp32 = quantity(statistics.mean(accuracy["fp32"])).to("%")
    spread_fp32 = quantity(statistics.stdev(accuracy["fp32"])).to("%")
    mean_changed_by_seed = statistics.mean(changed["fp32"])
    most_changed_int8 = max(changed["int8"])
    most_changed_fp16 = max(changed["fp16"])
    one_sample = quantity(1 / test_samples).to("%")

    @classmethod
    def row(cls, name: str) -> list[object]:
        """A precision: mean and spread of the accuracy, mean and most of the changed answers."""
        accuracy, changed = cls.accuracy[name], cls.changed[name]
        cast = [None, None] if name == "fp32" else [statistics.mean(changed), int(max(changed))]
        return [
            formats.get(name).name,
            quantity(statistics.mean(accuracy)).to("%"),
            quantity(statistics.stdev(accuracy)).to("%"),
            *cast,
        ]

    @classmethod
    def row_of_seeds(cls) -> list[object]:
        """What the next seed changes, in FP32."""
        changed = cls.changed["fp32"]
        return ["the next seed, FP32", None, None, statistics.mean(changed), int(max(changed))]


class NarrowerOrCoarser:
    """Of two ways to halve the parameters, fewer bits leave the larger batch."""

    budget = quantity("0.5 MiB")
    narrow_hidden = ReferenceNetwork.hidden // 2

    narrow = LayerSizes.dense(ReferenceNetwork.inputs, narrow_hidden, ReferenceNetwork.outputs)
    wide_fp16 = _largest(budget, "fp16")
    narrow_fp32 = adjust_batch_size_to_memory(narrow, 4096, budget).batch
    gain = wide_fp16 / narrow_fp32
