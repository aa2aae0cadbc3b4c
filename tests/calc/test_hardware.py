"""Accelerators: what they answer, and what a mistake in their file is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import calc
from calc import InputError, hardware, machines, quantity
from tests.calc.command import Written
from tests.rows import each_row

GOOD = """
[made-up]
name = "Made Up 1"
year = 2024
kind = "datasheet"
source = "williams2009roofline"
checked = 2024-05-06
memory_bandwidth = { value = 2, unit = "TB/s" }
memory_capacity = { value = 80, unit = "GiB" }
on_chip_memory = { kind = "unpublished", note = "Nobody was told (asked 2024)." }
tdp = { value = 500, unit = "W" }
units = { value = 132, unit = "1" }
link_bandwidth = { value = 50, unit = "GB/s", direction = "each way" }

[made-up.peak]
fp16 = { value = 100, unit = "TFLOP/s" }
int8 = { value = 200, unit = "TOP/s" }
"""


@pytest.mark.parametrize(
    ("key", "dtype", "ridge"),
    [
        ("h100", "fp16", 989 / 3.35),
        ("h100", "int8", 1979 / 3.35),
        ("a100", "fp16", 312 / 2.039),
        ("tpu-v5p", "bf16", 459 / 2.765),
        ("v100", "fp16", 125 / 0.9),
        ("l40s", "fp16", 733 / 2 / 0.864),
        ("h200", "bf16", 989 / 4.8),
        ("b200", "fp4", 9000 / 7.7),
        ("jetson-agx-orin", "int8", 170 / 2 / 0.2048),
        ("tpu-v4", "bf16", 275 / 1.2),
        ("tpu-v7", "fp8", 4614 / 7.38),
        ("mi300x", "fp16", 1307.4 / 5.3),
        ("trainium2", "bf16", 667 / 2.9),
        ("gaudi3", "bf16", 1835 / 3.67),
        ("xeon-8480", "bf16", 1024 * 56 * 2e-3 / 0.3072),
        ("ryzen-7840u", "fp32", 8 * 32 * 3.3e-3 / 0.12),
    ],
)
def test_ridge_points(key: str, dtype: str, ridge: float) -> None:
    ridge_point = hardware.get(key).ridge_point(dtype)
    assert ridge_point.m_as("FLOP/byte") == pytest.approx(ridge)
    assert str(ridge_point).endswith("OP/byte")


def test_every_device_answers_for_each_type_it_has() -> None:
    wrong = []
    for key in hardware.names():
        device = hardware.get(key)
        assert device.name
        assert device.all_records()
        for dtype in device.dtypes:
            assert device.peak(dtype).is_compatible_with("FLOP/s")
            assert device.peak(dtype.upper()) == device.peak(dtype)
        for dtype, record in device.peaks["sparse_peak"].items():
            sparse, dense = record.quantity.m_as("FLOP/s"), device.peak(dtype).m_as("FLOP/s")
            if sparse != pytest.approx(2 * dense, rel=1e-3):
                wrong.append(f"{key}: {dtype} is {dense:.4g} dense and {sparse:.4g} sparse")
    assert not wrong, (
        f"{'; '.join(wrong)}: sparse is twice dense within 0.1 %; where a datasheet rounds, give"
        " half of the sparse rate as the dense one, and say so in its note"
    )


def test_devices_are_found_by_what_tools_of_their_vendor_call_them() -> None:
    with each_row() as row:
        for name, key in (
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("NVIDIA A100 80GB PCIe", "a100-pcie"),
            ("Tesla V100-SXM2-32GB", "v100"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"),
            ("VR200 NVL72", "rubin"),
            ("910C", "ascend-910c"),
        ):
            with row(name):
                assert hardware.get(name).key == key


def test_names() -> None:
    assert hardware.H100 is hardware.get("h100") is hardware.get("H100")
    assert hardware.TPU_V5P is hardware.tpu_v5p is hardware.get("TPU_v5p")
    assert {"h100", "a100", "tpu-v5p", "phone-npu"} <= set(hardware.names())
    assert {"H100", "TPU_V5P", "get", "names"} <= set(dir(hardware))
    for name in dir(hardware):
        assert getattr(hardware, name)


def test_what_is_not_there() -> None:
    with pytest.raises(InputError) as refusal:
        hardware.get("TPU_v5r")
    assert str(refusal.value).startswith("there is no device 'TPU_v5r'; did you mean tpu-v5")
    assert str(refusal.value).endswith("? `calc list devices` prints them all")
    with pytest.raises(InputError, match=r"no device None;.* `calc list devices` prints them"):
        hardware.get(None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="no device"):
        hardware.XYZ  # noqa: B018
    with pytest.raises(InputError, match="no dense peak for FP4; it has FP64, TF32, FP16, BF16"):
        hardware.H100.peak("fp4")
    with pytest.raises(InputError, match="no dense peak for FP16; it has BF16"):
        hardware.TPU_V5P.ridge_point("fp16")
    with pytest.raises(InputError, match="sparsity for FP16; it has none"):
        hardware.TPU_V5P.sparse_peak("fp16")
    with pytest.raises(InputError, match="no dense peak for 16"):
        hardware.H100.peak(16)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no dense peak for 5; it has FP64"):
        hardware.H100.ridge_point(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unpublished"):
        hardware.TPU_V5P.tdp  # noqa: B018
    with pytest.raises(InputError, match=r"INT8 dense peak of Qualcomm .* is unpublished"):
        hardware.get("snapdragon-8-gen-3").peak("int8")
    assert hardware.get("snapdragon-8-gen-3").dtypes == ()
    assert hardware.H100.publishes("tdp")
    assert not hardware.TPU_V5P.publishes("tdp")
    with pytest.raises(InputError, match="has no link bandwidth"):
        hardware.get("phone-npu").link_bandwidth  # noqa: B018


def test_not_supported_is_told_from_not_published() -> None:
    with pytest.raises(InputError, match=r"INT8, and its matrix units do not support FP4$"):
        hardware.H100.peak("fp4")
    with pytest.raises(InputError, match=r"INT8, and no rate of INT4 is published in its sources$"):
        hardware.H100.peak("int4")
    with pytest.raises(InputError, match=r"each way: it has no links to other devices$"):
        hardware.get("t4").link_bandwidth  # noqa: B018
    for key in (*hardware.names(), *hardware.announced()):
        device = hardware.get(key)
        assert not set(device.unsupported) & set(device.peaks["peak"])


def test_what_is_announced_is_in_no_comparison() -> None:
    assert {"rubin", "mi455x", "ascend-950dt"} == set(hardware.announced())
    assert not set(hardware.announced()) & set(hardware.names())
    assert all(hardware.get(key).announced for key in hardware.announced())
    assert not any(hardware.get(key).announced for key in hardware.names())
    for key in hardware.announced():
        kinds = {each.provenance.kind for each in hardware.get(key).all_records()}
        assert kinds <= {"announced", "unpublished"}
    assert len(hardware.names()) >= 45


def test_a_good_device(written: Written) -> None:
    device = hardware.load(written(GOOD))["made-up"]
    assert device.ridge_point("fp16") == quantity("50 FLOP/byte")
    assert device.memory_bandwidth.provenance is not None
    assert device.memory_bandwidth.provenance.title == "memory bandwidth of Made Up 1"


def test_a_device_of_ones_own_is_asked_for_by_its_file(tmp_path: Path, written: Written) -> None:
    path = written(GOOD, "mine.toml")
    (key,) = hardware.load(path)
    for name in (path, str(path), f"{path}:{key}"):
        assert hardware.get(name).memory_bandwidth == hardware.load(path)[key].memory_bandwidth
    plan = calc.plan("llama-3-8b", path, prompt=10, generated=10)
    assert plan.device.key == calc.plan("llama-3-8b", str(path), prompt=10, generated=10).device.key
    path.write_text(GOOD + GOOD.replace(f"[{key}", "[other"))
    assert hardware.get(f"{path}:other").key == "other"
    with pytest.raises(InputError, match=f"not one device alone; it holds {key}, other: ask for"):
        hardware.get(path)
    with pytest.raises(InputError, match=f"no device 'third'; it holds {key}, other"):
        hardware.get(f"{path}:third")
    with pytest.raises(InputError, match="there is no such file"):
        calc.plan("llama-3-8b", tmp_path / "none.toml", prompt=1, generated=1)
    path.write_text("name = 1")
    with pytest.raises(InputError, match="no device 'x'; it holds name: ask for one"):
        hardware.get(f"{path}:x")
    path.write_text("")
    with pytest.raises(InputError, match="it holds no device; one begins with its key"):
        hardware.get(path)


def test_a_device_without_links(written: Written) -> None:
    device = hardware.load(written(GOOD.replace("link_bandwidth", "#")))["made-up"]
    with pytest.raises(InputError, match="Made Up 1 has no link bandwidth, each way"):
        device.link_bandwidth  # noqa: B018


def test_the_file_says_which_data_types_are_known() -> None:
    text = (hardware.DATA / "accelerators.toml").read_text(encoding="utf-8")
    for dtype in hardware.DTYPES:
        assert re.search(rf"^#.*\b{dtype}\b", text, re.MULTILINE), dtype


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ('name = "Made Up 1"\n', "", "must be a table with a name and a year"),
        ("year = 2024\n", "", "must be a table with a name and a year"),
        ("memory_bandwidth", "memory_bandwith", "unknown field memory_bandwith; known are name,"),
        ("value = 2,", "valu = 2,", "made-up.memory_bandwidth has an unknown field valu"),
        ("value = 132", "value = 132.5", "made-up.units must be a whole number; got 132.5"),
        ('132, unit = "1"', '132, unit = "W"', "made-up.units must be positive and measured in no"),
        ('"TB/s"', '"TB"', "made-up.memory_bandwidth must be positive and measured in byte/s"),
        ("[made-up", "[made_up", "[made_up] must be written [made-up]"),
        ("[made-up", "[Made-Up", "[Made-Up] must be written [made-up]"),
        ("memory_capacity", "#", "made-up has no memory_capacity (memory capacity): give its"),
        ("on_chip_memory", "#", 'or { kind = "unpublished", note'),
        ("tdp", "#", "made-up has no tdp (thermal design power): give its value"),
        ("fp16 =", "float16 =", "peak.float16: float16 is no known data type; known are fp64,"),
        ("fp16 =", "FP16 =", "peak.FP16: FP16 is no known data type; known are fp64,"),
        ('"TOP/s"', '"TFLOP/s"', "peak.int8 must be in TOP/s or its like, since int8 operations"),
        ('"TFLOP/s"', '"TOP/s"', "peak.fp16 must be in TFLOP/s or its like"),
        ('"TFLOP/s"', '"FLOP/ms"', "counted in FLOP; got FLOP/ms"),
        ('"TFLOP/s"', '"TFLOP"', "made-up.peak.fp16 must be positive and measured in FLOP/s"),
        ("value = 2,", "value = -2,", "must be positive"),
        ("value = 2,", "value = 0,", "must be positive"),
        (', direction = "each way"', "", 'say so: direction = "each way"'),
        ("each way", "both ways", 'say so: direction = "each way"'),
        ("fp16 = { value = 100", "value = { value = 100", "value is no known data type"),
        ("fp16 = { value = 100, unit", "fp16 = 100 #", "made-up.peak.fp16 must be a table"),
        ("[made-up.peak]\n", "peak = 3\n[made-up.vector_peak]\n", "must be a table of data types"),
        ('source = "williams2009roofline"\n', "", "made-up.memory_bandwidth has no source"),
        ("year = 2024", 'year = 2024\nunsupported = ["fp12"]', "without a peak, of fp64, fp32, t"),
        ("year = 2024", 'year = 2024\nunsupported = ["fp16"]', "without a peak, of fp64, fp32, t"),
        ("year = 2024", 'year = 2024\nunsupported = "fp8"', "unsupported must list data types"),
    ],
)
def test_a_mistake_is_named(written: Written, right: str, wrong: str, sentence: str) -> None:
    assert right in GOOD
    with pytest.raises(InputError) as refusal:
        hardware.load(written(GOOD.replace(right, wrong)))
    assert sentence in str(refusal.value)
    assert "made_up.toml: " in str(refusal.value)


@pytest.mark.parametrize(
    ("device", "clock", "units", "operations"),
    [
        ("a100", "1.41 GHz", 108, "2048 FLOP/cycle"),  # NVIDIA's white papers: SMs and tensor cores
        ("h100", "1.83 GHz", 132, "4096 FLOP/cycle"),
        ("tpu-v5p", "1.75 GHz", 8, "32768 FLOP/cycle"),  # eight arrays of 128 by 128 multiply-adds
    ],
)
def test_a_peak_is_clock_times_units_times_operations(
    device: str, clock: str, units: int, operations: str
) -> None:
    peak = hardware.peak_from_clock(clock, units, operations)
    assert peak.m_as("TFLOP/s") == pytest.approx(
        hardware.get(device).peak("bf16").m_as("TFLOP/s"), rel=1e-3
    )


def test_what_programs_see_as_two_devices_is_two() -> None:
    """Each die of an MI250X has 64 GiB: 70B parameters in 16 bits, 131 GiB, need three."""
    die, package = hardware.get("mi250x"), machines.of("mi250x")
    assert (package.domain, str(die.memory_capacity)) == (2, "64 GiB")
    assert calc.device_memory.fit("llama-3-1-8b", "mi250x", "none").visible == die.memory_capacity
    needed = calc.plan("llama-3-1-8b", "mi250x", prompt=1000, generated=200, batch=400)
    assert needed.devices.magnitude == 2  # 15 GiB of weights, and 59 of caches
    assert calc.check("Llama 3.1 70B in bf16 on 1 MI250X: 1 token/s").title[0][:10] == "impossible"
    claimed = {
        "Llama 3.1 8B on 4 MI250X: 100 token/s": 8,
        "Llama 3.1 8B on 4 MI250X GCDs: 100 token/s": 4,
        "Llama 3.1 8B on 1 die of an MI250X: 100 token/s": 1,
    }
    for text, devices in claimed.items():
        assert calc.check(text).claim.row["num_devices"] == devices, text
