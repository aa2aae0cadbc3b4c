"""Claims of the chapter "How GEMMs run": tiles and waves, and products that others measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from calc import constants, gemms, hardware, kernel_shares, machines, memory, models, roofline
from calc.core.units import Quantity, quantity
from calc.derivations.by_hand import by_hand, row_by_hand
from calc.derivations.deferred import deferred
from calc.derivations.examples import MIXTURE
from calc.derivations.hardware_tables import largest_error, surfaces_of_products
from calc.derivations.ledger import Claims
from calc.derivations.quoting import Quoted, Row, percent, show
from calc.derivations.traces import whole
from calc.published import product_rows
from calc.published.product_rows import Product

H100 = machines.get("dgx-h100")
A100 = machines.get("dgx-a100")
RATE, BANDWIDTH = H100.reached("gemm", "bf16"), H100.memory_reached
UNITS = H100.processors
START = product_rows.start("dgx-h100")
ELEMENT = quantity("2 byte")
SIDE = 4096  # columns, and length of the sums, of the example that figures draw
TILE = 256, 128
ONE_TILE, BEST = "waves of one tile", "best tile and split"
ROOFLINE, FITTED = "roofline, published", "two numbers fitted"
STARTED = "roofline, measured, and start"
STEP = 1.05  # from which one more row counts as a step


def tenth_worst(errors: Sequence[float]) -> float:
    """The error that nine tenths of the rows do not exceed."""
    return sorted(errors)[math.ceil(0.9 * len(errors)) - 1]


def measured(machine: str, n: int = SIDE, k: int = SIDE) -> dict[int, Product]:
    """The measured products of a machine with these columns and sums, by rows."""
    rows = product_rows.measured(machine)
    return {whole(product.m): product for product in rows if (product.n, product.k) == (n, k)}


class RowMore(Claims):
    """On an A100 one more row halves the rate, as tiles and waves say."""

    rows = 768
    more = rows + 1 | by_hand("768 + 1")
    side = SIDE | by_hand("2**12")
    units = A100.processors | by_hand("108")
    tile_rows = TILE[0] | by_hand("256")
    tile_columns = TILE[1] | by_hand("128")

    before = measured("dgx-a100")[rows].rate | by_hand("2 * 768 * 4096**2 FLOP / 112.1 us")
    after = measured("dgx-a100")[more].rate | by_hand("2 * 769 * 4096**2 FLOP / 217.9 us")
    loss = before / after | by_hand("229.88 / 118.42")
    tiles = gemms.tiles(rows, side, *TILE) | by_hand("3 * 32")
    tiles_after = gemms.tiles(more, side, *TILE) | by_hand("4 * 32")
    waves_after = math.ceil((tiles_after / units).m_as("")) | by_hand("ceil(128 / 108)")
    predicted = rows * waves_after / more | by_hand("768 / 1 / (769 / 2)")


class TileOnSM(Claims):
    """A tile takes its part of an SM, and wastes some of the output's shape."""

    warp = 32
    threads = 384
    registers_of_thread = 168
    stages = 4
    step = 64
    side = SIDE | by_hand("2**12")
    tiles = ((256, 128), (128, 128), (128, 64), (64, 64))
    header = (
        *("Tile", "Sums", "Slices", "Intensity"),
        *("Left of 4096 × 4096", "Left of 64 × 4096"),
    )

    sums = gemms.accumulator_size(*TILE).to("KiB") | by_hand("256 * 128 * 4 byte")
    share_of_registers = (sums / constants.size_register_file_sm_h100).to("%") | by_hand(
        "128 / 256"
    )
    staged = gemms.staged_memory(stages, step, ELEMENT, *TILE).to("KiB") | by_hand(
        "4 * 64 * 384 * 2 byte"
    )
    blocks = gemms.resident_blocks(threads, registers_of_thread, staged) | by_hand(
        "floor(65536 / (384 * 168))"
    )
    occupancy = gemms.occupancy(blocks, threads).to("%") | by_hand("384 / 32 / 64")
    bytes_of_tiles = gemms.tile_traffic(side, side, side, ELEMENT, *TILE).to("GB") | by_hand(
        "4096 / 256 * 4096 / 128 * 4096 * 384 * 2 byte"
    )
    inputs = 2 * side * side * ELEMENT
    fetched = (bytes_of_tiles / inputs).to("") | by_hand("512 * 384 / (2 * 4096)")

    @classmethod
    @row_by_hand("128 × 128 | 64 KiB | 128 KiB | 64 FLOP/byte | 97% | 12.1%")
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


