"""Shapes for matrix units: the multiples, what padding costs, and outputs that stay equal."""

from __future__ import annotations

import pytest

from calc import InputError, codesign
from tests.calc.codesign.small_runs import batch, cross_entropy, network, nn, sgd, torch

# NVIDIA's guide to matrix multiplication, table 1: with the least multiple, and best on an A100.
TABLE = [
    (torch.int8, 16, 128),
    (torch.float16, 8, 64),
    (torch.bfloat16, 8, 64),
    (torch.float32, 4, 32),
    (torch.float64, 2, 16),
]


@pytest.mark.parametrize(("dtype", "least", "best"), TABLE)
def test_multiples_are_those_of_nvidias_table(dtype, least: int, best: int) -> None:
    assert codesign.tensor_core_multiple(dtype) == least
    assert codesign.tensor_core_multiple(dtype, best=True) == best
    assert codesign.is_tensor_core_compatible(3 * least, 5 * least, dtype=dtype)
    assert not codesign.is_tensor_core_compatible(3 * least, 5 * least + 1, dtype=dtype)


def test_the_device_matters() -> None:
    assert codesign.tensor_core_multiple(torch.float16, "volta", best=True) == 8
    assert codesign.tensor_core_multiple(torch.float8_e4m3fn, "hopper") == 16
    with pytest.raises(InputError, match=r"of volta do not compute in torch\.bfloat16"):
        codesign.tensor_core_multiple(torch.bfloat16, "volta")
    with pytest.raises(InputError, match="volta, turing, ampere, hopper or cuda; got 'h100'"):
        codesign.tensor_core_multiple(torch.float16, "h100")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="there is no CUDA device here"):
            codesign.tensor_core_multiple(torch.float16, "cuda")


@pytest.mark.parametrize(("size", "padded"), [(1, 8), (8, 8), (9, 16), (10, 16), (50257, 50264)])
def test_padding_is_the_next_multiple(size: int, padded: int) -> None:
    assert codesign.pad_to_tensor_core_multiple(size, torch.float16) == padded


def test_ten_classes_cost_sixty_percent() -> None:
    (finding,) = codesign.validate_model_for_tensor_cores(network(64, 128, 10), torch.float16)
    assert (finding.name, finding.sizes, finding.padded) == ("2", (128, 10), (128, 16))
    assert finding.extra_work == pytest.approx(0.6)
    x, _ = batch(16, 128, 10)
    for model, flop in (
        (nn.Linear(128, 10), 2 * 16 * 128 * 10),
        (codesign.PaddedLinear(nn.Linear(128, 10), 128, 16), 2 * 16 * 128 * 16),
    ):
        with codesign.WorkCounter() as work:
            model(x)
        assert work.flop == flop


@pytest.mark.parametrize("widths", [(64, 10), (13, 10), (30, 50, 7, 3), (1, 1), (8, 16)])
def test_padded_linear_layers_give_the_same(widths: tuple[int, ...]) -> None:
    model = network(*widths)
    padded = codesign.optimize_model_for_tensor_cores(model, torch.float16)
    x, _ = batch(33, widths[0], widths[-1])
    assert padded(x).shape == model(x).shape
    assert torch.allclose(padded(x), model(x), rtol=0, atol=1e-6)
    # As long as the slice comes first, softmax sees the classes alone.
    assert torch.allclose(padded(x).softmax(-1), model(x).softmax(-1), rtol=0, atol=1e-6)
    assert not codesign.validate_model_for_tensor_cores(padded, torch.float16)


def test_softmax_before_the_slice_would_be_wrong() -> None:
    linear = nn.Linear(128, 10)
    padded = codesign.PaddedLinear(linear, 128, 16).requires_grad_(False)
    x, _ = batch(33, 128, 10)
    wide = nn.functional.linear(x, padded.weight, padded.bias)
    assert wide.shape == (33, 16)
    assert not torch.allclose(wide.softmax(-1)[:, :10], linear(x).softmax(-1), atol=0.01)


def test_padded_embeddings_give_the_same_and_refuse_the_same() -> None:
    torch.manual_seed(0)
    for options in ({}, {"padding_idx": 3}, {"max_norm": 1.0}):
        plain = nn.Embedding(101, 30, **options)
        padded = codesign.optimize_model_for_tensor_cores(plain, torch.float16)
        assert padded.weight.shape == (104, 32)
        indices = torch.randint(101, (7, 5))
        assert torch.allclose(padded(indices), plain(indices), rtol=0, atol=1e-6)
        for wrong in (101, 103, 104):  # of which the padding holds a row for the first two
            for layer in (plain, padded):
                with pytest.raises(IndexError, match="out of range"):
                    layer(torch.tensor([5, wrong]))
        assert padded(torch.empty(0, dtype=torch.long)).shape == (0, 30)


def test_training_leaves_the_padding_at_zero_and_the_model_equal() -> None:
    model = network(30, 50, 7)
    padded = codesign.optimize_model_for_tensor_cores(model, torch.float16)
    for trained in (model, padded):
        optimizer = torch.optim.AdamW(trained.parameters(), weight_decay=0.1)
        trainer = codesign.Trainer(trained, optimizer, cross_entropy)
        trainer.fit([batch(16, 30, 7, seed=seed) for seed in range(10)])
    x, _ = batch(33, 30, 7)
    assert torch.allclose(padded(x), model(x), rtol=0, atol=1e-5)
    for rest in (padded[0].weight[50:], padded[0].weight[:, 30:], padded[2].bias[7:]):
        assert rest.numel()
        assert not rest.any()


def test_the_model_itself_is_left() -> None:
    model = network(30, 50, 7)
    before = [type(layer) for layer in model]
    codesign.optimize_model_for_tensor_cores(model, torch.float16)
    assert [type(layer) for layer in model] == before


def test_layers_that_cannot_be_replaced_are_left_and_say_why() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(101, 32), nn.Linear(32, 101, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(self.embedding(x))

    for model, reason in (
        (Tied(), "another layer has the same weight"),
        (nn.TransformerEncoderLayer(10, 2), "may compute otherwise"),
        (nn.TransformerEncoderLayer(10, 2), "reads its layers' weights itself"),
    ):
        findings = codesign.validate_model_for_tensor_cores(model, torch.float16)
        assert any(reason in finding.reason for finding in findings)
        assert all(finding.reason for finding in findings)
        same = codesign.optimize_model_for_tensor_cores(model, torch.float16)
        assert [type(each) for each in same.modules()] == [type(each) for each in model.modules()]
    tied = codesign.optimize_model_for_tensor_cores(Tied(), torch.float16)
    assert tied.head.weight is tied.embedding.weight


@pytest.mark.parametrize("wrong", [0, -8, 2.5, "8", True])
def test_a_size_is_a_whole_number(wrong) -> None:
    with pytest.raises(InputError, match="must be a whole number from 1"):
        codesign.pad_to_tensor_core_multiple(wrong, torch.float16)


def test_padded_models_train_in_mixed_precision() -> None:
    padded = codesign.optimize_model_for_tensor_cores(network(30, 50, 7), torch.bfloat16)
    trainer = codesign.MixedPrecisionTrainer(padded, sgd(padded), cross_entropy)
    steps = trainer.fit([batch(16, 30, 7)], epochs=5)
    assert steps[-1].loss < steps[0].loss
