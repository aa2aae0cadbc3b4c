"""What the chapter "How GEMMs run" quotes: tiles and waves, and products that others measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from calc import constants, gemms, hardware, kernel_shares, machines, memory, models, roofline
from calc.core.units import Quantity, quantity
from calc.derivations.examples import MIXTURE
from calc.derivations.quoting import Quoted, Row, show
from calc.published import products
from calc.published.products import Product

H100 = machines.get("dgx-h100")
A100 = machines.get("dgx-a100")
RATE, BANDWIDTH = H100.reached("gemm", "bf16"), H100.memory_reached
UNITS = H100.processors
START = products.start("dgx-h100")
ELEMENT = quantity("2 byte")
SIDE = 4096  # columns, and length of the sums, of the example that figures draw
TILE = 256, 128
ONE_TILE, BEST = "waves of one tile", "best tile and split"
ROOFLINE, FITTED = "roofline, published", "two numbers fitted"
STARTED = "roofline, measured, and start"
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


class OperandBytes:
    """Tensor cores doubled, shared memory did not: a pair of SMs halves what each must read."""

    h100 = hardware.get("h100")
    b200 = hardware.get("b200")
    rows = 128
    columns = 256
    lanes = 128
    cells = 512
    width = constants.bytes_per_clock_shared_memory_sm
    header = ("Step", "A100", "H100", "B200")

    rate_h100 = (h100.peak("bf16") / h100.units / h100.clock).to("FLOP/cycle")
    rate_b200 = (b200.peak("bf16") / b200.units / b200.clock).to("FLOP/cycle")
    tensor_memory = (lanes * cells * quantity("4 byte")).to("KiB")
    sums = gemms.accumulator_size(rows, columns).to("KiB")
    pair = quantity("2 FLOP")
    of_h100 = ((rows + columns) * ELEMENT * rate_h100 / (pair * rows * columns)).to("byte/cycle")
    of_b200 = ((rows + columns) * ELEMENT * rate_b200 / (pair * rows * columns)).to("byte/cycle")
    of_pair = ((rows + columns / 2) * ELEMENT * rate_b200 / (pair * rows * columns)).to(
        "byte/cycle"
    )
    table = (
        (
            "Products",
            "`mma.sync`, by a warp, in order",
            "`wgmma`, by four warps, asynchronous",
            "`tcgen05.mma`, started by one thread, asynchronous",
        ),
        (
            "Loads",
            "`cp.async`, by every thread",
            "TMA: one thread, a whole box; multicast in a cluster",
            "TMA, as before",
        ),
        ("Sums", "registers", "registers", "tensor memory (TMEM)"),
        ("Who shares inputs", "–", "blocks of a cluster", "a pair of SMs on one tile (2-CTA)"),
        ("Scales of blocks", "in software", "in software", "in the tensor core"),
    )


class FormatsReached:
    """What large products reach by format, as three programs were measured."""

    side = 8192
    header = ("Format", "Device", "Peak", "SGLang", "vLLM", "TensorRT-LLM")
    programs = ("sglang", "vllm", "tensorrt-llm")
    names = (
        ("bf16", "BF16"),
        ("fp8", "FP8, a scale a tensor or row"),
        ("fp8-block", "FP8, blocks of 128"),
        ("nvfp4", "NVFP4"),
    )
    devices = ("h100", "b200", "b300")
    worst_error = quantity(15, "%")
    versions = "SGLang 0.5.14, vLLM 0.24.0 (0.19.0 for its blocks), TensorRT-LLM 1.3.0rc20"

    @classmethod
    def rate(cls, format: str, device: str, program: str) -> Quantity | None:
        """What a large product reaches, None where none was measured."""
        surface = kernel_shares.of("product", device, program, format)
        if surface is None:
            return None
        peak = hardware.get(device).peak(surface.rate)
        return peak * surface.share(cls.side, 2 * cls.side**3 / peak.m_as("FLOP/s"))

    @classmethod
    def over_bf16(cls, *formats: str) -> list[Quantity]:
        """The gain of formats over BF16 in the same program on the same device, least first."""
        return sorted(
            (rate / wide).to("")
            for device in cls.devices
            for program in cls.programs
            for format in formats
            if (rate := cls.rate(format, device, program)) is not None
            and (wide := cls.rate("bf16", device, program)) is not None
        )

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for key, name in cls.names:
            for key_of_device in cls.devices:
                rates = [cls.rate(key, key_of_device, program) for program in cls.programs]
                if any(rates):
                    dtype = kernel_shares.RATES.get(key, "bf16")
                    peak = hardware.get(key_of_device).peak(dtype)
                    reached = (rate and show(rate, "TFLOP/s", 2) for rate in rates)
                    yield name, key_of_device.upper(), show(peak, "TFLOP/s"), *reached


class FormatsGain:
    """Half the bits gain less than twice the rate."""

    fp8 = FormatsReached.over_bf16("fp8", "fp8-block")
    nvfp4 = FormatsReached.over_bf16("nvfp4")
    fp8_least, fp8_most = fp8[0], fp8[-1]
    nvfp4_least, nvfp4_most = nvfp4[0], nvfp4[-1]


class ExpertsReached:
    """A device's experts in one grouped kernel: few tokens each read weights, many compute."""

    held = 32
    tokens = (1, 16, 64, 256, 1024)
    version = "0.24.0"
    header = ("Tokens of an expert", "Roof, H100", "Reached", "Roof, B200", "Reached")
    width: Any = MIXTURE.width
    hidden: Any = MIXTURE.expert_width
    weights = (held * 3 * width * hidden * quantity("1 byte")).to("GB")

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for count in cls.tokens:
            routed = cls.held * count
            moved = kernel_shares.bytes_of_experts(
                routed / MIXTURE.active_experts,
                routed,
                cls.width,
                cls.hidden,
                cls.weights.m_as("byte"),
            )
            cells: list[Quoted | str] = []
            for key in ("h100", "b200"):
                device = hardware.get(key)
                surface = kernel_shares.of("experts", key, "vllm", "fp8-block")
                assert surface is not None
                work = 6 * routed * cls.width * cls.hidden
                roof = max(
                    work / device.peak("fp8").m_as("FLOP/s"),
                    moved / device.memory_bandwidth.m_as("byte/s"),
                )
                cells += [
                    show(quantity(roof, "s").to("us"), "us", 2),
                    percent(surface.share(count, roof)),
                ]
            yield count, *cells


