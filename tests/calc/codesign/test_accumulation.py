"""Gradient accumulation: equal to the large batch, and what breaks that."""

from __future__ import annotations

import warnings

import pytest

from calc import InputError, codesign
from tests.calc.codesign.small_runs import (
    batch,
    cross_entropy,
    gradients,
    network,
    nn,
    reference_gradients,
    sgd,
    torch,
    weights,
)

WIDTHS = (24, 48, 48, 10)


def accumulated(model, x, y, micro_batch, loss=cross_entropy, **options):
    """Gradients of one step in parts."""
    trainer = codesign.GradientAccumulationTrainer(
        model, sgd(model), loss, micro_batch=micro_batch, **options
    )
    _, parts, _ = trainer.gradients(x, y)
    return gradients(model), parts


def relative_error(gradient, wanted) -> float:
    return float((gradient - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("micro_batch", [1, 3, 7, 16, 29, 64, 1000])
@pytest.mark.parametrize("samples", [1, 29, 64])
def test_fp64_equals_the_large_batch(samples: int, micro_batch: int) -> None:
    model = network(*WIDTHS, dtype=torch.float64)
    x, y = batch(samples, 24, 10, torch.float64)
    wanted = reference_gradients(model, x, y)
    gradient, parts = accumulated(model, x, y, micro_batch)
    assert parts == -(-samples // micro_batch)
    assert relative_error(gradient, wanted) <= 1e-12


@pytest.mark.parametrize("micro_batch", [3, 7, 16, 29])
@pytest.mark.parametrize("seed", range(5))
def test_fp32_equals_the_large_batch_to_4_ulp(micro_batch: int, seed: int) -> None:
    model = network(*WIDTHS, seed=seed)
    x, y = batch(64, 24, 10, seed=seed)
    wanted = reference_gradients(model, x, y)
    gradient, _ = accumulated(model, x, y, micro_batch)
    largest = wanted.abs().max().float()
    ulp = float(torch.nextafter(largest, largest * 2) - largest)
    assert float((gradient - wanted).abs().max()) <= 4 * ulp


def test_the_weights_after_steps_are_the_large_batchs() -> None:
    whole, parts = (network(*WIDTHS, dtype=torch.float64) for _ in range(2))
    plain = codesign.Trainer(whole, torch.optim.Adam(whole.parameters()), cross_entropy)
    split = codesign.GradientAccumulationTrainer(
        parts, torch.optim.Adam(parts.parameters()), cross_entropy, micro_batch=5
    )
    for seed in range(5):
        data = batch(32, 24, 10, torch.float64, seed)
        one, other = plain.step(*data), split.step(*data)
        assert one.loss == pytest.approx(other.loss, rel=1e-12)
    assert relative_error(weights(parts), weights(whole)) <= 1e-10


def test_dividing_by_the_number_of_parts_is_wrong_for_ragged_ones() -> None:
    """Two parts, of 64 samples and of few: each would count half."""
    wrong = []
    for rest in (1, 4, 16):
        model = network(*WIDTHS, dtype=torch.float64)
        x, y = batch(64 + rest, 24, 10, torch.float64)
        wanted = reference_gradients(model, x, y)
        gradient, parts = accumulated(model, x, y, 64)
        halves = [
            reference_gradients(model, x[:64], y[:64]),
            reference_gradients(model, x[64:], y[64:]),
        ]
        assert parts == 2
        assert relative_error(gradient, wanted) <= 1e-12
        wrong.append(relative_error(sum(halves) / 2, wanted))
    assert min(wrong) > 0.2


def test_batch_norm_breaks_equality_and_is_named() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 16), nn.BatchNorm1d(16), nn.Linear(16, 10)).double()
    x, y = batch(32, 24, 10, torch.float64)
    wanted = reference_gradients(model, x, y)
    with pytest.warns(UserWarning, match=r"1 \(BatchNorm1d\) normalises by the part's statistics"):
        gradient, _ = accumulated(model, x, y, 8)
    assert relative_error(gradient, wanted) > 1e-3
    model.eval()  # with fixed statistics a sample's loss is its own again
    wanted = reference_gradients(model, x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient, _ = accumulated(model, x, y, 8)
    assert relative_error(gradient, wanted) <= 1e-12


def test_dropout_is_named_once_and_only_where_it_drops() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 16), nn.Dropout(0.5), nn.Linear(16, 10), nn.Dropout(0.0))
    assert codesign.breaks_equality(model) == ["1 (Dropout) draws a mask for each part"]
    assert codesign.breaks_equality(model.eval()) == []
    model.train()
    trainer = codesign.GradientAccumulationTrainer(model, sgd(model), cross_entropy, micro_batch=8)
    with pytest.warns(UserWarning, match="draws a mask") as warned:
        trainer.fit([batch(32, 24, 10)], epochs=3)
    assert len(warned) == 1
    assert trainer.step(*batch(8, 24, 10)).parts == 1


