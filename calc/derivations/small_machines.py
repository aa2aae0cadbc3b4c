"""Claims of the chapter "Small machines" on real devices and of a device that is on order."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from calc import constants, convolution, energy, hardware, inference, models
from calc.catalog.hardware import Accelerator
from calc.catalog.models import Convolutional, network
from calc.core.units import Quantity, quantity
from calc.derivations import recorded
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Row, show
from calc.derivations.traces import number
from calc.simulation import (
    PRECISIONS,
    LayerSizes,
    adjust_batch_size_to_memory,
    elements_per_sample,
    estimate_total_memory,
    int8_overhead,
)

INT8 = quantity("1 byte")


def _mobilenet_v2(widths: tuple[int, ...], side: int) -> Convolutional:
    """MobileNetV2 with other widths and images, as its paper scales it; the classifier is left out.

    Its tail never holds the most memory, and repositories differ in it.
    """
    stem, *stages = widths
    strides, repeats = (1, 2, 2, 2, 1, 2, 1), (1, 2, 3, 4, 3, 3, 1)
    expansions = (1, 6, 6, 6, 6, 6, 6)
    names = ("channels", "stride", "repeats", "expansion")
    blocks: list[dict[str, object]] = [
        {"kind": "convolution", "kernel": 3, "stride": 2, "channels": stem},
        *(
            {"kind": "inverted", "kernel": 3, **dict(zip(names, stage, strict=True))}
            for stage in zip(stages, strides, repeats, expansions, strict=True)
        ),
    ]
    name = f"MobileNetV2 {widths[-1] / 320:.2f}"
    return Convolutional(name=name, height=side, width=side, channels=3, blocks=blocks)  # type: ignore[arg-type]


class Microcontroller(Claims):
    """A Cortex-M4 with its flash and SRAM, as a roofline: its ridge is at one operation a byte."""

    flash = constants.size_flash_stm32l4r5 | by_hand("2 MiB")
    sram = constants.size_sram_stm32l4r5 | by_hand("640 KiB")
    clock = constants.frequency_stm32l4r5 | by_hand("120 MHz")
    products = constants.count_macs_per_cycle_cortex_m4 | by_hand("2")
    word = constants.size_word_cortex_m4 | by_hand("32 bits")

    peak = (quantity("2 OP") * products * clock).to("MOP/s") | by_hand("2 * 2 OP * 120e6 / 1 s")
    bandwidth = (word * clock).to("MB/s")
    ridge_point = (peak / bandwidth).to("OP/byte") | by_hand("4 OP / 4 byte")
    jetson = hardware.get("jetson-orin-nano")
    jetson_ridge = jetson.ridge_point("int8") | by_hand("33.5 TOP/s / 102 GB/s")


class Scaled(Claims):
    """MobileNetV2 at 0.35 of its width: most of its memory is one pair of layers near the start."""

    # 0.35 of 32, 16, 24, 32, 64, 96, 160 and 320 channels, to multiples of eight.
    model = _mobilenet_v2((16, 8, 8, 16, 24, 32, 56, 112), 144)
    limit = quantity("512 kB") | by_hand("512 kB")
    published_parameters = quantity("0.75M param") | by_hand("0.75e6 param")

    plain = convolution.peak_memory(model) | by_hand("(72 * 72 * 48 + 36 * 36 * 48) byte")
    peak = convolution.peak_memory(model, in_place=True) | by_hand("(72 * 72 * (8 + 48)) byte")


class Schedules(Claims):
    """The peak of a schedule is what a compiler lays out, and the sum of all layers is not."""

    visual = network("mobilenet-v1-0-25", Convolutional)
    keyword = network("ds-cnn", Convolutional)
    classifier = network("resnet-8", Convolutional)
    detector = network("ad-autoencoder", Convolutional)

    native = constants.size_workspace_vww_native
    compiled = constants.size_workspace_vww
    native_over_compiled = native / compiled | by_hand("353288 / 64800")
    cases = (
        (keyword, "TVM", constants.size_workspace_kws),
        (visual, "TVM", constants.size_workspace_vww),
        (classifier, "TVM", constants.size_workspace_ic),
        (detector, "TVM", constants.size_workspace_ad),
        (visual, "X-CUBE-AI", constants.size_activations_vww),
        (classifier, "X-CUBE-AI", constants.size_activations_ic),
        (Scaled.model, "TinyEngine", constants.size_peak_mobilenet_v2_0_35),
    )

    @classmethod
    def all_outputs(cls, model: Convolutional) -> Quantity:
        """Return the bytes that all layers write, together."""
        return quantity(sum(layer.written for layer in model.convolutions), "byte").to("kB")

    @classmethod
    @row_by_hand("ResNet-8 | 86 kB | 49.2 kB | TVM | 66.1 kB | −25.7%")
    def row(
        cls, model: Convolutional, program: str, published: Quantity
    ) -> tuple[str, Quantity, Quantity, str, Quantity, Quantity]:
        """Network, all outputs, the peak, who published which figure, and the peak's error."""
        peak = convolution.peak_memory(model, in_place=program == "TinyEngine").to("kB")
        error = (peak / published - 1).to("%")
        return model.name, cls.all_outputs(model), peak, program, published.to("kB"), error


