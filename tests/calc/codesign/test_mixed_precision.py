"""Mixed precision: what is computed in which format, and what happens to an overflow."""

from __future__ import annotations

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


def trainer(model, loss=cross_entropy, **options):
    return codesign.MixedPrecisionTrainer(model, sgd(model), loss, **options)


class Noted(nn.Module):
    """Notes the format that its input comes in."""

    def forward(self, x):
        self.dtype = x.dtype
        return x


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_are_in_16_bits_and_weights_in_32(dtype: str) -> None:
    noted = Noted()
    model = nn.Sequential(network(8, 16), noted, nn.Linear(16, 4))
    ours = trainer(model, dtype=dtype)
    x, y = batch(12, 8, 4)
    step = ours.step(x, y)
    assert noted.dtype == getattr(torch, dtype)
    assert {each.dtype for each in model.parameters()} == {torch.float32}
    assert {each.grad.dtype for each in model.parameters()} == {torch.float32}
    assert step.updated


@pytest.mark.parametrize(("dtype", "error"), [("bfloat16", 2**-7), ("float16", 2**-10)])
def test_gradients_are_fp32s_but_for_the_formats_rounding(dtype: str, error: float) -> None:
    torch.manual_seed(0)  # no ReLU: one that a rounding switches makes a larger difference
    model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 10))
    x, y = batch(64, 24, 10)
    wanted = reference_gradients(model, x, y)
    ours = trainer(model, dtype=dtype, scaler={"init_scale": 2.0**10})
    ours.step(x, y)
    gradient = gradients(model)
    assert 0 < float((gradient - wanted).norm() / wanted.norm()) <= error


def test_the_scale_rescues_gradients_that_would_vanish() -> None:
    """Gradients of 2^-26 are below FP16's smallest subnormal, 2^-24."""
    x, y = torch.ones(1, 4), torch.full((1, 4), 2.0**-26)

    def loss(out, at):
        return (out * at.to(out.dtype) if at.min() > 2**-24 else (out.float() * at)).sum()

    for scale, survives in ((1.0, False), (2.0**12, True)):
        model = nn.Linear(4, 4, bias=False)
        trainer(model, loss, dtype="float16", scaler={"init_scale": scale}).step(x, y)
        grads = model.weight.grad
        assert bool((grads == 2.0**-26).all() if survives else (grads == 0).all())


def test_an_overflow_leaves_the_weights_and_halves_the_scale() -> None:
    model = network(8, 16, 4)
    ours = trainer(model, dtype="float16", scaler={"init_scale": 2.0**30})
    x, y = batch(12, 8, 4)
    before, steps = weights(model), []
    while not steps or not steps[-1].updated:
        unchanged = torch.equal(weights(model), before)
        assert unchanged
        steps.append(ours.step(x, y))
    lost = len(steps) - 1
    assert lost > 3
    assert [step.events for step in steps] == [("overflow",)] * lost + [()]
    assert ours.scale == 2.0 ** (30 - lost)
    assert (ours.overflows, ours.overflow_rate) == (lost, lost / (lost + 1))
    assert not torch.equal(weights(model), before)


def test_bfloat16_needs_no_scale() -> None:
    ours = trainer(network(8, 16, 4))
    ours.step(*batch(12, 8, 4))
    assert (ours.scale, ours.overflows) == (1.0, 0)


def test_clipping_sees_gradients_without_their_scale() -> None:
    lengths = []
    for scale in (2.0**4, 2.0**8):
        model = network(8, 16, 4)
        before = weights(model)
        trainer(model, dtype="float16", scaler={"init_scale": scale}, clip_norm=0.01).step(
            *batch(12, 8, 4)
        )
        lengths.append(float((weights(model) - before).norm()))
    assert lengths == pytest.approx([0.001, 0.001], rel=1e-3)


def test_a_forward_pass_that_overflows_is_refused_with_what_may_help() -> None:
    model = network(8, 16, 4)
    x, y = batch(12, 8, 4)
    with pytest.raises(InputError, match="or BF16, whose range is FP32's, may help"):
        trainer(model, dtype="float16").step(x * 1e6, y)
    assert trainer(model).step(x * 1e6, y).updated


def test_levers_compose_in_one_class() -> None:
    """Each changes another part of the step, so a class with two bases has both."""

    class Both(codesign.MixedPrecisionTrainer, codesign.GradientAccumulationTrainer):
        pass

    x, y = batch(40, 24, 10)
    whole, split = network(24, 48, 10), network(24, 48, 10)
    trainer(whole).step(x, y)
    both = Both(split, sgd(split), cross_entropy, dtype="bfloat16", micro_batch=9)
    assert both.step(x, y).parts == 5
    wanted = gradients(whole)
    assert float((gradients(split) - wanted).norm() / wanted.norm()) <= 2**-7


@pytest.mark.parametrize("wrong", ["fp8", "float32", None, 16])
def test_another_format_is_refused(wrong) -> None:
    with pytest.raises(InputError, match=r"mixed precision is in BF16 or FP16|there is no format"):
        trainer(network(8, 4), dtype=wrong)
