"""Claims of the chapter "Levers of the training loop": laws, and stored measurements."""

from __future__ import annotations

from math import ceil

import polars
from polars import col

from calc import codesign, constants, hardware, links, models, scaling, training, transformer
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, counted, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.numbers_to_know import AnchorBandwidths
from calc.derivations.quoting import Row
from calc.derivations.recorded import MEASURED, settings

SETTINGS = settings("training_levers.toml")
LEVERS = polars.read_csv(MEASURED / "training_levers.csv")
WITH_BF16 = polars.read_csv(MEASURED / "training_precision_bf16.csv")
RUN = codesign.read_run(MEASURED / "training_run.jsonl")

PARTS = ("forward", "backward", "optimizer", "clearing", "data")


def measured(lever: str, case: str, measure: str, rows: polars.DataFrame = LEVERS) -> float:
    """One stored number."""
    return float(rows.filter(lever=lever, case=case, measure=measure)["value"].item())


def all_of(
    lever: str, measure: str, within: str = "", rows: polars.DataFrame = LEVERS
) -> list[float]:
    """The stored numbers of a measure in all cases, or in those whose name has this in it."""
    cases = rows.filter(col("case").str.contains(within), lever=lever, measure=measure)
    return cases["value"].to_list()


def shares_of_step(width: int) -> dict[str, float]:
    """The fractions of a step's time, by part: stored to four digits, and here one in sum."""
    stored = {part: measured("parts", f"width {width}", part) for part in PARTS}
    return {part: share / sum(stored.values()) for part, share in stored.items()}


class MachineOfLevers(Claims):
    """The training loop was measured on this machine."""

    processor = SETTINGS["processor"] | counted("CPU of the levers")
    measured = f"{SETTINGS['measured']:%d %B %Y}" | counted("day of the levers")
    load = SETTINGS["load_before"] | by_hand("0.7")


class PromisedFactors(Claims):
    """Four levers of 3, 2, 2 and 1.5 are 18 times by their product, and 2.3 on these fractions."""

    first = 3
    second = 2
    third = 2
    fourth = 1.5
    product = first * second * third * fourth | by_hand("3 × 2 × 2 × 1.5")
    first_share = quantity("60%")
    second_share = quantity("20%")
    third_share = quantity("10%")
    fourth_share = quantity("5%")
    levers = (
        (first_share, first),
        (second_share, second),
        (third_share, third),
        (fourth_share, fourth),
    )
    combined = scaling.combined_speedup(levers) | by_hand("1 / 0.433333")
    rest = 1 - first_share - second_share - third_share - fourth_share | by_hand(
        "100 % - 60 % - 20 % - 10 % - 5 %"
    )
    all_free = scaling.amdahl_limit(rest) | by_hand("1 / 0.05")


class MeasuredStep(Claims):
    """Products of matrices take three quarters of a measured step, and the optimizer most else."""

    width = 1024
    products_factor = 3
    optimizer_factor = 2
    data_factor = 2
    clearing_factor = 1.5

    shares = shares_of_step(width)
    products = quantity(100 * (shares["forward"] + shares["backward"]), "%") | by_hand(
        "0.3135 + 0.4466"
    )
    optimizer = quantity(100 * shares["optimizer"], "%") | by_hand(
        "0.2313 / (0.004654 + 0.004015 + 0.3135 + 0.4466 + 0.2313)"
    )
    data = quantity(100 * shares["data"], "%") | by_hand(
        "0.004654 / (0.004654 + 0.004015 + 0.3135 + 0.4466 + 0.2313)"
    )
    products_ceiling = scaling.amdahl_limit(1 - products.m_as("")) | by_hand("1 / (1 - 0.7600475)")
    optimizer_ceiling = scaling.amdahl_limit(1 - optimizer.m_as("")) | by_hand("1 / (1 - 0.231284)")
    data_ceiling = scaling.amdahl_limit(1 - data.m_as("")) | by_hand("1 / (1 - 0.0046537)")
    factors = (products_factor, products_factor, optimizer_factor, clearing_factor, data_factor)
    product = products_factor * optimizer_factor * data_factor * clearing_factor | by_hand(
        "3 * 2 * 2 * 1.5"
    )
    combined = scaling.combined_speedup(zip(shares.values(), factors, strict=True)) | by_hand(
        "1 / (0.7600476 / 3 + 0.231284 / 2 + 0.004014723 / 1.5 + 0.004653679 / 2)"
    )