class VisualWakeWords(Claims):
    """MobileNetV1 at a quarter of its width fits with an order of magnitude to spare."""

    model = Schedules.visual
    all_outputs = Schedules.all_outputs(model) | by_hand(
        "(5 * 18432 + 36864 + 4 * 9216 + 12 * 4608 + 4 * 2304 + 1152 + 2) byte"
    )
    peak = convolution.peak_memory(model).to("kB") | by_hand("(48 * 48 * (8 + 16)) byte")
    least_error = -max(Schedules.row(*case)[-1] for case in Schedules.cases) | by_hand(
        "1 - 290304 / 295000"
    )
    largest_error = -min(Schedules.row(*case)[-1] for case in Schedules.cases) | by_hand(
        "1 - (640 + 128) / 1160"
    )


def bound_time(model: Convolutional) -> Quantity:
    """Time of one input on the microcontroller, layer by layer, each at the higher of its roofs."""
    return sum((time for _, time in layer_times(model)), quantity("0 s")).to("ms")


def layer_times(model: Convolutional) -> list[tuple[str, Quantity]]:
    """The kind of each layer, and its time at the higher of its roofs."""
    return [
        (
            layer.kind,
            convolution.workload(layer, 1, INT8)
            .between(Microcontroller.peak, Microcontroller.bandwidth)
            .lower,
        )
        for layer in model.convolutions
    ]


class MeasuredLayers(Claims):
    """The library of the vendor stays far below the roofline; its rate on one network says more."""

    cases = (
        (Schedules.classifier, constants.frequency_ic_stm32l4r5),
        (Schedules.visual, constants.frequency_vww_stm32l4r5),
        (Schedules.keyword, constants.frequency_kws_stm32l4r5),
        (Schedules.detector, constants.frequency_ad_stm32l4r5),
    )
    # What the library reached on the first network predicts the others.
    rate = (convolution.forward_flops(cases[0][0]) * cases[0][1]).to("MFLOP/s")

    networks = len(cases) | by_hand("4")
    visual_bound = bound_time(Schedules.visual)
    visual_measured = (1 / constants.frequency_vww_stm32l4r5).to("ms")
    visual_reached = (
        convolution.forward_flops(Schedules.visual)
        * constants.frequency_vww_stm32l4r5
        / Microcontroller.peak
    ).to("%") | by_hand("14.979328e6 * 8.425 / 480e6")
    visual_elsewhere = (1 / constants.frequency_vww_stm32l4r5_plumerai).to("ms") | by_hand(
        "1 s / 10.126"
    )
    visual_reached_elsewhere = (visual_reached * visual_measured / visual_elsewhere).to(
        "%"
    ) | by_hand("14.979328e6 * 10.126 / 480e6")
    depthwise_time = sum(
        (time for kind, time in layer_times(Schedules.visual) if kind == "depthwise"),
        quantity("0 s"),
    )
    depthwise_share = (depthwise_time / visual_bound).to("%")

    @classmethod
    @row_by_hand("MobileNetV1 0.25 | 15 | 31.2 ms | 119 ms | 3.8 | 128 ms | 8.01%")
    def row(cls, model: Convolutional, frequency: Quantity) -> Row:
        """Network, operations, bound, measured, their ratio, by the first one's rate, error."""
        work = convolution.forward_flops(model).to("MFLOP")
        bound, measured = bound_time(model), (1 / frequency).to("ms")
        expected = (work / cls.rate).to("ms")
        calibrates = model == cls.cases[0][0]
        return (
            model.name,
            work.m_as("MOP"),
            bound,
            measured,
            (measured / bound).m_as(""),
            None if calibrates else expected,
            None if calibrates else (expected / measured - 1).to("%"),
        )


