"""The batch that adapts to memory: halved, really split again, grown back with care."""

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

WIDTHS = (64, 128, 10)
# What a step saves for each sample: its input, the hidden layer, the log-softmax, in FP32, and the
# target in 8 bytes; once for all, the weight of the mean.
PER_SAMPLE = 64 * 4 + 128 * 4 + 10 * 4 + 8
MEAN = 4
CPU_ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory:"
    " you tried to allocate 4000000000000000 bytes. Error code 12 (Cannot allocate memory)"
)


def dynamic(model, micro_batch=32, loss=cross_entropy, **options):
    return codesign.DynamicBatchSizeTrainer(
        model, sgd(model), loss, micro_batch=micro_batch, **options
    )


class Probe(nn.Module):
    """A model that notes how many samples come through, and fails above a limit."""

    def __init__(self, inner, limit, error) -> None:
        super().__init__()
        self.inner, self.limit, self.error, self.seen = inner, limit, error, []

    def forward(self, x):
        self.seen.append(len(x))
        if len(x) > self.limit:
            raise self.error
        return self.inner(x)


def test_saved_tensors_count_by_element() -> None:
    model = network(*WIDTHS)
    for samples in (1, 7, 32):
        x, y = batch(samples, 64, 10)
        saved = codesign.saved_tensor_bytes(lambda x=x, y=y: cross_entropy(model(x), y))
        assert saved == samples * PER_SAMPLE + MEAN


def test_a_tensor_saved_twice_counts_once_and_an_expanded_one_as_stored() -> None:
    x = torch.randn(100, requires_grad=True)
    assert codesign.saved_tensor_bytes(lambda: x * x) == 400
    assert codesign.saved_tensor_bytes(lambda: x.sin() + x.cos()) == 400
    wide = torch.randn(1, requires_grad=True).expand(1000)
    assert codesign.saved_tensor_bytes(lambda: wide.sin()) == 4


def test_half_precision_saves_half() -> None:
    x = torch.randn(100, requires_grad=True)
    assert codesign.saved_tensor_bytes(lambda: x.bfloat16().sin()) == 200


def test_memory_is_given_back_as_backward_uses_it() -> None:
    x = torch.randn(1000, requires_grad=True)
    with codesign.SimulatedMemory("8 kB") as held:
        for _ in range(5):
            x.sin().sum().backward()
    assert held.peak == 4000


def test_a_graph_that_is_given_up_gives_its_memory_back() -> None:
    """An output that is saved (log-softmax's) must not hold the graph that saved it."""
    model = network(*WIDTHS)
    x, y = batch(32, 64, 10)
    with codesign.SimulatedMemory(f"{32 * PER_SAMPLE + MEAN} byte"):
        for _ in range(3):
            cross_entropy(model(x), y)  # and no backward


def test_a_budget_holds_while_work_is_counted() -> None:
    trainer = dynamic(network(*WIDTHS))
    with codesign.SimulatedMemory(f"{8 * PER_SAMPLE + MEAN} byte") as held:
        with codesign.WorkCounter() as work:
            assert trainer.step(*batch(32, 64, 10)).parts == 4
        assert work.saved == held.peak == 8 * PER_SAMPLE + MEAN


def test_the_batch_is_really_split_again() -> None:
    model = Probe(network(*WIDTHS), 9, torch.OutOfMemoryError("CUDA out of memory."))
    trainer = dynamic(model)
    step = trainer.step(*batch(32, 64, 10))
    assert model.seen == [32, 16, 8, 8, 8, 8]
    assert (step.parts, step.events) == (4, ("out of memory",) * 2)
    assert [vars(change) for change in trainer.changes] == [
        {"step": 1, "before": 32, "after": 16, "reason": "out of memory"},
        {"step": 1, "before": 16, "after": 8, "reason": "out of memory"},
    ]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError(CPU_ALLOCATOR),
        RuntimeError("CUDA error: out of memory"),
        MemoryError(),
    ],
    ids=["cuda", "cpu", "driver", "python"],
)
def test_every_words_for_it_are_understood(error) -> None:
    assert codesign.is_out_of_memory(error)
    model = Probe(network(*WIDTHS), 16, error)
    dynamic(model).step(*batch(32, 64, 10))
    assert model.seen == [32, 16, 16]


