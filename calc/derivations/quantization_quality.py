"""Claims of the chapter "Quantisation" on methods, and of models that others quantised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from calc import (
    caches,
    calibration,
    formats,
    hardware,
    inference,
    kernel_shares,
    machines,
    models,
    quantization,
    roofline,
    transformer,
)
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import DENSE
from calc.derivations.hardware_tables import largest_error
from calc.derivations.ledger import Claims
from calc.derivations.quantization_chapter import Groups, sqnr_of_a_bell
from calc.derivations.quoting import Row, Rows, show
from calc.formats import QuantizedModel


class TwoWeights(Claims):
    """The second of two weights with correlated inputs makes up for the rounding of the first."""

    weight = quantity("0.4")
    correlation = quantity("0.8")

    moved = weight + correlation * weight | by_hand("0.4 + 0.8 * 0.4")
    error = weight - numpy.rint(weight.magnitude)
    error_after = weight - numpy.rint(moved.magnitude)
    of_nearest = 2 * error**2 + 2 * correlation * error**2 | by_hand(
        "0.4**2 + 0.4**2 + 2 * 0.8 * 0.4**2"
    )
    of_compensated = error**2 + error_after**2 + 2 * correlation * error * error_after | by_hand(
        "0.4**2 + 0.6**2 - 2 * 0.8 * 0.4 * 0.6"
    )
    gain = of_nearest / of_compensated | by_hand("0.576 / 0.136")
    left = calibration.error_left_by_compensation(correlation) | by_hand("1 - 0.8**2")


class BellNoise(Claims):
    """Bits and groups leave so many decibels of a bell, and the noise that they stand for."""

    bits = (8, 6, 4, 3, 2)
    group = Groups.group | row_by_hand("4 | 16.4 | 18.5 | 20.3 | 1.4%")
    small_group = Groups.small_group

    @staticmethod
    def noise(sqnr: Quantity) -> Quantity:
        """The power of the error as a share of that of the signal."""
        return quantity(10 ** (-sqnr.magnitude / 10), "").to("%")

    @classmethod
    def row(cls, bits: int) -> Row:
        """Bits, SQNR with one scale, in groups and in small groups, and the noise in groups."""
        one, groups, small = (
            sqnr_of_a_bell(bits, group) for group in (None, cls.group, cls.small_group)
        )
        return bits, one, groups, small, cls.noise(groups)


class FourBitFloats(Claims):
    """Independent accounts say what weights and activations in NVFP4 lose."""

    loss = 0.6  # points, at most, of the mean of five tasks: an input


class FourBits(Claims):
    """Return how much stronger the noise is with one bit less than the usual four."""

    one_bit_less = (
        (quantization.symmetric_step(1, 3) / quantization.symmetric_step(1, 4)) ** 2
    ).to("") | by_hand("7**2 / 3**2")


TODAYS_SOURCES = ("ures2026nvfp4", "castro2025microscaling")
TODAYS_FORMATS = ("FP8", "INT4", "NVFP4", "MXFP4")


def _todays_scores() -> list[tuple[QuantizedModel, dict[str, Quantity]]]:
    """Return one row of each model and method, with its score in each format."""
    by_method: dict[tuple[str, str], list[QuantizedModel]] = {}
    for row in formats.quantized_models():
        if row.source in TODAYS_SOURCES:
            by_method.setdefault((row.model, row.method), []).append(row)
    return [
        (rows[0], {row.format or "INT4": row.after for row in rows}) for rows in by_method.values()
    ]


def _points_lost(name: str) -> list[Quantity]:
    """Points that models of today lose in a format, in rising order."""
    return sorted(
        first.before - scores[name] for first, scores in _todays_scores() if name in scores
    )


class TodaysQuality(Claims):
    """Models of today lose little in FP8, and most in MXFP4."""

    questions = 14 * 50  # of MMLU-Pro, fifty of each subject: an input
    noise = quantity(100 * (0.84 * 0.16 / questions) ** 0.5) | by_hand(
        "100 * sqrt(0.84 * 0.16 / 700)"
    )  # points, of a score of about 84
    most_fp8 = _points_lost("FP8")[-1] | by_hand("86.0 - 85.3")
    most_int4 = _points_lost("INT4")[-1] | by_hand("84.4 - 82.9")
    most_nvfp4 = _points_lost("NVFP4")[-1] | by_hand("84.4 - 82.0")
    least_mxfp4 = _points_lost("MXFP4")[0] | by_hand("88.19 - 86.32")
    most_mxfp4 = _points_lost("MXFP4")[-1] | by_hand("83.35 - 76.54")

    @classmethod
    @row_by_hand("Qwen3.6 27B, as released | MMLU-Pro | 84.4 | 84 | 82.9 | 82 | – | …")
    def rows(cls) -> Rows:
        """A row for each model and method: the score in 16 bits and in each format."""
        return [
            (
                f"{first.model}, {first.method}",
                first.measure,
                first.before,
                *map(scores.get, TODAYS_FORMATS),
                _source(first),
            )
            for first, scores in _todays_scores()
        ]


class PublishedQuality(Claims):
    """Models that others quantised lost some quality; beside it stands the SQNR of a bell."""

    rows = formats.quantized_models()

    @classmethod
    @row_by_hand(
        "Llama 2 7B, GPTQ, columns reordered | 4/16/16, groups of 128 | 5.47 | "
        "5.63 | 2.93% | 18.5 | …"
    )
    def perplexity(cls) -> Rows:
        """The rows of perplexity, of which less is better."""
        return [
            (
                f"{row.model}, {row.method}",
                _bits(row),
                row.before,
                row.after,
                _cost(row),
                _bell(row),
                _source(row),
            )
            for row in cls.rows
            if row.measure == "perplexity" and not row.model.startswith("LLaMA ")
        ]

    @classmethod
    @row_by_hand(
        "Llama 2 7B 32K, KIVI, last 128 tokens in FP16 | 16/16/2 | RULER | 56.4 | 39.8 | …"
    )
    def tasks(cls) -> Rows:
        """The rows of scores, of which more is better."""
        return [
            (
                f"{row.model}, {row.method}",
                _bits(row),
                row.measure,
                row.before,
                row.after,
                _source(row),
            )
            for row in cls.rows
            if row.measure != "perplexity" and row.source not in TODAYS_SOURCES
        ]

    @classmethod
    def cost(cls, key: str) -> Quantity:
        """Return by how much the perplexity of the row with this key rose."""
        return _cost(next(row for row in cls.rows if row.key == key))


def _cost(row: QuantizedModel) -> Quantity:
    """Return by how much perplexity rose, as a share of what it was."""
    return quantity(row.after / row.before - 1, "").to("%")


def _bits(row: QuantizedModel) -> str:
    """Bits of weights, activations and cache, and the group."""
    group = f", groups of {row.group}" if row.group else ""
    return f"{row.weights}/{row.activations}/{row.cache}{group}"


def _bell(row: QuantizedModel) -> Quantity | None:
    """SQNR of a bell after the same bits and groups, where these are plain integers."""
    return None if row.weights == 16 or row.format else sqnr_of_a_bell(row.weights, row.group)


def _source(row: QuantizedModel) -> str:
    """The citation, and whether the source itself or an account of it was read."""
    return f"[@{row.source}]" + (", in an account" if "account" in row.read else "")


class SameDecibels(Claims):
    """One number of bits, three costs: the method and the size of the model decide."""

    few_bits = 3

    nearest = PublishedQuality.cost("llama-2-7b-rtn-w4a16-g128") | by_hand(
        "5.73 / 5.47 - 1", "5.73 over 5.47 [Lin et al. 2024, table 4]"
    )
    awq = PublishedQuality.cost("llama-2-7b-awq-w4a16-g128") | by_hand(
        "5.60 / 5.47 - 1", "5.60 over 5.47 [Lin et al. 2024, table 4]"
    )
    nearest_in_three = PublishedQuality.cost("llama-2-7b-rtn-w3a16-g128")
    # A small rise of perplexity is the rise of the loss, in nats a token.
    rise = quantity(
        float(numpy.log1p(nearest_in_three.m_as("")) / numpy.log1p(nearest.m_as(""))), ""
    ) | by_hand("ln(6.66/5.47) / ln(5.73/5.47)")


class WhichLimit(Claims):
    """The batch decides: 4-bit weights help as far as memory limits, 8-bit arithmetic beyond."""

    h100 = hardware.get("h100")
    bandwidth = h100.memory_bandwidth
    fp16_peak = h100.peak("fp16")
    int4 = quantization.bytes_per_parameter("4 bit/param", Groups.group)
    int8 = quantity("1 byte/param")
    work = quantity("2 FLOP/param")

    int4_ridge = roofline.ridge_point(fp16_peak, bandwidth) * int4 / work | by_hand(
        "989e12 * 0.515625 / (2 * 3.35e12)"
    )
    crossover = roofline.ridge_point(fp16_peak, bandwidth) * int8 / work | by_hand(
        "989e12 / (2 * 3.35e12)"
    )
    best_gemm = machines.of(h100).likely("gemm", "bf16")
    int4_ridge_reached = roofline.ridge_point(best_gemm, bandwidth) * int4 / work | by_hand(
        "794.5e12 * 0.515625 / (2 * 3.35e12)"
    )
    crossover_reached = roofline.ridge_point(best_gemm, bandwidth) * int8 / work | by_hand(
        "794.5e12 / (2 * 3.35e12)"
    )


class ForgottenCache(Claims):
    """Problem: 4-bit weights hardly shorten a decode whose bytes are mostly its cache."""

    model = models.get("llama-3-8b")
    requests = 64 | by_hand("64")
    context = quantity("8192 token")
    two_bytes = quantity("2 byte")
    in_four = Groups.bits_of_group * quantity("1 param")

    promised = (two_bytes / in_four).to("") | by_hand("16 / 4.125")
    weights = inference.weights_read(model, requests, two_bytes).to("GB") | by_hand(
        "7504658432 * 2 byte"
    )
    weights_in_four = inference.weights_read(model, requests, in_four).to("GB") | by_hand(
        "7504658432 * 4.125 bit"
    )
    per_token = transformer.kv_cache_per_token(model)
    cache = caches.kv_cache_memory(requests, context, per_token).to("GB") | by_hand(
        "64 * 8192 * 128 KiB"
    )
    before = weights + cache
    gain = before / (weights_in_four + cache) | by_hand("83.72880 / 72.58907")
    gain_with_cache = before / (weights_in_four + cache / 2) | by_hand("83.72880 / 38.22933")


def _products_of_vllm(device: str, format: str) -> kernel_shares.Surface:
    surface = kernel_shares.surface_of("product", device, "vllm", format)
    assert surface is not None
    return surface


class FormatByBatch(Claims):
    """The time of one product by rows and format, as measured: what limits decides the format."""

    layer: Any = DENSE
    rows_of_batch = (1, 16, 64, 256, 1024, 8192)
    columns = (
        *(("h100", "bf16"), ("h100", "fp8")),
        *(("b200", "bf16"), ("b200", "fp8"), ("b200", "nvfp4")),
    )
    header = ("Tokens", "H100, BF16", "H100, FP8", "B200, BF16", "B200, FP8", "B200, NVFP4")
    version = "0.24.0"
    worst_error = deferred(largest_error)(
        _products_of_vllm(*column) for column in columns
    ) | by_hand("0.13", "the largest of the errors of these surfaces in kernel_shares.csv")

    @classmethod
    def time(cls, rows: int, device: str, format: str) -> Quantity:
        """Return the time of the product of so many tokens with the layer's first matrix."""
        n, k = cls.layer.feed_forward_width, cls.layer.width
        surface = _products_of_vllm(device, format)
        gpu, each = hardware.get(device), kernel_shares.bytes_of_weight(format)
        roof = max(
            2 * rows * n * k / gpu.peak(surface.rate).m_as("FLOP/s"),
            kernel_shares.bytes_of_product(rows, n, k, each, each)
            / gpu.memory_bandwidth.m_as("byte/s"),
        )
        return quantity(surface.time(rows, roof), "s").to("us")

    @classmethod
    @row_by_hand("8192 | 4900 µs | 3800 µs | 2400 µs | 1600 µs | 970 µs")
    def rows(cls) -> Iterator[Row]:
        for rows in cls.rows_of_batch:
            yield rows, *(show(cls.time(rows, *column), "us", 2) for column in cls.columns)