class EnergyOfAnInference(Claims):
    """A whole chip's energy is thousands of times that of the products that it is there for."""

    measured = constants.energy_kws_stm32l4r5.to("mJ") | by_hand("2.833138 mJ")
    _products = convolution.forward_flops(Schedules.keyword) / 2
    _each = constants.energy_7nm_int8_multiply + constants.energy_7nm_int32_add
    arithmetic = energy.arithmetic_energy(_products, _each / quantity("1 FLOP")).to("uJ")
    over_arithmetic = measured / arithmetic | by_hand("2833.138 / 0.2656768")


LLAMA = models.transformer("llama-3-2-1b")


def _embedding(model: Any) -> Quantity:
    """The table that is looked up, in INT8."""
    return quantity(model.vocabulary * model.width * INT8).to("MB")


class PhoneDecode(Claims):
    """A token reads every weight once, so bandwidth over bytes is the bound on tokens a second."""

    bf16_read = inference.weights_read(LLAMA, 1)
    spinquant_read = constants.size_file_llama_3_2_1b_spinquant - _embedding(LLAMA)
    eight_gen_3 = hardware.get("snapdragon-8-gen-3")
    orin = hardware.get("jetson-agx-orin")
    cases = (
        (
            "Snapdragon 8 Gen 3, CPU",
            "BF16",
            eight_gen_3,
            bf16_read,
            constants.frequency_tokens_llama_3_2_1b_oneplus_12,
        ),
        (
            "Snapdragon 8 Gen 3, CPU",
            "SpinQuant",
            eight_gen_3,
            spinquant_read,
            constants.frequency_tokens_llama_3_2_1b_spinquant_oneplus_12,
        ),
        (
            "Snapdragon 8 Elite, NPU",
            "Q4, llama.cpp",
            hardware.get("snapdragon-8-elite"),
            constants.size_file_llama_3_2_1b_q4_0,
            constants.frequency_tokens_llama_3_2_1b_q4_0_snapdragon,
        ),
        (
            "Jetson AGX Orin, GPU",
            "BF16",
            orin,
            bf16_read,
            constants.frequency_tokens_llama_3_2_1b_agx_orin,
        ),
    )

    @classmethod
    @row_by_hand("Snapdragon 8 Elite, NPU | Q4, llama.cpp | 0.765 GB | 110 | 51.5 | 47%")
    def row(
        cls, machine: str, weights: str, device: Accelerator, read: Quantity, measured: Quantity
    ) -> Row:
        """Machine, weights, bytes a token, bound, measured, share."""
        bound = (device.memory_bandwidth / read).to("1/s")
        digits = 3 if device is cls.orin else 2  # a phone's bandwidth is an estimate
        return (
            machine,
            weights,
            read.to("GB"),
            show(bound.m_as("1/s"), digits=digits),
            measured.m_as("1/s"),
            show((measured / bound).to("%"), digits=digits),
        )


class SumForAPeak(Claims):
    """Problem: a plan that buys memory for the sum of all layers."""

    model = Schedules.classifier
    sram = quantity("80 kB") | by_hand("80 kB")
    all_outputs = Schedules.all_outputs(model) | by_hand(
        "(3 * 16384 + 3 * 8192 + 3 * 4096 + 10) byte"
    )
    peak = convolution.peak_memory(model).to("kB") | by_hand("3 * 32 * 32 * 16 byte")
    published = constants.size_workspace_ic.to("kB") | by_hand("66112 byte")


