"""What the chapter "Memory budgets" quotes, from the laws of storage and from a stored sweep."""

from __future__ import annotations

import tomllib
from typing import Any

import polars
from polars import col

from calc import constants, energy, formats, simulation, sparsity
from calc.core.records import DATA
from calc.core.units import Quantity, quantity

MEASURED = DATA / "measured"
SETTINGS: dict[str, Any] = tomllib.loads((MEASURED / "digits.toml").read_text(encoding="utf-8"))
SWEEP = polars.read_csv(MEASURED / "digits_sweep.csv")
LATENCY = polars.read_csv(MEASURED / "digits_latency.csv")
SCALED = polars.read_csv(MEASURED / "digits_scaled_pixel.csv")

STORED = [f"memory_{each}_bytes" for each in ("dense", "csr", "bitmask")]


def summary() -> polars.DataFrame:
    """A row for each variant: mean accuracy and its spread, memory in the smallest storage."""
    return (
        SWEEP.with_columns(polars.min_horizontal(STORED).alias("memory_bytes"))
        .group_by("kind", "pruning", "precision", maintain_order=True)
        .agg(
            col("accuracy").mean(),
            col("accuracy").std().alias("accuracy_std"),
            col("latency_seconds").median(),
            col("memory_dense_bytes").first(),
            col("memory_bytes").mean(),
        )
    )


VARIANTS = summary()


def variant(kind: str, pruning: float, precision: str) -> dict[str, Any]:
    found = (col("kind") == kind) & (col("pruning") == pruning) & (col("precision") == precision)
    return VARIANTS.filter(found).row(0, named=True)


def name_of(row: dict[str, Any]) -> str:
    """How the chapter calls a variant."""
    form = formats.get(row["precision"]).name
    if row["kind"] == "none":
        return form
    return f"{form}, {row['pruning']:.0%} {row['kind']}"


class SweptNetwork:
    """A small network, trained from several seeds, in all its variants."""

    layers = simulation.LayerSizes.dense(*SETTINGS["layer_sizes"])
    hidden = SETTINGS["layer_sizes"][1]
    seeds = len(SETTINGS["seeds"])
    budget = quantity("100 kB")
    test_samples = 360
    strongest = quantity("95%")

    parameters = quantity(sum(layers.parameter_counts), "param")
    float32 = simulation.estimate_parameter_memory(layers)
    int8 = simulation.estimate_parameter_memory(layers, "int8")
    variants = len(VARIANTS)
    rows = len(SWEEP)


class DenseStorage:
    """A matrix of which a part is zero takes as much room as before."""

    rows = 2530
    columns = 2500
    level = quantity("30%")

    before = simulation.storage_bytes((rows, columns))
    dense = simulation.storage_bytes((rows, columns), level.m_as(""))
    csr = simulation.storage_bytes((rows, columns), level.m_as(""), format="csr")
    bitmask = simulation.storage_bytes((rows, columns), level.m_as(""), format="bitmask")


class Crossovers:
    """The smaller an element, the more zeros it takes until leaving them out pays."""

    elements = (
        ("FP32", quantity("4 byte")),
        ("FP16 or BF16", quantity("2 byte")),
        ("INT8", quantity("1 byte")),
    )
    index = quantity("16 bit")

    csr_float32 = sparsity.csr_crossover("4 byte", index).to("%")
    csr_int8 = sparsity.csr_crossover("1 byte", index).to("%")
    bitmask_float32 = sparsity.bitmask_crossover("4 byte").to("%")
    bitmask_int8 = sparsity.bitmask_crossover("1 byte").to("%")

    @classmethod
    def row(cls, name: str, size: Quantity) -> tuple[str, Quantity, Quantity, Quantity]:
        """Format, size of an element, and both crossovers."""
        csr, mask = sparsity.csr_crossover(size, cls.index), sparsity.bitmask_crossover(size)
        return name, size, csr.to("%"), mask.to("%")


class PrunedAndQuantized:
    """Eight to ten times less memory needs sparse storage, and many zeros in it."""

    float32 = quantity("4 byte")
    int8 = quantity("1 byte")
    level = quantity("50%")
    low_claim = 8
    high_claim = 10

    elements = 10**6
    _nonzeros = elements * (1 - level.m_as(""))
    _before = sparsity.dense_storage(elements, float32)
    dense = _before / sparsity.dense_storage(elements, int8)
    csr = _before / sparsity.csr_storage(_nonzeros, 1, int8)
    bitmask = _before / sparsity.bitmask_storage(_nonzeros, elements, int8)
    _mask = sparsity.bitmask_crossover(int8)
    level_for_low = (1 + _mask - dense / low_claim).to("%")
    level_for_high = (1 + _mask - dense / high_claim).to("%")


