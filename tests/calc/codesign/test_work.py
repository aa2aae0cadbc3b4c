"""Work counted while a step runs, against counts by hand."""

from __future__ import annotations

from calc import codesign
from tests.calc.codesign.small_runs import batch, cross_entropy, network, nn, sgd, torch


def test_operations_of_a_step() -> None:
    """Two for each weight and sample forward, as many for the weights' gradients, and for the
    inputs' gradients but in the first layer."""
    model = network(64, 128, 10)
    trainer = codesign.Trainer(model, sgd(model), cross_entropy)
    with codesign.WorkCounter() as work:
        trainer.step(*batch(32, 64, 10))
    assert work.flop == 2 * 32 * (2 * 64 * 128 + 3 * 128 * 10)


def test_bytes_of_an_operation() -> None:
    """A product reads both factors and writes the result; a view moves nothing."""
    a, b = torch.ones(30, 40), torch.ones(40, 50)
    with codesign.WorkCounter() as work:
        a @ b
    assert work.traffic == 4 * (30 * 40 + 40 * 50 + 30 * 50)
    with codesign.WorkCounter() as work:
        a.t().reshape(40, 30)[:10]
    assert (work.flop, work.traffic) == (0, 0)
    with codesign.WorkCounter() as work:
        a.add_(1.0)
    assert work.traffic == 2 * 4 * 30 * 40


def test_parameters_are_not_saved_again() -> None:
    linear = nn.Linear(100, 100, bias=False)
    x = torch.ones(2, 100, requires_grad=True)
    assert codesign.saved_tensor_bytes(lambda: linear(x)) == 2 * 100 * 4
