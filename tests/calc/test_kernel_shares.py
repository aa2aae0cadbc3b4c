"""Measured kernels as shares of peaks: the file, its surfaces, whose rows count, and bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from calc import Formats, Job, Layout, Tokens, hardware, kernels, machines, models, software, step
from calc.catalog import engine_sums, expert_exchanges, kernel_shares
from calc.catalog.hardware import Accelerator
from calc.catalog.kernel_shares import COLUMNS, LENGTHS, ROOFS, Error, Surface
from calc.catalog.software import Software
from calc.core.errors import InputError
from calc.published import kernel_tables
from calc.steps.measured import Kernel, Rates, Timed, formats_of_product, rates_of, sums
from experiments import distil_kernels
from tests.calc.command import Command

BYTES = 1_000_000  # that all measured kernels may take
HEAD = ",".join(COLUMNS)
LINE = 300, 300, 300, 300, 200, 100, 50, 50
"""Hundredths of a length's shares whose times rise: 1.3 µs, 5 µs and so on."""
FLAT = Surface(
    "product", "h100", "vllm", "1", "bf16", 100, Error(0.1, 0.0), None, None, (-1.0,) * 64
)


def line(**changed: str) -> str:
    row = {
        **dict(zip(COLUMNS[:5], ("product", "h100", "vllm", "1.0", "bf16"), strict=True)),
        "rows": "60",
        "own": "0.05 0.01",
        "version_before": "",
        "device_alike": "",
        "hundredths": " ".join(map(str, LINE * 8)),
        **changed,
    }
    return ",".join(row[name] for name in COLUMNS)


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "kernel_shares.csv"
    path.write_text("\n".join([HEAD, *lines]))
    return path


# --- the file ---


def test_all_measured_kernels_are_small_enough_for_a_page() -> None:
    files = kernel_shares.FILE, engine_sums.FILE, expert_exchanges.FILE
    assert sum(file.stat().st_size for file in files) < BYTES


def test_every_stored_surface_is_of_a_known_device_program_and_rate() -> None:
    for stored in kernel_shares.load():
        device = hardware.get(stored.device)
        assert stored.rate in device.dtypes, stored
        assert stored.program in software.names()
        assert 0 <= stored.own.median < 1
        assert abs(stored.own.signed) <= stored.own.median
        if stored.rows < 60:
            assert stored.kernel == "states"
            assert stored.rows >= 40
            assert stored.own.median < 0.1