class ReferenceNetwork(Claims):
    """A batch of 32 through 784-64-10 in FP32 is estimated at less than a third of a mebibyte."""

    batch = 32 | by_hand("32")

    model = LayerSizes.dense(784, 64, 10)
    parameters = sum(model.parameter_counts) | by_hand("784 * 64 + 64 + 64 * 10 + 10")
    elements = batch * elements_per_sample(model) | by_hand("32 * (784 + 64 + 10)")
    total = estimate_total_memory(model, batch) | by_hand("(203560 + 109824) byte")
    overhead = int8_overhead(model) | by_hand("74 * (4 + 3) * 1 byte")


class MemoryByMode(Claims):
    """Training with Adam takes more than three times what the usual estimate says."""

    model = ReferenceNetwork.model
    batch = ReferenceNetwork.batch
    optimizer = "adam"

    usual = estimate_total_memory(model, batch)
    training = estimate_total_memory(model, batch, mode="training", optimizer=optimizer)
    training_per_usual = training / usual | by_hand("(4 * 203560 + 2 * 109824) / 313384")
    names = (
        ("all_outputs", "the usual estimate: parameters, input, every layer's output"),
        ("inference", "parameters, the largest pair of neighbours"),
        ("training", "the usual estimate with gradients, and Adam's two states"),
    )

    @classmethod
    @row_by_hand(
        "training | the usual estimate with gradients, and Adam's two states | "
        "1 033 888 | 516 944 | –"
    )
    def row(cls, mode: str, what: str) -> list[object]:
        """The bytes of a mode in FP32, FP16 and INT8."""
        totals = [
            estimate_total_memory(cls.model, cls.batch, precision, mode, cls.optimizer).m_as("byte")
            for precision in ("fp32", "fp16", "int8")
        ]
        if mode == "training":  # nobody keeps gradients and Adam's states in INT8
            totals[-1] = None
        return [f"`{mode}`", what, *totals]


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


class LargestBatch(Claims):
    """Halving the bytes of a number more than doubles the batch, as the parameters shrink too."""

    budget = quantity("1 MiB") | by_hand("1 MiB")

    fp32 = _largest(budget) | by_hand("floor((1048576 - 203560) / 3432)")
    fp16 = _largest(budget, "fp16") | by_hand("floor((1048576 - 101780) / 1716)")
    in_mebibytes = ReferenceNetwork.total.to("MiB") | by_hand("(313384 / 1048576) MiB")
    in_megabytes = ReferenceNetwork.total.to("MB") | by_hand("313384 byte")
    unit_error = (quantity("1 MiB") / quantity("1 MB") - 1).to("%") | by_hand(
        "1048576 / 1000000 - 1"
    )


def _by_precision(rows: Sequence[dict[str, str]], column: str) -> dict[str, tuple[float, ...]]:
    """The numbers of a column, one for each seed, by their precision."""
    return {
        name: tuple(number(row[column]) for row in rows if row["precision"] == name)
        for name in PRECISIONS
    }


class PrecisionCost(Claims):
    """On the digits no precision costs more accuracy than another seed does."""

    measured = recorded.settings("digits_precision.toml")
    rows = recorded.rows("digits_precision.csv")
    test_samples = measured["test_samples"] | by_hand("ceil(1797 / 5)")

    changed = _by_precision(rows, "changed")
    mean_changed_by_seed = statistics.mean(changed["fp32"]) | by_hand(
        "mean(6, 6, 5, 7, 6, 6, 5, 4, 5, 8, 9, 8, 7, 7, 5, 7, 3, 7, 4, 2)",
        "awk, over the rows of fp32 in digits_precision.csv",
    )
    most_changed_int8 = max(changed["int8"]) | by_hand(
        "most(0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0)",
        "sort, over the rows of int8 in digits_precision.csv",
    )