class OperandBytes(Claims):
    """Tensor cores doubled, shared memory did not: a pair of SMs halves what each must read."""

    h100 = hardware.get("h100")
    b200 = hardware.get("b200")
    rows = 128
    columns = 256
    lanes = 128
    cells = 512
    width = constants.bytes_per_clock_shared_memory_sm
    header = ("Step", "A100", "H100", "B200")

    rate_h100 = (h100.peak("bf16") / h100.units / h100.clock).to("FLOP/cycle") | by_hand(
        "989e12 FLOP/s / (132 * 1.83e9 cycle/s)"
    )
    rate_b200 = (b200.peak("bf16") / b200.units / b200.clock).to("FLOP/cycle") | by_hand(
        "2250e12 FLOP/s / (148 * 1.965e9 cycle/s)"
    )
    tensor_memory = (lanes * cells * quantity("4 byte")).to("KiB") | by_hand("128 * 512 * 4 byte")
    sums = gemms.accumulator_size(rows, columns).to("KiB") | by_hand("128 * 256 * 4 byte")
    pair = quantity("2 FLOP")
    of_h100 = ((rows + columns) * ELEMENT * rate_h100 / (pair * rows * columns)).to(
        "byte/cycle"
    ) | by_hand("384 * 2 byte / 65536 FLOP * {rate_h100}")
    of_b200 = ((rows + columns) * ELEMENT * rate_b200 / (pair * rows * columns)).to(
        "byte/cycle"
    ) | by_hand("384 * 2 byte / 65536 FLOP * {rate_b200}")
    of_pair = ((rows + columns / 2) * ELEMENT * rate_b200 / (pair * rows * columns)).to(
        "byte/cycle"
    ) | by_hand("256 * 2 byte / 65536 FLOP * {rate_b200}")
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
    ) | row_by_hand("Sums | registers | registers | tensor memory (TMEM)")


class PipelineOfTile(Claims):
    """A tile with one buffer waits for each slice, with four for the first alone."""

    latency = constants.cycles_global_memory_hopper_revised
    multiplied = (
        OperandBytes.pair * TILE[0] * TILE[1] * TileOnSM.step / OperandBytes.rate_h100
    ).to("cycle") | by_hand("2 * 256 * 128 * 64 FLOP / {OperandBytes.rate_h100}")
    alone = (multiplied / (multiplied + latency)).to("%") | by_hand(
        "{multiplied} / ({multiplied} + 656 cycles)"
    )
    ahead = ((TileOnSM.stages - 1) * multiplied).to("cycle") | by_hand("3 * {multiplied}")


class FormatsReached(Claims):
    """Large products reach less of their peak in narrow formats, in all three programs."""

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
    worst_error = deferred(largest_error)(
        surface
        for device, (form, _) in itertools.product(devices, names)
        for surface in surfaces_of_products(hardware.get(device), form)
    ) | by_hand("0.141", "the largest of the errors of these surfaces in kernel_shares.csv")
    versions = "SGLang 0.5.14, vLLM 0.24.0 (0.19.0 for its blocks), TensorRT-LLM 1.3.0rc20"

    @classmethod
    def rate(cls, format: str, device: str, program: str) -> Quantity | None:
        """Return the rate that a large product reaches, None where none was measured."""
        surface = kernel_shares.surface_of("product", device, program, format)
        if surface is None:
            return None
        peak = hardware.get(device).peak(surface.rate)
        share = surface.share(cls.side, 2 * cls.side**3 / peak.m_as("FLOP/s"))
        reached: Quantity = peak * share
        return reached

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
    @row_by_hand("NVFP4 | B200 | 9000 TFLOP/s | 3900 TFLOP/s | 3800 TFLOP/s | 3500 TFLOP/s")
    def rows(cls) -> Iterator[Row]:
        for key, name in cls.names:
            for key_of_device in cls.devices:
                rates = [cls.rate(key, key_of_device, program) for program in cls.programs]
                if any(rates):
                    dtype = kernel_shares.RATES.get(key, "bf16")
                    peak = hardware.get(key_of_device).peak(dtype)
                    reached = (rate and show(rate, "TFLOP/s", 2) for rate in rates)
                    yield name, key_of_device.upper(), show(peak, "TFLOP/s"), *reached