def test_the_formats_that_most_of_2026_runs_in_are_measured_where_devices_have_them() -> None:
    for device, program in product(("b200", "gb200", "b300", "gb300"), ("vllm", "tensorrt-llm")):
        for kernel in ("product", "experts"):
            assert kernel_shares.surface_of(kernel, device, program, "nvfp4"), (
                device,
                program,
                kernel,
            )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kernel": "sorting"}, "the kernel must be one of product, experts, prompts, caches"),
        ({"hundredths": "50 50"}, "a share for each length and roof is needed; got 2"),
        ({"hundredths": " ".join(["-1"] * 64)}, "a share is above 1, faster than the published"),
        ({"rows": "many"}, "rows, errors and hundredths must be numbers"),
        ({"own": ""}, "how far its own rows are off is needed"),
        (
            {"hundredths": " ".join(map(str, (178, *LINE[1:], *LINE * 7)))},
            "its shortest kernel takes 0.37 µs; none takes less than 1 µs, so that it was not",
        ),
        (
            {"hundredths": " ".join(map(str, (*LINE * 7, *LINE[:3], 20, *LINE[4:])))},
            "its time falls by 76% from point 59 to the next, with more work",
        ),
    ],
)
def test_a_malformed_line_is_refused_by_its_name(
    tmp_path: Path, changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        list(kernel_shares.load(written(tmp_path, line(**changed))))


def test_a_line_with_too_few_cells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a cell for each column is needed; got caches, h100"):
        list(kernel_shares.load(written(tmp_path, "caches,h100")))


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("kernel,device\n")
    with pytest.raises(InputError, match="its columns must be kernel, device, program"):
        list(kernel_shares.load(path))


def test_what_tables_are_off_is_told_with_a_version_and_a_device_left_out() -> None:
    by_kernel = {row[0]: row for row in kernel_tables.errors().tables[0].rows}
    assert set(by_kernel) == {"", *LENGTHS, "exchanges", "sums"}
    for kernel in (*LENGTHS, "exchanges"):
        cells = (by_kernel[kernel][cell].rstrip("%") for cell in (2, 5, 8))
        fitted, version, device = (math.inf if cell == "–" else float(cell) for cell in cells)
        assert fitted < version  # what is fitted tells less than what is left out
        assert fitted < device < 16
    rows = kernel_tables.errors().facts["rows"]
    assert isinstance(rows, tuple)
    assert sum(row["rows"] for row in rows) > 11e6


def test_a_table_of_ones_own_is_held_by_the_command_or_refused(
    tmp_path: Path, command: Command
) -> None:
    file = written(tmp_path, line(version_before="0.2 -0.1"))
    assert "product  60    5.0%       +1.0%   1       20.0%" in command.prints(
        "validate", "--kernels", str(file)
    )
    broken = written(tmp_path, line(hundredths=" ".join(["50"] * 64)))
    assert "its shortest kernel takes 0.1 µs" in command.refuses(
        "validate", "--kernels", str(broken)
    )


@pytest.mark.parametrize("other", [["--published"], ["--group", "serving"]])
def test_tables_of_kernels_are_asked_for_alone(other: list[str], command: Command) -> None:
    assert "leave out --published and --group, or it" in command.refuses(
        "validate", "--kernels", *other
    )


def test_a_distilled_surface_rises_even_where_what_was_measured_falls() -> None:
    roof = np.geomspace(1e-8, 1e-2, 300)
    rows = distil_kernels.Rows(np.full(300, 64.0), roof, np.maximum(2e-5 - roof, 2 * roof))
    shares = distil_kernels.surface("product", rows).reshape(-1, len(ROOFS))
    times = 2.0 ** np.array(ROOFS) / np.exp(shares)
    assert np.all(times[:, 1:] >= times[:, :-1] * (1 - 1e-9))
    assert times[2, 0] == pytest.approx(20, rel=0.2)
    assert times.min() >= 1 - 1e-9


def test_of_a_module_that_reads_prompts_what_is_left_beside_its_products_is_kept() -> None:
    """Modules that take 4 ms beside their products on a B200, and one that a host launched."""
    shapes = [(count, length) for count in (1, 2, 4) for length in (4096, 8192)]
    model, on = models.get("deepseek-v3-2"), machines.get("dgx-b200")
    attention_matrices = {matrix.name for matrix in model.matrices if matrix.part == "attention"}
    lines = []
    for count, length in shapes:
        load = Tokens(reading=count * length, prompt=length)
        launched = kernels.step(Job(model, on, Layout(tensor=8)), load)
        beside = sum(
            each.expected(on, software.get("vllm 0.24")).m_as("ms") / 61
            for each in launched
            if {*each.name.split("+")} <= {*attention_matrices, "rotation"}
        )
        lines.append((count, length, 4.0 + beside))
    lines += [(1, 64, 1.5)] * 20
    table = pl.DataFrame(lines, ["batch_size", "isl", "latency"], orient="row").with_columns(
        model=pl.lit("deepseek-ai/DeepSeek-V3.2"),
        kernel_source=pl.lit("default"),
        op_name=pl.lit("dsa_context_module"),
        kv_cache_dtype=pl.lit("bfloat16"),
        gemm_type=pl.lit("bfloat16"),
        framework=pl.lit("VLLM"),
        version=pl.lit("0.24.0"),
        device=pl.lit("NVIDIA B200"),
        num_heads=16,
        step=0,
    )
    ((format, rows),) = distil_kernels.choosing(table, distil_kernels.Peaks.of("b200"))
    assert format == "latent-16-64"
    assert rows.time.tolist() == pytest.approx([4e-3] * len(shapes))
    assert sorted(rows.length) == sorted(float(length) for _, length in shapes)


# --- surfaces ---


def test_a_surface_has_its_own_values_at_its_points() -> None:
    values = tuple(-0.01 * index for index in range(64))
    kernel_surface = replace(FLAT, logarithms=values)
    for (row, length), (column, roof) in product(enumerate(LENGTHS["product"]), enumerate(ROOFS)):
        share = kernel_surface.share(2.0**length, 2.0**roof * 1e-6)
        assert share == pytest.approx(2.718281828459045 ** values[row * len(ROOFS) + column])


@given(length=st.floats(0.5, 1e6), roof=st.floats(1e-12, 1.0))
def test_a_kernel_takes_no_less_than_its_roof_and_no_less_than_the_shortest(
    length: float, roof: float
) -> None:
    kernel_surface = kernel_shares.surface_of("product", "h100", "vllm", "bf16")
    assert kernel_surface is not None
    time = kernel_surface.time(length, roof)
    assert time >= roof * (1 - 1e-12)
    assert time > 0.3e-6  # no kernel of an engine ends sooner


@given(length=st.floats(1.0, 3e4), first=st.floats(1e-8, 1e-2), more=st.floats(1.0, 4.0))
def test_below_all_that_was_measured_time_is_that_of_the_shortest(
    length: float, first: float, more: float
) -> None:
    shortest = 2.0 ** ROOFS[0] * 1e-6
    roof = min(first, shortest)
    assert FLAT.time(length, roof) == pytest.approx(FLAT.time(length, shortest))
    assert FLAT.time(length, 1.0) * more == pytest.approx(FLAT.time(length, more))


def test_more_rows_of_the_same_weights_take_no_less_time() -> None:
    """Every surface rises, between its points too, up to the ridge of its device."""
    fell, width, tried = [], len(ROOFS), 0
    for kernel_surface in kernel_shares.load():
        flat = kernel_shares.waiting_for_weights(
            kernel_surface.kernel, kernel_surface.device, kernel_surface.format
        )
        for point in (point for point in sorted(flat) if point + 1 in flat):
            row, column = divmod(point, width)
            if column + 1 == width:
                continue
            before, after = LENGTHS[kernel_surface.kernel][row : row + 2]
            for share in (0.0, 0.6):
                roof = 2 ** (ROOFS[column] * (1 - share) + ROOFS[column + 1] * share) * 1e-6
                rows = [2 ** (before + step * (after - before) / 3) for step in range(4)]
                times = [kernel_surface.time(row, roof) for row in rows]
                tried += 1
                if any(more < less * (1 - 1e-9) for less, more in pairwise(times)):
                    fell.append((str(kernel_surface), row, column))
    assert not fell
    assert tried > 10_000


@given(st.lists(st.floats(-5, 0), min_size=24, max_size=24), st.frozensets(st.integers(0, 15)))
def test_times_without_falls_are_as_near_as_any_that_do_not_fall(
    shares: list[float], flat: frozenset[int]
) -> None:
    width = len(ROOFS)
    made = kernel_shares.without_falls(shares, flat)
    roofs = [roof * math.log(2) for roof in ROOFS] * 3
    was, now = (
        [roof - share for roof, share in zip(roofs, each, strict=True)] for each in (shares, made)
    )
    beside = [(at, at + 1) for at in range(24) if (at + 1) % width]
    beside += [(at, at + width) for at in flat]
    assert all(now[less] <= now[more] + 1e-9 for less, more in beside)
    reached = {at: {at} for at in range(24)}
    for less, more in sorted(beside, reverse=True):
        reached[less] |= reached[more]
    falls = max(was[less] - was[more] for less in range(24) for more in reached[less])
    assert max(abs(a - b) for a, b in zip(was, now, strict=True)) == pytest.approx(falls / 2)


def test_a_kernel_waits_for_weights_up_to_the_ridge_of_its_device() -> None:
    def rows(kernel: str, device: str, format: str, roof: int) -> list[int]:
        """Return the lengths up to whose next one it waits, at a roof of so many microseconds."""
        column, lengths = ROOFS.index(int(math.log2(roof))), LENGTHS[kernel]
        flat = kernel_shares.waiting_for_weights(kernel, device, format)
        return [2**at for row, at in enumerate(lengths) if row * len(ROOFS) + column in flat]

    assert rows("product", "h100", "bf16", 64) == [1, 16, 64, 128]  # its ridge is 295 rows
    assert rows("product", "t4", "bf16", 4) == [1, 16, 64]  # its weights come slowly
    assert not rows("product", "h100", "bf16", 1)  # which is less than a start
    assert rows("product", "a100", "int4-weights", 64) == [1]  # 41 rows
    assert rows("experts", "h100", "bf16", 64) == [1, 4, 16, 64]
    assert not rows("caches", "h100", "bf16", 64)


# --- whose rows ---


@pytest.mark.parametrize("kernel", LENGTHS)
def test_times_of_arrays_are_those_of_their_numbers_to_the_last_digit(kernel: str) -> None:
    surface = next(each for each in kernel_shares.load() if each.kernel == kernel)
    lengths = [0.0, *(2.0**power * 1.1 for power in range(-9, 22, 3))]
    roofs = [0.0, *(1e-6 * 2.0**power * 1.1 for power in range(-6, 16))]
    times = surface.time(np.array(lengths)[:, None], np.array(roofs))
    assert times.tolist() == [[surface.time(each, roof) for roof in roofs] for each in lengths]


def test_the_version_that_is_asked_for_or_the_newest() -> None:
    newest = kernel_shares.surface_of("product", "h100", "vllm", "bf16")
    assert newest is not None
    older = kernel_shares.surface_of("product", "h100", "vllm", "bf16", "0.19")
    assert older is not None
    assert older.version == "0.19.0" != newest.version
    assert kernel_shares.surface_of("product", "h100", "vllm", "bf16", "0.1") == newest


def surface(
    kernel: str, formats: tuple[str, ...], device: Accelerator, program: Software
) -> Surface | None:
    return rates_of(machines.of(device), program).surface(kernel, formats)


def test_another_program_stands_in_and_another_device_of_the_same_generation() -> None:
    vllm, h100 = software.get("vllm"), hardware.get("h100")
    fp8 = surface("product", ("fp8-block",), h100, vllm)
    assert fp8 is not None
    assert fp8.device == "h100"
    ada = surface("product", ("bf16",), hardware.get("rtx-4090"), vllm)
    assert ada is not None
    assert ada.device == "l40s"
    assert surface("product", ("bf16",), hardware.get("mi300x"), vllm) is None
    assert surface("product", ("bf16",), h100, software.get("megatron")) is None


def test_devices_that_stand_for_others_were_measured_themselves() -> None:
    measured = {stored.device for stored in kernel_shares.load()}
    for key in hardware.names():
        stands = hardware.get(key).measured_as
        assert not stands or (stands in measured and key not in measured), key


def test_weights_of_eight_bits_are_widened_by_each_programs_own_kernel() -> None:
    h100, eight_bits = hardware.get("h100"), formats_of_product("bf16", 1.0)
    of_sglang = surface("product", eight_bits, h100, software.get("sglang"))
    assert of_sglang is not None
    assert (of_sglang.program, of_sglang.format) == ("sglang", "int8-weights")
    other = surface("product", eight_bits, h100, software.get("vllm"))
    assert other is not None
    assert (other.program, other.format) == ("vllm", "bf16")
    assert of_sglang.time(32, 2e-5) > 2 * other.time(
        32, 2e-5
    )  # by another's it would take twice as long


def test_a_step_says_which_rows_it_is_made_of() -> None:
    job = Job.of("llama-3-70b", "dgx-h100", Layout(tensor=8), Formats("fp8", "fp8"), "vllm 0.19")
    timed = step(job, Tokens(writing=32, context=4096))
    sentence = str(timed.expected_parts)
    assert "vllm 0.19.0 on h100, product in fp8" in sentence
    assert "a sum of 524.3 kB by vLLM 0.19.0" in sentence  # 32 tokens of 8192 numbers of two bytes


def test_a_kernel_is_timed_once_by_the_rates_of_each_device_that_bounds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed: list[tuple[Kernel, Rates]] = []
    by = Kernel._by

    def noted(self: Kernel, rates: Rates) -> Timed:
        timed.append((self, rates))
        return by(self, rates)

    monkeypatch.setattr(Kernel, "_by", noted)
    assert step(Job.of("llama-3-8b", "rtx-3090", software="vllm"), Tokens(9, 999)).expected
    assert len(timed) > len({id(kernel) for kernel, _ in timed}), "no other device bounds it"
    assert len(timed) == len({(id(kernel), id(rates)) for kernel, rates in timed})


def test_an_upgrade_has_its_price_or_its_gain() -> None:
    def time(version: str) -> float:
        job = Job.of("llama-3-70b", "dgx-b200", Layout(), Formats("fp8", "fp8"), f"vllm {version}")
        expected = step(job, Tokens(reading=8192, prompt=8192)).expected
        assert expected is not None
        return float(expected.m_as("s"))

    assert time("0.24") < 0.8 * time("0.19")  # FP8 products on a B200: 1.8 and 3.5 PFLOP/s


# --- likely rates ---


def test_a_rate_that_was_not_measured_is_a_share_that_says_of_whom() -> None:
    rate = machines.get("rtx-5090-2").likely("gemm", "bf16")
    peak = hardware.get("rtx-5090").peak("bf16")
    assert 0.5 < (rate / peak).m_as("") < 1
    assert rate.provenance is not None
    assert rate.provenance.kind == "estimate"
    assert "of the published peak, the median of" in rate.provenance.note
    measured = machines.get("dgx-h100")
    assert measured.likely("gemm", "bf16") == measured.reached("gemm", "bf16")


def test_a_likely_rate_is_the_share_of_devices_with_the_same_processors() -> None:
    """An MI325X is an MI300X with faster memory, an MI300A one with three quarters of it."""
    mi300x = machines.get("mi300x-8")
    for key, kind, name in (
        ("mi325x-8", "gemm", "fp8"),
        ("mi325x-8", "memory", "copy"),
        ("mi300a", "gemm", "fp8"),
    ):
        machine = machines.of(hardware.get("mi300a")) if key == "mi300a" else machines.get(key)
        rate = machine.likely(kind, name)
        assert rate.provenance is not None
        assert "that of one with the same processors" in rate.provenance.note
        if kind == "memory":
            peaks = machine.device.memory_bandwidth, mi300x.device.memory_bandwidth
        else:
            peaks = machine.device.peak(name), mi300x.device.peak(name)
        assert rate / peaks[0] == pytest.approx((mi300x.reached(kind, name) / peaks[1]).m_as(""))
    other = machines.of(hardware.get("h100-pcie")).likely("gemm", "bf16")  # of a slower clock
    assert other.provenance is not None
    assert "the median of" in other.provenance.note


# --- engines' sums ---


def test_an_engine_adds_up_short_arrays_sooner_than_nccl() -> None:
    of_vllm = engine_sums.sums_of("h100", "vllm", 8)
    assert of_vllm is not None
    assert of_vllm.time(8192) < 15e-6
    assert of_vllm.time(2**40) == pytest.approx(2 * of_vllm.time(2**39))
    assert engine_sums.sums_of("h100", "vllm", 64) is None


def test_twice_as_many_devices_of_a_domain_take_a_short_sum_at_most_twice_as_long() -> None:
    """NVIDIA's switch joins eight as it joins four: no version is ten times slower there."""
    for name in ("dgx-h100", "dgx-h200", "dgx-b200", "hgx-b300", "gb200-nvl72", "gb300-nvl72"):
        for program in ("vllm", "sglang", "tensorrt-llm"):
            four, eight = (
                sums(machines.get(name), software.get(program), count) for count in (4, 8)
            )
            assert four is not None
            assert eight is not None, (name, program)
            assert eight.time(2**17) < 2 * four.time(2**17), (name, program)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("h100,vllm,1,8,256,50 40 10", "falls to less than half"),
        ("h100,vllm,1,8,256,50", "at least two positive times"),
        ("h100,vllm,1,eight,256,50 60", "must be whole numbers"),
    ],
)
def test_impossible_sums_are_refused(tmp_path: Path, row: str, sentence: str) -> None:
    path = tmp_path / "sums.csv"
    path.write_text(f"{','.join(engine_sums.COLUMNS)}\n{row}\n")
    with pytest.raises(InputError, match=sentence):
        list(engine_sums.load(path))


def test_the_version_next_to_a_contradicting_one_has_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one after it; of the newest the one before it, and none older than that."""
    key = "experts", "h100", "sglang", "bf16"
    one = kernel_shares.surface_of(*key)
    assert one is not None
    several = [replace(one, version=version, instead_of="") for version in ("1.0", "1.1", "1.2")]
    monkeypatch.setattr(kernel_shares, "_versions", lambda *asked: several)
    for wrong, instead in (("1.0", "1.1"), ("1.1", "1.2"), ("1.2", "1.1")):
        monkeypatch.setattr(
            kernel_shares.Surface,
            "contradicts",
            lambda self, after=None, wrong=wrong: self.version == wrong,
        )
        kernel_surface = kernel_shares.surface_of(*key, wrong)
        assert kernel_surface is not None
        assert (kernel_surface.version, kernel_surface.instead_of) == (instead, wrong)
