"""Distil measured kernels: `python -m experiments.distil_kernels DIRECTORY`.

DIRECTORY is `aic-core/src/aiconfigurator_core/systems/data` of a copy of ai-dynamo/aiconfigurator
(Apache-2.0, commit 095f58a), which holds rows of kernels by system, operation, program and version
as Parquet files. Of each a surface is made, as `calc.catalog.kernel_shares` reads it: the share of
the pace of published peaks that the kernel reached, over a length of its shape and over its roof.
It is the surface, linear between its points in logarithms, from which the rows are least far off in
the median; second differences are kept small where there are few rows. Rows are left out whose time
cannot be (below a microsecond), and files whose shortest kernel takes above 50 µs, which is the
time of a host that launches and not of a kernel. Products that are taken off a layer's module are
those of the file that is there. Beside each surface stands how far its rows are off, and how far
they are by the version before it and by a device like it, as it were not measured; `calc validate
--kernels` sums that up.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from calc.catalog import engine_sums, expert_exchanges, hardware, machines, models, software
from calc.catalog.engine_sums import interpolated
from calc.catalog.expert_exchanges import WAYS, Crossing
from calc.catalog.kernel_shares import (
    COLUMNS,
    FILE,
    LENGTHS,
    RATES,
    ROOFS,
    SHORTEST,
    bytes_of_chosen,
    bytes_of_experts,
    bytes_of_product,
    bytes_of_states,
    stand_ins,
    waiting_for_weights,
    without_falls,
)
from calc.catalog.software import Software
from calc.core.arrays import Number
from calc.laws import attention
from calc.laws.gemms import START
from calc.steps.communication import crossings
from calc.steps.job import Formats, Job, Layout, Tokens
from calc.steps.kernels import Slice
from calc.steps.measured import HEADS
from experiments.tables import write_rows

Numbers = NDArray[np.float64]


class Key(NamedTuple):
    """Names of a surface's kernels: kernel, device, program, version and format."""

    kernel: str
    device: str
    program: str
    version: str
    format: str


DEVICES = {
    "a100_sxm": "a100",
    "h100_sxm": "h100",
    "h200_sxm": "h200",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
    "b60": "arc-pro-b60",
}
PROGRAMS = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
FORMATS = {  # of a product: its name here, and bytes of an input and a weight
    "bfloat16": ("bf16", 2.0, 2.0),
    "fp8": ("fp8", 1.0, 1.0),
    "fp8_block": ("fp8-block", 1.0, 1.0),
    "nvfp4": ("nvfp4", 0.5625, 0.5625),
    "sq": ("int8", 1.0, 1.0),
    "int8_wo": ("int8-weights", 2.0, 1.0),
    "int4_wo": ("int4-weights", 2.0, 0.53125),
    "w4afp8": ("int4-weights-fp8", 1.0, 0.53125),
    "w4a16_mxfp4": ("mxfp4-weights", 2.0, 0.53125),
    "w4a8_mxfp4_mxfp8": ("mxfp4", 1.0, 0.53125),
}
HOST = 50e-6  # seconds that the shortest product takes where it is the host's time
FEWEST = 60  # rows of a surface
FEWEST_STATES = 40  # of one whose lengths are batches: eleven, of four numbers of heads
FEW_WITHIN = 0.1  # of such a surface, half of whose rows are nearer
SMOOTH = 0.01
SEVERAL = ("experts", "chunks", "chosen", "choosing")  # kernels, one after the other
NARROW = 64  # numbers of a head, at most, that are a format of their own


@dataclass(frozen=True)
class Rows:
    """Measured kernels of one surface."""

    length: Numbers
    roof: Numbers
    """Seconds."""
    time: Numbers

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        return Rows(self.length[chosen], self.roof[chosen], self.time[chosen])


@dataclass(frozen=True)
class Peaks:
    """The published peaks of a device, in base units."""

    key: str
    rates: dict[str, float]
    bandwidth: float

    @classmethod
    def of(cls, key: str) -> Peaks:
        device = hardware.get(key)
        rates = {name: device.peak(name).m_as("FLOP/s") for name in device.dtypes}
        return cls(key, rates, device.memory_bandwidth.m_as("byte/s"))

    def roof(self, rate: str, operations: Numbers, moved: Number) -> Numbers:
        return np.maximum(operations / self.rates[rate], np.asarray(moved) / self.bandwidth)


def columns(table: pl.DataFrame, *names: str) -> list[Numbers]:
    return [table[name].to_numpy().astype(float) for name in names]