def test_what_the_cpu_allocator_says_today() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(10**15)
    assert "out of memory" not in str(refused.value)
    assert codesign.is_out_of_memory(refused.value)


def test_another_error_is_no_shortage() -> None:
    model = Probe(network(*WIDTHS), 16, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not codesign.is_out_of_memory(ValueError("out of memory"))
    with pytest.raises(RuntimeError, match="shapes cannot"):
        dynamic(model).step(*batch(32, 64, 10))
    assert model.seen == [32]


def test_half_made_gradients_are_cleared() -> None:
    """Memory runs out in the second part, when the first has left its gradients."""
    model = network(*WIDTHS, dtype=torch.float64)
    x, y = batch(32, 64, 10, torch.float64)
    wanted = reference_gradients(model, x, y)

    class Late(Probe):
        def forward(self, x):
            if len(self.seen) == 1:
                assert self.inner[0].weight.grad is not None
                self.seen.append(len(x))
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return super().forward(x)

    late = Late(model, 64, None)
    trainer = dynamic(late, micro_batch=16)
    trainer.gradients(x, y)
    assert late.seen == [16, 16, 8, 8, 8, 8]
    assert float((gradients(model) - wanted).norm() / wanted.norm()) <= 1e-12


def test_the_step_is_the_whole_batchs_whatever_fits() -> None:
    whole, split = (network(*WIDTHS, dtype=torch.float64) for _ in range(2))
    plain, trainer = codesign.Trainer(whole, sgd(whole), cross_entropy), dynamic(split, patience=2)
    with codesign.SimulatedMemory("20 kB"):
        for seed in range(8):
            trainer.step(*batch(29, 64, 10, torch.float64, seed))
    for seed in range(8):
        plain.step(*batch(29, 64, 10, torch.float64, seed))
    assert trainer.changes
    assert torch.allclose(weights(split), weights(whole), rtol=1e-12, atol=1e-14)


def test_the_simulated_budget_decides_what_fits() -> None:
    budget = 8 * PER_SAMPLE + MEAN
    for bytes_held, parts in ((budget, 4), (budget - 1, 8)):
        trainer = dynamic(network(*WIDTHS))
        with codesign.SimulatedMemory(f"{bytes_held} byte") as held:
            assert trainer.step(*batch(32, 64, 10)).parts == parts
        assert held.peak <= bytes_held


def test_one_sample_that_does_not_fit_is_refused_with_nothing_changed() -> None:
    model = network(*WIDTHS)
    trainer = dynamic(model)
    before = weights(model)
    with (
        codesign.SimulatedMemory("500 byte"),
        pytest.raises(InputError, match="step 1: one sample alone does not fit in memory"),
    ):
        trainer.step(*batch(32, 64, 10))
    assert torch.equal(weights(model), before)
    assert all(each.grad is None for each in model.parameters())


def test_it_grows_back_with_care() -> None:
    trainer = dynamic(network(*WIDTHS), patience=3)
    data = batch(32, 64, 10)
    sizes = []
    with codesign.SimulatedMemory(f"{9 * PER_SAMPLE} byte"):
        for _ in range(12):
            trainer.step(*data)
            sizes.append(trainer.micro_batch)
    assert sizes == [8] * 12  # tried in vain after 3 steps, and then after 6 more
    tried = [change.step for change in trainer.changes if change.after > change.before]
    assert tried == [4, 10]
    for _ in range(40):  # now there is memory
        trainer.step(*data)
        sizes.append(trainer.micro_batch)
    assert sizes[-1] == 32
    assert max(sizes) == trainer.largest == 32


def test_it_does_not_grow_beyond_what_was_asked() -> None:
    trainer = dynamic(network(*WIDTHS), micro_batch=16, patience=1)
    for _ in range(5):
        assert trainer.step(*batch(64, 64, 10)).parts == 4
    assert trainer.changes == []


@pytest.mark.parametrize("wrong", ["12", "3 s", None, "0 byte"])
def test_a_budget_is_an_amount_of_memory(wrong) -> None:
    with pytest.raises(InputError):
        codesign.SimulatedMemory(wrong)
