"""What the chapter "Levers of the training loop" quotes: laws, and stored measurements."""

from __future__ import annotations

from math import ceil

import polars
from polars import col

from calc import (
    codesign,
    constants,
    hardware,
    links,
    models,
    roofline,
    scaling,
    training,
    transformer,
)
from calc.core.units import Quantity, quantity
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


class MachineOfLevers:
    """Where the training loop was measured."""

    processor = SETTINGS["processor"]
    measured = f"{SETTINGS['measured']:%d %B %Y}"
    load = SETTINGS["load_before"]


class PromisedFactors:
    """Four levers of 3, 2, 2 and 1.5 are 18 times by their product, and 2.3 on these fractions."""

    first = 3
    second = 2
    third = 2
    fourth = 1.5
    product = first * second * third * fourth
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
    combined = scaling.combined_speedup(levers)
    rest = 1 - first_share - second_share - third_share - fourth_share
    all_free = scaling.amdahl_limit(rest)


class MeasuredStep:
    """Products of matrices take three quarters of a measured step, and the optimizer most else."""

    width = 1024
    products_factor = 3
    optimizer_factor = 2
    data_factor = 2
    clearing_factor = 1.5

    shares = shares_of_step(width)
    products = quantity(100 * (shares["forward"] + shares["backward"]), "%")
    optimizer = quantity(100 * shares["optimizer"], "%")
    data = quantity(100 * shares["data"], "%")
    products_ceiling = scaling.amdahl_limit(1 - products.m_as(""))
    optimizer_ceiling = scaling.amdahl_limit(1 - optimizer.m_as(""))
    data_ceiling = scaling.amdahl_limit(1 - data.m_as(""))
    factors = (products_factor, products_factor, optimizer_factor, clearing_factor, data_factor)
    product = products_factor * optimizer_factor * data_factor * clearing_factor
    combined = scaling.combined_speedup(zip(shares.values(), factors, strict=True))


class SixteenBitSteps:
    """What a 16-bit format gains in time depends on whether the CPU has instructions for it."""

    widths = tuple(SETTINGS["widths"])
    best = max(all_of("precision", "bf16_speedup", rows=WITH_BF16))
    worst = min(all_of("precision", "bf16_speedup", rows=WITH_BF16))
    _without = all_of("precision", "bf16_speedup") + all_of("precision", "fp16_speedup")
    best_without = max(_without)
    worst_without = min(_without)

    @classmethod
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


class SevenBillion:
    """A 7 B model fits a device of 80 GB only when levers on all kinds of memory are pulled."""

    _model = models.get("llama-2-7b")
    sequences = 8
    context = _model.context
    parameters = _model.parameters
    device = hardware.H100.memory_capacity
    per_parameter = training.recipe("adam-mixed").bytes_per_parameter
    per_parameter_offloaded = quantity(
        measured("offload", "bf16", "offloaded_bytes_per_parameter"), "byte/param"
    )
    state = training.model_memory(parameters, per_parameter)
    state_offloaded = training.model_memory(parameters, per_parameter_offloaded)
    activations_fp32 = _kept(_model, sequences, "4 byte")
    activations = _kept(_model, sequences, "2 byte")
    activations_of_part = _kept(_model, 1, "2 byte")
    before = state + activations_fp32
    mixed = state + activations
    in_parts = state + activations_of_part
    offloaded = state_offloaded + activations_of_part
    bars = (
        ("FP32", state, activations_fp32),
        ("mixed precision", state, activations),
        ("and in parts", state, activations_of_part),
        ("and offloaded", state_offloaded, activations_of_part),
    )


class MeasuredMemory:
    """Mixed precision takes between half of the memory and a little more than before."""

    cases = tuple(LEVERS.filter(lever="memory")["case"].unique(maintain_order=True))
    count = len(cases)
    ratios = tuple(all_of("memory", "ratio"))
    least = min(ratios)
    most = max(ratios)


