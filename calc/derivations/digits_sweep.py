"""Claims of the chapter "Small machines" on its laboratory: laws of storage, stored sweeps."""

from __future__ import annotations

import polars
from polars import col

from calc import formats, simulation, sparsity
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, counted
from calc.derivations.ledger import Claims
from calc.derivations.recorded import MEASURED, Named, settings

SETTINGS = settings("digits.toml")
FINE_TUNING = settings("digits_fine_tuned.toml")
SWEEP = polars.read_csv(MEASURED / "digits_sweep.csv")
FINE_TUNED = polars.read_csv(MEASURED / "digits_fine_tuned.csv")
LATENCY = polars.read_csv(MEASURED / "digits_latency.csv")
SCALED = polars.read_csv(MEASURED / "digits_scaled_pixel.csv")

STORED = [f"memory_{storage}_bytes" for storage in ("dense", "csr", "bitmask")]


def summary(rows: polars.DataFrame) -> polars.DataFrame:
    """A row for each variant: mean accuracy and its spread, memory in the smallest storage."""
    return (
        rows.with_columns(polars.min_horizontal(STORED).alias("memory_bytes"))
        .group_by("kind", "pruning", "precision", maintain_order=True)
        .agg(
            col("accuracy").mean(),
            col("accuracy").std().alias("accuracy_std"),
            col("memory_dense_bytes").first(),
            col("memory_bytes").mean(),
        )
    )


VARIANTS = summary(SWEEP)
TUNED = summary(FINE_TUNED)


def variant(kind: str, pruning: float, precision: str, of: polars.DataFrame = VARIANTS) -> Named:
    """The row of a variant, without fine-tuning unless another table is given."""
    row = (col("kind") == kind) & (col("pruning") == pruning) & (col("precision") == precision)
    return of.filter(row).row(0, named=True)


def name_of(row: Named) -> str:
    """Return the name of a variant in the chapter."""
    form = formats.get(row["precision"]).name
    if row["kind"] == "none":
        return form
    if row["kind"] == "2:4":
        return f"{form}, 2:4"
    return f"{form}, {row['pruning']:.0%} {row['kind']}"


class SweptNetwork(Claims):
    """A small network, trained from several seeds, in all its variants."""

    layers = simulation.LayerSizes.dense(*SETTINGS["layer_sizes"])
    seeds = len(SETTINGS["seeds"]) | by_hand("10")
    test_samples = 360

    parameters = quantity(sum(layers.parameter_counts), "param") | by_hand(
        "(16384 + 65536 + 2560 + 522) param"
    )
    float32 = simulation.estimate_parameter_memory(layers)
    variants = len(TUNED) | by_hand("(1 + 2 * 6 + 1) * 2")
    fine_tuning = FINE_TUNING["fine_tuning"] | by_hand("20")


class DenseStorage(Claims):
    """A matrix of which a part is zero takes as much room as before."""

    rows = 2530
    columns = 2500
    level = quantity("30%")

    before = simulation.storage_bytes((rows, columns)) | by_hand("2530 × 2500 × 4 bytes")
    dense = simulation.storage_bytes((rows, columns), level.m_as("")) | by_hand("25300000 byte")


class Crossovers(Claims):
    """The smaller an element, the more zeros it takes until leaving them out pays."""

    elements = (
        ("FP32", quantity("4 byte")),
        ("FP16 or BF16", quantity("2 byte")),
        ("INT8", quantity("1 byte")),
    )
    index = quantity("16 bit")

    csr_float32 = sparsity.csr_crossover("4 byte", index).to("%") | by_hand("2 / (4 + 2)")
    csr_int8 = sparsity.csr_crossover("1 byte", index).to("%") | by_hand("2 / (1 + 2)")


class PrunedAndQuantized(Claims):
    """Eight to ten times less memory needs sparse storage, and many zeros in it."""

    float32 = quantity("4 byte")
    int8 = quantity("1 byte")
    level = quantity("50%")
    low_claim = 8
    high_claim = 10

    elements = 10**6
    _nonzeros = elements * (1 - level.m_as(""))
    _before = sparsity.dense_storage(elements, float32)
    dense = _before / sparsity.dense_storage(elements, int8) | by_hand("4 / 1")
    csr = _before / sparsity.csr_storage(_nonzeros, 1, int8) | by_hand(
        "4000000 / (500000 * 3 + 2 * 4)"
    )
    bitmask = _before / sparsity.bitmask_storage(_nonzeros, elements, int8) | by_hand(
        "4 / (0.5 + 0.125)"
    )
    _mask = sparsity.bitmask_crossover(int8)
    level_for_low = (1 + _mask - dense / low_claim).to("%") | by_hand("1 + 0.125 - 4 / 8")
    level_for_high = (1 + _mask - dense / high_claim).to("%") | by_hand("1 + 0.125 - 4 / 10")


