"""What the chapter "How GEMMs run" quotes: tiles and waves, and products that others measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import correlation, median
from typing import TYPE_CHECKING, Any

from calc import constants, gemms, hardware, machines, memory, models, roofline
from calc.core.units import quantity
from calc.derivations.quoting import Row
from calc.published import products
from calc.published.products import Product

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

H100 = machines.get("dgx-h100")
A100 = machines.get("dgx-a100")
RATE, BANDWIDTH = H100.reached("gemm", "bf16"), H100.memory_reached
UNITS = H100.processors
ELEMENT = quantity("2 byte")
SIDE = 4096  # columns, and length of the sums, of the example that figures draw
TILE = 256, 128
ONE_TILE, BEST = "waves of one tile", "best tile and split"
ROOFLINE, FITTED = "roofline, published", "two numbers fitted"
STEP = 1.05  # from which one more row counts as a step


def percent(value: float, digits: int = 0) -> str:
    return f"{value:.{digits}%}"


def tenth_worst(errors: Sequence[float]) -> float:
    """The error that nine tenths of the rows do not exceed."""
    return sorted(errors)[math.ceil(0.9 * len(errors)) - 1]


def measured(machine: str, n: int = SIDE, k: int = SIDE) -> dict[int, Product]:
    """The measured products of a machine with these columns and sums, by rows."""
    rows = products.measured(machine)
    return {int(product.m): product for product in rows if (product.n, product.k) == (n, k)}


class RowMore:
    """On an A100 one more row halves the rate, as tiles and waves say."""

    rows = 768
    more = rows + 1
    side = SIDE
    units = A100.processors
    tile_rows = TILE[0]
    tile_columns = TILE[1]

    before = measured("dgx-a100")[rows].rate
    after = measured("dgx-a100")[more].rate
    loss = before / after
    tiles = gemms.tiles(rows, side, *TILE)
    tiles_after = gemms.tiles(more, side, *TILE)
    waves_after = math.ceil((tiles_after / units).m_as(""))
    predicted = rows * waves_after / more


class TileOnSM:
    """What a tile takes of an SM, and how much of the output's shape it wastes."""

    warp = 32
    threads = 384
    registers_of_thread = 168
    stages = 4
    step = 64
    side = SIDE
    tiles = ((256, 128), (128, 128), (128, 64), (64, 64))
    header = (
        *("Tile", "Sums", "Slices", "Intensity"),
        *("Left of 4096 × 4096", "Left of 64 × 4096"),
    )

    sums = gemms.accumulator_size(*TILE).to("KiB")
    share_of_registers = (sums / constants.size_register_file_sm_h100).to("%")
    staged = gemms.staged_memory(stages, step, ELEMENT, *TILE).to("KiB")
    blocks = gemms.resident_blocks(threads, registers_of_thread, staged)
    occupancy = gemms.occupancy(blocks, threads).to("%")
    bytes_of_tiles = gemms.tile_traffic(side, side, side, ELEMENT, *TILE).to("GB")
    inputs = 2 * side * side * ELEMENT
    fetched = (bytes_of_tiles / inputs).to("")

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for rows, columns in cls.tiles:
            large, thin = (
                gemms.tile_efficiency(m, cls.side, rows, columns)
                * gemms.wave_efficiency(gemms.tiles(m, cls.side, rows, columns), UNITS)
                for m in (cls.side, cls.tiles[-1][0])
            )
            yield (
                f"{rows} × {columns}",
                gemms.accumulator_size(rows, columns).to("KiB"),
                gemms.staged_memory(cls.stages, cls.step, ELEMENT, rows, columns).to("KiB"),
                memory.result_tile_intensity(rows, columns, ELEMENT),
                large.to("%"),
                thin.to("%"),
            )


class Sawtooth:
    """One more row: what one tile predicts, and what was measured."""

    side = SIDE

    @staticmethod
    def steps(machine: str) -> list[tuple[float, float, float]]:
        """Of each pair of products a row apart: the growth by one tile, the best, and measured."""
        shapes = {
            (product.m, product.n, product.k): product for product in products.measured(machine)
        }
        rows = []
        for (m, n, k), product in shapes.items():
            if m >= TILE[0] and (m + 1, n, k) in shapes:
                pair = product, shapes[m + 1, n, k]
                low, high = map(products.predictions, pair)
                rows.append(
                    (
                        (high[ONE_TILE] / low[ONE_TILE]).m_as(""),
                        (high[BEST] / low[BEST]).m_as(""),
                        (pair[1].time / pair[0].time).m_as(""),
                    )
                )
        return rows

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for machine in products.names():
            taken = cls.steps(machine)
            steps = [step for step in taken if step[0] > STEP]
            one, best, real = (median(ratios) - 1 for ratios in zip(*steps, strict=True))
            alike = correlation([step[0] for step in taken], [step[2] for step in taken])
            yield (
                products.chip(machine),
                len(steps),
                percent(one),
                percent(best),
                percent(real),
                f"{alike:.2f}",
            )