class PartsOfABatch:
    """Gradients of unequal parts are weighted by their samples; divided by K they are wrong."""

    first = 64
    last = 1
    middle = 32
    worst_relative = max(all_of("accumulation", "relative_error", "fp64"))
    worst_ulp = max(all_of("accumulation", "largest_error_ulp", "fp32"))
    wrong = quantity(
        100
        * measured(
            "accumulation", f"fp64, parts of {first} and {middle}", "error_divided_by_parts"
        ),
        "%",
    )
    wrong_most = quantity(
        100
        * measured("accumulation", f"fp64, parts of {first} and {last}", "error_divided_by_parts"),
        "%",
    )


class OffloadingTime:
    """The link, and the host's memory even more, take a third of the step of the whole batch."""

    link = AnchorBandwidths.pcie_coded
    utilization = quantity("40%")
    _weights = training.model_memory(SevenBillion.parameters, "2 byte/param")
    moved = 2 * _weights
    link_time = links.transfer_time(moved, link, "0 s").to("ms")
    host = (constants.count_channels_dgx_h100_socket * constants.bandwidth_ddr5_4400_channel).to(
        "GB/s"
    )
    touched = training.model_memory(SevenBillion.parameters, "28 byte/param")
    time = training.offloading_time(SevenBillion.parameters, link, host)
    host_time = (time - link_time).to("ms")
    tokens = SevenBillion.sequences * SevenBillion.context
    _flops = training.training_flops(SevenBillion.parameters, quantity(tokens, "token"))
    step = (_flops / (hardware.H100.peak("bf16") * utilization)).to("s")
    share = (time / step).to("%")
    wanted = quantity("5%")
    sequences = (time / wanted / (step / SevenBillion.sequences)).to("")
    whole = ceil(sequences.m_as(""))
    rows = (
        ("link, gradients out and weights back", moved, link, link_time),
        ("memory of the host, the update", touched, host, host_time),
    )
    float32_plain = quantity(measured("offload", "fp32", "plain_bytes_per_parameter"), "byte/param")
    float32_offloaded = quantity(
        measured("offload", "fp32", "offloaded_bytes_per_parameter"), "byte/param"
    )


class PaddedShape:
    """Padding to a multiple that matrix units like costs operations for certain."""

    outputs = 10
    padded = 16
    _case = f"{outputs} to {padded} outputs"
    extra = quantity(100 * (measured("padding", _case, "flop_ratio") - 1), "%")
    difference = measured("padding", _case, "largest_difference")


class TwoProcesses:
    """Two processes on two cores were slower than one, where Amdahl's law allows 1.3 to 1.6."""

    widths = (256, 1024, 2048)

    @classmethod
    def row(cls, width: int) -> Row:
        """Width; Amdahl's bound, the prediction with the ring, and what was measured."""
        return (
            width,
            *(
                measured("processes", f"width {width}", what)
                for what in ("amdahl_speedup", "predicted_speedup", "speedup")
            ),
        )


def happened(event: str) -> int:
    """How often, in the stored run."""
    return sum(step.events.count(event) for step in RUN.steps)


class StoredRun:
    """A run on the digits in FP16, within a budget that its batch exceeds."""

    overflows = happened("overflow")
    out_of_memory = happened("out of memory")
    steps = len(RUN.steps)
    mfu = RUN.mfu.to("%")
    intensity = RUN.intensity
    ridge = roofline.ridge_point(RUN.peak, RUN.bandwidth).to("FLOP/byte")


class WhichFirst:
    """Problem: products three times as fast, or the optimizer four times."""

    optimizer_factor = 4
    _products = MeasuredStep.products.m_as("")
    _optimizer = MeasuredStep.optimizer.m_as("")
    products = scaling.combined_speedup([(_products, MeasuredStep.products_factor)])
    optimizer = scaling.combined_speedup([(_optimizer, optimizer_factor)])
    both = scaling.combined_speedup(
        [(_products, MeasuredStep.products_factor), (_optimizer, optimizer_factor)]
    )
    second = both / products
    share_after = (MeasuredStep.optimizer * products).to("%")