class AcceptedSets(Claims):
    """A smaller budget leaves fewer variants, and at first costs no accuracy."""

    budgets = tuple(quantity(size) for size in ("200 kB", "100 kB", "50 kB", "20 kB"))


def _accuracy(
    kind: str, pruning: float, precision: str = "fp32", of: polars.DataFrame = VARIANTS
) -> Quantity:
    return quantity(100 * variant(kind, pruning, precision, of)["accuracy"], "%")


class FineTuned(Claims):
    """A few epochs after pruning give back nearly all that it took, and turn the ranking round."""

    level = quantity("90%") | by_hand("90 %")

    before = _accuracy("unstructured", 0.9) | by_hand(
        "mean(0.716667, 0.655556, 0.777778, 0.405556, 0.475, 0.641667, "
        "0.561111, 0.475, 0.741667, 0.494444)"
    )
    after = _accuracy("unstructured", 0.9, of=TUNED) | by_hand(
        "mean(0.966667, 0.975, 0.975, 0.972222, 0.975, 0.972222, 0.977778, "
        "0.963889, 0.972222, 0.975)"
    )
    neurons_before = _accuracy("structured", 0.9) | by_hand(
        "mean(0.416667, 0.363889, 0.497222, 0.475, 0.283333, 0.575, 0.461111, "
        "0.647222, 0.430556, 0.547222)"
    )
    neurons_after = _accuracy("structured", 0.9, of=TUNED) | by_hand(
        "mean(0.975, 0.977778, 0.966667, 0.975, 0.977778, 0.963889, 0.975, "
        "0.972222, 0.972222, 0.975)"
    )
    neurons_memory = quantity(variant("structured", 0.9, "int8", TUNED)["memory_bytes"], "byte")
    weights_memory = quantity(variant("unstructured", 0.9, "int8", TUNED)["memory_bytes"], "byte")
    memory_ratio = weights_memory / neurons_memory | by_hand(
        "(8449 + 84480 / 8 + 522) / (64 * 26 + 26 * 26 + 26 * 10 + 62)"
    )
    two_of_four = _accuracy("2:4", 0.5, of=TUNED) | by_hand(
        "mean(0.986111, 0.986111, 0.986111, 0.980556, 0.986111, 0.986111, "
        "0.977778, 0.977778, 0.986111, 0.986111)"
    )
    unpruned = _accuracy("none", 0, of=TUNED) | by_hand(
        "mean(0.986111, 0.988889, 0.983333, 0.986111, 0.988889, 0.983333, "
        "0.980556, 0.980556, 0.983333, 0.986111)"
    )
    unpruned_spread = quantity(
        100 * variant("none", 0, "fp32", TUNED)["accuracy_std"], "%"
    ) | by_hand(
        "sqrt(1**2 / 9 + 2**2 / 9 + 1**2 / 9 + 2**2 / 9 + 1**2 / 9 + 1**2 / 9 +"
        " 1**2 / 9 - 5**2 / 90) / 360"
    )


def _largest_change() -> int:
    """Test samples by which INT8 and FP32 of the same seed differ at most, before pruning."""
    rows = SWEEP.filter(col("kind") == "none").pivot(
        on="precision", index="seed", values="accuracy"
    )
    change = (rows["int8"] - rows["fp32"]).abs().max()
    assert isinstance(change, float)
    return round(change * SweptNetwork.test_samples)


class SeedsAndPrecisions(Claims):
    """INT8 moves the accuracy of this network by a sample at most."""

    int8_changes = _largest_change() | by_hand("1")


def _of_scaled(factor: int, precision: str) -> Quantity:
    rows = SCALED.filter((col("factor") == factor) & (col("precision") == precision))
    mean = rows["accuracy"].mean()
    assert isinstance(mean, float)
    return quantity(100 * mean, "%")


class ScaledPixel(Claims):
    """One input in other units changes nothing in floating point, and ruins INT8."""

    factor = 256 | by_hand("256")

    float32 = _of_scaled(factor, "fp32") | by_hand(
        "mean(0.983333, 0.991667, 0.986111, 0.986111, 0.986111, 0.983333, "
        "0.980556, 0.983333, 0.983333, 0.986111)"
    )
    int8 = _of_scaled(factor, "int8") | by_hand(
        "mean(0.786111, 0.836111, 0.841667, 0.794444, 0.802778, 0.797222, "
        "0.811111, 0.836111, 0.85, 0.794444)"
    )