class PaddedVocabulary:
    """GPT-2's vocabulary, padded: as many tiles, but rows that begin where loads want them."""

    model: Any = models.get("gpt-2")
    tokens = model.vocabulary
    multiple = 64
    columns_of_tile = 128
    claim = 0.25

    padded = gemms.padded(tokens, multiple)
    tiles = gemms.tiles(1, tokens, 1, columns_of_tile)
    wasted = (padded / tokens - 1).to("%")
    least = gemms.aligned_elements(ELEMENT)
    whole_line = gemms.aligned_elements(ELEMENT, "128 byte")


class FewTiles:
    """A product with few tiles and long sums: what k in parts gains."""

    m = 64
    n = 1024
    k = 16384
    rows_of_tile = 64
    parts = 2

    tiles = gemms.tiles(m, n, rows_of_tile, rows_of_tile)
    busy = gemms.wave_efficiency(tiles, UNITS).to("%")
    begin = products.start("dgx-h100")
    whole = gemms.time_in_tiles(
        m, n, k, RATE, BANDWIDTH, UNITS, rows_of_tile, rows_of_tile, start=begin
    ).to("us")
    split = gemms.fastest_time(m, n, k, RATE, BANDWIDTH, UNITS, start=begin).to("us")
    found = measured("dgx-h100", n, k)[m].time
    sums = gemms.split_k_traffic(m, n, parts).to("MB")
    weights = (k * n * ELEMENT).to("MB")
    stages = TileOnSM.stages
    short = 512
    fill = gemms.pipeline_efficiency(short, TileOnSM.step, stages).to("%")
    fill_long = gemms.pipeline_efficiency(k, TileOnSM.step, stages).to("%")


class GemmsHeld:
    """Published products beside what tiles, waves and splits say."""

    header = ("Set", "Products", "Roofline", "and start", "One tile", "Best tile", "Fitted")
    ways = (ROOFLINE, "roofline, measured, and start", ONE_TILE, BEST, FITTED)
    count = sum(len(products.measured(machine)) for machine in products.names())
    begin = products.start("dgx-h100")
    rate = RATE
    rate_fp8 = H100.reached("gemm", "fp8")
    bandwidth = BANDWIDTH

    h100 = quantity(median(products.errors("cuBLAS by NVIDIA, H100", BEST)), "").to("%")
    h100_roofline = quantity(median(products.errors("cuBLAS by NVIDIA, H100", ROOFLINE)), "").to(
        "%"
    )
    h100_fixed = quantity(tenth_worst(products.errors("cuBLAS by NVIDIA, H100", ONE_TILE)), "").to(
        "%"
    )

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for name, of_set in products.sets().items():
            errors = [products.errors(name, way) for way in cls.ways]
            cells = (
                f"{percent(median(errors_of_one))}~·~{percent(tenth_worst(errors_of_one))}"
                for errors_of_one in errors
            )
            cells = (cell.replace("~", "\N{NO-BREAK SPACE}") for cell in cells)
            yield (name, len(of_set), *cells)


class DecodeBatch:
    """Rows are free up to a tile, and cheap up to the ridge."""

    tile = 64
    found = measured("dgx-h100")
    alone_time = found[1].time
    ridge = (RATE / BANDWIDTH * ELEMENT / quantity("2 FLOP")).to("")
    growth = (found[256].time / alone_time).to("")


class GroupedExperts:
    """Experts of a mixture: a tile each, whatever few tokens they have, and one launch for all."""

    model: Any = models.get("deepseek-v3")
    experts = model.experts
    active = model.active_experts
    tile = 64
    held = 32
    tokens_each = 20
    n = 4096
    shape = (tokens_each, n, 7168, H100.reached("gemm", "fp8"), BANDWIDTH, UNITS)
    sizes = (quantity("1 byte"), ELEMENT)
    begin = products.start("dgx-h100")

    batch = quantity(tile * experts / active, "")
    apart = (held * gemms.fastest_time(*shape, *sizes, 1, begin)).to("us")
    together = gemms.fastest_time(*shape, *sizes, held, begin).to("us")