class FormatsGain(Claims):
    """Half the bits gain less than twice the rate."""

    fp8 = FormatsReached.over_bf16("fp8", "fp8-block")
    nvfp4 = FormatsReached.over_bf16("nvfp4")
    fp8_least, fp8_most = (
        fp8[0]
        | by_hand(
            "4500 * exp(-(2 * 109 + 134) / 300 - (2 * -8 - 18) / 900 * log2(2 * "
            "8192**3 / 4500e6) + 6 * (2 * -8 - 18) / 900) / (2250 * exp(-(2 * 40 + "
            "43) / 300 - (2 * -4 - 5) / 900 * log2(2 * 8192**3 / 2250e6) + 6 * (2 *"
            " -4 - 5) / 900))"
        ),
        fp8[-1]
        | by_hand(
            "4500 * exp(-(2 * 59 + 75) / 300 - (2 * -16 - 28) / 900 * log2(2 * "
            "8192**3 / 4500e6) + 6 * (2 * -16 - 28) / 900) / (2250 * exp(-(2 * 43 +"
            " 46) / 300 - (2 * -4 - 9) / 900 * log2(2 * 8192**3 / 2250e6) + 6 * (2 "
            "* -4 - 9) / 900))"
        ),
    )
    nvfp4_least, nvfp4_most = (
        nvfp4[0]
        | by_hand(
            "9000 * exp(-(2 * 91 + 110) / 300 - (2 * -9 - 19) / 900 * log2(2 * "
            "8192**3 / 9000e6) + 6 * (2 * -9 - 19) / 900) / (2250 * exp(-(2 * 47 + "
            "47) / 300 - (2 * -9 - 12) / 900 * log2(2 * 8192**3 / 2250e6) + 6 * (2 "
            "* -9 - 12) / 900))"
        ),
        nvfp4[-1]
        | by_hand(
            "14000 * exp(-(2 * 113 + 133) / 300 - (2 * -10 + 0) / 900 * log2(2 * "
            "8192**3 / 14000e6) + 6 * (2 * -10 + 0) / 900) / (2250 * exp(-(2 * 28 +"
            " 36) / 300 - (2 * 2 + 0) / 900 * log2(2 * 8192**3 / 2250e6) + 6 * (2 *"
            " 2 + 0) / 900))"
        ),
    )


class ExpertsReached(Claims):
    """A device's experts in one grouped kernel: few tokens each read weights, many compute."""

    held = 32
    tokens = (1, 16, 64, 256, 1024)
    version = "0.24.0"
    header = ("Tokens of an expert", "Roof, H100", "Reached", "Roof, B200", "Reached")
    width: Any = MIXTURE.width
    hidden: Any = MIXTURE.expert_width
    weights = (held * 3 * width * hidden * quantity("1 byte")).to("GB") | by_hand(
        "32 * 3 * 7168 * 2048 bytes"
    )

    @classmethod
    @row_by_hand("1 | 420 µs | 92% | 180 µs | 81%")
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
                surface = kernel_shares.surface_of("experts", key, "vllm", "fp8-block")
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