def _latency(batch: int, kind: str, pruning: float) -> Quantity:
    rows = LATENCY.filter(
        (col("batch") == batch) & (col("kind") == kind) & (col("pruning") == pruning)
    )
    median = rows["latency_seconds"].median()
    assert isinstance(median, float)
    return quantity(median, "s")


class PruningLatency(Claims):
    """Dense kernels multiply by zeros as fast as by anything else; fewer neurons save time."""

    large_batch = 256 | by_hand("256")

    dense = _latency(256, "none", 0)
    unstructured = _latency(256, "unstructured", 0.5)
    structured = _latency(256, "structured", 0.5)
    unstructured_gain = dense / unstructured | by_hand("558.139 / 559.767")
    structured_gain = dense / structured | by_hand("558.139 / 233.136")
    gain_alone = _latency(1, "none", 0) / _latency(1, "structured", 0.5) | by_hand(
        "25.478 / 22.564"
    )


def _counted_energy(precision: str) -> Quantity:
    """Energy of a batch of the unpruned network, by its operations and bytes."""
    layers, activations = SETTINGS["layer_sizes"], SETTINGS["activations"]
    network = simulation.NeuralNetwork(layers, activations, precision)
    network.initialize(seed=0)
    return simulation.inference_energy(network, SETTINGS["latency_batch"]).to("uJ")


class TwoEnergies(Claims):
    """Energy by fixed watts repeats latency; counted by operations and bytes it does not."""

    float32 = _counted_energy("fp32") | by_hand(
        "256 * 84480 * (1.31 pJ + 0.38 pJ) + (340008 + 256 * 74 * 4) * 64 pJ + "
        "2 * 256 * 512 * 4 * 1.75 pJ"
    )
    int8 = _counted_energy("int8") | by_hand(
        "256 * 84480 * (0.07 pJ + 0.03 pJ) + (85002 + 256 * 74) * 64 pJ + 2 * 256 * 512 * 1.75 pJ"
    )


OBJECTIVES = {"accuracy": "max", "memory_bytes": "min"}
EVERY_DIGIT = simulation.pareto_frontier(TUNED, OBJECTIVES)
FRONT = simulation.pareto_frontier(TUNED, OBJECTIVES, margins={"accuracy": "accuracy_std"})


def _smallest_within(allowed: Quantity) -> Named:
    floor = variant("none", 0, "fp32", TUNED)["accuracy"] - allowed.m_as("")
    return FRONT.filter(col("accuracy") >= floor).sort("memory_bytes").row(0, named=True)


class Front(Claims):
    """A front that believes the spread of the seeds has fewer points than one of every digit."""

    allowed = quantity("1%") | by_hand("1 %")

    _chosen = _smallest_within(allowed)
    points = len(FRONT) | counted("points of the front")
    every_digit = len(EVERY_DIGIT) | counted("points of the front of every digit")
    chosen = name_of(_chosen) | counted("chosen of the front")
    chosen_memory = quantity(_chosen["memory_bytes"], "byte").to("kB") | by_hand(
        "(64 * 52 + 52 * 52 + 52 * 10 + 114) * 1 byte"
    )
    chosen_accuracy = quantity(100 * _chosen["accuracy"], "%") | by_hand(
        "mean(0.983333, 0.977778, 0.977778, 0.975, 0.983333, 0.977778, "
        "0.983333, 0.975, 0.975, 0.972222)"
    )
    chosen_gain = SweptNetwork.float32 / chosen_memory | by_hand("340008 / 6666")


class ThreeDesigns(Claims):
    """Problem: a front that believes every digit, and one that does not."""

    first = quantity("95.1%") | by_hand("95.1 %")
    second = quantity("95.3%") | by_hand("95.3 %")
    third = quantity("98.3%") | by_hand("98.3 %")
    margin = quantity("1%") | by_hand("1 %")


class SmallFlash(Claims):
    """Problems: how many zeros a bitmask needs to fit, and what half of them are worth."""

    parameters = quantity("10M param") | by_hand("10000000 param")
    flash = quantity("6 MB") | by_hand("6 MB")

    _count = parameters.magnitude
    int8 = sparsity.dense_storage(_count, "1 byte")
    mask = sparsity.bitmask_storage(0, _count, "1 byte")
    left = flash - mask
    level = (1 - left / int8).to("%") | by_hand("1 - 4.75 / 10")
    bitmask_share = (1 / (PrunedAndQuantized.bitmask / PrunedAndQuantized.dense)).to("%") | by_hand(
        "0.5 + 0.125"
    )
    csr_share = (1 / (PrunedAndQuantized.csr / PrunedAndQuantized.dense)).to("%") | by_hand(
        "(500000 * 3 + 8) / 1000000"
    )
