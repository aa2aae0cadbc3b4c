"""Several processes: the gradient of one, for uneven shards too, and what is refused in all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from calc import InputError, codesign
from calc.codesign.data_parallel import predict_scaling
from tests.calc.codesign.processes import DTYPES, PROCESSES, SHARDS, data
from tests.calc.codesign.small_runs import (
    cross_entropy,
    network,
    reference_gradients,
    sgd,
    torch,
    weights,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Return what each process has found; they run once."""
    folder = tmp_path_factory.mktemp("processes")
    command = [sys.executable, "-m", "tests.calc.codesign.processes"]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(folder)], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for rank in range(PROCESSES)
    ]
    for each in running:
        _, errors = each.communicate(timeout=240)
        assert each.returncode == 0, errors
    return [torch.load(folder / f"{rank}.pt") for rank in range(PROCESSES)]


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("kind", DTYPES)
def test_gradients_are_one_processs(processes, shards: str, kind: str) -> None:
    model = network(24, 48, 10, dtype=DTYPES[kind])
    x, y = data(DTYPES[kind])
    wanted = reference_gradients(model, x, y)
    loss = cross_entropy(model(x), y).item()
    for each in processes:
        got = each[f"{shards}, {kind}"]
        assert got["loss"] == pytest.approx(loss, rel=1e-6)
        error = (got["gradients"] - wanted).abs().max()
        if kind == "fp64":
            assert float((got["gradients"] - wanted).norm() / wanted.norm()) <= 1e-12
        else:
            largest = wanted.abs().max().float()
            assert float(error) <= 4 * float(torch.nextafter(largest, largest * 2) - largest)


def test_the_plain_mean_would_be_wrong_for_uneven_shards() -> None:
    model = network(24, 48, 10, dtype=torch.float64)
    x, y = data(torch.float64)
    wanted = reference_gradients(model, x, y)
    first, _ = SHARDS["uneven"]
    halves = [
        reference_gradients(model, *part)
        for part in ((x[:first], y[:first]), (x[first:], y[first:]))
    ]
    assert float((sum(halves) / 2 - wanted).norm() / wanted.norm()) > 0.1


def test_training_is_one_processs_and_the_same_in_all(processes) -> None:
    model = network(24, 48, 10, dtype=torch.float64)
    optimizer = torch.optim.Adam(model.parameters())
    codesign.Trainer(model, optimizer, cross_entropy, clip_norm=0.1).fit(
        [data(torch.float64)], epochs=5
    )
    for name in ("trained", "after"):
        one, other = (torch.cat([w.flatten() for w in each[name]["weights"]]) for each in processes)
        assert torch.equal(one, other)
        if name == "trained":
            assert torch.allclose(one, weights(model), rtol=1e-9, atol=1e-12)


def test_what_one_process_cannot_do_is_refused_in_all(processes) -> None:
    wanted = {
        "no samples": "step 6: every process needs a sample that counts; the processes have"
        " 0 and 32",
        "batches": "fit(): the processes have different numbers of batches, 3 and 2, and would wait"
        " for each other for ever; give each as many",
        "no length": "fit(): of several processes, each needs a loader with a length",
        "batch norm": "1 (BatchNorm1d) would normalise by the statistics of each process's own"
        " rows; convert it by torch.nn.SyncBatchNorm on GPUs, or use LayerNorm or GroupNorm",
        "not a number": "step 6: the loss was nan, so the weights were left as they were; a smaller"
        " learning rate may help",
    }
    for each in processes:
        assert each["refused"] == wanted


def test_one_process_alone_is_told_how_to_start_several(monkeypatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    model = network(8, 4)
    with pytest.raises(InputError, match="start them with torchrun"):
        codesign.MultiGPUTrainer(model, sgd(model), cross_entropy)


def test_the_prediction_is_amdahls_and_the_rings() -> None:
    """The step is 1.6 s, a tenth of it serial; 4 processes send 4 MB at 10 MB/s without latency."""
    prediction = predict_scaling("1.6 s", 0.1, "4 MB", 4, "10 MB/s", "0 s")
    assert prediction.amdahl.m_as("") == pytest.approx(1 / (0.1 + 0.9 / 4))
    assert prediction.all_reduce.m_as("s") == pytest.approx(2 * 3 * 0.1)
    step = 1.6 * 0.325 + 0.6
    assert prediction.speedup.m_as("") == pytest.approx(1.6 / step)
    assert prediction.efficiency.m_as("") == pytest.approx(1.6 * 0.325 / step)
    hidden = predict_scaling("1.6 s", 0.1, "4 MB", 4, "10 MB/s", "0 s", overlap=1)
    assert hidden.speedup.m_as("") == pytest.approx(1.6 / 0.6)