class Sawtooth(Claims):
    """One more row: what one tile predicts, and what was measured."""

    side = SIDE | by_hand("2**12")

    @staticmethod
    def steps(machine: str) -> list[tuple[float, float, float]]:
        """Return pairs of products a row apart: the growth by one tile, the best, and measured."""
        shapes = {
            (product.m, product.n, product.k): product for product in product_rows.measured(machine)
        }
        steps = []
        for (m, n, k), product in shapes.items():
            if m >= TILE[0] and (more := shapes.get((m + 1, n, k))):
                low, high = map(product_rows.predictions, (product, more))
                one, best = ((high[way] / low[way]).m_as("") for way in (ONE_TILE, BEST))
                steps.append((one, best, (more.time / product.time).m_as("")))
        return steps

    @classmethod
    @row_by_hand("H100 | 66 | 15% | 2% | 2%")
    def rows(cls) -> Iterator[Row]:
        for machine in product_rows.names():
            steps = [step for step in cls.steps(machine) if step[0] > STEP]
            one, best, real = (median(ratios) - 1 for ratios in zip(*steps, strict=True))
            yield product_rows.chip(machine), len(steps), *map(percent, (one, best, real))


class PaddedVocabulary(Claims):
    """GPT-2's vocabulary, padded: as many tiles, but rows that begin where loads want them."""

    model: Any = models.get("gpt-2")
    tokens = model.vocabulary | by_hand("50257", "GPT-2's configuration")
    multiple = 64

    padded = gemms.padded(tokens, multiple) | by_hand("786 * 64")
    wasted = (padded / tokens - 1).to("%") | by_hand("47 / 50257")
    least = gemms.aligned_elements(ELEMENT) | by_hand("16 / 2")


class FewTiles(Claims):
    """A product with few tiles and long sums: what k in parts gains."""

    m = 64
    n = 1024
    k = 16384
    rows_of_tile = 64
    parts = 2

    tiles = gemms.tiles(m, n, rows_of_tile, rows_of_tile) | by_hand("1 * 16")
    busy = gemms.wave_efficiency(tiles, UNITS).to("%") | by_hand("16 / 132")
    whole = gemms.time_in_tiles(
        m, n, k, RATE, BANDWIDTH, UNITS, rows_of_tile, rows_of_tile, start=START
    ).to("us") | by_hand("132 * 2 * 64**2 * 16384 FLOP / 794.5 TFLOP/s + 2.558 us")
    split = gemms.fastest_time(m, n, k, RATE, BANDWIDTH, UNITS, start=START).to("us") | by_hand(
        "(2 * (16384 * 1088 + 65536) + 4 * 65536 * 4) * 1 byte / 3.18 TB/s + 2.558 us"
    )
    found = measured("dgx-h100", n, k)[m].time | by_hand("18.1 us")
    sums = gemms.split_k_traffic(m, n, parts).to("MB") | by_hand("4 * 64 * 1024 * 4 byte")


class GemmsHeld(Claims):
    """Published products beside what tiles, waves and splits say."""

    header = ("Set", "Products", "Roofline", "and start", "One tile", "Best tile", "Fitted")
    ways = (ROOFLINE, STARTED, ONE_TILE, BEST, FITTED)
    count = sum(len(product_rows.measured(machine)) for machine in product_rows.names()) | by_hand(
        "3 * 9 * 60"
    )
    begin = START | by_hand("2.558 us")
    rate = RATE | by_hand("794.5 TFLOP/s")
    rate_fp8 = H100.reached("gemm", "fp8") | by_hand("1402.6 TFLOP/s")
    bandwidth = BANDWIDTH | by_hand("3.18 TB/s")

    gains = tuple(
        median(product_rows.errors(name, STARTED)) - median(product_rows.errors(name, BEST))
        for name in product_rows.sets()
    )
    most_gain = round(100 * max(gains)) | by_hand("26 - 22")
    h100_fixed = quantity(
        tenth_worst(product_rows.errors("cuBLAS by NVIDIA, H100", ONE_TILE)), ""
    ).to("%") | by_hand("(1 * 132 * 2 * 256 * 128 * 16384 / 794.5e6 + 2.558) / 45.8 - 1")

    @classmethod
    @row_by_hand(
        "cuBLAS by NVIDIA, H100 | 540 | 31% · 67% | 13% · 30% | 23% · 295% | 11% · 25% | 12% · 36%"
    )
    def rows(cls) -> Iterator[Row]:
        for name, of_set in product_rows.sets().items():
            errors = [product_rows.errors(name, way) for way in cls.ways]
            cells = (
                f"{percent(median(each))}\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}"
                f"{percent(tenth_worst(each))}"
                for each in errors
            )
            yield (name, len(of_set), *cells)


