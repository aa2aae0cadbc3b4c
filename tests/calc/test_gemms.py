"""GEMMs: tiles and waves by hand, and predictions held to published products."""

from __future__ import annotations

import math
from statistics import median

import pytest

from calc import InputError, gemms, machines, quantity
from calc.published import product_rows
from calc.published.reading import rows
from calc.steps import products


@pytest.mark.parametrize(
    ("m", "n", "units", "share"),
    [
        (256, 128, 1, 1.0),  # one tile, one processor
        (257, 128, 1, 257 / 512),  # a row more takes a second wave
        (2048, 2112, 132, 2048 * 2112 / (2 * 132 * 256 * 128)),  # 136 tiles: two waves
        (4096, 4096, 132, 16 * 32 / (4 * 132)),  # 512 tiles in four waves
        (100, 100, 10, 10_000 / (10 * 256 * 128)),  # most processors idle
    ],
)
def test_what_tiles_and_waves_leave(m: int, n: int, units: int, share: float) -> None:
    waves = gemms.wave_efficiency(gemms.tiles(m, n), units)
    assert (gemms.tile_efficiency(m, n) * waves).m_as("") == pytest.approx(share)


def test_a_tile_is_bound_by_its_registers_or_its_shared_memory() -> None:
    """FP32 sums of 256 × 128 fill half of an SM's registers, so that only one block fits."""
    assert gemms.accumulator_size(256, 128).m_as("KiB") == 128
    assert gemms.resident_blocks(384, 168, "1 byte").m_as("") == 1
    assert gemms.resident_blocks(128, 64, "60 KiB").m_as("") == 3  # by shared memory
    assert gemms.resident_blocks(1024, 16, "1 byte").m_as("") == 2  # by threads
    assert gemms.resident_blocks(1024, 255, "1 byte").m_as("") == 0  # does not start


# --- published products ---


def tenth_worst(name: str, way: str) -> float:
    errors = product_rows.errors(name, way)
    return errors[math.ceil(0.9 * len(errors)) - 1]


def test_the_rows_are_those_that_the_rule_says() -> None:
    for machine in product_rows.names():
        shapes = {(each.m, each.n, each.k) for each in product_rows.measured(machine)}
        assert len(shapes) == len(product_rows.measured(machine)) == 9 * 60
        assert {n for _, n, _ in shapes} == {k for _, _, k in shapes} == {1024, 4096, 16384}
        assert all(m == 1 or m >= 16 for m, _, _ in shapes)


def test_no_product_is_faster_than_its_roofline() -> None:
    for name, timed in product_rows.sets().items():
        for each in timed:
            bound = product_rows.predictions(each)["roofline, published"]
            assert each.time > 0.995 * bound, f"{name}: {each}"


@pytest.mark.parametrize("chip", ["A100", "H100", "B200"])
def test_tiles_and_splits_predict_better_than_the_roofline(chip: str) -> None:
    name = f"cuBLAS by NVIDIA, {chip}"
    roofline, best = "roofline, published", "best tile and split"
    assert median(product_rows.errors(name, best)) < 0.6 * median(
        product_rows.errors(name, roofline)
    )
    assert tenth_worst(name, best) < tenth_worst(name, roofline)


@pytest.mark.parametrize("chip", ["A100", "H100", "B200"])
def test_one_tile_for_all_shapes_predicts_worse_than_no_tiles(chip: str) -> None:
    """Libraries choose the tile by the shape: the waves of a fixed one are not what is measured."""
    name = f"cuBLAS by NVIDIA, {chip}"
    assert tenth_worst(name, "waves of one tile") > 2
    assert tenth_worst(name, "roofline, published") < 1


def test_what_is_not_known_is_told() -> None:
    with pytest.raises(InputError, match="measured on dgx-a100, dgx-h100, dgx-b200; got 'tpu'"):
        product_rows.measured("tpu")
    with pytest.raises(InputError, match="a way of predicting is one of"):
        product_rows.errors("cuBLAS by NVIDIA, H100", "a guess")
    with pytest.raises(InputError, match="a set is one of"):
        product_rows.errors("cuBLAS", "best tile and split")


def test_a_machine_whose_units_are_known_needs_no_number() -> None:
    machine = machines.get("dgx-h100")
    time = gemms.fastest_time(
        4096,
        4096,
        4096,
        machine.reached("gemm", "bf16"),
        machine.memory_reached,
        machine.processors,
    )
    assert quantity("170 us") < time < quantity("190 us")


# --- attention ---


def test_attention_counts_what_looks_at_what() -> None:
    """Two products of 2 · n · c · w operations a head; a causal mask leaves (n + 1) / 2n."""
    h100 = machines.get("dgx-h100")
    whole = products.attention(4096, h100, heads=32, head_width=128, sequences=2)
    assert whole.bound.operations.m_as("FLOP") == 4 * 4096**2 * 128 * 32 * 2
    assert whole.bound.traffic.m_as("byte") == 4 * 4096 * 32 * 128 * 2 * 2
    causal = products.attention(4096, h100, sequences=2, causal=True)
    share = (causal.bound.operations / whole.bound.operations).m_as("")
    assert share == pytest.approx(4097 / 8192)
    backward = products.attention(4096, h100, sequences=2, backward=True)
    assert (backward.bound.operations / whole.bound.operations).m_as("") == 2.5
    one = products.attention(4096, h100, heads=32, kv_heads=8, queries=1, causal=True)
    assert one.bound.bound == "memory"
    assert one.bound.operations.m_as("FLOP") == 4 * 4096 * 128 * 32  # the last one sees all
    assert one.bound.traffic.m_as("byte") == 2 * (2 * 4096 * 8 + 2 * 32) * 128


def test_published_flash_attention_is_held_to_what_is_expected() -> None:
    """FlashAttention-3 on H100s in 16 bits, but the row that the rate is: short ones are slower."""
    off = []
    for row in rows("kernel"):
        if row["kind"] != "attention" or "tflops_fa3" not in row.measured:
            continue
        if row.measured["tflops_fa3"] == 648:  # on which the machine's rate stands
            continue
        count = int(row["batch"] or 16384 // int(row["seq_len"]))
        made = products.attention(
            int(row["seq_len"]),
            machines.get("dgx-h100"),
            heads=int(row["heads"] or 2048 // int(row["head_dim"])),
            head_width=int(row["head_dim"]),
            sequences=count,
        )
        assert made.expected is not None
        time = (made.bound.operations / quantity(row.measured["tflops_fa3"], "TFLOP/s")).to("s")
        assert time > made.bound.lower
        off.append((made.expected / time - 1).m_as(""))
    assert len(off) == 13
    assert median(off) == pytest.approx(-0.112, abs=0.005)
    assert min(off) == pytest.approx(-0.329, abs=0.005)
    assert max(off) < 0  # the rate is the best that was measured


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kv_heads": 5}, "kv_heads must divide heads, 32; got 5"),
        ({"queries": 9000}, "queries are at most the length, 8192; got 9000"),
        ({"heads": 0}, "heads"),
        ({"dtype": "fp3"}, "fp3"),
    ],
)
def test_attention_of_no_shape_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        products.attention(8192, machines.get("dgx-h100"), **asked)  # type: ignore[arg-type]


def test_what_was_not_measured_is_a_bound_alone() -> None:
    eight_bits = products.attention(8192, machines.get("dgx-h100"), dtype="fp8")
    assert eight_bits.expected is None
    assert "BOUND ONLY" in eight_bits.stands_on
