"""The step that all trainers share: plain torch's, and what it refuses."""

from __future__ import annotations

import pytest

from calc import InputError, codesign
from tests.calc.codesign.small_runs import batch, cross_entropy, network, sgd, torch, weights


def trainer(**options):
    model = network(8, 16, 4)
    return codesign.Trainer(model, sgd(model), cross_entropy, **options)


def test_a_step_is_torchs_own() -> None:
    x, y = batch(12, 8, 4)
    ours, theirs = trainer(), network(8, 16, 4)
    optimizer = sgd(theirs)
    for number in range(1, 4):
        step = ours.step(x, y)
        loss = cross_entropy(theirs(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert (step.number, step.samples, step.parts, step.updated) == (number, 12, 1, True)
        assert step.loss == loss.item()
        assert torch.equal(weights(ours.model), weights(theirs))


def test_fit_tells_of_every_step() -> None:
    x, y = batch(12, 8, 4)
    reported = []
    steps = trainer().fit([(x[:6], y[:6]), (x[6:], y[6:])], epochs=3, on_step=reported.append)
    assert reported == steps
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6]
    assert steps[-1].loss < steps[0].loss


def test_clipping_limits_the_step() -> None:
    clipped = trainer(clip_norm=0.01)
    before = weights(clipped.model)
    clipped.step(*batch(12, 8, 4))
    assert float((weights(clipped.model) - before).norm()) == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_an_empty_loader_is_refused() -> None:
    with pytest.raises(InputError, match="the loader gave no batch"):
        trainer().fit([])
    x, y = batch(4, 8, 4)
    with pytest.raises(InputError, match="empty or used up"):  # in its second epoch
        trainer().fit(iter([(x, y)]), epochs=2)


def test_an_empty_or_uneven_batch_is_refused() -> None:
    x, y = batch(4, 8, 4)
    with pytest.raises(InputError, match="got 0 samples and 0 targets"):
        trainer().step(x[:0], y[:0])
    with pytest.raises(InputError, match="got 4 samples and 3 targets"):
        trainer().step(x, y[:3])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_changes_no_weight(bad: float) -> None:
    x, y = batch(4, 8, 4)
    x[2, 3] = bad
    broken = trainer()
    before = weights(broken.model)
    with pytest.raises(InputError, match="step 1: the loss was nan, so the weights were left"):
        broken.step(x, y)
    assert torch.equal(weights(broken.model), before)
    assert all(each.grad is None for each in broken.model.parameters())