class GroupedExperts(Claims):
    """Experts of a mixture: a tile each, whatever few tokens they have, and one launch for all."""

    model: Any = models.get("deepseek-v3")
    experts = model.experts | by_hand("256", "DeepSeek-V3's configuration")
    active = model.active_experts | by_hand("8", "DeepSeek-V3's configuration")
    tile = 64
    held = 32
    tokens_each = 20
    n = 4096
    shape = (tokens_each, n, 7168, H100.reached("gemm", "fp8"), BANDWIDTH, UNITS)
    sizes = (quantity("1 byte"), ELEMENT)

    batch = quantity(tile * experts / active, "") | by_hand("64 * 256 / 8")
    apart = (held * gemms.fastest_time(*shape, *sizes, 1, START)).to("us") | by_hand(
        "32 * ((7168 * 4116 + 2 * 81920) * 1 byte / 3.18 TB/s + 2.558 us)"
    )
    together = gemms.fastest_time(*shape, *sizes, held, START).to("us") | by_hand(
        "32 * (7168 * 4116 + 2 * 81920) * 1 byte / 3.18 TB/s + 2.558 us"
    )


class GemmQuestions(Claims):
    """The chapter's problems."""

    m = 2048
    n = 5120
    tiles = gemms.tiles(m, n, *TILE)
    by_waves = (tiles / UNITS).to("") | by_hand("320 / 132")
    efficiency = gemms.wave_efficiency(tiles, UNITS).to("%") | by_hand("320 / 396")
    wider = 5376
    wider_tiles = gemms.tiles(m, wider, *TILE) | by_hand("8 * 42")
    wider_efficiency = gemms.wave_efficiency(wider_tiles, UNITS).to("%") | by_hand("336 / 396")

    experts_tokens = 512
    tokens_each = experts_tokens * GroupedExperts.active / GroupedExperts.experts | by_hand(
        "512 / 32"
    )
    filled = gemms.tile_efficiency(tokens_each, GroupedExperts.n, GroupedExperts.tile, 128).to(
        "%"
    ) | by_hand("16 / 64")


class SparsePlan(Claims):
    """A plan that times a product by the sparse peak allows a fraction of what it takes."""

    side = SIDE | by_hand("2**12")
    advertised = hardware.H100.sparse_peak("bf16") | by_hand(
        "1979 TFLOP/s", "NVIDIA's datasheet of the H100, with sparsity"
    )

    operations = roofline.gemm(side, side, side, ELEMENT).operations.to("GFLOP") | by_hand(
        "2 * 4096**3 FLOP"
    )
    planned = (operations / advertised).to("us") | by_hand("137.44 GFLOP / 1979 TFLOP/s")
    time = gemms.fastest_time(side, side, side, RATE, BANDWIDTH, UNITS, start=START).to(
        "us"
    ) | by_hand("4 * 132 * 2 * 256 * 128 * 4096 FLOP / 794.5 TFLOP/s + 2.558 us")
    found = measured("dgx-h100")[side].time.to("us") | by_hand("179 us")
    late = (found / planned).to("") | by_hand("179 / 69.449")


class GemmCurve(Claims):
    """The rate of an A100 and an H100 by rows of the output, predicted and measured."""

    machines = ("dgx-a100", "dgx-h100")
    rows = tuple(range(32, 4353, 32))

    @classmethod
    def predicted(cls, machine: str, best: bool) -> list[float]:
        """The rate at each number of rows in TFLOP/s, by one tile or by the best."""
        device, begin = machines.get(machine), product_rows.start(machine)
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
