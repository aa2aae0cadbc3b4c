"""The roofline: published points, its two roofs, and the workloads."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from calc import InputError, hardware, inference, machines, models, quantity, roofline

positive = st.floats(1e-3, 1e15)


def test_the_ridge_point_is_where_the_roofs_meet() -> None:
    h100 = hardware.H100
    machine = h100.peak("fp16"), h100.memory_bandwidth
    ridge = roofline.ridge_point(*machine)
    assert ridge == h100.ridge_point("fp16")
    assert roofline.attainable(*machine, ridge) == machine[0]
    assert roofline.bound(*machine, 0.999 * ridge) == "memory"
    assert roofline.bound(*machine, 1.001 * ridge) == "compute"
    around = roofline.bound(*machine, np.array([0.999, 1.001]) * ridge)
    assert list(around) == ["memory", "compute"]


@pytest.mark.parametrize(("kernel", "launch", "gap"), [(1, 5, 0.5), (20, 5, 1), (4, 4.5, 1)])
def test_launches_run_ahead_of_the_device(kernel: float, launch: float, gap: float) -> None:
    """Kernel by kernel: each begins when it is launched, and the one before has ended."""
    launched = free = 0.0
    for _ in range(2000):
        launched += launch
        free = max(launched, free) + kernel + gap
    time = roofline.launched_time(2000, f"{kernel} us", f"{launch} us", f"{gap} us")
    assert time.m_as("us") == pytest.approx(free, rel=1e-2)


def test_gemm_of_the_a100_example() -> None:
    work = roofline.gemm(4096, 4096, 4096)
    assert work.operations == quantity(2 * 4096**3, "FLOP")
    assert work.traffic == quantity(3 * 4096**2 * 2, "byte")
    assert work.intensity == quantity(4096 / 3, "FLOP/byte")
    a100 = hardware.A100
    assert a100.ridge_point("fp16").magnitude == pytest.approx(312e12 / 2.039e12)
    assert roofline.bound(a100.peak("fp16"), a100.memory_bandwidth, work.intensity) == "compute"


def test_gemm_over_batches() -> None:
    batches = np.array([1.0, 64.0, 4096.0])
    intensity = roofline.gemm(batches, 4096, 4096).intensity.magnitude
    expected = 2 * batches * 4096**2 / (2 * (batches * 4096 * 2 + 4096**2))
    np.testing.assert_allclose(intensity, expected)


def test_elementwise_work_and_fusion() -> None:
    relu = roofline.elementwise(1e6)
    assert relu.intensity == quantity("0.25 FLOP/byte")
    a100 = hardware.A100
    share = roofline.utilization(a100.peak("fp16"), a100.memory_bandwidth, relu.intensity)
    assert share.magnitude == pytest.approx(0.25 / (312e12 / 2.039e12))
    vector = roofline.utilization(a100.vector_peak("fp16"), a100.memory_bandwidth, relu.intensity)
    assert vector.magnitude == pytest.approx(0.25 / (78e12 / 2.039e12))
    both = relu + relu
    assert both.intensity == relu.intensity
    assert both.traffic == 2 * relu.traffic


def test_critical_batch_reaches_the_ridge_point() -> None:
    batch = roofline.critical_batch("153 FLOP/byte", 4096, 1024, "2 byte")
    at_ridge = roofline.gemm(batch, 1024, 4096).intensity
    assert at_ridge.magnitude == pytest.approx(153)
    weights_only = roofline.critical_batch_by_weights("153 FLOP/byte", "2 byte")
    assert roofline.weights_only_intensity(weights_only, "2 byte").magnitude == pytest.approx(153)
    assert weights_only < batch


def test_a_layer_too_narrow_never_reaches_the_ridge_point() -> None:
    widths = np.array([16.0, 100.0, 4096.0])
    batches = roofline.critical_batch("153 FLOP/byte", widths, widths, "2 byte").magnitude
    np.testing.assert_array_equal(np.isposinf(batches), [True, True, False])


def test_a_workload_on_a_device_is_its_time_in_parts() -> None:
    h100, work = hardware.H100, roofline.gemm(4096, 64, 4096)
    step = work.on(h100, "half")
    amounts = work.traffic, h100.memory_bandwidth, work.operations, h100.peak("fp16")
    assert step.lower == roofline.execution_time_overlapped(*amounts)
    assert step.upper.m_as("s") == pytest.approx(roofline.execution_time(*amounts).m_as("s"))
    assert step.bound == roofline.bound(h100.peak("fp16"), h100.memory_bandwidth, work.intensity)
    assert list(step.parts) == ["compute", "memory"]
    assert step.rate <= h100.peak("fp16")
    assert step.mfu[0] < step.mfu[1] <= quantity(1, "")
    assert step.throughput == quantity(0, "token/s")  # no tokens were counted
    with pytest.raises(InputError, match=r"write hardware.get\('h100'\)"):
        work.on("h100", "fp16")  # type: ignore[arg-type]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5))
def test_a_time_in_parts_lies_between_its_longest_part_and_their_sum(seconds: list[float]) -> None:
    parts = {f"part {number}": quantity(each, "s") for number, each in enumerate(seconds)}
    step = roofline.StepTime(parts, quantity("1 FLOP"), quantity("1 FLOP/s"))
    assert step.lower.m_as("s") == max(seconds)
    assert step.upper.m_as("s") == pytest.approx(sum(seconds))
    assert parts[step.bound] == step.lower
    assert step.longest == seconds.index(max(seconds))
    arrays = {name: quantity([each.m_as("s"), 1.0], "s") for name, each in parts.items()}
    both = roofline.StepTime(arrays, quantity("1 FLOP"), quantity("1 FLOP/s"))
    assert both.bound.tolist() == [step.bound, "part 0"]


def test_a_step_and_a_workload_print_as_people_read_them() -> None:
    """A decode step of Llama 3 70B: parts, bounds, what is expected, and why nothing is."""
    asked = (models.get("llama-3-70b"), machines.get("dgx-h100"), 4096, 32, 8)
    step = inference.decode(*asked)
    cells = dict(re.split("  +", line) for line in str(step).splitlines())
    assert [*cells] == [*step.parts, "perfect overlap", "no overlap", "expected", "80 % interval"]
    assert cells["perfect overlap"] == f"{step.lower}, bound by memory"
    assert cells["expected"] == f"{step.expected}, with no software's own time"
    assert all(
        f"<th>{name}</th><td>{html.escape(time)}</td>" in step._repr_html_()
        for name, time in cells.items()
    )
    unmeasured = inference.prefill(asked[0], machines.get("dgx-spark"), 4096, devices=8)
    assert (
        str(unmeasured)
        .splitlines()[-1]
        .startswith("not expected     all_reduce across the domains of NVIDIA DGX Spark")
    )
    square = roofline.gemm(4096, 4096, 4096)
    assert str(square) == "137.4 GFLOP and 100.7 MB: 1365 FLOP/byte"
    assert "expected" not in str(square.on(hardware.H100, "bf16"))
    none = roofline.Workload(quantity("3 FLOP"), quantity("0 byte"))
    assert str(none) == "3 FLOP and 0 byte"
