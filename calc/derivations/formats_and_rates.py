"""Claims of the look-up page "Formats and rates"."""

from __future__ import annotations

from typing import Any

from calc import formats, hardware
from calc.catalog import kernel_shares
from calc.catalog.hardware import Accelerator
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.hardware_tables import largest_error, short_names, surfaces_of_products
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Cell, Row, Rows, approximately, show


def _of_rate(device: Accelerator, dtype: str) -> Cell:
    """A published rate over that of BF16; "no" if the vendor says that the units lack it."""
    if dtype in device.dtypes:
        record = device.peaks["peak"][dtype]
        factor = record.quantity.m_as("TFLOP/s" if dtype[0] != "i" else "TOP/s")
        factor /= device.peak("bf16").m_as("TFLOP/s")
        quote = approximately if record.provenance.kind == "estimate" else show
        return quote(quantity(factor, ""), digits=2)
    return show("no") if dtype in device.unsupported else None


def _published_row(key: str) -> Row:
    device = hardware.get(key)
    rates = [_of_rate(device, dtype) for dtype in FormatRates.formats]
    return (short_names([device])[device.key], device.peak("bf16").to("TFLOP/s"), *rates)


class FormatRates(Claims):
    """Dense peaks by format, over that of BF16."""

    formats = ("fp64", "tf32", "fp8", "fp6", "fp4", "int8", "int4")
    header = ("Device", "BF16", *(form.upper() for form in formats))


class FormatRatesTable(Claims):
    """A row a device, by vendor and year."""

    rows: Rows = tuple(
        _published_row(key)
        for key in (
            *("a100", "h100", "h200", "b200", "gb200", "b300", "gb300", "rtx-5090"),
            *("rtx-pro-6000", "mi300x", "mi325x", "mi355x", "tpu-v5p", "tpu-v6e", "tpu-v7"),
            *("tpu-8t", "tpu-8i", "gaudi3", "trainium2", "trainium3"),
        )
    ) | row_by_hand("H100 | 989 TFLOP/s | 0.068 | 0.5 | 2 | no | no | 2 | –")


def _time(device: Accelerator, form: str, rows: int, side: int) -> Quantity | None:
    """Return the time of rows times a square matrix by the fastest kernel, if measured."""
    peak = device.peak(kernel_shares.RATES.get(form, "bf16")).m_as("FLOP/s")
    each = kernel_shares.bytes_of_weight(form)  # of the inputs as of the weights
    moved = kernel_shares.bytes_of_product(rows, side, side, each, each)
    roof = max(2 * rows * side**2 / peak, moved / device.memory_bandwidth.m_as("byte/s"))
    times = [surface.time(rows, roof) for surface in surfaces_of_products(device, form)]
    return quantity(min(times), "s").to("µs") if times else None


def _gain(key: str, form: str, rows: int) -> Quantity | None:
    """Return how many times as fast as in BF16 a product is."""
    device = hardware.get(key)
    if kernel_shares.RATES[form] not in device.dtypes:
        return None
    bf16, other = (_time(device, dtype, rows, EngineProducts.side) for dtype in ("bf16", form))
    return None if bf16 is None or other is None else (bf16 / other).to("")


def _measured_row(key: str, rows: int) -> Row:
    """Time in BF16, and how many times as fast the others are."""
    device = hardware.get(key)
    bf16 = _time(device, "bf16", rows, EngineProducts.side)
    gains = [_gain(key, form, rows) for form in EngineProducts.formats]
    cells = [gain and approximately(gain, 2) for gain in gains]
    name = short_names([device])[device.key]
    return (name, bf16 and approximately(bf16, 2), *cells)


class EngineProducts(Claims):
    """Products in the kernels of engines: a step of decode and a long prompt."""

    formats = ("fp8", "fp8-block", "nvfp4")
    side = 8192
    few = 64
    many = 8192
    keys = ("h100", "h200", "b200", "gb200", "b300", "gb300", "l40s", "rtx-pro-6000")
    header = ("Device", "BF16, time", "FP8", "FP8, blocks", "NVFP4")


class EngineProductTables(Claims):
    """A row a device: how many times as fast a product is in fewer bits."""

    few_rows: Rows = tuple(
        _measured_row(key, EngineProducts.few) for key in EngineProducts.keys
    ) | row_by_hand("H100 | ≈ 51 µs | ≈ 1.6 | ≈ 1.7 | –")
    many_rows: Rows = tuple(
        _measured_row(key, EngineProducts.many) for key in EngineProducts.keys
    ) | row_by_hand("H100 | ≈ 1400 µs | ≈ 1.5 | ≈ 1.6 | –")
    worst_error = largest_error(
        surface
        for key in EngineProducts.keys
        for form in ("bf16", *EngineProducts.formats)
        for surface in surfaces_of_products(hardware.get(key), form)
    ) | by_hand("0.176", "the largest of the errors of these surfaces in kernel_shares.csv")
    b200_published = hardware.get("b200").peak("fp4") / hardware.get("b200").peak("bf16") | by_hand(
        "9000 / 2250"
    )
    b200_reached = _gain("b200", "nvfp4", EngineProducts.many) | by_hand(
        "9000 * exp(-(2 * 74 + 100) / 300 - (2 * -1 + 0) / 900 * log2(2 * "
        "8192**3 / 9000e6) + 6 * (2 * -1 + 0) / 900) / (2250 * exp(-(2 * 40 + "
        "43) / 300 - (2 * -4 - 5) / 900 * log2(2 * 8192**3 / 2250e6) + 6 * (2 *"
        " -4 - 5) / 900))"
    )


def _format_row(key: str) -> Row:
    form = formats.get(key)
    element: Any = getattr(form, "element", form)
    block = getattr(form, "block_size", None)
    scale = getattr(form, "scale", None)
    bits = form.size.m_as("bit")
    return (form.name, float(f"{bits:.4g}"), element.max, block, scale.name if scale else "–")


class FormatBits(Claims):
    """A number takes its bits, and those of its share of a scale."""

    header = ("Format", "Bits a number", "Largest element", "Block", "Scale")
    rows: Rows = tuple(
        _format_row(key)
        for key in (
            *("bf16", "fp16", "fp8-e4m3", "fp8-e5m2", "mxfp8-e4m3", "mxfp6-e2m3", "mxfp4"),
            *("nvfp4", "int8", "int4"),
        )
    ) | row_by_hand("NVFP4 | 4.5 | 6 | 16 | FP8 E4M3")
