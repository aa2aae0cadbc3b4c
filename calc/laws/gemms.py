"""Laws of GEMMs: tiles, waves of tiles, what fits on a processor, and the time that results.

A GEMM's output is cut into tiles, each of which a processor (a streaming multiprocessor, SM, of a
GPU) computes step by step along k, with its sums in registers. The laws count tiles, what they
waste and what they fetch, and `fastest_time` takes the best of the tiles and splits that libraries
have: none of their numbers is fitted; `calc.published.product_rows` holds them to measured ones.
What is expected of a product in a pass is `gemm_time`, by measured rates and two fitted numbers.
"""

from __future__ import annotations

from functools import reduce
from typing import Annotated

from calc.core.arrays import Number
from calc.core.elementwise import ceiling, floor, maximum, minimum, where
from calc.core.law import AT_LEAST_ONE, NON_NEGATIVE, law
from calc.core.units import Quantity, QuantityLike, quantity
from calc.formats import ELEMENT_SIZE

TILES = (  # of the output, that libraries' kernels give to a processor at once
    *((256, 128), (128, 256), (128, 192), (192, 128), (128, 128), (64, 256), (256, 64)),
    *((64, 128), (128, 64), (64, 64)),
)
SIDES = sorted({side for tile in TILES for side in tile})
SPLITS = (1, 2, 4, 8, 16)
LEAST_PART = 256  # elements of k in a part: fewer do not fill a tile's pipeline
LARGEST_TILE = 256 * 128  # elements

# Two numbers are fitted to the published products of data/published/kernels.toml, and to no others:
START = quantity(4, "us")  # until the tiles of a product run and its results are out
SMALLER_TILE = 0.1  # exponent of the rate that smaller tiles lose


@law
def tiles(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
) -> Annotated[Quantity, ""]:
    """Tiles of a rows and b columns that cover an output of m rows and n columns.

    Equation: t = ⌈m / a⌉ · ⌈n / b⌉

    Source: nvidia2023matmul

    >>> print(tiles(4096, 4096), tiles(4097, 4096))
    512 544

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    """
    return ceiling(m / tile_rows) * ceiling(n / tile_columns)


@law
def tile_efficiency(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
) -> Annotated[Quantity, ""]:
    """Share of the tiles' elements that are elements of the output: what tile quantisation leaves.

    Equation: η_tile = m · n / (⌈m / a⌉ · ⌈n / b⌉ · a · b)

    Source: nvidia2023matmul

    >>> print(tile_efficiency(64, 4096).to("%"), tile_efficiency(257, 4096).to("%"))
    25% 50.20%

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    """
    return m * n / (ceiling(m / tile_rows) * ceiling(n / tile_columns) * tile_rows * tile_columns)


