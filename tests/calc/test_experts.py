"""Expert parallelism: against a simulation, published kernels and published deployments."""

from __future__ import annotations

import numpy as np
import pytest

from calc import (
    communication,
    experts,
    inference,
    machines,
    models,
    parallelism,
    published,
    quantity,
)
from calc.core.errors import InputError
from calc.steps.job import Formats

FP8 = "8.25 bit"  # with a scale of four bytes for 128 numbers
DGX = machines.get("dgx-h100")
V3 = models.get("deepseek-v3")


def low_latency() -> dict[int, dict[str, float]]:
    """Return DeepEP's measured times of 128 tokens on H800s, by the number of devices."""
    measured = {}
    for row in published.rows("collective"):
        if row.id.startswith("deepep-v1-lowlat"):
            devices = row.number("num_devices")
            assert devices
            measured[int(devices)] = row.measured
    return measured


def test_bytes_are_those_that_a_benchmark_divides_by_its_time() -> None:
    rows = low_latency()
    assert sorted(rows) == [8, 16, 32, 64, 128, 256]
    sizes = {"dispatch": FP8, "combine": "2 byte"}
    for measured in rows.values():
        for name, size in sizes.items():
            # All copies count, those that stay on a device too.
            each = parallelism.expert_traffic(128, 7168, 8, 1e9, size, size).m_as("GB") / 2
            time = measured[f"{name}_latency"] * 1e-6
            assert each / time == pytest.approx(measured[f"{name}_rdma_bandwidth"], rel=0.025)


def test_the_start_up_of_dispatches_predicts_combines() -> None:
    for devices, measured in low_latency().items():
        if devices == 8:
            continue  # partly by NVLink, whose bandwidth in an H800 is another
        for name, size in (("dispatch", FP8), ("combine", "2 byte")):
            sent = 128 * 7168 * 8 * quantity(size)
            least, expected = communication.expert_exchange(DGX, sent, devices)
            time = measured[f"{name}_latency"]
            assert least.m_as("us") < time
            assert expected.m_as("us") == pytest.approx(time, rel=0.15)


def test_devices_reached_against_different_experts() -> None:
    rng = np.random.default_rng(1)
    for devices in (4, 8, 32):
        chosen = np.array([rng.permutation(256)[:8] for _ in range(4000)]) * devices // 256
        reached = np.mean([len(set(row)) for row in chosen])
        mean = experts.devices_reached(8, devices).magnitude
        assert mean == pytest.approx(reached, rel=0.025)
        assert mean < reached * 1.003
    assert experts.devices_reached(8, 1).magnitude == 1


@pytest.mark.parametrize(("mean", "bins"), [(32, 256), (576, 144), (2048, 32)])
def test_the_fullest_of_many_against_a_simulation(mean: int, bins: int) -> None:
    rng = np.random.default_rng(2)
    loads = rng.multinomial(mean * bins, np.full(bins, 1 / bins), size=300).max(axis=1)
    assert experts.fullest_load(mean, bins).magnitude == pytest.approx(loads.mean(), rel=0.06)


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.1, 1.25])
def test_what_is_dropped_against_a_simulation(factor: float) -> None:
    rng = np.random.default_rng(3)
    loads = rng.multinomial(64 * 64, np.full(64, 1 / 64), size=2000)
    dropped = np.maximum(loads - factor * 64, 0).sum() / loads.sum()
    share = experts.dropped_share(64, factor).magnitude
    assert share == pytest.approx(dropped, rel=0.08, abs=3e-4)


def test_experts_are_bound_by_arithmetic_from_the_critical_tokens_on() -> None:
    ridge = DGX.device.ridge_point("fp8")
    most = experts.critical_tokens(ridge, 256, 8, "1 byte").magnitude
    each = experts.tokens_per_expert(most / 144, 144, 256, 8).magnitude
    # The products of an expert: 2 operations for each of its weights and tokens, a byte for each.
    assert 2 * each == pytest.approx(ridge.magnitude)


# Sequences of a device, context, devices, and tokens a second of a node of eight, as SGLang's blog
# of May 2025 puts them side by side; the first is DeepSeek's own service, whose batch is what its
# rate and its 20 to 22 tokens/s of a stream make.
DEPLOYMENTS = [
    (88, 4989, 144, 14_800, 0.05),
    (128, 4096, 128, 18_598, 0.08),
    (256, 2000, 72, 22_282, 0.08),
]


@pytest.mark.parametrize(("sequences", "context", "devices", "rate", "within"), DEPLOYMENTS)
def test_published_deployments(
    sequences: int, context: int, devices: int, rate: float, within: float
) -> None:
    step = inference.expert_decode(
        V3, DGX, context, sequences, devices, Formats("fp8", "fp8", dispatch=FP8)
    )
    measured = 8 * sequences / rate
    assert step.expected is not None
    assert step.lower.m_as("s") < measured
    assert step.expected.m_as("s") == pytest.approx(measured, rel=within)


def test_one_device_is_a_plain_decode() -> None:
    mixtral = models.get("mixtral-8x7b")
    alone = inference.expert_decode(mixtral, DGX, 2048, 16, 1, Formats())
    plain = inference.decode(mixtral, DGX.device, 2048, 16)
    assert alone.parts["links"].magnitude == 0
    for part in ("compute", "memory"):
        assert alone.parts[part].m_as("s") == pytest.approx(plain.parts[part].m_as("s"))


def test_more_devices_read_fewer_weights_and_arrays_work() -> None:
    few, many = (inference.expert_decode(V3, DGX, 4096, 64, n).traffic for n in (32, 256))
    assert many < few
    step = inference.expert_decode(V3, DGX, 4096, quantity([32, 64], ""), 64)
    assert step.lower.shape == (2,)
    assert step.expected is None
    assert "one point" in step.not_expected


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="has no experts"):
        inference.expert_decode(models.get("llama-3-8b"), DGX, 2048, 8, 8)
    with pytest.raises(InputError, match=r"machine of calc\.machines"):
        inference.expert_decode(V3, "dgx-h100", 2048, 8, 8)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="devices that share out"):
        inference.expert_decode(V3, DGX, 2048, 8, 1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="domains"):
        inference.expert_decode(V3, DGX, 2048, 8, 81)


@pytest.mark.parametrize("batch", [1, 4, 16, 64])
@pytest.mark.parametrize("devices", [4, 8, 32])
def test_the_fullest_experts_against_a_simulation(batch: int, devices: int) -> None:
    rng = np.random.default_rng(3)
    held = 256 // devices
    fullest = []
    for _ in range(400):
        woken = np.unique([rng.permutation(256)[:8] for _ in range(batch)])
        fullest.append(np.bincount(woken // held, minlength=devices).max())
    mean = experts.experts_used(256, 8 / 256, batch) / devices
    law = experts.fullest_experts(mean, held, devices).magnitude
    assert law == pytest.approx(np.mean(fullest), rel=0.12 if mean >= 1 else 0.25)