class SixteenBitSteps(Claims):
    """A 16-bit format gains time only where the CPU has instructions for it."""

    widths = tuple(SETTINGS["widths"])
    best = max(all_of("precision", "bf16_speedup", rows=WITH_BF16)) | by_hand("2.15")
    worst = min(all_of("precision", "bf16_speedup", rows=WITH_BF16)) | by_hand("0.8841")
    _without = all_of("precision", "bf16_speedup") + all_of("precision", "fp16_speedup")
    best_without = max(_without) | by_hand("0.6587")
    worst_without = min(_without) | by_hand("0.0294", "the stored rows, FP16 at 2048")

    @classmethod
    @row_by_hand("256 | 2.15 | 0.135 | 0.116 | 66.9% | 3.02")
    def row(cls, width: int) -> Row:
        """Width; speed in BF16 with and without instructions, and in FP16; share of products."""
        case = f"width {width}"
        products = measured("parts", case, "forward") + measured("parts", case, "backward")
        return (
            width,
            measured("precision", case, "bf16_speedup", WITH_BF16),
            measured("precision", case, "bf16_speedup"),
            measured("precision", case, "fp16_speedup"),
            quantity(100 * products, "%"),
            measured("parts", case, "ceiling_of_faster_products"),
        )


def _kept(model: models.Transformer, sequences: int, element_size: str) -> Quantity:
    """Activations of sequences as long as the model reads, scores computed again."""
    return transformer.activation_memory(model, model.context, sequences, "selective", element_size)


class SevenBillion(Claims):
    """A 7 B model fits a device of 80 GB only when levers on all kinds of memory are pulled."""

    _model = models.get("llama-2-7b")
    sequences = 8
    context = _model.context | by_hand("4096")
    parameters = _model.parameters
    device = hardware.H100.memory_capacity | by_hand(
        "5 * 16 GiB", "the device's data sheet, five stacks of 16 GiB"
    )
    per_parameter = training.recipe("adam-mixed").bytes_per_parameter | by_hand(
        "(2 + 2 + 4 + 4 + 4) byte/param"
    )
    per_parameter_offloaded = quantity(
        measured("offload", "bf16", "offloaded_bytes_per_parameter"), "byte/param"
    ) | by_hand("2 byte/param + 2 byte/param")
    state = training.model_memory(parameters, per_parameter)
    state_offloaded = training.model_memory(parameters, per_parameter_offloaded)
    activations_fp32 = _kept(_model, sequences, "4 byte")
    activations = _kept(_model, sequences, "2 byte") | by_hand(
        "2 × (4 × 4096 + 4 × 4096 + 3 × 11008) × 32 × 32768 byte"
    )
    activations_of_part = _kept(_model, 1, "2 byte") | by_hand("137975824384 byte / 8")
    before = state + activations_fp32 | by_hand("6738415616 * 16 byte + 2 * 137975824384 byte")
    mixed = state + activations | by_hand("(107814649856 + 137975824384) byte")
    in_parts = state + activations_of_part | by_hand("(107814649856 + 17246978048) byte")
    offloaded = state_offloaded + activations_of_part | by_hand(
        "(6738415616 × 4 + 17246978048) byte"
    )
    bars = (
        ("FP32", state, activations_fp32),
        ("mixed precision", state, activations),
        ("and in parts", state, activations_of_part),
        ("and offloaded", state_offloaded, activations_of_part),
    )


class MeasuredMemory(Claims):
    """Mixed precision takes between half of the memory and a little more than before."""

    cases = tuple(LEVERS.filter(lever="memory")["case"].unique(maintain_order=True))
    count = len(cases) | by_hand("20 / 4")
    ratios = tuple(all_of("memory", "ratio"))
    least = min(ratios) | by_hand("0.5247")
    most = max(ratios) | by_hand("1.05")


