"""Checkpoints: a resumed run is the uninterrupted one, and no kill leaves a broken file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calc import InputError, codesign
from tests.calc.codesign.small_runs import batch, cross_entropy, network, nn, sgd, torch, weights

ROOT = Path(__file__).resolve().parents[3]
BATCHES = [batch(16, 24, 10, seed=seed) for seed in range(8)]


def plain(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(24, 48), nn.Dropout(0.3), nn.ReLU(), nn.Linear(48, 10))
    return codesign.Trainer(model, torch.optim.Adam(model.parameters()), cross_entropy)


def mixed(seed=0):
    """Return a trainer whose scale overflows at first and grows back, so that its state counts."""
    model = network(24, 48, 10, seed=seed)
    return codesign.MixedPrecisionTrainer(
        model,
        torch.optim.Adam(model.parameters()),
        cross_entropy,
        dtype="float16",
        scaler={"init_scale": 2.0**24, "growth_interval": 2},
    )


def dynamic(seed=0):
    model = network(24, 48, 10, seed=seed)
    return codesign.DynamicBatchSizeTrainer(
        model, sgd(model), cross_entropy, micro_batch=16, patience=2
    )


def offloaded(seed=0):
    model = network(24, 48, 10, seed=seed)
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    return codesign.Trainer(model, optimizer, cross_entropy)


@pytest.mark.parametrize("build", [plain, mixed, dynamic, offloaded])
@pytest.mark.parametrize("stop", [1, 3, 5])
def test_resumed_is_uninterrupted(build, stop: int, tmp_path: Path) -> None:
    with codesign.SimulatedMemory("4 kB" if build is dynamic else "1 GB"):
        whole = build()
        torch.manual_seed(7)
        wanted = whole.fit(BATCHES)
        first = build()
        torch.manual_seed(7)
        first.fit(BATCHES[:stop])
        codesign.save_checkpoint(first, tmp_path / "run.pt")
        torch.rand(100)
        second = build(seed=1)
        codesign.load_checkpoint(second, tmp_path / "run.pt")
        resumed = second.fit(BATCHES[stop:])
    assert torch.equal(weights(second.model), weights(whole.model))
    records = [(step.number, step.loss, step.parts, step.events) for step in resumed]
    assert records == [(s.number, s.loss, s.parts, s.events) for s in wanted[stop:]]
    if build is mixed:
        assert second.scale == whole.scale
        assert second.overflows == whole.overflows > 0
    if build is dynamic:
        assert second.changes == whole.changes != []


def test_without_the_scalers_state_it_would_be_another_run(tmp_path: Path) -> None:
    whole, first, second = mixed(), mixed(), mixed()
    wanted = whole.fit(BATCHES)
    first.fit(BATCHES[:5])
    codesign.save_checkpoint(first, tmp_path / "run.pt")
    codesign.load_checkpoint(second, tmp_path / "run.pt")
    second.scaler = mixed().scaler
    resumed = second.fit(BATCHES[5:])
    assert [step.updated for step in resumed] != [step.updated for step in wanted[5:]]


def test_another_model_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    codesign.save_checkpoint(plain(), tmp_path / "run.pt")
    wider = network(24, 64, 10)
    trainer = codesign.Trainer(wider, sgd(wider), cross_entropy)
    before = weights(wider)
    with pytest.raises(InputError, match=r"another model: 0\.bias is 48 in it and 64 here"):
        codesign.load_checkpoint(trainer, tmp_path / "run.pt")
    deeper = network(24, 48, 48, 10)
    trainer = codesign.Trainer(deeper, sgd(deeper), cross_entropy)
    with pytest.raises(InputError, match=r"is of another model: .* is missing"):
        codesign.load_checkpoint(trainer, tmp_path / "run.pt")
    assert torch.equal(weights(wider), before)


def test_another_precision_is_refused(tmp_path: Path) -> None:
    model = network(24, 48, 10)
    bf16 = codesign.MixedPrecisionTrainer(model, sgd(model), cross_entropy)
    codesign.save_checkpoint(bf16, tmp_path / "run.pt")
    with pytest.raises(InputError, match="computes in FP16, and the state is of one in BF16"):
        codesign.load_checkpoint(mixed(), tmp_path / "run.pt")


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    codesign.save_checkpoint(plain(), tmp_path / "run.pt")
    whole = (tmp_path / "run.pt").read_bytes()
    cut = tmp_path / "cut.pt"
    trainer = plain(seed=3)
    before = weights(trainer.model)
    for length in (0, 1, 10, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\.pt is no checkpoint, or was cut off"):
            codesign.load_checkpoint(trainer, cut)
    assert torch.equal(weights(trainer.model), before)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.pt"
    with pytest.raises(InputError, match="there is no such file"):
        codesign.load_checkpoint(plain(), other)
    other.write_text("step 1\n")
    with pytest.raises(InputError, match="is no checkpoint"):
        codesign.load_checkpoint(plain(), other)
    for thing in ([1, 2], {"model": {}}):
        torch.save(thing, other)
        with pytest.raises(InputError, match="was not written by save_checkpoint"):
            codesign.load_checkpoint(plain(), other)
    with pytest.raises(InputError, match="cannot write"):
        codesign.save_checkpoint(plain(), tmp_path / "nowhere" / "run.pt")


KILLED_IN = ["torch.save", "half of the file", "os.fsync", "os.replace", "after os.replace"]
SAVE_AND_DIE = """if True:
    import os, signal, sys
    from calc.codesign import training_checkpoints
    from tests.calc.codesign.test_checkpoints import plain
    moment, path = sys.argv[1:]
    def die(*arguments, **named):
        os.kill(os.getpid(), signal.SIGKILL)
    def half(state, file):
        real(state, file)
        file.truncate(file.tell() // 2)
        file.flush()
        die()
    real, replace = training_checkpoints.torch.save, os.replace
    trainer = plain()
    trainer.steps = 2
    if moment == "torch.save":
        training_checkpoints.torch.save = die
    elif moment == "half of the file":
        training_checkpoints.torch.save = half
    elif moment == "after os.replace":
        os.replace = lambda *names: (replace(*names), die())
    else:
        setattr(os, moment.removeprefix("os."), die)
    training_checkpoints.save_checkpoint(trainer, path)
"""


@pytest.mark.parametrize("moment", KILLED_IN)
def test_a_kill_at_each_stage_leaves_a_whole_file(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    old = plain()
    old.steps = 1
    codesign.save_checkpoint(old, path)
    died = subprocess.run([sys.executable, "-c", SAVE_AND_DIE, moment, str(path)], cwd=ROOT)
    assert died.returncode == -signal.SIGKILL
    loaded = plain(seed=1)
    codesign.load_checkpoint(loaded, path)
    assert loaded.steps == (2 if moment == "after os.replace" else 1)
    codesign.save_checkpoint(loaded, path)  # and whatever was left beside it is in nobody's way
    assert [each.name for each in tmp_path.iterdir()] == ["run.pt"]


SAVE_FOR_EVER = """if True:
    import sys
    from calc.codesign import training_checkpoints
    from tests.calc.codesign.test_checkpoints import plain
    trainer = plain()
    while True:
        trainer.steps += 1
        with training_checkpoints.torch.no_grad():
            trainer.model[0].weight.fill_(trainer.steps)
        training_checkpoints.save_checkpoint(trainer, sys.argv[1])
        print(trainer.steps, flush=True)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_a_whole_file(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    saving = subprocess.Popen(
        [sys.executable, "-c", SAVE_FOR_EVER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert saving.stdout
    saving.stdout.readline()  # there is one
    time.sleep(random.Random(seed).uniform(0.0, 0.05))
    os.kill(saving.pid, signal.SIGKILL)
    printed = saving.stdout.read().split()
    saving.stdout.close()
    saving.wait()
    loaded = plain(seed=1)
    codesign.load_checkpoint(loaded, path)
    assert loaded.steps - int((printed or ["1"])[-1]) in (0, 1)
    assert torch.equal(loaded.model[0].weight, torch.full((48, 24), float(loaded.steps)))