def test_layer_norm_breaks_nothing() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 16), nn.LayerNorm(16), nn.Linear(16, 10)).double()
    x, y = batch(32, 24, 10, torch.float64)
    wanted = reference_gradients(model, x, y)
    assert relative_error(accumulated(model, x, y, 5)[0], wanted) <= 1e-12


def test_skipped_targets_are_refused_and_right_with_their_own_weights() -> None:
    loss = nn.CrossEntropyLoss()  # skips −100 without being asked
    model = network(*WIDTHS, dtype=torch.float64)
    x, y = batch(32, 24, 10, torch.float64)
    accumulated(model, x, y, 8, loss)  # none is skipped
    y[:13] = -100
    with pytest.raises(InputError, match="skips targets or weights classes"):
        accumulated(model, x, y, 7, loss)
    wanted = reference_gradients(model, x, y, loss)
    gradient, _ = accumulated(model, x, y, 16, loss, weigh=lambda each: (each != -100).sum())
    assert relative_error(gradient, wanted) <= 1e-12
    # The first part of 8 has no target left that counts.
    gradient, _ = accumulated(model, x, y, 8, loss, weigh=lambda each: (each != -100).sum())
    assert relative_error(gradient, wanted) <= 1e-12
    by_samples, _ = accumulated(model, x, y, 16, loss, weigh=lambda each: torch.tensor(len(each)))
    assert relative_error(by_samples, wanted) > 0.05
    with pytest.raises(InputError, match="no target of the batch counts"):
        accumulated(model, x[:13], y[:13], 8, loss, weigh=lambda each: (each != -100).sum())


def test_weighted_classes_are_refused_and_right_with_their_own_weights() -> None:
    classes = torch.linspace(0.1, 3.0, 10, dtype=torch.float64)
    loss = nn.CrossEntropyLoss(classes)
    model = network(*WIDTHS, dtype=torch.float64)
    x, y = batch(32, 24, 10, torch.float64)
    with pytest.raises(InputError, match="weights classes"):
        accumulated(model, x, y, 8, loss)
    wanted = reference_gradients(model, x, y, loss)
    gradient, _ = accumulated(model, x, y, 8, loss, weigh=lambda each: classes[each].sum())
    assert relative_error(gradient, wanted) <= 1e-12


def test_a_loss_that_is_no_mean_is_refused() -> None:
    model = network(*WIDTHS)
    with pytest.raises(InputError, match="its reduction is sum"):
        accumulated(model, *batch(32, 24, 10), 8, nn.CrossEntropyLoss(reduction="sum"))


def test_clipping_acts_once_a_step_and_part_by_part_would_be_another_gradient() -> None:
    x, y = batch(32, 24, 10, torch.float64)
    limit = 0.1
    whole, parts = (network(*WIDTHS, dtype=torch.float64) for _ in range(2))
    codesign.Trainer(whole, sgd(whole), cross_entropy, clip_norm=limit).step(x, y)
    codesign.GradientAccumulationTrainer(
        parts, sgd(parts), cross_entropy, micro_batch=8, clip_norm=limit
    ).step(x, y)
    assert relative_error(weights(parts), weights(whole)) <= 1e-12
    model = network(*WIDTHS, dtype=torch.float64)
    wanted = reference_gradients(model, x, y)
    each = [reference_gradients(model, x[at : at + 8], y[at : at + 8]) for at in range(0, 32, 8)]
    by_part = sum(part * min(1, limit / float(part.norm())) for part in each) / 4
    assert relative_error(by_part, wanted * limit / float(wanted.norm())) > 0.02


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "8"])
def test_a_micro_batch_is_a_whole_number(wrong) -> None:
    model = network(*WIDTHS)
    with pytest.raises(InputError, match="micro_batch must be a whole number from 1"):
        codesign.GradientAccumulationTrainer(model, sgd(model), cross_entropy, micro_batch=wrong)