class PartsOfABatch(Claims):
    """Gradients of unequal parts are weighted by their samples; divided by K they are wrong."""

    first = 64
    last = 1
    middle = 32
    worst_relative = max(all_of("accumulation", "relative_error", "fp64")) | by_hand(
        "most(3.311e-17, 1.415e-16, 1.924e-16, 2.594e-16)"
    )
    worst_ulp = max(all_of("accumulation", "largest_error_ulp", "fp32")) | by_hand("2.25")
    wrong = quantity(
        100
        * measured(
            "accumulation", f"fp64, parts of {first} and {middle}", "error_divided_by_parts"
        ),
        "%",
    ) | by_hand("43.46 %")
    wrong_most = quantity(
        100
        * measured("accumulation", f"fp64, parts of {first} and {last}", "error_divided_by_parts"),
        "%",
    ) | by_hand("468.9 %")


class OffloadingTime(Claims):
    """The link, and the host's memory even more, take a third of the step of the whole batch."""

    link = AnchorBandwidths.pcie_coded
    utilization = quantity("40%")
    _weights = training.model_memory(SevenBillion.parameters, "2 byte/param")
    moved = 2 * _weights
    link_time = links.transfer_time(moved, link, "0 s").to("ms") | by_hand(
        "26.953662 GB / 63.01538 GB/s"
    )
    host = (constants.count_channels_dgx_h100_socket * constants.bandwidth_ddr5_4400_channel).to(
        "GB/s"
    )
    touched = training.model_memory(SevenBillion.parameters, "28 byte/param")
    time = training.offloading_time(SevenBillion.parameters, link, host) | by_hand(
        "427.7315 ms + 670.0129 ms"
    )
    host_time = (time - link_time).to("ms") | by_hand("188.6756 GB / 281.6 GB/s")
    tokens = SevenBillion.sequences * SevenBillion.context
    _flops = training.training_flops(SevenBillion.parameters, quantity(tokens, "token"))
    step = (_flops / (hardware.H100.peak("bf16") * utilization)).to("s") | by_hand(
        "6 * 6.738415616e9 * 32768 FLOP / (0.4 * 989e12 FLOP/s)"
    )
    share = (time / step).to("%") | by_hand("1.097744 / 3.348904")
    wanted = quantity("5%")
    sequences = (time / wanted / (step / SevenBillion.sequences)).to("")
    whole = ceil(sequences.m_as("")) | by_hand("ceil(52.45)")
    rows = (
        ("link, gradients out and weights back", moved, link, link_time),
        ("memory of the host, the update", touched, host, host_time),
    ) | row_by_hand("memory of the host, the update | 190 GB | 280 GB/s | 670 ms")
    float32_plain = quantity(
        measured("offload", "fp32", "plain_bytes_per_parameter"), "byte/param"
    ) | by_hand("4 * 4 byte/param")
    float32_offloaded = quantity(
        measured("offload", "fp32", "offloaded_bytes_per_parameter"), "byte/param"
    ) | by_hand("2 * 4 byte/param")


class PaddedShape(Claims):
    """Padding to a multiple that matrix units like costs operations for certain."""

    outputs = 10
    padded = 16
    _case = f"{outputs} to {padded} outputs"
    extra = quantity(100 * (measured("padding", _case, "flop_ratio") - 1), "%") | by_hand(
        "16 / 10 - 1"
    )
    difference = measured("padding", _case, "largest_difference") | by_hand("1.192e-6")


def happened(event: str) -> int:
    """Return how often an event happened in the stored run."""
    return sum(step.events.count(event) for step in RUN.steps)


class WhichFirst(Claims):
    """Problem: products three times as fast, or the optimizer four times."""

    optimizer_factor = 4
    _products = MeasuredStep.products.m_as("")
    _optimizer = MeasuredStep.optimizer.m_as("")
    products = scaling.combined_speedup([(_products, MeasuredStep.products_factor)]) | by_hand(
        "1 / (1 - 0.7600475 * 2/3)"
    )
    optimizer = scaling.combined_speedup([(_optimizer, optimizer_factor)]) | by_hand(
        "1 / (1 - 0.231284 * 3/4)"
    )
    both = scaling.combined_speedup(
        [(_products, MeasuredStep.products_factor), (_optimizer, optimizer_factor)]
    )
    second = both / products | by_hand("3.126577 / 2.027157")
    share_after = (MeasuredStep.optimizer * products).to("%") | by_hand("0.231284 / 0.493302")