class AcceptedSets:
    """A smaller budget leaves fewer variants, and at first costs no accuracy."""

    budgets = tuple(quantity(each) for each in ("200 kB", "100 kB", "50 kB", "20 kB"))

    @classmethod
    def row(cls, budget: Quantity) -> tuple[Quantity, int, int, str, Quantity, Quantity]:
        """Budget, how many fit densely and in their smallest storage, the best, its accuracy."""
        limit = budget.m_as("byte")
        dense = VARIANTS.filter(col("memory_dense_bytes") <= limit)
        stored = VARIANTS.filter(col("memory_bytes") <= limit)
        best = stored.sort("accuracy", descending=True, maintain_order=True).row(0, named=True)
        return (
            budget,
            len(dense),
            len(stored),
            name_of(best),
            quantity(100 * best["accuracy"], "%"),
            quantity(100 * best["accuracy_std"], "%"),
        )


def _accuracy(kind: str, pruning: float, precision: str = "fp32") -> Quantity:
    return quantity(100 * variant(kind, pruning, precision)["accuracy"], "%")


def _spread(kind: str, pruning: float, precision: str = "fp32") -> Quantity:
    return quantity(100 * variant(kind, pruning, precision)["accuracy_std"], "%")


def _largest_change() -> int:
    """Test samples by which INT8 and FP32 of the same seed differ at most, before pruning."""
    rows = SWEEP.filter(col("kind") == "none").pivot(
        on="precision", index="seed", values="accuracy"
    )
    change = (rows["int8"] - rows["fp32"]).abs().max()
    assert isinstance(change, float)
    return round(change * SweptNetwork.test_samples)


class SeedsAndPrecisions:
    """Precision moves the accuracy of this network less than the seed of its training does."""

    unpruned = _accuracy("none", 0)
    unpruned_spread = _spread("none", 0)
    half = _accuracy("unstructured", 0.5)
    half_spread = _spread("unstructured", 0.5)
    most_level = 0.9
    most = _accuracy("unstructured", most_level)
    most_spread = _spread("unstructured", most_level)
    neurons_half = _accuracy("structured", 0.5)
    neurons_half_spread = _spread("structured", 0.5)
    one_sample = quantity(100 / SweptNetwork.test_samples, "%")
    spread_in_samples = unpruned_spread / one_sample
    int8_changes = _largest_change()


def _of_scaled(factor: int, precision: str) -> Quantity:
    rows = SCALED.filter((col("factor") == factor) & (col("precision") == precision))
    mean = rows["accuracy"].mean()
    assert isinstance(mean, float)
    return quantity(100 * mean, "%")


class ScaledPixel:
    """One input in other units changes nothing in floating point, and ruins INT8."""

    factor = 256
    mild_factor = 8
    largest_code = 127

    float32 = _of_scaled(factor, "fp32")
    int8 = _of_scaled(factor, "int8")
    int8_mild = _of_scaled(mild_factor, "int8")
    step = factor / largest_code


def _latency(batch: int, kind: str, pruning: float) -> Quantity:
    rows = LATENCY.filter(
        (col("batch") == batch) & (col("kind") == kind) & (col("pruning") == pruning)
    )
    median = rows["latency_seconds"].median()
    assert isinstance(median, float)
    return quantity(median, "s")