class SlicedWidths:
    """A width that slices make odd: padded to the tile, at a few columns' cost."""

    model: Any = models.get("llama-2-7b")
    width = model.feed_forward_width
    slices = 8
    tile_columns = 128
    tokens = 2048

    columns = width // slices
    padded = gemms.padded(columns, tile_columns)
    kept = gemms.tile_efficiency(tokens, columns, *TILE).to("%")


class GemmQuestions:
    """The chapter's problems."""

    m = 2048
    n = 5120
    tiles = gemms.tiles(m, n, *TILE)
    by_waves = (tiles / UNITS).to("")
    waves = math.ceil(by_waves.m_as(""))
    efficiency = gemms.wave_efficiency(tiles, UNITS).to("%")
    hand_rows = 8
    hand_columns = 40
    hand_units = 130
    hand_waves = hand_rows * hand_columns / hand_units
    wider = 5376
    wider_tiles = gemms.tiles(m, wider, *TILE)
    wider_efficiency = gemms.wave_efficiency(wider_tiles, UNITS).to("%")

    one_in = GroupedExperts.experts // GroupedExperts.active
    experts_tokens = 512
    tokens_each = experts_tokens * GroupedExperts.active / GroupedExperts.experts
    hand_tokens = 17
    filled = gemms.tile_efficiency(tokens_each, GroupedExperts.n, GroupedExperts.tile, 128).to("%")

    small_n = FewTiles.n
    small_k = FewTiles.k
    bytes_read = FewTiles.weights
    hand_bytes = quantity("33 MB")
    hand_bandwidth = quantity("3 TB/s")
    hand_reading = (hand_bytes / hand_bandwidth).to("us")
    hand_time = hand_reading + quantity("2.5 us")
    reading = (bytes_read / BANDWIDTH).to("us")
    bound = (reading + FewTiles.begin).to("us")
    found = measured("dgx-h100", small_n, small_k)[1].time
    ratio = found / bound


class SparsePlan:
    """A plan that times a product by the sparse peak allows a fraction of what it takes."""

    side = SIDE
    advertised = hardware.H100.sparse_peak("bf16")
    hand_operations = quantity("140 GFLOP")
    hand_rate = quantity("800 TFLOP/s")

    operations = roofline.gemm(side, side, side, ELEMENT).operations.to("GFLOP")
    planned = (operations / advertised).to("us")
    hand_time = (hand_operations / hand_rate).to("us")
    time = gemms.fastest_time(
        side, side, side, RATE, BANDWIDTH, UNITS, start=products.start("dgx-h100")
    ).to("us")
    found = measured("dgx-h100")[side].time.to("us")
    late = (found / planned).to("")


class GemmCurve:
    """The rate of an A100 and an H100 by rows of the output, predicted and measured."""

    machines = ("dgx-a100", "dgx-h100")
    rows = tuple(range(32, 4353, 32))

    @classmethod
    def predicted(cls, machine: str, best: bool) -> list[float]:
        """The rate at each number of rows in TFLOP/s, by one tile or by the best."""
        device, begin = machines.get(machine), products.start(machine)
        shape = list(cls.rows), SIDE, SIDE
        how = device.reached("gemm", "bf16"), device.memory_reached, device.processors
        law = gemms.fastest_time if best else gemms.time_in_tiles
        times = law(*shape, *how, start=begin).m_as("s")
        return [2 * m * SIDE**2 / time / 1e12 for m, time in zip(cls.rows, times, strict=True)]

    @classmethod
    def found(cls, machine: str) -> list[tuple[float, float]]:
        """Rows and the measured rate, up to the last of `rows`."""
        return [
            (m, product.rate.m_as("TFLOP/s"))
            for m, product in sorted(measured(machine).items())
            if cls.rows[0] <= m <= cls.rows[-1] + 1
        ]


class GemmMap:
    """How much of an H100's best rate a shape leaves, by rows and columns."""

    k = SIDE
    rows = tuple(round(16 * 2 ** (step / 4)) for step in range(4 * 9 + 1))
    columns = tuple(round(128 * 2 ** (step / 4)) for step in range(4 * 7 + 1))

    @classmethod
    def share(cls, m: NDArray[numpy.float64], n: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        """Of the best measured rate, for arrays of rows and of columns."""
        begin = products.start("dgx-h100")
        time = gemms.fastest_time(m, n, cls.k, RATE, BANDWIDTH, UNITS, start=begin)
        share: NDArray[numpy.float64] = 2 * m * n * cls.k / RATE.m_as("FLOP/s") / time.m_as("s")
        return share