@law
def wave_efficiency(
    tiles: Annotated[QuantityLike, "", "t", AT_LEAST_ONE],
    units: Annotated[QuantityLike, "", "u", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Share of a chip's processors that work, on average over the waves of tiles.

    Equation: η_wave = t / (⌈t / u⌉ · u)

    u processors compute a wave of u tiles at a time, and the last wave is as long as a full one:
    what that loses is called wave quantisation. Assumes that all tiles take equally long. Of
    stream-K, which shares out the steps of tiles along k and not whole tiles, t is the number of
    steps.

    Source: nvidia2023matmul

    >>> print(wave_efficiency(132, 132), wave_efficiency(133, 132).to("%"))
    1 50.38%

    Parameters
    ----------
    tiles
        tiles, or the steps of all tiles where these are shared out
    units
        processors of the chip, which compute a tile each: SMs of a GPU
    """
    return tiles / (ceiling(tiles / units) * units)


@law
def padded(
    size: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    multiple: Annotated[QuantityLike, "", "q", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """The next multiple of a number: what a dimension costs, or should be made.

    Equation: n_q = ⌈n / q⌉ · q

    Source: nvidia2023matmul

    >>> print(padded(50257, 64))
    50304

    Parameters
    ----------
    size
        a dimension of a matrix
    multiple
        what it should be a multiple of
    """
    return ceiling(size / multiple) * multiple


@law
def aligned_elements(
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE],
    alignment: Annotated[QuantityLike, "byte", "A"] = "16 byte",
) -> Annotated[Quantity, ""]:
    """Elements of which a row's length should be a multiple, so that each row begins aligned.

    Equation: q = A / s

    Matrix units want 16 bytes at least; on an A100 the fastest kernels want 128.

    Source: bekman2026mlengineering

    >>> print(aligned_elements("2 byte"), aligned_elements("2 byte", "128 byte"))
    8 64

    Parameters
    ----------
    element_size
        what an element of the inputs takes
    alignment
        address that each row should begin at a multiple of
    """
    return alignment / element_size


@law
def resident_blocks(
    threads: Annotated[QuantityLike, "", "θ", AT_LEAST_ONE],
    registers: Annotated[QuantityLike, "", "ρ", AT_LEAST_ONE],
    shared_memory: Annotated[QuantityLike, "byte", "S_b"],
    register_file: Annotated[QuantityLike, "byte", "F"] = "256 KiB",
    shared_capacity: Annotated[QuantityLike, "byte", "S"] = "228 KiB",
    most_threads: Annotated[QuantityLike, "", "N", AT_LEAST_ONE] = 2048,
    most_blocks: Annotated[QuantityLike, "", "B", AT_LEAST_ONE] = 32,
    _register: Annotated[QuantityLike, "byte"] = "4 byte",
) -> Annotated[Quantity, ""]:
    """Blocks of threads that one processor holds at a time; the defaults are an SM of an H100.

    Equation: r = ⌊min(F / (4 · ρ · θ), S / S_b, N / θ, B)⌋

    ρ are a thread's registers, of four bytes each. A kernel with r = 0 does not start. Rounding of
    registers and shared memory to the units of their allocation is left out.

    Source: nvidia-cuda-guide

    >>> print(resident_blocks(384, 168, "198 KiB"), resident_blocks(128, 32, "16 KiB"))
    1 14

    Parameters
    ----------
    threads
        threads of a block, 32 of which are a warp
    registers
        32-bit registers of a thread
    shared_memory
        shared memory of a block
    register_file
        registers of a processor
    shared_capacity
        shared memory of a processor
    most_threads
        threads that a processor holds at most
    most_blocks
        blocks that a processor holds at most
    """
    by_registers = register_file / (_register * registers * threads)
    by_count = minimum(most_threads / threads, most_blocks)
    return floor(minimum(minimum(by_registers, shared_capacity / shared_memory), by_count))


@law
def occupancy(
    blocks: Annotated[QuantityLike, "", "r", NON_NEGATIVE],
    threads: Annotated[QuantityLike, "", "θ", AT_LEAST_ONE],
    most_threads: Annotated[QuantityLike, "", "N", AT_LEAST_ONE] = 2048,
) -> Annotated[Quantity, ""]:
    """Share of the threads (and warps) that a processor could hold which it does hold.

    Equation: o = r · θ / N

    Source: nvidia-cuda-guide

    >>> print(occupancy(1, 384).to("%"))
    18.75%

    Parameters
    ----------
    blocks
        blocks that a processor holds at a time
    threads
        threads of a block, 32 of which are a warp
    most_threads
        threads that a processor holds at most
    """
    return blocks * threads / most_threads


@law
def accumulator_size(
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
    sum_size: Annotated[QuantityLike, "byte", "s_sum", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes of the sums of a tile, which stay in registers until all of k is added up.

    Equation: D = a · b · s_sum

    Source: nvidia-cutlass

    >>> print(accumulator_size().to("KiB"))
    128 KiB

    Parameters
    ----------
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    sum_size
        what a sum takes: FP32
    """
    return tile_rows * tile_columns * sum_size


@law
def staged_memory(
    stages: Annotated[QuantityLike, "", "σ", AT_LEAST_ONE],
    step: Annotated[QuantityLike, "", "k_t", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE],
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
) -> Annotated[Quantity, "byte"]:
    """Shared memory of a tile's pipeline: σ slices of both inputs, each of k_t elements along k.

    Equation: D = σ · k_t · (a + b) · s

    Source: nvidia-cutlass

    >>> print(staged_memory(4, 64, "2 byte").to("KiB"))
    192 KiB

    Parameters
    ----------
    stages
        slices of the inputs that are on their way or in use at a time
    step
        elements along k of a slice
    element_size
        what an element of the inputs takes
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    """
    return stages * step * (tile_rows + tile_columns) * element_size


@law
def pipeline_efficiency(
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    step: Annotated[QuantityLike, "", "k_t", AT_LEAST_ONE],
    stages: Annotated[QuantityLike, "", "σ", AT_LEAST_ONE],
) -> Annotated[Quantity, ""]:
    """Share of a tile's time in which it computes, where the first slices must be waited for.

    Equation: η_fill = K / (K + σ − 1)

    K = ⌈k / k_t⌉ are the steps. Assumes that a slice takes as long to arrive as to be computed,
    and that nothing else runs meanwhile: a kernel that fetches for its next tile while it ends
    this one hides the fill.

    Source: nvidia-cutlass

    >>> print(pipeline_efficiency(512, 64, 4).to("%"), pipeline_efficiency(8192, 64, 4).to("%"))
    72.73% 97.71%

    Parameters
    ----------
    k
        length of the sums
    step
        elements along k of a slice
    stages
        slices of the inputs that are on their way or in use at a time
    """
    steps = ceiling(k / step)
    return steps / (steps + stages - 1)


@law
def tile_traffic(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE],
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
) -> Annotated[Quantity, "byte"]:
    """Bytes of both inputs that all tiles together fetch, from a cache or from memory.

    Equation: D = ⌈m / a⌉ · ⌈n / b⌉ · k · (a + b) · s

    Tiles that share a fetch (a cluster's multicast) count as one larger tile.

    Source: nvidia-cutlass

    See also: roofline.gemm_traffic

    >>> print(tile_traffic(4096, 4096, 4096, "2 byte").to("GB"))
    1.611 GB

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    k
        length of the sums
    element_size
        what an element of the inputs takes
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    """
    count = ceiling(m / tile_rows) * ceiling(n / tile_columns)
    return count * k * (tile_rows + tile_columns) * element_size


@law
def split_k_traffic(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    splits: Annotated[QuantityLike, "", "p", AT_LEAST_ONE],
    sum_size: Annotated[QuantityLike, "byte", "s_sum", ELEMENT_SIZE] = "4 byte",
) -> Annotated[Quantity, "byte"]:
    """Bytes of partial sums that a product split along k writes, and reads again to add them up.

    Equation: D = 2 · p · m · n · s_sum where p > 1, else 0

    Without a split nothing moves: the sums are the result.

    Source: nvidia-cutlass

    >>> print(split_k_traffic(64, 4096, 4).to("MB"), split_k_traffic(64, 4096, 1))
    8.389 MB 0 byte

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    splits
        parts into which k is cut, each with tiles of its own
    sum_size
        what a sum takes: FP32
    """
    return where(splits > 1, 2 * splits, 0 * splits) * m * n * sum_size


@law
def time_in_tiles(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    rate: Annotated[QuantityLike, "FLOP/s", "R"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    units: Annotated[QuantityLike, "", "u", AT_LEAST_ONE],
    tile_rows: Annotated[QuantityLike, "", "a", AT_LEAST_ONE] = 256,
    tile_columns: Annotated[QuantityLike, "", "b", AT_LEAST_ONE] = 128,
    splits: Annotated[QuantityLike, "", "p", AT_LEAST_ONE] = 1,
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    output_size: Annotated[QuantityLike, "byte", "s_C", ELEMENT_SIZE] = "2 byte",
    products: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
    start: Annotated[QuantityLike, "s", "T_0", NON_NEGATIVE] = "0 s",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
    _sum: Annotated[QuantityLike, "byte"] = "4 byte",
) -> Annotated[Quantity, "s"]:
    """Time of g products in one kernel, with one tile and one number of splits along k.

    Equation: T = max(W · u · 2 · a · b · k / (p · R), g · D / BW) + g · D_sums / BW + T_0

    W = ⌈g · p · ⌈m / a⌉ · ⌈n / b⌉ / u⌉ are the waves, D = s · k · (m + n) + s_C · m · n the
    inputs and the result of a product, each moved once, and D_sums is its `split_k_traffic`.
    Assumes that R, the rate of the whole chip, is that of any tile, and that caches serve repeated
    fetches.

    Source: nvidia2023matmul

    >>> rate, bandwidth = "794.5 TFLOP/s", "3.18 TB/s"
    >>> print(time_in_tiles(4096, 4096, 4096, rate, bandwidth, 132))
    178.4 µs
    >>> print(time_in_tiles(4097, 4096, 4096, rate, bandwidth, 132))
    223.0 µs

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    k
        length of the sums
    rate
        rate of the whole chip in the format, with all processors at work
    bandwidth
        bandwidth of the device's memory
    units
        processors of the chip, which compute a tile each: SMs of a GPU
    tile_rows
        rows of the result that a processor computes at once
    tile_columns
        columns of the result that a processor computes at once
    splits
        parts into which k is cut, each with tiles of its own
    element_size
        what an element of the inputs takes
    output_size
        what an element of the result takes
    products
        products of this shape that one kernel computes: a mixture's experts
    start
        time of the smallest product: until tiles run, and until the last result is out
    """
    tile = tile_rows, tile_columns, splits
    work, sums = _per_term * k / rate, products * m * n * _sum / bandwidth
    moved = products * (k * (m + n) * element_size + m * n * output_size) / bandwidth
    return _in_tiles(products, m, n, units, tile, work, sums, moved) + start


@law
def fastest_time(
    m: Annotated[QuantityLike, "", "m", AT_LEAST_ONE],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    rate: Annotated[QuantityLike, "FLOP/s", "R"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    units: Annotated[QuantityLike, "", "u", AT_LEAST_ONE],
    element_size: Annotated[QuantityLike, "byte", "s", ELEMENT_SIZE] = "2 byte",
    output_size: Annotated[QuantityLike, "byte", "s_C", ELEMENT_SIZE] = "2 byte",
    products: Annotated[QuantityLike, "", "g", AT_LEAST_ONE] = 1,
    start: Annotated[QuantityLike, "s", "T_0", NON_NEGATIVE] = "0 s",
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
    _sum: Annotated[QuantityLike, "byte"] = "4 byte",
) -> Annotated[Quantity, "s"]:
    """Time of g products in one kernel, with the best of the tiles and splits of libraries.

    Equation: T = min(max(W · u · 2 · a · b · k / (p · R), g · D / BW) + g · D_sums / BW) + T_0

    W, D and D_sums are those of `time_in_tiles`, of products of m × k and k × n elements of size s,
    and results of size s_C.
    The least is taken over tiles of a rows and b columns from 64 to 256, and p = 1, 2, 4, 8 or 16
    parts of k that have 256 elements or more. A library's own rules may miss it.

    Source: nvidia2023matmul

    See also: gemms.gemm_time

    >>> print(fastest_time(64, 1024, 16384, "794.5 TFLOP/s", "3.18 TB/s", 132))
    11.58 µs

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    k
        length of the sums
    rate
        rate of the whole chip in the format, with all processors at work
    bandwidth
        bandwidth of the device's memory
    units
        processors of the chip, which compute a tile each: SMs of a GPU
    element_size
        what an element of the inputs takes
    output_size
        what an element of the result takes
    products
        products of this shape that one kernel computes: a mixture's experts
    start
        time of the smallest product: until tiles run, and until the last result is out
    """
    work, sums = _per_term * k / rate, products * m * n * _sum / bandwidth
    moved = products * (k * (m + n) * element_size + m * n * output_size) / bandwidth
    times = (
        _in_tiles(products, m, n, units, (*tile, parts), work, sums, moved)
        for parts in (where(k >= split * LEAST_PART, split, 1) for split in SPLITS)
        for tile in TILES
    )
    return reduce(minimum, times) + start


def _in_tiles(
    products: Number,
    m: Number,
    n: Number,
    units: Number,
    tile: tuple[Number, Number, Number],
    work: Number,
    sums: Number,
    moved: Number,
) -> Number:
    """The time with a tile's rows, columns and splits.

    `work` is the time of an element of the output on the whole chip, `sums` that of moving all
    partial sums of one split once, and `moved` that of moving inputs and results.
    """
    rows, columns, splits = tile
    waves = ceiling(products * ceiling(m / rows) * ceiling(n / columns) * splits / units)
    compute = waves * units * rows * columns * work / splits
    return maximum(compute, moved) + where(splits > 1, 2 * splits, 0 * splits) * sums


@law
def gemm_time(
    m: Annotated[QuantityLike, "", "m"],
    n: Annotated[QuantityLike, "", "n", AT_LEAST_ONE],
    k: Annotated[QuantityLike, "", "k", AT_LEAST_ONE],
    rate: Annotated[QuantityLike, "FLOP/s", "R"],
    bandwidth: Annotated[QuantityLike, "byte/s", "BW"],
    units: Annotated[QuantityLike, "", "u", AT_LEAST_ONE],
    input_size: Annotated[QuantityLike, "byte", "s_A", ELEMENT_SIZE] = "2 byte",
    weight_size: Annotated[QuantityLike, "byte", "s_B", ELEMENT_SIZE] = "2 byte",
    output_size: Annotated[QuantityLike, "byte", "s_C", ELEMENT_SIZE] = "2 byte",
    products: Annotated[QuantityLike, "", "g"] = 1,
    start: Annotated[QuantityLike, "s", "T_0", NON_NEGATIVE] = START,
    _per_term: Annotated[QuantityLike, "FLOP"] = "2 FLOP",
) -> Annotated[Quantity, "s"]:
    """Time that g products (m × k) · (k × n) in one kernel are expected to take at measured rates.

    Equation: T = g · (max(2·m·n·k / (R · η), k · (m·s_A + n·s_B) / BW) + m·n·s_C / BW) + T_0

    R is the best measured rate of large products in the format, BW a measured bandwidth of memory,
    η the best share of u processors' time that tiles of `calc.gemms` make use of, the product of
    `gemms.tile_efficiency` and `gemms.wave_efficiency`, smaller tiles at (a · b / 32768)^0.1 of the
    rate. Assumes that inputs stream while tiles are computed, that results are written afterwards,
    and that k is not split. T_0 and the exponent are fitted to published products;
    `gemms.fastest_time` has nothing fitted.

    Source: nvidia2023matmul

    >>> print(gemm_time(4096, 4096, 7168, "1402.6 TFLOP/s", "3 TB/s", 132, "1 byte", "1 byte"))
    192.0 µs

    Parameters
    ----------
    m
        rows of the result: tokens
    n
        columns of the result
    k
        length of the sums
    rate
        best measured rate of large products in the format
    bandwidth
        bandwidth of the device's memory
    units
        processors of the chip, which compute a tile each: SMs of a GPU
    input_size
        what an element of the first matrix takes
    weight_size
        what an element of the second matrix takes
    output_size
        what an element of the result takes
    products
        products of this shape that one kernel computes: a mixture's experts
    start
        time of the smallest product: until tiles run, and until the last result is out
    """
    share = 0.0 * (m * n)
    rows, columns = ({side: ceiling(size / side) for side in SIDES} for size in (m, n))
    for a, b in TILES:
        tiles = products * rows[a] * columns[b]
        rate_left = (a * b / LARGEST_TILE) ** SMALLER_TILE
        waves = ceiling(tiles / units)
        share = maximum(share, rate_left * products * m * n / (waves * units * a * b))
    compute = products * _per_term * m * n * k / (rate * share)
    reads = products * (m * k * input_size + k * n * weight_size) / bandwidth
    return maximum(compute, reads) + products * m * n * output_size / bandwidth + start