class PruningLatency:
    """Dense kernels multiply by zeros as fast as by anything else; fewer neurons save time."""

    small_batch = 1
    large_batch = 256
    level = quantity("50%")
    batches = (1, 16, 256)
    power = quantity("15 W")

    seeds = LATENCY["seed"].n_unique()
    dense = _latency(256, "none", 0)
    unstructured = _latency(256, "unstructured", 0.5)
    structured = _latency(256, "structured", 0.5)
    unstructured_gain = dense / unstructured
    structured_gain = dense / structured
    structured_gain_small = _latency(1, "none", 0) / _latency(1, "structured", 0.5)
    widths = simulation.LayerSizes.dense(64, 128, 128, 10)
    operations_gain = sum(SweptNetwork.layers.parameter_counts) / sum(widths.parameter_counts)

    @classmethod
    def row(cls, batch: int) -> tuple[int, Quantity, Quantity, Quantity, float, float]:
        """Batch; latency unpruned, with half the weights, with half the neurons; both gains."""
        dense, weights, neurons = (
            _latency(batch, kind, level)
            for kind, level in (("none", 0), ("unstructured", 0.5), ("structured", 0.5))
        )
        return (
            batch,
            dense.to("us"),
            weights.to("us"),
            neurons.to("us"),
            (dense / weights).m_as(""),
            (dense / neurons).m_as(""),
        )


def _counted_energy(precision: str) -> Quantity:
    """Energy of a batch of the unpruned network, by its operations and bytes."""
    layers, activations = SETTINGS["layer_sizes"], SETTINGS["activations"]
    network = simulation.NeuralNetwork(layers, activations, precision)
    network.initialize(seed=0)
    return simulation.inference_energy(network, SETTINGS["latency_batch"]).to("uJ")


class TwoEnergies:
    """With fixed watts energy repeats latency; counted by operations and bytes it does not."""

    power = PruningLatency.power

    fixed = (power * PruningLatency.dense).to("mJ")
    float32 = _counted_energy("fp32")
    int8 = _counted_energy("int8")
    gain_of_int8 = float32 / int8
    parameters_share = (
        energy.movement_energy(SweptNetwork.int8, constants.get("energy_lpddr4_bit")) / int8
    ).to("%")
    fixed_over_model = fixed / float32


FRONT = simulation.pareto_frontier(VARIANTS, {"accuracy": "max", "memory_bytes": "min"})


def _smallest_within_a_spread() -> dict[str, Any]:
    unpruned = variant("none", 0, "fp32")
    floor = unpruned["accuracy"] - unpruned["accuracy_std"]
    return VARIANTS.filter(col("accuracy") >= floor).sort("memory_bytes").row(0, named=True)


class Front:
    """Of all variants few are on the front, and of these the spread leaves fewer to choose from."""

    _chosen = _smallest_within_a_spread()
    points = len(FRONT)
    with_latency = len(
        simulation.pareto_frontier(
            VARIANTS, {"accuracy": "max", "memory_bytes": "min", "latency_seconds": "min"}
        )
    )
    chosen = name_of(_chosen)
    chosen_memory = quantity(_chosen["memory_bytes"], "byte").to("kB")
    chosen_accuracy = quantity(100 * _chosen["accuracy"], "%")
    chosen_gain = SweptNetwork.float32 / chosen_memory


class StorageOfLayer:
    """Problem: a layer at the crossover of CSR."""

    rows = 1024
    columns = 1024
    level = quantity("50%")

    dense = simulation.storage_bytes((rows, columns), 0.5, "fp16")
    csr = simulation.storage_bytes((rows, columns), 0.5, "fp16", "csr")
    bitmask = simulation.storage_bytes((rows, columns), 0.5, "fp16", "bitmask")


class OwnSweep:
    """Problems: budgets in two kinds of unit, and a front that believes every digit."""

    small = quantity("8 MB")
    middle = quantity("9.5 MiB")
    large = quantity("10 MB")
    memory = quantity("10 MB")
    first = quantity("95.1%")
    second = quantity("95.3%")
    third = quantity("98.3%")
    first_memory = quantity("40 kB")
    second_memory = quantity("80 kB")
    third_memory = quantity("160 kB")

    middle_decimal = middle.to("MB")


class SmallFlash:
    """Problems: how many zeros a bitmask needs to fit, and what half of them are worth."""

    parameters = quantity("10M param")
    flash = quantity("6 MB")
    excess = quantity("20%")

    _count = parameters.magnitude
    int8 = sparsity.dense_storage(_count, "1 byte")
    mask = sparsity.bitmask_storage(0, _count, "1 byte")
    left = flash - mask
    level = (1 - left / int8).to("%")
    level_without_mask = (1 - flash / int8).to("%")
    bitmask_share = (1 / (PrunedAndQuantized.bitmask / PrunedAndQuantized.dense)).to("%")
    csr_share = (1 / (PrunedAndQuantized.csr / PrunedAndQuantized.dense)).to("%")