class Sawtooth:
    """One more row: what one tile predicts, and what was measured."""

    side = SIDE

    @staticmethod
    def steps(machine: str) -> list[tuple[float, float, float]]:
        """Of each pair of products a row apart: the growth by one tile, the best, and measured."""
        shapes = {
            (product.m, product.n, product.k): product for product in products.measured(machine)
        }
        steps = []
        for (m, n, k), product in shapes.items():
            if m >= TILE[0] and (more := shapes.get((m + 1, n, k))):
                low, high = map(products.predictions, (product, more))
                one, best = ((high[way] / low[way]).m_as("") for way in (ONE_TILE, BEST))
                steps.append((one, best, (more.time / product.time).m_as("")))
        return steps

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for machine in products.names():
            steps = [step for step in cls.steps(machine) if step[0] > STEP]
            one, best, real = (median(ratios) - 1 for ratios in zip(*steps, strict=True))
            yield products.chip(machine), len(steps), *map(percent, (one, best, real))


class PaddedVocabulary:
    """GPT-2's vocabulary, padded: as many tiles, but rows that begin where loads want them."""

    model: Any = models.get("gpt-2")
    tokens = model.vocabulary
    multiple = 64

    padded = gemms.padded(tokens, multiple)
    wasted = (padded / tokens - 1).to("%")
    least = gemms.aligned_elements(ELEMENT)


class FewTiles:
    """A product with few tiles and long sums: what k in parts gains."""

    m = 64
    n = 1024
    k = 16384
    rows_of_tile = 64
    parts = 2

    tiles = gemms.tiles(m, n, rows_of_tile, rows_of_tile)
    busy = gemms.wave_efficiency(tiles, UNITS).to("%")
    whole = gemms.time_in_tiles(
        m, n, k, RATE, BANDWIDTH, UNITS, rows_of_tile, rows_of_tile, start=START
    ).to("us")
    split = gemms.fastest_time(m, n, k, RATE, BANDWIDTH, UNITS, start=START).to("us")
    found = measured("dgx-h100", n, k)[m].time
    sums = gemms.split_k_traffic(m, n, parts).to("MB")


class GemmsHeld:
    """Published products beside what tiles, waves and splits say."""

    header = ("Set", "Products", "Roofline", "and start", "One tile", "Best tile", "Fitted")
    ways = (ROOFLINE, STARTED, ONE_TILE, BEST, FITTED)
    count = sum(len(products.measured(machine)) for machine in products.names())
    begin = START
    rate = RATE
    rate_fp8 = H100.reached("gemm", "fp8")
    bandwidth = BANDWIDTH

    gains = tuple(
        median(products.errors(name, STARTED)) - median(products.errors(name, BEST))
        for name in products.sets()
    )
    least_gain = round(100 * min(gains))
    most_gain = round(100 * max(gains))
    h100_fixed = quantity(tenth_worst(products.errors("cuBLAS by NVIDIA, H100", ONE_TILE)), "").to(
        "%"
    )

    @classmethod
    def rows(cls) -> Iterator[Row]:
        for name, of_set in products.sets().items():
            errors = [products.errors(name, way) for way in cls.ways]
            cells = (
                f"{percent(median(each))}\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}"
                f"{percent(tenth_worst(each))}"
                for each in errors
            )
            yield (name, len(of_set), *cells)


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

    batch = quantity(tile * experts / active, "")
    apart = (held * gemms.fastest_time(*shape, *sizes, 1, START)).to("us")
    together = gemms.fastest_time(*shape, *sizes, held, START).to("us")


class GemmQuestions:
    """The chapter's problems."""

    m = 2048
    n = 5120
    tiles = gemms.tiles(m, n, *TILE)
    by_waves = (tiles / UNITS).to("")
    efficiency = gemms.wave_efficiency(tiles, UNITS).to("%")
    wider = 5376
    wider_tiles = gemms.tiles(m, wider, *TILE)
    wider_efficiency = gemms.wave_efficiency(wider_tiles, UNITS).to("%")

    experts_tokens = 512
    tokens_each = experts_tokens * GroupedExperts.active / GroupedExperts.experts
    filled = gemms.tile_efficiency(tokens_each, GroupedExperts.n, GroupedExperts.tile, 128).to("%")


class SparsePlan:
    """A plan that times a product by the sparse peak allows a fraction of what it takes."""

    side = SIDE
    advertised = hardware.H100.sparse_peak("bf16")

    operations = roofline.gemm(side, side, side, ELEMENT).operations.to("GFLOP")
    planned = (operations / advertised).to("us")
    time = gemms.fastest_time(side, side, side, RATE, BANDWIDTH, UNITS, start=START).to("us")
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
