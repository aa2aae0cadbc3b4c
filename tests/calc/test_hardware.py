"""Accelerators: what they answer, and what a mistake in their file is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from calc import InputError, hardware, quantity

GOOD = """
[made-up]
name = "Made Up 1"
year = 2024
kind = "datasheet"
source = "williams2009roofline"
checked = 2024-05-06
memory_bandwidth = { value = 2, unit = "TB/s" }
link_bandwidth = { value = 50, unit = "GB/s", direction = "each way" }

[made-up.peak]
fp16 = { value = 100, unit = "TFLOP/s" }
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], dict[str, hardware.Accelerator]]:
    def load(text: str) -> dict[str, hardware.Accelerator]:
        path = tmp_path / "made_up.toml"
        path.write_text(text, encoding="utf-8")
        return hardware.load(path)

    return load


@pytest.mark.parametrize(
    ("key", "dtype", "ridge"),
    [
        ("h100", "fp16", 989 / 3.35),
        ("h100", "int8", 1979 / 3.35),
        ("a100", "fp16", 312 / 2.039),
        ("tpu-v5p", "bf16", 459 / 2.765),
    ],
)
def test_ridge_points(key: str, dtype: str, ridge: float) -> None:
    found = hardware.get(key).ridge_point(dtype)
    assert found.m_as("FLOP/byte") == pytest.approx(ridge)
    assert str(found).endswith("OP/byte")


def test_every_device_answers_for_each_type_it_has() -> None:
    for key in hardware.names():
        device = hardware.get(key)
        assert device.name
        assert device.all_records()
        for dtype in device.dtypes:
            assert device.peak(dtype).is_compatible_with("FLOP/s")
            assert device.peak(dtype.upper()) == device.peak(dtype)
        for dtype, record in device.peaks["sparse_peak"].items():
            assert record.quantity.m_as("FLOP/s") == pytest.approx(
                2 * device.peak(dtype).m_as("FLOP/s"), rel=1e-3
            )


def test_names() -> None:
    assert hardware.H100 is hardware.get("h100") is hardware.get("H100")
    assert hardware.TPU_V5P is hardware.tpu_v5p is hardware.get("TPU_v5p")
    assert {"h100", "a100", "tpu-v5p", "phone-npu"} <= set(hardware.names())
    assert {"H100", "TPU_V5P", "get", "names"} <= set(dir(hardware))
    for name in dir(hardware):
        assert getattr(hardware, name)


def test_what_is_not_there() -> None:
    with pytest.raises(InputError, match="no accelerator 'h101'; there is h100"):
        hardware.get("h101")
    with pytest.raises(AttributeError, match="no accelerator"):
        hardware.XYZ  # noqa: B018
    with pytest.raises(InputError, match="no dense peak for 'fp4'; it has fp64, tf32, fp16, bf16"):
        hardware.H100.peak("fp4")
    with pytest.raises(InputError, match="no dense peak for 'fp16'; it has bf16"):
        hardware.TPU_V5P.ridge_point("fp16")
    with pytest.raises(InputError, match="sparsity for 'fp16'; it has none"):
        hardware.TPU_V5P.sparse_peak("fp16")
    with pytest.raises(InputError, match="no dense peak for 16"):
        hardware.H100.peak(16)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unpublished"):
        hardware.TPU_V5P.tdp  # noqa: B018
    assert hardware.H100.publishes("tdp")
    assert not hardware.TPU_V5P.publishes("tdp")
    with pytest.raises(InputError, match="has no link bandwidth"):
        hardware.get("phone-npu").link_bandwidth  # noqa: B018


def test_a_good_device(load: Callable[[str], dict[str, hardware.Accelerator]]) -> None:
    device = load(GOOD)["made-up"]
    assert device.ridge_point("fp16") == quantity("50 FLOP/byte")
    assert device.memory_bandwidth.provenance is not None
    assert device.memory_bandwidth.provenance.title == "memory bandwidth of Made Up 1"


@pytest.mark.parametrize(
    ("right", "wrong", "sentence"),
    [
        ('name = "Made Up 1"\n', "", "must be a table with a name and a year"),
        ("year = 2024\n", "", "must be a table with a name and a year"),
        ("memory_bandwidth", "memory_bandwith", "unknown field memory_bandwith; known are name,"),
        ("value = 2,", "valu = 2,", "made-up.memory_bandwidth has an unknown field valu"),
        ('"TB/s"', '"TB"', "made-up.memory_bandwidth must be positive and measured in byte/s"),
        ('"TFLOP/s"', '"TFLOP"', "made-up.peak.fp16 must be positive and measured in FLOP/s"),
        ("value = 2,", "value = -2,", "must be positive"),
        ("value = 2,", "value = 0,", "must be positive"),
        (', direction = "each way"', "", 'say so: direction = "each way"'),
        ("each way", "both ways", 'say so: direction = "each way"'),
        ("[made-up.peak]\nfp16 = { value", "peak = { value", "made-up.peak.value must be a table"),
        ('source = "williams2009roofline"\n', "", "made-up.memory_bandwidth has no source"),
    ],
)
def test_a_mistake_is_named(
    load: Callable[[str], dict[str, hardware.Accelerator]], right: str, wrong: str, sentence: str
) -> None:
    assert right in GOOD
    with pytest.raises(InputError) as refusal:
        load(GOOD.replace(right, wrong))
    assert sentence in str(refusal.value)
    assert "made_up.toml: " in str(refusal.value)