def timed(table: pl.DataFrame, keys: list[str]) -> list[Numbers]:
    """The columns of these keys, and that of the time in seconds."""
    *measured, time = columns(table, *keys, "latency")
    return [*measured, time * 1e-3]


def fastest(table: pl.DataFrame, keys: list[str]) -> list[Numbers]:
    """Return the columns with the least time of each, over kernels alike."""
    return timed(table.group_by(keys).agg(pl.col("latency").min()), keys)


def products(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    for (written,), rows in table.group_by("gemm_dtype"):
        if written not in FORMATS:
            continue
        name, a, b = FORMATS[str(written)]
        if (rate := RATES.get(name, "bf16")) not in peaks.rates:
            continue
        m, n, k, time = fastest(rows, ["m", "n", "k"])
        made = Rows(m, peaks.roof(rate, 2 * m * n * k, bytes_of_product(m, n, k, a, b)), time)
        yield name, made.where((n >= 256) & (k >= 256))


def experts(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    """Yield the roofs and times of a layer's experts: both products, what is between, and sorting.

    Tokens go to experts as unequally as in the rows with an exponent of 1.01.
    """
    keys = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts"]
    keys += ["moe_tp_size", "moe_ep_size"]
    unequal = table.filter(pl.col("distribution") == "power_law_1.01")
    for (written,), rows in unequal.group_by("moe_dtype"):
        if written not in FORMATS:
            continue
        name, _, b = FORMATS[str(written)]
        if (rate := RATES.get(name, "bf16")) not in peaks.rates:
            continue
        tokens, width, hidden, chosen, count, tp, ep, time = fastest(rows, keys)
        routed, weights = tokens * chosen / ep, 3 * width * hidden / tp
        woken = count / ep * (1 - (1 - chosen / count) ** tokens)
        moved = bytes_of_experts(tokens, routed, width, hidden / tp, woken * weights * b)
        roof = peaks.roof(rate, 2 * routed * weights, moved)
        yield name, Rows(tokens * chosen / count, roof, time)


def _whole(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without windows, whose hidden work is not told apart here."""
    return table.filter(pl.col("window_size") == 0) if "window_size" in table.columns else table


ATTENTION = ["batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "step"]


def _attended(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, str, float, list[Numbers]]]:
    """Yield rows by format: its name, that of its peak, bytes of a cached number, the columns."""
    for (computed, cached), rows in _whole(table).group_by("attn_dtype", "kv_cache_dtype"):
        rate = "fp8" if str(computed).startswith("fp8") else "bf16"
        if rate not in peaks.rates:
            continue
        kv = "fp8" if str(cached).startswith("fp8") else "bf16"
        name = rate if rate == kv else f"{rate}-{kv}"
        size = 1.0 if kv == "fp8" else 2.0
        for narrow in (False, True):
            of_width = rows.filter((pl.col("head_dim") <= NARROW) == narrow)
            if len(of_width):
                suffix = "-narrow" if narrow else ""
                yield name + suffix, rate, size, fastest(of_width, ATTENTION)


def prompts(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    for name, rate, size, attended in _attended(table, peaks):
        count, length, heads, groups, width, _, time = attended
        moved = count * length * width * (4 * heads + 2 * groups * size)
        work = 2 * count * heads * width * length**2  # causal
        yield name, Rows(length, peaks.roof(rate, work, moved), time)


def caches(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    for name, rate, size, attended in _attended(table, peaks):
        count, _, heads, groups, width, before, time = attended
        groups, context = np.where(groups == 0, heads, groups), before + 1
        moved = count * width * (context * 2 * groups * size + 4 * heads)
        work = 4 * count * heads * width * context
        yield name, Rows(context, peaks.roof(rate, work, moved), time)


LATENT = ["batch_size", "isl", "num_heads", "step"]
WIDTHS = 512, 64, 128, 128  # of a latent head of DeepSeek: its cache, with positions; query, value


def _cached(written: object) -> tuple[str, float]:
    """Return the name of a latent cache and the bytes of a number."""
    return ("latent", 2.0) if written == "bfloat16" else ("latent-fp8", 1.0)


def latent_prompts(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    for (cached,), rows in table.group_by("kv_cache_dtype"):
        count, length, heads, _, time = fastest(rows, LATENT)
        _, positions, query, value = WIDTHS
        work = count * heads * length**2 * (query + positions + value)
        moved = 2 * count * length * heads * (2 * (query + positions) + 2 * value)
        yield _cached(cached)[0], Rows(length, peaks.roof("bf16", work, moved), time)


def latent_caches(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    for (cached,), rows in table.group_by("kv_cache_dtype"):
        count, _, heads, before, time = fastest(rows, LATENT)
        latent, positions, *_ = WIDTHS
        (name, size), context = _cached(cached), before + 1
        moved = count * (context * (latent + positions) * size + 4 * heads * latent)
        work = 2 * count * heads * context * (2 * latent + positions)
        yield name, Rows(context, peaks.roof("bf16", work, moved), time)


INDEX_HEADS = {  # of models whose layers score, choose and attend
    "deepseek-ai/DeepSeek-V3.2": 64,
    "zai-org/GLM-5": 32,
    "zai-org/GLM-5-FP8": 32,
}
INDEX_WIDTH, CHOSEN = 128, 2048
FIRST = 16  # tokens of a context that adds nothing yet
STARTS = 3 * START.m_as("s")  # of scoring, of choosing and of attending
MODULE = ["model", "kernel_source", "kv_cache_dtype", "gemm_type", "num_heads", "batch_size"]


def chosen(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    """Yield the time that context adds to a module of sparse attention, and three starts."""
    indexed = table.filter(pl.col("model").is_in(list(INDEX_HEADS)))
    least = indexed.group_by([*MODULE, "step"]).agg(pl.col("latency").min())
    short = least.filter(pl.col("step") <= FIRST).group_by(MODULE)
    joined = least.join(short.agg(before=pl.col("latency").median()), on=MODULE).sort(
        [*MODULE, "step"]
    )
    for (cached,), rows in joined.group_by("kv_cache_dtype", maintain_order=True):
        count, heads, before, added = columns(rows, "batch_size", "num_heads", "step", "latency")
        index = np.array([INDEX_HEADS[name] for name in rows["model"]], dtype=float)
        added = np.maximum(added - rows["before"].to_numpy(), 0.0) * 1e-3
        latent, positions, *_ = WIDTHS
        (name, size), context = _cached(cached), before + 1
        seen = np.minimum(context, CHOSEN)
        widths = latent, positions, INDEX_WIDTH
        moved = bytes_of_chosen(count, context, seen, heads, size, widths)
        scored = context * index * INDEX_WIDTH
        work = 2 * count * (scored + heads * seen * (2 * latent + positions))
        yield name, Rows(context, peaks.roof("bf16", work, moved), added + STARTS)


CHUNK = 64  # tokens that kernels read at once
CHOOSING = {  # models whose modules read prompts as a model of calc does, where they score at all
    "deepseek-ai/DeepSeek-V3.2": "deepseek-v3-2",
    "zai-org/GLM-5": "glm-5",
    "zai-org/GLM-5-FP8": "glm-5",
    "nvidia/GLM-5-NVFP4": "glm-5",
    "zai-org/GLM-5.2": "glm-5",
    "nvidia/GLM-5.2-NVFP4": "glm-5",
}
FALLS = 1.2  # of a time over that of longer prompts, above which rows are noise
BELOW = 0.2  # of rows that take no longer than their products and their roof, at most
OF_HOST = 1.2  # of the time of the shortest, above which a module's time is no host's
PROMPTS = ["model", "kernel_source", "kv_cache_dtype", "num_heads", "batch_size", "isl", "step"]


def choosing(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    """Yield the time of reading a prompt in sparse attention, without its products.

    These are calc's, at two bytes, as the same version of the program was measured to run them:
    rows of modules of two bytes count, since products of fewer are fused with their roundings.
    """
    indexed = table.filter(
        pl.col("model").is_in(list(CHOOSING)),
        pl.col("gemm_type") == "bfloat16",
        ~pl.col("op_name").str.contains("skip"),
        pl.col("num_heads").is_in(HEADS),
        pl.col("isl") >= CHUNK,
    )
    least = indexed.group_by(PROMPTS).agg(pl.col("latency").min()).sort(PROMPTS)
    of_host = pl.col("latency").quantile(0.05).over("kernel_source")
    least = least.filter(pl.col("latency") > OF_HOST * of_host)
    alike = ["model", "kernel_source", "kv_cache_dtype", "num_heads", "tokens"]
    alone = (
        least.filter(pl.col("step") == 0)
        .with_columns(tokens=pl.col("batch_size") * pl.col("isl"))
        .sort([*alike, "isl"])
        .select(falls=pl.col("latency").cum_max().over(alike) / pl.col("latency"))
    )
    whose = " ".join(table[name][0] for name in ("framework", "version", "device"))
    if len(alone) and np.quantile(alone["falls"], 0.9) > FALLS:
        print(f"  left out: {whose}, sparse attention of prompts, which longer ones shorten")
        return
    program = PROGRAMS[str(table["framework"][0]).lower()]
    engine = software.get(f"{program} {table['version'][0]}")
    parts: dict[str, list[Rows]] = {}
    below: list[float] = []
    for (name, heads, cached, before), rows in least.group_by(
        "model", "num_heads", "kv_cache_dtype", "step", maintain_order=True
    ):
        kv = "1 byte" if str(cached).startswith("fp8") else "2 byte"
        of = CHOOSING[str(name)], int(str(heads)), kv
        model = models.get(of[0])
        if of[1] > model.heads:
            continue
        count, length, time = columns(rows, "batch_size", "isl", "latency")
        load = Tokens(reading=count * length, prompt=length, before=float(str(before)))
        beside, roof = _module(of, peaks, engine, load)
        left, shortest = time * 1e-3 - beside, np.maximum(roof, STARTS)
        below.extend(left < shortest)
        cache = "latent" if kv == "2 byte" else "latent-fp8"
        format = f"{cache}-{heads}-{model.index_heads}"
        rows_of = Rows(load.before + length, roof, np.maximum(left, shortest))
        parts.setdefault(format, []).append(rows_of)
    if np.mean(below or [0.0]) > BELOW:
        print(f"  left out: {whose}, sparse attention of prompts, no longer than its products")
        return
    for format, several in parts.items():
        parts_of = ([getattr(one, name) for one in several] for name in ("length", "roof", "time"))
        yield format, Rows(*map(np.concatenate, parts_of))


def _module(
    of: tuple[str, int, str], peaks: Peaks, engine: Software, load: Tokens
) -> tuple[Numbers, Numbers]:
    """Seconds of a module's products and rotation, and the roof of its attention."""
    model, machine = models.get(of[0]), machines.of(hardware.get(peaks.key))
    layout = Layout(tensor=model.heads // of[1])
    job = Job(model, machine, layout, Formats(kv=of[2])).with_context(load.longest)
    part, tokens = Slice(job, job.weights), load.reading
    matrices = [matrix for matrix in job.model.matrices if matrix.part == "attention"]
    passes = (each for each in part.passes(tokens) if each.name == "rotation")
    beside = np.zeros(np.shape(tokens))
    for kernel in (*part.products(tokens, tokens, matrices), *passes):
        beside += kernel.expected(machine, engine).m_as("s") / kernel.launches
    (attended,) = part.prompts(load)
    assert attended.worked is not None
    assert attended.moved is not None
    work, moved = attended.worked.m_as("FLOP"), attended.moved.m_as("byte")
    return beside, peaks.roof("bf16", work, moved)


UNLIKE = 1.1  # of the times of one shape, above which a file's rows are not of a device alone
DELTA = ["batch_size", "seq_len", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"]


FUSED = "fused_kda_decode|kda_fused_decode"  # the rule with the convolution before it
RULES = {"gdn": "delta", "kda": "kda"}  # formats by operation: a decay of each head, or number


def _of_the_rule(table: pl.DataFrame, phase: str) -> list[Numbers]:
    """The columns of each shape, and the time of its rule and of the convolution before it."""
    of_phase = table.filter(pl.col("phase") == phase).with_columns(pl.col("seq_len").fill_null(1))
    source = pl.col("kernel_source").str
    fused = source.contains(FUSED)
    rule, before, whole = (
        part.group_by(DELTA).agg(pl.col("latency").min(), most=pl.col("latency").max())
        for part in (
            of_phase.filter(source.contains("delta|kda") & ~fused),
            of_phase.filter(source.contains("conv1d")),
            of_phase.filter(fused),
        )
    )
    both = rule.join(before, on=DELTA, suffix="_before")
    if len(both) and np.quantile(both["most"] / both["latency"], 0.9) > UNLIKE:
        whose = " ".join(table[name][0] for name in ("framework", "version", "device", "op_name"))
        print(f"  left out: {whose}, {phase}, whose times of one shape differ")
        both = both.clear()
    summed = both.with_columns(latency=pl.col("latency") + pl.col("latency_before"))
    either = pl.concat([part.select(*DELTA, "latency") for part in (summed, whole)])
    return timed(either.group_by(DELTA).agg(pl.col("latency").min()).sort(DELTA), DELTA)


def states(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    """The delta rule of written tokens; TensorRT-LLM's benchmark holds states in 16 bits."""
    if "TRTLLM" in table["framework"]:
        return
    count, _, keys, heads, width, values, time = _of_the_rule(table, "generation")
    channels = 2 * keys * width + heads * values
    moved = bytes_of_states(count, count, channels, heads * values, 4 * heads * width * values)
    work = 6 * count * heads * width * values
    yield RULES[table["op_name"][0]], Rows(count, peaks.roof("bf16", work, moved), time)


def chunks(table: pl.DataFrame, peaks: Peaks) -> Iterator[tuple[str, Rows]]:
    """The delta rule of prompts."""
    count, length, keys, heads, width, values, time = _of_the_rule(table, "context")
    tokens, channels = count * length, 2 * keys * width + heads * values
    moved = bytes_of_states(count, tokens, channels, heads * values, 4 * heads * width * values)
    each = attention.chunked_delta_flops(np.minimum(length, CHUNK), 1, heads, width, values)
    work = tokens * np.asarray(each.magnitude)
    yield RULES[table["op_name"][0]], Rows(length, peaks.roof("bf16", work, moved), time)


FILES = (
    ("gemm_perf", "product", products),
    ("moe_perf", "experts", experts),
    ("context_attention_perf", "prompts", prompts),
    ("generation_attention_perf", "caches", caches),
    ("context_mla_perf", "prompts", latent_prompts),
    ("generation_mla_perf", "caches", latent_caches),
    ("dsa_generation_module_perf", "chosen", chosen),
    ("dsa_context_module_perf", "choosing", choosing),
    ("gdn_perf", "states", states),
    ("gdn_perf", "chunks", chunks),
    ("kda_perf", "states", states),
    ("kda_perf", "chunks", chunks),
)


def basis(values: Numbers, nodes: tuple[int, ...]) -> tuple[NDArray[np.int64], Numbers]:
    points = np.array(nodes, dtype=float)
    below = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
    share = (values - points[below]) / (points[below + 1] - points[below])
    return below, np.clip(share, 0.0, 1.0)


def corners(kernel: str, rows: Rows) -> tuple[list[NDArray[np.int64]], list[Numbers]]:
    """The four points of the surface around each row, and the weight of each."""
    row, right = basis(np.log2(rows.length), LENGTHS[kernel])
    column, up = basis(np.log2(rows.roof * 1e6), ROOFS)
    corner, width = row * len(ROOFS) + column, len(ROOFS)
    places = [corner, corner + 1, corner + width, corner + width + 1]
    return places, [(1 - right) * (1 - up), (1 - right) * up, right * (1 - up), right * up]


def roughness(rows: int, columns: int) -> Numbers:
    """The sum of squared second differences along both sides, as a matrix."""
    count = rows * columns
    total = np.zeros((count, count))
    places = np.arange(count).reshape(rows, columns)
    for line in [*places, *places.T]:
        for first, middle, last in zip(line, line[1:], line[2:], strict=False):
            difference = np.zeros(count)
            difference[[first, middle, last]] = 1, -2, 1
            total += np.outer(difference, difference)
    return total


def surface(kernel: str, rows: Rows) -> Numbers:
    """Logarithms of shares at the points, from which rows are least far off in the median."""
    places, weights = corners(kernel, rows)
    target = np.log(rows.roof / rows.time)
    lengths = len(LENGTHS[kernel])
    count, smooth = lengths * len(ROOFS), SMOOTH * roughness(lengths, len(ROOFS))
    trust = np.ones(len(target))
    surface_values = np.zeros(count)
    for _ in range(6):  # least squares weighed by what is left are least absolute differences
        matrix, right = np.zeros((count, count)), np.zeros(count)
        for corner, weight in zip(places, weights, strict=True):
            np.add.at(right, corner, trust * weight * target)
            for other, share in zip(places, weights, strict=True):
                np.add.at(matrix, (corner, other), trust * weight * share)
        size = len(target)
        whole = matrix / size + smooth / count + 1e-9 * np.eye(count)
        surface_values = np.asarray(np.linalg.solve(whole, right / size), dtype=float)
        trust = 1 / np.maximum(np.abs(target - predicted(kernel, rows, surface_values)), 0.03)
    seen = np.bincount(np.concatenate(places), np.concatenate(weights), count).astype(float)
    return rising(kernel, capped(kernel, surface_values), seen)


def rising(kernel: str, logarithms: Numbers, seen: Numbers) -> Numbers:
    """Times that fall neither with more work nor below the shortest of a kernel.

    Where few rows are near, a smooth surface falls; its points then take the mean of those around
    them, weighed by the rows that each has seen.
    """
    grid, weights = (one.reshape(len(LENGTHS[kernel]), -1) for one in (logarithms, seen + 1e-3))
    roofs = np.log(2.0 ** np.array(ROOFS) * 1e-6)
    times = [
        isotonic_regression(roofs - shares, sample_weight=weight)
        for shares, weight in zip(grid, weights, strict=True)
    ]
    shares = np.minimum(roofs - np.maximum(times, math.log(SHORTEST)), 0.0)
    return np.asarray(shares.ravel(), dtype=float)


def capped(kernel: str, logarithms: Numbers) -> Numbers:
    """No share above 1, nor above that of the longest roof, where a benchmark that repeats one
    product finds its weights in the cache of the chip."""
    grid = logarithms.reshape(len(LENGTHS[kernel]), len(ROOFS))
    if kernel in ("product", "caches", "states"):
        grid = np.minimum(grid, grid[:, -2:].max(axis=1, keepdims=True))
    return np.asarray(np.minimum(grid, 0.0).ravel(), dtype=float)


def without_host(surfaces: dict[Key, Numbers]) -> dict[Key, Numbers]:
    """Short kernels whose time is the host's, as long as the fastest program has them.

    Where two operations are launched one by one, as a rounding and its product, the host may take
    longer than both: their time is then flat up to sizes that others do in less. Of a surface whose
    shortest kernel takes half as long again as that of the fastest program on the device, times up
    to three times the shortest are those of the fastest.
    """
    microseconds = 2.0 ** np.array(ROOFS)
    best: dict[tuple[str, str, str], Numbers] = {}
    times = {}
    for key, logarithms in surfaces.items():
        kernel, device, _, _, format = key
        if kernel not in SEVERAL:
            grid = logarithms.reshape(len(LENGTHS[kernel]), len(ROOFS))
            times[key] = microseconds / np.exp(grid)
            best_yet = best.get((kernel, device, format), times[key])
            best[kernel, device, format] = np.minimum(best_yet, times[key])
    made = dict(surfaces)
    for key, time in times.items():
        least = best[key[0], key[1], key[4]]
        floor = time[:3, :3].min()
        if floor > 1.5 * least[:3, :3].min():
            short = np.where(time < 3 * floor, np.minimum(time, least), time)
            made[key] = np.minimum(np.log(microseconds / short), 0.0).ravel()
    return made


def as_read(key: Key, logarithms: Numbers) -> Numbers:
    """A surface as calc reads it, so that its errors are those of what is taken."""
    flat = waiting_for_weights(key.kernel, key.device, key.format)
    return np.array(without_falls(logarithms.tolist(), flat))


def tells(key: Key, rows: Rows, logarithms: Numbers) -> bool:
    """Return whether a surface of few rows is near them; else a pass over memory is as near."""
    off_by = float(np.median(np.abs(errors(key.kernel, rows, logarithms))))
    if len(rows.time) >= FEWEST or off_by < FEW_WITHIN:
        return True
    print(f"  left out: {' '.join(key)}, half of whose few rows are {off_by:.0%} off and more")
    return False


def predicted(kernel: str, rows: Rows, logarithms: Numbers) -> Numbers:
    places, weights = corners(kernel, rows)
    return np.asarray(
        sum(weight * logarithms[corner] for corner, weight in zip(places, weights, strict=True))
    )


def errors(kernel: str, rows: Rows, logarithms: Numbers) -> Numbers:
    """Measured time over expected, less one, of each row."""
    return np.asarray(
        rows.time / rows.roof * np.exp(predicted(kernel, rows, logarithms)) - 1, dtype=float
    )


def measured(directory: Path) -> Iterator[tuple[Key, Rows]]:
    """Yield all rows of a copy, by kernel, device, program, version and format."""
    for path in sorted(directory.glob("*/*/*/*/*.parquet")):
        system, _, program, version, name = path.relative_to(directory).parts
        readers = [(kernel, read) for file, kernel, read in FILES if name == f"{file}.parquet"]
        if not readers or system not in DEVICES or program not in PROGRAMS:
            continue
        peaks, table = Peaks.of(DEVICES[system]), pl.read_parquet(path)
        for kernel, format, rows in (
            (kernel, *made) for kernel, read in readers for made in read(table, peaks)
        ):
            possible = rows.where((rows.time > SHORTEST) & (rows.roof > 0) & (rows.length > 0))
            # What is shorter than all points takes as long as the shortest, as calc reads it.
            possible = replace(possible, roof=np.maximum(possible.roof, 2.0 ** ROOFS[0] * 1e-6))
            if len(possible.time) < (FEWEST_STATES if kernel == "states" else FEWEST):
                continue
            shortest = np.quantile(possible.time, 0.02)
            if kernel not in ("experts", "choosing") and shortest > HOST:
                print(f"  left out: {path} {format}, whose shortest takes {shortest * 1e6:.0f} µs")
            else:
                yield Key(kernel, DEVICES[system], PROGRAMS[program], version, format), possible


def off(kernel: str, rows: Rows, logarithms: Numbers) -> str:
    """The median of errors without and with their sign."""
    return medians(errors(kernel, rows, logarithms))


def medians(signed: Numbers) -> str:
    """The median of errors without and with their sign, as `kernel_shares.error` reads it."""
    return f"{np.median(np.abs(signed)):.3f} {np.median(signed):.3f}"


def sums(directory: Path) -> Iterator[list[str]]:
    """Lines of the file of engines' own sums, in a graph where that was measured too."""
    for path in sorted(directory.glob("*/comm/*/*/custom_allreduce_perf.parquet")):
        system, _, program, version, _ = path.relative_to(directory).parts
        table = pl.read_parquet(path)
        graphs = table.filter(pl.col("kernel_source").str.contains("graph"))
        for (devices,), rows in sorted((graphs if len(graphs) else table).group_by("num_gpus")):
            numbers, times = fastest(rows, ["message_size"])
            order = np.argsort(numbers)
            numbers, times = numbers[order], np.maximum.accumulate(times[order])
            doubling = np.all(numbers[1:] == 2 * numbers[:-1])
            if system in DEVICES and program in PROGRAMS and doubling and len(times) > 1:
                tenths = " ".join(str(round(time * 1e7)) for time in times)
                named = [DEVICES[system], PROGRAMS[program], version, str(devices)]
                yield [*named, str(int(2 * numbers[0])), tenths]
            else:
                print(f"  left out: {path}, {devices} devices, whose sizes do not double")


GROUPS = 4  # servers of a token at most, in the benchmark of DeepEP's kernels for prompts
LEAST_EXPERTS = 64  # fewer sit on too few processors, and copy slowly
SCALED = 1 + 4 / 128  # bytes of a number in FP8 whose scales are of 128
SENT = {"bfloat16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}  # by TensorRT-LLM
IN_TRAY = {"gb200": 4, "gb300": 4}  # devices of a node, of others eight


DEEPEP = {  # kernels: the file of their rows, and its columns of both ways
    "decode": ("wideep_deepep_ll_perf", ("dispatch_avg_t_us", "combine_avg_t_us")),
    "prompts": ("wideep_deepep_normal_perf", ("dispatch_transmit_us", "combine_transmit_us")),
}


def exchanges(directory: Path) -> Iterator[tuple[Crossing, Numbers, Numbers]]:
    """Bytes that leave a device and seconds, of each way of each exchange."""
    for kernels, (name, columns) in DEEPEP.items():
        for path in sorted(directory.glob(f"*/comm/*/*/{name}.parquet")):
            system, _, program, version, _ = path.relative_to(directory).parts
            table = pl.read_parquet(path)
            twin = directory / "h100_sxm" / path.relative_to(directory / system)
            others = pl.read_parquet(twin) if twin.exists() and twin != path else None
            if others is not None and others.drop("device").equals(table.drop("device")):
                print(f"  left out: {path}, whose rows are those of {twin}")
                continue
            enough = table.filter(pl.col("num_experts") >= LEAST_EXPERTS)
            for (nodes,), rows in sorted(enough.group_by("node_num")):
                count = int(str(nodes)), int(str(nodes)) * IN_TRAY.get(system, 8)
                keys = ["num_token", "hidden_size", "num_topk", "num_experts"]
                for way, column, size in zip(WAYS, columns, (SCALED, 2.0), strict=True):
                    tokens, width, chosen, _, time = fastest(
                        rows.with_columns(latency=pl.col(column) * 1e-3), keys
                    )
                    vectors, each = tokens * width * size, kernels == "decode"
                    left = vectors * crossings(chosen, count[1], count[0], each, GROUPS)
                    whose = kernels, way, DEVICES[system], PROGRAMS[program], version
                    yield Crossing(*whose, count[1], count[0]), np.asarray(left), time
    for path in sorted(directory.glob("*/comm/trtllm/*/trtllm_alltoall_perf.parquet")):
        system, _, program, version, _ = path.relative_to(directory).parts
        yield from _two_sided(pl.read_parquet(path), DEVICES[system], version)


def _two_sided(
    table: pl.DataFrame, device: str, version: str
) -> Iterator[tuple[Crossing, Numbers, Numbers]]:
    """Yield TensorRT-LLM's exchanges: dispatch includes preparation, and results take two bytes."""
    keys = ["moe_dtype", "num_tokens", "hidden_size", "topk"]
    both = table.filter(pl.col("kernel_source") == "NVLinkTwoSided")
    for (devices,), rows in sorted(both.group_by("moe_ep_size")):
        least = {
            str(name).removeprefix("alltoall_"): part.group_by(keys).agg(pl.col("latency").min())
            for (name,), part in rows.group_by("op_name")
        }
        dispatched = least["dispatch"].join(least["prepare"].rename({"latency": "before"}), on=keys)
        ways = {
            "dispatch": dispatched.with_columns(latency=pl.col("latency") + pl.col("before")),
            "combine": least["combine"],
        }
        for way, part in ways.items():
            sizes = np.array(
                [SENT[name] if way == "dispatch" else 2.0 for name in part["moe_dtype"]]
            )
            tokens, width, chosen, time = timed(part, keys[1:])
            left = tokens * width * sizes * crossings(chosen, int(str(devices)), 1, False)
            whose = "all", way, device, "tensorrt-llm", version
            yield Crossing(*whose, int(str(devices)), 1), np.asarray(left), time


def curve(sizes: Numbers, times: Numbers) -> tuple[Numbers, Numbers]:
    """Sizes that double, and at each the time from which the rows are least far off."""
    first, last = math.floor(np.log2(sizes.min())), math.floor(np.log2(sizes.max()))
    nodes = np.arange(first, last + 1)
    inside = sizes <= 2.0**last  # beyond, times grow with the bytes
    sizes, times = sizes[inside], times[inside]
    below, share = basis(np.log2(sizes), tuple(nodes))
    hats = np.zeros((len(sizes), len(nodes)))
    np.add.at(hats, (np.arange(len(sizes)), below), 1 - share)
    np.add.at(hats, (np.arange(len(sizes)), below + 1), share)
    bends = np.diff(np.eye(len(nodes)), 2, axis=0)
    target, trust = np.log(times), np.ones(len(times))
    for _ in range(10):
        matrix = (hats.T * trust) @ hats / len(times) + SMOOTH / 100 * bends.T @ bends
        coefficients = np.linalg.solve(matrix, (hats.T * trust) @ target / len(times))
        trust = 1 / np.maximum(np.abs(target - hats @ coefficients), 0.03)
    rising_times = isotonic_regression(coefficients, sample_weight=hats.sum(axis=0) + 1e-3)
    return 2.0**nodes, np.exp(rising_times)


def exchange_lines(directory: Path) -> Iterator[list[str]]:
    """Lines of the file of experts' exchanges."""
    rows = {whose: (sizes, times) for whose, sizes, times in exchanges(directory)}
    made = {whose: curve(*measured) for whose, measured in rows.items()}

    def off(whose: Crossing, other: Crossing) -> str:
        sizes, times = rows[whose]
        nodes, curve_of = made[other]
        expected = [interpolated(curve_of.tolist(), nodes[0], size) for size in sizes]
        return medians(times / np.array(expected) - 1)

    for whose, (nodes, times) in made.items():
        alike = [
            other
            for other in made
            if replace(other, device="", version="") == replace(whose, device="", version="")
        ]
        errors = [off(whose, other) if other else "" for other in (whose, *stand_ins(whose, alike))]
        tenths = " ".join(str(round(time * 1e7)) for time in times)
        counts = str(len(rows[whose][0])), *errors, str(round(nodes[0])), tenths
        yield [*map(str, astuple(whose)), *counts]


def write(path: Path, names: tuple[str, ...], lines: list[list[str]]) -> None:
    write_rows(path, names, sorted(lines))
    print(f"{path}: {len(lines)} lines, {path.stat().st_size / 1e3:.0f} kB", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    rows = dict(measured(arguments.directory))
    fitted = {key: surface(key[0], points) for key, points in rows.items()}
    made = {key: of_key for key, of_key in fitted.items() if tells(key, rows[key], of_key)}
    made = {key: as_read(key, of_key) for key, of_key in made.items()}
    lines = []
    for key, logarithms in without_host(made).items():
        of = key.kernel, key.program, key.format
        alike = (other for other in made if (other.kernel, other.program, other.format) == of)
        by = key, *stand_ins(key, alike)
        errors = (off(key.kernel, rows[key], made[other]) if other else "" for other in by)
        hundredths = " ".join(str(round(-100 * value)) for value in logarithms)
        lines.append([*key, str(len(rows[key].time)), *errors, hundredths])
    write(FILE, COLUMNS, lines)
    write(engine_sums.FILE, engine_sums.COLUMNS, list(sums(arguments.directory)))
    exchanged = list(exchange_lines(arguments.directory))
    write(expert_exchanges.FILE, expert_exchanges.COLUMNS, exchanged)


if __name__ == "__main__":
    main()
