"""Offloading: the same step, less memory on the device, and what the link takes."""

from __future__ import annotations

import pytest

from calc import codesign, constants
from tests.calc.codesign.small_runs import batch, cross_entropy, network, torch, weights

BATCHES = [batch(16, 24, 10, seed=seed) for seed in range(6)]
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 1e-2}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}),
}


def trained(model, optimizer, batches=BATCHES):
    codesign.Trainer(model, optimizer, cross_entropy).fit(batches)
    return weights(model)


def tensor_bytes(tensors) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_step_is_the_optimizers_bit_for_bit(name: str) -> None:
    kind, options = OPTIMIZERS[name]
    plain, offloaded = network(24, 48, 10), network(24, 48, 10)
    wanted = trained(plain, kind(plain.parameters(), **options))
    optimizer = codesign.CPUOffloadingOptimizer(offloaded.parameters(), kind, **options)
    assert torch.equal(trained(offloaded, optimizer), wanted)


def test_groups_and_schedules_reach_the_host() -> None:
    def run(build):
        model = network(24, 48, 10)
        groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01}]
        optimizer = build(groups)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        for data in BATCHES:
            trained(model, optimizer, [data])
            schedule.step()
        return weights(model)

    wanted = run(lambda groups: torch.optim.SGD(groups, lr=0.1))
    trained_weights = run(
        lambda groups: codesign.CPUOffloadingOptimizer(groups, torch.optim.SGD, lr=0.1)
    )
    assert torch.equal(trained_weights, wanted)


def test_frozen_and_unused_weights_stay() -> None:
    model = network(24, 48, 10)
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
    trained(model, optimizer)
    assert torch.equal(model[0].weight, before)


def test_fp32_adam_keeps_8_of_16_bytes_on_the_device() -> None:
    model = network(256, 256, 256)
    count = sum(each.numel() for each in model.parameters())
    plain = torch.optim.Adam(model.parameters())
    trained(model, plain, [batch(8, 256, 256)])
    on_device = tensor_bytes(model.parameters()) + tensor_bytes(
        each.grad for each in model.parameters()
    )
    states = [s for state in plain.state.values() for name, s in state.items() if name != "step"]
    assert (on_device + tensor_bytes(states)) / count == 16
    model = network(256, 256, 256)
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
    trained(model, optimizer, [batch(8, 256, 256)])
    assert not optimizer.state  # nothing but weights and gradients is left here
    held = tensor_bytes(model.parameters()) + tensor_bytes(each.grad for each in model.parameters())
    assert held / count == 8


def test_a_mixed_precision_recipe_keeps_4_of_16_bytes_on_the_device() -> None:
    model = network(256, 256, 256, dtype=torch.bfloat16)
    count = sum(each.numel() for each in model.parameters())
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
    trained(model, optimizer, [batch(8, 256, 256, torch.bfloat16)])
    held = tensor_bytes(model.parameters()) + tensor_bytes(each.grad for each in model.parameters())
    assert held / count == 4
    masters = [each for group in optimizer.host.param_groups for each in group["params"]]
    states = [
        each
        for state in optimizer.host.state.values()
        for name, each in state.items()
        if name != "step"
    ]
    assert {each.dtype for each in masters + states} == {torch.float32}
    assert tensor_bytes(masters + states) / count == 12


def test_fp32_masters_keep_updates_that_16_bits_would_lose() -> None:
    """A step of 2^-12 is below half an ulp of 1 in BF16, and 32 of them are not."""
    weight = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    lost = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    ours = codesign.CPUOffloadingOptimizer([weight], torch.optim.SGD, lr=2.0**-12)
    plain = torch.optim.SGD([lost], lr=2.0**-12)
    for _ in range(32):
        weight.grad, lost.grad = torch.ones_like(weight), torch.ones_like(lost)
        ours.step()
        plain.step()
    assert torch.equal(lost.float(), torch.ones(4))
    assert torch.equal(weight.float(), torch.full((4,), 1 - 2.0**-7))


def test_host_gradients_are_cleared() -> None:
    model = network(24, 48, 10)
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
    trained(model, optimizer)
    masters = [each for group in optimizer.host.param_groups for each in group["params"]]
    assert all(each.grad is None for each in masters)
    before = weights(model)
    optimizer.zero_grad()
    optimizer.step()  # Adam's momentum would move weights whose gradient is an old one
    assert torch.equal(weights(model), before)


def test_its_state_goes_on_where_it_was() -> None:
    def offloaded():
        model = network(24, 48, 10, dtype=torch.bfloat16)
        return model, codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)

    batches = [(x.bfloat16(), y) for x, y in BATCHES]
    whole, optimizer = offloaded()
    wanted = trained(whole, optimizer, batches)
    first, optimizer = offloaded()
    trained(first, optimizer, batches[:3])
    second, again = offloaded()
    second.load_state_dict(first.state_dict())
    again.load_state_dict(optimizer.state_dict())
    assert torch.equal(trained(second, again, batches[3:]), wanted)


def test_the_time_on_the_link() -> None:
    """The link moves 7 · 10⁹ gradients and weights of 2 bytes over 16 lanes of PCIe 5: 63 GB/s."""
    weight = torch.nn.Parameter(torch.zeros(7_000_000, dtype=torch.bfloat16))
    optimizer = codesign.CPUOffloadingOptimizer([weight], torch.optim.Adam)
    down, up = optimizer.link_traffic
    assert down.m_as("MB") == up.m_as("MB") == 14
    raw = constants.get("bandwidth_pcie5_lane") * constants.get("lanes_pcie_x16")
    assert optimizer.link_time(raw).m_as("ms") == pytest.approx(2 * 14 / 63.0, rel=0.02)
    assert optimizer.link_time(raw, "1 ms").m_as("ms") == pytest.approx(2 + 2 * 14 / 63, rel=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here")
def test_on_a_gpu_the_states_are_on_the_host() -> None:
    model = network(24, 48, 10).cuda()
    optimizer = codesign.CPUOffloadingOptimizer(model.parameters(), torch.optim.Adam)
    plain = network(24, 48, 10).cuda()
    wanted = trained(plain, torch.optim.Adam(plain.parameters()))
    trained_weights = trained(model, optimizer)
    assert torch.allclose(trained_weights, wanted, rtol=1e-4, atol=1e-6)
    tensors = [t for state in optimizer.host.state.values() for t in state.values()]
    assert {each.device.type for each in tensors} == {"cpu"}
